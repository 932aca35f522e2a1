"""`python -m tests.bench.policies`: what hundreds of policies cost a decision.

The same pods are decided with and without policies, whose selectors must all be tried on them: none of the policies, or
one, selects a pod.  Beside them are pods of which each has labels of its own.  CPU time is counted, so that a busy
machine does not blur the picture.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from moorage.core.engine import Engine
from moorage.core.model.events import NodeApplied, PodPending, PolicyApplied
from moorage.core.model.instructions import Bind
from moorage.core.model.node import Node
from moorage.core.model.pod import OwnerRef, Pod, PodSpec
from moorage.core.model.policy import AvoidedTaint, NodeRules, Policy, PolicyRef, Selection
from moorage.core.model.resources import Requests
from moorage.core.model.selector import LabelSelector, Operator, Requirement

_GIB = 1 << 30
_REQUESTS = Requests({"cpu": 100, "memory": 500 << 20}, 100, 500 << 20)
_APPS = 100


def equals(key: str, value: str) -> LabelSelector:
    """``key In (value)``."""
    return LabelSelector((Requirement(key, Operator.IN, (value,)),))


def policies(number: int, *, keys: int) -> Iterator[Policy]:
    """Policies for one app each, or for a label key that nobody has; every fourth is a canary.

    They rule no node out, so that as many are scored as without them.
    """
    for index in range(number):
        selector = equals(f"key-{index}" if index < keys else "app", f"app-{index}")
        yield Policy(
            PolicyRef("", f"p{index}"),
            uid=f"u{index}",
            canary_percent=50 if index % 4 == 0 else None,
            selection=Selection(selector),
            nodes=NodeRules(avoid_taints=(AvoidedTaint("maintenance"),)),
        )


def pods(number: int, *, unique: bool, selected: bool) -> Iterator[Pod]:
    """Pods of some apps in turn, each with an image of its own; those that no policy selects are of other apps."""
    names = [f"app-{index}" if selected else f"other-{index}" for index in range(_APPS)]
    specs = {
        app: PodSpec(scheduler_name="moorage", requests=_REQUESTS, images=(f"{app}:1",)) for app in names
    }
    for index in range(number):
        app = names[index % _APPS]
        spec = specs[app]
        labels = {"app": app, **({"pod-index": str(index)} if unique else {})}
        owner = OwnerRef("StatefulSet", app, app, "apps/v1")
        yield Pod(
            "default", f"p-{index}", f"u-{index}", spec, _REQUESTS, labels=labels, owner=owner, created=float(index)
        )  # fmt: skip


def measure(nodes: int, count: int, number: int, *, unique: bool, selected: bool) -> float:
    """Microseconds of CPU time of the mean decision over ``count`` pods, taking them in not counted."""
    engine = Engine()
    for index in range(nodes):
        engine.handle(NodeApplied(_node(index)), 0.0)
    for policy in policies(number, keys=number // 2):
        engine.handle(PolicyApplied(policy), 0.0)
    for pod in pods(2 * count, unique=unique, selected=selected):
        engine.handle(PodPending(pod), 0.0)
    _decide(engine, count)
    began = time.process_time()
    _decide(engine, count)
    spent = time.process_time() - began
    return spent / count * 1e6


def _decide(engine: Engine, count: int) -> None:
    for _ in range(count):
        if not any(isinstance(i, Bind) for i in engine.step(1.0)):
            raise RuntimeError("a pod was not placed")


def _node(index: int) -> Node:
    return Node(
        f"node-{index}",
        uid=f"node-{index}",
        labels={"kubernetes.io/hostname": f"node-{index}"},
        allocatable={"cpu": 32_000, "memory": 256 * _GIB, "ephemeral-storage": 500 * _GIB, "pods": 110},
        ready="True",
    )


def main() -> None:
    """Print a row for each workload, with and without policies."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.policies", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--policies", type=int, default=200)
    arguments = parser.parse_args()
    for unique in (False, True):
        for selected in (False, True):
            means = [
                min(
                    measure(arguments.nodes, arguments.pods, number, unique=unique, selected=selected)
                    for _ in range(3)
                )
                for number in (0, arguments.policies)
            ]  # fmt: skip
            kind = f"selected by {'one' if selected else 'none'}{', labels of their own' if unique else ''}"
            share = 100 * (means[1] / means[0] - 1)
            print(f"{kind:44} {means[0]:7.0f} µs  {means[1]:7.0f} µs  {share:+5.1f} %")


if __name__ == "__main__":
    main()
