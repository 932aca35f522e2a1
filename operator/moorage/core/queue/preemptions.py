"""Preemptions under way: who was asked to go for whose sake, and the budgets that speak against it."""

from __future__ import annotations

from moorage.core.framework.post_filter import Candidate
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.instructions import Evict, Instruction, SetCondition
from moorage.core.model.pod import Pod
from moorage.core.queue.nominator import Nominator


class Preemptions:
    """Between the order to evict and the moment a stream shows the victims going.

    In that time a second try of the preemptor must not find the same victims, or others, again.
    """

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._budgets: dict[tuple[str, str], DisruptionBudget] = {}
        self._awaited: dict[str, set[str]] = {}
        self._awaited_by: dict[str, set[str]] = {}

    # -- budgets ---------------------------------------------------------------------------------

    @property
    def budgets(self) -> tuple[DisruptionBudget, ...]:
        """All disruption budgets, in order of namespace and name."""
        return tuple(self._budgets[key] for key in sorted(self._budgets))

    def set_budget(self, budget: DisruptionBudget) -> None:
        """A budget is new or changed."""
        self._budgets[budget.namespace, budget.name] = budget

    def drop_budget(self, namespace: str, name: str) -> None:
        """A budget is gone."""
        self._budgets.pop((namespace, name), None)

    # -- evictions -------------------------------------------------------------------------------

    def begin(self, preemptor: Pod, chosen: Candidate) -> list[Instruction]:
        """Promise the node to the preemptor and ask for the evictions.

        Pods of lower priority that were promised the node lose the promise: they may not fit any more.  Where all
        victims are going already, nothing is asked and nobody loses anything (kube-scheduler's
        ``prepareCandidateAsync``).
        """
        going = [victim for victim in chosen.victims if not victim.deleting]
        lower = [
            other
            for other in self._nominator.promised(chosen.node_name)
            if going and other.priority < preemptor.priority
        ]
        instructions: list[Instruction] = []
        for other in lower:
            self._nominator.withdraw(other.uid)
            status, reason, message = other.scheduled_condition
            transition = status != "False"
            instructions.append(
                SetCondition(other.ref, other.resource_version, reason, message, "", transition=transition)
            )
        self._nominator.nominate(preemptor, chosen.node_name)
        if going:
            self.abandon(preemptor.uid)
            self._awaited[preemptor.uid] = {victim.uid for victim in going}
            for victim in going:
                self._awaited_by.setdefault(victim.uid, set()).add(preemptor.uid)
            refs = tuple(victim.ref for victim in going)
            generations = {victim.uid: victim.generation for victim in going if victim.generation}
            name = preemptor.spec.scheduler_name
            instructions.append(Evict(preemptor.ref, name, chosen.node_name, refs, generations))
        return instructions

    def awaited(self, preemptor_uid: str) -> frozenset[str]:
        """The victims of this preemptor that no stream has shown going yet."""
        return frozenset(self._awaited.get(preemptor_uid, ()))

    def seen_going(self, victim_uid: str) -> None:
        """A stream shows the pod being deleted, or gone."""
        for preemptor_uid in self._awaited_by.pop(victim_uid, ()):
            waiting = self._awaited[preemptor_uid]
            waiting.discard(victim_uid)
            if not waiting:
                del self._awaited[preemptor_uid]

    def abandon(self, preemptor_uid: str) -> None:
        """The preemptor waits for nobody any more: the eviction failed, or the preemptor is gone."""
        for victim_uid in self._awaited.pop(preemptor_uid, ()):
            preemptors = self._awaited_by[victim_uid]
            preemptors.discard(preemptor_uid)
            if not preemptors:
                del self._awaited_by[victim_uid]
