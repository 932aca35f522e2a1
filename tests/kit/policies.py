"""Worlds with policies: strategies, and every rule of a policy once more for one pod and one node, in plain Python.

The rules were written from the meanings of the fields (docs and ``core.model.policy``), not from the plugins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from moorage.core.cache.cache import Cache
from moorage.core.framework.interface import Skip
from moorage.core.model.events import UsageSample
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.policy import (
    AvoidedTaint,
    ExpressionError,
    LimitRule,
    LoadRules,
    NodeFacts,
    NodeRules,
    OnStale,
    PolicyRef,
    Pool,
    Pools,
    Preference,
    Speaks,
)
from moorage.core.model.resources import CPU, MEMORY, PODS
from moorage.core.model.selector import LabelSelector
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import make_pod, make_spec, requests_of
from tests.kit.strategies import GPU, LABEL_KEYS, requirements, taints

RED = PolicyRef("", "red")
BLUE = PolicyRef("team", "blue")
NAMES = ("n0", "n1", "n2", "n3", "n4")
NOW = 1000.0

#: Reasons against a node, as (text, whether removing pods could help).
Reasons = list[tuple[str, bool]]


def selects(pod: Pod) -> tuple[PolicyRef, ...]:
    """Red selects the pods of app x, blue those that have a tier."""
    red = (RED,) if pod.labels.get("app") == "x" else ()
    return (*red, BLUE) if "tier" in pod.labels else red


# -- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scripted:
    """An expression over a node that is a Python function; ``asked`` are the names of the nodes it was asked about."""

    text: str
    speaks: Speaks
    says: Callable[[NodeFacts], Any] = field(compare=False)
    asked: list[str] = field(default_factory=list, compare=False)

    def _value(self, node: NodeFacts) -> Any:
        self.asked.append(node.name)
        try:
            return self.says(node)
        except (KeyError, ZeroDivisionError) as error:
            raise ExpressionError(f"{type(error).__name__}: {error}") from error

    def truth(self, node: NodeFacts) -> bool:
        """True or false, nothing else."""
        value = self._value(node)
        if not isinstance(value, bool):
            raise ExpressionError("no bool")
        return value

    def score(self, node: NodeFacts) -> float:
        """Brought to 0..100."""
        value = self._value(node)
        if isinstance(value, bool):
            return 100.0 if value else 0.0
        return min(max(float(value), 0.0), 100.0)


def expressions() -> Sequence[Scripted]:
    """Fresh ones, one of each kind; some fail for some nodes."""
    return (
        Scripted("zone is a", Speaks.NODE, lambda node: node.labels["zone"] == "a"),
        Scripted("untainted", Speaks.NODE, lambda node: not node.taints),
        Scripted("two cores", Speaks.NODE, lambda node: node.allocatable[CPU] >= 2.0),
        Scripted(
            "half full",
            Speaks.NODE | Speaks.REQUESTED,
            lambda node: node.requested[CPU] * 2 >= node.allocatable[CPU],
        ),
        Scripted("few pods", Speaks.REQUESTED, lambda node: node.requested[PODS] < 2),
        Scripted("cool", Speaks.USAGE, lambda node: node.usage[CPU] < 50.0),
        Scripted("percent idle", Speaks.USAGE, lambda node: 100.0 - node.usage[CPU]),
        Scripted("pods in percent", Speaks.REQUESTED, lambda node: node.requested[PODS] * 12.25),
    )


EXPRESSIONS = expressions()


def facts_of(world: PolicyWorld, node: Node) -> NodeFacts:
    """What an expression can say about the node."""

    def double(resource: str, amount: int) -> float:
        return amount / 1000 if resource == CPU else float(amount)

    pods = world.on(node)
    requested = {CPU: 0.0, MEMORY: 0.0, **dict.fromkeys(node.allocatable, 0.0)}
    for resource in {r for pod in pods for r in pod.requests.amounts} | requested.keys():
        total = sum(pod.requests.amounts.get(resource, 0) for pod in pods)
        if total or resource in requested:
            requested[resource] = double(resource, total)
    requested[PODS] = float(len(pods))
    usage = {}
    sample = world.samples.get(node.name)
    if sample is not None and world.now - sample.at <= 180:
        usage = {
            resource: float(Fraction(world.used(node, resource) * 100, node.allocatable[resource]))
            for resource in sample.amounts
            if node.allocatable.get(resource)
        }
    return NodeFacts(
        node.name,
        node.labels,
        tuple({"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints),
        {resource: double(resource, amount) for resource, amount in node.allocatable.items()},
        requested,
        usage,
    )


# -- worlds --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyWorld:
    """Nodes, pods on them, the latest samples of the nodes' use, and the time."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    samples: Mapping[str, UsageSample] = field(default_factory=dict)
    now: float = NOW

    def on(self, node: Node) -> list[Pod]:
        """The pods on a node."""
        return [pod for pod in self.pods if pod.node_name == node.name]

    def used(self, node: Node, resource: str) -> int:
        """What the sample says and what the pods ask for that are not older than it."""
        sample = self.samples[node.name]
        young = [
            pod for pod in self.on(node) if (self.now if pod.started is None else pod.started) >= sample.at
        ]
        return sample.amounts.get(resource, 0) + sum(pod.requests.of(resource) for pod in young)

    def snapshot(self) -> Snapshot:
        """The same as columns."""
        cache = Cache(Snapshot())
        cache.snapshot.now = self.now
        cache.snapshot.selected.follow(selects)
        cache.snapshot.selected.track(RED, BLUE)
        for node in self.nodes:
            cache.apply_node(node)
        for pod in self.pods:
            cache.add(pod)
        if self.samples:
            cache.snapshot.usage_samples.apply(self.samples)
        return cache.snapshot

    def count(self, ref: PolicyRef, nodes: Sequence[Node], *, dying: bool = True) -> int:
        """The pods on these nodes that a policy selects."""
        names = {node.name for node in nodes}
        return sum(
            ref in selects(pod) and pod.node_name in names and (dying or not pod.deleting)
            for pod in self.pods
        )


