"""Worlds in which pods matter to pods: strategies, and a slow reference for spread and inter-pod affinity.

The reference was written from kube-scheduler v1.37.2 (``plugins/podtopologyspread``, ``plugins/interpodaffinity``), pod
by pod and node by node, not from our plugins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from moorage.core.cache.cache import Cache
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.node import Node
from moorage.core.model.pod import OwnerRef, Pod, PodSpec
from moorage.core.model.resources import PODS
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.spread import HOSTNAME, ZONE, SpreadConstraint, SpreadDefaults
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from moorage.core.model.workload import Namespace, Workload, WorkloadKind
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_pod
from tests.kit.strategies import NODE_NAMES

NAMES = (*NODE_NAMES, "n4")
NAMESPACES = ("red", "blue")
KEYS = (HOSTNAME, ZONE, "rack")
_VALUES: Mapping[str, tuple[str, ...]] = {"app": ("x", "y"), "tier": ("f", "b"), "team": ("a", "b")}
_TEXT = "node(s) didn't match pod topology spread constraints"

#: A reason against a node and whether removing pods could help; None: nothing against it.
Verdict = tuple[str, bool] | None


@dataclass(frozen=True)
class World:
    """Nodes, pods on them, namespaces with labels, Services and controllers."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    workloads: tuple[Workload, ...] = ()

    def node(self, name: str) -> Node:
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def on(self, node: Node) -> list[Pod]:
        """The pods on a node."""
        return [pod for pod in self.pods if pod.node_name == node.name]

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """A namespace's labels, None if there is no such namespace."""
        return next((n.labels for n in self.namespaces if n.name == namespace), None)

    def snapshot(self) -> Snapshot:
        """The same as columns."""
        cache = Cache(Snapshot())
        for node in self.nodes:
            cache.apply_node(node)
        for pod in self.pods:
            cache.add(pod)
        for namespace in self.namespaces:
            cache.snapshot.namespaces.apply(namespace)
        for workload in self.workloads:
            cache.snapshot.workloads.apply(workload)
        return cache.snapshot


# -- strategies ----------------------------------------------------------------------------------

pod_labels = st.fixed_dictionaries(
    {},
    optional={"app": st.sampled_from(("x", "y")), "tier": st.sampled_from(("f", "b")), "blank": st.just("")},
)


@st.composite
def selector_requirements(draw: st.DrawFn, keys: Sequence[str] = ("app", "tier")) -> Requirement:
    """A requirement of a label selector."""
    key = draw(st.sampled_from(keys))
    operator = draw(
        st.sampled_from((Operator.IN, Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST))
    )
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        return Requirement(key, operator)
    values = st.lists(st.sampled_from(_VALUES[key]), min_size=1, max_size=2, unique=True)
    return Requirement(key, operator, tuple(draw(values)))


label_selectors = st.lists(selector_requirements(), max_size=2).map(lambda found: LabelSelector(tuple(found)))
maybe_selectors = st.one_of(label_selectors, label_selectors, label_selectors, st.none())
namespace_selectors = st.one_of(
    st.none(),
    st.none(),
    st.just(LabelSelector()),
    selector_requirements(("team",)).map(lambda found: LabelSelector((found,))),
)
label_keys = st.one_of(st.just(()), st.just(()), st.sampled_from((("tier",), ("app", "tier"), ("nothing",))))

