"""How good the placements are: how many nodes are used, and how evenly."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from moorage.core.model.quantity import milli_value
from tests.bench.objects import NODE_CPUS
from tests.bench.workloads import COUNTED


@dataclass(frozen=True)
class Placement:
    """Of all bound pods of a run.

    ``nodes_used``: nodes with a counted pod; ``most``: counted pods of the fullest node; ``cpu_stdev``: the standard
    deviation over all nodes of the requested share of their CPUs, in percentage points, all bound pods counted.
    """

    nodes_used: int
    most: int
    cpu_stdev: float


def judge(pods: Iterable[dict[str, Any]], nodes: int) -> Placement:
    """Look at pods as the API server lists them."""
    counted: Counter[str] = Counter()
    milli: Counter[str] = Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node:
            continue
        counted[node] += pod["metadata"]["name"].startswith(COUNTED)
        for container in pod["spec"]["containers"]:
            milli[node] += milli_value(container["resources"]["requests"]["cpu"])
    used = [number for number in counted.values() if number]
    shares = [milli[f"node-{index}"] / (10 * NODE_CPUS) for index in range(nodes)]
    return Placement(len(used), max(used, default=0), statistics.pstdev(shares))
