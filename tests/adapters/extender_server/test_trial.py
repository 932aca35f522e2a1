"""The trial of a running extender: ours passes, and each way to be wrong is found."""

import asyncio
import functools

import pytest

from moorage.adapters.extender_server.trial import Trial
from moorage.core.model.policy import NodeRules
from tests.kit.builders import make_node
from tests.kit.extender import FakeExtender, Status, keep, rate
from tests.kit.extender_rig import ExtenderRig
from tests.kit.policy_builders import labelled, make_policy

NODES = [make_node("a"), make_node("b")]
FINE = {
    "filter": keep("a", failed={"b": "no"}),
    "prioritize": rate(a=10),
    "preempt": lambda body: {"NodeNameToMetaVictims": {}},
    "bind": lambda body: {"Error": "no such pod"},
}


async def test_ours_passes():
    policy = make_policy("p", nodes=NodeRules(selector=labelled({"disk": "ssd"})))
    async with ExtenderRig(policy, nodes={"a": {}, "b": {"disk": "ssd"}}) as rig:
        findings = await Trial(f"{rig.base}/scheduler").run(NODES)
        assert [f.text for f in findings if not f.ok] == []
        assert findings[0].subject == "ready"
        assert findings[1].text == "1 of 2 nodes pass"
        assert findings[-1].text == "on; refuses a pod that is not there: the pod is gone"
        assert all(f.milliseconds is not None for f in findings)
        made_up = await Trial(f"{rig.base}/scheduler").run([])
        assert all(f.ok for f in made_up)
        rig.unready = "not yet"
        assert [f.ok for f in await Trial(f"{rig.base}/scheduler").run(NODES)].count(True) == 1
        (_, lost, *_) = await Trial(f"{rig.base}/elsewhere").run(NODES)
        assert "does the URL end with the extender's prefix?" in lost.text


@pytest.mark.parametrize(
    ("verb", "reply", "words"),
    [
        ("filter", keep("a", "b", "c"), None),
        (
            "filter",
            lambda body: {"NodeNames": ["z"], "Nodes": {"items": [{"metadata": {"name": "z"}}]}},
            "node z, which",
        ),
        ("filter", keep("a"), "says nothing of node b"),
        ("filter", lambda body: [], "the result must be an object"),
        ("filter", lambda body: {"Error": "out of order"}, "out of order"),
        ("filter", lambda body: Status(500, "oops"), "HTTP 500: oops"),
        ("prioritize", lambda body: [], "does not score just the nodes"),
        ("prioritize", lambda body: {"a": 1}, "must be a list"),
        ("prioritize", rate(a=11), "outside 0..10"),
        ("preempt", lambda body: {"NodeNameToMetaVictims": {"z": {}}}, "was not asked about"),
        ("bind", lambda body: {}, "has bound a pod that does not exist"),
        ("bind", lambda body: Status(404), "HTTP 404"),
    ],
)
async def test_what_is_wrong_is_found(verb, reply, words):
    with FakeExtender(**{**FINE, verb: reply}) as fake:
        findings = await Trial(fake.url).run(NODES)
    wrong = {f.subject.split(",")[0]: f.text for f in findings[1:] if not f.ok}
    if words is None:
        assert wrong == {}
    else:
        assert set(wrong) == {verb}
        assert words in wrong[verb]


async def test_nobody_is_there():
    findings = await Trial("http://127.0.0.1:9/scheduler", timeout=2.0).run(NODES)
    assert not any(f.ok for f in findings)


async def test_no_answer_in_time():
    async def silent(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(functools.partial(silent), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    findings = await Trial(f"http://127.0.0.1:{port}/scheduler", timeout=0.2).run(NODES)
    assert {f.text for f in findings} == {"no answer in time"}
    server.close()
    await server.wait_closed()
