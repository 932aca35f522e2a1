"""Explanations from the running engine, and the log of attempts."""

import asyncio

import pytest

from moorage.adapters.inquiry.endpoint import InquiryEndpoint
from moorage.assembly.inquiries import AttemptLog, Inquiries, inquiry_endpoint
from moorage.assembly.startup import StartupError
from moorage.core.engine import Engine
from moorage.core.model.events import NodeApplied, PodBound, PodGone, PodPending
from moorage.runtime.settings import Listen, Settings
from tests.kit.builders import read_node, read_pod
from tests.kit.fakes import FakeClock


class Meter:
    """Counts calls."""

    def __init__(self):
        self.calls = []

    def turn(self, seconds):
        self.calls.append("turn")

    def cycle(self, instructions, seconds):
        self.calls.append("cycle")

    def bound(self, result, seconds):
        self.calls.append("bound")


class Reader:
    """Pods by name."""

    def __init__(self, *pods):
        self.pods = {pod.key: pod for pod in pods}

    async def fetch(self, ref):
        return self.pods.get(ref.key)


class Rig:
    def __init__(self, *pods):
        self.clock = FakeClock()
        self.engine = Engine()
        self.meter = Meter()
        self.log = AttemptLog(self.meter, self.clock)
        self.inquiries = Inquiries(self.engine, Reader(*pods), self.clock, self.log, lambda: True)

    def step(self):
        self.log.cycle(self.engine.step(self.clock.now()), 0.0)

    async def explain(self, name, *, search=True):
        return await self.inquiries.explain("default", name, search)


def test_an_attempt_is_noted():
    pod = read_pod("p", schedulerName="moorage")
    rig = Rig(pod)
    rig.engine.handle(NodeApplied(read_node("a")), rig.clock.now())
    rig.engine.handle(PodPending(pod), rig.clock.now())
    rig.step()
    (attempt,) = rig.log.of(pod.uid)
    assert (attempt["at"], attempt["result"], attempt["node"]) == ("1970-01-12T13:46:40Z", "scheduled", "a")
    assert rig.log.of("nobody") == []


async def test_attempts_in_vain_are_kept_ten_at_the_most():
    pod = read_pod("p", cpu="99", schedulerName="moorage")
    rig = Rig(pod)
    rig.engine.handle(PodPending(pod), rig.clock.now())
    for number in range(13):
        rig.engine.handle(
            NodeApplied(read_node(f"n{number}", allocatable={"cpu": "100"}, unschedulable=True)), 0
        )
        rig.engine.queue.retry_now(pod.uid, rig.clock.now())
        rig.step()
        rig.clock.time += 60
    attempts = (await rig.explain("p"))["attempts"]
    assert len(attempts) == 10
    assert attempts[-1]["number"] - attempts[0]["number"] == 9
    assert attempts[-1]["plugins"] == ["NodeUnschedulable"]


async def test_the_meter_hears_everything():
    rig = Rig()
    rig.log.turn(1)
    rig.log.cycle([], 1)
    rig.log.bound(None, 1)  # type: ignore[arg-type]
    assert rig.meter.calls == ["turn", "cycle", "bound"]


async def test_asking_changes_nothing():
    low = read_pod("low", node="a", cpu="4")
    pod = read_pod("p", cpu="5", schedulerName="moorage", preemptionPolicy="Never")
    rig = Rig(pod, low)
    rig.engine.handle(NodeApplied(read_node("a")), rig.clock.now())
    rig.engine.handle(PodBound(low), rig.clock.now())
    rig.engine.handle(PodPending(pod), rig.clock.now())
    rig.step()
    before = rig.engine.stats(), rig.engine.evaluate(pod, rig.clock.now())
    found = await rig.explain("p")
    assert found["wouldHelp"]
    assert (await rig.explain("p", search=False))["wouldHelp"] == []
    bound = await rig.explain("low")
    assert (bound["node"], bound["decision"]["chosen"], bound["wouldHelp"]) == ("a", "a", [])
    assert (rig.engine.stats(), rig.engine.evaluate(pod, rig.clock.now())) == before
    assert rig.engine.step(rig.clock.now()) == []


async def test_a_pod_that_goes_during_the_search():
    low = [read_pod(f"low-{i}", node="a", cpu="1") for i in range(4)]
    pod = read_pod("p", cpu="4", schedulerName="moorage", preemptionPolicy="Never")
    rig = Rig(pod)
    rig.engine.handle(NodeApplied(read_node("a")), rig.clock.now())
    for each in low:
        rig.engine.handle(PodBound(each), rig.clock.now())
    asking = asyncio.create_task(rig.explain("p"))
    for each in low[:3]:
        for _ in range(3):
            await asyncio.sleep(0)
        rig.engine.handle(PodGone(each.ref), rig.clock.now())
    assert ["deletePod"] in [[step["action"] for step in one["steps"]] for one in (await asking)["wouldHelp"]]
    assert [on.key for on in rig.engine.cache.pods_on("a")] == ["default/low-3"]


async def test_pods_that_are_not_there():
    ended = read_pod("ended", node="a", status={"phase": "Succeeded"})
    rig = Rig(ended)
    assert await rig.explain("ended") is None
    assert await rig.explain("nobody") is None


def test_a_certificate_that_cannot_be_used(tmp_path):
    (tmp_path / "cert").write_text("no")
    settings = Settings(
        explain_listen=Listen("10.0.0.1", 1),
        explain_tls_cert=str(tmp_path / "cert"),
        explain_tls_key=str(tmp_path / "key"),
    )
    with pytest.raises(StartupError, match="explain-tls-cert"):
        inquiry_endpoint(settings, None, Rig().inquiries)  # type: ignore[arg-type]
    plain = inquiry_endpoint(Settings(), None, Rig().inquiries)  # type: ignore[arg-type]
    assert isinstance(plain, InquiryEndpoint)
