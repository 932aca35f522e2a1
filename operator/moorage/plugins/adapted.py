"""A declared plugin as the core runs it."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import (
    MAX_NODE_SCORE,
    Ints,
    Narrowed,
    Reads,
    Reason,
    Rejected,
    Skip,
    Verdict,
)
from moorage.core.framework.trials import Balance, Trial
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.pod import Pod as CorePod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes as CoreNodes
from moorage.plugins.answers import BadAnswer, read_mask, read_pre_filter, read_scores
from moorage.plugins.declare import FILTER, PRE_FILTER, REFRESH, SCORE, Declaration
from moorage.plugins.nodes import Nodes
from moorage.plugins.pod import Pod
from moorage.plugins.wakers import wakes
from moorage.plugins.watch import Watch

Floats = npt.NDArray[np.float64]
D = TypeVar("D", bound=np.generic)
A = TypeVar("A")

#: The arguments of a plugin, in the order in which they are declared.
Arguments = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Adapted:
    """A plugin of a user with its arguments; two with the same ones are the same.

    ``calls`` are its functions by part, ``made`` all those of one declaration by their arguments.
    """

    name: ClassVar[str]
    declaration: ClassVar[Declaration]
    reads: ClassVar[Reads]

    arguments: Arguments
    calls: Mapping[str, Callable[..., Any]] = field(compare=False, repr=False)
    watch: Watch = field(compare=False, repr=False)
    made: dict[Arguments, Adapted] = field(compare=False, repr=False)

    def wakes_on(self) -> Sequence[WakesOn]:
        """What the declaration names, by default anything; nothing for a plugin that rejects nothing."""
        rejects = {FILTER, PRE_FILTER} & self.declaration.parts
        return wakes(self.declaration.wakes_on) if rejects else ()

    def with_arguments(self, changed: Mapping[str, Any]) -> Adapted:
        """The same plugin with these arguments and the defaults of the others; raises what its constructor raises."""
        arguments = tuple({**self.declaration.arguments, **changed}.items())
        if arguments not in self.made:
            self.made[arguments] = _make(type(self), arguments, self.watch, self.made)
        return self.made[arguments]

    def _call(self, part: str, point: str, pod: Pod, nodes: Nodes, read: Callable[[Any], A]) -> A:
        """The function's answer, held to its contract; raises PluginError, which names plugin and function."""
        watch = self.watch
        function = self.calls[part]
        try:
            begun = watch.clock()
            try:
                with np.errstate(all="ignore"):  # what comes of it is looked at
                    answer = function(pod, nodes)
            finally:
                seconds = watch.clock() - begun
                if seconds > watch.slow:
                    watch.took(self.name, self._what(part), seconds)
            return read(answer)
        except BadAnswer as error:
            text = f"{self._what(part)} {error}"
            watch.failed(self.name, text, None)
            raise PluginError(self.name, point, text) from error
        except (
            Exception,
            SystemExit,
        ) as error:  # foreign code: its fault costs one pod one attempt, and no more
            text = f"{self._what(part)} raised {type(error).__name__}: {error} ({_where(error)})"
            watch.failed(self.name, text, error)
            raise PluginError(self.name, point, text) from error

    def _what(self, part: str) -> str:
        if self.declaration.stateful:
            return f"{self.declaration.target.__name__}.{part}()"
        return f"{self.declaration.target.__name__}()"

    def _seen(self, pod: CorePod) -> Pod:
        return Pod(pod, spec_only=self.declaration.pure)


class Filtering(Adapted):
    """A plugin with a filter, a pre-filter, or both."""

    def pre_filter(self, pod: CorePod, snapshot: Snapshot) -> Pod | Skip | Rejected | Narrowed[Pod]:
        """What the pre-filter says of the pod."""
        seen = self._seen(pod)
        if PRE_FILTER not in self.calls:
            return seen
        nodes, _ = candidates(CoreNodes(snapshot))
        answer = self._call(PRE_FILTER, "PreFilter", seen, nodes, read_pre_filter)
        if isinstance(answer, str):
            return Rejected((answer,), Code.UNRESOLVABLE)  # evictions do not change its mind about the pod
        if answer is not None:
            return Narrowed(seen, answer)
        return seen if FILTER in self.calls else Skip.SKIP

    def filter(self, state: Pod, nodes: CoreNodes) -> Verdict:
        """What the filter says of the nodes; rows without a node count as refused."""
        if FILTER not in self.calls:
            return Verdict((_refused(self.declaration, ""),), np.zeros((1, len(nodes)), dtype=np.bool_))
        seen, places = candidates(nodes)
        mask, reason = self._call(FILTER, "Filter", state, seen, lambda answer: read_mask(answer, seen))
        failed = np.ones((1, len(nodes)), dtype=np.bool_)
        failed[0, places] = ~mask
        return Verdict((_refused(self.declaration, reason),), failed)


class Settled(Filtering):
    """One whose answers the pods on the nodes have no part in: of nodes on trial it is asked about all at once."""

    def trial(self, state: Pod, trial: Trial) -> Balance:
        """No sums, and always the same verdict."""
        return Balance.fixed(self, state, trial)