affinity_terms = st.builds(
    PodAffinityTerm,
    st.sampled_from(KEYS),
    maybe_selectors,
    st.one_of(st.just(frozenset()), st.sets(st.sampled_from((*NAMESPACES, "gone"))).map(frozenset)),
    namespace_selectors,
    label_keys,
    label_keys,
)
weighted_terms = st.builds(WeightedTerm, st.sampled_from((1, 7, 100)), affinity_terms)
affinities = st.builds(
    PodAffinity,
    st.lists(affinity_terms, max_size=2).map(tuple),
    st.lists(affinity_terms, max_size=2).map(tuple),
    st.lists(weighted_terms, max_size=1).map(tuple),
    st.lists(weighted_terms, max_size=1).map(tuple),
)
spread_constraints = st.builds(
    SpreadConstraint,
    st.sampled_from(KEYS),
    st.integers(1, 3),
    st.booleans(),
    maybe_selectors,
    label_keys,
    st.sampled_from((1, 1, 1, 2, 4)),
    st.booleans(),
    st.booleans(),
)
spread_lists = st.lists(
    spread_constraints, max_size=3, unique_by=lambda constraint: (constraint.topology_key, constraint.hard)
).map(tuple)
spread_defaults = st.builds(
    SpreadDefaults,
    st.lists(
        st.builds(SpreadConstraint, st.sampled_from(KEYS), st.integers(1, 3), st.booleans()),
        max_size=2,
        unique_by=lambda constraint: (constraint.topology_key, constraint.hard),
    ).map(tuple),
    st.booleans(),
)
owners = st.one_of(
    st.none(),
    st.builds(
        OwnerRef,
        st.sampled_from(("ReplicaSet", "StatefulSet", "ReplicationController", "Job")),
        st.sampled_from(("one", "two")),
        st.just(""),
        st.sampled_from(("", "v1", "apps/v1", "other/v1")),
    ),
)


tolerations = st.sampled_from(((), (), (Toleration("t", "Exists"),)))


@st.composite
def peer_specs(draw: st.DrawFn) -> PodSpec:
    """A template that asks something of other pods, and something of nodes, which decides whose pods count."""
    zone = Requirement(ZONE, Operator.IN, ("a", "b"))
    name = Requirement("metadata.name", Operator.NOT_IN, ("n0",))
    return PodSpec(
        scheduler_name="moorage",
        node_selector=draw(st.sampled_from(({}, {}, {"rack": "1"}))),
        required=draw(
            st.sampled_from(
                (
                    None,
                    None,
                    NodeSelector((NodeSelectorTerm((zone,)),)),
                    NodeSelector((NodeSelectorTerm((), (name,)), NodeSelectorTerm((zone,)))),
                    NodeSelector(()),
                )
            )
        ),
        tolerations=draw(tolerations),
        pod_affinity=draw(st.one_of(st.none(), affinities)),
        spread=draw(st.one_of(st.just(()), spread_lists)),
    )


@st.composite
def peer_pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    """A pod, bound if a node is given."""
    labels = draw(pod_labels)
    if draw(st.booleans()):
        labels = {**labels, "unique": name}
    return make_pod(
        name,
        node=node,
        spec=draw(peer_specs()),
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=labels,
        deleting=draw(st.sampled_from((False, False, False, True))),
        owner=draw(owners),
    )


@st.composite
def peer_nodes(draw: st.DrawFn, name: str) -> Node:
    """A node with some of the topology labels."""
    labels = {}
    if draw(st.sampled_from((True, True, True, False))):
        labels[HOSTNAME] = name
    for key, values in ((ZONE, ("a", "a", "b", "", None)), ("rack", ("1", "2", None))):
        value = draw(st.sampled_from(values))
        if value is not None:
            labels[key] = value
    taints = draw(
        st.sampled_from(
            (
                (),
                (),
                (),
                (Taint("t", "", NO_SCHEDULE),),
                (Taint("t", "", NO_EXECUTE), Taint("u", "", "PreferNoSchedule")),
            )
        )
    )
    return Node(name, f"uid-{name}", labels=labels, taints=taints, allocatable={PODS: 110})