@st.composite
def policy_nodes(draw: st.DrawFn, name: str) -> Node:
    """A node of some size; it may lack resources, labels and taints."""
    allocatable = {PODS: draw(st.sampled_from((2, 10)))}
    for resource, amounts in ((CPU, (0, 1000, 2000, 2001)), (MEMORY, (0, 1000, 1001)), (GPU, (0, 2))):
        if draw(st.sampled_from((True, True, True, False))):
            allocatable[resource] = draw(st.sampled_from(amounts))
    labels = {
        key: draw(st.sampled_from(("a", "b", "9")))
        for key in LABEL_KEYS
        if draw(st.sampled_from((True, True, False)))
    }
    return Node(
        name,
        f"uid-{name}",
        labels=labels,
        taints=tuple(draw(st.lists(taints, max_size=1))),
        allocatable=allocatable,
    )


amounts = st.fixed_dictionaries(
    {},
    optional={
        CPU: st.sampled_from((0, 1, 100, 500, 1000)),
        MEMORY: st.sampled_from((0, 1, 100, 500)),
        GPU: st.sampled_from((0, 1)),
    },
)
labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from("xxy"), "tier": st.just("f")})


@st.composite
def policy_pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    """A pod, bound if a node is given."""
    return make_pod(
        name,
        node=node,
        spec=make_spec(requests=requests_of(draw(amounts))),
        namespace=draw(st.sampled_from(("team", "other"))),
        labels=draw(labels),
        deleting=bool(node) and draw(st.sampled_from((False, False, True))),
        started=draw(st.sampled_from((None, NOW - 300, NOW - 50, NOW - 49, NOW))),
        created=draw(st.sampled_from((NOW - 60, NOW - 10))),
    )


samples = st.builds(
    UsageSample,
    st.sampled_from((NOW - 300, NOW - 180, NOW - 60, NOW - 50, NOW)),
    st.fixed_dictionaries(
        {},
        optional={
            CPU: st.sampled_from((0, 1, 999, 1000, 1600, 2500)),
            MEMORY: st.sampled_from((0, 500, 501, 1200)),
        },
    ),
)


