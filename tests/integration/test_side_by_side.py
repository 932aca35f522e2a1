"""Moorage and a real kube-scheduler with the same pods on the same cluster: the same placements, conditions, events."""

from typing import Any

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.both_schedulers import condition, events, plain, play, told, wait_for
from tests.kit.manifests import node, pod
from tests.kit.volume_controller import SELECTED_NODE, tend, volume

Obj = dict[str, Any]
pytestmark = pytest.mark.timeout(300)

ZONE = "topology.kubernetes.io/zone"


def bound(cluster: Client, *names: str) -> dict[str, str | None]:
    """Wait until these pods have nodes, and tell which."""
    wait_for(cluster, lambda: all(cluster.node_of(name) for name in names), f"{names} have nodes")
    return {name: cluster.node_of(name) for name in names}


# -- pods that fit, and pods that do not -----------------------------------------------------------


def test_a_pod_is_placed(control_plane: ControlPlane) -> None:
    def scenario(cluster: Client, scheduler: str) -> Obj:
        cluster.apply([node("large", cpu="8"), node("small", cpu="1")])
        cluster.create(pod("p", cpu="500m", scheduler=scheduler))
        bound(cluster, "p")
        return told(cluster, scheduler, "p", "Scheduled")

    ours, theirs = play(control_plane, scenario)
    assert ours == theirs
    assert ours["node"] == "large"
    (event,) = ours["events"]["Scheduled"]
    assert event["note"] == "Successfully assigned default/p to large"


def _hopeless() -> dict[str, Obj]:
    """Specs that fit nowhere, by name."""
    need = {"key": "disk", "operator": "In", "values": ["ssd"]}
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [need]}]
        }
    }
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    container = {"name": "main", "image": "none", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    apart = {"labelSelector": {"matchLabels": {"app": "there"}}, "topologyKey": "kubernetes.io/hostname"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "there"}},
    }
    tolerant = [{"operator": "Exists"}]
    return {
        "large": {"cpu": "64"},
        "fat": {"cpu": "64", "memory": "1Ti", "tolerations": tolerant},
        "choosy": {"affinity": {"nodeAffinity": required}},
        "selective": {"nodeSelector": {"disk": "tape"}, "cpu": "3"},
        "lost": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchFields": [
                                    {"key": "metadata.name", "operator": "In", "values": ["nowhere"]}
                                ]
                            }
                        ]
                    }
                }
            }
        },
        "featured": {"containers": [container], "restartPolicy": "Never", "tolerations": tolerant},
        "near": {
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [apart | {"topologyKey": "rack"}]
                }
            }
        },
        "spread": {"topologySpreadConstraints": [constraint | {"topologyKey": "rack"}]},
        "greedy": {"cpu": "3500m"},
        "claiming": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
    }


def test_pods_that_fit_nowhere_are_told_the_same(control_plane: ControlPlane) -> None:
    """Each plugin's words, and those of preemption behind them."""

    def scenario(cluster: Client, scheduler: str) -> dict[str, Obj]:
        tainted, cordoned = node("tainted", cpu="4"), node("cordoned", cpu="4", disk="hdd")
        tainted["spec"] = {"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]}
        cordoned["spec"] = {"unschedulable": True}
        cluster.apply([tainted, cordoned, node("small", cpu="1"), node("busy", cpu="4")])
        there = pod("there", cpu="1", nodeName="busy")
        there["metadata"]["labels"] = {"app": "there"}
        cluster.apply([there])
        specs = _hopeless()
        for name, spec in specs.items():
            cluster.create(pod(name, scheduler=scheduler, **spec))
        wait_for(cluster, lambda: all(condition(cluster, scheduler, name) for name in specs))
        return {name: told(cluster, scheduler, name, "FailedScheduling") for name in specs}

    ours, theirs = play(control_plane, scenario)
    _take_note_of_not_found(theirs["claiming"])
    assert ours == theirs
    texts = {name: each["condition"]["message"] for name, each in ours.items()}
    assert "4 node(s) didn't match Pod's required features" in texts["featured"]
    assert all(each["node"] is None for each in ours.values())


def _take_note_of_not_found(theirs: Obj) -> None:
    """A difference on purpose: kube-scheduler's DynamicResources adds words of its own (docs/decisions/0011)."""
    ours = "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    for told_as, told_in in (
        ("message", theirs["condition"]),
        ("note", theirs["events"]["FailedScheduling"][0]),
    ):
        assert told_in[told_as].endswith(" not found")
        told_in[told_as] = told_in[told_as].removesuffix("not found") + ours