namespaces = st.builds(
    Namespace,
    st.sampled_from(NAMESPACES),
    st.fixed_dictionaries({}, optional={"team": st.sampled_from(("a", "b"))}),
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """A Service or a controller."""
    kind = draw(st.sampled_from(WorkloadKind))
    name = draw(st.sampled_from(("one", "two")))
    by_labels = kind in (WorkloadKind.SERVICE, WorkloadKind.REPLICATION_CONTROLLER)
    labels = draw(pod_labels) if by_labels else {}
    selector = None if by_labels else draw(maybe_selectors)
    return Workload(kind, draw(st.sampled_from(NAMESPACES)), name, labels, selector)


@st.composite
def worlds(draw: st.DrawFn, *, most_pods: int = 8) -> World:
    """Up to five nodes with some pods."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    nodes = tuple(draw(peer_nodes(name)) for name in names)
    pods = tuple(
        draw(peer_pods(f"p{number}", draw(st.sampled_from(names))))
        for number in range(draw(st.integers(0, most_pods)))
    )
    known = {n.name: n for n in draw(st.lists(namespaces, max_size=2))}
    made = {(w.kind, w.namespace, w.name): w for w in draw(st.lists(workloads(), max_size=3))}
    return World(nodes, pods, tuple(known.values()), tuple(made.values()))


# -- labels and namespaces -----------------------------------------------------------------------


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """``labels.Selector.Matches``; a missing selector is ``labels.Nothing()``."""
    if selector is None:
        return False
    for requirement in selector.requirements:
        value = labels.get(requirement.key)
        held = {
            Operator.IN: value is not None and value in requirement.values,
            Operator.NOT_IN: value is None or value not in requirement.values,
            Operator.EXISTS: value is not None,
            Operator.DOES_NOT_EXIST: value is None,
        }[requirement.operator]
        if not held:
            return False
    return True


def merged(
    selector: LabelSelector | None, keys: Sequence[str], operator: Operator, labels: Mapping[str, str]
) -> LabelSelector | None:
    """``applyLabelKeysToLabelSelector``."""
    if selector is None:
        return None
    added = tuple(Requirement(key, operator, (labels[key],)) for key in keys if key in labels)
    return LabelSelector(selector.requirements + added)


def term_means(term: PodAffinityTerm, carrier: Pod, other: Pod, world: World, *, incoming: bool) -> bool:
    """``AffinityTerm.Matches`` of a term of ``carrier``; terms of the incoming pod see existing namespaces only."""
    selector = merged(term.selector, term.match_label_keys, Operator.IN, carrier.labels)
    selector = merged(selector, term.mismatch_label_keys, Operator.NOT_IN, carrier.labels)
    names = set(term.namespaces)
    if not term.namespaces and term.namespace_selector is None:
        names = {carrier.namespace}
    labels = world.labels_of(other.namespace)
    selected = matches(term.namespace_selector, labels or {})
    if incoming and term.namespace_selector is not None and term.namespace_selector.requirements:
        selected = selected and labels is not None
    return (other.namespace in names or selected) and matches(selector, other.labels)


# -- PodTopologySpread ---------------------------------------------------------------------------


def default_selector(pod: Pod, world: World) -> LabelSelector:
    """``helper.DefaultSelector``."""
    labels: dict[str, str] = {}
    services = [w for w in world.workloads if w.kind == "Service" and w.namespace == pod.namespace]
    for service in services:
        if all(pod.labels.get(key) == value for key, value in service.labels.items()):
            labels |= service.labels
    requirements: tuple[Requirement, ...] = ()
    owner = pod.owner
    if owner is not None:
        version = {"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}.get(
            owner.kind
        )
        if owner.api_version in ("", version):
            for found in world.workloads:
                if (found.kind, found.namespace, found.name) == (owner.kind, pod.namespace, owner.name):
                    labels |= found.labels
                    requirements = found.selector.requirements if found.selector is not None else ()
    return LabelSelector(
        tuple(Requirement(k, Operator.IN, (labels[k],)) for k in sorted(labels)) + requirements
    )


def constraints_of(defaults: SpreadDefaults, pod: Pod, world: World, *, hard: bool) -> list[SpreadConstraint]:
    """``getConstraints`` and ``initPreScoreState``: the pod's own, else the defaults with the deduced selector."""
    if pod.spec.spread:
        return [
            replace(c, selector=merged(c.selector, c.match_label_keys, Operator.IN, pod.labels))
            for c in pod.spec.spread
            if c.hard is hard
        ]
    selector = default_selector(pod, world)
    if not selector.requirements:
        return []
    return [replace(c, selector=selector) for c in defaults.constraints if c.hard is hard]


def counts_node(constraint: SpreadConstraint, pod: Pod, node: Node) -> bool:
    """``matchNodeInclusionPolicies``."""
    spec = pod.spec
    if constraint.honor_affinity:
        if any(node.labels.get(key) != value for key, value in spec.node_selector.items()):
            return False
        if spec.required is not None and not spec.required.matches(node.name, node.labels):
            return False
    return not constraint.honor_taints or not any(
        taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in spec.tolerations)
        for taint in node.taints
    )


