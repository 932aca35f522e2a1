"""The leader election by the clock: who may lead when, whatever the server and the machine do.

Time is looptime's: hours pass in no time, and a sleep of two seconds takes exactly two.
"""

import asyncio
import contextlib
import copy
import datetime
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from moorage.adapters.kube import errors
from moorage.adapters.kube.lease import LeaderElector, LeaseSettings, boot_time, new_identity

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime(start=1000)]

Obj = dict[str, Any]


class FakeLeases:
    """One Lease on a server; every request may be made to take time, to fail, or to hang."""

    def __init__(self) -> None:
        self.lease: Obj | None = None
        self.version = 0
        self.log: list[tuple[float, str, str]] = []  # when, verb, whose
        self.before: Callable[[str, str], Any] | None = None  # (who, verb): called before it takes effect
        self.after: Callable[[str, str], Any] | None = None  # and after

    def as_(self, who: str) -> "Client":
        return Client(self, who)

    @property
    def spec(self) -> Obj:
        assert self.lease is not None
        spec: Obj = self.lease["spec"]
        return spec

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity"))

    def count(self, verb: str, who: str) -> int:
        return sum((v, w) == (verb, who) for _, v, w in self.log)


class Client:
    def __init__(self, leases: FakeLeases, who: str) -> None:
        self.leases = leases
        self.who = who

    async def _request(self, verb: str, timeout: float | None, act: Callable[[], Any]) -> Any:
        leases = self.leases
        leases.log.append((asyncio.get_running_loop().time(), verb, self.who))
        assert timeout is not None

        try:
            async with asyncio.timeout(timeout):
                if leases.before is not None:
                    await leases.before(self.who, verb)
                answer = copy.deepcopy(act())
                if leases.after is not None:
                    await leases.after(self.who, verb)
        except TimeoutError:
            raise errors.Unreachable("no answer in time", sent=True) from None
        return answer

    async def get(self, path: str, *, timeout: float | None) -> Any:
        def act() -> Obj:
            if self.leases.lease is None:
                raise errors.NotFound(404, "NotFound")
            return self.leases.lease

        return await self._request("GET", timeout, act)

    async def post(self, path: str, body: Any, *, timeout: float | None) -> Any:
        def act() -> Obj:
            if self.leases.lease is not None:
                raise errors.Conflict(409, "AlreadyExists")
            return self._store(body)

        return await self._request("POST", timeout, act)

    async def put(self, path: str, body: Any, *, timeout: float | None) -> Any:
        def act() -> Obj:
            if self.leases.lease is None:
                raise errors.NotFound(404, "NotFound")
            if body["metadata"]["resourceVersion"] != self.leases.lease["metadata"]["resourceVersion"]:
                raise errors.Conflict(409, "Conflict")
            return self._store(body)

        return await self._request("PUT", timeout, act)

    def _store(self, body: Obj) -> Obj:
        self.leases.version += 1
        self.leases.lease = copy.deepcopy(body)
        self.leases.lease["metadata"]["resourceVersion"] = str(self.leases.version)
        return self.leases.lease


class Replica:
    """A candidate and what it was told."""

    def __init__(self, leases: FakeLeases, name: str, clock: Callable[[], float] | None = None) -> None:
        self.log: list[str] = []
        self.elector = LeaderElector(
            leases.as_(name),
            LeaseSettings(),
            identity=name,
            on_started_leading=lambda: self.log.append("started"),
            on_stopped_leading=lambda: self.log.append("stopped"),
            on_new_leader=lambda leader: self.log.append(f"leader {leader}"),
            clock=clock or asyncio.get_running_loop().time,
            rng=random.Random(1),
        )
        self.task = asyncio.create_task(self.elector.run())

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def kill(self) -> None:
        """As kill -9 does: nothing is released."""
        self.elector._client = FakeLeases().as_("nobody")
        self.elector._fresh = False
        self.task.cancel()


@pytest.fixture
def leases():
    return FakeLeases()


@pytest.fixture
async def replicas(leases):
    made: list[Replica] = []

    def make(name: str, clock: Callable[[], float] | None = None) -> Replica:
        made.append(Replica(leases, name, clock))
        return made[-1]

    yield make
    leases.before = leases.after = None
    for replica in made:
        await replica.stop()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_free_lease_is_taken_at_once_and_kept(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.01)
    assert a.elector.is_leader
    assert a.log == ["leader a", "started"]
    await asyncio.sleep(3600)
    assert a.elector.is_leader
    assert a.log == ["leader a", "started"]
    assert leases.spec["leaseTransitions"] == 0
    assert 1700 < leases.count("PUT", "a") <= 1800  # every two seconds
    assert leases.count("GET", "a") == 1  # renewing needs no look


