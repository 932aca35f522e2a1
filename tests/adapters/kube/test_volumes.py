"""The writer of volumes on a scripted API server: what is sent, and what is made of each answer."""

import asyncio

import pytest

from moorage.adapters.kube.client import MERGE_PATCH
from moorage.adapters.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from moorage.adapters.kube.volumes import KubeVolumeWriter
from moorage.core.model.events import BindFailure, VolumesNotPrepared, VolumesPrepared
from moorage.core.model.instructions import BindVolume, PrepareVolumes, SelectNode
from moorage.core.model.storage import ClaimRef
from tests.kit.fakes import FakeClient, pod_ref

pytestmark = pytest.mark.looptime

CLAIM = ClaimRef("default", "data", "uid-data")
GIVE = BindVolume("disk", "5", CLAIM)
CHOOSE = SelectNode(CLAIM, "6", "node-a")
POD = pod_ref("web")
LOST = Unreachable("connection reset", sent=True)
NAMED = {"metadata": {"resourceVersion": "11"}, "spec": {"claimRef": {"uid": "uid-data"}}}
SELECTED = {
    "metadata": {
        "uid": "uid-data",
        "resourceVersion": "12",
        "annotations": {"volume.kubernetes.io/selected-node": "node-a"},
    }
}


class Rig:
    """A writer on a scripted client."""

    def __init__(self, *answers, default=NAMED):
        self.client = FakeClient(*answers, default=default)
        self.leading = True
        self.writer = KubeVolumeWriter(self.client, holds=lambda: self.leading)

    async def prepare(self, *steps):
        return await self.writer.prepare(PrepareVolumes(POD, 3, steps or (GIVE,)))

    @property
    def asked(self):
        return [(request.method, request.path) for request in self.client.requests]


def failed(failure, message, retry_after=0.0):
    return VolumesNotPrepared(POD, 3, failure, message, retry_after)


async def test_each_step_is_one_guarded_patch():
    rig = Rig(NAMED, SELECTED)
    assert await rig.prepare(GIVE, CHOOSE) == VolumesPrepared(POD, 3, ("11", "12"))
    volume, claim = rig.client.requests
    assert (volume.method, volume.path) == ("PATCH", "/api/v1/persistentvolumes/disk")
    assert volume.body == {
        "metadata": {"resourceVersion": "5", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": "data",
                "uid": "uid-data",
            }
        },
    }
    assert (claim.method, claim.path) == ("PATCH", "/api/v1/namespaces/default/persistentvolumeclaims/data")
    assert claim.body == {
        "metadata": {"resourceVersion": "6", "annotations": {"volume.kubernetes.io/selected-node": "node-a"}}
    }
    assert volume.content_type in (MERGE_PATCH, "application/json")  # the fake knows no defaults


async def test_what_somebody_wished_is_not_the_controller_s_doing():
    rig = Rig()
    await rig.prepare(BindVolume("disk", "5", CLAIM, prebound=True))
    assert rig.client.requests[0].body["metadata"] == {"resourceVersion": "5"}


async def test_nothing_is_sent_without_the_lease():
    rig = Rig()
    rig.leading = False
    assert await rig.prepare() == failed(BindFailure.NOT_LEADER, "the lease is not ours any more")
    assert rig.asked == []


async def test_the_first_step_that_fails_is_the_last():
    rig = Rig(NotFound(404, "NotFound", "gone"))
    assert await rig.prepare(GIVE, CHOOSE) == failed(BindFailure.GONE, "gone (HTTP 404)")
    assert len(rig.asked) == 1


CONFLICT = Conflict(409, "Conflict", "the object has been modified")


@pytest.mark.parametrize(("step", "live", "version"), [(GIVE, NAMED, "11"), (CHOOSE, SELECTED, "12")])
async def test_a_conflict_with_what_was_wanted_anyway_is_none(step, live, version):
    rig = Rig(CONFLICT, live)
    assert await rig.prepare(step) == VolumesPrepared(POD, 3, (version,))
    assert [method for method, _ in rig.asked] == ["PATCH", "GET"]


@pytest.mark.parametrize(
    ("step", "live"),
    [
        (GIVE, {"spec": {"claimRef": {"uid": "another"}}}),
        (GIVE, {"spec": {}}),
        (GIVE, []),
        (CHOOSE, {"metadata": {"uid": "uid-data"}}),
        (CHOOSE, {"metadata": {**SELECTED["metadata"], "uid": "another"}}),
        (CHOOSE, ServerError(500)),
    ],
)
async def test_a_conflict_with_something_else_is_one(step, live):
    rig = Rig(CONFLICT, live)
    assert await rig.prepare(step) == failed(BindFailure.CONFLICT, "the object has been modified (HTTP 409)")


async def test_what_is_gone_by_the_time_of_the_look_is_gone():
    rig = Rig(CONFLICT, NotFound(404, "NotFound", "gone"))
    assert await rig.prepare() == failed(BindFailure.GONE, "gone (HTTP 404)")


async def test_a_lost_answer_is_asked_for_again_and_found():
    """The first write took effect, so the second meets a conflict, and the look shows why."""
    rig = Rig(LOST, CONFLICT, NAMED)
    assert await rig.prepare() == VolumesPrepared(POD, 3, ("11",))
    assert [method for method, _ in rig.asked] == ["PATCH", "PATCH", "GET"]


@pytest.mark.parametrize(
    "error", [LOST, ServerError(500, "", "etcd"), TooManyRequests(429, "", "busy", retry_after=2.0)]
)
async def test_an_api_server_in_trouble_is_tried_a_few_times(error):
    rig = Rig(error)
    assert await rig.prepare() == VolumesPrepared(POD, 3, ("11",))
    rig = Rig(default=error)
    started = asyncio.get_running_loop().time()
    answer = await rig.prepare()
    asked = error.retry_after if isinstance(error, ApiError) else 0.0
    assert answer == failed(BindFailure.UNAVAILABLE, str(error), asked)
    assert len(rig.asked) == 4
    assert asyncio.get_running_loop().time() - started > 3


async def test_a_long_wait_is_left_to_the_queue():
    busy = TooManyRequests(429, "", "busy", retry_after=60.0)
    rig = Rig(busy)
    assert await rig.prepare() == failed(BindFailure.UNAVAILABLE, "busy (HTTP 429)", 60.0)
    assert len(rig.asked) == 1


async def test_what_is_not_allowed_is_explained():
    text = 'User "x" cannot patch resource "persistentvolumes"'
    rig = Rig(Forbidden(403, "Forbidden", text))
    answer = await rig.prepare()
    assert answer.failure is BindFailure.FORBIDDEN
    assert "moorage check" in answer.message
    rig = Rig(Forbidden(403, "Forbidden", "admission webhook says no"))
    assert await rig.prepare() == failed(BindFailure.FORBIDDEN, "admission webhook says no (HTTP 403)")


async def test_what_is_refused_is_refused():
    rig = Rig(Invalid(422, "Invalid", "claimRef: no"))
    assert await rig.prepare() == failed(BindFailure.INVALID, "claimRef: no (HTTP 422)")


async def test_no_more_pods_at_once_than_slots():
    most = now = 0

    async def slow(_):
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(1)
        now -= 1
        return NAMED

    client = FakeClient(*[slow] * 10)
    writer = KubeVolumeWriter(client, holds=lambda: True, slots=2)
    await asyncio.gather(*(writer.prepare(PrepareVolumes(POD, i, (GIVE,))) for i in range(6)))
    assert most == 2
