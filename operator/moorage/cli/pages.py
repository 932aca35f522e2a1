"""The pages of ``explain``, ``simulate`` and ``what-if`` as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from moorage.cli.explain_text import headlines, remedy_text
from moorage.cli.picture import (
    bars_of,
    candidates_section,
    cluster_section,
    funnel_section,
    page,
    rows_table,
    section,
)
from moorage.cli.render import why, why_not
from moorage.cli.simulate import Simulation
from moorage.cli.what_if import Answer
from moorage.cli.what_if_text import answer_record
from moorage.core.inquiry.explanation import Explanation
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod


def explanation_page(
    explanation: Explanation, record: Mapping[str, Any], nodes: Sequence[Node], bound: Sequence[Pod]
) -> str:
    """Why a pod is where it is, or nowhere; the cluster with and without it."""
    decision, pod = explanation.decision, explanation.pod
    others = [other for other in bound if other.uid != pod.uid]
    after = others
    if decision.chosen is not None:
        after = [*others, replace(pod, node_name=decision.chosen)]
    remarks = {name: f"✕ {r.plugin}: {', '.join(r.reasons)}" for name, r in decision.filtered.items()}
    remarks |= {name: f"score {points['total']}" for name, points in decision.scores.items()}
    ranks = {name: -float(points["total"]) - 1 for name, points in decision.scores.items()}
    stages = [
        (s.plugin, s.refused, s.left, ", ".join(f"{count} {text}" for text, count in s.reasons.items()))
        for s in explanation.funnel
    ]
    helps = [(remedy_text(r["steps"]), r["placesOn"], r["alike"]) for r in record["wouldHelp"]]
    return page(
        f"Pod {pod.key}",
        headlines(record),
        (
            section(
                "What would help (any one of these)",
                rows_table(("Do this", "It goes to", "Refused alike"), helps),
            ),
            candidates_section(decision.scores, decision.chosen),
            funnel_section(explanation.nodes, stages),
            cluster_section(bars_of(nodes, others, after, remarks, ranks)),
        ),
    )


def simulation_page(simulation: Simulation, before: Sequence[Pod]) -> str:
    """Where the pods of manifests went, and why."""
    rows = [
        (
            pod.key,
            decision.chosen or "—",
            "; ".join(why(decision, pod).splitlines()) if decision.chosen else why_not(decision),
        )
        for pod, decision in simulation.tried
    ]
    return page(
        "Simulation",
        [f"{simulation.placed} of {len(simulation.tried)} pending pods placed."],
        (
            section("Pods", rows_table(("Pod", "Node", "Why"), rows, most=1000)),
            cluster_section(bars_of(simulation.nodes, before, simulation.bound)),
        ),
    )


def answer_page(answer: Answer) -> str:
    """What would happen."""
    record = answer_record(answer)
    groups = [
        (g["name"], g["placed"], g["asked"], len(g["nodes"]), g.get("message", "")) for g in record["groups"]
    ]
    fits = [
        (name, fit["fit"], len(fit["nodes"]), ", ".join(f"{n} {text}" for text, n in fit["runsOut"].items()))
        for name, fit in record["capacity"].items()
    ]
    evicted = [(e["pod"], e["node"], e["for"]) for e in record["evicted"]]
    moved = [
        (e["pod"], e["node"], e["without"] or "—", e["with"] or "—", ", ".join(e["refusedWhereItIs"]))
        for e in record["elsewhere"]
    ]
    placed = [(one.pod.key, one.node or "—") for one in answer.placed]
    return page(
        "What if",
        [f"{record['placed']} of {len(answer.placed)} pods would be placed."],
        (
            section("Would go", rows_table(("Pods", "Placed", "Asked", "On nodes", "Why not more"), groups)),
            section("Capacity", rows_table(("Pods", "Fit", "On nodes", "Then"), fits)),
            section("Would be evicted", rows_table(("Pod", "Node", "For"), evicted)),
            section(
                "Would be placed elsewhere",
                rows_table(("Pod", "Node", "Without", "With", "Refused there for"), moved),
            ),
            section("Pods", rows_table(("Pod", "Node"), placed)),
            cluster_section(bars_of(answer.before.nodes, answer.before.bound, answer.bound)),
        ),
    )
