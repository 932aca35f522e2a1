"""Each policy of examples/policies does what its comment says."""

import re
from collections import Counter
from pathlib import Path

import pytest

from moorage.adapters.kube.fields import Reader
from moorage.cli.cluster import Intake, Source
from moorage.cli.manifests import read
from moorage.cli.policy_lint import lint_files
from moorage.cli.simulate import run
from moorage.core.engine import EngineConfig
from moorage.core.model.events import PodPending
from moorage.core.model.instructions import Audited
from tests.kit.builders import make_container, make_node, make_pod

POLICIES = Path(__file__).resolve().parents[1] / "examples" / "policies"
NAMES = sorted(path.stem for path in POLICIES.glob("*.yaml"))
NOW = "2030-01-02T12:00:00Z"  # a Wednesday


def instant(text):
    return Reader().time(text, "")


def cluster(name, *objects, now=NOW):
    """A cluster with one of the example policies."""
    intake = Intake()
    for path in [POLICIES / f"{name}.yaml"] if name else []:
        for document, source in read(str(path), intake.problems):
            intake.add(document, source)
    for obj in objects:
        intake.add(obj, Source("test"))
    result = intake.cluster(instant(now))
    assert intake.problems == []
    return result


def placed(name, *objects, now=NOW):
    """Pod -> node, None for one that waits."""
    simulation = run(cluster(name, *objects, now=now), instant(now))
    return {pod.name: decision.chosen for pod, decision in simulation.tried}


def why_not(name, *objects, now=NOW):
    """Pod -> what keeps it waiting."""
    simulation = run(cluster(name, *objects, now=now), instant(now))
    found = {}
    for pod, decision in simulation.tried:
        held = decision.preenqueue
        found[pod.name] = ", ".join(held.reasons) if held is not None else decision.message
    return found


def pods(count, **more):
    return [make_pod(f"p{i}", **more) for i in range(count)]


def test_there_are_no_others_and_no_warnings():
    found = lint_files((str(POLICIES),))
    assert found.problems == []
    assert len(found.policies) == len(NAMES) == 10


def test_bin_pack_batch():
    nodes = [make_node(name) for name in "abc"]
    batch = pods(3, cpu="1", memory="1Gi", labels={"tier": "batch"})
    others = pods(3, cpu="1", memory="1Gi", labels={"tier": "web"})
    assert len(set(placed("bin-pack-batch", *nodes, *batch).values())) == 1
    assert len(set(placed("bin-pack-batch", *nodes, *others).values())) == 3


def test_keep_cpu_pods_off_gpu_nodes():
    nodes = [
        make_node("a-gpu", allocatable={"nvidia.com/gpu": "4"}),
        make_node("b", allocatable={"cpu": "2"}),
    ]
    plain = pods(3, cpu="1", memory="1Gi")
    assert placed("keep-cpu-pods-off-gpu-nodes", *nodes, *plain) == {"p0": "b", "p1": "b", "p2": "a-gpu"}
    assert placed("", *nodes, *plain)["p0"] == "a-gpu"
    wants = make_pod(
        "wants", containers=[make_container(requests={"cpu": "1"}, limits={"nvidia.com/gpu": "1"})]
    )
    assert placed("keep-cpu-pods-off-gpu-nodes", *nodes, wants) == {"wants": "a-gpu"}


def test_two_per_node():
    nodes = [make_node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    label = {"app.kubernetes.io/name": "ingress"}
    found = placed(
        "two-per-node", *nodes, *pods(4, labels=label), make_pod("q", namespace="other", labels=label)
    )
    assert Counter(found.values()) == {"a": 2, "b": 2, None: 1}
    assert set(placed("two-per-node", *nodes, *pods(7)).values()) == {"a", "b"}


@pytest.mark.parametrize(("count", "on_spot"), [(1, 1), (5, 2), (10, 4), (20, 8)])
def test_forty_percent_on_spot(count, on_spot):
    capacity = "node.example.com/capacity"
    nodes = [make_node("s", labels={capacity: "spot"}), make_node("d", labels={capacity: "on-demand"})]
    web = pods(count, labels={"tier": "web"})
    found = Counter(placed("forty-percent-on-spot", *nodes, *web).values())
    assert found["s"] == on_spot
    assert found["d"] == count - on_spot
    without = Counter(placed("forty-percent-on-spot", nodes[1], *web).values())
    assert without == {"d": count}


def test_zone_spread_ten_minutes():
    zone = "topology.kubernetes.io/zone"
    nodes = [make_node("a", labels={zone: "a"}), make_node("b", labels={zone: "b"}, unschedulable=True)]
    database = pods(2, labels={"app": "database"}, metadata={"creationTimestamp": "2030-01-02T11:55:00Z"})
    assert placed("zone-spread-ten-minutes", *nodes, *database) == {"p0": "a", "p1": None}
    later = placed("zone-spread-ten-minutes", *nodes, *database, now="2030-01-02T12:05:00Z")
    assert later == {"p0": "a", "p1": "a"}


@pytest.mark.parametrize(
    ("now", "goes"),
    [
        ("2030-01-02T12:00:00Z", False),  # Wednesday at noon
        ("2030-01-02T21:00:00Z", True),  # ten in Berlin
        ("2030-01-02T20:59:00Z", False),
        ("2030-01-03T04:59:00Z", True),
        ("2030-01-03T05:00:00Z", False),
        ("2030-07-03T20:00:00Z", True),  # summer time
        ("2030-01-05T12:00:00Z", True),  # Saturday
        ("2030-01-06T01:00:00Z", False),  # Sunday, maintenance
        ("2030-01-06T12:00:00Z", True),
    ],
)
def test_night_only_batch(now, goes):
    created = {"creationTimestamp": now}
    pod = make_pod("p", labels={"schedule": "nightly"}, metadata=created)
    other = make_pod("other", metadata=created)
    found = placed("night-only-batch", make_node("a"), pod, other, now=now)
    assert found == {"p": "a" if goes else None, "other": "a"}


def test_night_only_batch_waits_a_day_at_the_most():
    pod = make_pod(
        "p", labels={"schedule": "nightly"}, metadata={"creationTimestamp": "2030-01-01T12:00:00Z"}
    )
    assert placed("night-only-batch", make_node("a"), pod, now="2030-01-02T12:00:00Z") == {"p": "a"}
    told = why_not("night-only-batch", make_node("a"), pod, now="2030-01-02T11:59:00Z")["p"]
    assert told.startswith('held by policy "night-only-batch" until 2030-01-02T12:00:00Z')


def sample(node, cpu, memory="1Gi", at=NOW):
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": node},
        "timestamp": at,
        "usage": {"cpu": cpu, "memory": memory},
    }


