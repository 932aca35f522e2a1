"""How a simulation is shown: tables for people, JSON for programs.

Tables fit into 100 columns; where the output is not a terminal they are plain text.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import click
import orjson
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from moorage.adapters.kube.validate import Problem
from moorage.cli.simulate import Simulation, next_best
from moorage.core.inquiry.records import decision_record
from moorage.core.model.decision import Decision
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

WIDTH: Final = 100
_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE)
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def show(simulation: Simulation, skipped: Mapping[str, int]) -> None:
    """Everything about a simulation, on standard output."""
    out = console()
    placed = [(pod, decision) for pod, decision in simulation.tried if decision.chosen is not None]
    others = [(pod, decision) for pod, decision in simulation.tried if decision.chosen is None]
    if placed:
        out.print(_placements(placed))
        out.print()
    if others:
        out.print(_failures(others))
        out.print()
    if simulation.nodes:
        out.print(_nodes(simulation.nodes, simulation.bound))
        out.print()
    for line in _notes(simulation, skipped):
        out.print(Text(line, style="dim"))
    out.print(Text(_summary(simulation), style="bold green" if not others else "bold yellow"))


def write_json(simulation: Simulation, warnings: Sequence[Problem]) -> None:
    """The decision records and the nodes afterwards as one JSON object on standard output."""
    on_node = _by_node(simulation.bound)
    document = {
        "results": [decision_record(decision, pod) for pod, decision in simulation.tried],
        "nodes": {
            node.name: {
                "pods": [pod.key for pod in on_node.get(node.name, [])],
                "requested": dict(used_on(node, on_node.get(node.name, []))),
                "allocatable": dict(node.allocatable),
            }
            for node in simulation.nodes
        },
        "placed": simulation.placed,
        "pending": len(simulation.tried) - simulation.placed,
        "warnings": [str(warning) for warning in warnings],
    }
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def show_problems(problems: Sequence[Problem], *, as_json: bool = False) -> None:
    """All that is wrong with the input: on standard error, or as JSON on standard output."""
    if as_json:
        errors = [
            {"file": p.file, "document": p.document, "field": p.field, "message": p.message} for p in problems
        ]
        click.echo(orjson.dumps({"errors": errors}, option=orjson.OPT_INDENT_2).decode())
        return
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    click.echo(f"{_count(len(problems), 'error')}; nothing was placed.", err=True)


def show_warnings(warnings: Sequence[Problem]) -> None:
    """What is odd, on standard error; the same remark about many objects is made once."""
    counts = Counter((warning.field.rpartition(".")[2], warning.message) for warning in warnings)
    seen = set()
    for warning in warnings:
        key = (warning.field.rpartition(".")[2], warning.message)
        if key in seen:
            continue
        seen.add(key)
        more = f" (and {counts[key] - 1} more)" if counts[key] > 1 else ""
        click.echo(f"warning: {warning}{more}", err=True)


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error while something takes long, if a person watches."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def console() -> Console:
    """Standard output, 100 columns wide where it is no terminal."""
    made = Console(highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = WIDTH
    return made


def _placements(placed: Sequence[tuple[Pod, Decision]]) -> Table:
    result = table("Placed", "Pod", "Node", "Score", "Next best", "Why (score vs. the next best's)")
    result.columns[2].justify = "right"
    for pod, decision in placed:
        assert decision.chosen is not None, "only placed pods come here"
        score = decision.scores.get(decision.chosen, {}).get("total")
        rival = next_best(decision)
        runner_up = "" if rival is None else f"{rival} {decision.scores[rival]['total']}"
        result.add_row(
            pod.key, decision.chosen, "" if score is None else str(score), runner_up, why(decision, pod)
        )
    return result


def why(decision: Decision, pod: Pod) -> str:
    """What spoke for the chosen node, plugin by plugin, where it differs from the next best."""
    assert decision.chosen is not None, "there is a chosen node"
    if decision.chosen == pod.nominated_node:
        return "it was nominated to this node, and fits"
    rival = next_best(decision)
    if rival is None:
        return "the only node that fits"
    ours, theirs = decision.scores[decision.chosen], decision.scores[rival]
    if ours["total"] == theirs["total"]:
        return f"as good as {_count(len(decision.best) - 1, 'other node')}; the first by name"
    plugins = sorted(
        {*ours, *theirs} - {"total"}, key=lambda name: (theirs.get(name, 0) - ours.get(name, 0), name)
    )
    return "\n".join(
        f"{name} {ours.get(name, 0)} vs. {theirs.get(name, 0)}"
        for name in plugins
        if ours.get(name, 0) != theirs.get(name, 0)
    )


def why_not(decision: Decision) -> str:
    """Why a pod stays pending, in kube-scheduler's words."""
    if decision.preenqueue is not None:
        return ", ".join(decision.preenqueue.reasons)
    text = decision.message or decision.error
    if decision.preemption is not None:
        victims = ", ".join(decision.preemption.victims)
        text += f" It would fit on {decision.preemption.node} without {victims}."
    return text


