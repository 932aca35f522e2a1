"""`python -m tests.bench.plugins`: what a user's plugin costs a decision, over a built-in one that does the same.

A decision is one step of the engine: every node filtered and scored, the winner assumed.  The built-in twin is a plugin
of the core that asks the same question of the same columns, and is called for each pod as well.  CPU time is counted,
so that a busy machine does not blur the picture; the variants take turns, so that none has the better minutes.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from rich.console import Console
from rich.table import Table

import moorage
from moorage.core.engine import Engine, EngineConfig
from moorage.core.framework.interface import Bools, Ints, Plugin, Reads, Reason, Verdict
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.events import NodeApplied, PodPending
from moorage.core.model.instructions import Bind
from moorage.core.model.pod import Pod
from moorage.core.model.selector import Operator, Requirement
from moorage.core.profile import Additions, default_profile
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from moorage.plugins.declare import collecting, declaration_of
from moorage.plugins.loading import additions
from tests.bench.core import node, spec

_GEN, _PRICE = "example.com/gen", "example.com/price"


class BuiltInFilter:
    """A node's generation is the pod's."""

    name: ClassVar[str] = "BuiltInFilter"
    reads: ClassVar[Reads] = Reads.NODE | Reads.CLUSTER

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Requirement:
        """As node affinity would ask."""
        return Requirement(_GEN, Operator.IN, (pod.labels.get("gen", "1"),))

    def filter(self, state: Requirement, nodes: Nodes) -> Verdict:
        """By the label."""
        failed: Bools = ~nodes.satisfying(state)
        return Verdict((Reason("another generation"),), failed[None, :])

    def wakes_on(self) -> Sequence[WakesOn]:
        """Labels."""
        return (WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),)


class BuiltInScore:
    """The cheaper the better."""

    name: ClassVar[str] = "BuiltInScore"
    reads: ClassVar[Reads] = Reads.NODE | Reads.CLUSTER

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> None:
        """Nothing to prepare."""

    def score(self, state: None, nodes: Nodes) -> Ints:
        """Thousandths of the price."""
        column = nodes.snapshot.label(_PRICE)
        prices = column.numbers()[nodes.taken(column.ids.astype(np.int64))]
        return -(np.nan_to_num(prices) * 1000).astype(np.int64)

    def normalize(self, raw: Ints) -> Ints:
        """From 0 to 100."""
        low, span = int(raw.min(initial=0)), int(np.ptp(raw)) if raw.size else 0
        return (raw - low) * 100 // span if span else np.zeros_like(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing."""
        return ()


def users() -> dict[str, Additions]:
    """A user's plugins that do the same, and do it purely."""
    with collecting():

        @moorage.filter
        def generation(pod: moorage.Pod, nodes: moorage.Nodes) -> moorage.FilterAnswer:
            return nodes.label(_GEN) == pod.labels.get("gen", "1")

        @moorage.score
        def price(pod: moorage.Pod, nodes: moorage.Nodes) -> moorage.ScoreAnswer:
            return -nodes.label_number(_PRICE, default=0)

        @moorage.score(pure=True)
        def pure_price(pod: moorage.Pod, nodes: moorage.Nodes) -> moorage.ScoreAnswer:
            return -nodes.label_number(_PRICE, default=0)

    given = {"a user's filter": generation, "a user's score": price, "a user's pure score": pure_price}
    own = {title: declaration_of(function) for title, function in given.items()}
    return {title: additions([declaration]) for title, declaration in own.items() if declaration is not None}


@dataclass
class Variant:
    """An engine with pods waiting, and what its decisions cost so far, in microseconds."""

    title: str
    engine: Engine
    times: list[float]


def variant(title: str, own: Additions, nodes: int, pods: int) -> Variant:
    """One with these plugins beside the default ones."""
    engine = Engine(EngineConfig(profiles={"moorage": default_profile(additions=own)}))
    rng = random.Random(3)
    for index in range(nodes):
        plain = node(index)
        labels = {**plain.labels, _GEN: "1", _PRICE: f"{rng.random():.3f}"}
        engine.handle(NodeApplied(replace(plain, labels=labels)), 0.0)
    shared = spec(100, 500 << 20)
    for index in range(pods):
        pod = Pod("default", f"p-{index}", f"u-{index}", shared, shared.requests, created=float(index))
        engine.handle(PodPending(pod), 0.0)
    return Variant(title, engine, [])


def measure(nodes: int, pods: int) -> list[Variant]:
    """All variants; raises RuntimeError if one does not place every pod."""
    own: dict[str, Plugin] = {"a built-in filter": BuiltInFilter(), "a built-in score": BuiltInScore()}
    variants = [variant("default profile", Additions(), nodes, pods)]
    variants += [variant(title, Additions((plugin,)), nodes, pods) for title, plugin in own.items()]
    variants += [variant(title, plugins, nodes, pods) for title, plugins in users().items()]
    for _ in range(pods):
        for each in variants:
            begun = time.process_time_ns()
            instructions = each.engine.step(1.0)
            each.times.append((time.process_time_ns() - begun) / 1e3)
            if not any(isinstance(i, Bind) for i in instructions):
                raise RuntimeError(f"{each.title}: a pod was not placed")
    return variants


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=1000)
    arguments = parser.parse_args()
    table = Table(title=f"A plugin beside the default profile, {arguments.nodes:,} nodes, alike pods")
    for name in ("beside it", "median µs", "over the default profile"):
        table.add_column(name, justify="left" if name == "beside it" else "right")
    variants = measure(arguments.nodes, arguments.pods)
    base = statistics.median(variants[0].times)
    for each in variants:
        median = statistics.median(each.times)
        table.add_row(each.title, f"{median:.0f}", f"{median - base:+.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
