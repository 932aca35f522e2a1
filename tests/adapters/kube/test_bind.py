"""The binder on a scripted API server: every answer, lost answers, and the checks right before the write."""

import asyncio

import pytest

from moorage.adapters.kube.bind import KubeBinder
from moorage.adapters.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.instructions import Placement
from tests.kit.fakes import FakeClient, FakeReader, plain_pod, pod_ref

P = Placement(pod_ref("p"), "n")
DONE = BindSucceeded(P.ref, "n")
BOUND = {"kind": "Status", "status": "Success"}
LOST = Unreachable("connection reset", sent=True)
REFUSED = Unreachable("connection refused", sent=False)

pytestmark = pytest.mark.looptime


class Rig:
    """A binder on fakes; the pod ``p`` exists, unbound, unless told otherwise."""

    def __init__(self, *answers, pod=True, slots=100):
        self.client = FakeClient(*answers, default=BOUND, slots=slots)
        self.reader = FakeReader(p=plain_pod("p") if pod is True else pod)
        self.leading = True
        self.late = 0
        self.unfit = None
        self.binder = KubeBinder(
            self.client.writer, self.reader, holds=lambda: self.leading, late=self.count_late
        )

    def count_late(self):
        self.late += 1

    def bound_to(self, node, answer):
        """An answer of the API server that comes with the pod bound to a node."""

        def act(_):
            self.reader.pods["p"] = plain_pod("p", node_name=node)
            return answer

        return act

    async def bind(self, annotations=()):
        return await self.binder.bind(P, annotations, lambda: self.unfit)

    @property
    def posts(self):
        return [r for r in self.client.requests if r.method == "POST"]


def failed(kind, message="", retry_after=0.0):
    return BindFailed(P.ref, "n", kind, message, retry_after)


async def test_the_request_is_a_binding_with_the_uid_and_the_annotations():
    rig = Rig()
    assert await rig.bind((("moorage.dev/policies", "batch"),)) == DONE
    (asked,) = rig.posts
    assert asked.path == "/api/v1/namespaces/default/pods/p/binding"
    assert asked.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "p",
            "annotations": {"moorage.dev/policies": "batch"},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }
    assert rig.reader.asked == []


async def test_nothing_is_sent_without_the_lease():
    rig = Rig()
    rig.leading = False
    assert await rig.bind() == failed(BindFailure.NOT_LEADER, "the lease is not ours any more")
    assert rig.posts == []


async def test_nothing_is_sent_to_a_node_that_is_no_longer_fit():
    rig = Rig()
    rig.unfit = "node n no longer exists"
    assert await rig.bind() == failed(BindFailure.STALE, "node n no longer exists")
    assert rig.posts == []


async def test_lease_and_node_are_looked_at_when_the_slot_is_held():
    """What was true when the pod began to wait for a connection says nothing about now."""
    rig = Rig(slots=1)
    gate = asyncio.Event()

    async def slow(_):
        await gate.wait()
        return BOUND

    rig.client.answers.append(slow)
    first = asyncio.create_task(rig.bind())
    await asyncio.sleep(1)
    second = asyncio.create_task(rig.bind())
    third = asyncio.create_task(rig.bind())
    await asyncio.sleep(1)
    rig.unfit = "cordoned"
    gate.set()
    assert await first == DONE
    assert (await second).failure is BindFailure.STALE
    rig.unfit = None
    assert await third in (DONE, failed(BindFailure.STALE, "cordoned"))
    assert len(rig.posts) <= 2


async def test_no_more_requests_at_once_than_slots():
    most = now = 0

    async def slow(_):
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(1)
        now -= 1
        return BOUND

    rig = Rig(*[slow] * 10, slots=3)
    assert await asyncio.gather(*(rig.bind() for _ in range(10))) == [DONE] * 10
    assert most == 3


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (plain_pod("p", node_name="n"), DONE),
        (
            plain_pod("p", node_name="m"),
            failed(BindFailure.BOUND_ELSEWHERE, "the pod is bound to m already"),
        ),
        (None, failed(BindFailure.GONE, "the pod does not exist any more")),
        (plain_pod("p", uid="another"), failed(BindFailure.GONE, "another pod has taken the name")),
        (plain_pod("p", deleting=True), failed(BindFailure.GONE, "the pod is being deleted")),
        (plain_pod("p"), failed(BindFailure.CONFLICT, "taken (HTTP 409)")),
    ],
    ids=["here", "elsewhere", "gone", "reused-name", "being-deleted", "unbound"],
)
async def test_after_a_conflict_the_live_pod_decides(live, expected):
    rig = Rig(Conflict(409, "Conflict", "taken"), pod=live)
    assert await rig.bind() == expected
    assert len(rig.posts) == 1


async def test_no_pod_no_binding():
    rig = Rig(NotFound(404, "NotFound", 'pods "p" not found'))
    assert (await rig.bind()).failure is BindFailure.GONE
    assert rig.reader.asked == []


@pytest.mark.parametrize("error", [Invalid(422, "Invalid", "bad"), Invalid(400), ApiError(405)])
async def test_what_would_be_refused_again_is_not_tried_again(error):
    rig = Rig(error)
    assert (await rig.bind()).failure is BindFailure.INVALID
    assert len(rig.posts) == 1