def _failures(others: Sequence[tuple[Pod, Decision]]) -> Table:
    result = table("Not placed", "Pod", "Why not")
    for pod, decision in others:
        result.add_row(pod.key, why_not(decision))
    return result


def _nodes(nodes: Sequence[Node], bound: Sequence[Pod]) -> Table:
    result = table("Nodes afterwards", "Node", "Pods", "CPU", "Memory", "Other resources", "Remarks")
    on_node = _by_node(bound)
    for node in sorted(nodes, key=lambda node: node.name):
        used = used_on(node, on_node.get(node.name, []))
        others = sorted({*used, *node.allocatable} - {CPU, MEMORY, EPHEMERAL_STORAGE, PODS})
        if used.get(EPHEMERAL_STORAGE):
            others.insert(0, EPHEMERAL_STORAGE)
        result.add_row(
            node.name,
            f"{used[PODS]}/{node.allocatable.get(PODS, 0)}",
            _share(node, used, CPU),
            _share(node, used, MEMORY),
            "\n".join(f"{name} {_share(node, used, name, percent=False)}" for name in others),
            "\n".join(_remarks(node)),
        )
    return result


def used_on(node: Node, pods: Sequence[Pod]) -> Mapping[str, int]:
    """What the pods on a node request, and their number."""
    used: Counter[str] = Counter({PODS: len(pods)})
    for pod in pods:
        used.update(pod.requests.amounts)
    return used


def _by_node(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    result: dict[str, list[Pod]] = {}
    for pod in pods:
        result.setdefault(pod.node_name, []).append(pod)
    return result


def _share(node: Node, used: Mapping[str, int], resource: str, *, percent: bool = True) -> str:
    amount, capacity = used.get(resource, 0), node.allocatable.get(resource, 0)
    text = f"{amount_text(resource, amount)}/{amount_text(resource, capacity)}"
    return f"{text} {amount * 100 // capacity}%" if percent and capacity else text


def amount_text(resource: str, amount: int) -> str:
    """An amount as a person writes it: 1.5 cores, 3.2Gi."""
    if resource == CPU:
        return f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    if resource not in _BYTES and not resource.startswith("hugepages-"):
        return str(amount)
    scaled, unit = float(amount), 0
    while scaled >= 1024 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    return f"{scaled:.1f}".removesuffix(".0") + _UNITS[unit]


def _remarks(node: Node) -> Iterator[str]:
    if node.unschedulable:
        yield "cordoned"
    for taint in node.taints:
        yield f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _notes(simulation: Simulation, skipped: Mapping[str, int]) -> Iterator[str]:
    if simulation.left_alone:
        yield f"{_count(simulation.left_alone, 'pending pod')} of other scheduler names left alone."
    if skipped:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(skipped.items()))
        yield f"Objects without influence here: {kinds}."


def _summary(simulation: Simulation) -> str:
    total = len(simulation.tried)
    if not total:
        return "There is no pending pod to place."
    if simulation.placed == total:
        return f"{_count(total, 'pending pod')}: all placed."
    return f"{_count(total, 'pending pod')}: {simulation.placed} placed, {total - simulation.placed} not."


def table(title: str, *columns: str) -> Table:
    """An empty table."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
