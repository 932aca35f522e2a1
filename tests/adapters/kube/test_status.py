"""PodScheduled patches: what is sent, in which order, and when not."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from moorage.adapters.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from moorage.adapters.kube.status import KubeStatusWriter
from moorage.core.model.instructions import SetCondition
from tests.kit.fakes import FakeClient, FakeClock, FakeReader, plain_pod, pod_ref

pytestmark = pytest.mark.looptime

CHANGE = SetCondition(pod_ref("p"), "7", "Unschedulable", "0/1 nodes are available.")


class Rig:
    """A status writer on fakes; patches are answered well unless told otherwise."""

    def __init__(self, *answers, pod=None):
        self.client = FakeClient(*answers, default={})
        self.reader = FakeReader(p=pod)
        self.outcomes: list[str] = []
        self.clock = FakeClock(1767225600.5)
        self.writer = KubeStatusWriter(
            self.client.writer, self.reader, self.clock, count=self.outcomes.append
        )

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.writer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def write(self, *changes, seconds=60):
        async with self.running():
            for change in changes:
                self.writer.set_condition(change)
            await self.writer.flush(seconds)
        return [request.body for request in self.client.requests]


async def test_the_patch_has_the_condition_the_uid_and_the_version():
    rig = Rig()
    (body,) = await rig.write(CHANGE)
    assert body == {
        "metadata": {"uid": "p", "resourceVersion": "7"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/1 nodes are available.",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        },
    }
    (asked,) = rig.client.requests
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/default/pods/p/status")
    assert asked.content_type == "application/strategic-merge-patch+json"
    assert rig.outcomes == ["written"]


async def test_the_time_of_the_transition_is_kept_when_only_the_message_changes():
    (body,) = await Rig().write(SetCondition(pod_ref("p"), "8", "Unschedulable", "other", transition=False))
    condition = body["status"]["conditions"][0]
    assert condition["message"] == "other"
    assert "lastTransitionTime" not in condition


async def test_the_condition_says_which_generation_it_is_about():
    """kube-scheduler 1.37 sets ``observedGeneration``; of a pod without one, that of the condition stays."""
    (body,) = await Rig().write(replace(CHANGE, generation=3))
    assert body["status"]["conditions"][0]["observedGeneration"] == 3


@pytest.mark.parametrize(("node", "expected"), [("n", "n"), ("", None)])
async def test_a_nomination_is_set_or_cleared(node, expected):
    (body,) = await Rig().write(SetCondition(pod_ref("p"), "7", "Unschedulable", "m", node))
    assert body["status"]["nominatedNodeName"] == expected


async def test_a_newer_patch_replaces_one_that_waits_but_not_its_nomination():
    rig = Rig()
    newer = SetCondition(pod_ref("p"), "8", "Unschedulable", "newer")
    (body,) = await rig.write(SetCondition(pod_ref("p"), "7", "Unschedulable", "older", "n"), newer)
    assert body["status"]["conditions"][0]["message"] == "newer"
    assert body["status"]["nominatedNodeName"] == "n"


async def test_patches_of_one_pod_are_never_under_way_together():
    now = most = 0

    async def slow(_):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(1)
        now -= 1
        return {}

    rig = Rig(*[slow] * 5)
    async with rig.running():
        for version in "123":
            rig.writer.set_condition(SetCondition(pod_ref("p"), version, "Unschedulable", version))
            await asyncio.sleep(0.4)
        await rig.writer.flush(10)
    assert most == 1
    messages = [r.body["status"]["conditions"][0]["message"] for r in rig.client.requests]
    assert messages == ["1", "3"]


async def test_many_pods_are_written_a_few_at_a_time():
    now = most = 0

    async def slow(_):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(1)
        now -= 1
        return {}

    rig = Rig(*[slow] * 30)
    bodies = await rig.write(*(SetCondition(pod_ref(f"p{i}"), "1", "Unschedulable", "m") for i in range(30)))
    assert (len(bodies), most) == (30, 8)


async def test_settling_drops_the_waiting_patch():
    rig = Rig()
    rig.writer.set_condition(CHANGE)
    await rig.writer.settle(pod_ref("p"))
    assert await rig.write() == []


async def test_settling_waits_for_the_patch_in_flight():
    landed = asyncio.Event()

    async def slow(_):
        await landed.wait()
        return {}

    rig = Rig(slow)
    async with rig.running():
        rig.writer.set_condition(CHANGE)
        await asyncio.sleep(0.1)
        settled = asyncio.create_task(rig.writer.settle(pod_ref("p")))
        await asyncio.sleep(1)
        assert not settled.done()
        landed.set()
        await settled
    assert len(rig.client.requests) == 1


async def test_settling_does_not_wait_for_another_try():
    rig = Rig(*[ServerError(503)] * 10)
    async with rig.running():
        rig.writer.set_condition(CHANGE)
        await asyncio.sleep(2)
        tries = len(rig.client.requests)
        started = asyncio.get_running_loop().time()
        await rig.writer.settle(pod_ref("p"))
        assert asyncio.get_running_loop().time() - started < 0.1
        await asyncio.sleep(60)
    assert len(rig.client.requests) == tries
    assert rig.outcomes == ["dropped"]


async def test_settling_a_pod_without_patches_costs_nothing():
    rig = Rig()
    await rig.writer.settle(pod_ref("p"))


async def test_a_conflict_with_another_writer_is_written_again_on_the_new_version():
    rig = Rig(Conflict(409), pod=plain_pod("p", resource_version="9"))
    first, second = await rig.write(CHANGE)
    assert [b["metadata"]["resourceVersion"] for b in (first, second)] == ["7", "9"]
    assert rig.outcomes == ["written"]


async def test_after_a_conflict_the_live_condition_tells_whether_the_status_changes():
    live = plain_pod("p", resource_version="9", scheduled_condition=("False", "Unschedulable", "older"))
    _, second = await Rig(Conflict(409), pod=live).write(CHANGE)
    assert "lastTransitionTime" not in second["status"]["conditions"][0]


@pytest.mark.parametrize(
    "live",
    [None, plain_pod("p", uid="another"), plain_pod("p", node_name="n")],
    ids=["gone", "reused-name", "bound"],
)
async def test_a_late_patch_is_dropped(live):
    rig = Rig(Conflict(409), pod=live)
    assert len(await rig.write(CHANGE)) == 1
    assert rig.outcomes == ["dropped"]


async def test_what_the_pod_has_already_is_not_written():
    live = plain_pod("p", scheduled_condition=("False", CHANGE.reason, CHANGE.message))
    rig = Rig(Conflict(409), pod=live)
    assert len(await rig.write(CHANGE)) == 1
    assert rig.outcomes == ["unchanged"]


async def test_a_pod_that_changes_all_the_time_is_left_to_the_next_attempt():
    rig = Rig(*[Conflict(409)] * 20, pod=plain_pod("p", resource_version="9"))
    assert len(await rig.write(CHANGE)) < 10
    assert rig.outcomes == ["dropped"]


async def test_a_pod_that_is_gone_is_no_trouble():
    rig = Rig(NotFound(404))
    await rig.write(CHANGE)
    assert rig.outcomes == ["dropped"]


@pytest.mark.parametrize(
    "error", [Unreachable("reset", sent=True), ServerError(500), TooManyRequests(429, retry_after=1.0)]
)
async def test_an_api_server_that_is_away_is_tried_again_and_then_given_up(error):
    rig = Rig(error, error)
    assert len(await rig.write(CHANGE)) == 3
    assert rig.outcomes == ["written"]
    rig = Rig(*[error] * 20)
    assert len(await rig.write(CHANGE)) < 8
    assert rig.outcomes == ["failed"]


async def test_a_newer_patch_ends_the_tries_of_the_older():
    rig = Rig(ServerError(500))
    async with rig.running():
        rig.writer.set_condition(CHANGE)
        await asyncio.sleep(0.1)
        rig.writer.set_condition(SetCondition(pod_ref("p"), "8", "Unschedulable", "newer"))
        await rig.writer.flush(60)
    versions = [r.body["metadata"]["resourceVersion"] for r in rig.client.requests]
    assert versions == ["7", "8"]


@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "no"), Invalid(422)])
async def test_a_refusal_is_not_repeated(error, caplog):
    rig = Rig(*[error] * 5)
    bodies = await rig.write(*(SetCondition(pod_ref(f"p{i}"), "1", "Unschedulable", "m") for i in range(3)))
    assert len(bodies) == 3
    assert rig.outcomes == ["failed"] * 3
    warnings = [r for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == (1 if isinstance(error, Forbidden) else 3)


# -- several conditions of one pod -----------------------------------------------------------------

OVERDUE = SetCondition(
    pod_ref("p"), "7", "Overdue", "waits since long", type="moorage.dev/Overdue", status="True"
)


def kinds(body):
    return [(c["type"], c["status"], c["reason"]) for c in body["status"]["conditions"]]


async def test_conditions_of_different_types_go_in_one_patch():
    rig = Rig()
    (body,) = await rig.write(OVERDUE, replace(CHANGE, nominated_node="n"), replace(CHANGE, reason="Other"))
    assert kinds(body) == [
        ("moorage.dev/Overdue", "True", "Overdue"),
        ("PodScheduled", "False", "Other"),
    ]
    assert body["status"]["nominatedNodeName"] == "n"


async def test_the_newest_decides_which_version_is_meant():
    (body,) = await Rig().write(CHANGE, OVERDUE, replace(CHANGE, resource_version="9"))
    assert body["metadata"]["resourceVersion"] == "9"


async def test_what_is_not_written_yet_goes_with_what_comes_next():
    rig = Rig()

    def interrupted(_):
        rig.writer.set_condition(CHANGE)
        return ServerError(503)

    rig.client.answers.append(interrupted)
    _, second = await rig.write(OVERDUE)
    assert set(kinds(second)) == {
        ("moorage.dev/Overdue", "True", "Overdue"),
        ("PodScheduled", "False", "Unschedulable"),
    }


async def test_after_a_conflict_only_what_is_not_there_is_written():
    live = plain_pod("p", resource_version="9", scheduled_condition=("False", CHANGE.reason, CHANGE.message))
    rig = Rig(Conflict(409), pod=live)
    _, second = await rig.write(CHANGE, OVERDUE)
    assert kinds(second) == [("moorage.dev/Overdue", "True", "Overdue")]
    assert second["metadata"]["resourceVersion"] == "9"


async def test_settling_drops_all_of_them():
    rig = Rig()
    rig.writer.set_condition(CHANGE)
    rig.writer.set_condition(OVERDUE)
    await rig.writer.settle(pod_ref("p"))
    assert await rig.write() == []
