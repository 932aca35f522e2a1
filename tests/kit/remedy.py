"""Doing what ``moorage explain`` says would help, on a real API server."""

from __future__ import annotations

import copy
from typing import Any

from tests.controlplane.client import Client

Obj = dict[str, Any]


def do(cluster: Client, remedy: Obj, pod: str, namespace: str = "default") -> None:
    """Take all steps of a remedy for a pod, one after the other."""
    for step in remedy["steps"]:
        _step(cluster, step, pod, namespace)


def _step(cluster: Client, step: Obj, pod: str, namespace: str) -> None:
    path = f"/api/v1/nodes/{step.get('node', '')}"
    match step["action"]:
        case "ungate":
            where = f"/api/v1/namespaces/{namespace}/pods/{pod}"
            gates = cluster.request("GET", where)["spec"]["schedulingGates"]
            left = [gate for gate in gates if gate["name"] != step["gate"]]
            _patch(cluster, where, [{"op": "replace", "path": "/spec/schedulingGates", "value": left}])
        case "uncordon":
            _merge(cluster, path, {"spec": {"unschedulable": None}})
        case "removeTaint":
            taints = cluster.request("GET", path)["spec"].get("taints", [])
            _merge(cluster, path, {"spec": {"taints": [t for t in taints if _taint(t) != step["taint"]]}})
        case "setLabel":
            _merge(cluster, path, {"metadata": {"labels": {step["key"]: step["value"]}}})
        case "removeLabel":
            _merge(cluster, path, {"metadata": {"labels": {step["key"]: None}}})
        case "addResource":
            node = cluster.request("GET", path)
            has = int(_base_units(step["resource"], node["status"]["allocatable"].get(step["resource"], "0")))
            amount = has + step["amount"]
            text = f"{amount}m" if step["resource"] == "cpu" else str(amount)
            _merge(cluster, f"{path}/status", {"status": {"allocatable": {step["resource"]: text}}})
        case "addNode":
            cluster.apply([_like(cluster.request("GET", f"/api/v1/nodes/{step['like']}"), step["node"])])
        case "deletePod":
            space, _, name = step["pod"].partition("/")
            cluster.request("DELETE", f"/api/v1/namespaces/{space}/pods/{name}", {"gracePeriodSeconds": 0})
        case other:
            raise AssertionError(f"a step that this test cannot take: {other}")


def _merge(cluster: Client, path: str, body: Obj) -> None:
    cluster.request("PATCH", path, body, content_type="application/merge-patch+json")


def _patch(cluster: Client, path: str, body: list[Obj]) -> None:
    cluster.request("PATCH", path, body, content_type="application/json-patch+json")


def _taint(taint: Obj) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _base_units(resource: str, text: str) -> int:
    """Milli-CPU, or whole units; only as the tests write amounts."""
    if resource == "cpu":
        return int(text[:-1]) if text.endswith("m") else int(text) * 1000
    for suffix, factor in (("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30)):
        if text.endswith(suffix):
            return int(text[:-2]) * factor
    return int(text)


def _like(node: Obj, name: str) -> Obj:
    new = {"apiVersion": "v1", "kind": "Node", **copy.deepcopy(node)}
    labels = new["metadata"].get("labels", {})
    if "kubernetes.io/hostname" in labels:
        labels["kubernetes.io/hostname"] = name
    new["metadata"] = {"name": name, "labels": labels}
    taints = [t for t in new["spec"].get("taints", []) if not t["key"].startswith("node.kubernetes.io/")]
    new["spec"] = {"taints": taints}
    return new