def counted(constraint: SpreadConstraint, pod: Pod, pods: Sequence[Pod]) -> int:
    """``countPodsMatchSelector``."""
    if constraint.selector is not None and not constraint.selector.requirements:
        return 0
    return sum(
        not other.deleting and other.namespace == pod.namespace and matches(constraint.selector, other.labels)
        for other in pods
    )


@dataclass
class SpreadState:
    """``preFilterState``: pods by value of the topology key, for each constraint."""

    constraints: list[SpreadConstraint]
    counts: list[Counter[str]] = field(default_factory=list)


def spread_state(defaults: SpreadDefaults, pod: Pod, world: World) -> SpreadState | None:
    """``calPreFilterState``; None: skip."""
    state = SpreadState(constraints_of(defaults, pod, world, hard=True))
    if not state.constraints:
        return None
    keys = [c.topology_key for c in state.constraints]
    for constraint in state.constraints:
        counts: Counter[str] = Counter()
        for node in world.nodes:
            if all(key in node.labels for key in keys) and counts_node(constraint, pod, node):
                counts[node.labels[constraint.topology_key]] += counted(constraint, pod, world.on(node))
        state.counts.append(counts)
    return state


def spread_changed(state: SpreadState, pod: Pod, node: Node, changed: Pod, by: int) -> None:
    """``updateWithPod``."""
    if changed.namespace != pod.namespace or any(
        c.topology_key not in node.labels for c in state.constraints
    ):
        return
    for constraint, counts in zip(state.constraints, state.counts, strict=True):
        if matches(constraint.selector, changed.labels) and counts_node(constraint, pod, node):
            counts[node.labels[constraint.topology_key]] += by


def spread_verdict(state: SpreadState, pod: Pod, node: Node) -> Verdict:
    """``Filter``."""
    for constraint, counts in zip(state.constraints, state.counts, strict=True):
        if constraint.topology_key not in node.labels:
            return f"{_TEXT} (missing required label)", False
        least = min(counts.values()) if len(counts) >= constraint.min_domains else 0
        own = int(matches(constraint.selector, pod.labels))
        if counts.get(node.labels[constraint.topology_key], 0) + own - least > constraint.max_skew:
            return _TEXT, True
    return None


def spread_scores(
    defaults: SpreadDefaults, pod: Pod, world: World, feasible: Collection[str]
) -> tuple[dict[str, int], dict[str, int]] | None:
    """Raw (-1: ignored) and normalised scores; None: skip."""
    constraints = constraints_of(defaults, pod, world, hard=False)
    if not constraints or not world.nodes:
        return None
    require_all = bool(pod.spec.spread) or not defaults.system
    keys = [c.topology_key for c in constraints]

    def complete(node: Node) -> bool:
        return not require_all or all(key in node.labels for key in keys)

    candidates = [node for node in world.nodes if node.name in feasible]
    ignored = {node.name for node in candidates if not complete(node)}
    raw = {node.name: 0.0 for node in candidates}
    for constraint in constraints:
        key = constraint.topology_key
        values = {node.labels.get(key, "") for node in candidates if node.name not in ignored}
        sums: Counter[str] = Counter()
        for node in world.nodes:
            if complete(node) and counts_node(constraint, pod, node):
                sums[node.labels.get(key, "")] += counted(constraint, pod, world.on(node))
        size = len(candidates) - len(ignored) if key == HOSTNAME else len(values)
        weight = math.log(size + 2)
        for node in candidates:
            if node.name not in ignored and key in node.labels:
                here = counted(constraint, pod, world.on(node)) if key == HOSTNAME else sums[node.labels[key]]
                raw[node.name] += here * weight + (constraint.max_skew - 1)
    rounded = {name: -1 if name in ignored else math.floor(score + 0.5) for name, score in raw.items()}
    kept = [score for score in rounded.values() if score >= 0]
    most, least = max([0, *kept]), min(kept, default=0)
    normal = {
        name: 0 if score < 0 else 100 if most == 0 else 100 * (most + least - score) // most
        for name, score in rounded.items()
    }
    return rounded, normal


# -- InterPodAffinity ----------------------------------------------------------------------------


