"""No wake-up is lost where volumes are concerned: the law of test_wake_ups.py on changes of storage, nodes and pods.

Two clusters with the same names are drawn, and the first is turned into the second by one object at a time, as far as
the API server allows it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.storage_changes import storage_event
from moorage.core.framework.interface import Narrowed, Rejected
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.pod import Pod
from moorage.core.model.storage import (
    InTreeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageKind,
    StorageObject,
)
from moorage.core.profile import REGISTRY
from tests.kit.plugin_checks import alive_rows, told, wakes
from tests.kit.strategies import Cluster, build, thoroughly
from tests.kit.volume_rules import VOLUME_RULES
from tests.laws.test_volume_plugins import questions

PLUGINS: dict[str, Any] = {name: plugin() for name, plugin in REGISTRY.items() if name in VOLUME_RULES}

#: What never changes.
FIXED = {
    StorageKind.VOLUME: ("source", "volume_mode"),
    StorageKind.CLAIM: ("storage_class", "access_modes", "volume_mode", "selector", "owner"),
    StorageKind.CLASS: ("provisioner", "waits_for_consumer"),
    StorageKind.CAPACITY: ("storage_class", "topology"),
    StorageKind.ATTACHMENT: ("attacher", "node_name", "volume_name"),
}
#: What can help by its end.  Where another object goes, those that refer to it are broken, which is no help.
REMOVED = (StorageKind.CSI_DRIVER, StorageKind.ATTACHMENT)


def kept(before: StorageObject | None, after: StorageObject | None) -> StorageObject | None:
    """The second object as far as the first can become it."""
    if before is None or after is None:
        return after
    fixed = {name: getattr(before, name) for name in FIXED.get(before.kind, ())}
    if isinstance(before, PersistentVolumeClaim) and before.volume_name:
        fixed["volume_name"] = before.volume_name
    if isinstance(before, PersistentVolume) and isinstance(before.source, InTreeSource):
        fixed["labels"] = before.labels  # a zone is part of what its disk is called
    return replace(after, **fixed)


def refusals(cluster: Cluster, pod: Pod) -> dict[str, dict[str, bool]]:
    """Whether each plugin, asked alone, refuses each node."""
    snapshot = build(cluster)
    found = {}
    for name, plugin in PLUGINS.items():
        answer = plugin.pre_filter(pod, snapshot)
        if isinstance(answer, Rejected):
            found[name] = dict.fromkeys((node.name for node in cluster.nodes), True)
            continue
        narrowed = answer.names if isinstance(answer, Narrowed) else None
        against = told(plugin, snapshot, pod, alive_rows(snapshot))
        found[name] = {
            node: bool(reasons) or (narrowed is not None and node not in narrowed)
            for node, reasons in against.items()
        }
    return found


def changes(before: Cluster, after: Cluster) -> Iterator[tuple[Cluster, ClusterEvent]]:
    """The first cluster with one object as it is in the second, or not there, and what is told of it."""
    stored = {(obj.kind, obj.key): obj for obj in before.storage}
    wanted = {(obj.kind, obj.key): obj for obj in after.storage}
    for pod in before.pods:  # whose claims were bound before it was
        for use in pod.volumes.claims:
            wanted.pop((StorageKind.CLAIM, f"{pod.namespace}/{use.name}"), None)
    for key in (*stored, *(key for key in wanted if key not in stored)):
        if key in wanted or key[0] in REMOVED:
            obj = kept(stored.get(key), wanted.get(key))
            event = storage_event(stored.get(key), obj)
            if event is not None:
                left = {k: other for k, other in stored.items() if k != key}
                storage = (*left.values(), *(() if obj is None else (obj,)))
                yield replace(before, storage=storage), event
    nodes = {node.name: node for node in before.nodes}
    for node in after.nodes:
        told_of = node_event(nodes.get(node.name), node)
        if told_of is not None:
            yield replace(before, nodes=tuple((nodes | {node.name: node}).values())), told_of
    for gone in before.pods:
        rest = tuple(pod for pod in before.pods if pod is not gone)
        yield replace(before, pods=rest), ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, gone, None)


@thoroughly(4)
@given(before=questions(), after=questions())
def test_what_turns_a_rejection_into_acceptance_wakes_the_pod(before, after):
    """The plugin that a node was refused by, which is the first to refuse it, wakes the pod when it no longer does."""
    cluster, pods = before
    for pod in pods[:2]:
        refused = refusals(cluster, pod)
        names = {node.name for node in cluster.nodes}
        for changed, event in changes(cluster, after[0]):
            now = refusals(changed, pod)
            for name, plugin in PLUGINS.items():
                earlier = [refused[other] for other in PLUGINS][: list(PLUGINS).index(name)]
                turned = {
                    node
                    for node in names
                    if refused[name][node] and not now[name][node] and not any(e[node] for e in earlier)
                }
                added = {node for node, refuses in now[name].items() if node not in names and not refuses}
                if turned or (added and any(refused[name].values())):
                    assert wakes(plugin, pod, event), f"{name}: {pod.name} sleeps on after {event}"
