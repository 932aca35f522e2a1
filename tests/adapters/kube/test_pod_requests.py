"""The one formula for what a pod takes, by hand-worked figures and against a slow, literal reading of the rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.pod_requests import container_total, requests_by_spec, requests_on_node
from moorage.core.model.resources import DEFAULT_MEMORY, MAX_AMOUNT, Requests
from tests.kit.builders import make_container

MI = 1024 * 1024


def by_spec(**spec):
    reader = Reader()
    requests = requests_by_spec(spec, reader)
    assert reader.problems == []
    return requests


def on_node(spec, status):
    reader = Reader()
    requests = requests_on_node(spec, status, reader)
    assert reader.problems == []
    return requests


def cpu(amount, name="main", **fields):
    return make_container(name, requests={"cpu": amount}, **fields)


def sidecar(amount, name="side"):
    return cpu(amount, name, restartPolicy="Always")


# -- by spec -------------------------------------------------------------------------------------


def test_containers_add_up():
    requests = by_spec(
        containers=[make_container(requests={"cpu": "100m", "memory": "1Mi"}), cpu("250m", "second")]
    )
    assert requests == Requests(
        {"cpu": 350, "memory": MI}, scoring_cpu=350, scoring_memory=MI + DEFAULT_MEMORY
    )


def test_a_pod_that_asks_for_nothing():
    assert by_spec(containers=[make_container()]) == Requests({}, 100, DEFAULT_MEMORY)
    assert by_spec() == Requests({}, 0, 0)


def test_zero_is_asked_for_and_not_guessed():
    requests = by_spec(containers=[make_container(requests={"cpu": "0", "example.com/fpga": "0"})])
    assert requests == Requests({"cpu": 0, "example.com/fpga": 0}, 0, DEFAULT_MEMORY)


@pytest.mark.parametrize(
    ("init_containers", "expected"),
    [
        ([cpu("2", "i")], 2000),  # the initialisation needs more than the main container
        ([cpu("500m", "i")], 1000),
        ([sidecar("1500m"), cpu("2", "i")], 3500),  # the step runs next to the sidecar
        ([cpu("2", "i"), sidecar("1500m")], 2500),  # the sidecar starts after it
        ([sidecar("100m", "s1"), sidecar("200m", "s2")], 1300),
        ([sidecar("1", "s1"), cpu("1500m", "i"), sidecar("1", "s2")], 3000),
    ],
)
def test_init_containers_and_sidecars(init_containers, expected):
    assert by_spec(containers=[cpu("1")], initContainers=init_containers).amounts == {"cpu": expected}


def test_overhead_comes_on_top():
    requests = by_spec(containers=[cpu("900m")], overhead={"cpu": "200m", "memory": "1Mi"})
    assert requests == Requests({"cpu": 1100, "memory": MI}, 1100, DEFAULT_MEMORY + MI)


def test_pod_level_resources_replace_the_sums():
    requests = by_spec(
        containers=[make_container(requests={"cpu": "100m", "memory": "5Mi", "example.com/x": "1"})],
        resources={"requests": {"cpu": "2", "hugepages-2Mi": "4Mi", "example.com/x": "9"}},
        overhead={"cpu": "1m"},
    )
    assert requests.amounts == {"cpu": 2001, "memory": 5 * MI, "example.com/x": 1, "hugepages-2Mi": 4 * MI}
    assert (requests.scoring_cpu, requests.scoring_memory) == (2001, 5 * MI)
    assert (requests.arriving_cpu, requests.arriving_memory) == (
        101,
        5 * MI,
    )  # as kube-scheduler scores the pod


def test_with_pod_level_resources_only_what_nobody_names_is_guessed():
    requests = by_spec(
        containers=[make_container(), make_container("b")], resources={"requests": {"cpu": "2"}}
    )
    assert (requests.scoring_cpu, requests.scoring_memory) == (2000, 2 * DEFAULT_MEMORY)


def test_pod_level_limits_or_unsupported_resources_alone_change_nothing():
    for resources in ({"limits": {"cpu": "4"}}, {"requests": {"example.com/x": "1"}}, {}):
        assert by_spec(containers=[cpu("1")], resources=resources) == by_spec(containers=[cpu("1")])


def test_parts_of_a_unit_are_added_up_before_they_are_rounded():
    halves = [make_container(str(i), requests={"example.com/x": "500m"}) for i in range(3)]
    assert by_spec(containers=halves).amounts == {"example.com/x": 2}


def test_cpu_finer_than_a_thousandth_is_rounded_up_by_container():
    assert by_spec(containers=[cpu("100u"), cpu("100u", "b")]).amounts == {"cpu": 2}


def test_names_that_scheduling_does_not_count_are_left_out():
    assert by_spec(containers=[make_container(requests={"gpu": "1", "pods": "5"})]).amounts == {}


@pytest.mark.parametrize("amounts", [["16Ei"], ["50E"], ["5E"] * 3, ["9223372036854775807"]])
def test_beyond_64_bits_is_the_largest_amount(amounts):
    containers = [make_container(str(i), requests={"memory": m, "cpu": m}) for i, m in enumerate(amounts)]
    assert by_spec(containers=containers).amounts == {"memory": MAX_AMOUNT, "cpu": MAX_AMOUNT}


def test_limits_in_the_same_way():
    spec = {"containers": [make_container(limits={"cpu": "1"}), make_container("b", limits={"cpu": "2"})]}
    assert container_total(spec, Reader(), "limits") == {"cpu": 3000}


def test_what_cannot_be_read_is_reported_with_its_path():
    reader = Reader()
    spec = {
        "containers": [cpu("1x"), {"name": "b", "resources": {"requests": []}}, 5],
        "initContainers": "none",
        "overhead": {"cpu": "-1"},
    }
    assert requests_by_spec(spec, reader).amounts == {"cpu": 0}
    assert [path for path, _ in reader.problems] == [
        "spec.containers[0].resources.requests.cpu",
        "spec.containers[1].resources.requests",
        "spec.containers[2]",
        "spec.initContainers",
        "spec.overhead.cpu",
    ]


# -- on a node, while a resize is under way ------------------------------------------------------

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {**INFEASIBLE, "reason": "Deferred"}


def state(name="main", allocated=None, actual=None):
    status = {"name": name}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": allocated}
    if actual is not None:
        status["resources"] = {"requests": {"cpu": actual}}
    return status


@pytest.mark.parametrize(
    ("statuses", "conditions", "expected"),
    [
        ([], [], 1000),
        ([state()], [], 1000),
        (
            [state(allocated="1500m", actual="1500m")],
            [],
            1500,
        ),  # it shrinks: the node still holds the old amount
        ([state(allocated="500m", actual="500m")], [], 1000),  # it grows: what it wants is kept for it
        ([state(allocated="500m", actual="700m")], [], 1000),
        ([state(allocated="1200m")], [], 1200),
        ([state(actual="1300m")], [], 1300),
        ([state(allocated="500m", actual="700m")], [INFEASIBLE], 700),  # what it wants will not be
        ([state(allocated="500m", actual="700m")], [DEFERRED], 1000),
        ([state(allocated="500m", actual="700m")], [{"type": "Ready", "reason": "Infeasible"}], 1000),
        ([state("other", allocated="9")], [], 1000),
    ],
)
def test_resize_of_a_container(statuses, conditions, expected):
    status = {"containerStatuses": statuses, "conditions": conditions}
    assert on_node({"containers": [cpu("1")]}, status).amounts == {"cpu": expected}


def test_resize_of_a_sidecar():
    spec = {"containers": [cpu("1")], "initContainers": [sidecar("1")]}
    status = {"initContainerStatuses": [state("side", allocated="3", actual="2")]}
    assert on_node(spec, status).amounts == {"cpu": 4000}


def test_resize_of_the_pod_as_a_whole():
    spec = {"containers": [cpu("100m")], "resources": {"requests": {"cpu": "1"}}}
    status = {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}
    assert on_node(spec, status).amounts == {"cpu": 3000}
    assert on_node(spec, {"allocatedResources": {"cpu": "3"}}).amounts == {"cpu": 1000}
    status["conditions"] = [INFEASIBLE]
    assert on_node({**spec, "resources": {"requests": {"cpu": "9"}}}, status).amounts == {"cpu": 3000}


def test_the_kubelet_s_own_sums_replace_those_of_the_containers():
    status = {
        "containerStatuses": [state(allocated="9", actual="9")],
        "resources": {"requests": {"cpu": "2"}},
        "allocatedResources": {"cpu": "2"},
    }
    assert on_node({"containers": [cpu("1")]}, status).amounts == {"cpu": 2000}


def test_scoring_counts_a_resize_as_well():
    requests = on_node({"containers": [cpu("1")]}, {"containerStatuses": [state(allocated="2")]})
    assert (requests.scoring_cpu, requests.scoring_memory) == (2000, DEFAULT_MEMORY)


def test_an_unreadable_status_is_reported():
    reader = Reader()
    status = {"containerStatuses": [state(allocated="x")], "conditions": {}}
    assert requests_on_node({"containers": [cpu("1")]}, status, reader).amounts == {"cpu": 1000}
    assert [path for path, _ in reader.problems] == [
        "status.conditions",
        "status.containerStatuses[0].allocatedResources.cpu",
    ]


# -- a literal reading of KEP-753 ----------------------------------------------------------------


def literal(containers, init_containers):
    """``max( Max_i (InitContainerUse(i)), sum of sidecars + sum of containers )``, one resource."""
    sidecars = [amount for amount, is_sidecar in init_containers if is_sidecar]
    uses = [
        sum(a for a, is_sidecar in init_containers[:i] if is_sidecar) + amount
        for i, (amount, _) in enumerate(init_containers)
    ]
    return max([sum(containers) + sum(sidecars), *uses])


amounts = st.integers(0, 50)


@given(st.lists(amounts, max_size=4), st.lists(st.tuples(amounts, st.booleans()), max_size=5))
def test_the_formula_is_the_one_of_the_sidecar_proposal(containers, init_containers):
    spec = {
        "containers": [cpu(f"{amount}m", f"c{i}") for i, amount in enumerate(containers)],
        "initContainers": [
            cpu(f"{amount}m", f"i{i}", **({"restartPolicy": "Always"} if is_sidecar else {}))
            for i, (amount, is_sidecar) in enumerate(init_containers)
        ],
    }
    assert by_spec(**spec).of("cpu") == literal(containers, init_containers)
    assert on_node(spec, {}) == by_spec(**spec)
