"""Every plugin once more, one pod and one node at a time, in plain Python: slow, and easy to hold against the rules.

Written from kube-scheduler v1.37.2 (``pkg/scheduler/framework/plugins``), not from our plugins.  Amounts are exact
integers here, but for the documented limit of the columns: sums beyond 2**62 count as 2**62.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.model.decision import Code, Rejection
from moorage.core.model.node import Node
from moorage.core.model.pod import HostPort, Pod
from moorage.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, PreferredTerm, Requirement
from moorage.core.model.taint import Taint, Toleration
from tests.kit.peers import (
    World,
    affinity_scores,
    affinity_state,
    affinity_verdict,
    spread_scores,
    spread_state,
    spread_verdict,
)
from tests.kit.strategies import Cluster

LIMIT = 1 << 62
MAX_SCORE = 100
MIB = 1024 * 1024


@dataclass(frozen=True)
class Rules:
    """What one plugin says: about a pod as a whole, about one node, and how good a node is.

    ``whole`` is PreFilter: a rejection, the only names that come into question, or None.
    ``node`` gives (text, resolvable) of each reason; ``score`` is None where the plugin has nothing to say.
    """

    whole: Callable[[Any, Pod], Rejection | frozenset[str] | None] | None = None
    node: Callable[[Any, Pod, Node, Cluster], list[tuple[str, bool]]] | None = None
    score: Callable[[Any, Pod, Node, Cluster], int] | None = None
    scores: Callable[[Any, Pod], bool] = lambda plugin, pod: True
    normalize: Callable[[list[int]], list[int]] = lambda raw: raw


# -- labels, taints, ports -----------------------------------------------------------------------


def parse_int(text: str) -> int | None:
    """Go's ``strconv.ParseInt(text, 10, 64)``."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(c not in "0123456789" for c in digits):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def admits(requirement: Requirement, value: str | None) -> bool:
    """``labels.Requirement.Matches``."""
    match requirement.operator:
        case Operator.IN:
            return value is not None and value in requirement.values
        case Operator.NOT_IN:
            return value is None or value not in requirement.values
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
    if value is None:
        return False
    have, want = parse_int(value), parse_int(requirement.values[0])
    if have is None or want is None:
        return False
    return have > want if requirement.operator is Operator.GT else have < want


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """``nodeSelectorTerm.match``: an empty term matches nothing."""
    if not term.expressions and not term.fields:
        return False
    return all(admits(r, node.labels.get(r.key)) for r in term.expressions) and all(
        admits(r, node.name) for r in term.fields
    )


def selector_matches(selector: NodeSelector | None, node: Node) -> bool:
    """Terms are alternatives; no selector matches all, one without terms matches none."""
    return selector is None or any(term_matches(term, node) for term in selector.terms)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """``Toleration.ToleratesTaint``, comparison operators off."""
    if toleration.effect != "" and toleration.effect != taint.effect:
        return False
    if toleration.key != "" and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def port_conflict(wanted: HostPort, held: HostPort) -> bool:
    """``HostPortInfo.CheckConflict``."""
    if (wanted.protocol, wanted.port) != (held.protocol, held.port):
        return False
    everywhere = "0.0.0.0"  # noqa: S104
    return everywhere in (wanted.ip, held.ip) or wanted.ip == held.ip


# -- resources -----------------------------------------------------------------------------------


def limited(amount: int) -> int:
    """What a column shows of a sum."""
    return max(-LIMIT, min(LIMIT, amount))


def has(node: Node, resource: str) -> int:
    """Allocatable; what a node does not say it has not."""
    return limited(node.allocatable.get(resource, 0))


def taken(pods: Sequence[Pod], resource: str) -> int:
    """The sum of the requests of the pods."""
    return limited(sum(pod.requests.amounts.get(resource, 0) for pod in pods))


def taken_for_scoring(pods: Sequence[Pod], resource: str) -> int:
    """``NonZeroRequested`` for cpu and memory, ``Requested`` for the rest."""
    if resource == CPU:
        return limited(sum(pod.requests.scoring_cpu for pod in pods))
    if resource == MEMORY:
        return limited(sum(pod.requests.scoring_memory for pod in pods))
    return taken(pods, resource)


