"""The scheduling loop on a scripted engine: what it feeds in, carries out, and when it rests and ends."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from moorage.core.model.events import (
    BindFailure,
    BindSucceeded,
    EvictionFinished,
    ExtenderAnswered,
    NodeGone,
    PodFetched,
    VolumesNotPrepared,
    VolumesPrepared,
)
from moorage.core.model.extender import Extender, Filtered, NoAnswer, Question, Verb
from moorage.core.model.instructions import (
    Bind,
    BindVolume,
    CallExtender,
    Evict,
    FetchPod,
    Placement,
    PrepareVolumes,
    Record,
    RecordType,
    SetCondition,
)
from moorage.core.model.storage import ClaimRef
from moorage.runtime.loop import SchedulingLoop
from tests.kit.fakes import (
    FakeBinder,
    FakeClock,
    FakeEngine,
    FakeEvictor,
    FakeMeter,
    FakeReader,
    FakeRecorder,
    FakeStatus,
    FakeVolumes,
    plain_pod,
    pod_ref,
)

ONE = Placement(pod_ref("one"), "n")
TWO = Placement(pod_ref("two"), "n")


class Rig:
    """A loop on fakes; ``allowed`` is what ``may_schedule`` says."""

    def __init__(self, **options):
        self.engine, self.clock, self.meter = FakeEngine(), FakeClock(), FakeMeter()
        self.binder, self.status, self.recorder = FakeBinder(), FakeStatus(), FakeRecorder()
        self.reader, self.evictor, self.volumes = FakeReader(), FakeEvictor(), FakeVolumes()
        self.allowed = True
        self.loop = SchedulingLoop(
            self.engine,
            binder=self.binder,
            evictor=self.evictor,
            volumes=self.volumes,
            status=self.status,
            recorder=self.recorder,
            reader=self.reader,
            clock=self.clock,
            meter=self.meter,
            may_schedule=lambda: self.allowed,
            **options,
        )

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.loop.run())
        try:
            yield task
        finally:
            self.loop.stop()
            await task

    async def until(self, condition):
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.001)


async def test_events_reach_the_engine_in_order():
    rig = Rig()
    rig.loop.submit(NodeGone("before"))
    async with rig.running():
        for name in ("a", "b"):
            rig.loop.submit(NodeGone(name))
        await rig.until(lambda: len(rig.engine.handled) == 3)
    assert rig.engine.handled == [NodeGone("before"), NodeGone("a"), NodeGone("b")]


async def test_each_instruction_goes_to_its_port():
    rig = Rig()
    record = Record(ONE.ref, RecordType.NORMAL, "Scheduled", "text", "Binding")
    condition = SetCondition(TWO.ref, "1", "Unschedulable", "text")
    rig.engine.script.extend([[Bind((ONE,)), record], [condition]])
    async with rig.running():
        await rig.until(lambda: BindSucceeded(ONE.ref, "n") in rig.engine.handled)
    assert rig.binder.bound == [ONE]
    assert rig.recorder.records == [record]
    assert condition in rig.status.calls
    assert [len(c) for c in rig.meter.cycles] == [2, 1]


async def test_what_came_of_an_eviction_returns_as_an_event():
    rig = Rig()
    rig.evictor.error = "no way"
    eviction = Evict(ONE.ref, "moorage", "n", (TWO.ref,))
    rig.engine.script.append([eviction])
    async with rig.running():
        await rig.until(lambda: rig.engine.handled)
    assert rig.evictor.evictions == [eviction]
    assert rig.engine.handled == [EvictionFinished(ONE.ref, "no way")]


class FakeExtenders:
    """Answers every question with the same."""

    def __init__(self, answer):
        self.answer = answer
        self.questions: list[Question] = []

    async def ask(self, question):
        self.questions.append(question)
        await asyncio.sleep(0)
        return self.answer


async def test_what_an_extender_says_returns_as_an_event():
    question = Question(Extender("http://x"), Verb.FILTER, ONE.ref, ("n",))
    extenders = FakeExtenders(Filtered(("n",)))
    rig = Rig(extenders=extenders)
    rig.engine.script.append([CallExtender(7, question)])
    async with rig.running():
        await rig.until(lambda: rig.engine.handled)
    assert extenders.questions == [question]
    assert rig.engine.handled == [ExtenderAnswered(7, Filtered(("n",)))]


async def test_without_extenders_a_question_is_answered_all_the_same():
    rig = Rig()
    question = Question(Extender("http://x"), Verb.FILTER, ONE.ref, ("n",))
    rig.engine.script.append([CallExtender(7, question)])
    async with rig.running():
        await rig.until(lambda: rig.engine.handled)
    (event,) = rig.engine.handled
    assert isinstance(event, ExtenderAnswered)
    assert isinstance(event.answer, NoAnswer)


async def test_what_came_of_a_preparation_returns_as_an_event():
    rig = Rig()
    order = PrepareVolumes(ONE.ref, 7, (BindVolume("v", "1", ClaimRef("default", "c", "uid-c")),))
    rig.engine.script.append([order])
    async with rig.running():
        await rig.until(lambda: rig.engine.handled)
        rig.volumes.failure = BindFailure.CONFLICT
        rig.engine.script.append([order])
        rig.loop.wake()
        await rig.until(lambda: len(rig.engine.handled) == 2)
    assert rig.volumes.orders == [order, order]
    assert rig.engine.handled == [
        VolumesPrepared(ONE.ref, 7, ("0",)),
        VolumesNotPrepared(ONE.ref, 7, BindFailure.CONFLICT, "no"),
    ]


async def test_decisions_go_on_while_a_bind_waits():
    rig = Rig()
    rig.binder.gate.clear()
    rig.engine.script.extend([[Bind((ONE,))], [Bind((TWO,))]])
    async with rig.running():
        await rig.until(lambda: not rig.engine.script)
        assert rig.binder.bound == []
        rig.binder.gate.set()
        await rig.until(lambda: len(rig.binder.bound) == 2)


async def test_nothing_is_decided_far_ahead_of_the_binds():
    rig = Rig(max_binds=2)
    rig.binder.gate.clear()
    everyone = [Placement(pod_ref(f"p{i}"), "n") for i in range(10)]
    rig.engine.script.extend([[Bind((p,))] for p in everyone])
    async with rig.running():
        await rig.until(lambda: rig.loop.binding.waiting == 2)
        await asyncio.sleep(0.02)
        assert len(rig.engine.script) == 10 - 4
        rig.binder.gate.set()
        await rig.until(lambda: len(rig.binder.bound) == 10)
    assert rig.binder.bound == everyone


async def test_no_cycle_before_it_is_allowed_and_none_after():
    rig = Rig()
    rig.allowed = False
    rig.engine.script.append([Bind((ONE,))])
    async with rig.running():
        rig.loop.submit(NodeGone("a"))
        await rig.until(lambda: rig.engine.handled)
        assert rig.engine.steps == 0
        rig.allowed = True
        rig.loop.wake()
        await rig.until(lambda: rig.binder.bound == [ONE])
        rig.allowed = False
        rig.engine.script.append([Bind((TWO,))])
        rig.loop.wake()
        await asyncio.sleep(0.02)
    assert rig.binder.bound == [ONE]


async def test_what_was_in_line_when_it_became_allowed_is_known_before_the_first_cycle():
    """The lease or the last list arrives while events are still waiting: deciding without them is deciding stale."""
    rig = Rig(turn_budget=0.002)
    rig.allowed = False
    rig.engine.on_handle = lambda _: time.sleep(0.001)
    known = []
    rig.engine.on_step = lambda: known.append(len(rig.engine.handled))
    rig.engine.script.append([Bind((ONE,))])
    for i in range(20):
        rig.loop.submit(NodeGone(str(i)))
    rig.allowed = True
    async with rig.running():
        await rig.until(lambda: rig.binder.bound)
    assert known[0] == 20


async def test_a_flood_of_events_does_not_keep_pods_from_being_tried():
    rig = Rig(turn_budget=0.004)
    async with rig.running():
        await rig.until(lambda: rig.meter.turns)
        rig.engine.on_handle = lambda _: time.sleep(0.001)
        rig.engine.script.append([Bind((ONE,))])
        for i in range(100):
            rig.loop.submit(NodeGone(str(i)))
        await rig.until(lambda: rig.binder.bound == [ONE])
        assert rig.loop.backlog > 50


async def test_turns_keep_to_the_budget_and_others_get_theirs():
    rig = Rig(turn_budget=0.005)
    rig.engine.on_step = lambda: time.sleep(0.001)
    rig.engine.script.extend([[Record(ONE.ref, RecordType.NORMAL, "r", "m", "a")]] * 40)
    beats = 0
    async with rig.running():
        while rig.engine.script:
            beats += 1
            await asyncio.sleep(0)
    assert beats > 5
    assert max(rig.meter.turns) < 0.05


async def test_it_wakes_at_the_engines_deadline():
    rig = Rig()
    async with rig.running():
        await asyncio.sleep(0.02)
        rig.engine.wake = rig.clock.time + 0.05
        rig.loop.wake()
        await asyncio.sleep(0)
        steps = rig.engine.steps
        rig.engine.script.append([Bind((ONE,))])
        started = time.monotonic()
        await rig.until(lambda: rig.binder.bound)
        assert 0.03 < time.monotonic() - started < 0.5
        assert rig.engine.steps > steps


async def test_it_rests_when_there_is_nothing_to_do():
    rig = Rig()
    rig.engine.wake = rig.clock.time + 3600
    async with rig.running():
        await asyncio.sleep(0.1)
        assert len(rig.meter.turns) < 5
        assert rig.loop.idle_for() < 2


async def test_an_overdue_deadline_while_not_allowed_is_no_busy_loop():
    rig = Rig()
    rig.allowed = False
    rig.engine.wake = rig.clock.time - 5
    async with rig.running():
        await asyncio.sleep(0.1)
        assert len(rig.meter.turns) < 5


@pytest.mark.looptime
async def test_a_pod_is_read_until_the_api_server_answers():
    rig = Rig()
    rig.reader.pods["one"] = pod = plain_pod("one", node_name="n")
    rig.reader.failures = 3
    rig.engine.script.extend([[FetchPod(ONE.ref)], [FetchPod(ONE.ref)]])
    async with rig.running():
        await asyncio.sleep(30)
    assert rig.engine.handled == [PodFetched(ONE.ref, pod)]
    assert len(rig.reader.asked) == 4


async def test_stopping_begins_no_cycle_and_ends_the_binds_in_flight():
    rig = Rig()
    rig.binder.gate.clear()
    rig.engine.script.append([Bind((ONE,))])
    async with rig.running():
        await rig.until(lambda: not rig.engine.script)
        await asyncio.sleep(0)
        rig.engine.script.append([Bind((TWO,))])
        rig.loop.stop()
        asyncio.get_running_loop().call_later(0.02, rig.binder.gate.set)
    assert rig.binder.bound == [ONE]
    assert rig.engine.handled == [BindSucceeded(ONE.ref, "n")]


async def test_what_the_last_binds_led_to_is_recorded():
    rig = Rig()
    rig.binder.gate.clear()
    rig.engine.script.append([Bind((ONE,))])
    record = Record(ONE.ref, RecordType.NORMAL, "Scheduled", "text", "Binding")
    async with rig.running():
        await rig.until(lambda: not rig.engine.script)
        await asyncio.sleep(0)
        rig.loop.stop()
        rig.engine.script.append([record, Bind((TWO,))])
        rig.binder.gate.set()
    assert rig.recorder.records == [record]
    assert rig.binder.bound == [ONE]


async def test_a_failed_task_ends_the_loop_with_its_error():
    rig = Rig()
    rig.binder.answers[ONE.ref] = RuntimeError("a bug")
    rig.engine.script.append([Bind((ONE,))])
    with pytest.raises(RuntimeError, match="a bug"):
        await rig.loop.run()


async def test_a_failed_engine_ends_the_loop_with_its_error():
    rig = Rig()

    def fail():
        raise ValueError("a bug")

    rig.engine.on_step = fail
    with pytest.raises(ValueError, match="a bug"):
        await rig.loop.run()


async def test_cancelling_leaves_nothing_behind():
    rig = Rig()
    rig.binder.gate.clear()
    rig.engine.script.append([Bind((ONE,)), FetchPod(TWO.ref)])
    task = asyncio.create_task(rig.loop.run())
    await rig.until(lambda: not rig.engine.script)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
