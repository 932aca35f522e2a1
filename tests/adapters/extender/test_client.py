"""The client against a fake extender: what is on the wire, and what becomes of answers."""

import time
from typing import Any

import pytest

from moorage.adapters.extender.bind import RoutedBinder
from moorage.adapters.extender.client import ExtenderClient
from moorage.adapters.extender.endpoint import ExtenderEndpoint
from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.extender import (
    Extender,
    Filtered,
    NoAnswer,
    Preempted,
    Prioritized,
    Question,
    Verb,
    Victims,
)
from moorage.core.model.instructions import Placement
from tests.kit.extender import FakeExtender, Status, keep, rate
from tests.kit.fakes import FakeBinder, FakeReader, plain_pod, pod_ref

REF = pod_ref("web", "u1")


class Objects:
    async def pod(self, ref):
        if ref.name == "gone":
            raise LookupError("pod default/gone is gone")
        return b'{"metadata": {"name": "%s", "uid": "%s"}}' % (ref.name.encode(), ref.uid.encode())

    async def nodes(self, names):
        return [b'{"metadata": {"name": "%s"}}' % name.encode() for name in names]


class Meter:
    def __init__(self):
        self.calls: list[tuple[str, str]] = []

    def extender_called(self, extender, verb, outcome, seconds):
        self.calls.append((verb, outcome))


def endpoint(url: str, **fields: Any) -> ExtenderEndpoint:
    own = {"ignorable": fields.pop("ignorable", False), "binds": True}
    paths = {verb: verb.value for verb in Verb}
    return ExtenderEndpoint(Extender(url, verbs=frozenset(paths), **own), paths, "bind", **fields)


@pytest.fixture
async def connect():
    """Make a client for one extender, and ask it."""
    clients = []

    def make(url: str, **fields: Any) -> tuple[ExtenderClient, ExtenderEndpoint, Meter]:
        one, meter = endpoint(url, **fields), Meter()
        clients.append(ExtenderClient(Objects(), [one], meter))
        return clients[-1], one, meter

    yield make
    for client in clients:
        await client.close()


async def test_filter_by_names(connect):
    with FakeExtender(filter=keep("a", failed={"b": "no"}, final={"c": "never"})) as fake:
        client, one, meter = connect(fake.url, node_cache_capable=True)
        answer = await client.ask(Question(one.extender, Verb.FILTER, REF, ("a", "b", "c")))
        assert answer == Filtered(("a",), {"b": "no"}, {"c": "never"})
        pod = {"metadata": {"name": "web", "uid": "u1"}}
        assert fake.bodies("filter") == [{"Pod": pod, "Nodes": None, "NodeNames": ["a", "b", "c"]}]
        assert meter.calls == [("filter", "success")]


async def test_filter_by_whole_nodes(connect):
    with FakeExtender(filter=keep("a")) as fake:
        client, one, _ = connect(fake.url)
        answer = await client.ask(Question(one.extender, Verb.FILTER, REF, ("a", "b")))
        assert answer == Filtered(("a",))
        (body,) = fake.bodies("filter")
        items = [{"metadata": {"name": name}} for name in "ab"]
        assert (body["NodeNames"], body["Nodes"]) == (None, {"metadata": {}, "items": items})


async def test_prioritize(connect):
    with FakeExtender(prioritize=rate(a=3)) as fake:
        client, one, _ = connect(fake.url, node_cache_capable=True)
        question = Question(one.extender, Verb.PRIORITIZE, REF, ("a", "b"))
        assert await client.ask(question) == Prioritized((("a", 3), ("b", 0)))


VICTIMS = {"a": Victims((pod_ref("one", "u2"), pod_ref("two", "u3")), 1)}


async def test_preempt_by_uids(connect):
    reply = {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u3"}], "NumPDBViolations": 0}}}
    with FakeExtender(preempt=lambda body: reply) as fake:
        client, one, _ = connect(fake.url, node_cache_capable=True)
        answer = await client.ask(Question(one.extender, Verb.PREEMPT, REF, victims=VICTIMS))
        assert answer == Preempted({"a": (("u3",), 0)})
        (body,) = fake.bodies("preempt")
        assert body["NodeNameToVictims"] is None
        sent = {"Pods": [{"UID": "u2"}, {"UID": "u3"}], "NumPDBViolations": 1}
        assert body["NodeNameToMetaVictims"] == {"a": sent}


async def test_preempt_by_whole_pods(connect):
    with FakeExtender(preempt=lambda body: {}) as fake:
        client, one, _ = connect(fake.url)
        answer = await client.ask(Question(one.extender, Verb.PREEMPT, REF, victims=VICTIMS))
        assert answer == Preempted({})
        (body,) = fake.bodies("preempt")
        assert body["NodeNameToMetaVictims"] is None
        assert [p["metadata"]["uid"] for p in body["NodeNameToVictims"]["a"]["Pods"]] == ["u2", "u3"]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"Error": "I would rather not"}, "I would rather not"),
        (Status(503, "busy"), "code 503"),
        (Status(200, "<html>"), "not JSON"),
        ([], "the result must be an object, not list"),
        ({"NodeNames": "a"}, "NodeNames must be a list"),
        ({"NodeNames": [1]}, "NodeNames must be a string"),
        ({"FailedNodes": {"a": 1}}, "FailedNodes[a] must be a string"),
    ],
)
async def test_what_is_no_answer(connect, reply, words):
    with FakeExtender(filter=lambda body: reply) as fake:
        client, one, _ = connect(fake.url, node_cache_capable=True)
        answer = await client.ask(Question(one.extender, Verb.FILTER, REF, ("a",)))
        assert isinstance(answer, NoAnswer)
        assert words in answer.message


