"""An explanation as text for a terminal, made from its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from rich.text import Text

from moorage.cli.render import amount_text, console, table

#: Nodes that are listed one by one; of more, only the best and how many were refused for what.
_LISTED = 30
_BEST = 10


def show_record(record: Mapping[str, Any]) -> None:
    """The explanation on standard output."""
    out = console()
    for line in headlines(record):
        out.print(Text(line))
    decision = record["decision"]
    if decision["scores"]:
        out.print()
        out.print(_scores(decision))
    if record["funnel"]:
        out.print()
        out.print(_funnel(record))
    if decision["filtered"] and len(decision["filtered"]) <= _LISTED:
        out.print()
        refusals = table("Refused by", "Node", "Plugin", "Why")
        for node, rejection in decision["filtered"].items():
            refusals.add_row(node, rejection["plugin"], ", ".join(rejection["reasons"]))
        out.print(refusals)
    if record.get("attempts"):
        out.print()
        out.print(_attempts(record["attempts"]))
    for line in _help(record):
        click.echo(line)


def headlines(record: Mapping[str, Any]) -> Iterator[str]:
    """What there is to say in sentences."""
    where = f"is on node {record['node']}" if record["node"] else "is pending"
    yield f"Pod {record['pod']} (scheduler {record['schedulerName']}, priority {record['priority']}) {where}."
    if record["policies"]:
        yield f"Shaped by {', '.join(record['policies'])}."
    if record["auditedPolicies"]:
        yield f"Audited only: {', '.join(record['auditedPolicies'])}."
    for wait in record["waits"]:
        until = f" (until {wait['until']})" if "until" in wait else ""
        yield f"It waits for {wait['for']}: {wait['text']}{until}"
    queue = record.get("queue")
    if queue:
        tries = f"{queue['attempts']} attempts, {queue['unschedulable']} of them in vain, {queue['errors']} errors"
        ahead = "" if queue["ahead"] is None else f", {queue['ahead']} pods before it"
        yield f"In the queue ({queue['place']}{ahead}) since {queue['added']}: {tries}."
    decision = record["decision"]
    if record["node"] and decision["chosen"] != record["node"]:
        if decision["chosen"] is None:
            yield f"Were it pending now, no node would take it: {decision['message']}"
        else:
            yield f"Were it pending now, it would go to {decision['chosen']}."


def _scores(decision: Mapping[str, Any]) -> Any:
    scores = decision["scores"]
    ranked = sorted(scores, key=lambda node: (-scores[node]["total"], node))
    result = table(f"Feasible nodes ({len(ranked)})", "Node", "Score", "By plugin")
    for node in ranked[: _LISTED if len(ranked) <= _LISTED else _BEST]:
        parts = ", ".join(f"{name} {points}" for name, points in scores[node].items() if name != "total")
        result.add_row(node, str(scores[node]["total"]), parts)
    if len(ranked) > _LISTED:
        result.add_row(f"… and {len(ranked) - _BEST} more", "", "")
    return result


def _funnel(record: Mapping[str, Any]) -> Any:
    result = table(f"Of {record['nodes']} nodes", "Plugin", "Refuses", "Left", "Why")
    for stage in record["funnel"]:
        why = "\n".join(f"{count} {reason}" for reason, count in stage["reasons"].items())
        result.add_row(stage["plugin"], str(stage["refused"]), str(stage["left"]), why)
    return result


def _attempts(attempts: Sequence[Mapping[str, Any]]) -> Any:
    result = table("Last attempts", "At", "Number", "Result", "Why")
    for one in attempts:
        why = f"on node {one['node']}" if one["node"] else one["message"]
        result.add_row(one["at"], str(one["number"]), one["result"], why)
    return result


def _help(record: Mapping[str, Any]) -> Iterator[str]:
    remedies = record["wouldHelp"]
    if not remedies:
        return
    yield ""
    yield "What would help (each tried on a copy of the cluster; any one of them is enough):"
    for remedy in remedies:
        alike = f" ({remedy['alike']} more nodes are refused in the same words)" if remedy["alike"] else ""
        yield f"- {remedy_text(remedy['steps'])}: it goes to {remedy['placesOn']}{alike}"


def remedy_text(steps: Sequence[Mapping[str, Any]]) -> str:
    """What to do, in words."""
    return ", and ".join(map(_step_text, steps))


def _step_text(step: Mapping[str, Any]) -> str:
    node = step.get("node", "")
    match step["action"]:
        case "ungate":
            return f"remove the scheduling gate {step['gate']}"
        case "wait":
            return f"wait until {step['until']}"
        case "addNode":
            return f"add a node like {step['like']}"
        case "deletePod":
            return f"delete pod {step['pod']} on node {node}"
        case "uncordon":
            return f"uncordon node {node}"
        case "makeReady":
            return f"get node {node} ready"
        case "removeTaint":
            return f"remove taint {step['taint']} from node {node}"
        case "setLabel":
            return f"label node {node} with {step['key']}={step['value']}"
        case "removeLabel":
            return f"remove label {step['key']} from node {node}"
        case "addResource":
            amount = amount_text(step["resource"], step["amount"])
            return f"{amount} more {step['resource']} on node {node}"
    raise AssertionError(f"unknown step {step['action']}")
