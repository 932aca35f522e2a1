"""`python -m tests.bench failover`: the leader is killed in the middle of a backlog; when does the standby go on?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.replicas import Pair

#: The default, which everybody has.
LEASE_DURATION = 15.0
#: What a standby may take beyond the lease until its first Binding.
_BUDGET = 2.0
_PATIENCE = 600.0


@dataclass(frozen=True)
class Failover:
    """``bound_before`` by the killed leader; seconds from its end to the standby's first Binding.

    ``not_once``: pods that were not bound exactly once, with how often.
    """

    pods: int
    bound_before: int
    seconds: float
    not_once: Mapping[str, int]

    @property
    def in_time(self) -> bool:
        """Whether the standby went on within the lease's duration and two seconds."""
        return self.seconds <= LEASE_DURATION + _BUDGET


def measure(pods: int, nodes: int = 200) -> Failover:
    """Kill the leader when it has bound a quarter of the pods; returns when all are bound."""
    with ControlPlane() as plane, Pair(plane, "--max-binds", "20", hurried=False) as pair:
        cluster = plane.admin
        cluster.apply([node(f"n{index}", cpu="32") for index in range(nodes)])
        pair.first.slow_down(0.5)  # or it would be done before the last pod is created
        cluster.apply([pod(f"p{index}", cpu="10m") for index in range(pods)])
        cluster.wait_for(lambda: len(pair.first.bound()) >= pods // 4, _PATIENCE)
        pair.first.process.kill()
        killed = time.monotonic()
        _all_bound(cluster)
        before = len(pair.first.bound())
        if before >= pods or not pair.second.bindings():
            raise RuntimeError(
                f"{before} of {pods} pods were bound before the leader's end: that is not the middle"
            )
        first_bind = min(binding.arrived for binding in pair.second.bindings())
        counts = pair.bound()
        names = (f"p{index}" for index in range(pods))
        not_once = {name: counts[name] for name in names if counts[name] != 1}
    return Failover(pods, before, first_bind - killed, not_once)


def _all_bound(cluster: Client) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not all(cluster.placements("default").values()):
        if time.monotonic() > deadline:
            raise RuntimeError("not all pods are bound")
        time.sleep(0.5)
