"""Which policies there are, what is wrong with them, and which generation of each is in force.

Two sources tell of them: Kopf's stream, event by event, and complete lists now and then, which bring what the
stream has missed (Kopf lists again after a 410 without telling what vanished).  Either may be behind the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from moorage.adapters.kube.policy_kinds import PolicyKind, policy_ref
from moorage.core.model.events import PolicyApplied, PolicyGone
from moorage.core.model.policy import Mode, Policy, PolicyRef
from moorage.runtime.ports import Clock

logger = logging.getLogger(__name__)

Obj = Mapping[str, Any]
#: What is wrong with a policy: the path of the field, and why.
Problem = tuple[str, str]
#: How long a deleted policy is remembered, so that a list from before does not bring it back.
_REMEMBERED = 300.0


class ReadPolicy(Protocol):
    """Reads and compiles a raw policy."""

    def __call__(self, obj: Obj, /) -> Policy | tuple[Problem, ...]:
        """The policy, or what is wrong with it (at least one problem)."""
        ...


class PolicyMeter(Protocol):
    """Counts what cannot be read."""

    def object_malformed(self, resource: str) -> None:
        """An object of this kind makes no sense."""
        ...


@dataclass(slots=True, eq=False)
class KnownPolicy:
    """One policy.

    ``generation`` is the newest, ``problems`` is what is wrong with that.  ``waiting`` is accepted, and will be in
    force when the pods were looked at anew for its expression.  ``status`` is what the cluster has, at ``version``.
    """

    ref: PolicyRef
    uid: str
    generation: int = -1
    problems: tuple[Problem, ...] = ()
    in_force: Policy | None = None
    waiting: Policy | None = None
    status: Obj = field(default_factory=dict)
    version: int = 0
    seen: float = 0.0

    @property
    def newest(self) -> Policy | None:
        """The newest generation that was accepted."""
        return self.waiting or self.in_force


class PolicyRegister:
    """Hands accepted generations to the engine; nothing it is told makes it raise.

    ``on_change`` is called with each policy whose newest generation is another one (or gone), ``on_expressions`` when
    pods must be looked at for expressions that are not ``judged`` yet.
    """

    def __init__(
        self,
        read: ReadPolicy,
        submit: Callable[[PolicyApplied | PolicyGone], None],
        clock: Clock,
        meter: PolicyMeter,
        *,
        on_change: Callable[[PolicyRef], None] = lambda _: None,
        on_expressions: Callable[[], None] = lambda: None,
    ) -> None:
        self._read = read
        self._submit = submit
        self._clock = clock
        self._meter = meter
        self._on_change = on_change
        self._on_expressions = on_expressions
        self._known: dict[PolicyRef, KnownPolicy] = {}
        self._gone: dict[str, float] = {}  # UID -> when
        self._judged: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[KnownPolicy]:
        return iter(tuple(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)

    def get(self, ref: PolicyRef) -> KnownPolicy | None:
        """The policy of that name."""
        return self._known.get(ref)

    # -- from the cluster ------------------------------------------------------------------------

    def event(self, kind: str | None, obj: Obj) -> None:
        """The stream shows a policy (``kind`` None: as part of a list), or that it is gone (``DELETED``)."""
        try:
            ref, uid = policy_ref(obj), str(obj["metadata"]["uid"])
            if kind == "DELETED" or obj["metadata"].get("deletionTimestamp"):
                self._delete(ref, uid)
            else:
                self._apply(ref, uid, obj)
        except Exception as error:  # noqa: BLE001 - Kopf would log it and go on, and so do we, but counted
            self._meter.object_malformed("policies")
            logger.warning("A policy cannot be read and is left out: %r", error)

    def listed(self, kind: PolicyKind, present: Collection[str], listed_at: float) -> None:
        """These, by UID, are all policies of a kind as of some moment after ``listed_at``; each was told of before."""
        for known in self:
            absent = bool(known.ref.namespace) == kind.namespaced and known.uid not in present
            if absent and known.seen < listed_at:
                self._delete(known.ref, known.uid)
        now = self._clock.now()
        self._gone = {uid: at for uid, at in self._gone.items() if now - at < _REMEMBERED}

    def written(self, ref: PolicyRef, obj: Obj) -> None:
        """Our own write was answered with this object."""
        known = self._known.get(ref)
        if known is not None and known.uid == obj["metadata"].get("uid"):
            self._note_status(known, obj)

    # -- expressions over pods -------------------------------------------------------------------

    def expressions(self) -> frozenset[str]:
        """The texts of all expressions over pods that some policy needs."""
        needed = (policy for known in self for policy in (known.in_force, known.waiting))
        return frozenset(filter(None, (_expression(policy) for policy in needed)))

    def judged(self, expressions: frozenset[str]) -> None:
        """For these, every pod says whether they hold; policies that waited for that are in force now."""
        self._judged = expressions
        for known in self:
            if known.waiting is not None and _expression(known.waiting) in (expressions | {""}):
                policy, known.waiting = known.waiting, None
                self._put_in_force(known, policy)

    # -- one policy ------------------------------------------------------------------------------

    def _apply(self, ref: PolicyRef, uid: str, obj: Obj) -> None:
        if uid in self._gone:
            return
        known = self._known.get(ref)
        if known is not None and known.uid != uid:
            self._delete(ref, known.uid)  # the name is used again
            known = None
        if known is None:
            known = self._known[ref] = KnownPolicy(ref, uid)
        known.seen = self._clock.now()
        self._note_status(known, obj)
        generation = int(obj["metadata"].get("generation") or 0)
        if generation > known.generation:
            known.generation = generation
            self._take_over(known, obj)

    def _note_status(self, known: KnownPolicy, obj: Obj) -> None:
        """What comes late does not replace what is newer: it is compared with what is to be written."""
        version = str(obj["metadata"].get("resourceVersion") or "")
        number = int(version) if version.isdigit() else 0
        if number >= known.version:
            status = obj.get("status")
            known.version, known.status = number, status if isinstance(status, Mapping) else {}

    def _take_over(self, known: KnownPolicy, obj: Obj) -> None:
        try:
            found = self._read(obj)
        except Exception as error:
            logger.exception("Policy %s cannot be read", known.ref.key)
            found = (("", f"cannot be read: {error!r}"),)
        if isinstance(found, Policy):
            known.problems = ()
            expression = _expression(found)
            known.waiting = None
            if not expression or expression in self._judged:
                self._put_in_force(known, found)
            else:
                known.waiting = found
                self._on_expressions()
        else:
            known.problems = found
            text = "; ".join(f"{path}: {reason}" if path else reason for path, reason in found)
            logger.warning("Policy %s, generation %d, is refused: %s", known.ref.key, known.generation, text)
        self._on_change(known.ref)

    def _put_in_force(self, known: KnownPolicy, policy: Policy) -> None:
        known.in_force = policy
        self._submit(PolicyApplied(policy))
        self._on_change(known.ref)
        self._on_expressions()  # those of the generation before are needed no more

    def _delete(self, ref: PolicyRef, uid: str) -> None:
        self._gone[uid] = self._clock.now()
        known = self._known.get(ref)
        if known is None or known.uid != uid:
            return
        del self._known[ref]
        if known.in_force is not None:
            self._submit(PolicyGone(ref))
        self._on_change(ref)
        self._on_expressions()


def _expression(policy: Policy | None) -> str:
    """The text of its expression over pods, "" if it has none or needs none."""
    return "" if policy is None or policy.mode is Mode.DISABLED else policy.selection.expression
