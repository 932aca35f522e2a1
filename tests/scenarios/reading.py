"""Reads scenarios (one file each) and cases (a folder each), and compares answers with what they expect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

HERE = Path(__file__).resolve().parent
SCENARIOS = sorted(HERE.glob("*.yaml"))
#: Cases that stand still; those that move have a steps.yaml and need a cluster (tests/integration/test_cases.py).
CASES = sorted(path.parent for path in HERE.glob("cases/*/pods.yaml"))

#: Cases that need plugins beyond those of the first version.  As long as one of these is not registered, the case's
#: pods must be refused with a clear text; as soon as all are, the case must come out right.  Nothing is to be
#: changed here when a plugin is added.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "b05-spread-tainted-domain": ("PodTopologySpread",),
    "b06-terminating-pods": ("PodTopologySpread", "InterPodAffinity"),
    "b08-spread-missing-key": ("PodTopologySpread",),
    "b09-affinity-one-pod-all-terms": ("InterPodAffinity",),
    "b15-anti-affinity-namespaces": ("InterPodAffinity",),
    "b16-spread-self-and-min-domains": ("PodTopologySpread",),
    "b22-match-label-keys": ("PodTopologySpread",),
    "b26-bound-volumes": ("VolumeRestrictions", "VolumeBinding", "VolumeZone"),
    "b27-delayed-binding": ("VolumeRestrictions", "VolumeBinding", "VolumeZone"),
    "b28-csi-limit": ("VolumeRestrictions", "VolumeBinding", "NodeVolumeLimits"),
}


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: times stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(path: Path) -> list[Any]:
    """All that a YAML file holds."""
    return [each for each in yaml.load_all(path.read_text(), _Loader) if each is not None]


def pod_name(pod: Json) -> str:
    """namespace/name."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


# --- Scenarios ----------------------------------------------------------------------------------------------


def scenario(path: Path) -> tuple[Json, list[Json]]:
    """The decision case of a scenario, and what is expected of each of its pods."""
    (whole,) = documents(path)
    return whole, whole.pop("expect")


def misses(expected: list[Json], answer: Json) -> Iterator[str]:
    """Where the answer to a scenario's case is not what is expected."""
    if "error" in answer:
        yield answer["error"]
        return
    got = [each["pod"] for each in answer["results"]]
    wanted = [each["pod"] for each in expected]
    if got != wanted:
        yield f"expected pods {wanted}, got {got}"
        return
    for one, result in zip(expected, answer["results"], strict=True):
        final = result.get("retry") or result
        best = [final["chosen"]] if final.get("nominatedNodeFits") else final["best"]
        preempts = result["preemption"] and {key: result["preemption"][key] for key in ("node", "victims")}
        gate = result.get("preenqueue")
        found = {
            "pod": result["pod"],
            "node": None if final["chosen"] is None else best[0] if len(best) == 1 else best,
            "message": None if result.get("error") else result["message"] or None,
            "gated": gate["reasons"][0] if gate else None,
            "preempts": preempts,
            "error": result.get("error"),
        }
        for key, value in found.items():
            if one.get(key) != value:
                yield f"{one['pod']} {key}:\n  expected {one.get(key)!r}\n  got      {value!r}"
        if unknown := one.keys() - found.keys():
            yield f"{one['pod']}: nothing is known of {', '.join(sorted(unknown))}"


# --- Cases --------------------------------------------------------------------------------------------------


def case(folder: Path) -> Json:
    """The folder as a decision case; pods in the order in which the queue would give them out."""
    objects, pods = documents(folder / "cluster.yaml"), documents(folder / "pods.yaml")
    classes = {o["metadata"]["name"]: o["value"] for o in objects if o["kind"] == "PriorityClass"}

    def place(pod: Json) -> tuple[int, str]:
        spec = pod["spec"]
        priority = spec.get("priority", classes.get(spec.get("priorityClassName"), 0))
        return -priority, pod["metadata"].get("creationTimestamp", "")

    return {"id": folder.name, "objects": objects, "pods": sorted(pods, key=place), "preempt": "evict"}


def expectations(folder: Path, *, of_kube_scheduler: bool = False) -> dict[str, list[str | None]]:
    """The nodes that are right for each pod; None: it stays pending."""
    expect = json.loads((folder / "expect.json").read_text())
    differs = folder / "kube-differs.json"
    if of_kube_scheduler and differs.exists():
        expect |= json.loads(differs.read_text())
    return {
        pod if "/" in pod else f"default/{pod}": nodes if isinstance(nodes, list) else [nodes]
        for pod, nodes in expect.items()
    }


def victims(folder: Path) -> list[str] | None:
    """The pods that must be evicted, if the case says so."""
    path = folder / "victims.json"
    return json.loads(path.read_text()) if path.exists() else None


def failures(folder: Path, answer: Json, *, of_kube_scheduler: bool = False) -> Iterator[str]:
    """Where the answer to a folder's case is not what is expected."""
    if "error" in answer:
        yield answer["error"]
        return
    results = {result["pod"]: result for result in answer["results"]}
    expected = expectations(folder, of_kube_scheduler=of_kube_scheduler)
    if results.keys() != expected.keys():
        yield f"expected pods {sorted(expected)}, got {sorted(results)}"
        return
    for pod, right in expected.items():
        final = results[pod].get("retry") or results[pod]
        got = final["best"] if final["chosen"] is not None else [None]
        if final.get("nominatedNodeFits"):
            got = [final["chosen"]]
        if not set(got) <= set(right):
            yield f"{pod}: expected {right}, got {got}: {final['message'] or final['scores']}"
    evicted = {victim for r in results.values() for victim in (r["preemption"] or {}).get("victims", ())}
    wanted = victims(folder)
    if wanted is not None and set(wanted) != evicted:
        yield f"expected victims {sorted(wanted)}, got {sorted(evicted)}"
