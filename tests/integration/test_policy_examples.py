"""The policies in examples/policies, applied as they are: each works as its comment says."""

import hashlib
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from tests.kit.manifests import Obj, node, pod
from tests.kit.policies_live import METRICS, PolicyCluster, install_node_metrics, remove_node_metrics

FOLDER = Path(__file__).parents[2] / "examples" / "policies"


def load(name: str) -> Obj:
    """The example of that name."""
    loaded: Obj = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return loaded


def labelled(name: str, *, cpu: str = "100m", namespace: str = "default", **labels: str) -> Obj:
    """A pod with labels."""
    made = pod(name, cpu=cpu, namespace=namespace)
    made["metadata"]["labels"] = labels
    return made


def with_gpus(made: Obj, number: int) -> Obj:
    """A node with GPUs."""
    for amounts in (made["status"]["allocatable"], made["status"]["capacity"]):
        amounts["nvidia.com/gpu"] = str(number)
    return made


def audit_bin_packing(policies: PolicyCluster) -> None:
    """Nothing is placed differently; the status shows for how many pods the decision would be another one."""
    policies.cluster.apply([node("busy"), node("idle"), pod("there", cpu="1", memory="4Gi", nodeName="busy")])
    policy = load("audit-bin-packing")
    policies.apply(policy)
    policies.cluster.create(pod("p"))
    assert policies.placed("p") == "idle"
    policies.await_status(policy, "audit.different", 1)
    (sample,) = policies.read(policy)["status"]["audit"]["samples"]
    assert (sample["chosen"], sample["wouldChoose"]) == ("idle", "busy")


def avoid_hot_nodes(policies: PolicyCluster) -> None:
    """Above 85 % nothing more goes there; between 60 % and that, the less busy ones are preferred."""
    policies.cluster.apply([node("burning"), node("warm"), node("warmer")])
    install_node_metrics(policies.cluster)
    now = datetime.now(ZoneInfo("UTC")).strftime("%Y-%m-%dT%H:%M:%SZ")
    use = {"burning": "3600m", "warm": "2600m", "warmer": "3200m"}
    for name, cpu in use.items():
        sample = {"timestamp": now, "window": "30s", "usage": {"cpu": cpu, "memory": "1Gi"}}
        meta = {"name": name}
        policies.cluster.apply([{"apiVersion": METRICS, "kind": "NodeMetrics", "metadata": meta, **sample}])
    policy = load("avoid-hot-nodes")
    policies.apply(policy)
    policies.cluster.wait_for(
        lambda: policies.condition(policy, "MetricsAvailable").get("status") == "True",
        30,
        "metrics are there",
    )
    policies.cluster.create(pod("p", cpu="10m"))
    assert policies.placed("p") == "warm"
    big = pod("big", cpu="3995m")
    policies.cluster.apply([pod("fills", cpu="3900m", nodeName="warmer")])
    policies.cluster.wait_for(lambda: policies.operator.metric("scheduler_cache_size", type="pods") == 2, 30)
    policies.cluster.create(big)
    assert 'policy "avoid-hot-nodes"' in policies.refusal("big"), "only the burning node has the room"


def bin_pack_batch(policies: PolicyCluster) -> None:
    """Batch pods fill nodes one after the other; other pods go on being spread."""
    policies.cluster.apply([node("busy"), node("idle"), pod("there", cpu="1", memory="4Gi", nodeName="busy")])
    policies.apply(load("bin-pack-batch"))
    policies.cluster.apply([labelled(f"batch{i}", tier="batch") for i in range(5)])
    assert set(policies.placements([f"batch{i}" for i in range(5)])) == {"busy"}
    policies.cluster.create(labelled("web", tier="web"))
    assert policies.placed("web") == "idle"


