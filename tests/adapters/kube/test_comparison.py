"""What is believed, compared with what the API server has."""

import pytest

from moorage.adapters.kube.comparison import Belief, Comparison, Difference
from moorage.adapters.kube.errors import Gone
from tests.kit.fakes import FakeClient


def meta(name, **more):
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, **more}


class Api:
    """A tiny API server: nodes, bound pods and pending pods, in pages of two."""

    def __init__(self):
        self.nodes, self.bound, self.pending = ["n1", "n2", "n3"], {"a": "n1", "b": "n2", "c": "n3"}, ["w"]
        self.gone_once = False

    def answer(self, asked):
        if asked.path == "/api/v1/nodes":
            items = [meta(name) for name in self.nodes]
        elif "spec.nodeName!=" in asked.params["fieldSelector"]:
            items = [meta(name, spec={"nodeName": node}) for name, node in self.bound.items()]
        else:
            assert "spec.schedulerName=moorage" in asked.params["fieldSelector"]
            items = [meta(name) for name in self.pending]
        start = int(asked.params.get("continue", 0))
        if start and self.gone_once:
            self.gone_once = False
            return Gone(410, "Expired", "too old")
        token = str(start + 2) if start + 2 < len(items) else ""
        return {"items": items[start : start + 2], "metadata": {"continue": token}}


class Rig:
    def __init__(self):
        self.api = Api()
        self.nodes = {"n1", "n2", "n3"}
        self.pods = {f"uid-{name}": (f"ns/{name}", node) for name, node in self.api.bound.items()}
        self.assumed: set[str] = set()
        self.pending = {"uid-w": "ns/w"}
        client = FakeClient(default=self.api.answer)
        self.comparison = Comparison(client, self.belief, lambda: ("moorage",), settled=0.0)

    def belief(self):
        return Belief(frozenset(self.nodes), dict(self.pods), frozenset(self.assumed), dict(self.pending))

    async def differences(self):
        return await self.comparison.carry_out()


@pytest.fixture
def rig():
    return Rig()


async def test_no_difference(rig):
    assert await rig.differences() == []


async def test_nodes(rig):
    rig.api.nodes.append("new")
    rig.nodes.add("old")
    assert await rig.differences() == [
        Difference("node", "new", "unknown", "there"),
        Difference("node", "old", "there", "gone"),
    ]


async def test_bound_pods(rig):
    rig.api.bound |= {"d": "n1", "a": "n3"}
    del rig.api.bound["b"]
    assert await rig.differences() == [
        Difference("pod", "ns/a", "on n1", "on n3"),
        Difference("pod", "ns/b", "on n2", "gone"),
        Difference("pod", "ns/d", "unknown", "on n1"),
    ]


async def test_pending_pods(rig):
    rig.api.pending.append("x")
    rig.pending["uid-y"] = "ns/y"
    assert await rig.differences() == [
        Difference("pending pod", "ns/x", "unknown", "waits"),
        Difference("pending pod", "ns/y", "waits", "gone"),
    ]


async def test_a_placement_under_way_is_no_difference(rig):
    """It waits for the API server, and has a node for us; our queue keeps it until its binding is seen."""
    rig.api.pending.append("p")
    rig.pending["uid-p"] = "ns/p"
    rig.pods["uid-p"] = ("ns/p", "n1")
    rig.assumed.add("uid-p")
    assert await rig.differences() == []
    rig.api.pending.remove("p")
    rig.api.bound["p"] = "n1"
    assert await rig.differences() == []


async def test_a_lag_of_the_streams_is_no_difference(rig):
    looks: list[None] = []
    belief = rig.belief

    def catching_up():
        looks.append(None)
        if len(looks) > 1:
            rig.nodes.add("new")
        return belief()

    rig.api.nodes.append("new")
    rig.comparison._believe = catching_up
    assert await rig.differences() == []
    assert len(looks) == 2


async def test_a_page_that_is_too_old(rig):
    rig.api.gone_once = True
    assert await rig.differences() == []
    assert not rig.api.gone_once
