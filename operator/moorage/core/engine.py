"""The core as one state machine: events in, instructions out.

* ``handle(event, now)`` takes in what happened and only changes state.
* ``step(now)`` runs at most one scheduling cycle and returns what is to be done about it.
* ``evaluate(pod, now)`` answers where a pod could go and changes nothing.

Time is an argument, chance a seed, so the same events give the same instructions.  Engine time is in seconds
since the epoch (UTC); plugins find it in ``snapshot.now``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from moorage.core.attempts import Attempts
from moorage.core.audits import AuditBudget, Audits
from moorage.core.cache.assumptions import Assumptions
from moorage.core.cache.cache import Cache
from moorage.core.cache.overcommits import Overcommits
from moorage.core.claims import Claims
from moorage.core.cycle.consultation import Asking, ExtenderError
from moorage.core.cycle.reservation import reserve, unreserve
from moorage.core.cycle.scheduling_cycle import Circumstances, explain, explain_pod
from moorage.core.framework.answers import PluginError
from moorage.core.framework.runner import Runner
from moorage.core.intake import (
    bound_pods,
    configuration,
    nodes,
    outcomes,
    pending_pods,
    policies,
    surroundings,
)
from moorage.core.intake.reports import policy_reports
from moorage.core.intake.roster import Roster
from moorage.core.intake.state import Handlers, State
from moorage.core.model.decision import Code, Decision, Rejection
from moorage.core.model.events import Event
from moorage.core.model.instructions import FetchPod, Instruction, Placement
from moorage.core.model.pod import Pod
from moorage.core.model.policy_report import PolicyReport
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.census import Census
from moorage.core.policy.holds import Hold
from moorage.core.policy_effects import PolicyEffects
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, Profile, default_profile
from moorage.core.queue.nominator import Nominator
from moorage.core.queue.preemptions import Preemptions
from moorage.core.queue.scheduling_queue import QueueSettings, SchedulingQueue
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.turns import POLICY_WINDOWS, Turns

#: What each event leads to.
HANDLERS: Handlers = {
    **nodes.HANDLERS,
    **pending_pods.HANDLERS,
    **bound_pods.HANDLERS,
    **outcomes.HANDLERS,
    **surroundings.HANDLERS,
    **configuration.HANDLERS,
    **policies.HANDLERS,
}


def _default_profiles() -> Mapping[str, Profile]:
    return {DEFAULT_SCHEDULER_NAME: default_profile()}


@dataclass(frozen=True)
class EngineConfig:
    """What the engine is made with; durations in seconds.

    ``profiles`` maps scheduler names to profiles; the first also answers ``evaluate`` for pods of other names.
    ``node_ready_guard``: nodes that report not to be ready count as tainted.
    ``confirm_after`` and ``confirm_at_most``: the first and the longest wait for word of a placement
    before the API server is asked.  ``audit_budget`` limits the time that audits of policies take (default: no limit).
    """

    profiles: Mapping[str, Profile] = field(default_factory=_default_profiles)
    seed: int = 0
    node_ready_guard: bool = False
    queue: QueueSettings = field(default_factory=QueueSettings)
    confirm_after: float = 2.0
    confirm_at_most: float = 30.0
    audit_budget: AuditBudget | None = None


@dataclass(frozen=True, slots=True)
class Vantage:
    """What a question about a pod is answered by: the pod as it is known, what runs its plugins, and what is around.

    ``held`` tells that its policies let it go nowhere now, and why.
    """

    pod: Pod
    runner: Runner
    around: Circumstances
    held: Rejection | None


class Engine:
    """Owns the state, lets events change it and cycles decide by it."""

    def __init__(self, config: EngineConfig | None = None) -> None:
        self.config = config = config or EngineConfig()
        self.snapshot = Snapshot()
        self.cache = Cache(self.snapshot)
        self.overcommits = Overcommits(self.cache)
        self.policies = PolicyBook(self.snapshot.namespaces.labels)
        self.snapshot.selected.follow(self.policies.selects)
        self._roster = roster = Roster(config.profiles, self.snapshot, self.policies)
        self._census = census = Census()
        self.queue = SchedulingQueue(
            roster.sort_key, roster.wakes, config.queue, backoff_of=roster.backoff_of, left=census.leave
        )
        self.nominator = Nominator()
        self.assumptions = Assumptions(config.confirm_after, config.confirm_at_most)
        self.preemptions = Preemptions(self.nominator)
        self._turns = turns = Turns(
            queue=self.queue,
            nominator=self.nominator,
            book=self.policies,
            census=census,
            runner_of=roster.runner_of,
        )
        self._audits = audits = Audits(self.policies, roster.runner_trying, config.audit_budget)
        effects = PolicyEffects(self.policies, turns, audits, census)
        self.claims = Claims(self.cache, self.assumptions, roster.runner_of, effects.placed)
        self._attempts = Attempts(
            cache=self.cache,
            queue=self.queue,
            nominator=self.nominator,
            assumptions=self.assumptions,
            preemptions=self.preemptions,
            runner_of=roster.runner_of,
            policies=effects,
            seed=config.seed,
        )
        self._state = State(
            cache=self.cache,
            overcommits=self.overcommits,
            roster=roster,
            queue=self.queue,
            nominator=self.nominator,
            assumptions=self.assumptions,
            preemptions=self.preemptions,
            attempts=self._attempts,
            turns=turns,
            audits=audits,
            census=census,
            node_ready_guard=config.node_ready_guard,
        )

    @property
    def runners(self) -> Mapping[str, Runner]:
        """By scheduler name, what runs the plugins of the profiles in force."""
        return self._roster.runners

    # -- the three verbs -------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> None:
        """Take in an event; instructions that follow from it come with the next ``step``."""
        self.snapshot.now = now
        HANDLERS[type(event)](self._state, event, now)
        self._state.announce_promises(now)

    def step(self, now: float) -> list[Instruction]:
        """Run at most one scheduling cycle; an empty list means that nothing came of it."""
        self.snapshot.now = now
        instructions = self.flush()
        instructions += self._turns.due(now)
        instructions += [FetchPod(ref) for ref in self.assumptions.due(now)]
        instructions += self._attempts.revisit_waiting(now)
        instructions += self._attempts.preparations.overdue(now)
        if self._attempts.suspended:
            instructions += self._attempts.resume(now)
        elif (queued := self.queue.pop(now)) is not None:
            instructions += self._attempts.attempt(queued, now)
        self._state.announce_promises(now)
        instructions += self.queue.drain_faults() + self._attempts.drain_faults()
        return instructions

    def flush(self) -> list[Instruction]:
        """What follows from events alone, without a cycle: for the end, when nothing is to be decided any more."""
        instructions, self._state.outbox = self._state.outbox, []
        return instructions

    def evaluate(self, pod: Pod, now: float, nodes: Sequence[str] | None = None) -> Decision:
        """Where the pod could go as things stand, with every reason and score; changes nothing.

        ``nodes`` limits the question to the nodes of these names.  Extenders are not asked.
        """
        self.snapshot.now = now
        pod = self._as_known(pod)
        try:
            return self._held(pod, now) or explain_pod(
                self._roster.runner_of(pod), pod, self._attempts.circumstances(pod), nodes
            )
        except PluginError as error:
            return Decision(pod.ref, error=str(error))

    def explanation(self, pod: Pod, now: float) -> Asking[Decision]:
        """As ``evaluate``, with the extenders of the pod's profile, whom the caller asks what it yields."""
        self.snapshot.now = now
        pod = self._as_known(pod)
        held = self._held(pod, now)
        if held is not None:
            return held
        runner = self._roster.runner_of(pod)
        look = lambda: self._attempts.circumstances(pod)  # noqa: E731 - a cycle looks more than once
        try:
            return (yield from explain(runner, pod, look, runner.concerned(pod)))
        except (PluginError, ExtenderError) as error:
            return Decision(pod.ref, error=str(error))

    def _as_known(self, pod: Pod) -> Pod:
        """The pod with what only the queue knows of it."""
        queued = self.queue.get(pod.uid)
        if queued is None or queued.pod.ungated is None or pod.ungated is not None or pod.gates:
            return pod
        return replace(pod, ungated=queued.pod.ungated)

    def _held(self, pod: Pod, now: float) -> Decision | None:
        """The decision that a pod without gates waits for its policies' windows, None if it does not."""
        hold = self._turns.hold_of(pod, now)
        if hold is None or self._roster.runner_of(pod).pre_enqueue(pod) is not None:
            return None
        return Decision(pod.ref, preenqueue=Rejection(POLICY_WINDOWS, (hold.message,), Code.UNRESOLVABLE))

    def vantage(self, pod: Pod, now: float) -> Vantage:
        """For front doors that look at nodes themselves."""
        self.snapshot.now = now
        pod = self._as_known(pod)
        held = self._held(pod, now)
        return Vantage(
            pod,
            self._roster.runner_of(pod),
            self._attempts.circumstances(pod),
            None if held is None else held.preenqueue,
        )

    def hold_of(self, pod: Pod, now: float) -> Hold | None:
        """The policies' hold on a pod without gates, None if it may go."""
        return self._turns.hold_of(pod, now)

    def reserve(self, pod: Pod) -> Rejection | None:
        """Promise a pod what it is to get on ``pod.node_name``, as a cycle would that places it there.

        For front doors that place pods without binding them; raises PluginError.
        """
        runner = self._roster.runner_of(pod)
        rejection = reserve(runner, pod)
        if rejection is not None:
            unreserve(runner, pod)
        return rejection

    # -- for the runtime -------------------------------------------------------------------------

    def ready(self, now: float) -> bool:
        """Whether ``step`` would do something now."""
        if self._state.outbox or self._attempts.permit_due:
            return True
        if self._attempts.resumable if self._attempts.suspended else self.queue.ready(now):
            return True
        wake = self.next_wake()
        return wake is not None and wake <= now

    def next_wake(self) -> float | None:
        """The engine time at which ``step`` has something to do even if nothing happens; None if never."""
        queue = None if self._attempts.suspended else self.queue.next_wake()
        times = (
            self.assumptions.next_check(),
            queue,
            self._attempts.next_deadline(),
            self._turns.next_turn(),
        )
        return min((time for time in times if time is not None), default=None)

    def last_look(self, placement: Placement) -> str | None:
        """Right before the bind: why the chosen node is no longer fit, from our own cache; None if it is."""
        assumption = self.assumptions.get(placement.ref.uid)
        if assumption is None:
            return "the placement was withdrawn"
        stamp = self.cache.stamp(placement.node_name)
        if stamp == assumption.stamp:
            return None
        row = self.snapshot.row_of(placement.node_name)
        if row is None:
            return f"node {placement.node_name} no longer exists"
        pod = assumption.pod
        runner = self._roster.runner_of(pod)
        try:
            pre = runner.pre_filter(pod)
            rejection = pre.rejection or runner.judge_with(pre, row, added=(), removed=(pod,))
        except PluginError as error:
            return str(error)
        if rejection is not None:
            return ", ".join(rejection.reasons)
        assumption.stamp = stamp
        return None

    def policy_reports(self) -> list[PolicyReport]:
        """How each policy fares, from figures that are kept anyway: to be asked as often as once a second."""
        return policy_reports(self._state)

    def stats(self) -> dict[str, int]:
        """Counts for metrics: ``pending_<place>``, ``nodes``, ``pods``, ``assumed``, ``preparing``, ``nominated``."""
        counts = {f"pending_{place.value}": number for place, number in self.queue.counts().items()}
        return {
            **counts,
            "nodes": self.snapshot.node_count,
            "pods": len(self.cache),
            "assumed": len(self.assumptions),
            "preparing": len(self._attempts.preparations),
            "nominated": len(self.nominator),
        }
