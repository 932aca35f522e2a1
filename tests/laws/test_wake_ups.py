"""No wake-up is lost: a change that turns a plugin's rejection into acceptance is one that it waits for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.core.cache.node_changes import guard_ready, node_event
from moorage.core.cache.pod_changes import assigned_event, pending_event
from moorage.core.framework.interface import FilterPlugin, Narrowed, PreEnqueuePlugin, Rejected, Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import make_pod, requests_of
from tests.kit.plugin_checks import wakes
from tests.kit.strategies import (
    NODE_NAMES,
    Cluster,
    amounts,
    build,
    clusters,
    labels,
    nodes,
    specs,
    tolerations,
)
from tests.laws.test_plugins import PLUGINS

#: Those that differ by their strategy of scoring only are left out.
FILTERS = [
    name
    for name, plugin in PLUGINS.items()
    if isinstance(plugin, FilterPlugin)
    and (name == plugin.name or not name.endswith(("-least", "-most", "-ratio", "-falling", "-a-group")))
]


def rejected_nodes(plugin: Any, pod: Pod, cluster: Cluster) -> set[str]:
    """The nodes that the plugin refuses, by PreFilter or by Filter; all of them if it rejects the pod."""
    snapshot: Snapshot = build(cluster)
    names = {node.name for node in cluster.nodes}
    answer = plugin.pre_filter(pod, snapshot)
    if answer is Skip.SKIP:
        return set()
    if isinstance(answer, Rejected):
        return names
    left_out = names - answer.names if isinstance(answer, Narrowed) else set()
    state = answer.state if isinstance(answer, Narrowed) else answer
    fits = plugin.filter(state, Nodes(snapshot)).fits
    return left_out | {snapshot.name_at(int(row)) for row in np.flatnonzero(snapshot.alive & ~fits)}


def with_node(cluster: Cluster, node: Node) -> Cluster:
    """The cluster with that node in place of the one of its name, if any."""
    others = tuple(other for other in cluster.nodes if other.name != node.name)
    return Cluster((*others, node), cluster.pods)


@st.composite
def node_changes(draw: st.DrawFn, cluster: Cluster) -> Node:
    """A new node, or one with something changed; most changes are small, so that they meet a rejection's cause."""
    known = {node.name: node for node in cluster.nodes}
    name = draw(st.sampled_from(NODE_NAMES[:2]))
    fresh = draw(nodes(name))
    before = known.get(name)
    if before is None:
        return fresh
    fields = ("labels", "taints", "unschedulable", "allocatable", "images", "ready")
    chosen = draw(st.sets(st.sampled_from(fields), min_size=1, max_size=2))
    after = replace(before, **{field: getattr(fresh, field) for field in chosen})
    if "ready" in chosen:
        after = guard_ready(replace(after, ready=draw(st.sampled_from(("True", "False", "Unknown")))))
    return after


@st.composite
def changes(draw: st.DrawFn, cluster: Cluster, pod: Pod) -> tuple[Cluster, Pod, ClusterEvent | None]:
    """The cluster and the pending pod after one change, and the event that the engine makes of it."""
    kinds = ["node", "pod"] + ["gone", "resized"] * bool(cluster.pods)
    match draw(st.sampled_from(kinds)):
        case "node":
            node = draw(node_changes(cluster))
            before = next((other for other in cluster.nodes if other.name == node.name), None)
            return with_node(cluster, node), pod, node_event(before, node)
        case "gone":
            gone = draw(st.sampled_from(cluster.pods))
            left = tuple(other for other in cluster.pods if other is not gone)
            event = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, gone, None)
            return Cluster(cluster.nodes, left), pod, event
        case "resized":
            old = draw(st.sampled_from(cluster.pods))
            new = replace(old, requests=requests_of({**old.requests.amounts, **draw(amounts())}))
            pods = tuple(new if other is old else other for other in cluster.pods)
            return Cluster(cluster.nodes, pods), pod, assigned_event(old, new)
        case _:
            after = draw(pod_changes(pod))
            return cluster, after, pending_event(pod, after)


@st.composite
def pod_changes(draw: st.DrawFn, pod: Pod) -> Pod:
    """What the API server lets change of a pending pod, and what a converter of ours may have learnt to read."""
    match draw(st.sampled_from(("labels", "tolerations", "requests", "unsupported", "gates"))):
        case "labels":
            return replace(pod, labels=draw(labels))
        case "tolerations":
            more = tuple(draw(st.lists(tolerations, min_size=1, max_size=2)))
            return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *more)))
        case "requests":
            asked = requests_of({**pod.requests.amounts, **draw(amounts())})
            return replace(pod, requests=asked, spec=replace(pod.spec, requests=asked))
        case "unsupported":
            return replace(pod, spec=replace(pod.spec, unsupported=(), invalid=()))
        case _:
            return replace(pod, gates=draw(st.sampled_from(((), ("one",)))))


@pytest.mark.parametrize("name", FILTERS)
@settings(max_examples=4 * settings().max_examples)
@given(data=st.data())
def test_what_turns_a_rejection_into_acceptance_wakes_the_pod(name, data):
    """A node that was refused is accepted; or the pod was refused somewhere, and a new node accepts it.

    The pod after the change is asked about, since that is what the queue holds by then.
    """
    plugin = PLUGINS[name]
    cluster = data.draw(clusters(min_nodes=1, max_nodes=2, max_pods=2), label="cluster")
    pod = make_pod("asking", spec=data.draw(specs(choosy=True), label="spec"))
    refused = rejected_nodes(plugin, pod, cluster)
    if not refused:
        return
    after, changed, event = data.draw(changes(cluster, pod), label="change")
    accepted = {node.name for node in after.nodes} - rejected_nodes(plugin, changed, after)
    known = {node.name for node in cluster.nodes}
    won = accepted & refused or accepted - known
    if won:
        assert wakes(plugin, changed, event), f"{sorted(won)} accept the pod now, and it sleeps on"


@pytest.mark.parametrize("name", [name for name, p in PLUGINS.items() if isinstance(p, PreEnqueuePlugin)])
@given(gates=st.sets(st.sampled_from(("one", "two"))), change=st.data())
def test_what_lets_a_pod_in_wakes_it(name, gates, change):
    plugin = PLUGINS[name]
    pod = make_pod("asking", gates=tuple(sorted(gates)))
    after = change.draw(pod_changes(pod))
    assert isinstance(plugin, PreEnqueuePlugin)
    if plugin.pre_enqueue(pod) is not None and plugin.pre_enqueue(after) is None:
        assert wakes(plugin, after, pending_event(pod, after))
