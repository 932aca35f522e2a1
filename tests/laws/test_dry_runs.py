"""Dry runs of evictions on all nodes at once come to the same as those on one node after the other."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from moorage.adapters.kube.storage_defaults import complete_storage
from moorage.cli.cluster import Intake, Source
from moorage.core.framework.budgets import Budgets
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.dry_run import dry_run
from moorage.core.framework.dry_runs import DryRuns
from moorage.core.framework.post_filter import Candidate, FailedAttempt, harm
from moorage.core.framework.preemption_guards import NO_GUARDS, Guards
from moorage.core.framework.runner import Runner
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.decision import Code
from moorage.core.model.node import Node
from moorage.core.model.pod import HostPort, Pod, PodSpec
from moorage.core.model.policy import PreemptionRules
from moorage.core.model.resources import CPU, MAX_AMOUNT, PODS
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.model.spread import HOSTNAME, ZONE, SpreadConstraint
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.clusters import cases
from tests.kit.models import requests_of
from tests.kit.peers import NAMESPACES, World, maybe_selectors, peer_pods, worlds
from tests.kit.strategies import Cluster, build, thoroughly

_ADDRESSES = ("0.0.0.0", "10.0.0.1")  # noqa: S104
ports = st.lists(
    st.builds(HostPort, st.sampled_from(_ADDRESSES), st.just("TCP"), st.sampled_from((80, 81))), max_size=2
)
budgets = st.lists(
    st.builds(
        DisruptionBudget,
        st.sampled_from(NAMESPACES),
        st.just("budget"),
        maybe_selectors,
        st.sampled_from((0, 0, 1, 2, -1)),
        st.sampled_from((frozenset(), frozenset(("p0", "p1")))),
    ),
    max_size=3,
)


@st.composite
def urgent(draw: st.DrawFn, pod: Pod, priorities: tuple[int, ...], amounts: tuple[int, ...]) -> Pod:
    """The pod with a priority, a start, requests and host ports."""
    requests = requests_of(
        {CPU: draw(st.sampled_from(amounts)), "example.com/gpu": draw(st.sampled_from((0, 0, 1)))}
    )
    spec = replace(
        pod.spec, priority=draw(st.sampled_from(priorities)), requests=requests, host_ports=tuple(draw(ports))
    )
    return replace(pod, spec=spec, requests=requests, started=draw(st.sampled_from((None, 1.0, 1.0, 2.0))))


@st.composite
def questions(draw: st.DrawFn, *, amounts: tuple[int, ...] = (0, 1, 2, 2, 3)) -> Any:
    """A full cluster, a pod that asks, nominated pods by row, and budgets."""
    world: World = draw(worlds(most_pods=12))
    pods = tuple(draw(urgent(pod, (-1, 0, 0, 1, 5), amounts)) for pod in world.pods)
    nodes = tuple(
        replace(
            node,
            allocatable={
                CPU: draw(st.sampled_from((2, 3, 4, *amounts[-1:]))),
                PODS: draw(st.sampled_from((2, 3, 110))),
                "example.com/gpu": 1,
            },
        )
        for node in world.nodes
    )
    snapshot = replace(world, nodes=nodes, pods=pods).snapshot()
    pod = draw(urgent(draw(peer_pods("asking")), (5, 1), amounts))
    nominated: dict[int, list[Pod]] = {}
    for number in range(draw(st.integers(0, 4))):
        other = draw(urgent(draw(peer_pods(f"promised{number}")), (5, 9), amounts))
        nominated.setdefault(draw(st.integers(0, len(nodes) - 1)), []).append(other)
    return snapshot, pod, nominated, draw(budgets)


#: What the comparisons were about, so that a test can tell that they were about something.
seen: Counter[str] = Counter()


#: What policies may forbid, each rule now and then.
forbidding = st.builds(
    PreemptionRules,
    min_victim_runtime=st.sampled_from((None, None, 0.5, 1.5)),
    min_priority_gap=st.sampled_from((None, None, 0, 2, 5)),
    max_victims=st.sampled_from((None, None, 0, 1, 2)),
    strict_budgets=st.booleans(),
)


def compare(
    snapshot: Snapshot, pod: Pod, nominated: Any, budgets: Any, guards: Guards = NO_GUARDS
) -> DryRuns | None:
    """Both ways on all nodes; the many at once, None if the pod is turned away as a whole."""
    runner = Runner(default_profile().plugins, {}, snapshot)
    pre = runner.pre_filter(pod)
    if pre.rejection is not None and pre.rejection.code is Code.UNRESOLVABLE:
        return None
    snapshot.now = 3.0
    attempt = FailedAttempt(runner, pre, Diagnosis(snapshot), nominated, budgets)
    rows = snapshot.alive.nonzero()[0]
    known = Budgets(budgets)
    expected: dict[str, Candidate] = {}
    against: Counter[str] = Counter()
    for row in rows.tolist():
        outcome = dry_run(pod, attempt, row, known, guards)
        if isinstance(outcome, Candidate):
            expected[outcome.node_name] = outcome
        else:
            against.update(outcome)
    runs = DryRuns(pod, attempt, rows, known, guards)
    found = runs.found()
    told = {} if found is None else {candidate.node_name: candidate for candidate in found}
    if found is not None:
        assert len(told) == len(found)
        best = min(map(harm, found))
        assert list(found.best()) == [i for i, each in enumerate(found) if harm(each) == best]
    counts = runs.against
    for row in runs.left_over.tolist():
        outcome = dry_run(pod, attempt, row, known, guards)
        if isinstance(outcome, Candidate):
            told[outcome.node_name] = outcome
        else:
            counts.update(outcome)
    assert told == expected
    assert counts == against
    seen["candidates"] += len(expected)
    seen["spared"] += sum(
        len(c.victims) < len(snapshot.pods[snapshot.row_of(c.node_name) or 0]) for c in told.values()
    )
    seen["budgets broken"] += sum(c.violations for c in told.values())
    seen["left over"] += runs.left_over.size
    seen.update(against.keys())
    return runs


@thoroughly(4)
@given(question=questions())
def test_many_at_once_are_as_one_by_one(question):
    runs = compare(*question)
    assert runs is None or not runs.left_over.size


@thoroughly(4)
@given(question=questions(), rules=forbidding)
def test_guards_forbid_the_same_at_once_as_one_by_one(question, rules):
    snapshot, pod, nominated, budgets = question
    compare(snapshot, pod, nominated, budgets, Guards(rules))


class Dice:
    """Makes dense clusters, where most nodes are candidates."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def one_of(self, *options: Any) -> Any:
        """One of the options."""
        return self._random.choice(options)

    def often(self, percent: int) -> bool:
        """True in so many of 100 cases."""
        return self._random.randrange(100) < percent

    def selector(self) -> LabelSelector:
        """Something that many pods match."""
        return LabelSelector(
            (
                Requirement(
                    "app", self.one_of(Operator.IN, Operator.IN, Operator.NOT_IN), (self.one_of("x", "y"),)
                ),
            )
        )

    def term(self) -> PodAffinityTerm:
        """A term about pods of the own namespace."""
        return PodAffinityTerm(self.one_of(HOSTNAME, ZONE), self.selector())

    def pod(self, name: str, priority: int, *, wants: int, node: str = "") -> Pod:
        """A pod; ``wants`` is how many in 100 ask for something of others."""
        requests = requests_of({CPU: self.one_of(0, 1, 1, 2, 3), "example.com/gpu": self.one_of(0, 0, 0, 1)})
        affinity = PodAffinity(
            (self.term(),) if self.often(wants) else (), (self.term(),) if self.often(wants) else ()
        )
        spread = SpreadConstraint(self.one_of(HOSTNAME, ZONE), self.one_of(1, 2, 3), selector=self.selector())
        ports = (HostPort(self.one_of(*_ADDRESSES), "TCP", self.one_of(80, 81)),)
        spec = PodSpec(
            scheduler_name="moorage",
            priority=priority,
            requests=requests,
            host_ports=ports if self.often(20) else (),
            pod_affinity=affinity if affinity.required or affinity.required_anti else None,
            spread=(spread,) if self.often(wants) else (),
        )
        labels = {"app": self.one_of("x", "y", "z")}
        if self.often(20):
            labels["own"] = name
        return Pod(
            "red" if self.often(80) else "blue",
            name,
            f"uid-{name}",
            spec,
            requests,
            labels=labels,
            node_name=node,
            started=self.one_of(None, 1.0, 1.0, 2.0),
            deleting=bool(node) and self.often(10),
        )

    def question(self) -> Any:
        """As ``questions``."""
        names = [f"n{number}" for number in range(self.one_of(2, 4, 6))]
        nodes = tuple(
            Node(
                name,
                labels={HOSTNAME: name, ZONE: self.one_of("a", "b")} if self.often(90) else {},
                allocatable={CPU: self.one_of(2, 4, 6), PODS: self.one_of(3, 110), "example.com/gpu": 1},
            )
            for name in names
        )
        pods = tuple(
            self.pod(f"{name}-{number}", self.one_of(0, 0, 1, 2, 9), wants=10, node=name)
            for name in names
            for number in range(self.one_of(1, 3, 5))
        )
        nominated: dict[int, list[Pod]] = {}
        for number in range(self.one_of(0, 0, 2)):
            other = self.pod(f"promised{number}", 5, wants=20)
            nominated.setdefault(self._random.randrange(len(names)), []).append(other)
        guards = tuple(
            DisruptionBudget(
                self.one_of("red", "blue"),
                f"budget{number}",
                self.selector(),
                self.one_of(0, 1, 2),
                frozenset(self.one_of((), ("n0-0", "n1-1"))),
            )
            for number in range(self.one_of(0, 1, 3))
        )
        asking = self.pod("asking", 5, wants=40)
        return World(nodes, pods).snapshot(), asking, nominated, guards


