"""Two replicas of the scheduler, each by way of a proxy of its own, so that who sent which Binding is known."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from typing import Self

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.operator import Operator
from tests.kit.proxy import Delay, Passed, Proxy

#: How long anything is waited for: the machine may be busy with other things.
PATIENCE = 60.0
_BINDING = re.compile(r"/pods/([^/]+)/binding$")


class Replica:
    """One replica and its proxy."""

    def __init__(
        self, control_plane: ControlPlane, stack: ExitStack, *args: str, hurried: bool = True
    ) -> None:
        self.proxy = stack.enter_context(Proxy(control_plane))
        kubeconfig = self.proxy.kubeconfig(control_plane.kubeconfig)
        self.operator = stack.enter_context(
            Operator(control_plane, *args, kubeconfig=kubeconfig, hurried=hurried)
        )
        self.process = self.operator.process

    def slow_down(self, seconds: float = 0.05) -> None:
        """Let each of its Bindings take as long from now on, so that a backlog lasts."""
        self.proxy.on("POST", "/binding$", Delay(seconds), times=None)

    @property
    def leads(self) -> bool:
        """Whether it may schedule now."""
        return self.operator.metric("moorage_leading") == 1

    def bindings(self) -> list[Passed]:
        """The Bindings it has sent that were answered, or whose sender is gone, in the order of their end."""
        return [p for p in list(self.proxy.passed) if p.method == "POST" and _BINDING.search(p.path)]

    def bound(self) -> Counter[str]:
        """How often the API server took a Binding from it, by pod."""
        return Counter(_BINDING.findall(p.path)[0] for p in self.bindings() if p.status == 201)


class Pair:
    """A leader and a warm standby; a context manager that stops both."""

    def __init__(self, control_plane: ControlPlane, *args: str, hurried: bool = True) -> None:
        self._control_plane = control_plane
        self._args = args
        self._hurried = hurried
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.first = Replica(self._control_plane, stack, *self._args, hurried=self._hurried)
            self.cluster.wait_for(lambda: self.first.leads, PATIENCE, "the first replica leads")
            self.second = Replica(self._control_plane, stack, *self._args, hurried=self._hurried)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def cluster(self) -> Client:
        """The cluster, as its administrator."""
        return self._control_plane.admin

    def bound(self) -> Counter[str]:
        """How often the API server took a Binding, by pod, whoever sent it."""
        return self.first.bound() + self.second.bound()
