"""Evicting victims: what is written, in which order, and what comes back when it cannot be."""

from dataclasses import replace

import pytest

from moorage.adapters.kube import preempt
from moorage.adapters.kube.errors import Conflict, Forbidden, NotFound, ServerError, Unreachable
from moorage.adapters.kube.preempt import KubeEvictor
from moorage.core.model.events import EvictionFinished
from moorage.core.model.instructions import Evict, Record, RecordType
from tests.kit.fakes import FakeClient, FakeClock, FakeReader, plain_pod, pod_ref

PREEMPTOR = pod_ref("urgent")
ONE = Evict(PREEMPTOR, "moorage", "n", (pod_ref("victim"),))
EVENT = Record(
    pod_ref("victim"),
    RecordType.NORMAL,
    "Preempted",
    "Preempted by pod urgent on node n",
    "Preempting",
    "moorage",
)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(preempt, "_PAUSES", (0.0, 0.0, 0.0))


class Rig:
    """An evictor on fakes; the preemptor is pending unless told otherwise."""

    def __init__(self, *answers, live=None, holds=True):
        self.client = FakeClient(*answers)
        self.reader = FakeReader(urgent=plain_pod("urgent") if live is None else live)
        self.records: list[Record] = []
        self.evictor = KubeEvictor(
            self.client, self.reader, FakeClock(), record=self.records.append, holds=lambda: holds
        )


async def test_a_victim_is_marked_then_deleted_by_uid():
    rig = Rig({}, {})
    assert await rig.evictor.evict(ONE) == EvictionFinished(PREEMPTOR)
    mark, delete = rig.client.requests
    assert (mark.method, mark.path) == ("PATCH", "/api/v1/namespaces/default/pods/victim/status")
    assert mark.body["metadata"] == {"uid": "victim"}
    (condition,) = mark.body["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    assert "observedGeneration" not in condition
    assert (delete.method, delete.path) == ("DELETE", "/api/v1/namespaces/default/pods/victim")
    assert delete.body["preconditions"] == {"uid": "victim"}
    assert rig.records == [EVENT]


async def test_the_mark_tells_which_spec_it_speaks_of():
    rig = Rig({}, {})
    await rig.evictor.evict(replace(ONE, generations={"victim": 3}))
    (condition,) = rig.client.requests[0].body["status"]["conditions"]
    assert condition["observedGeneration"] == 3


@pytest.mark.parametrize(
    "live",
    [
        plain_pod("urgent", "another"),
        plain_pod("urgent", node_name="elsewhere"),
        plain_pod("urgent", deleting=True),
    ],
    ids=["replaced", "bound", "dying"],
)
async def test_nobody_is_evicted_for_a_pod_that_does_not_wait(live):
    rig = Rig(live=live)
    assert await rig.evictor.evict(ONE) == EvictionFinished(
        PREEMPTOR, "the pod does not wait for a node any more"
    )
    assert rig.client.requests == []


@pytest.mark.parametrize("error", [NotFound(404), Conflict(409)])
async def test_a_victim_that_is_gone_needs_no_eviction(error):
    rig = Rig(error)
    assert await rig.evictor.evict(ONE) == EvictionFinished(PREEMPTOR)
    assert rig.records == []


async def test_an_api_server_that_is_away_for_a_moment_is_tried_again():
    rig = Rig(Unreachable("reset", sent=True), {}, ServerError(503), {}, {})
    assert await rig.evictor.evict(ONE) == EvictionFinished(PREEMPTOR)
    assert [request.method for request in rig.client.requests] == [
        "PATCH",
        "PATCH",
        "DELETE",
        "PATCH",
        "DELETE",
    ]


async def test_what_is_forbidden_is_told_and_the_others_still_go():
    rig = Rig(Forbidden(403, "no"), {}, {})
    two = Evict(PREEMPTOR, "moorage", "n", (pod_ref("first"), pod_ref("second")))
    finished = await rig.evictor.evict(two)
    assert "default/first" in finished.error
    assert "default/second" not in finished.error
    assert [record.ref.name for record in rig.records] == ["second"]


async def test_without_the_lease_nothing_is_written():
    rig = Rig(holds=False)
    finished = await rig.evictor.evict(ONE)
    assert finished.error == "the lease is not ours any more"
    assert rig.client.requests == []