@dataclass
class AffinityState:
    """``preFilterState``: pods by (key, value) pair; zeros are left out."""

    existing: Counter[tuple[str, str]] = field(default_factory=Counter)
    affinity: Counter[tuple[str, str]] = field(default_factory=Counter)
    anti: Counter[tuple[str, str]] = field(default_factory=Counter)


def affinity_changed(state: AffinityState, pod: Pod, node: Node, other: Pod, by: int, world: World) -> None:
    """``updateWithPod``, which is also how the state is built."""
    own, its = pod.spec.pod_affinity or PodAffinity(), other.spec.pod_affinity or PodAffinity()

    def add(counts: Counter[tuple[str, str]], key: str) -> None:
        if key in node.labels:
            counts[key, node.labels[key]] += by
            if not counts[key, node.labels[key]]:
                del counts[key, node.labels[key]]

    for term in its.required_anti:
        if term_means(term, other, pod, world, incoming=False):
            add(state.existing, term.topology_key)
    if own.required and all(term_means(term, pod, other, world, incoming=True) for term in own.required):
        for term in own.required:
            add(state.affinity, term.topology_key)
    for term in own.required_anti:
        if term_means(term, pod, other, world, incoming=True):
            add(state.anti, term.topology_key)


def affinity_state(pod: Pod, world: World) -> AffinityState | None:
    """PreFilter; None: skip."""
    state = AffinityState()
    for node in world.nodes:
        for other in world.on(node):
            affinity_changed(state, pod, node, other, 1, world)
    own = pod.spec.pod_affinity
    if not state.existing and (own is None or not (own.required or own.required_anti)):
        return None
    return state


def affinity_verdict(state: AffinityState, pod: Pod, node: Node, world: World) -> Verdict:
    """``Filter``."""
    own = pod.spec.pod_affinity or PodAffinity()
    if own.required:
        lacking = any(term.topology_key not in node.labels for term in own.required)
        near = not lacking and all(
            state.affinity[term.topology_key, node.labels[term.topology_key]] > 0 for term in own.required
        )
        first = not +state.affinity and all(
            term_means(t, pod, pod, world, incoming=True) for t in own.required
        )
        if lacking or not (near or first):
            return "node(s) didn't match pod affinity rules", False
    for term in own.required_anti:
        if (
            term.topology_key in node.labels
            and state.anti[term.topology_key, node.labels[term.topology_key]] > 0
        ):
            return "node(s) didn't match pod anti-affinity rules", True
    if any(state.existing[pair] > 0 for pair in node.labels.items()):
        return "node(s) didn't satisfy existing pods anti-affinity rules", True
    return None


def affinity_scores(
    pod: Pod, world: World, feasible: Collection[str], *, hard_weight: int, ignore_existing: bool
) -> tuple[dict[str, int], dict[str, int]] | None:
    """Raw and normalised scores; None: skip."""
    own = pod.spec.pod_affinity or PodAffinity()
    if ignore_existing and not (own.preferred or own.preferred_anti):
        return None
    sums: Counter[tuple[str, str]] = Counter()
    seen = False
    for node in world.nodes:
        for other in world.on(node):
            its = other.spec.pod_affinity or PodAffinity()
            weighted = [(w.term, w.weight, pod, other, True) for w in own.preferred]
            weighted += [(w.term, -w.weight, pod, other, True) for w in own.preferred_anti]
            if hard_weight > 0:
                weighted += [(term, hard_weight, other, pod, False) for term in its.required]
            weighted += [(w.term, w.weight, other, pod, False) for w in its.preferred]
            weighted += [(w.term, -w.weight, other, pod, False) for w in its.preferred_anti]
            for term, weight, carrier, meant, incoming in weighted:
                if term.topology_key in node.labels and term_means(
                    term, carrier, meant, world, incoming=incoming
                ):
                    sums[term.topology_key, node.labels[term.topology_key]] += weight
                    seen = True
    if not seen:
        return None
    raw = {
        node.name: sum(sums[pair] for pair in node.labels.items())
        for node in world.nodes
        if node.name in feasible
    }
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    spread = most - least
    normal = {name: int(100.0 * ((score - least) / spread)) if spread else 0 for name, score in raw.items()}
    return raw, normal