async def test_the_record_is_what_client_go_writes(leases, replicas):
    replicas("a")
    await asyncio.sleep(5)
    assert leases.lease["metadata"]["name"] == "moorage"
    assert leases.lease["metadata"]["namespace"] == "kube-system"
    spec = leases.spec
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("a", 15)
    for field in ("acquireTime", "renewTime"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec[field])
        written = datetime.datetime.fromisoformat(spec[field])
        assert abs((datetime.datetime.now(datetime.UTC) - written).total_seconds()) < 60
    assert spec["renewTime"] > spec["acquireTime"]


async def test_others_keep_what_is_not_ours_in_the_record(leases, replicas):
    replicas("a")
    await asyncio.sleep(0.1)
    leases.lease["metadata"]["labels"] = {"team": "sea"}
    leases.version += 1
    leases.lease["metadata"]["resourceVersion"] = str(leases.version)
    leases.spec["preferredHolder"] = "b"
    await asyncio.sleep(10)
    assert leases.lease["metadata"]["labels"] == {"team": "sea"}
    assert leases.spec["preferredHolder"] == "b"


async def test_a_standby_waits_and_knows_who_leads(leases, replicas):
    replicas("a")
    await asyncio.sleep(0.1)
    b = replicas("b")
    await asyncio.sleep(600)
    assert not b.elector.is_leader
    assert b.elector.leader == "a"
    assert b.log == ["leader a"]
    assert leases.count("PUT", "b") == 0