def test_avoid_hot_nodes():
    nodes = [make_node(name) for name in "abc"]
    pod = make_pod("p")
    busy = [sample("a", "3500m"), sample("b", "3"), sample("c", "1")]
    assert placed("avoid-hot-nodes", *nodes, *busy, pod) == {"p": "c"}
    hot = [sample(name, "3500m") for name in "ac"] + [sample("b", "3")]
    assert placed("avoid-hot-nodes", *nodes, *hot, pod) == {"p": "b"}
    full = [sample("a", "1", "7500Mi"), sample("b", "3500m"), sample("c", "3500m")]
    assert placed("avoid-hot-nodes", *nodes, *full, pod) == {"p": None}
    stale = [sample(name, "4", at="2030-01-02T11:56:00Z") for name in "abc"]
    assert placed("avoid-hot-nodes", *nodes, *stale, pod) == {"p": "a"}


def owned(index):
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": f"app-{index}",
        "uid": str(index),
        "controller": True,
    }
    return make_pod(f"p{index}", metadata={"ownerReferences": [owner]})


def test_canary_scoring():
    nodes = [make_node("a"), make_node("b", labels={"node.example.com/disk": "local"})]
    in_canary = 0
    for index in range(100):
        chosen = placed("canary-scoring", *nodes, owned(index))[f"p{index}"]
        assert chosen == placed("canary-scoring", *nodes, owned(index))[f"p{index}"]
        in_canary += chosen == "b"
    assert 10 <= in_canary <= 40


def test_audit_bin_packing():
    nodes = [make_node(name) for name in "ab"]
    full = make_pod("x", cpu="2", memory="4Gi", node="a")
    pod = make_pod("p", cpu="1", memory="2Gi", schedulerName="moorage")
    assert placed("audit-bin-packing", *nodes, full, pod) == placed("", *nodes, full, pod) == {"p": "b"}
    files = cluster("audit-bin-packing", *nodes, full, pod)
    now = instant(NOW)
    engine = files.engine(EngineConfig(), now)
    engine.handle(PodPending(files.waiting[0]), now)
    audits = [each for _ in range(5) for each in engine.step(now) if isinstance(each, Audited)]
    assert [(each.policy.key, each.differs) for each in audits] == [("audit-bin-packing", True)]
    (report,) = engine.policy_reports()
    (found,) = report.audit.samples
    assert (found.pod, found.chosen, found.would_choose) == ("default/p", "b", "a")


def test_tenant():
    nodes = [
        make_node("small"),
        make_node("large", allocatable={"cpu": "8"}),
        make_node("old", allocatable={"cpu": "8"}, labels={"legacy": ""}),
    ]
    three = [make_container(name, requests={"cpu": "1", "memory": "1Gi"}) for name in "xyz"]
    mine = [make_pod(f"p{i}", namespace="team-a", containers=three) for i in range(3)]
    assert placed("tenant", *nodes, *mine) == {"p0": "large", "p1": "large", "p2": None}
    elsewhere = [make_pod(f"p{i}", namespace="team-b", containers=three) for i in range(5)]
    assert set(placed("tenant", *nodes, *elsewhere).values()) == {"small", "large", "old"}
    small = [make_pod(f"p{i}", namespace="team-a", containers=three[:2]) for i in range(5)]
    assert set(placed("tenant", *nodes, *small).values()) == {"small", "large", "old"}


def test_the_policy_of_the_readme(tmp_path):
    readme = (POLICIES.parents[1] / "README.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "policy.yaml").write_text(text)
    found = lint_files((str(tmp_path),))
    assert (found.problems, len(found.policies)) == ([], 1)


def test_every_example_has_a_test():
    tests = Path(__file__).read_text()
    assert [name for name in NAMES if f'placed("{name}"' not in tests] == []
