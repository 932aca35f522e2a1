"""The periodic list of pending pods."""

import asyncio

import pytest

from moorage.adapters.kube.errors import Gone, Unreachable
from moorage.adapters.kube.pending import PendingLister, pending_selector
from moorage.core.model.events import PendingListed
from tests.kit.fakes import FakeClient, FakeClock


def page(*uids, token=""):
    metadata = {"resourceVersion": "1"} | ({"continue": token} if token else {})
    return {"metadata": metadata, "items": [{"metadata": {"uid": uid}} for uid in uids]}


class Rig:
    def __init__(self, *answers):
        self.client, self.clock = FakeClient(*answers), FakeClock()
        self.events: list[PendingListed] = []
        self.lister = PendingLister(self.client, self.events.append, self.clock, selector="x=y", interval=30)


async def test_all_pages_make_one_event():
    rig = Rig(page("a", "b", token="t"), page("c"))
    assert await rig.lister.list_once() == PendingListed(frozenset("abc"), rig.clock.time)
    first, second = rig.client.requests
    assert first.params["fieldSelector"] == "x=y"
    assert "PartialObjectMetadataList" in first.headers["Accept"]
    assert "continue" not in first.params
    assert second.params["continue"] == "t"


async def test_the_time_is_from_before_the_list():
    """A pod that is made while the list is under way must not be taken for gone."""
    rig = Rig()

    def slow(_):
        rig.clock.time += 5
        return page("a")

    rig.client.answers.append(slow)
    assert (await rig.lister.list_once()).listed_at == rig.clock.time - 5


async def test_pages_that_are_too_old_start_the_list_over():
    rig = Rig(page("a", token="t"), Gone(410), page("b"))
    assert (await rig.lister.list_once()).uids == {"b"}


async def test_nothing_pending_is_an_answer_too():
    rig = Rig({"metadata": {}, "items": None})
    assert (await rig.lister.list_once()).uids == set()


@pytest.mark.looptime
async def test_it_lists_every_half_minute_and_survives_failures():
    rig = Rig(page("a"), Unreachable("away", sent=False), page("b"))
    task = asyncio.create_task(rig.lister.run())
    await asyncio.sleep(29)
    assert rig.events == []
    await asyncio.sleep(62)
    assert [event.uids for event in rig.events] == [{"a"}, {"b"}]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_single_scheduler_sees_only_its_own_pods():
    common = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
    assert pending_selector(["moorage"]) == f"{common},spec.schedulerName=moorage"
    assert pending_selector(["a", "b"]) == common