def test_a_gated_pod_waits_and_is_released(control_plane: ControlPlane) -> None:
    def scenario(cluster: Client, scheduler: str) -> Obj:
        cluster.apply([node("only", cpu="2")])
        gates = [{"name": "example.com/one"}, {"name": "example.com/two"}]
        cluster.create(pod("gated", scheduler=scheduler, schedulingGates=gates))
        cluster.create(pod("after", scheduler=scheduler))
        bound(cluster, "after")  # so the one before it has been seen, too
        gated = told(cluster, scheduler, "gated")
        cluster.patch("Pod", "gated", {"spec": {"schedulingGates": gates[:1]}}, "default")
        cluster.create(pod("again", scheduler=scheduler))
        bound(cluster, "again")
        half = told(cluster, scheduler, "gated")
        warnings = events(cluster, scheduler, "gated", "FailedScheduling")
        cluster.patch("Pod", "gated", {"spec": {"schedulingGates": None}}, "default")
        bound(cluster, "gated")
        return {
            "gated": gated,
            "half": half,
            "warnings": warnings,
            "free": told(cluster, scheduler, "gated", "Scheduled"),
        }

    ours, theirs = play(control_plane, scenario)
    assert ours == theirs
    assert (ours["gated"]["node"], ours["half"]["node"], ours["free"]["node"]) == (None, None, "only")
    assert ours["gated"]["condition"]["reason"] == "SchedulingGated"
    assert ours["warnings"] == []


# -- volumes ---------------------------------------------------------------------------------------


def _class(name: str, provisioner: str, zone: str = "") -> Obj:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **({"allowedTopologies": topologies} if zone else {}),
    }


def _claim(name: str, storage_class: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
        },
    }


def _user(scheduler: str, claim: str) -> Obj:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return pod(f"of-{claim}", scheduler=scheduler, volumes=volumes)


def test_claims_that_wait_for_their_first_pod(control_plane: ControlPlane) -> None:
    """A volume that is there is given to its claim, another is made; the test plays those who bind and make them."""

    def scenario(cluster: Client, scheduler: str) -> Obj:
        cluster.apply([node(f"n{zone}", **{ZONE: zone}) for zone in "abc"])
        cluster.apply([_class("local", "kubernetes.io/no-provisioner"), _class("made", "csi.test", "c")])
        cluster.apply([volume("there", "local", "nb")])
        cluster.patch_status("PersistentVolume", "there", {"phase": "Available"})
        for name, storage_class in (("found", "local"), ("new", "made"), ("late", "local")):
            cluster.create(_claim(name, storage_class))
        cluster.create(_user(scheduler, "found"))
        cluster.create(_user(scheduler, "new"))
        wait_for(cluster, lambda: "claimRef" in cluster.get("PersistentVolume", "there")["spec"])
        wait_for(cluster, lambda: _annotations(cluster, "new").get(SELECTED_NODE))
        cluster.create(_user(scheduler, "late"))
        wait_for(cluster, lambda: condition(cluster, scheduler, "of-late"))
        given = cluster.get("PersistentVolume", "there")
        before = {
            "placed": [cluster.node_of(name) for name in ("of-found", "of-new", "of-late")],
            "volume": plain({**given["spec"]["claimRef"], "resourceVersion": ""}, scheduler),
            "marks": given["metadata"]["annotations"],
            "claims": {name: _annotations(cluster, name) for name in ("found", "new", "late")},
            "late": told(cluster, scheduler, "of-late", "FailedScheduling"),
        }
        tend(cluster)
        bound(cluster, "of-found", "of-new")
        after = {name: told(cluster, scheduler, name, "Scheduled") for name in ("of-found", "of-new")}
        second = volume("second", "local", "na")
        cluster.apply([second])
        cluster.patch_status("PersistentVolume", "second", {"phase": "Available"})
        wait_for(cluster, lambda: "claimRef" in cluster.get("PersistentVolume", "second")["spec"])
        tend(cluster)
        return {"before": before, "after": after, "late": bound(cluster, "of-late")}

    ours, theirs = play(control_plane, scenario)
    assert ours == theirs
    assert ours["before"]["placed"] == [None, None, None]
    assert ours["before"]["claims"]["new"][SELECTED_NODE] == "nc"
    assert [ours["after"][name]["node"] for name in ("of-found", "of-new")] == ["nb", "nc"]
    assert ours["late"] == {"of-late": "na"}


def _annotations(cluster: Client, claim: str) -> dict[str, str]:
    found: Obj = cluster.get("PersistentVolumeClaim", claim, "default")
    return dict(found["metadata"].get("annotations") or {})


# -- preemption ------------------------------------------------------------------------------------


