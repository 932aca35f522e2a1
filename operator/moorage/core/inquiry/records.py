"""Decisions and explanations as data for JSON; keys that would say nothing are absent.

Nothing of a pod's containers is in them: no commands, no environment, no names of secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from moorage.core.inquiry.explanation import Explanation
from moorage.core.inquiry.remedies import Remedy
from moorage.core.inquiry.trial import steps_of
from moorage.core.model.decision import Decision, Rejection
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod


def decision_record(decision: Decision, pod: Pod) -> dict[str, Any]:
    """A decision as ``moorage decide`` writes it."""
    result: dict[str, Any] = {
        "pod": pod.key,
        "feasible": list(decision.feasible),
        "filtered": {node: rejection_record(decision.filtered[node]) for node in sorted(decision.filtered)},
    }
    if decision.preenqueue is not None:
        result["preenqueue"] = rejection_record(decision.preenqueue)
    result["prefilter"] = None if decision.prefilter is None else rejection_record(decision.prefilter)
    result["scores"] = {node: dict(sorted(decision.scores[node].items())) for node in sorted(decision.scores)}
    result["best"] = list(decision.best)
    result["chosen"] = decision.chosen
    if decision.chosen is not None and decision.chosen == pod.nominated_node:
        result["nominatedNodeFits"] = True
    result["message"] = decision.message or decision.error
    result["preemption"] = None
    if decision.preemption is not None:
        preemption = decision.preemption
        result["preemption"] = {
            "node": preemption.node,
            "victims": list(preemption.victims),
            "pdbViolations": preemption.pdb_violations,
            **({"ties": list(preemption.ties)} if preemption.ties else {}),
            "candidates": {node: list(preemption.candidates[node]) for node in sorted(preemption.candidates)},
        }
    if decision.error:
        result["error"] = decision.error
    return result


def rejection_record(rejection: Rejection) -> dict[str, Any]:
    """Who said no, and why."""
    return {"plugin": rejection.plugin, "reasons": list(rejection.reasons), "code": str(rejection.code)}


def explanation_record(explanation: Explanation, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """An explanation; ``nodes`` are the cluster's."""
    pod, entry = explanation.pod, explanation.queue
    record: dict[str, Any] = {
        "pod": pod.key,
        "schedulerName": pod.spec.scheduler_name,
        "priority": pod.priority,
        "node": pod.node_name or None,
        "nominatedNode": pod.nominated_node or None,
        "nodes": explanation.nodes,
        "policies": list(explanation.policies),
        "auditedPolicies": list(explanation.audited),
        "waits": [
            {"for": wait.kind, "text": wait.text, **({"until": moment(wait.until)} if wait.until else {})}
            for wait in explanation.waits
        ],
        "funnel": [
            {
                "plugin": stage.plugin,
                "refused": stage.refused,
                "left": stage.left,
                "reasons": dict(stage.reasons),
            }
            for stage in explanation.funnel
        ],
        "wouldHelp": [remedy_record(remedy, nodes) for remedy in explanation.remedies],
        "decision": decision_record(explanation.decision, pod),
    }
    if entry is not None:
        record["queue"] = {
            "place": entry.place,
            "added": moment(entry.added),
            "since": moment(entry.since),
            "attempts": entry.attempts,
            "unschedulable": entry.unschedulable,
            "errors": entry.errors,
            "refusedBy": list(entry.refused_by),
            "backoffUntil": None if entry.backoff_until is None else moment(entry.backoff_until),
            "ahead": entry.ahead,
        }
    return record


def remedy_record(remedy: Remedy, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """What to do, step by step, and where the pod goes then."""
    steps = [step.record() for step in steps_of(remedy.change, nodes)]
    for step in steps:
        if step["action"] == "wait":
            step["until"] = moment(step["until"])
    return {"steps": steps, "placesOn": remedy.node, "alike": remedy.alike}


def moment(instant: float) -> str:
    """RFC 3339, UTC."""
    return datetime.fromtimestamp(instant, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