class Scoring(Adapted):
    """A plugin with a score.

    Raw scores of the core are integers, and these are not: they pass through it as the bits of floats.
    """

    def pre_score(self, pod: CorePod, snapshot: Snapshot, nodes: CoreNodes) -> Pod | Literal[Skip.SKIP]:
        """The pod as the score sees it."""
        return self._seen(pod)

    def score(self, state: Pod, nodes: CoreNodes) -> Ints:
        """The bits of the numbers, 0 for rows without a node."""
        seen, places = candidates(nodes)
        numbers = self._call(SCORE, "Score", state, seen, lambda answer: read_scores(answer, seen))
        raw = np.zeros(len(nodes), dtype=np.float64)
        raw[places] = numbers
        return raw.view(np.int64)

    def normalize(self, raw: Ints) -> Ints:
        """The lowest gets 0, the highest MAX_NODE_SCORE, rounded to the nearest; all get 0 if they are equal."""
        return min_max(raw.view(np.float64))


class Refreshing(Adapted):
    """A plugin with a background task."""

    async def refresh(self) -> None:
        """Bring what it goes by up to date; raises whatever the user's method raises."""
        await self.calls[REFRESH]()


class Timed(Refreshing):
    """A plugin that rejects and has a background task: what it brings may lift the rejection."""

    def changes_at(self, pod: CorePod, snapshot: Snapshot) -> float | None:
        """One refresh later."""
        return snapshot.now + self.declaration.refresh_every


def adapt(declaration: Declaration, watch: Watch) -> Adapted:
    """The plugin with its default arguments; raises DeclarationError if its class cannot be made an object of."""
    parts = declaration.parts
    bases: list[type[Any]] = []
    if {FILTER, PRE_FILTER} & parts:
        settled = not declaration.preemption_helps or FILTER not in parts
        bases.append(Settled if settled else Filtering)
    if SCORE in parts:
        bases.append(Scoring)
    if REFRESH in parts:
        bases.append(Timed if {FILTER, PRE_FILTER} & parts else Refreshing)
    reads = Reads.NODE | Reads.USAGE
    if not declaration.pure:
        reads |= Reads.CLUSTER
    own = {"name": declaration.name, "declaration": declaration, "reads": reads}
    cls: type[Adapted] = type(declaration.name, tuple(bases), {**own, "__doc__": declaration.target.__doc__})
    arguments: Arguments = tuple(declaration.arguments.items())
    made: dict[Arguments, Adapted] = {}
    try:
        made[arguments] = _make(cls, arguments, watch, made)
    except Exception as error:
        reason = f"{declaration.target.__name__}() raised {type(error).__name__}: {error}"
        raise declaration.wrong(reason) from error
    return made[arguments]


def _make(cls: type[Adapted], arguments: Arguments, watch: Watch, made: dict[Arguments, Adapted]) -> Adapted:
    declaration = cls.declaration
    given = dict(arguments)
    if declaration.stateful:
        thing = declaration.target(**given)
        calls = {part: getattr(thing, part) for part in declaration.parts}
    else:
        (part,) = declaration.parts
        calls = {part: functools.partial(declaration.target, **given) if given else declaration.target}
    return cls(arguments, calls, watch, made)


def candidates(nodes: CoreNodes) -> tuple[Nodes, slice | Ints]:
    """Those of the rows that hold a node, and their places among all."""
    snapshot = nodes.snapshot
    if not nodes.whole:
        alive = snapshot.alive.take(nodes.rows)
        if alive.all():
            return Nodes(snapshot, nodes.rows), slice(None)
        places = np.flatnonzero(alive)
        return Nodes(snapshot, nodes.rows[places]), places
    count = snapshot.node_count
    if snapshot.alive[:count].all():
        return Nodes(snapshot), slice(count)
    rows = np.flatnonzero(snapshot.alive)
    return Nodes(snapshot, rows), rows


def min_max(values: Floats) -> Ints:
    """Finite numbers, shape (M,), brought to 0..MAX_NODE_SCORE in proportion; 0 if all are equal."""
    if not values.size:
        return np.zeros(0, dtype=np.int64)
    low, high = values.min(), values.max()
    with np.errstate(over="ignore"):
        span = high - low
    if not np.isfinite(span):
        values, low, span = values / 2, low / 2, high / 2 - low / 2
    if span == 0:
        return np.zeros(values.size, dtype=np.int64)
    scores: Ints = np.floor((values - low) / span * MAX_NODE_SCORE + 0.5).astype(np.int64)
    return scores


def _refused(declaration: Declaration, reason: str) -> Reason:
    text = reason or declaration.reason or f"node(s) were refused by plugin {declaration.name}"
    return Reason(text, resolvable=declaration.preemption_helps)


def _where(error: BaseException) -> str:
    """The place nearest to the fault that is not in a library, as ``file:line, in function``."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    own = [f for f in frames if "site-packages" not in f.filename and "/moorage/plugins/" not in f.filename]
    if not own and not frames:
        return "somewhere"
    frame = (own or frames)[-1]
    return f"{frame.filename}:{frame.lineno}, in {frame.name}"
