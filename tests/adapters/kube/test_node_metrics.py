"""Polling of metrics.k8s.io."""

import asyncio
import logging
import random

import pytest

from moorage.adapters.kube.errors import Forbidden, Gone, NotFound, ServerError, Unreachable
from moorage.adapters.kube.node_metrics import PATH, NodeMetricsPoller, read_sample
from moorage.core.model.events import UsageMeasured, UsageSample
from tests.kit.fakes import FakeClient


def metrics(name="n", at="2026-01-01T00:00:00Z", cpu="250m", memory="1Gi"):
    return {
        "metadata": {"name": name},
        "timestamp": at,
        "window": "30s",
        "usage": {"cpu": cpu, "memory": memory},
    }


class Rig:
    def __init__(self, *answers, **options):
        self.client = FakeClient(*answers, default={"items": [metrics()]})
        self.events: list[UsageMeasured] = []
        self.malformed: list[str] = []
        self.polls: list[str] = []
        self.wanted = True
        self.changes = 0
        self.poller = NodeMetricsPoller(
            self.client,
            self.events.append,
            self,
            wanted=lambda: self.wanted,
            on_change=self.change,
            rng=random.Random(1),
            **options,
        )

    def change(self) -> None:
        self.changes += 1

    def object_malformed(self, resource: str) -> None:
        self.malformed.append(resource)

    def usage_polled(self, outcome: str) -> None:
        self.polls.append(outcome)


def test_a_sample_is_in_base_units():
    assert read_sample(metrics()) == ("n", UsageSample(1767225600.0, {"cpu": 250, "memory": 1 << 30}))
    assert read_sample(metrics(at="2026-01-01T01:00:00+01:00", cpu="0.123456789")) == (
        "n",
        UsageSample(1767225600.0, {"cpu": 124, "memory": 1 << 30}),
    )


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (7, "item: must be an object"),
        ({}, "metadata.name: is missing"),
        (metrics(at="yesterday"), "timestamp: must be an RFC 3339 time, not 'yesterday'"),
        (metrics(at=None), "timestamp: is missing"),
        (metrics(at=7), "timestamp: must be an RFC 3339 time"),
        (metrics(cpu="much"), "n: usage.cpu: "),
        (metrics(cpu="-1"), "usage.cpu: must not be negative"),
    ],
)
def test_what_is_wrong_is_named(item, text):
    found = read_sample(item)
    assert isinstance(found, str)
    assert text in found


async def test_all_pages_make_one_event_and_bad_items_are_left_out():
    rig = Rig(
        {"items": [metrics("a"), metrics("b", at="")], "metadata": {"continue": "t"}},
        {"items": [metrics("c")]},
    )
    await rig.poller.poll()
    (event,) = rig.events
    assert event.samples.keys() == {"a", "c"}
    assert rig.malformed == ["node metrics"]
    assert (rig.poller.usage.available, rig.changes) == (True, 1)
    assert [request.path for request in rig.client.requests] == [PATH, PATH]
    assert rig.client.requests[1].params["continue"] == "t"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (NotFound(404), "NotServed"),
        (Forbidden(403), "Forbidden"),
        (ServerError(503), "Unavailable"),
        (Unreachable("away", sent=True), "Unavailable"),
        ({"items": []}, "NoSamples"),
        ([1], "Unavailable"),
        ({"items": 7}, "Unavailable"),
    ],
)
async def test_what_keeps_samples_away_is_told_once(answer, reason, caplog):
    caplog.set_level(logging.INFO)
    rig = Rig(answer, answer)
    for _ in range(2):
        await rig.poller.poll()
    assert (rig.poller.usage.available, rig.poller.usage.reason, rig.changes) == (False, reason, 1)
    assert len(caplog.records) == 1
    assert rig.polls == [reason, reason]
    await rig.poller.poll()
    assert (rig.poller.usage.available, rig.changes) == (True, 2)


async def test_a_list_that_took_too_long_starts_over():
    rig = Rig({"items": [metrics("a")], "metadata": {"continue": "t"}}, Gone(410), {"items": [metrics("b")]})
    await rig.poller.poll()
    assert [event.samples.keys() for event in rig.events] == [{"b"}]


@pytest.mark.looptime
async def test_it_asks_only_while_somebody_wants_to_know():
    rig = Rig()
    rig.wanted = False
    task = asyncio.create_task(rig.poller.run())
    await asyncio.sleep(100)
    assert rig.events == []
    rig.wanted = True
    rig.poller.wake()
    await asyncio.sleep(0.1)
    assert len(rig.events) == 1, "at once"
    for _ in range(20):
        rig.poller.wake()  # what changes meanwhile is no reason to ask more often
        await asyncio.sleep(0.1)
    assert len(rig.events) == 1
    await asyncio.sleep(58)
    assert len(rig.events) in (4, 5, 6)
    rig.wanted = False
    count = len(rig.events)
    await asyncio.sleep(100)
    assert len(rig.events) <= count + 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