@st.composite
def policy_worlds(draw: st.DrawFn) -> PolicyWorld:
    """Up to five nodes with up to eight pods."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    nodes = tuple(draw(policy_nodes(name)) for name in names)
    pods = tuple(
        draw(policy_pods(f"p{number}", draw(st.sampled_from(names))))
        for number in range(draw(st.integers(0, 8)))
    )
    return PolicyWorld(nodes, pods, draw(st.dictionaries(st.sampled_from(names), samples)))


selectors = st.lists(requirements(), max_size=2).map(lambda found: LabelSelector(tuple(found)))
refs = st.sampled_from((RED, BLUE))
avoided = st.builds(
    AvoidedTaint,
    st.sampled_from(("dedicated", "gone")),
    st.sampled_from((None, None, "", "x")),
    st.sampled_from((None, None, "NoSchedule")),
)
node_rules = st.builds(
    NodeRules,
    st.one_of(st.none(), selectors),
    st.one_of(st.none(), st.sampled_from(EXPRESSIONS)),
    st.lists(avoided, max_size=2).map(tuple),
    st.fixed_dictionaries(
        {}, optional={r: st.sampled_from((0, 1, 10, 50, 100)) for r in (CPU, MEMORY, GPU, PODS)}
    ),
)
limit_rules = st.builds(LimitRule, st.sampled_from(LABEL_KEYS), st.integers(0, 3))


@st.composite
def pool_lists(draw: st.DrawFn) -> Pools:
    """Up to three pools, full at a number, at a percentage, or never."""
    items = []
    for number in range(draw(st.integers(1, 3))):
        most = draw(st.one_of(st.none(), st.integers(0, 3)))
        percent = (
            draw(st.sampled_from((0, 1, 33, 40, 50, 99, 100)))
            if most is None and draw(st.booleans())
            else None
        )
        items.append(Pool(f"pool{number}", draw(selectors), most, percent))
    return Pools(tuple(items), draw(st.booleans()))


load_rules = st.builds(
    LoadRules,
    st.fixed_dictionaries({}, optional={r: st.sampled_from((0, 50, 80, 99, 100)) for r in (CPU, MEMORY)}),
    st.fixed_dictionaries({}, optional={r: st.sampled_from((0, 50, 80, 100)) for r in (CPU, MEMORY)}),
    st.sampled_from((50.0, 180.0)),
    st.sampled_from(OnStale),
)
preferences = st.one_of(
    st.builds(Preference, st.sampled_from((1, 7, 100)), selectors),
    st.builds(Preference, st.sampled_from((1, 7, 100)), st.none(), st.sampled_from(EXPRESSIONS)),
)


# -- the rules, one node at a time ---------------------------------------------------------------


def of_policies(rules: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[Any]:
    """(ref, rule) pairs, at least one."""
    return st.lists(st.tuples(refs, rules), min_size=1, max_size=most).map(tuple)


def nodes_say(
    rules: Sequence[tuple[PolicyRef, NodeRules]], pod: Pod, node: Node, world: PolicyWorld
) -> Reasons:
    """PolicyNodes."""
    found: Reasons = []
    for ref, rule in rules:
        policy = f'policy "{ref.key}"'
        if rule.selector is not None and not rule.selector.matches(node.labels):
            found.append((f"node(s) didn't match the node selector of {policy}", False))
        if rule.expression is not None:
            try:
                holds = rule.expression.truth(facts_of(world, node))
            except ExpressionError:
                holds = False
            if not holds:
                helps = Speaks.REQUESTED in rule.expression.speaks
                found.append((f"node(s) didn't match the node expression of {policy}", helps))
        if any(a.matches(t) for a in rule.avoid_taints for t in node.taints):
            found.append((f"node(s) had a taint that {policy} avoids", False))
        for resource, percent in rule.keep_free.items():
            has = node.allocatable.get(resource, 0)
            if resource == PODS:
                taken, asked = len(world.on(node)), 1
            else:
                taken = sum(other.requests.of(resource) for other in world.on(node))
                asked = pod.spec.requests.of(resource)
            if Fraction(has - taken - asked) < Fraction(percent, 100) * has:
                empty = Fraction(has - asked) >= Fraction(percent, 100) * has
                found.append((f"node(s) would keep too little {resource} free for {policy}", empty))
    return found


def limits_say(rules: Sequence[tuple[PolicyRef, LimitRule]], node: Node, world: PolicyWorld) -> Reasons:
    """PolicyLimits."""
    found: Reasons = []
    for ref, rule in rules:
        key = rule.topology_key
        if key not in node.labels:
            found.append((f'node(s) lacked the label {key} that policy "{ref.key}" limits by', False))
            continue
        together = [other for other in world.nodes if other.labels.get(key) == node.labels[key]]
        if world.count(ref, together) + 1 > rule.max_pods:
            found.append((f'node(s) reached the limit of policy "{ref.key}" by {key}', True))
    return found


def pool_of(pools: Pools, node: Node) -> int:
    """The first pool whose selector the node matches, -1 if none does."""
    return next((i for i, pool in enumerate(pools.items) if pool.selector.matches(node.labels)), -1)


def pool_counts(ref: PolicyRef, pools: Pools, world: PolicyWorld) -> list[int]:
    """The policy's pods by pool."""
    return [
        world.count(ref, [node for node in world.nodes if pool_of(pools, node) == index])
        for index in range(len(pools.items))
    ]


def pool_takes(pool: Pool, count: int, placed: int) -> bool:
    """Whether the pool takes one pod more."""
    if pool.max_pods is not None:
        return count + 1 <= pool.max_pods
    if pool.max_percent is not None:
        return count + 1 <= math.ceil(Fraction(pool.max_percent, 100) * (placed + 1))
    return True


def pools_choose(ref: PolicyRef, pools: Pools, left: Sequence[Node], world: PolicyWorld) -> set[str]:
    """The names of those of the nodes that are left which PolicyPools accepts."""
    counts = pool_counts(ref, pools, world)
    for index, pool in enumerate(pools.items):
        members = {node.name for node in left if pool_of(pools, node) == index}
        if members and pool_takes(pool, counts[index], sum(counts)):
            return members
        if pools.wait:
            return set()
    return set()