def fit(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """``fitsRequest``."""
    pods = cluster.on(node.name)
    reasons = []
    if len(pods) + 1 > node.allocatable.get(PODS, 0):
        reasons.append(("Too many pods", True))
    asked = pod.spec.requests.amounts
    order = [CPU, MEMORY, EPHEMERAL_STORAGE]
    for resource in [*order, *sorted(set(asked) - {*order, PODS})]:
        amount = asked.get(resource, 0)
        if amount == 0:
            continue
        if "/" in resource and "kubernetes.io/" not in resource:
            group = resource.split("/")[0]
            if resource in plugin.ignored or group in plugin.ignored_groups:
                continue
        if amount > has(node, resource) - taken(pods, resource):
            reasons.append((f"Insufficient {resource}", amount <= has(node, resource)))
    return reasons


def pod_amount(pod: Pod, resource: str, *, defaults: bool) -> int:
    """``calculatePodResourceRequest``: with the scoring defaults or without."""
    if defaults and resource == CPU:
        return pod.spec.requests.scoring_cpu
    if defaults and resource == MEMORY:
        return pod.spec.requests.scoring_memory
    return pod.spec.requests.amounts.get(resource, 0)


def counted(
    resources: Sequence[Weighted], pod: Pod, node: Node, pods: Sequence[Pod], *, defaults: bool
) -> list[tuple[int, int, int, int]]:
    """``calculateNodeAllocatableRequest``: (weight, with the pod, without, allocatable) of each that counts."""
    rows = []
    for resource in resources:
        amount = pod_amount(pod, resource.name, defaults=defaults)
        if amount == 0 and resource.name not in (CPU, MEMORY, EPHEMERAL_STORAGE):
            continue
        if has(node, resource.name) == 0:
            continue
        used = taken_for_scoring(pods, resource.name) if defaults else taken(pods, resource.name)
        rows.append((resource.weight, used + amount, used, has(node, resource.name)))
    return rows


def broken_line(shape: Sequence[tuple[int, int]], at: int) -> int:
    """``BuildBrokenLinearFunction``; Go divides towards zero."""
    points = [(utilization, score * 10) for utilization, score in shape]
    for i, (utilization, score) in enumerate(points):
        if at <= utilization:
            if i == 0:
                return score
            before, low = points[i - 1]
            return low + int((score - low) * (at - before) / (utilization - before))
    return points[-1][1]


def score_fit(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> int:
    """The three strategies."""
    strategy: ScoringStrategy = plugin.strategy
    total = weights = 0
    for weight, requested, _, allocatable in counted(
        strategy.resources, pod, node, cluster.on(node.name), defaults=True
    ):
        match strategy.type:
            case StrategyType.LEAST_ALLOCATED:
                score = 0 if requested > allocatable else (allocatable - requested) * MAX_SCORE // allocatable
            case StrategyType.MOST_ALLOCATED:
                score = min(requested, allocatable) * MAX_SCORE // allocatable
            case StrategyType.REQUESTED_TO_CAPACITY_RATIO:
                used = 100 if requested > allocatable else requested * 100 // allocatable
                score = broken_line(strategy.shape, used)
                if score == 0:
                    continue
        total += score * weight
        weights += weight
    if weights == 0:
        return 0
    if strategy.type is StrategyType.REQUESTED_TO_CAPACITY_RATIO:
        return math.floor(total / weights + 0.5)
    return total // weights


def balance(shares: Sequence[float]) -> int:
    """``balancedResourceScore``, float operations in its order."""
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean = total / float(len(shares))
        squares = 0.0
        for share in shares:
            squares = squares + (share - mean) * (share - mean)
        deviation = math.sqrt(squares / float(len(shares)))
    return int((1 - deviation) * 100.0)


def score_balance(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> int:
    """``balancedResourceScorer``."""
    rows = counted(plugin.resources, pod, node, cluster.on(node.name), defaults=False)
    after = balance([min(float(w) / float(a), 1.0) for _, w, _, a in rows])
    before = balance([min(float(u) / float(a), 1.0) for _, _, u, a in rows])
    return 50 + int((50 + after - before) / 2)


def balance_counts(plugin: Any, pod: Pod) -> bool:
    """Pods that ask for nothing are skipped."""
    return any(pod_amount(pod, resource.name, defaults=False) for resource in plugin.resources)


# -- the others ----------------------------------------------------------------------------------


def affinity_names(plugin: Any, pod: Pod) -> Rejection | frozenset[str] | None:
    """NodeAffinity's PreFilter."""
    affinity = pod.spec.required
    if affinity is None or not affinity.terms:
        return None
    names: frozenset[str] = frozenset()
    for term in affinity.terms:
        sets = [
            frozenset(r.values) for r in term.fields if r.key == "metadata.name" and r.operator is Operator.IN
        ]
        if not sets:
            return None
        names |= frozenset.intersection(*sets)
    return names or Rejection(plugin.name, ("pod affinity terms conflict",), Code.UNRESOLVABLE)


def affinity(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """NodeAffinity's Filter."""
    if not selector_matches(plugin.added_required, node):
        return [("node(s) didn't match scheduler-enforced node affinity", False)]
    selected = all(node.labels.get(key) == value for key, value in pod.spec.node_selector.items())
    if selected and selector_matches(pod.spec.required, node):
        return []
    return [("node(s) didn't match Pod's node affinity/selector", False)]


def preferred(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> int:
    """NodeAffinity's Score."""
    terms: tuple[PreferredTerm, ...] = (*plugin.added_preferred, *pod.spec.preferred)
    return sum(t.weight for t in terms if term_matches(t.term, node))


def untolerated(pod: Pod, node: Node, effects: Sequence[str]) -> list[Taint]:
    """Taints of these effects that no toleration covers."""
    return [
        t
        for t in node.taints
        if t.effect in effects and not any(tolerates(o, t) for o in pod.spec.tolerations)
    ]


def taints(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """TaintToleration's Filter."""
    hard = untolerated(pod, node, ("NoSchedule", "NoExecute"))
    return [("node(s) had untolerated taint(s)", False)] if hard else []


def soft_taints(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> int:
    """TaintToleration's Score."""
    return len(untolerated(pod, node, ("PreferNoSchedule",)))


def cordon(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """NodeUnschedulable."""
    mark = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if not node.unschedulable or any(tolerates(t, mark) for t in pod.spec.tolerations):
        return []
    return [("node(s) were unschedulable", False)]


def ports(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """NodePorts."""
    held = [port for other in cluster.on(node.name) for port in other.spec.host_ports]
    if any(port_conflict(wanted, port) for wanted in pod.spec.host_ports for port in held):
        return [("node(s) didn't have free ports for the requested pod ports", True)]
    return []


def node_name(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """NodeName."""
    if pod.spec.node_name in ("", node.name):
        return []
    return [("node(s) didn't match the requested node name", False)]


def only_node(plugin: Any, pod: Pod) -> frozenset[str] | None:
    """NodeName: only the named node comes into question (``PreFilter``)."""
    return frozenset((pod.spec.node_name,)) if pod.spec.node_name else None


def images(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> int:
    """ImageLocality."""
    total = 0
    for image in pod.spec.images:
        if image in node.images:
            spread = sum(image in other.images for other in cluster.nodes) / len(cluster.nodes)
            total += int(float(node.images[image]) * spread)
    most = 1000 * MIB * len(pod.spec.images)
    least = 23 * MIB
    return MAX_SCORE * (max(least, min(most, total)) - least) // (most - least)


def unsupported(plugin: Any, pod: Pod) -> Rejection | None:
    """SupportedFeatures, ours."""
    reasons = (
        *(f"pod asks for {f}, which this scheduler does not support yet" for f in pod.spec.unsupported),
        *(f"pod cannot be read: {problem}" for problem in pod.spec.invalid),
    )
    return Rejection(plugin.name, reasons, Code.UNRESOLVABLE) if reasons else None


def devices(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """SupportedFeatures, ours: ``shouldDelegateResourceToDRA`` is what it refuses."""
    reasons = []
    for resource, amount in sorted(pod.spec.requests.amounts.items()):
        known = [c for c in cluster.device_classes if resource in c.resources]
        if amount > 0 and node.allocatable.get(resource, 0) == 0 and known:
            youngest = max(each.created for each in known)
            name = min(each.name for each in known if each.created == youngest)
            text = f"node(s) could offer {resource} only as devices of DeviceClass {name}"
            reasons.append((f"{text}, which this scheduler does not support yet", False))
    return reasons


def declared(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """NodeDeclaredFeatures."""
    if all(feature in node.declared_features for feature in pod.spec.required_features):
        return []
    return [("node(s) didn't match Pod's required features", False)]


def nothing(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """No reason against any node."""
    return []


def by_max(raw: list[int], *, reverse: bool = False) -> list[int]:
    """``DefaultNormalizeScore``."""
    top = max([0, *raw])
    if top == 0:
        return [MAX_SCORE] * len(raw) if reverse else raw
    scaled = [MAX_SCORE * score // top for score in raw]
    return [MAX_SCORE - score for score in scaled] if reverse else scaled


def by_max_reversed(raw: list[int]) -> list[int]:
    """The same, the lowest best."""
    return by_max(raw, reverse=True)


# -- other pods ----------------------------------------------------------------------------------


def spread(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """PodTopologySpread's Filter."""
    state = spread_state(plugin.defaults, pod, World(cluster.nodes, cluster.pods))
    verdict = None if state is None else spread_verdict(state, pod, node)
    return [] if verdict is None else [verdict]


def soft_spread(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> int:
    """PodTopologySpread's Score, all nodes being feasible."""
    names = [other.name for other in cluster.nodes]
    scores = spread_scores(plugin.defaults, pod, World(cluster.nodes, cluster.pods), names)
    return 0 if scores is None else scores[0][node.name]


def by_emptiness(raw: list[int]) -> list[int]:
    """PodTopologySpread's NormalizeScore."""
    kept = [score for score in raw if score >= 0]
    most, least = max([0, *kept]), min(kept, default=0)
    return [
        0 if score < 0 else MAX_SCORE if most == 0 else MAX_SCORE * (most + least - score) // most
        for score in raw
    ]


def pod_affinity(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> list[tuple[str, bool]]:
    """InterPodAffinity's Filter."""
    world = World(cluster.nodes, cluster.pods)
    state = affinity_state(pod, world)
    verdict = None if state is None else affinity_verdict(state, pod, node, world)
    return [] if verdict is None else [verdict]


def soft_pod_affinity(plugin: Any, pod: Pod, node: Node, cluster: Cluster) -> int:
    """InterPodAffinity's Score."""
    scores = affinity_scores(
        pod,
        World(cluster.nodes, cluster.pods),
        [node.name],
        hard_weight=plugin.hard_weight,
        ignore_existing=plugin.ignore_preferred_of_existing,
    )
    return 0 if scores is None else scores[0][node.name]


def between_extremes(raw: list[int]) -> list[int]:
    """InterPodAffinity's NormalizeScore."""
    least, most = min(raw, default=0), max(raw, default=0)
    return [int(100.0 * ((score - least) / (most - least))) if most > least else 0 for score in raw]


#: The rules by plugin.  A plugin of the registry that filters or scores has its entry here, or a test fails.
RULES: dict[str, Rules] = {
    "SupportedFeatures": Rules(whole=unsupported, node=devices),
    "NodeDeclaredFeatures": Rules(node=declared),
    "NodeName": Rules(node=node_name, whole=only_node),
    "NodeUnschedulable": Rules(node=cordon),
    "TaintToleration": Rules(node=taints, score=soft_taints, normalize=by_max_reversed),
    "NodeAffinity": Rules(
        whole=affinity_names,
        node=affinity,
        score=preferred,
        scores=lambda plugin, pod: bool(plugin.added_preferred or pod.spec.preferred),
        normalize=by_max,
    ),
    "NodePorts": Rules(node=ports),
    "NodeResourcesFit": Rules(node=fit, score=score_fit),
    # Of pods without volumes they say nothing; with volumes, tests.kit.volume_rules is their reference.
    "VolumeRestrictions": Rules(node=nothing),
    "NodeVolumeLimits": Rules(node=nothing),
    "VolumeBinding": Rules(node=nothing, score=lambda plugin, pod, node, cluster: 0),
    "VolumeZone": Rules(node=nothing),
    "NodeResourcesBalancedAllocation": Rules(score=score_balance, scores=balance_counts),
    "ImageLocality": Rules(score=images),
    "PodTopologySpread": Rules(
        node=spread,
        score=soft_spread,
        scores=lambda plugin, pod: any(not constraint.hard for constraint in pod.spec.spread),
        normalize=by_emptiness,
    ),
    "InterPodAffinity": Rules(
        node=pod_affinity,
        score=soft_pod_affinity,
        scores=lambda plugin, pod: pod.spec.pod_affinity is not None,
        normalize=between_extremes,
    ),
}

#: The order in which kube-scheduler's default profile asks its Filter plugins.
FILTER_ORDER = (
    "SupportedFeatures", "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts",
    "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
    "PodTopologySpread", "InterPodAffinity", "NodeDeclaredFeatures",
)  # fmt: skip
WEIGHTS = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}