def canary_scoring(policies: PolicyCluster) -> None:
    """A quarter of the workloads, by their names, likes local disks better."""
    local = node("local", cpu="32", memory="128Gi")
    local["metadata"]["labels"]["node.example.com/disk"] = "local"
    policies.cluster.apply([local, node("other", cpu="32", memory="128Gi")])
    policies.cluster.apply([pod("there", cpu="16", memory="64Gi", nodeName="local")])
    policy = load("canary-scoring")
    policies.apply(policy)
    uid = policies.read(policy)["metadata"]["uid"]
    owners = [f"workload-{i}" for i in range(24)]
    pods = []
    for owner in owners:
        for i in range(2):
            made = pod(f"{owner}-{i}", cpu="10m")
            reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": owner}
            made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
            pods.append(made)
    policies.cluster.apply(pods)
    for owner in owners:
        digest = hashlib.sha256(f"{uid}/default/StatefulSet/{owner}".encode()).hexdigest()
        expected = "local" if int(digest[:8], 16) % 100 < 25 else "other"
        assert set(policies.placements([f"{owner}-{i}" for i in range(2)])) == {expected}


def forty_percent_on_spot(policies: PolicyCluster) -> None:
    """40 % on spot at any number of replicas; a lack of spot nodes never keeps a pod waiting."""
    nodes = [node("spot", cpu="1"), node("od", cpu="32", memory="128Gi")]
    for made, capacity in zip(nodes, ("spot", "on-demand"), strict=True):
        made["metadata"]["labels"]["node.example.com/capacity"] = capacity
    policies.cluster.apply(nodes)
    policies.apply(load("forty-percent-on-spot"))
    names = [f"web{i}" for i in range(10)]
    for name in names:
        policies.cluster.create(labelled(name, tier="web"))
    assert Counter(policies.placements(names)) == {"spot": 4, "od": 6}
    policies.await_status(
        load("forty-percent-on-spot"),
        "pools",
        [{"name": "spot", "pods": 4, "max": 5}, {"name": "on-demand", "pods": 6}],
    )
    policies.cluster.create(labelled("large", tier="web", cpu="2"))
    assert policies.placed("large") == "od"


def keep_cpu_pods_off_gpu_nodes(policies: PolicyCluster) -> None:
    """Off nodes with GPUs as long as there is room elsewhere; then these are used."""
    policies.cluster.apply([with_gpus(node("gpu", cpu="64", memory="256Gi"), 8), node("cpu", cpu="2")])
    policies.apply(load("keep-cpu-pods-off-gpu-nodes"))
    names = [f"p{i}" for i in range(4)]
    for name in names:
        policies.cluster.create(pod(name, cpu="500m"))
    assert set(policies.placements(names)) == {"cpu"}
    policies.cluster.create(pod("more", cpu="500m"))
    assert policies.placed("more") == "gpu"
    asks = pod("asks", cpu="10m")
    resources = asks["spec"]["containers"][0]["resources"]
    resources["requests"]["nvidia.com/gpu"] = "1"
    resources["limits"] = {"nvidia.com/gpu": "1"}
    policies.cluster.create(asks)
    assert policies.placed("asks") == "gpu"


def _berlin_lets_go(at: datetime) -> bool:
    local = at.astimezone(ZoneInfo("Europe/Berlin"))
    hold = local.weekday() == 6 and 1 <= local.hour < 4
    return not hold and (local.hour >= 22 or local.hour < 6 or local.weekday() >= 5)


def night_only_batch(policies: PolicyCluster) -> None:
    """Nightly pods go at night and on weekends; whether that is now, the clock says."""
    policies.cluster.apply([node("a")])
    policies.apply(load("night-only-batch"))
    before = datetime.now(ZoneInfo("UTC")) - timedelta(seconds=5)
    policies.cluster.apply([labelled("nightly", schedule="nightly"), pod("daily")])
    assert policies.placed("daily") == "a"
    expected = _berlin_lets_go(before)
    if expected != _berlin_lets_go(before + timedelta(minutes=2)):
        pytest.skip("the night begins or ends at this very moment")
    if expected:
        assert policies.placed("nightly") == "a"
    else:
        assert '"night-only-batch"' in policies.refusal("nightly", reason="PolicyHold")


