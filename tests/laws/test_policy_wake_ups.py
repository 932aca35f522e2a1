"""No wake-up is lost by the plugins of policies: what opens a node is an event that wakes, or an instant foretold.

One change of any kind is made to a small world; if a node is accepted then that was refused, the pod must wake.
"""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import assigned_event
from moorage.core.framework.interface import Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.policy import SpreadRule
from moorage.core.plugins.policy_limits import PolicyLimits
from moorage.core.plugins.policy_load import PolicyLoad
from moorage.core.plugins.policy_nodes import PolicyNodes
from moorage.core.plugins.policy_pools import PolicyPools
from moorage.core.plugins.policy_spread import PolicySpread
from moorage.core.snapshot.view import Nodes
from tests.kit.plugin_checks import wakes
from tests.kit.policies import (
    NAMES,
    labels,
    limit_rules,
    load_rules,
    node_rules,
    of_policies,
    policy_nodes,
    policy_pods,
    policy_worlds,
    pool_lists,
    refs,
    samples,
    selects,
)
from tests.kit.strategies import LABEL_KEYS, thoroughly

spread_rules = st.builds(
    SpreadRule,
    st.sampled_from(LABEL_KEYS),
    st.integers(1, 2),
    st.sampled_from((None, 2)),
    st.just(True),
    st.sampled_from((None, 20.0, 90.0)),
)
plugins = st.one_of(
    st.builds(PolicyNodes, of_policies(node_rules)),
    st.builds(PolicyLimits, of_policies(limit_rules), st.just(selects)),
    st.builds(PolicyPools, refs, pool_lists(), st.just(selects)),
    st.builds(PolicySpread, of_policies(spread_rules), selects=st.just(selects)),
    st.builds(PolicyLoad, of_policies(load_rules)),
)


def accepted(plugin, pod, snapshot):
    """The names of the nodes that the plugin accepts, each asked about alone."""
    state = plugin.pre_filter(pod, snapshot)
    rows = [int(row) for row in np.flatnonzero(snapshot.alive)]
    if state is Skip.SKIP:
        return {snapshot.name_at(row) for row in rows}
    return {
        snapshot.name_at(row)
        for row in rows
        if plugin.filter(state, Nodes(snapshot, np.array([row], dtype=np.int64))).fits[0]
    }


def change(draw, world, snapshot):
    """Make one change to the snapshot; returns the event, None if time just passes."""
    kinds = ["node", "add", "measure", "time", *(["label", "die", "go"] if world.pods else [])]
    if len(world.nodes) > 1:
        kinds.append("drop")
    kind = draw(st.sampled_from(kinds))
    if kind == "node":
        node = draw(policy_nodes(draw(st.sampled_from(NAMES))))
        before = next((known for known in world.nodes if known.name == node.name), None)
        snapshot.set_node(node)
        return node_event(before, node) or "nothing"
    if kind == "drop":
        node = draw(st.sampled_from(world.nodes))
        snapshot.drop_node(node.name)
        return ClusterEvent(Resource.NODE, Action.DELETE, node, None)
    if kind == "add":
        pod = draw(policy_pods("new", draw(st.sampled_from(world.nodes)).name))
        snapshot.add_pod(snapshot.row_of(pod.node_name), pod)
        return ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, pod)
    if kind == "measure":
        snapshot.now += draw(st.sampled_from((0, 15)))
        names = st.sampled_from([node.name for node in world.nodes])
        found = snapshot.usage_samples.apply(draw(st.dictionaries(names, samples)))
        return ClusterEvent(Resource.NODE_USAGE, Action.UPDATE_OTHER, None, found)
    if kind == "time":
        snapshot.now += draw(st.sampled_from((0.5, 20.0, 50.0, 150.0, 1000.0)))
        return None
    pod = draw(st.sampled_from(world.pods))
    row = snapshot.row_of(pod.node_name)
    if kind == "go":
        snapshot.remove_pod(row, pod)
        return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, pod, None)
    changed = replace(pod, deleting=True) if kind == "die" else replace(pod, labels=draw(labels))
    snapshot.refresh_pod(row, changed)
    return assigned_event(pod, changed) or "nothing"


@thoroughly(8)
@given(policy_worlds(), policy_pods("asking"), plugins, st.data())
def test_what_opens_a_node_wakes_the_pod(world, pod, plugin, data):
    snapshot = world.snapshot()
    before = accepted(plugin, pod, snapshot)
    foretold = plugin.changes_at(pod, snapshot) if hasattr(plugin, "changes_at") else None
    refused = len(before) < snapshot.node_count
    event = change(data.draw, world, snapshot)
    opened = accepted(plugin, pod, snapshot) - before
    if not opened or not refused:
        return
    if event is None:
        assert foretold is not None, f"{opened} opened by time alone"
        assert foretold <= snapshot.now
    else:
        assert event != "nothing", f"{opened} opened by nothing"
        shows_later = (  # a pod that goes shows in the next sample
            isinstance(plugin, PolicyLoad) and event.resource is Resource.ASSIGNED_POD
        )
        assert shows_later or wakes(plugin, pod, event), f"{opened} opened by {event}"
