"""The protocol's JSON: arguments out, results in.

Keys are the names of Go fields, written as they are and read without regard to case, as Go's decoder does; what is
missing or null is the field's zero value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from moorage.adapters.extender.fields import Malformed, fields, items, mapping, node_name, parsed, text, whole
from moorage.core.model.extender import Filtered, Preempted, Prioritized, Victims
from moorage.core.model.pod import PodRef

#: An API object as JSON text, to be put into a larger one as it is.
RawObject = bytes


#: The answer is not what the protocol says.
BadResult = Malformed


class Refused(Exception):
    """The extender says so itself, in its ``Error`` field."""


# -- out -------------------------------------------------------------------------------------------


def node_args(pod: RawObject, nodes: Sequence[RawObject] | None, names: Sequence[str]) -> bytes:
    """``ExtenderArgs``, for filter and prioritize: whole nodes, or without them the names."""
    listed = None
    if nodes is not None:
        listed = {"metadata": {}, "items": [orjson.Fragment(node) for node in nodes]}
    return orjson.dumps(
        {"Pod": orjson.Fragment(pod), "Nodes": listed, "NodeNames": list(names) if nodes is None else None}
    )


def preemption_args(
    pod: RawObject, victims: Mapping[str, Victims], pods: Mapping[str, RawObject] | None
) -> bytes:
    """``ExtenderPreemptionArgs``; ``pods`` are whole victims by UID, without them only the UIDs are sent."""
    whole = meta = None
    if pods is None:
        meta = {
            node: {"Pods": [{"UID": ref.uid} for ref in each.pods], "NumPDBViolations": each.violations}
            for node, each in victims.items()
        }
    else:
        whole = {
            node: {
                "Pods": [orjson.Fragment(pods[ref.uid]) for ref in each.pods],
                "NumPDBViolations": each.violations,
            }
            for node, each in victims.items()
        }
    return orjson.dumps(
        {"Pod": orjson.Fragment(pod), "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta}
    )


def binding_args(ref: PodRef, node_name: str) -> bytes:
    """``ExtenderBindingArgs``."""
    return orjson.dumps(
        {"PodName": ref.name, "PodNamespace": ref.namespace, "PodUID": ref.uid, "Node": node_name}
    )


# -- in --------------------------------------------------------------------------------------------


def read_filtered(content: bytes, *, node_cache_capable: bool) -> Filtered:
    """``ExtenderFilterResult``.  Raises BadResult and Refused."""
    result = fields(parsed(content), "the result")
    _raise_error(result)
    names, nodes = result.get("nodenames"), result.get("nodes")
    passed: tuple[str, ...] = ()
    if node_cache_capable and names is not None:
        passed = tuple(text(name, "NodeNames") for name in items(names, "NodeNames"))
    elif nodes is not None:
        listed = items(fields(nodes, "Nodes").get("items"), "Nodes.items")
        passed = tuple(node_name(item) for item in listed)
    return Filtered(
        passed,
        _reasons(result.get("failednodes"), "FailedNodes"),
        _reasons(result.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"),
    )


def read_prioritized(content: bytes) -> Prioritized:
    """``HostPriorityList``, which is a bare list.  Raises BadResult."""
    scores = []
    for item in items(parsed(content), "the result"):
        priority = fields(item, "a priority")
        scores.append((text(priority.get("host"), "Host"), whole(priority.get("score"), "Score")))
    return Prioritized(tuple(scores))


def read_preempted(content: bytes) -> Preempted:
    """``ExtenderPreemptionResult``.  Raises BadResult."""
    victims = {}
    by_node = fields(parsed(content), "the result").get("nodenametometavictims")
    for node, value in mapping(by_node, "NodeNameToMetaVictims").items():
        meta = fields(value, f"NodeNameToMetaVictims[{node}]")
        uids = tuple(
            text(fields(pod, "a victim").get("uid"), "UID") for pod in items(meta.get("pods"), "Pods")
        )
        victims[node] = (uids, whole(meta.get("numpdbviolations"), "NumPDBViolations"))
    return Preempted(victims)


def read_bound(content: bytes) -> None:
    """``ExtenderBindingResult``.  Raises BadResult and Refused."""
    _raise_error(fields(parsed(content), "the result"))


def _raise_error(result: Mapping[str, Any]) -> None:
    said = text(result.get("error"), "Error")
    if said:
        raise Refused(said)


def _reasons(value: Any, what: str) -> dict[str, str]:
    return {node: text(reason, f"{what}[{node}]") for node, reason in mapping(value, what).items()}
