"""No wake-up is lost where pods matter to pods: one change of any kind, and a node that was refused is accepted.

The pools are tiny, so that a change opens a node often.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import assigned_event, pending_event
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.node import Node
from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import HOSTNAME, ZONE, SpreadConstraint, SpreadDefaults
from moorage.core.model.taint import Taint, Toleration
from moorage.core.model.workload import Namespace, Workload, WorkloadKind
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from tests.core.plugins.test_pod_topology_spread import verdicts
from tests.kit.models import label_in, make_pod, make_spec
from tests.kit.peers import World
from tests.kit.plugin_checks import wakes

NAMES = ("n0", "n1", "n2")
NAMESPACES = ("red", "red", "red", "blue")
X = LabelSelector((label_in("app", "x"),))
TEAM = LabelSelector((label_in("team", "a"),))

labels = st.fixed_dictionaries({"app": st.sampled_from("xxy")}, optional={"rev": st.sampled_from("12")})
selectors = st.sampled_from((X, X, X, LabelSelector()))
revisions = st.sampled_from(((), (), ("rev",)))
tolerations = st.sampled_from(((), (Toleration("t", "Exists"),)))
terms = st.builds(
    PodAffinityTerm,
    st.sampled_from((ZONE, HOSTNAME)),
    selectors,
    st.sampled_from((frozenset(), frozenset(), frozenset(("blue",)))),
    st.sampled_from((None, None, TEAM)),
    revisions,
)
affinities = st.one_of(
    st.none(),
    terms.map(lambda term: PodAffinity(required=(term,))),
    terms.map(lambda term: PodAffinity(required_anti=(term,))),
)
constraints = st.builds(
    SpreadConstraint,
    st.sampled_from((ZONE, ZONE, HOSTNAME)),
    selector=selectors,
    match_label_keys=revisions,
    min_domains=st.sampled_from((1, 1, 2)),
    honor_affinity=st.booleans(),
    honor_taints=st.booleans(),
)
spreads = st.lists(constraints, min_size=1, max_size=2, unique_by=lambda c: c.topology_key).map(tuple)
namespaces = st.builds(Namespace, st.sampled_from(("red", "blue")), st.sampled_from(({}, {"team": "a"})))
services = st.builds(
    Workload,
    st.just(WorkloadKind.SERVICE),
    st.sampled_from(NAMESPACES),
    st.just("s"),
    st.sampled_from(({"app": "x"}, {"app": "y"}, {"rev": "1"})),
)


@st.composite
def nodes(draw, name):
    """A node of one of two zones, or of none."""
    zone = draw(st.sampled_from(("a", "b", "b", None)))
    found = {HOSTNAME: name, "pool": draw(st.sampled_from("ppq"))} | ({ZONE: zone} if zone else {})
    return Node(name, labels=found, taints=draw(st.sampled_from(((), (), (Taint("t"),)))))


@st.composite
def placed(draw, name, node):
    """A pod on a node, perhaps with a term of its own."""
    return make_pod(
        name,
        node=node,
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(labels),
        deleting=draw(st.sampled_from((False, False, False, True))),
        pod_affinity=draw(affinities),
    )


@st.composite
def waiting(draw, asked):
    """A pod that wants something."""
    spec = make_spec(
        node_selector=draw(st.sampled_from(({}, {"pool": "p"}))), tolerations=draw(tolerations), **draw(asked)
    )
    return make_pod("waiting", spec=spec, namespace=draw(st.sampled_from(NAMESPACES)), labels=draw(labels))


@st.composite
def worlds(draw):
    """Two or three nodes and a handful of pods."""
    made = tuple(draw(nodes(name)) for name in NAMES[: draw(st.integers(2, 3))])
    names = [node.name for node in made]
    pods = tuple(draw(placed(f"p{i}", draw(st.sampled_from(names)))) for i in range(draw(st.integers(0, 4))))
    known = {n.name: n for n in draw(st.lists(namespaces, max_size=2))}
    return World(made, pods, tuple(known.values()), tuple(draw(st.lists(services, max_size=1))))


@st.composite
def changes(draw, world, pod):
    """(world afterwards, pod afterwards, the event that tells of the change)."""
    kind = draw(st.sampled_from(("node", "node", "pod", "pod", "pod", "namespace", "workload", "self")))
    match kind:
        case "node":
            name = draw(st.sampled_from((*(node.name for node in world.nodes), *NAMES)))
            before = next((node for node in world.nodes if node.name == name), None)
            others = tuple(node for node in world.nodes if node.name != name)
            if before is not None and draw(st.booleans()):
                event = ClusterEvent(Resource.NODE, Action.DELETE, before, None)
                gone = tuple(p for p in world.pods if p.node_name != name)
                return replace(world, nodes=others, pods=gone), pod, event
            node = draw(nodes(name))
            return replace(world, nodes=(*others, node)), pod, node_event(before, node)
        case "pod":
            others = world.pods
            if world.pods and draw(st.sampled_from((True, True, False))):
                old = draw(st.sampled_from(world.pods))
                others = tuple(p for p in world.pods if p is not old)
                how = draw(st.sampled_from(("gone", "gone", "labels", "dying")))
                if how == "gone":
                    event = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old, None)
                    return replace(world, pods=others), pod, event
                new = replace(old, labels=draw(labels)) if how == "labels" else replace(old, deleting=True)
                return replace(world, pods=(*others, new)), pod, assigned_event(old, new)
            new = draw(placed("new", draw(st.sampled_from([node.name for node in world.nodes]))))
            event = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, new)
            return replace(world, pods=(*others, new)), pod, event
        case "namespace":
            changed = draw(namespaces)
            before = next((n for n in world.namespaces if n.name == changed.name), None)
            kept = tuple(n for n in world.namespaces if n.name != changed.name)
            action = Action.ADD if before is None else Action.UPDATE_OTHER
            event = ClusterEvent(Resource.NAMESPACE, action, before, changed)
            return replace(world, namespaces=(*kept, changed)), pod, event
        case "workload":
            changed = draw(services)
            same = [
                w
                for w in world.workloads
                if (w.kind, w.namespace, w.name) == (changed.kind, changed.namespace, changed.name)
            ]
            kept = tuple(w for w in world.workloads if w not in same)
            if same and draw(st.booleans()):
                event = ClusterEvent(Resource.WORKLOAD, Action.DELETE, same[0], None)
                return replace(world, workloads=kept), pod, event
            event = ClusterEvent(Resource.WORKLOAD, Action.UPDATE_OTHER, None, changed)
            return replace(world, workloads=(*kept, changed)), pod, event
        case _:
            new = replace(pod, labels=draw(labels))
            if draw(st.booleans()):
                new = replace(new, spec=replace(new.spec, tolerations=draw(tolerations)))
            return world, new, pending_event(pod, new)


def check(plugin, world, pod, data):
    """Whatever the change, if it opens a node then it wakes the pod."""
    before = verdicts(plugin, pod, world.snapshot())
    if before is None or not any(before.values()):
        return
    for _ in range(5):
        later, changed, event = data.draw(changes(world, pod))
        after = verdicts(plugin, changed, later.snapshot())
        opened = [
            node.name
            for node in later.nodes
            if (after is None or after[node.name] is None) and before.get(node.name, "not there") is not None
        ]
        if opened:
            assert event is not None, f"{opened} are open, and there is no event"
            known = {n.name: n.labels for n in later.namespaces}
            event = replace(event, namespace_labels=lambda name, known=known: known.get(name, {}))
            assert wakes(plugin, changed, event), (
                f"{changed} sleeps on after {event}, although {opened} are open"
            )


@given(worlds(), waiting(spreads.map(lambda found: {"spread": found})), st.data())
def test_spread(world, pod, data):
    check(PodTopologySpread(), world, pod, data)


@given(worlds(), waiting(st.just({})), constraints, st.data())
def test_configured_spread(world, pod, constraint, data):
    defaults = SpreadDefaults((replace(constraint, selector=None, match_label_keys=()),))
    check(PodTopologySpread(defaults), world, pod, data)


@given(worlds(), waiting(affinities.map(lambda found: {"pod_affinity": found})), st.data())
def test_affinity(world, pod, data):
    check(InterPodAffinity(), world, pod, data)
