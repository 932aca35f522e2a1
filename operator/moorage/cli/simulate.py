"""``moorage simulate``: place the pending pods of ordinary manifests, and show where each went and why."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import click

from moorage.adapters.kube.fields import Reader
from moorage.cli.cluster import Cluster, Intake
from moorage.cli.manifests import find, read
from moorage.cli.plugin_files import Refreshed, load_plugins, split
from moorage.core.engine import EngineConfig
from moorage.core.model.decision import Decision
from moorage.core.model.events import PodBound, PodPending
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.profile import NO_ADDITIONS, Additions, default_profile

PLACED, BAD_INPUT, NOT_ALL_PLACED = 0, 2, 3


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of it: the decision for each pod in the order they were tried, and who is where afterwards."""

    tried: Sequence[tuple[Pod, Decision]]
    nodes: Sequence[Node]
    bound: Sequence[Pod]
    left_alone: int = 0  # pending pods of scheduler names that were not asked for

    @property
    def placed(self) -> int:
        """How many pods found a node."""
        return sum(decision.chosen is not None for _, decision in self.tried)


@click.command("simulate", short_help="Place the pods of manifests, without a cluster, and show why.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="FILE",
    help="Policies in force, as a manifest or a folder; may be given several times.",
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "html"]), default="table", show_default=True
)
@click.option("--now", metavar="TIME", help="The time it is, as in 2030-01-01T22:00:00Z; default: the clock.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    metavar="NAME",
    help="Place only pods of this scheduler name; may be given several times. Default: all pending pods.",
)
@click.option(
    "--node-ready-guard/--no-node-ready-guard",
    default=False,
    show_default=True,
    help="Count nodes that report not to be ready as tainted, as `moorage run` does.",
)
def simulate(
    files: tuple[str, ...],
    policies: tuple[str, ...],
    output: str,
    now: str | None,
    scheduler_names: tuple[str, ...],
    node_ready_guard: bool,
) -> None:
    """Place the pending pods of the manifests in FILE... and show where each went, and why.

    FILE is a YAML or JSON manifest, a folder of them, or - for standard input. Nodes, pods that are bound
    already (spec.nodeName), pending ones, policies and NodeMetrics may come in any order, and lists, as
    `kubectl get -o yaml` writes them, are welcome. Pods are placed by priority, then by age, then as they are
    listed. Nothing is written anywhere. A FILE that ends in .py holds plugins of your own (docs/plugins.md).

    Exit status 0: every pod found a node; 3: some did not; 2: the input, or a plugin, is broken.

    \b
    Examples:
      moorage simulate examples/demo
      kubectl get nodes,pods -A -o yaml | moorage simulate - new-deployment-pods.yaml
      moorage simulate cluster.yaml --policy policies/ --now 2030-01-01T23:00:00+01:00
      moorage simulate cluster.yaml my_rules.py
      moorage simulate -o html examples/demo > demo.html
      moorage simulate -o json cluster.yaml | jq '.results[] | select(.chosen == null) | .message'
    """
    from moorage.cli import (
        render,
    )  # rich takes a while to import, and an error in the options should not wait

    instant = time.time() if now is None else _instant(now)
    plugin_files, manifests = split(files)
    if not manifests:
        raise click.UsageError("there is no manifest among the files")
    additions = load_plugins(plugin_files)
    intake = Intake(additions=additions)
    for path in find((*manifests, *policies), intake.problems):
        for obj, source in read(path, intake.problems):
            intake.add(obj, source)
    cluster = intake.cluster(instant)
    if intake.errors:
        render.show_problems(intake.errors, as_json=output == "json")
        sys.exit(BAD_INPUT)
    Refreshed()(additions.plugins)
    with render.progress("placing pods") as advance:
        simulation = run(
            cluster,
            instant,
            scheduler_names,
            node_ready_guard=node_ready_guard,
            brief=output != "json",
            advance=advance,
            additions=additions,
        )
    warnings = [problem for problem in intake.problems if problem.warning]
    if output == "json":
        render.write_json(simulation, warnings)
    elif output == "html":
        from moorage.cli.pages import simulation_page

        render.show_warnings(warnings)
        click.echo(simulation_page(simulation, cluster.bound))
    else:
        render.show_warnings(warnings)
        render.show(simulation, cluster.skipped)
    sys.exit(PLACED if simulation.placed == len(simulation.tried) else NOT_ALL_PLACED)


def run(
    cluster: Cluster,
    now: float,
    scheduler_names: Sequence[str] = (),
    *,
    node_ready_guard: bool = False,
    brief: bool = False,
    advance: Callable[[int, int], None] = lambda done, total: None,
    additions: Additions = NO_ADDITIONS,
) -> Simulation:
    """Place the waiting pods one after the other, with users' plugins as ``additions``.

    With ``brief``, records are reduced to what a table shows.  ``advance`` is told how far it is.
    """
    wanted = [p for p in cluster.waiting if not scheduler_names or p.spec.scheduler_name in scheduler_names]
    queue = sorted((pod for pod in wanted if not pod.deleting), key=lambda pod: (-pod.priority, pod.created))
    names = sorted({pod.spec.scheduler_name for pod in queue}) or [default_profile().scheduler_name]
    config = EngineConfig(
        profiles={name: default_profile(name, additions=additions) for name in names},
        node_ready_guard=node_ready_guard,
    )
    engine = cluster.engine(config, now)
    tried = []
    bound = list(cluster.bound)
    for count, pod in enumerate(queue):
        advance(count, len(queue))
        decision = engine.evaluate(pod, now)
        tried.append((pod, _brief(decision) if brief else decision))
        if decision.chosen is not None:
            placed = replace(pod, node_name=decision.chosen, nominated_node="", started=now)
            engine.reserve(placed)
            engine.handle(PodBound(placed), now)
            bound.append(placed)
        elif decision.clears_nomination and pod.nominated_node:
            engine.handle(PodPending(replace(pod, nominated_node="")), now)
    return Simulation(tried, cluster.nodes, bound, len(cluster.waiting) - len(wanted))


def _instant(text: str) -> float:
    reader = Reader()
    instant = reader.time(text, "--now")
    if reader.problems:
        raise click.BadParameter(reader.problems[0][1], param_hint="--now")
    return instant


def next_best(decision: Decision) -> str | None:
    """The feasible node with the highest score besides the chosen one, the first by name."""
    others = [node for node in decision.scores if node != decision.chosen]
    return min(others, key=lambda node: (-decision.scores[node]["total"], node), default=None)


def _brief(decision: Decision) -> Decision:
    """What a table shows of a decision; with thousands of nodes, full records would take megabytes a pod."""
    shown = [node for node in (decision.chosen, next_best(decision)) if node is not None]
    scores = {node: decision.scores[node] for node in shown}
    return replace(decision, feasible=(), filtered={}, scores=scores)