async def test_forbidden_is_tried_a_little_for_a_server_that_has_just_started():
    no = Forbidden(403, "Forbidden", 'User "x" cannot create resource "pods/binding"')
    rig = Rig(no, no)
    assert await rig.bind() == DONE
    rig = Rig(*[no] * 10)
    result = await rig.bind()
    assert result.failure is BindFailure.FORBIDDEN
    assert "moorage check" in result.message


async def test_a_namespace_that_is_being_deleted_is_told_as_such_and_at_once():
    details = {"causes": [{"reason": "NamespaceTerminating"}]}
    text = "unable to create new content in namespace x because it is being terminated"
    rig = Rig(Forbidden(403, "Forbidden", text, details))
    result = await rig.bind()
    assert (result.failure, len(rig.posts)) == (BindFailure.FORBIDDEN, 1)
    assert "being terminated" in result.message
    assert "moorage check" not in result.message


async def test_a_busy_server_is_given_the_time_it_asks_for():
    rig = Rig(TooManyRequests(429, retry_after=3.0))
    started = asyncio.get_running_loop().time()
    assert await rig.bind() == DONE
    assert asyncio.get_running_loop().time() - started >= 3


async def test_a_server_that_stays_busy_is_left_to_the_queue():
    rig = Rig(*[TooManyRequests(429, retry_after=2.0)] * 20)
    result = await rig.bind()
    assert (result.failure, result.retry_after) == (BindFailure.UNAVAILABLE, 2.0)
    assert len(rig.posts) < 8


async def test_a_long_wait_is_left_to_the_queue_at_once():
    rig = Rig(TooManyRequests(429, retry_after=60.0))
    result = await rig.bind()
    assert (result.failure, result.retry_after, len(rig.posts)) == (BindFailure.UNAVAILABLE, 60.0, 1)


@pytest.mark.parametrize("error", [REFUSED, Unauthorized(401)])
async def test_what_was_not_sent_or_not_let_in_is_tried_again_and_then_given_up(error):
    rig = Rig(error, error)
    assert await rig.bind() == DONE
    rig = Rig(*[error] * 20)
    assert (await rig.bind()).failure is BindFailure.UNAVAILABLE
    assert len(rig.posts) < 8
    assert rig.reader.asked == []


@pytest.mark.parametrize("error", [LOST, ServerError(500), ServerError(504)])
async def test_a_lost_answer_of_a_binding_that_took_effect_is_a_success(error):
    rig = Rig()
    rig.client.answers.append(rig.bound_to("n", error))
    assert await rig.bind() == DONE
    assert len(rig.posts) == 1


async def test_a_lost_request_is_sent_again():
    rig = Rig(LOST)
    assert await rig.bind() == DONE
    assert len(rig.posts) == 2


async def test_a_lost_answer_and_then_the_conflict_with_ourselves():
    """The first POST lands after the look and before the second: the 409 is about our own binding."""
    rig = Rig(LOST)
    rig.client.answers.append(rig.bound_to("n", Conflict(409)))
    assert await rig.bind() == DONE


async def test_while_the_server_is_away_nothing_is_claimed():
    rig = Rig(LOST)
    rig.reader.failures = 50
    task = asyncio.create_task(rig.bind())
    await asyncio.sleep(60)
    assert not task.done()
    assert await task == DONE


@pytest.mark.parametrize("loss", ["lease", "node"])
async def test_an_unanswered_write_keeps_its_room_until_it_cannot_land_any_more(loss):
    rig = Rig()

    def cut(_):
        if loss == "lease":
            rig.leading = False
        else:
            rig.unfit = "node n no longer exists"
        return LOST

    rig.client.answers.append(cut)
    started = asyncio.get_running_loop().time()
    result = await rig.bind()
    assert result.failure is (BindFailure.NOT_LEADER if loss == "lease" else BindFailure.STALE)
    assert 60 < asyncio.get_running_loop().time() - started < 80
    assert len(rig.posts) == 1


async def test_a_write_that_lands_late_is_found():
    rig = Rig()

    def cut(_):
        rig.unfit = "node n no longer exists"
        later = plain_pod("p", node_name="n")
        asyncio.get_running_loop().call_later(40, rig.reader.pods.__setitem__, "p", later)
        return LOST

    rig.client.answers.append(cut)
    assert await rig.bind() == DONE
    assert asyncio.get_running_loop().time() < 50


async def test_a_server_that_fails_and_fails_is_left_to_the_queue_when_it_is_certain():
    rig = Rig(*[ServerError(500, "InternalError", "etcdserver: request timed out")] * 20)
    result = await rig.bind()
    assert result.failure is BindFailure.UNAVAILABLE
    assert len(rig.posts) < 8
    assert rig.reader.asked


async def test_the_lease_is_checked_again_before_each_try():
    rig = Rig()

    def refuse(_):
        rig.leading = False
        return REFUSED

    rig.client.answers.append(refuse)
    assert (await rig.bind()).failure is BindFailure.NOT_LEADER
    assert len(rig.posts) == 1


async def test_a_binding_that_was_late_is_counted():
    rig = Rig()

    def slow(_):
        rig.leading = False
        return BOUND

    rig.client.answers.append(slow)
    assert await rig.bind() == DONE
    assert rig.late == 1