def tenant(policies: PolicyCluster) -> None:
    """Large nodes for pods with more than two containers, in one namespace only."""
    legacy = node("legacy", cpu="64", memory="256Gi", legacy="yes")
    policies.cluster.apply([node("small"), node("large", cpu="8"), legacy])
    policies.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}])
    policies.cluster.apply([pod("there", cpu="6", memory="8Gi", nodeName="large")])
    policies.apply(load("tenant"))

    def threefold(name: str, namespace: str) -> Obj:
        made = pod(name, namespace=namespace)
        container = made["spec"]["containers"][0]
        made["spec"]["containers"] = [{**container, "name": f"c{i}"} for i in range(3)]
        return made

    policies.cluster.apply(
        [threefold("x", "team-a"), threefold("x", "default"), pod("y", namespace="team-a")]
    )
    assert policies.placed("x", "team-a") == "large"
    assert policies.placed("x") == "legacy", "elsewhere the emptiest node is the best"
    assert policies.placed("y", "team-a") == "legacy"


def two_per_node(policies: PolicyCluster) -> None:
    """At most two on any node; a third pod waits until there is another node."""
    policies.cluster.apply([node("a")])
    policies.apply(load("two-per-node"))
    pods = [labelled(f"p{i}") for i in range(3)]
    for made in pods:
        made["metadata"]["labels"]["app.kubernetes.io/name"] = "ingress"
        policies.cluster.create(made)
    assert policies.placements(["p0", "p1"]) == ["a", "a"]
    assert 'policy "two-per-node"' in policies.refusal("p2")
    policies.cluster.create(pod("other"))
    assert policies.placed("other") == "a"
    policies.cluster.apply([node("b")])
    assert policies.placed("p2") == "b"


def zone_spread_ten_minutes(policies: PolicyCluster) -> None:
    """Evenly over zones, strictly at first; after a while a preference (here: sooner than in the example)."""
    zones = {"a1": "a", "a2": "a", "b1": "b"}
    nodes = []
    for name, zone in zones.items():
        made = node(name, cpu="1" if zone == "b" else "4")
        made["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone
        nodes.append(made)
    policies.cluster.apply(nodes)
    policy = load("zone-spread-ten-minutes")
    policies.apply(policy)
    names = [f"db{i}" for i in range(4)]
    for name in names:
        policies.cluster.create(labelled(name, cpu="400m", app="database"))
    assert Counter(zones[found] for found in policies.placements(names)) == {"a": 2, "b": 2}
    policies.cluster.create(labelled("db4", cpu="400m", app="database"))
    assert zones[policies.placed("db4")] == "a", "one more is not too many"
    policies.cluster.create(labelled("db5", cpu="400m", app="database"))
    assert 'policy "zone-spread-ten-minutes"' in policies.refusal("db5")
    policy["spec"]["spread"][0]["hardFor"] = "1s"
    policies.apply(policy)
    assert zones[policies.placed("db5")] == "a"


EXAMPLES: dict[str, Callable[[PolicyCluster], Any]] = {
    "audit-bin-packing": audit_bin_packing,
    "avoid-hot-nodes": avoid_hot_nodes,
    "bin-pack-batch": bin_pack_batch,
    "canary-scoring": canary_scoring,
    "forty-percent-on-spot": forty_percent_on_spot,
    "keep-cpu-pods-off-gpu-nodes": keep_cpu_pods_off_gpu_nodes,
    "night-only-batch": night_only_batch,
    "tenant": tenant,
    "two-per-node": two_per_node,
    "zone-spread-ten-minutes": zone_spread_ten_minutes,
}


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.yaml")))
def test_an_example_works_as_it_says(policies: PolicyCluster, name: str) -> None:
    """One that is not in the table above fails here: it has nobody who tries it."""
    remove_node_metrics(policies.cluster)
    EXAMPLES[name](policies)


def test_every_example_is_there() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == EXAMPLES.keys()
