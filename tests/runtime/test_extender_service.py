"""The service behind the extender: answers when it can, binds what it may, and once only."""

import asyncio

import pytest

from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.events import BindFailed, BindFailure, NodeApplied, PolicyApplied
from moorage.core.model.extender import Filtered, NoAnswer, Preempted, Prioritized
from moorage.core.model.pod import PodRef
from moorage.core.model.policy import LimitRule
from moorage.core.profile import bare_profile
from moorage.runtime.extender_service import ExtenderService
from tests.kit.fakes import FakeBinder, FakeClock, FakeReader
from tests.kit.models import make_node, make_pod
from tests.kit.policy_builders import make_policy


class Rig:
    def __init__(self, *pods, binds=True):
        self.engine = Engine(EngineConfig(profiles={"moorage": bare_profile()}))
        self.reader = FakeReader(**{pod.name: pod for pod in pods})
        self.binder = FakeBinder()
        self.unready = None
        self.clock = FakeClock()
        self.service = ExtenderService(
            self.engine,
            reader=self.reader,
            binder=self.binder if binds else None,
            clock=self.clock,
            names=frozenset({"default-scheduler"}),
            unready=lambda: self.unready,
        )
        for name in "ab":
            self.service.handle(NodeApplied(make_node(name, labels={"kubernetes.io/hostname": name})))

    async def bind(self, name, node="a", uid=None):
        return await self.service.bind(PodRef("default", name, uid or f"uid-{name}"), node)


def pod(name, **fields):
    return make_pod(name, **{"scheduler_name": "default-scheduler", **fields})


def test_there_is_no_answer_before_all_is_known():
    rig = Rig()
    rig.unready = "the cluster's state has not synced yet"
    answer = NoAnswer(rig.unready)
    assert rig.service.filter(pod("p"), ["a"]) == answer
    assert rig.service.prioritize(pod("p"), ["a"]) == answer
    assert rig.service.preempt(pod("p"), {}, {}) == answer
    rig.unready = None
    assert rig.service.filter(pod("p"), ["a"]) == Filtered(("a",))
    assert rig.service.prioritize(pod("p"), ["a"]) == Prioritized((("a", 0),))
    assert rig.service.preempt(pod("p"), {}, {}) == Preempted({})
    assert rig.service.knows_node("a")
    assert not rig.service.knows_node("x")


async def test_a_pod_is_bound():
    rig = Rig(pod("p"))
    assert await rig.bind("p") == ""
    assert [(p.ref.name, p.node_name) for p in rig.binder.bound] == [("p", "a")]
    assert rig.engine.cache.assumed_count == 1
    assert rig.service.binding == 0


@pytest.mark.parametrize(
    ("live", "words"),
    [
        (None, "the pod is gone"),
        (pod("p", uid="another"), "the pod is gone"),
        (pod("p", node="b"), "the pod is bound to node b already"),
        (pod("p", deleting=True), "the pod is not pending any more"),
        (pod("p", finished=True), "the pod is not pending any more"),
        (pod("p", gates=("g",)), "the pod has scheduling gates"),
        (
            pod("p", scheduler_name="other"),
            "the pod is of scheduler other, and pods are bound for default-scheduler only",
        ),
    ],
)
async def test_what_is_not_bound(live, words):
    rig = Rig()
    rig.reader.pods["p"] = live
    assert await rig.bind("p") == words
    assert rig.binder.bound == []
    assert len(rig.engine.cache) == 0


async def test_a_pod_that_is_there_already_is_a_success():
    rig = Rig(pod("p", node="a"))
    assert await rig.bind("p") == ""
    assert rig.binder.bound == []


async def test_it_binds_only_if_told_to_and_only_when_ready():
    rig = Rig(pod("p"), binds=False)
    assert "--enable-bind" in await rig.bind("p")
    rig = Rig(pod("p"))
    rig.unready = "not yet"
    assert await rig.bind("p") == "not yet"
    rig.unready, rig.reader.failures = None, 1
    assert await rig.bind("p") == "the pod cannot be read: not now"


async def test_a_failure_gives_the_place_back():
    rig = Rig(pod("p"))
    ref = PodRef("default", "p", "uid-p")
    rig.binder.answers[ref] = BindFailed(ref, "a", BindFailure.CONFLICT, "taken", 0.0)
    assert await rig.bind("p") == "taken"
    assert len(rig.engine.cache) == 0
    del rig.binder.answers[ref]
    assert await rig.bind("p") == ""


async def test_a_burst_never_overshoots():
    """All bindings are under way at once, and not one more than the limit is written."""
    rig = Rig(*(pod(f"p{i}") for i in range(30)))
    rig.service.handle(PolicyApplied(make_policy("p", limits=(LimitRule("kubernetes.io/hostname", 7),))))
    rig.binder.gate.clear()
    tasks = [asyncio.ensure_future(rig.bind(f"p{i}", "ab"[i % 2])) for i in range(30)]
    while rig.binder.most_at_once < 14 or rig.service.binding > 14:
        await asyncio.sleep(0)
    rig.binder.gate.set()
    said = await asyncio.gather(*tasks)
    assert said.count("") == len(rig.binder.bound) == 14
    assert {words for words in said if words} == {
        'node(s) reached the limit of policy "p" by kubernetes.io/hostname'
    }


async def test_asked_twice_at_once_it_binds_once():
    rig = Rig(pod("p"))
    rig.binder.gate.clear()
    first, second = (asyncio.ensure_future(rig.bind("p")) for _ in range(2))
    await asyncio.sleep(0)
    assert await rig.bind("p", "b") == "the pod is being bound to node a"
    first.cancel()  # who asked has given up, and the binding goes on
    rig.binder.gate.set()
    assert await second == ""
    assert len(rig.binder.bound) == 1


async def test_the_end_waits_for_bindings():
    rig = Rig(pod("p"), pod("q"))
    await rig.service.finish(1.0)
    rig.binder.gate.clear()
    waiting = asyncio.ensure_future(rig.bind("p"))
    await asyncio.sleep(0)
    ending = asyncio.ensure_future(rig.service.finish(30.0))
    await asyncio.sleep(0)
    rig.binder.gate.set()
    await ending
    assert await waiting == ""
    rig.binder.gate.clear()
    late = asyncio.ensure_future(rig.bind("q"))
    await asyncio.sleep(0)
    await rig.service.finish(0.01)
    with pytest.raises(asyncio.CancelledError):
        await late


@pytest.mark.looptime
async def test_a_binding_that_no_stream_shows_is_looked_up():
    """The pod was deleted meanwhile: its place is free again."""
    rig = Rig(pod("p"))
    clock = rig.clock
    assert await rig.bind("p") == ""
    rig.reader.pods["p"] = None
    running = asyncio.ensure_future(rig.service.run())
    rig.reader.failures = 1
    clock.time += 100
    await asyncio.sleep(1)
    assert len(rig.engine.cache) == 1  # it could not be read
    clock.time += 100
    await asyncio.sleep(1)
    assert len(rig.engine.cache) == 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
