"""What would happen, as JSON and as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from moorage.cli.render import console, table
from moorage.cli.what_if import Answer
from moorage.core.inquiry.placing import Capacity, Elsewhere, Placed, reasons_of

_LISTED = 20


def answer_record(answer: Answer) -> dict[str, Any]:
    """All of the answer."""
    return {
        "placed": sum(placed.node is not None for placed in answer.placed),
        "pending": sum(placed.node is None for placed in answer.placed),
        "groups": [_group(name, placed) for name, placed in answer.groups.items()],
        "evicted": [
            {"pod": victim.key, "node": victim.node_name, "for": placed.pod.key}
            for placed in answer.placed
            for victim in placed.victims
        ],
        "capacity": {name: capacity_record(fits) for name, fits in answer.fits.items()},
        "judged": answer.judged,
        "elsewhere": [_elsewhere(item) for item in answer.elsewhere],
    }


def _group(name: str, placed: Sequence[Placed]) -> dict[str, Any]:
    refusal = next((one.refusal for one in placed if one.node is None), None)
    nodes = Counter(one.node for one in placed if one.node is not None)
    result: dict[str, Any] = {
        "name": name,
        "asked": len(placed),
        "placed": nodes.total(),
        "nodes": dict(sorted(nodes.items())),
        "pods": {one.pod.key: one.node for one in placed},
    }
    if refusal is not None:
        words = refusal.preenqueue
        result["message"] = ", ".join(words.reasons) if words else refusal.message or refusal.error
        result["runsOut"] = reasons_of(refusal)
    return result


def capacity_record(fits: Capacity) -> dict[str, Any]:
    """How many fit, and what runs out."""
    return {
        "fit": fits.fit,
        "complete": fits.complete,
        "nodes": dict(sorted(fits.nodes.items())),
        "runsOut": dict(fits.reasons),
        "message": fits.message,
    }


def _elsewhere(item: Elsewhere) -> dict[str, Any]:
    return {
        "pod": item.pod.key,
        "node": item.pod.node_name,
        "without": item.before,
        "with": item.after,
        "refusedWhereItIs": list(item.refused),
    }


def show_answer(answer: Answer) -> None:
    """The answer on standard output."""
    out = console()
    if answer.groups:
        groups = table("Would go", "Pods", "Placed", "Nodes", "What runs out")
        for name, placed in answer.groups.items():
            record = _group(name, placed)
            groups.add_row(
                name, f"{record['placed']}/{record['asked']}", _counted(record["nodes"]), _why(record)
            )
        out.print(groups)
        out.print()
    if answer.fits:
        fitting = table("Capacity", "Pods", "Fit", "On nodes", "Then")
        for name, fits in answer.fits.items():
            number = str(fits.fit) if fits.complete else f"more than {fits.fit}"
            fitting.add_row(
                name, number, str(len(fits.nodes)), "\n".join(_reasons(fits.reasons, fits.message))
            )
        out.print(fitting)
        out.print()
    record = answer_record(answer)
    for title, key, columns in (
        ("Would be evicted", "evicted", ("pod", "node", "for")),
        ("Would be placed elsewhere", "elsewhere", ("pod", "node", "without", "with", "refusedWhereItIs")),
    ):
        if record[key]:
            out.print(_listing(title, record[key], columns))
            out.print()
    for line in _summary(answer, record):
        out.print(Text(line))


def _listing(title: str, items: Sequence[dict[str, Any]], columns: Sequence[str]) -> Any:
    heads = {"for": "For", "without": "Without", "with": "With", "refusedWhereItIs": "Refused there for"}
    result = table(f"{title} ({len(items)})", *(heads.get(name, name.capitalize()) for name in columns))
    for item in items[:_LISTED]:
        cells = (item[name] for name in columns)
        result.add_row(*(", ".join(c) if isinstance(c, list) else c or "nowhere" for c in cells))
    if len(items) > _LISTED:
        result.add_row(f"… and {len(items) - _LISTED} more")
    return result


def _counted(nodes: dict[str, int]) -> str:
    shown = [f"{name} ×{count}" if count > 1 else name for name, count in list(nodes.items())[:_LISTED]]
    more = [f"… and {len(nodes) - _LISTED} more"] if len(nodes) > _LISTED else []
    return ", ".join(shown + more)


def _why(record: dict[str, Any]) -> str:
    if record["placed"] == record["asked"]:
        return ""
    return "\n".join(_reasons(record["runsOut"], record["message"]))


def _reasons(counts: Any, message: str) -> Iterator[str]:
    if not counts:
        yield message
    for reason, count in counts.items():
        yield f"{count} {reason}" if count else reason


def _summary(answer: Answer, record: dict[str, Any]) -> Iterator[str]:
    if answer.placed:
        yield f"{record['placed']} of {len(answer.placed)} pods would be placed. Nothing was changed."
    elif not answer.judged and not answer.fits:
        yield "There is no pod to place. Nothing was changed."
    if answer.judged:
        number = len(answer.elsewhere)
        yield f"Of {answer.judged} pods on nodes that the policies are about, {number} would be placed elsewhere."
