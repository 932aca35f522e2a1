"""The binding cycle on fakes: order, bounds and what happens at the end."""

import asyncio

import pytest

from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.instructions import Bind, Placement, SetCondition
from moorage.runtime.binding_cycle import BindingCycle
from tests.kit.fakes import FakeBinder, FakeMeter, FakeStatus, pod_ref


class Rig:
    """A binding cycle on fakes."""

    def __init__(self, limit=3):
        self.binder, self.status, self.meter = FakeBinder(), FakeStatus(), FakeMeter()
        self.results: list[BindSucceeded | BindFailed] = []
        self.cycle = BindingCycle(
            binder=self.binder,
            status=self.status,
            last_look=lambda _: None,
            submit=self.results.append,
            meter=self.meter,
            limit=limit,
        )


def placements(count):
    return tuple(Placement(pod_ref(f"p{i}"), "n") for i in range(count))


async def test_each_placement_is_settled_then_bound_and_answered():
    rig = Rig()
    refused = BindFailed(pod_ref("p1"), "n", BindFailure.CONFLICT, "no")
    rig.binder.answers[pod_ref("p1")] = refused
    async with asyncio.TaskGroup() as tasks:
        rig.cycle.begin(Bind(placements(3)), tasks)
    assert rig.status.calls == [pod_ref("p0"), pod_ref("p1"), pod_ref("p2")]
    assert rig.results == [BindSucceeded(pod_ref("p0"), "n"), refused, BindSucceeded(pod_ref("p2"), "n")]
    assert rig.meter.results == rig.results


async def test_a_bind_waits_for_the_status_write_in_flight(monkeypatch):
    rig = Rig()
    landed = asyncio.Event()

    async def settle(ref):
        await landed.wait()

    monkeypatch.setattr(rig.status, "settle", settle)
    async with asyncio.TaskGroup() as tasks:
        rig.cycle.begin(Bind(placements(1)), tasks)
        await asyncio.sleep(0.01)
        assert rig.binder.bound == []
        landed.set()
    assert rig.binder.bound == list(placements(1))


async def test_no_more_than_the_limit_are_in_flight_and_the_rest_follow_in_order():
    rig = Rig(limit=3)
    rig.binder.gate.clear()
    async with asyncio.TaskGroup() as tasks:
        for placement in placements(7):
            assert rig.cycle.has_room() or len(rig.binder.bound) == 0
            rig.cycle.begin(Bind((placement,)), tasks)
        await asyncio.sleep(0.01)
        assert (rig.cycle.in_flight, rig.cycle.waiting) == (3, 4)
        assert not rig.cycle.has_room()
        rig.binder.gate.set()
    assert rig.binder.most_at_once == 3
    assert [p.ref.name for p in rig.binder.bound] == [f"p{i}" for i in range(7)]
    assert rig.cycle.in_flight == 0


async def test_draining_begins_nothing_more_and_lets_those_in_flight_end():
    rig = Rig(limit=2)
    rig.binder.gate.clear()
    async with asyncio.TaskGroup() as tasks:
        rig.cycle.begin(Bind(placements(4)), tasks)
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, rig.binder.gate.set)
        await rig.cycle.drain(grace=5)
    assert [p.ref.name for p in rig.binder.bound] == ["p0", "p1"]


async def test_draining_cuts_off_what_takes_too_long():
    rig = Rig()
    rig.binder.gate.clear()
    async with asyncio.TaskGroup() as tasks:
        rig.cycle.begin(Bind(placements(2)), tasks)
        await asyncio.sleep(0)
        await rig.cycle.drain(grace=0.01)
    assert rig.results == []


async def test_a_failure_of_the_binder_is_not_hidden():
    rig = Rig()
    rig.binder.answers[pod_ref("p0")] = RuntimeError("a bug")
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as tasks:
            rig.cycle.begin(Bind(placements(1)), tasks)
    assert caught.group_contains(RuntimeError, match="a bug")


async def test_a_condition_set_after_the_bind_began_is_none_of_its_business():
    rig = Rig()
    async with asyncio.TaskGroup() as tasks:
        rig.cycle.begin(Bind(placements(1)), tasks)
        rig.status.set_condition(SetCondition(pod_ref("p0"), "1", "Unschedulable", "no room"))
    assert len(rig.status.calls) == 2


async def test_what_is_begun_while_the_last_worker_ends_is_not_left_lying():
    rig = Rig(limit=1)
    names = [Placement(pod_ref(f"p{i}"), "n") for i in range(5)]
    async with asyncio.TaskGroup() as tasks:
        rig.cycle.begin(Bind((names.pop(0),)), tasks)
        async with asyncio.timeout(5):
            while len(rig.results) < 5:
                if len(rig.results) + len(names) == 5 and names:
                    rig.cycle.begin(Bind((names.pop(0),)), tasks)
                await asyncio.sleep(0)
    assert len(rig.binder.bound) == 5