async def test_a_released_lease_is_taken_within_a_retry(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    b = replicas("b")
    await asyncio.sleep(5)
    await a.stop()
    assert a.log == ["leader a", "started", "stopped"]
    assert (leases.holder, leases.spec["leaseDurationSeconds"]) == ("", 1)
    started = now()
    while not b.elector.is_leader:
        await asyncio.sleep(0.1)
    assert now() - started <= 2.0 * 1.2 + 0.1
    assert leases.spec["leaseTransitions"] == 1
    assert leases.spec["leaseDurationSeconds"] == 15
    assert b.log == ["leader a", "leader b", "started"]


async def test_a_dead_leaders_lease_is_taken_when_it_has_run_out(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    b = replicas("b")
    await asyncio.sleep(7)
    a.kill()
    died = now()
    while not b.elector.is_leader:
        await asyncio.sleep(0.1)
        assert not (b.elector.is_leader and a.elector.is_leader)
    assert 12.0 <= now() - died <= 15.0 + 2 * 2.4
    assert leases.spec["leaseTransitions"] == 1


async def test_the_end_of_a_lease_is_measured_by_our_own_clock(leases, replicas):
    """The times in the record come from a clock that is years off; only their change counts."""
    a = replicas("a")
    await asyncio.sleep(0.1)
    leases.spec["renewTime"] = "1999-01-01T00:00:00.000000Z"
    b = replicas("b")
    for _ in range(100):
        await asyncio.sleep(0.5)
        assert not b.elector.is_leader
        assert a.elector.is_leader


async def test_a_leader_cut_off_stops_before_the_next_one_starts(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    b = replicas("b")
    await asyncio.sleep(5)

    async def cut_off(who: str, verb: str) -> None:
        if who == "a":
            raise errors.Unreachable("no route", sent=False)

    leases.before = cut_off
    last = max(t for t, verb, who in leases.log if (verb, who) == ("PUT", "a"))
    while a.elector.is_leader:
        assert not b.elector.is_leader
        await asyncio.sleep(0.01)
    assert now() == pytest.approx(last + 10.0, abs=0.02)  # the deadline, from the last renewal that worked
    await asyncio.sleep(0.01)
    assert a.log == ["leader a", "started", "stopped"]
    gap_began = now()
    while not b.elector.is_leader:
        await asyncio.sleep(0.01)
    assert now() - gap_began >= 4.0
    leases.before = None
    await asyncio.sleep(30)
    assert (a.elector.is_leader, b.elector.is_leader) == (False, True)
    assert a.elector.leader == "b"


async def test_a_hanging_server_cannot_prolong_the_lease(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    assert a.elector.is_leader

    async def hang(who: str, verb: str) -> None:
        await asyncio.sleep(3600)

    sent = leases.log[-1][0]
    leases.before = hang
    while "stopped" not in a.log:
        await asyncio.sleep(0.05)
    assert now() == pytest.approx(sent + 10.0, abs=0.1)
    assert not a.elector.is_leader


async def test_a_late_answer_counts_from_when_the_request_was_sent(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)

    async def slow(who: str, verb: str) -> None:
        await asyncio.sleep(4.0)

    leases.after = slow
    await asyncio.sleep(30)
    assert a.elector.is_leader
    puts = [t for t, verb, who in leases.log if verb == "PUT"]
    answered = [t for t in puts if t + 4.0 <= now()]
    assert a.elector.valid_until == pytest.approx(answered[-1] + 10.0)
    assert puts[-1] - puts[-2] < 4.2  # and the next one does not wait for long after such an answer


async def test_a_leader_that_slept_knows_it_at_once(leases, replicas):
    """B34: stopped for a while, it must not send anything on waking, before any of its timers has run."""
    loop = asyncio.get_running_loop()
    slept = 0.0
    a = replicas("a", lambda: loop.time() + slept)
    await asyncio.sleep(0.1)
    b = replicas("b")
    await asyncio.sleep(1.5)
    assert a.elector.holds()
    slept = 30.0  # all of it between two instructions
    assert not a.elector.is_leader
    assert not a.elector.holds()
    await asyncio.sleep(0)
    assert not a.elector.holds()
    del b


async def test_a_leader_that_slept_while_another_took_over_stands_by(leases, replicas):
    loop = asyncio.get_running_loop()
    slept = 0.0
    a = replicas("a", lambda: loop.time() + slept)
    await asyncio.sleep(0.1)
    leases.spec["holderIdentity"] = "b"  # meanwhile
    leases.version += 1
    leases.lease["metadata"]["resourceVersion"] = str(leases.version)
    slept = 30.0
    await asyncio.sleep(10)
    assert a.log == ["leader a", "started", "stopped", "leader b"]
    assert leases.holder == "b"


async def test_a_stolen_lease_is_given_up_even_before_it_runs_out(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    leases.spec["holderIdentity"] = "b"
    leases.version += 1
    leases.lease["metadata"]["resourceVersion"] = str(leases.version)
    await asyncio.sleep(2 * 2.0 + 0.1)
    assert not a.elector.is_leader
    assert leases.holder == "b"
    assert a.log == ["leader a", "started", "leader b", "stopped"]


async def test_a_lost_answer_does_not_lose_the_lease(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    lost = 0

    async def lose(who: str, verb: str) -> None:
        nonlocal lost
        if verb == "PUT" and lost < 2:
            lost += 1
            raise errors.Unreachable("reset", sent=True)

    leases.after = lose
    await asyncio.sleep(60)
    assert lost == 2
    assert a.elector.is_leader
    assert a.log == ["leader a", "started"]
    assert leases.spec["leaseTransitions"] == 0


async def test_a_deleted_lease_is_made_again(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    leases.lease = None
    await asyncio.sleep(5)
    assert leases.holder == "a"
    assert a.log == ["leader a", "started"]


async def test_of_two_that_create_it_one_leads(leases, replicas):
    both = [replicas("a"), replicas("b")]
    await asyncio.sleep(60)
    assert [r.elector.is_leader for r in both].count(True) == 1
    assert {r.elector.leader for r in both} == {leases.holder}


async def test_a_lease_lost_and_free_is_taken_again_as_a_new_term(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)

    async def down(who: str, verb: str) -> None:
        raise errors.ServerError(503)

    leases.before = down
    await asyncio.sleep(20)
    assert not a.elector.is_leader
    leases.before = None
    await asyncio.sleep(5)
    assert a.elector.is_leader
    assert a.elector.terms == 2
    assert a.log == ["leader a", "started", "stopped", "started"]
    assert leases.spec["leaseTransitions"] == 0  # nobody else had it


@pytest.mark.parametrize(
    ("duration", "wait"), [(60, 60.0), (None, 15.0), (0, 15.0), (-5, 15.0), ("x", 15.0), (2, 2.0)]
)
async def test_the_holders_own_duration_counts_if_it_makes_sense(leases, replicas, duration, wait):
    leases.version = 1
    leases.lease = {
        "metadata": {"name": "moorage", "resourceVersion": "1"},
        "spec": {"holderIdentity": "old", "leaseDurationSeconds": duration},
    }
    began = now()
    a = replicas("a")
    while not a.elector.is_leader:
        await asyncio.sleep(0.05)
    assert wait <= now() - began <= wait + 2.5
    assert leases.spec["leaseTransitions"] == 1


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": None}, {"holderIdentity": ""}])
async def test_a_record_without_holder_is_free(leases, replicas, spec):
    leases.lease = {"metadata": {"name": "moorage", "resourceVersion": "1"}, "spec": spec}
    a = replicas("a")
    await asyncio.sleep(0.1)
    assert a.elector.is_leader


async def test_forbidden_is_said_once_and_tried_again(leases, replicas, caplog):
    async def forbid(who: str, verb: str) -> None:
        raise errors.Forbidden(403, "Forbidden", "cannot get resource leases")

    leases.before = forbid
    a = replicas("a")
    await asyncio.sleep(60)
    said = [record.message for record in caplog.records if "cannot get" in record.message]
    assert len(said) == 1
    assert said[0].endswith("/leases/moorage: cannot get resource leases (HTTP 403)")
    leases.before = None
    await asyncio.sleep(3)
    assert a.elector.is_leader


async def test_holds_with_a_margin(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    left = a.elector.valid_until - now()
    assert a.elector.holds(left - 0.01)
    assert not a.elector.holds(left + 0.01)


async def test_stopping_in_the_middle_of_a_renewal_releases_all_the_same(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)

    async def slow(who: str, verb: str) -> None:
        await asyncio.sleep(1.0)

    leases.after = slow
    await asyncio.sleep(2.5)  # a renewal has taken effect, and its answer is under way
    assert leases.log[-1][1] == "PUT"
    leases.after = None
    await a.stop()
    assert leases.holder == ""
    assert a.log[-1] == "stopped"


@pytest.mark.parametrize("verb", ["POST", "PUT"])
async def test_stopping_in_the_middle_of_taking_it_releases_all_the_same(leases, replicas, verb):
    if verb == "PUT":
        leases.lease = {"metadata": {"name": "moorage", "resourceVersion": "0"}, "spec": {}}

    async def slow(who: str, verb: str) -> None:
        await asyncio.sleep(0.5 if verb != "GET" else 0)

    leases.after = slow
    a = replicas("a")
    await asyncio.sleep(0.1)
    assert (leases.log[-1][1], leases.holder) == (verb, "a")
    assert not a.elector.is_leader
    leases.after = None
    await a.stop()
    assert leases.holder == ""
    assert "started" not in a.log


async def test_it_stops_leading_before_it_releases(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)
    seen: list[tuple[bool, str]] = []

    async def look(who: str, verb: str) -> None:
        seen.append((a.elector.is_leader, a.log[-1]))

    leases.before = look
    await a.stop()
    assert seen == [(False, "stopped")]


async def test_a_lease_of_someone_else_is_not_released(leases, replicas):
    replicas("a")
    await asyncio.sleep(0.1)
    b = replicas("b")
    await asyncio.sleep(5)
    await b.stop()
    assert leases.holder == "a"
    assert b.log == ["leader a"]


async def test_a_lease_taken_by_someone_else_meanwhile_is_not_released(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)

    async def slow(who: str, verb: str) -> None:
        await asyncio.sleep(1.0)

    leases.before = slow
    await asyncio.sleep(2.5)  # a renewal is under way
    leases.spec["holderIdentity"] = "b"
    leases.version += 1
    leases.lease["metadata"]["resourceVersion"] = str(leases.version)
    leases.before = None
    await a.stop()
    assert leases.holder == "b"


async def test_a_release_that_fails_does_not_hide_the_cancellation(leases, replicas):
    a = replicas("a")
    await asyncio.sleep(0.1)

    async def down(who: str, verb: str) -> None:
        raise errors.Unreachable("gone", sent=False)

    leases.before = down
    a.task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await a.task
    assert a.task.cancelled()


async def test_a_bug_in_a_callback_ends_it_and_releases(leases):
    def bug() -> None:
        raise KeyError("mine")

    elector = LeaderElector(
        leases.as_("a"), identity="a", on_started_leading=bug, clock=asyncio.get_running_loop().time
    )
    with pytest.raises(KeyError):
        await elector.run()
    assert leases.holder == ""


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 9), (0, 0, 0)])
async def test_times_that_cannot_work_are_refused(times):
    with pytest.raises(ValueError, match="lease_duration > renew_deadline"):
        LeaseSettings(lease_duration=times[0], renew_deadline=times[1], retry_period=times[2])


async def test_every_process_has_an_identity_of_its_own():
    assert new_identity() != new_identity()


async def test_the_clock_goes_on():
    first = boot_time()
    assert boot_time() >= first
