"""Kubernetes Events: fields, coalescing, and behaviour under refusals and floods."""

import asyncio
import re
from contextlib import asynccontextmanager

import pytest

from moorage.adapters.kube.errors import Forbidden, Invalid, NotFound, ServerError, Unreachable
from moorage.adapters.kube.record import KubeRecorder
from moorage.core.model.instructions import Record, RecordType
from tests.kit.fakes import FakeClient, FakeClock, FakeMeter, pod_ref

pytestmark = pytest.mark.looptime

TEXT = "0/1 nodes are available: 1 Insufficient cpu."


def scheduled(name="p"):
    text = f"Successfully assigned default/{name} to n"
    return Record(pod_ref(name), RecordType.NORMAL, "Scheduled", text, "Binding")


def unschedulable(name="p", text=TEXT):
    return Record(pod_ref(name), RecordType.WARNING, "FailedScheduling", text, "Scheduling")


class LoopClock(FakeClock):
    """Time that goes with the event loop's."""

    def now(self):
        return self.time + asyncio.get_running_loop().time()


class Rig:
    def __init__(self, *answers, **options):
        self.client, self.meter = FakeClient(*answers, default={}), FakeMeter()
        self.clock = LoopClock(1767225600.25)
        self.recorder = KubeRecorder(
            self.client.writer,
            self.clock,
            self.meter,
            controller="moorage",
            instance="moorage-host",
            **options,
        )

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.recorder.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def write(self, *records, seconds=120):
        async with self.running():
            for record in records:
                self.recorder.record(record)
            await self.recorder.flush(seconds)
        return self.client.requests


async def test_an_event_has_the_fields_that_kube_scheduler_writes():
    rig = Rig()
    (asked,) = await rig.write(scheduled())
    assert (asked.method, asked.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/default/events")
    name = asked.body["metadata"].pop("name")
    assert re.fullmatch(r"p\.[0-9a-f]{16}", name)
    assert asked.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": asked.body["eventTime"],
        "reportingController": "moorage",
        "reportingInstance": "moorage-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p", "uid": "p"},
        "note": "Successfully assigned default/p to n",
        "type": "Normal",
    }
    assert asked.body["eventTime"].startswith("2026-01-01T00:00:00.25")
    assert len(rig.meter.lags) == 1


async def test_names_are_unique_even_in_the_same_instant():
    requests = await Rig().write(*[scheduled()] * 50)
    assert len({r.body["metadata"]["name"] for r in requests}) == 50


async def test_a_pod_name_that_is_no_event_name_is_replaced():
    (asked,) = await Rig().write(scheduled("x" * 250))
    assert len(asked.body["metadata"]["name"]) == 36


@pytest.mark.parametrize("text", ["x" * 3000, "é" * 1000])
async def test_a_long_text_is_cut_to_what_the_api_takes(text):
    (asked,) = await Rig().write(unschedulable(text=text))
    assert len(asked.body["note"].encode()) <= 1024
    assert asked.body["note"].endswith(" ...")


async def test_equal_warnings_make_one_event_and_a_count():
    rig = Rig()
    created, counted = await rig.write(*[unschedulable()] * 5)
    assert (created.method, counted.method) == ("POST", "PATCH")
    assert counted.path == f"{created.path}/{created.body['metadata']['name']}"
    assert counted.content_type == "application/strategic-merge-patch+json"
    assert counted.body["series"]["count"] in range(2, 6)
    assert counted.body["series"]["lastObservedTime"].endswith("Z")


async def test_a_count_is_written_now_and_then():
    rig = Rig()
    async with rig.running():
        for _ in range(360):  # an hour
            rig.recorder.record(unschedulable())
            await asyncio.sleep(10)
    counts = [r.body["series"]["count"] for r in rig.client.requests if r.method == "PATCH"]
    assert counts == sorted(counts)
    assert 8 < len(counts) < 20
    assert sum(r.method == "POST" for r in rig.client.requests) == 1


async def test_the_last_count_is_written_when_it_goes_quiet_and_then_it_is_over():
    rig = Rig()
    async with rig.running():
        for _ in range(4):
            rig.recorder.record(unschedulable())
            await asyncio.sleep(1)
        await asyncio.sleep(600)
        assert rig.client.requests[-1].body["series"]["count"] == 4
        rig.recorder.record(unschedulable())
        await asyncio.sleep(1)
    assert [r.method for r in rig.client.requests] == ["POST", "PATCH", "PATCH", "POST"]


async def test_another_text_is_another_event():
    requests = await Rig().write(unschedulable(), unschedulable(text="other"), unschedulable("q"))
    assert [r.method for r in requests] == ["POST"] * 3


async def test_normal_events_are_not_remembered():
    rig = Rig()
    await rig.write(*(scheduled(f"p{i}") for i in range(100)))
    assert len(rig.recorder._series) == 0


async def test_an_event_that_has_expired_in_the_cluster_begins_anew():
    rig = Rig({}, NotFound(404))
    async with rig.running():
        for _ in range(3):
            rig.recorder.record(unschedulable())
            await asyncio.sleep(1)
    assert [r.method for r in rig.client.requests] == ["POST", "PATCH", "POST"]


async def test_an_event_that_could_not_be_written_begins_anew():
    rig = Rig(Invalid(422))
    async with rig.running():
        for _ in range(2):
            rig.recorder.record(unschedulable())
            await asyncio.sleep(1)
    assert [r.method for r in rig.client.requests] == ["POST", "POST"]
    assert rig.meter.drops == ["refused"]


async def test_a_full_queue_drops_and_counts():
    rig = Rig(capacity=10)
    for _ in range(15):
        rig.recorder.record(scheduled())
    assert rig.meter.drops == ["full"] * 5
    assert rig.recorder.backlog == 10


async def test_an_api_server_that_is_away_is_waited_for():
    rig = Rig(Unreachable("away", sent=False), ServerError(503))
    assert len(await rig.write(scheduled())) == 3
    assert rig.meter.drops == []
    rig = Rig(*[ServerError(503)] * 20)
    await rig.write(scheduled())
    assert rig.meter.drops == ["unavailable"]


async def test_without_permission_it_is_off_with_one_warning_and_comes_back(caplog):
    rig = Rig(Forbidden(403, "Forbidden", "no events for you"))
    async with rig.running():
        for _ in range(3):
            rig.recorder.record(scheduled())
            await asyncio.sleep(1)
        assert (len(rig.client.requests), rig.meter.drops) == (1, ["refused", "off", "off"])
        await asyncio.sleep(300)
        rig.recorder.record(scheduled())
        await asyncio.sleep(1)
    assert len(rig.client.requests) == 2
    assert sum("Events are not written" in r.message for r in caplog.records) == 1


async def test_a_namespace_that_is_being_deleted_turns_nothing_off():
    gone = Forbidden(
        403, "Forbidden", "unable to create new content in namespace x because it is being terminated"
    )
    rig = Rig(gone, NotFound(404))
    assert len(await rig.write(scheduled(), scheduled(), scheduled())) == 3
    assert rig.meter.drops == ["refused", "refused"]


async def test_it_can_be_off_from_the_start():
    rig = Rig(enabled=False)
    assert await rig.write(scheduled()) == []
    assert rig.meter.drops == ["off"]
