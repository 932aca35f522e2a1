"""Which plugins a case put to the test, by what the oracle says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def exercised(answer: Mapping[str, Any]) -> set[str]:
    """The plugins that made a difference: that rejected some nodes but not all, or gave unequal scores."""
    return {part for result in answer.get("results", ()) for part in _parts(result)}


def _parts(result: Mapping[str, Any]) -> Iterator[str]:
    for point in ("preenqueue", "prefilter"):
        if result.get(point):
            yield f"{result[point]['plugin']} {point}"
    nodes = len(result["feasible"]) + len(result["filtered"])
    rejecting = [rejection["plugin"] for rejection in result["filtered"].values()]
    for plugin in set(rejecting):
        if rejecting.count(plugin) < nodes:
            yield f"{plugin} filter"
    rows = list(result["scores"].values())
    for plugin in {plugin for row in rows for plugin in row} - {"total"}:
        if len({row.get(plugin) for row in rows}) > 1:
            yield f"{plugin} score"
    preemption = result["preemption"]
    if preemption:
        yield "DefaultPreemption preempts"
        if len(preemption["candidates"]) > 1:
            yield "DefaultPreemption chooses"
        if preemption.get("ties"):
            yield "DefaultPreemption ties"
        if preemption["pdbViolations"]:
            yield "DefaultPreemption breaks a budget"
        if len(preemption["victims"]) > 1:
            yield "DefaultPreemption evicts several"
    if "a terminating pod on the nominated node" in result["message"]:
        yield "DefaultPreemption waits for victims"
    if result.get("nominatedNodeFits"):
        yield "nominated node taken"
    if result.get("retry"):
        yield from _parts(result["retry"])
