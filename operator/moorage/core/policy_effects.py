"""What policies have to do with an attempt: holds before it, audits beside it, and what they make of a refusal."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.core.audits import Answer, Audits, held_by
from moorage.core.cycle.consultation import Circumstances
from moorage.core.framework.answers import guarded
from moorage.core.framework.interface import TimedPlugin
from moorage.core.framework.post_filter import PostFilterPlugin
from moorage.core.framework.runner import Runner
from moorage.core.model.instructions import Audited, Instruction
from moorage.core.model.pod import Pod
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.census import Census, Reason
from moorage.core.queue.scheduling_queue import QueuedPod
from moorage.core.turns import Turns

#: The annotation of a Binding that names the policies that shaped the placement.
POLICIES_ANNOTATION = "moorage.dev/policies"


class PolicyEffects:
    """Without policies it does nothing and costs next to nothing."""

    def __init__(self, book: PolicyBook, turns: Turns, audits: Audits, census: Census) -> None:
        self._book = book
        self._turns = turns
        self._audits = audits
        self._census = census

    def hold_back(self, pod: Pod, now: float) -> bool:
        """Whether the pod may not be tried now."""
        return self._turns.hold_of(pod, now) is not None

    def look(self, uid: str, now: float) -> list[Instruction]:
        """See ``Turns.look``."""
        return self._turns.look(uid, now)

    # -- around a decision -----------------------------------------------------------------------

    def decision_begins(self) -> None:
        """For the audits' budget."""
        if len(self._book):
            self._audits.budget.decision_begins()

    def decision_ends(self) -> None:
        """For the audits' budget."""
        if len(self._book):
            self._audits.budget.decision_ends()

    def held_by(self, runner: Runner, pod: Pod) -> str:
        """Why a pod that no node takes waits for a policy and not for a node, "" if it does not."""
        return "" if self._book.shaping(pod).merged.pools is None else held_by(runner)

    def audit(self, pod: Pod, real: Answer, around: Circumstances, now: float) -> list[Audited]:
        """Compare the decision with what each audited policy would have led to."""
        return self._audits.audit(pod, real, around, now) if self._book.shaping(pod).audited else []

    def placed(self, pod: Pod) -> str:
        """Nothing speaks against the pod any more; the policies that shaped its placement, in their order."""
        if not len(self._book):
            return ""
        self._census.refuse(pod.uid)
        return ",".join(ref.key for ref in self._book.shaping(pod).merged.shaping)

    # -- after a refusal -------------------------------------------------------------------------

    def refused(
        self, queued: QueuedPod, runner: Runner, plugins: Iterable[str], reasons: Iterable[Reason], now: float
    ) -> list[Instruction]:
        """Note why the pod, which is back in the queue, waits, and when that may be void; raises PluginError."""
        if not len(self._book):
            return []
        pod = queued.pod
        self._census.refuse(pod.uid, reasons)
        rejectors = frozenset(plugins)
        times = [
            guarded(plugin, "Filter", plugin.changes_at, pod, runner.snapshot)
            for plugin in runner.plugins
            if isinstance(plugin, TimedPlugin)
            and (plugin.name in rejectors or isinstance(plugin, PostFilterPlugin))
        ]
        queued.lapses = min((time for time in times if time is not None), default=None)
        return self._turns.look(pod.uid, now)
