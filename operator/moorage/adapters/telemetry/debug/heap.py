"""What memory is used for: objects by type, and what is allocated during some seconds and still there, by line."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

_SLICE = 20_000
_MOST = 40


async def summary(seconds: float) -> dict[str, Any]:
    """Sizes in bytes.  ``growth`` needs ``seconds`` above 0, and makes everything slower for as long.

    Objects that the collector was told to leave alone (``gc.freeze``, once the caches have synced) are only counted as
    ``frozen``: what grows later is not among them.
    """
    growth = await _growth(seconds) if seconds > 0 else []
    return {
        "resident": _resident(),
        "frozen": gc.get_freeze_count(),
        "collections": [generation["collections"] for generation in gc.get_stats()],
        "objects": await _objects(),
        "seconds": seconds,
        "growth": growth,
    }


async def _objects() -> list[dict[str, Any]]:
    """How many objects there are of each type, of those that the collector looks at; counted in slices."""
    everything = gc.get_objects()
    counts: Counter[type] = Counter()
    for start in range(0, len(everything), _SLICE):
        counts.update(map(type, everything[start : start + _SLICE]))
        await asyncio.sleep(0)
    return [
        {"type": f"{kind.__module__}.{kind.__qualname__}", "count": count}
        for kind, count in counts.most_common(_MOST)
    ]


async def _growth(seconds: float) -> list[dict[str, Any]]:
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        before = None if ours else tracemalloc.take_snapshot()
        await asyncio.sleep(seconds)
        after = await asyncio.to_thread(tracemalloc.take_snapshot)
    finally:
        if ours:
            tracemalloc.stop()
    if before is None:
        found = [(each.traceback, each.size, each.count) for each in after.statistics("lineno")]
    else:
        compared = after.compare_to(before, "lineno")
        found = [(each.traceback, each.size_diff, each.count_diff) for each in compared]
    found.sort(key=lambda each: -each[1])
    return [
        {"line": f"{trace[0].filename}:{trace[0].lineno}", "bytes": size, "blocks": count}
        for trace, size, count in found[:_MOST]
        if size > 0
    ]


def _resident() -> int | None:
    """Bytes of memory that the process has, None where the system does not tell that way."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