def test_preemption_spares_what_a_budget_guards(control_plane: ControlPlane) -> None:
    """The same victims on the same node, by the same words; the victims stay until the test lets them go."""

    def scenario(cluster: Client, scheduler: str) -> Obj:
        for name, value in (("low", 10), ("middle", 100), ("high", 1000)):
            metadata = {"name": name}
            cluster.apply(
                [
                    {
                        "apiVersion": "scheduling.k8s.io/v1",
                        "kind": "PriorityClass",
                        "metadata": metadata,
                        "value": value,
                    }
                ]
            )
        names = {"guarded": "low", "dear": "middle", "many": "low", "cheap": "low"}
        cluster.apply([node(name, cpu="2") for name in names])
        for name, priority in names.items():
            cpus = ["700m", "700m", "600m"] if name == "many" else ["1", "1"]
            for number, cpu in enumerate(cpus):
                victim = pod(f"{name}-{number}", cpu=cpu, priorityClassName=priority, nodeName=name)
                victim["spec"]["terminationGracePeriodSeconds"] = 600
                victim["metadata"]["labels"] = {"on": name}
                cluster.apply([victim])
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"on": "guarded"}}}
        metadata = {"name": "guard", "namespace": "default"}
        cluster.apply(
            [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}]
        )
        cluster.create(pod("urgent", cpu="2", priorityClassName="high", scheduler=scheduler))
        wait_for(cluster, lambda: cluster.get("Pod", "urgent")["status"].get("nominatedNodeName"))
        wait_for(cluster, lambda: len(_dying(cluster)) == 2, "two victims are going")
        victims = _dying(cluster)
        result: Obj = {
            "victims": victims,
            "nominated": cluster.get("Pod", "urgent")["status"]["nominatedNodeName"],
            "marks": {name: condition(cluster, scheduler, name, "DisruptionTarget") for name in victims},
            "preempted": {name: told(cluster, scheduler, name, "Preempted") for name in victims},
            "urgent": told(cluster, scheduler, "urgent", "FailedScheduling")["events"]["FailedScheduling"][0],
        }
        # Another try may come while the victims are dying; its words replace those of the first.
        waiting = "a terminating pod on the nominated node"
        cluster.create(pod("other", cpu="2", priorityClassName="low", scheduler=scheduler))
        wait_for(cluster, lambda: condition(cluster, scheduler, "other"))
        result["other"] = told(cluster, scheduler, "other", "FailedScheduling")
        message = (condition(cluster, scheduler, "urgent") or {})["message"]
        assert waiting in message or message == result["urgent"]["note"], message
        for name in victims:
            cluster.delete("Pod", name)
        bound(cluster, "urgent")
        result["placed"] = told(cluster, scheduler, "urgent", "Scheduled")
        result["left"] = sorted(each["metadata"]["name"] for each in cluster.list("Pod", "default"))
        result["other later"] = cluster.node_of("other")
        return result

    ours, theirs = play(control_plane, scenario)
    assert ours == theirs
    assert ours["victims"] == ["cheap-0", "cheap-1"]
    assert (ours["nominated"], ours["placed"]["node"], ours["other later"]) == ("cheap", "cheap", None)


def _dying(cluster: Client) -> list[str]:
    pods = cluster.list("Pod", "default")
    return sorted(p["metadata"]["name"] for p in pods if p["metadata"].get("deletionTimestamp"))


# -- a rollout -------------------------------------------------------------------------------------


def test_a_rollout_spreads_each_revision_over_the_zones(control_plane: ControlPlane) -> None:
    """New pods come and old ones go by turns; ``matchLabelKeys`` has each revision counted by itself."""

    def scenario(cluster: Client, scheduler: str) -> Obj:
        cluster.apply([node(f"n{zone}", cpu="16", **{ZONE: zone}) for zone in "abc"])
        placed: dict[str, str | None] = {}
        for number in range(6):
            cluster.create(_replica("old", number, scheduler))
            placed |= bound(cluster, f"old-{number}")
        for number in range(6):
            cluster.create(_replica("new", number, scheduler))
            placed |= bound(cluster, f"new-{number}")
            cluster.delete("Pod", f"old-{number}")
        cluster.patch("Node", "nc", {"spec": {"unschedulable": True}})
        cluster.create(_replica("new", 6, scheduler))
        placed |= bound(cluster, "new-6")
        cluster.create(_replica("new", 7, scheduler))
        placed |= bound(cluster, "new-7")
        cluster.create(_replica("new", 8, scheduler))
        wait_for(cluster, lambda: condition(cluster, scheduler, "new-8"))
        return {"placed": placed, "refused": told(cluster, scheduler, "new-8", "FailedScheduling")}

    ours, theirs = play(control_plane, scenario)
    assert ours == theirs
    for revision in ("old", "new"):
        six = [ours["placed"][f"{revision}-{number}"] for number in range(6)]
        assert [six.count(name) for name in ("na", "nb", "nc")] == [2, 2, 2]
    assert "node(s) didn't match pod topology spread constraints" in ours["refused"]["condition"]["message"]


def _replica(revision: str, number: int, scheduler: str) -> Obj:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    # So that no two nodes are equally good, which would leave the choice to chance.
    preferred = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]},
        }
        for zone, weight in (("c", 90), ("a", 50), ("b", 10))
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    spread: Obj = {"topologySpreadConstraints": [constraint], "affinity": affinity}
    made = pod(f"{revision}-{number}", cpu="500m", scheduler=scheduler, **spread)
    made["metadata"]["labels"] = {"app": "web", "pod-template-hash": revision}
    return made
