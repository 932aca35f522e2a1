"""The decorators by which a user's file declares its plugins, and the list of what was declared.

Imports next to nothing: ``import moorage`` in a user's file must cost nothing that the scheduler does not need anyway.
What can be seen to be wrong here raises ``DeclarationError`` at once, with the place in the user's file.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, TypeVar, overload

if TYPE_CHECKING:
    from moorage.plugins.answers import FilterAnswer, PreFilterAnswer, ScoreAnswer
    from moorage.plugins.nodes import Nodes
    from moorage.plugins.pod import Pod

    Score = TypeVar("Score", bound=Callable[Concatenate[Pod, Nodes, ...], ScoreAnswer])
    Filter = TypeVar("Filter", bound=Callable[Concatenate[Pod, Nodes, ...], FilterAnswer])
    PreFilter = TypeVar("PreFilter", bound=Callable[Concatenate[Pod, Nodes, ...], PreFilterAnswer])
else:
    Score, Filter, PreFilter = TypeVar("Score"), TypeVar("Filter"), TypeVar("PreFilter")
C = TypeVar("C", bound=type[Any])

#: What may wake a pod that a plugin rejected.
Waker = Literal[
    "node",
    "node-added",
    "node-labels",
    "node-taints",
    "node-allocatable",
    "pod",
    "pod-added",
    "pod-deleted",
    "pod-labels",
    "usage",
    "storage",
    "namespace",
]
WAKERS: Final[tuple[str, ...]] = Waker.__args__  # type: ignore[attr-defined]

#: Where an object keeps what was declared of it.
MARK: Final = "__moorage__"

FILTER, PRE_FILTER, SCORE, REFRESH = "filter", "pre_filter", "score", "refresh"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")
_MAX_WEIGHT: Final = 2**31 - 1
_ARGUMENTS: Final = (bool, int, float, str, tuple, list)


class DeclarationError(ValueError):
    """A plugin is declared in a way that cannot work; the text begins with file and line."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Declaration:
    """One plugin as its author wrote it.

    ``target`` is the function, or the class of a stateful plugin; ``parts`` are the names of what it does.
    ``arguments`` are those that a configuration may set, with their defaults.  ``wakes_on`` empty: any event.
    ``refresh_every`` in seconds, 0 without a background task.
    """

    name: str
    parts: frozenset[str]
    target: Callable[..., Any]
    file: str
    line: int
    weight: int = 1
    pure: bool = False
    wakes_on: tuple[str, ...] = ()
    reason: str = ""
    preemption_helps: bool = True
    refresh_every: float = 0.0
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stateful(self) -> bool:
        """Whether it is a class."""
        return inspect.isclass(self.target)

    def wrong(self, reason: str) -> DeclarationError:
        """An error at the place of this declaration."""
        return DeclarationError(self.file, self.line, reason)


#: The list that declarations go to is the last one.
_lists: list[list[Declaration]] = [[]]


def declared() -> tuple[Declaration, ...]:
    """What was declared so far, outside of ``collecting``: by files that somebody else imported, as Kopf does."""
    return tuple(_lists[0])


def declaration_of(thing: object) -> Declaration | None:
    """What was declared of a function or a class itself, None if nothing was."""
    found = getattr(thing, "__dict__", {}).get(MARK)
    return found if isinstance(found, Declaration) else None


@contextmanager
def collecting() -> Iterator[list[Declaration]]:
    """Have what is declared meanwhile in this list, and nowhere else."""
    _lists.append([])
    try:
        yield _lists[-1]
    finally:
        _lists.pop()


@overload
def score(function: Score, /) -> Score: ...
@overload
def score(*, weight: int = 1, name: str = "", pure: bool = False) -> Callable[[Score], Score]: ...
def score(function: Any = None, /, *, weight: int = 1, name: str = "", pure: bool = False) -> Any:
    """Declare a function that says how good each node is for a pod: the higher, the better.

    It is called as ``function(pod, nodes)`` and gives one finite number a node, shape (M,), on any scale.  Of the
    nodes that can take the pod the best gets 100 then, the worst 0, and if all are equal, all get 0; the result counts
    ``weight`` times.  ``name`` is what it is called in a configuration and in answers: the function's by default.
    ``pure`` promises that the number of a node depends on nothing but the pod's spec and that node with what the pods
    on it ask for: then it is computed once for alike pods.
    """
    return _decorator(function, SCORE, name, weight=weight, pure=pure)


