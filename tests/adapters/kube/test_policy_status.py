"""The status of policies is written when it has changed, by the leader, and not too often."""

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest

from moorage.adapters.kube.errors import Conflict, Forbidden, NotFound, Unreachable
from moorage.adapters.kube.policy_conditions import Usage
from moorage.adapters.kube.policy_status import PolicyStatusWriter
from moorage.core.model.policy import PolicyRef
from moorage.core.model.policy_report import PolicyReport
from tests.adapters.kube.test_policy_register import Rig as RegisterRig
from tests.adapters.kube.test_policy_register import raw
from tests.kit.fakes import Asked, FakeClient

pytestmark = pytest.mark.looptime


class Rig(RegisterRig):
    """A register whose policies are in a cluster that takes every write, unless told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.client = FakeClient(default=self.patched)
        self.version = 100
        self.pods = 0
        self.looks = 0
        self.leads = True
        self.counts: Counter[str] = Counter()
        self.times: list[tuple[float, str]] = []
        self.usage = Usage(True, "Measured", "fine")
        self.register._on_change = self.change
        self.writer = PolicyStatusWriter(
            self.client,
            self.register,
            self.clock,
            reports=self.reports,
            usage=lambda: self.usage,
            leading=lambda: self.leads,
            count=lambda outcome: self.counts.update([outcome]),
        )

    def change(self, ref: PolicyRef) -> None:
        self.writer.changed(ref)

    def reports(self) -> list[PolicyReport]:
        self.looks += 1
        in_force = [known.in_force for known in self.register if known.in_force is not None]
        return [PolicyReport(policy.ref, policy.generation, pending=self.pods) for policy in in_force]

    def patched(self, asked: Asked) -> Any:
        parts = asked.path.split("/")
        name, namespace = parts[-2], parts[5] if parts[4] == "namespaces" else ""
        self.times.append((asyncio.get_running_loop().time(), name))
        self.version += 1
        known = self.known(name, namespace)
        status = {**known.status, **asked.body["status"]}
        meta = {"name": name, "uid": known.uid, "resourceVersion": str(self.version)}
        return {"metadata": meta, "status": {k: v for k, v in status.items() if v is not None}}


@pytest.fixture
async def rig():
    rig = Rig()
    task = asyncio.create_task(rig.writer.run())
    yield rig
    assert not task.done(), task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def accepted(status: Any) -> tuple[str, str]:
    (condition,) = (c for c in status["conditions"] if c["type"] == "Accepted")
    return condition["status"], condition["message"]


async def test_a_new_policy_is_told_of_at_once(rig):
    await asyncio.sleep(10)
    rig.register.event("ADDED", raw())
    await asyncio.sleep(0.2)
    (asked,) = rig.client.requests
    assert (asked.method, asked.path) == (
        "PATCH",
        "/apis/moorage.dev/v1alpha1/clusterschedulingpolicies/p/status",
    )
    assert asked.content_type == "application/merge-patch+json"
    assert asked.body["metadata"] == {"uid": "uid-p"}
    assert asked.body["status"]["observedGeneration"] == 1
    assert accepted(asked.body["status"]) == ("True", "generation 1 is accepted")


async def test_a_refused_generation_is_told_of_at_once(rig):
    rig.register.event("ADDED", raw(namespace="n"))
    await asyncio.sleep(5)
    rig.client.requests.clear()
    rig.register.event("MODIFIED", raw(namespace="n", generation=2, bad="spec.x"))
    await asyncio.sleep(0.2)
    asked = rig.client.requests[0]
    assert asked.path == "/apis/moorage.dev/v1alpha1/namespaces/n/schedulingpolicies/p/status"
    assert accepted(asked.body["status"]) == (
        "False",
        "spec.x: is bad (generation 2; generation 1 stays in force)",
    )


async def test_nothing_is_written_while_nothing_changes(rig):
    for name in "abc":
        rig.register.event("ADDED", raw(name))
    await asyncio.sleep(5)
    count = len(rig.client.requests)
    assert count <= 6, "accepted, and the first figures"
    await asyncio.sleep(100)
    assert len(rig.client.requests) == count


async def test_a_restart_writes_nothing_that_is_there_already(rig):
    rig.register.event("ADDED", raw())
    await asyncio.sleep(5)
    status = rig.known().status
    other = Rig()
    other.register.event(None, {**raw(version=9), "status": status})
    other.clock.time += 1000
    task = asyncio.create_task(other.writer.run())
    await asyncio.sleep(10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert other.client.requests == []


async def test_figures_that_always_change_cost_a_write_a_second_at_most(rig):
    rig.register.event("ADDED", raw())
    for _ in range(200):
        rig.pods += 1
        await asyncio.sleep(0.1)
    gaps = [b - a for (a, _), (b, _) in zip(rig.times, rig.times[1:], strict=False)]
    assert min(gaps) >= 0.99
    assert 10 <= len(rig.times) <= 21
    assert rig.known().status["pods"]["pending"] >= 180


async def test_many_policies_share_what_may_be_written(rig):
    for i in range(100):
        rig.register.event("ADDED", raw(f"p{i}"))
    await asyncio.sleep(1)
    assert len({name for _, name in rig.times}) == 100, "that they are accepted is told of at once"
    await asyncio.sleep(20)
    rig.times.clear()
    for _ in range(300):
        rig.pods += 1
        await asyncio.sleep(0.1)
    assert len(rig.times) <= 310
    writes = Counter(name for _, name in rig.times)
    assert len(writes) == 100
    assert max(writes.values()) - min(writes.values()) <= 1, "in turns"


async def test_looking_costs_little_however_long_it_takes(rig, monkeypatch):
    from moorage.adapters.kube import policy_status

    offset = 0.0
    monkeypatch.setattr(policy_status, "_time", lambda: asyncio.get_running_loop().time() + offset)
    reports = rig.reports

    def slow() -> list[PolicyReport]:
        nonlocal offset
        offset += 0.2
        return reports()

    rig.writer._reports = slow
    rig.register.event("ADDED", raw())
    await asyncio.sleep(100)
    assert rig.looks <= 11


async def test_only_the_leader_writes(rig):
    rig.leads = False
    rig.register.event("ADDED", raw())
    await asyncio.sleep(20)
    assert (rig.client.requests, rig.looks) == ([], 0)
    rig.leads = True
    await asyncio.sleep(2)
    assert accepted(rig.known().status)[0] == "True"


async def test_what_cannot_be_written_now_is_written_later(rig):
    rig.client.answers.extend(
        [Conflict(409), Unreachable("away", sent=True), Unreachable("away", sent=False)]
    )
    rig.register.event("ADDED", raw())
    await asyncio.sleep(30)
    assert accepted(rig.known().status)[0] == "True"
    assert (rig.counts["failed"], rig.counts["written"] >= 1) == (3, True)


async def test_a_policy_that_is_gone_is_no_failure(rig, caplog):
    rig.client.answers.append(NotFound(404))
    rig.register.event("ADDED", raw())
    await asyncio.sleep(1)
    rig.register.event("DELETED", raw())
    await asyncio.sleep(60)
    assert rig.counts == {"dropped": 1}
    assert caplog.text == ""


async def test_one_of_the_same_name_need_not_wait(rig):
    rig.client.answers.append(NotFound(404))
    rig.register.event("ADDED", raw())
    await asyncio.sleep(0.5)
    rig.register.event("ADDED", raw(uid="other"))
    await asyncio.sleep(0.2)
    assert rig.client.requests[-1].body["metadata"] == {"uid": "other"}
    assert rig.counts == {"dropped": 1, "written": 1}


async def test_without_permission_there_is_one_warning(rig, caplog):
    rig.client.default = Forbidden(403)
    for name in "abc":
        rig.register.event("ADDED", raw(name))
    await asyncio.sleep(300)
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 1
    assert len(rig.client.requests) <= 3 * 7
    rig.client.default = rig.patched
    await asyncio.sleep(70)
    assert accepted(rig.known("a").status)[0] == "True", "it may be given later"


async def test_a_form_of_the_api_servers_own_is_no_change(rig):
    def reformed(asked: Asked) -> Any:
        answer = rig.patched(asked)
        answer["status"].pop("pods", None)  # a schema of another version prunes it
        return answer

    rig.client.default = reformed
    rig.register.event("ADDED", raw())
    await asyncio.sleep(5)
    count = len(rig.client.requests)
    await asyncio.sleep(50)
    assert len(rig.client.requests) == count


async def test_what_somebody_else_writes_is_set_right(rig):
    rig.register.event("ADDED", raw())
    await asyncio.sleep(5)
    rig.register.event("MODIFIED", {**raw(version=5000), "status": {"pods": {"matched": 99}}})
    await asyncio.sleep(3)
    assert rig.client.requests[-1].body["status"]["pods"]["matched"] == 0


async def test_missing_metrics_are_told_of(rig):
    from moorage.core.model.policy import LoadRules, Policy

    rig.register._read = lambda obj: Policy(PolicyRef("", "p"), "uid-p", 1, load=LoadRules())
    rig.register.event("ADDED", raw())
    await asyncio.sleep(3)
    rig.usage = Usage(False, "NotServed", "there are none")
    await asyncio.sleep(3)
    (condition,) = (c for c in rig.known().status["conditions"] if c["type"] == "MetricsAvailable")
    assert (condition["status"], condition["reason"]) == ("False", "NotServed")


async def test_an_api_server_that_is_away_is_left_alone_and_then_told_all_at_once(rig):
    rig.client.default = Unreachable("away", sent=True)
    for i in range(60):
        rig.register.event("ADDED", raw(f"p{i}"))
    await asyncio.sleep(61)
    assert len(rig.client.requests) <= 4 * 13, "a few at a time"
    rig.client.default = rig.patched
    await asyncio.sleep(12)
    assert len({name for _, name in rig.times}) == 60
    assert max(at for at, _ in rig.times[:60]) - rig.times[0][0] < 2, "not ten a second: none had been told"


@pytest.mark.parametrize("answer", [None, [], {"status": {}}])
async def test_an_answer_of_no_use_is_no_failure(rig, answer):
    rig.client.answers.append(answer)
    rig.register.event("ADDED", raw())
    await asyncio.sleep(10)
    rig.register.event("MODIFIED", raw(generation=2))
    await asyncio.sleep(5)
    assert rig.known().status["observedGeneration"] == 2
