"""Two answers to one case, compared field by field in the order in which a cycle comes to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field on which the two disagree.

    ``kind`` groups differences that are likely to have one cause: the field, and the plugin it is about.
    """

    pod: str
    field: str
    ours: object
    theirs: object
    kind: str

    def __str__(self) -> str:
        return f"{self.pod} {self.field}: Moorage {_shown(self.ours)}, kube-scheduler {_shown(self.theirs)}"


def compare(ours: Result, theirs: Result) -> list[Difference]:
    """How the answers to a case differ.

    Only the first pod that differs is compared in full: what was decided for it is part of the later pods' cluster.
    """
    if ours.get("error") or theirs.get("error"):
        if bool(ours.get("error")) != bool(theirs.get("error")):
            return [Difference("case", "error", ours.get("error"), theirs.get("error"), "case error")]
        return []
    for mine, other in zip(ours["results"], theirs["results"], strict=True):
        if found := list(_differences(mine, other)):
            return found
    return []


def _differences(ours: Result, theirs: Result) -> Iterator[Difference]:
    pod = str(theirs["pod"])

    def differ(field: str, mine: object, other: object, kind: str = "") -> Iterator[Difference]:
        if mine != other:
            yield Difference(pod, field, mine, other, kind or field)

    if ours["pod"] != pod:
        yield Difference(pod, "pod", ours["pod"], pod, "pod")
        return
    # The words of an error are each program's own; that there is one is not.
    if bool(ours.get("error")) != bool(theirs.get("error")):
        yield Difference(pod, "error", ours.get("error"), theirs.get("error"), "error")
        return
    if theirs.get("error"):
        return
    for field in ("preenqueue", "prefilter"):
        mine, other = _rejection(ours.get(field)), _rejection(theirs.get(field))
        yield from differ(field, mine, other, f"{field} {_owners(mine, other)}")
    yield from differ("feasible", list(ours["feasible"]), list(theirs["feasible"]))
    for node in sorted({*ours["filtered"], *theirs["filtered"]}):
        mine, other = _rejection(ours["filtered"].get(node)), _rejection(theirs["filtered"].get(node))
        yield from differ(f"filtered[{node}]", mine, other, f"filtered {_owners(mine, other)}")
    yield from _score_differences(pod, ours["scores"], theirs["scores"])
    yield from differ("best", list(ours["best"]), list(theirs["best"]))
    yield from differ("chosen", ours["chosen"], theirs["chosen"])
    field = "nominatedNodeFits"
    yield from differ(field, bool(ours.get(field)), bool(theirs.get(field)))
    yield from differ("reserve", _rejection(ours.get("reserve")), _rejection(theirs.get("reserve")))
    yield from _preemption_differences(pod, ours["preemption"], theirs["preemption"])
    yield from differ("message", ours["message"], theirs["message"])
    mine, other = ours.get("retry"), theirs.get("retry")
    if mine is not None and other is not None:
        for found in _differences(mine, other):
            yield Difference(pod, f"retry.{found.field}", found.ours, found.theirs, f"retry {found.kind}")
    else:
        yield from differ("retry", mine, other)


def _score_differences(pod: str, ours: Result, theirs: Result) -> Iterator[Difference]:
    for node in sorted({*ours, *theirs}):
        mine, other = ours.get(node), theirs.get(node)
        if mine is None or other is None:
            if (mine is None) != (other is None):
                yield Difference(pod, f"scores[{node}]", mine, other, "scores")
            continue
        for plugin in sorted({*mine, *other} - {"total"}):
            if mine.get(plugin) != other.get(plugin):
                field = f"scores[{node}].{plugin}"
                yield Difference(pod, field, mine.get(plugin), other.get(plugin), f"score {plugin}")
        # Where a profile has no plugin that scores, each node's total is 1 for kube-scheduler and 0 for us.
        scored = set(mine) | set(other) != {"total"}
        if scored and mine.get("total") != other.get("total"):
            yield Difference(pod, f"scores[{node}].total", mine.get("total"), other.get("total"), "total")


def _preemption_differences(pod: str, ours: Result | None, theirs: Result | None) -> Iterator[Difference]:
    if ours is None or theirs is None:
        if (ours is None) != (theirs is None):
            yield Difference(pod, "preemption", ours, theirs, "preemption")
        return
    for field, missing in (("candidates", {}), ("node", None), ("pdbViolations", 0), ("victims", [])):
        mine, other = ours.get(field, missing), theirs.get(field, missing)
        if mine != other:
            yield Difference(pod, f"preemption.{field}", mine, other, f"preemption {field}")
    mine, other = ours.get("ties", []), theirs.get("ties", [])
    if mine != other:
        yield Difference(pod, "preemption.ties", mine, other, "preemption ties")


def _rejection(value: Result | None) -> dict[str, Any] | None:
    """A rejection with its reasons as a multiset: several reasons come in no particular order."""
    if value is None:
        return None
    return {"plugin": value["plugin"], "reasons": sorted(value["reasons"]), "code": value["code"]}


def _owners(*rejections: Result | None) -> str:
    return " / ".join(str(r["plugin"]) if r else "none" for r in rejections)


def _shown(value: object) -> str:
    if isinstance(value, Mapping) and set(value) == {"plugin", "reasons", "code"}:
        reasons: Sequence[str] = value["reasons"]
        return f"{value['plugin']} ({value['code']}): {'; '.join(reasons)}"
    if isinstance(value, str) and len(value) > 60:
        return f"\n        {value!r}"
    return "none" if value is None else repr(value)
