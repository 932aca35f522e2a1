"""The protocol's arguments: what kube-scheduler asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.adapters.extender.fields import Malformed, fields, items, mapping, node_name, parsed, text, whole
from moorage.core.model.pod import PodRef

Obj = Mapping[str, Any]

#: What a request's path is made of must not lead elsewhere.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class NodesArgs:
    """``ExtenderArgs``, of filter and prioritize.  ``nodes`` are whole objects, in the order of ``names``, or None."""

    pod: Obj
    names: Sequence[str]
    nodes: Sequence[Obj] | None = None


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """``ExtenderPreemptionArgs``: by node the UIDs of the victims, and how many budgets evicting them breaks.

    ``pods`` are those victims that came as whole objects.
    """

    pod: Obj
    victims: Mapping[str, tuple[tuple[str, ...], int]]
    pods: Sequence[Obj] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class BindingArgs:
    """``ExtenderBindingArgs``."""

    ref: PodRef
    node: str


def read_nodes_args(content: bytes) -> NodesArgs:
    """Raises Malformed.  Whole nodes go before names, where somebody sends both."""
    args = fields(parsed(content), "the body")
    pod = _pod(args)
    nodes, names = args.get("nodes"), args.get("nodenames")
    if nodes is not None:
        listed = items(fields(nodes, "Nodes").get("items"), "Nodes.items")
        found = [node_name(each, "a node of Nodes.items") for each in listed]
        if not all(found):
            raise Malformed("a node of Nodes.items has no name")
        return NodesArgs(pod, found, listed)
    if names is None:
        raise Malformed("one of Nodes and NodeNames is needed")
    listed = items(names, "NodeNames")
    if not all(isinstance(each, str) for each in listed):
        raise Malformed("NodeNames must be a list of strings")
    return NodesArgs(pod, listed)


def read_preemption_args(content: bytes) -> PreemptionArgs:
    """Raises Malformed."""
    args = fields(parsed(content), "the body")
    pod = _pod(args)
    victims: dict[str, tuple[tuple[str, ...], int]] = {}
    whole_pods: list[Obj] = []
    for node, value in mapping(args.get("nodenametovictims"), "NodeNameToVictims").items():
        each = fields(value, f"NodeNameToVictims[{node}]")
        pods = [mapping(item, "a victim") for item in items(each.get("pods"), "Pods")]
        uids = tuple(_uid(fields(item.get("metadata"), "metadata").get("uid")) for item in pods)
        victims[node] = (uids, _violations(each))
        whole_pods += pods
    for node, value in mapping(args.get("nodenametometavictims"), "NodeNameToMetaVictims").items():
        each = fields(value, f"NodeNameToMetaVictims[{node}]")
        uids = tuple(_uid(fields(item, "a victim").get("uid")) for item in items(each.get("pods"), "Pods"))
        victims[node] = (uids, _violations(each))
    return PreemptionArgs(pod, victims, whole_pods)


def read_binding_args(content: bytes) -> BindingArgs:
    """Raises Malformed."""
    args = fields(parsed(content), "the body")
    name, namespace, uid, node = (_needed(args, key) for key in ("PodName", "PodNamespace", "PodUID", "Node"))
    for key, part in (("PodName", name), ("PodNamespace", namespace), ("Node", node)):
        if not _NAME.fullmatch(part):
            raise Malformed(f"{key} is not a name")
    return BindingArgs(PodRef(namespace, name, uid), node)


def _pod(args: Mapping[str, Any]) -> Obj:
    pod = args.get("pod")
    if pod is None:
        raise Malformed("Pod is missing")
    return mapping(pod, "Pod")


def _needed(args: Mapping[str, Any], key: str) -> str:
    value = text(args.get(key.lower()), key)
    if not value:
        raise Malformed(f"{key} is missing")
    return value


def _uid(value: Any) -> str:
    uid = text(value, "UID")
    if not uid:
        raise Malformed("a victim has no UID")
    return uid


def _violations(each: Mapping[str, Any]) -> int:
    return whole(each.get("numpdbviolations"), "NumPDBViolations")