@overload
def filter(function: Filter, /) -> Filter: ...
@overload
def filter(
    *,
    name: str = "",
    pure: bool = False,
    reason: str = "",
    wakes_on: Collection[Waker] = (),
    preemption_helps: bool = True,
) -> Callable[[Filter], Filter]: ...
def filter(
    function: Any = None,
    /,
    *,
    name: str = "",
    pure: bool = False,
    reason: str = "",
    wakes_on: Collection[Waker] = (),
    preemption_helps: bool = True,
) -> Any:
    """Declare a function that says which nodes may take a pod.

    It is called as ``function(pod, nodes)`` and gives booleans, shape (M,), true where the node will do; or one
    boolean for all; or either with the reason against the others, as a pair.  Without it ``reason`` is what the
    user reads.  ``wakes_on`` says which changes may help a pod that it rejected; by default, any.  With
    ``preemption_helps=False`` it promises that evicting pods from a node never changes its answer, which saves looking
    for victims in vain.  ``name``
    and ``pure`` as in ``score``.
    """
    return _decorator(
        function,
        FILTER,
        name,
        pure=pure,
        reason=reason,
        wakes_on=wakes_on,
        preemption_helps=preemption_helps,
    )


@overload
def pre_filter(function: PreFilter, /) -> PreFilter: ...
@overload
def pre_filter(*, name: str = "", wakes_on: Collection[Waker] = ()) -> Callable[[PreFilter], PreFilter]: ...
def pre_filter(function: Any = None, /, *, name: str = "", wakes_on: Collection[Waker] = ()) -> Any:
    """Declare a function that judges a pod as a whole, before any node.

    It is called as ``function(pod, nodes)`` with all nodes there are.  None lets the pod pass; a text is the reason
    why it fits nowhere; a set of node names says that only these nodes come into question.
    """
    return _decorator(function, PRE_FILTER, name, wakes_on=wakes_on)


@overload
def plugin(cls: C, /) -> C: ...
@overload
def plugin(
    *,
    name: str = "",
    weight: int = 1,
    pure: bool = False,
    reason: str = "",
    wakes_on: Collection[Waker] = (),
    preemption_helps: bool = True,
    refresh_every: float = 0.0,
) -> Callable[[C], C]: ...
def plugin(
    cls: Any = None,
    /,
    *,
    name: str = "",
    weight: int = 1,
    pure: bool = False,
    reason: str = "",
    wakes_on: Collection[Waker] = (),
    preemption_helps: bool = True,
    refresh_every: float = 0.0,
) -> Any:
    """Declare a class of which the scheduler makes one object, with one or more of these methods.

    ``filter(self, pod, nodes)``, ``score(self, pod, nodes)`` and ``pre_filter(self, pod, nodes)`` are what the
    functions of these decorators are.  ``async refresh(self)`` is awaited at the start and then every
    ``refresh_every`` seconds, to get from somewhere what the others go by.  They must not wait for anything.
    """
    options = {
        "weight": weight,
        "pure": pure,
        "reason": reason,
        "wakes_on": wakes_on,
        "preemption_helps": preemption_helps,
        "refresh_every": refresh_every,
    }
    return _decorator(cls, "", name, **options)


def _decorator(target: Any, part: str, name: str, **options: Any) -> Any:
    if target is None:
        return lambda real: _declare(real, part, name, options)
    return _declare(target, part, name, options)


def _declare(target: Any, part: str, name: str, options: dict[str, Any]) -> Any:
    file, line = _place(target)

    def wrong(reason: str) -> DeclarationError:
        return DeclarationError(file, line, reason)

    if part and not inspect.isfunction(target):
        raise wrong(f"@moorage.{part} is for functions, not {_kind(target)}")
    if not part and not inspect.isclass(target):
        raise wrong(f"@moorage.plugin is for classes, not {_kind(target)}")
    if declaration_of(target) is not None:
        raise wrong(f"{target.__name__} is declared already: one class can have both, by @moorage.plugin")
    name = name or target.__name__
    if not _NAME.fullmatch(name):
        raise wrong(f"{name!r} is not a plugin's name: letters, digits and _.-, a letter first, at most 63")
    parts = frozenset((part,)) if part else _parts(target, wrong)
    if part:
        _check_call(target, part, wrong)
    arguments = _arguments(target, skip=2 if part else 0, wrong=wrong)
    options["wakes_on"] = _wakers(options.get("wakes_on", ()), wrong)
    _check_options(options, parts, wrong)
    declaration = Declaration(name, parts, target, file, line, arguments=arguments, **options)
    _lists[-1].append(declaration)
    setattr(target, MARK, declaration)
    return target


