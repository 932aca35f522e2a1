"""What a user's function gives back, held to its contract."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from moorage.plugins.nodes import Nodes

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

Mask: TypeAlias = Bools | Sequence[bool] | bool
FilterAnswer: TypeAlias = Mask | tuple[Mask, str]
ScoreAnswer: TypeAlias = (
    npt.NDArray[np.floating[Any]] | npt.NDArray[np.integer[Any]] | Bools | Sequence[float]
)
PreFilterAnswer: TypeAlias = Collection[str] | str | None


class BadAnswer(Exception):
    """The answer breaks the contract; the text says how."""


def read_mask(answer: object, nodes: Nodes) -> tuple[Bools, str]:
    """A filter's answer as (which nodes will do, shape (M,), and the reason against the others or "")."""
    reason = ""
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], str):
        answer, reason = answer
        if not reason.strip():
            raise BadAnswer("gave an empty reason")
    if isinstance(answer, bool | np.bool_):
        return np.full(len(nodes), bool(answer), dtype=np.bool_), reason
    mask = _vector(answer, nodes, "booleans", "True if it has nothing against any node")
    if mask.dtype != np.bool_:
        if mask.size:
            raise BadAnswer(f"must give booleans, not {mask.dtype}")
        mask = mask.astype(np.bool_)
    return mask, reason


def read_scores(answer: object, nodes: Nodes) -> Floats:
    """A score's answer as finite numbers, shape (M,)."""
    scores = _vector(answer, nodes, "numbers", "equal numbers if it prefers none")
    if scores.dtype.kind not in "fiub":
        raise BadAnswer(f"must give numbers, not {scores.dtype}")
    numbers = scores.astype(np.float64, copy=False)
    good = np.isfinite(numbers)
    if not good.all():
        bad = np.flatnonzero(~good)
        names = ", ".join(nodes[int(index)].name for index in bad[:3])
        more = f" and {bad.size - 3} more" if bad.size > 3 else ""
        raise BadAnswer(f"gave {numbers[bad[0]]} for node {names}{more}")
    return numbers


def read_pre_filter(answer: object) -> str | frozenset[str] | None:
    """A pre-filter's answer: why the pod fits nowhere, the only nodes in question, or None."""
    if answer is None:
        return None
    if isinstance(answer, str):
        if not answer.strip():
            raise BadAnswer("gave an empty reason")
        return answer
    if isinstance(answer, Collection) and all(isinstance(name, str) for name in answer):
        return frozenset(answer)
    raise BadAnswer(f"must give None, a reason, or names of nodes, not {_shown(answer)}")


def _vector(answer: object, nodes: Nodes, what: str, instead: str) -> npt.NDArray[Any]:
    if answer is None:
        raise BadAnswer(f"gave None: a return is missing? It must give {what}, or {instead}")
    if not isinstance(answer, np.ndarray):
        if not isinstance(answer, list | tuple):
            raise BadAnswer(f"must give {len(nodes)} {what}, not {_shown(answer)}")
        try:
            answer = np.array(answer)
        except ValueError as error:
            raise BadAnswer(f"must give {len(nodes)} {what}: {error}") from None
    if answer.shape != (len(nodes),):
        got = f"{answer.size}" if answer.ndim == 1 else f"shape {answer.shape}"
        raise BadAnswer(f"must give {len(nodes)} {what}, one a node, not {got}")
    return answer


def _shown(answer: object) -> str:
    text = repr(answer)
    return f"{type(answer).__name__} {text if len(text) <= 40 else text[:37] + '…'}"