def test_many_at_once_are_as_one_by_one_where_most_nodes_are_candidates():
    seen.clear()
    for seed in range(400):
        try:
            runs = compare(*Dice(seed).question())
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        assert runs is None or not runs.left_over.size
    assert min(seen["candidates"], seen["spared"], seen["budgets broken"]) > 50
    reasons = ("Insufficient cpu", "Too many pods", "anti-affinity", "pod affinity", "free ports", "spread")
    assert [word for word in reasons if not any(word in reason for reason in seen)] == []


@thoroughly(4)
@given(question=questions(amounts=(0, 1, 1 << 61, MAX_AMOUNT)))
def test_amounts_that_overflow_are_left_to_the_other_way(question):
    compare(*question)


@st.composite
def volume_questions(draw: st.DrawFn) -> Any:
    """The same with volumes of all kinds, some on nodes that can attach no more of them."""
    case = draw(cases(themes=("volumes",)))
    intake = Intake()
    for obj in case["objects"]:
        intake.add(obj, Source())
    for asked in case["pods"]:
        intake.add_pod(asked, Source())
    read = intake.cluster(0.0)
    cluster = Cluster(tuple(read.nodes), tuple(read.bound), tuple(complete_storage(read.storage)))
    assume(read.asked and cluster.nodes)
    first, *others = (replace(pod, spec=replace(pod.spec, priority=7)) for pod in read.asked)
    nominated: dict[int, list[Pod]] = {}
    for other in others:
        nominated.setdefault(draw(st.integers(0, len(cluster.nodes) - 1)), []).append(other)
    return build(cluster), first, nominated, ()


@thoroughly(6)
@given(question=volume_questions())
def test_many_at_once_are_as_one_by_one_with_volumes(question):
    compare(*question)


@pytest.mark.parametrize("make", [questions, volume_questions])
@given(data=st.data())
def test_nominated_pods_are_judged_the_same_at_once(make, data):
    snapshot, pod, nominated, _ = data.draw(make())
    runner = Runner(default_profile().plugins, {}, snapshot)
    pre = runner.pre_filter(pod)
    assume(pre.rejection is None)
    others = [other for pods in nominated.values() for other in pods]
    everywhere = dict.fromkeys(snapshot.alive.nonzero()[0].tolist(), others) if others else {}
    one_by_one = {row: runner.judge_with(pre, row, pods) for row, pods in everywhere.items()}
    expected = {row: rejection for row, rejection in one_by_one.items() if rejection is not None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moorage.core.framework.runner._FEW", 0)
        assert runner.judge_nominated(pre, everywhere, snapshot.alive) == expected