def _place(target: Any) -> tuple[str, int]:
    """File and line of a function, or of the class whose decorator runs now."""
    if inspect.isfunction(target):
        code = inspect.unwrap(target).__code__
        return code.co_filename, code.co_firstlineno
    frame = sys._getframe()
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _kind(target: Any) -> str:
    return "a class" if inspect.isclass(target) else f"a {type(target).__name__}"


Wrong = Callable[[str], DeclarationError]


def _parts(cls: type[Any], wrong: Wrong) -> frozenset[str]:
    parts = frozenset(p for p in (FILTER, PRE_FILTER, SCORE, REFRESH) if callable(getattr(cls, p, None)))
    if not parts - {REFRESH}:
        raise wrong(f"{cls.__name__} has none of the methods filter, pre_filter and score")
    for part in parts - {REFRESH}:
        _check_call(
            getattr(cls, part),
            f"{cls.__name__}.{part}",
            wrong,
            bound=isinstance(inspect.getattr_static(cls, part), staticmethod | classmethod),
        )
    if REFRESH in parts and not inspect.iscoroutinefunction(cls.refresh):
        raise wrong(
            f"{cls.__name__}.refresh must be an async function: the scheduler cannot wait for it else"
        )
    return parts


def _check_call(function: Any, what: str, wrong: Wrong, *, bound: bool | None = None) -> None:
    """It can be called with a pod and nodes; ``bound`` None: it is no method."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise wrong(f"{what} must be a plain function: it answers at once")
    given: tuple[object, ...] = ("self", "pod", "nodes") if bound is False else ("pod", "nodes")
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        raise wrong(f"{what} must take a pod and nodes: {error}") from None


def _arguments(target: Any, *, skip: int, wrong: Wrong) -> Mapping[str, Any]:
    """What a configuration can set: a function's arguments after the first two, a class's of its constructor."""
    try:
        parameters = list(inspect.signature(target).parameters.values())[skip:]
    except ValueError:  # a class that takes nothing
        parameters = []
    found = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = parameter.default
        if default is parameter.empty:
            raise wrong(f"argument {parameter.name!r} must have a default")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise wrong(f"argument {parameter.name!r} must not be positional-only")
        texts = isinstance(default, tuple | list) and all(isinstance(each, str) for each in default)
        if not isinstance(default, _ARGUMENTS) or not (texts or not isinstance(default, tuple | list)):
            raise wrong(
                f"argument {parameter.name!r} must default to a text, a number, true or false, or a tuple of "
                f"texts, not {default!r}: a configuration can set no other"
            )
        found[parameter.name] = tuple(default) if isinstance(default, list) else default
    return MappingProxyType(found)


def _wakers(given: Collection[str], wrong: Wrong) -> tuple[str, ...]:
    wakers = (given,) if isinstance(given, str) else tuple(given)
    for each in wakers:
        if each not in WAKERS:
            raise wrong(f"wakes_on: must be of {', '.join(WAKERS)}, not {each!r}")
    return wakers


def _check_options(options: Mapping[str, Any], parts: frozenset[str], wrong: Wrong) -> None:
    weight, pure = options.get("weight", 1), options.get("pure", False)
    every = options.get("refresh_every", 0.0)
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= _MAX_WEIGHT:
        raise wrong(f"weight must be a whole number from 1 to {_MAX_WEIGHT}, not {weight!r}")
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 <= every <= 86400:
        raise wrong(f"refresh_every must be a number of seconds, at most a day, not {every!r}")
    if REFRESH in parts and every < 1:
        raise wrong("refresh_every must say every how many seconds, at least 1, there being a refresh")
    if REFRESH not in parts and every:
        raise wrong("refresh_every is given, but there is no method refresh")
    if pure and REFRESH in parts:
        raise wrong(
            "pure and refresh do not go together: answers kept from before would not see what is fresh"
        )
    if pure and PRE_FILTER in parts:
        raise wrong("pure and pre_filter do not go together: it sees all nodes")