async def test_one_that_is_not_there(connect):
    client, one, meter = connect("http://127.0.0.1:1")
    answer = await client.ask(Question(one.extender, Verb.FILTER, REF, ("a",)))
    assert isinstance(answer, NoAnswer)
    assert "failed filter with extender at URL http://127.0.0.1:1/filter" in answer.message
    assert meter.calls == [("filter", "error")]


async def test_one_that_takes_too_long(connect):
    with FakeExtender(filter=lambda body: time.sleep(0.3)) as fake:
        client, one, _ = connect(fake.url, timeout=0.05)
        answer = await client.ask(Question(one.extender, Verb.FILTER, REF, ("a",)))
        assert isinstance(answer, NoAnswer)
        assert answer.message.endswith("no answer within 0.05 s")


async def test_a_pod_that_cannot_be_shown(connect):
    client, one, _ = connect("http://127.0.0.1:1")
    answer = await client.ask(Question(one.extender, Verb.FILTER, pod_ref("gone"), ("a",)))
    assert answer == NoAnswer("extender http://127.0.0.1:1 cannot be asked: pod default/gone is gone")


async def test_one_that_is_configured_no_more_is_still_known_for_a_while(connect):
    with FakeExtender(filter=keep("a")) as fake:
        client, one, _ = connect(fake.url)
        question = Question(one.extender, Verb.FILTER, REF, ("a",))
        await client.configure([])
        assert await client.ask(question) == Filtered(("a",))
        await client.configure([])
        assert isinstance(await client.ask(question), NoAnswer)


# -- bind ----------------------------------------------------------------------------------------


async def bind(connect, url, *, live=None, holds=True, unfit=None, bound_by=None, **fields):
    client, _, _ = connect(url, **fields)
    ours = FakeBinder()
    binder = RoutedBinder(ours, client, FakeReader(web=live), holds=lambda: holds)
    placement = Placement(REF, "a", url if bound_by is None else bound_by)
    return await binder.bind(placement, (), lambda: unfit), ours.bound


async def test_it_binds_and_we_do_not(connect):
    with FakeExtender(bind=lambda body: {}) as fake:
        assert await bind(connect, fake.url) == (BindSucceeded(REF, "a"), [])
        assert fake.bodies("bind") == [
            {"PodName": "web", "PodNamespace": "default", "PodUID": "u1", "Node": "a"}
        ]


async def test_pods_that_concern_no_extender_are_bound_by_us(connect):
    result, ours = await bind(connect, "http://127.0.0.1:1", bound_by="")
    assert (result, len(ours)) == (BindSucceeded(REF, "a"), 1)


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (plain_pod("web", "u1"), BindFailed(REF, "a", BindFailure.EXTENDER, "no")),
        (plain_pod("web", "u1", node_name="a"), BindSucceeded(REF, "a")),
        (
            plain_pod("web", "u1", node_name="b"),
            BindFailed(REF, "a", BindFailure.BOUND_ELSEWHERE, "the pod is bound to b"),
        ),
        (None, BindFailed(REF, "a", BindFailure.GONE, "the pod is gone")),
    ],
)
async def test_when_it_fails_the_live_pod_says_what_became_of_it(connect, live, expected):
    with FakeExtender(bind=lambda body: {"Error": "no"}) as fake:
        assert await bind(connect, fake.url, live=live) == (expected, [])


async def test_when_an_ignorable_one_fails_we_bind(connect):
    with FakeExtender(bind=lambda body: {"Error": "no"}) as fake:
        result, ours = await bind(connect, fake.url, live=plain_pod("web", "u1"), ignorable=True)
        assert (result, len(ours)) == (BindSucceeded(REF, "a"), 1)


async def test_nothing_is_sent_without_the_lease_or_after_a_bad_last_look(connect):
    with FakeExtender(bind=lambda body: {}) as fake:
        result, _ = await bind(connect, fake.url, holds=False)
        assert result.failure is BindFailure.NOT_LEADER
        result, _ = await bind(connect, fake.url, unfit="Insufficient cpu")
        assert (result.failure, result.message) == (BindFailure.STALE, "Insufficient cpu")
        assert fake.asked == []
