"""No wake-up is lost: a change that turns a plugin's rejection into acceptance is one that it waits for.

Small pools of nodes, of pods on them and of pending pods are gone through in full: every plugin is asked about every
combination, and every single change that leads from a combination it refuses to one it accepts must wake the pod.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from moorage.core.cache.node_changes import guard_ready, node_event
from moorage.core.cache.pod_changes import assigned_event, pending_event
from moorage.core.framework.interface import FilterPlugin, Narrowed, PreEnqueuePlugin, Reads, Rejected, Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.pod import HostPort, Pod
from moorage.core.model.selector import Operator, Requirement
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, NOT_READY_KEY, UNSCHEDULABLE_KEY, Toleration
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import label_in, make_node, make_pod, make_spec, requests_of, required, taint, term
from tests.kit.plugin_checks import wakes
from tests.kit.strategies import GPU
from tests.kit.volume_rules import VOLUME_RULES
from tests.laws.test_plugins import PLUGINS

ONE_ADDRESS = HostPort("10.0.0.1", "TCP", 80)

NODES = [
    make_node("a", cpu=1000),
    make_node("b", cpu=1000),
    make_node("a", cpu=1000, unschedulable=True),
    make_node("a", cpu=1000, taints=[taint("x")]),
    make_node("a", cpu=1000, taints=[taint("x", effect=NO_EXECUTE), taint("y")]),
    make_node("a", cpu=400),
    make_node("a", cpu=500),
    make_node("a", cpu=1000, pods=0),
    make_node("a", cpu=1000, pods=1),
    make_node("a", cpu=1000, labels={"zone": "a"}),
    make_node("a", cpu=1000, labels={"zone": "c", "gen": "10"}),
    make_node("a", cpu=1000, more={GPU: 1}),
    guard_ready(make_node("a", cpu=1000, ready="False")),
    make_node("a", cpu=1000, declared_features=("A",)),
    make_node("a", cpu=1000, declared_features=("A", "B")),
]


def there(cpu: int, *ports: HostPort | int, **more: int) -> Pod:
    """The pod on the node: what it takes may change, its ports may not."""
    spec = SPECS.setdefault(ports, make_spec(ports=ports))
    return make_pod("there", spec=spec, requests=requests_of({"cpu": cpu, **more}), node="a")


SPECS: dict[tuple[HostPort | int, ...], Any] = {}
THERE = [
    None,
    there(499),
    there(500),
    there(501),
    there(10, 80),
    there(900, ONE_ADDRESS),
    there(10, **{GPU: 1}),
]

#: What a pod is made with, and what may change while it waits.
FIXED: list[dict[str, Any]] = [
    {},
    {"node_name": "a"},
    {"node_selector": {"zone": "a"}},
    {"required": required(term(Requirement("gen", Operator.GT, ("9",))))},
    {"required": required(term(label_in("zone", "a"), names=("a",)))},
    {"ports": [80]},
    {"ports": [ONE_ADDRESS]},
    {"more": {GPU: 1}},
]
CHANGING: list[dict[str, Any]] = [
    {},
    {"labels": {"app": "web"}},
    {"gates": ("one",)},
    {"cpu": 500},
    {"cpu": 501},
    {"tolerations": (Toleration("x", "Exists", effect=NO_SCHEDULE),)},
    {"tolerations": (Toleration(UNSCHEDULABLE_KEY, "Exists"), Toleration(NOT_READY_KEY, "Exists"))},
    {"tolerations": (Toleration("", "Exists"),)},
    {"unsupported": ("volumes",)},
    {"required_features": ("A",)},
    {"required_features": ("A", "B")},
    {"invalid": ("spec.x: odd",)},
]
PODS = {
    (i, j): make_pod("web", **fixed, **changing)
    for (i, fixed), (j, changing) in product(enumerate(FIXED), enumerate(CHANGING))
}
#: Those that differ by their strategy of scoring only are left out, and those with pools of their own
#: (test_volume_wake_ups.py).
FILTERS = [
    name
    for name, plugin in PLUGINS.items()
    if isinstance(plugin, FilterPlugin)
    and name not in VOLUME_RULES
    and (name == "SupportedFeatures" or not plugin.reads & Reads.CLUSTER)  # see test_peer_wake_ups.py
    and not name.endswith(("-least", "-most", "-ratio", "-falling", "-a-group"))
]
#: (index of the node, index of the pod on it)
Place = tuple[int, int]


@pytest.fixture(scope="module")
def snapshots() -> dict[Place, Snapshot]:
    """Every node, alone, with every pod on it."""
    made = {}
    for (n, node), (t, pod) in product(enumerate(NODES), enumerate(THERE)):
        made[n, t] = snapshot = Snapshot()
        snapshot.set_node(node)
        if pod is not None:
            snapshot.add_pod(0, replace(pod, node_name=node.name))
    return made


def accepts(plugin: Any, pod: Pod, snapshots: dict[Place, Snapshot]) -> dict[Place, bool]:
    """Whether the plugin accepts the node of each snapshot, by PreFilter and by Filter."""
    answer = plugin.pre_filter(pod, next(iter(snapshots.values())))
    if answer is Skip.SKIP or isinstance(answer, Rejected):
        return dict.fromkeys(snapshots, answer is Skip.SKIP)
    state, names = (answer.state, answer.names) if isinstance(answer, Narrowed) else (answer, None)
    row = np.zeros(1, dtype=np.int64)
    return {
        place: (names is None or NODES[place[0]].name in names)
        and bool(plugin.filter(state, Nodes(snapshot, row)).fits[0])
        for place, snapshot in snapshots.items()
    }


def events_to(place: Place) -> list[tuple[Place, ClusterEvent | None]]:
    """Every single change of the cluster that leads to that place, with the place before it."""
    n, t = place
    node, pod = NODES[n], THERE[t]
    found = [
        ((other, t), node_event(before, node))
        for other, before in enumerate(NODES)
        if before.name == node.name
    ]
    for other, gone in enumerate(THERE):
        if gone is not None and pod is None:
            found.append(((n, other), ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, gone, None)))
        elif gone is not None and pod is not None and gone.spec is pod.spec:
            found.append(((n, other), assigned_event(gone, pod)))
    return found


EVENTS_TO = {place: events_to(place) for place in product(range(len(NODES)), range(len(THERE)))}


@pytest.mark.parametrize("name", FILTERS)
def test_what_turns_a_rejection_into_acceptance_wakes_the_pod(name, snapshots):
    """A node changes or is added, a pod on it goes or shrinks, or the pending pod itself changes."""
    plugin = PLUGINS[name]
    answers = {key: accepts(plugin, pod, snapshots) for key, pod in PODS.items()}
    turned = 0
    for (fixed, changing), accepted in answers.items():
        pod = PODS[fixed, changing]
        refused_somewhere = not all(accepted.values())
        for place in (place for place, yes in accepted.items() if yes):
            if refused_somewhere:  # then that node is added
                turned += 1
                added = node_event(None, NODES[place[0]])
                assert wakes(plugin, pod, added), f"{pod.spec} sleeps on when {added} comes"
            for before, event in EVENTS_TO[place]:
                if not accepted[before]:
                    turned += 1
                    assert wakes(plugin, pod, event), f"{pod.spec} sleeps on after {event}"
            for other in range(len(CHANGING)):
                if not answers[fixed, other][place]:
                    turned += 1
                    own = pending_event(PODS[fixed, other], pod)
                    assert wakes(plugin, pod, own), f"a pod sleeps on after {own}"
    assert turned, "the pools hold nothing that this plugin refuses and then accepts: extend them"


@pytest.mark.parametrize("name", [name for name, p in PLUGINS.items() if isinstance(p, PreEnqueuePlugin)])
def test_what_lets_a_pod_in_wakes_it(name):
    plugin = PLUGINS[name]
    assert isinstance(plugin, PreEnqueuePlugin)
    turned = 0
    for (fixed, _), before in PODS.items():
        for after in (PODS[fixed, other] for other in range(len(CHANGING))):
            if plugin.pre_enqueue(before) is not None and plugin.pre_enqueue(after) is None:
                turned += 1
                assert wakes(plugin, after, pending_event(before, after))
    assert turned
