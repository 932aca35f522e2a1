"""Pods that wait are told of again, but never an older state than the stream has told of."""

import asyncio

import pytest

from moorage.adapters.kube.errors import Gone, Unreachable
from moorage.adapters.kube.pending_review import PendingReview
from tests.kit.fakes import FakeClient


def page(*uids, token=""):
    metadata = {"resourceVersion": "1"} | ({"continue": token} if token else {})
    return {"metadata": metadata, "items": [{"metadata": {"uid": uid}} for uid in uids]}


class Rig:
    def __init__(self, *answers):
        self.client = FakeClient(*answers)
        self.told: list[str] = []
        self.review = PendingReview(
            self.client, lambda pod: self.told.append(pod["metadata"]["uid"]), selector="x=y"
        )


async def test_all_pages_are_told_of():
    rig = Rig(page("a", "b", token="t"), page("c"))
    await rig.review.carry_out()
    assert rig.told == ["a", "b", "c"]
    assert {request.params["fieldSelector"] for request in rig.client.requests} == {"x=y"}


async def test_what_the_stream_tells_of_meanwhile_is_newer():
    rig = Rig()

    def slow(_):
        rig.review.saw("b")
        return page("a", "b")

    rig.review.saw("a")  # before: that was told by the old reading
    rig.client.answers.append(slow)
    await rig.review.carry_out()
    assert rig.told == ["a"]
    rig.client.answers.append(page("a", "b"))
    await rig.review.carry_out()
    assert rig.told == ["a", "a", "b"], "the next time counts for itself"


@pytest.mark.looptime
async def test_it_goes_on_until_it_is_done():
    rig = Rig(Unreachable("away", sent=False), page("a", token="t"), Gone(410), page("a"))
    async with asyncio.timeout(60):
        await rig.review.carry_out()
    assert rig.told == ["a", "a"]
