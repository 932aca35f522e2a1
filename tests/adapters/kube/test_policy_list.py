"""Lists of policies, where they are served and where they are not."""

import asyncio
import logging

import pytest

from moorage.adapters.kube.errors import Gone, KubeError, Unreachable
from moorage.adapters.kube.policy_kinds import CLUSTER_SCHEDULING_POLICY, SCHEDULING_POLICY
from moorage.adapters.kube.policy_list import PolicyLister, Presence
from tests.adapters.kube.test_policy_register import Rig, raw
from tests.kit.fake_api import Answer, FakeApi
from tests.kit.fakes import FakeClient

OURS, CLUSTER = SCHEDULING_POLICY.path, CLUSTER_SCHEDULING_POLICY.path


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


def lister(client, rig: Rig) -> PolicyLister:
    return PolicyLister(client, rig.register, rig.clock)


async def test_all_pages_of_both_kinds(api, caplog):
    caplog.set_level(logging.INFO)
    for i in range(250):
        api.put(CLUSTER, raw(f"p{i}"))
    api.put(OURS, raw(namespace="n", uid="x"))
    rig = Rig()
    await lister(api.client(), rig).list_once()
    assert len(rig.register) == 251
    assert "Policies are on: there are 251" in caplog.text
    api.remove(CLUSTER, "p7")
    rig.take()
    rig.clock.time += 1
    await lister(api.client(), rig).list_once()
    assert rig.take() == ["-p7"]


async def test_without_their_definitions_there_are_none_and_one_warning(api, caplog):
    for path in (OURS, CLUSTER):
        api.on("GET", path, Answer(404, b"404 page not found\n"), times=None)
    rig = Rig()
    rig.register.event("ADDED", raw())
    rig.clock.time += 1
    policies = lister(api.client(), rig)
    for _ in range(3):
        await policies.list_once()
    assert rig.take() == ["+p@1", "-p"], "a policy goes with its definition"
    (record,) = (r for r in caplog.records if r.levelno == logging.WARNING)
    assert "does not serve schedulingpolicies and clusterschedulingpolicies" in record.message
    assert set(policies.presence.values()) == {Presence.ABSENT}


async def test_without_permission_what_is_known_stays(api, caplog):
    api.on("GET", "policies", Answer(403), times=None)
    rig = Rig()
    rig.register.event("ADDED", raw())
    rig.clock.time += 1
    policies = lister(api.client(), rig)
    await policies.list_once()
    assert rig.take() == ["+p@1"]
    assert set(policies.presence.values()) == {Presence.FORBIDDEN}
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING], "the start-up check warns of that"


async def test_a_list_that_took_too_long_starts_over():
    rig = Rig()
    client = FakeClient(
        {"items": [raw("a")], "metadata": {"continue": "t"}}, Gone(410), {"items": [raw("b")]}
    )
    client.default = {"items": None}
    await lister(client, rig).list_once()
    assert [known.ref.name for known in rig.register] == ["b"]


@pytest.mark.looptime
async def test_the_first_list_is_tried_until_patience_ends(caplog):
    rig = Rig()
    client = FakeClient(Unreachable("away", sent=False), default={"items": []})
    policies = lister(client, rig)
    await policies.first(patience=10)
    assert set(policies.presence.values()) == {Presence.SERVED}
    assert caplog.text == ""
    client.default = Unreachable("away", sent=False)
    await policies.first(patience=10)
    assert "pods are placed without them" in caplog.text
    with pytest.raises(KubeError):
        await policies.list_once()


@pytest.mark.looptime
async def test_it_lists_now_and_then_and_survives_failures():
    rig = Rig()
    client = FakeClient(default={"items": []})
    policies = lister(client, rig)
    await policies.first(patience=1)
    seen = len(client.requests)
    client.answers.append(Unreachable("away", sent=False))
    task = asyncio.create_task(policies.run())
    await asyncio.sleep(65)
    assert len(client.requests) == seen + 1 + 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