def load_says(rules: Sequence[tuple[PolicyRef, LoadRules]], node: Node, world: PolicyWorld) -> Reasons:
    """PolicyLoad."""
    found: Reasons = []
    sample = world.samples.get(node.name)
    for ref, rule in rules:
        fresh = sample is not None and world.now - sample.at <= rule.stale_after
        known = sample.amounts if sample is not None and fresh else {}
        for resource, limit in rule.limit.items():
            bound = Fraction(limit, 100) * node.allocatable.get(resource, 0)
            if resource in known and world.used(node, resource) > bound:
                text = f'node(s) used more {resource} than policy "{ref.key}" allows'
                found.append((text, known[resource] <= bound))
        asked = {*rule.limit, *rule.target}
        if rule.on_stale is OnStale.EXCLUDE and (not fresh or not asked <= set(known)):
            found.append((f'node(s) had no recent sample of their use for policy "{ref.key}"', False))
    return found


def load_scores(rules: Sequence[tuple[PolicyRef, LoadRules]], node: Node, world: PolicyWorld) -> int | None:
    """PolicyLoad's points, None if it has nothing to say."""
    points = []
    sample = world.samples.get(node.name)
    for _, rule in rules:
        for resource, target in rule.target.items():
            fresh = sample is not None and world.now - sample.at <= rule.stale_after
            if sample is None or not fresh or resource not in sample.amounts:
                points.append(0)
                continue
            has, used = node.allocatable.get(resource, 0), world.used(node, resource)
            if Fraction(used) <= Fraction(target, 100) * has:
                points.append(100)
            elif used >= has:
                points.append(0)
            else:
                points.append(math.floor(Fraction(10_000 * (has - used), (100 - target) * has)))
    return min(points, default=None)


def preferences_score(
    prefer: Sequence[tuple[PolicyRef, Preference]],
    protect: Sequence[str],
    pod: Pod,
    node: Node,
    world: PolicyWorld,
) -> int:
    """PolicyPreferences' points."""
    total = 0
    for _, item in prefer:
        if item.selector is not None and item.selector.matches(node.labels):
            total += 100 * item.weight
        if item.expression is not None:
            try:
                value = item.expression.score(facts_of(world, node))
            except ExpressionError:
                value = 0.0
            total += math.floor(Fraction(value) * item.weight + Fraction(1, 2))
    for resource in protect:
        if pod.spec.requests.of(resource) == 0 and node.allocatable.get(resource, 0) == 0:
            total += 1000
    return total


# -- asking a plugin -----------------------------------------------------------------------------


def against(plugin: Any, pod: Pod, snapshot: Snapshot, rows: Any = None) -> dict[str, Reasons]:
    """The reasons against each node, by name; all () if the plugin skips.  The whole table must say the same."""
    alive = np.flatnonzero(snapshot.alive)
    rows = alive if rows is None else rows
    state = plugin.pre_filter(pod, snapshot)
    if state is Skip.SKIP:
        return {snapshot.name_at(int(row)): [] for row in rows}
    verdict = plugin.filter(state, Nodes(snapshot, rows))
    found = {}
    for index, row in enumerate(rows):
        told = [
            (r.text, r.resolvable)
            for r, failed in zip(verdict.reasons, verdict.failed[:, index], strict=True)
            if failed
        ]
        assert bool(told) is not bool(verdict.fits[index])
        found[snapshot.name_at(int(row))] = told
    if rows.size == alive.size:
        whole = plugin.filter(state, Nodes(snapshot))
        assert whole.reasons == verdict.reasons
        assert whole.fits[rows].tolist() == verdict.fits.tolist()
        assert whole.failed[:, rows].tolist() == verdict.failed.tolist()
    return found


def points(plugin: Any, pod: Pod, snapshot: Snapshot) -> dict[str, int] | None:
    """The normalised scores by node; None if the plugin skips.  The whole table must say the same."""
    rows = np.flatnonzero(snapshot.alive)
    state = plugin.pre_score(pod, snapshot, Nodes(snapshot, rows))
    if state is Skip.SKIP:
        return None
    raw = plugin.score(state, Nodes(snapshot, rows))
    assert raw.dtype == np.int64
    assert plugin.score(state, Nodes(snapshot))[rows].tolist() == raw.tolist()
    normal = plugin.normalize(raw)
    return {snapshot.name_at(int(row)): int(score) for row, score in zip(rows, normal, strict=True)}


def bound(pod: Pod, node: str, **changes: Any) -> Pod:
    """The same pod on a node."""
    return replace(pod, node_name=node, **changes)
