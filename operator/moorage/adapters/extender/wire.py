"""The protocol's JSON: arguments out, results in.

Keys are the names of Go fields, written as they are and read without regard to case, as Go's decoder does; what is
missing or null is the field's zero value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from moorage.core.model.extender import Filtered, Preempted, Prioritized, Victims
from moorage.core.model.pod import PodRef

#: An API object as JSON text, to be put into a larger one as it is.
RawObject = bytes


class BadResult(Exception):
    """The answer is not what the protocol says."""


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
    result = _fields(_parse(content), "the result")
    _raise_error(result)
    names, nodes = result.get("nodenames"), result.get("nodes")
    passed: tuple[str, ...] = ()
    if node_cache_capable and names is not None:
        passed = tuple(_text(name, "NodeNames") for name in _list(names, "NodeNames"))
    elif nodes is not None:
        items = _list(_fields(nodes, "Nodes").get("items"), "Nodes.items")
        passed = tuple(_node_name(item) for item in items)
    return Filtered(
        passed,
        _reasons(result.get("failednodes"), "FailedNodes"),
        _reasons(result.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"),
    )


def read_prioritized(content: bytes) -> Prioritized:
    """``HostPriorityList``, which is a bare list.  Raises BadResult."""
    scores = []
    for item in _list(_parse(content), "the result"):
        priority = _fields(item, "a priority")
        scores.append((_text(priority.get("host"), "Host"), _whole(priority.get("score"), "Score")))
    return Prioritized(tuple(scores))


def read_preempted(content: bytes) -> Preempted:
    """``ExtenderPreemptionResult``.  Raises BadResult."""
    victims = {}
    by_node = _fields(_parse(content), "the result").get("nodenametometavictims")
    for node, value in _mapping(by_node, "NodeNameToMetaVictims").items():
        meta = _fields(value, f"NodeNameToMetaVictims[{node}]")
        uids = tuple(
            _text(_fields(pod, "a victim").get("uid"), "UID") for pod in _list(meta.get("pods"), "Pods")
        )
        victims[node] = (uids, _whole(meta.get("numpdbviolations"), "NumPDBViolations"))
    return Preempted(victims)


def read_bound(content: bytes) -> None:
    """``ExtenderBindingResult``.  Raises BadResult and Refused."""
    _raise_error(_fields(_parse(content), "the result"))


def _parse(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadResult(f"not JSON: {error}") from error


def _raise_error(result: Mapping[str, Any]) -> None:
    text = _text(result.get("error"), "Error")
    if text:
        raise Refused(text)


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadResult(f"{what} must be an object, not {type(value).__name__}")
    return value


def _fields(value: Any, what: str) -> dict[str, Any]:
    return {key.lower(): item for key, item in _mapping(value, what).items()}


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadResult(f"{what} must be a list, not {type(value).__name__}")
    return value


def _text(value: Any, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadResult(f"{what} must be a string, not {type(value).__name__}")
    return value


def _whole(value: Any, what: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise BadResult(f"{what} must be an integer of 64 bits, not {value!r:.40}")
    return value


def _reasons(value: Any, what: str) -> dict[str, str]:
    return {node: _text(reason, f"{what}[{node}]") for node, reason in _mapping(value, what).items()}


def _node_name(item: Any) -> str:
    metadata = _fields(_fields(item, "a node").get("metadata"), "metadata")
    return _text(metadata.get("name"), "metadata.name")
