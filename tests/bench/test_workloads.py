"""The declarations hold together, and the whole path works on a cluster that is small enough for a test."""

from collections import Counter

import pytest

from moorage.adapters.kube.convert import Converter
from tests.bench import path
from tests.bench.contestants import BIND_ONLY, KUBE_SCHEDULER, MOORAGE
from tests.bench.placement import judge
from tests.bench.workloads import ASIDE, COUNTED, WORKLOADS, Mode, Size, counted

SMALL = Size(20, 20)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_names_are_unique_and_say_what_is_counted(workload):
    """The clock tells pods by their names."""
    size = workload.size(20, 20)
    before = [obj for obj in workload.before(size) if obj["kind"] == "Pod"]
    pods = list(counted(workload, size))
    names = Counter(pod["metadata"]["name"] for pod in [*before, *pods])
    assert max(names.values()) == 1
    assert len(pods) == 20
    assert all(pod["metadata"]["name"].startswith(COUNTED) for pod in pods)
    assert all(pod["metadata"]["name"].startswith(ASIDE) for pod in before)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_pods_are_alike_where_they_are_meant_to_be(workload):
    """Moorage itself reads each; pods that share what is decided of them are known to be alike."""
    specs, converter = [], Converter()
    for pod in list(counted(workload, workload.size(20, 20)))[:2]:
        pod["metadata"]["uid"] = pod["metadata"]["name"]
        specs.append(converter.pod(pod).spec)
    assert (specs[0] is specs[1]) == (not workload.name.startswith("different"))


def test_a_size_holds_no_more_pods_than_nodes_can_take():
    """A smoke run must not wait for ever."""
    assert WORKLOADS["anti-affinity"].size(50, 100) == Size(50, 50)
    assert WORKLOADS["basic"].size() == Size(5000, 3000)


def test_placements_are_judged_by_all_bound_pods():
    """A node of 32 CPUs with 16 asked for is half used."""
    resources = {"resources": {"requests": {"cpu": "16"}}}

    def pod(name, node):
        spec = {"containers": [resources], **({"nodeName": node} if node else {})}
        return {"metadata": {"name": name}, "spec": spec}

    found = [pod("bench-1", "node-0"), pod("aside-1", "node-1"), pod("bench-2", None)]
    placement = judge(found, 4)
    assert (placement.nodes_used, placement.most, placement.cpu_stdev) == (1, 1, 25.0)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("workload", "contestant"),
    [("volumes", MOORAGE), ("preemption", KUBE_SCHEDULER), ("basic", BIND_ONLY), ("latency", MOORAGE)],
)
def test_a_run_binds_all_pods_and_tells_of_it(workload, contestant):
    """One of each mode, and each contestant."""
    declared = WORKLOADS[workload]
    run = path.measure(declared, contestant, SMALL)
    assert run.pods == 20
    assert run.rate > 0
    assert run.placement.nodes_used > 0
    assert (run.latency is not None) == (declared.mode is Mode.PACED)
    assert (run.evicted > 0) == (workload == "preemption")
    assert run.usage.cpu_seconds > 0
    assert run.usage.memory_mib > 10
    assert run.events.scheduled == (0 if contestant == BIND_ONLY else 20)
    assert (run.telling is not None) == (contestant == MOORAGE)
    if run.telling is not None:
        assert run.telling.written >= 20
        assert run.telling.dropped == 0
