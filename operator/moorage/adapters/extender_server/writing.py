"""The protocol's results: what is answered to kube-scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from moorage.core.model.extender import Filtered, Preempted, Prioritized


def filter_result(
    filtered: Filtered, names: Sequence[str], nodes: Sequence[Mapping[str, Any]] | None
) -> bytes:
    """``ExtenderFilterResult``: names where names were sent, and else just the objects that were sent."""
    listed = None
    if nodes is not None:
        passed = set(filtered.passed)
        kept = [node for name, node in zip(names, nodes, strict=True) if name in passed]
        listed = {"metadata": {}, "items": kept}
    return orjson.dumps(
        {
            "Nodes": listed,
            "NodeNames": filtered.passed if nodes is None else None,
            "FailedNodes": filtered.failed,
            "FailedAndUnresolvableNodes": filtered.unresolvable,
            "Error": "",
        }
    )


def priority_list(prioritized: Prioritized) -> bytes:
    """``HostPriorityList``, which is a bare list."""
    return orjson.dumps([{"Host": name, "Score": score} for name, score in prioritized.scores])


def preemption_result(preempted: Preempted) -> bytes:
    """``ExtenderPreemptionResult``: UIDs, in whichever form the victims were sent."""
    return orjson.dumps(
        {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
                for node, (uids, violations) in preempted.victims.items()
            }
        }
    )


def error(text: str) -> bytes:
    """A result that consists of its ``Error`` field: of filter and bind, and of everything that is refused."""
    return orjson.dumps({"Error": text})
