"""The reflector against a server that breaks its watches in every way we know of."""

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.adapters.kube import errors, watch
from moorage.adapters.kube.watch import Pace, Reflector, Target, Trouble
from tests.kit.fake_api import Answer, Delay, FakeApi

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
HURRY = Pace(silence=5.0, first_delay=0.01, longest_delay=0.05, page=3)


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


@pytest.fixture(params=["watch-list", "list"])
def served(request, api):
    """Both ways to get the list; a server without WatchList says so."""
    api.watch_list = request.param == "watch-list"
    return request.param


class Mirror:
    """A receiver that knows names, and remembers every call."""

    def __init__(self) -> None:
        self.state: dict[str, int] = {}  # name -> resource version
        self.calls: list[str] = []
        self.synced = 0
        self.troubles: list[str] = []
        self.malformed: list[str] = []

    def apply(self, obj: dict[str, Any]) -> str:
        name = obj["metadata"]["name"]
        if obj.get("bad"):
            raise ValueError("cannot be read")
        self.state[name] = int(obj["metadata"]["resourceVersion"])
        self.calls.append(f"+{name}")
        return name

    def delete(self, name: str) -> None:
        del self.state[name]
        self.calls.append(f"-{name}")

    def take(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls

    def count_sync(self) -> None:
        self.synced += 1

    def reflector(self, api: FakeApi, target: Target | None = None, **options: Any) -> Reflector[str]:
        return Reflector(
            api.client(),
            target or Target(NODES),
            apply=self.apply,
            delete=self.delete,
            on_synced=self.count_sync,
            on_trouble=lambda trouble, _error: self.troubles.append(trouble.value),
            on_malformed=lambda key, error: self.malformed.append(f"{key}: {error}"),
            **({"pace": HURRY} | options),
        )


async def until(condition, seconds: float = 3.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        await asyncio.sleep(0.005)


@asynccontextmanager
async def running(reflector: Reflector[str]):
    task = asyncio.create_task(reflector.run())
    try:
        yield task
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def names(api: FakeApi) -> set[str]:
    return {obj["metadata"]["name"] for obj in api._objects[NODES].values()}


async def watching(reflector: Reflector[str], api: FakeApi):
    await until(lambda: reflector.synced and api.watches())


async def test_all_objects_then_every_change(api, served):
    for name in "abcdefg":  # more than two pages
        api.put(NODES, node(name))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        assert sorted(mirror.take()) == [f"+{name}" for name in "abcdefg"]
        assert mirror.synced == 1
        api.put(NODES, node("h"))
        api.put(NODES, node("a", spec={"unschedulable": True}))
        api.remove(NODES, "b")
        await until(lambda: len(mirror.calls) == 3)
        assert mirror.take() == ["+h", "+a", "-b"]
        assert len(reflector) == len(names(api)) == 7
        assert mirror.troubles == []
    lists = api.seen("GET", "/nodes$")
    if served == "list":
        assert [seen.query.get("limit") for seen in lists if "watch" not in seen.query] == ["3", "3", "3"]
    else:
        assert all("watch" in seen.query for seen in lists)


async def test_selectors_are_sent_and_leaving_them_is_a_delete(api, served):
    mirror = Mirror()
    reflector = mirror.reflector(api, Target(PODS, field_selector="spec.nodeName!="))
    api.put(PODS, {"metadata": {"name": "bound", "namespace": "x"}, "spec": {"nodeName": "n"}})
    api.put(PODS, {"metadata": {"name": "free", "namespace": "x"}, "spec": {}})
    async with running(reflector):
        await watching(reflector, api)
        api.put(PODS, {"metadata": {"name": "free", "namespace": "x"}, "spec": {"nodeName": "n"}})
        api.remove(PODS, "bound", "x")
        await until(lambda: len(mirror.calls) == 3)
        assert mirror.take() == ["+bound", "+free", "-bound"]


async def test_a_server_without_watch_list_is_asked_only_once(api):
    api.watch_list = False
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        api.compact()
        api.end()
        await until(lambda: reflector.lists == 2)
    assert sum("sendInitialEvents" in seen.query for seen in api.requests) == 1
    assert mirror.troubles == []


async def test_an_empty_collection_is_synced_too(api, served):
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        assert mirror.synced == 1
        assert mirror.calls == []
        assert reflector.healthy


# --- B11: five ways for a stream to end, and what must be noticed afterwards ---


async def test_a_stream_that_ends_goes_on_from_the_last_version(api, served):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        api.bookmark(NODES)
        await until(lambda: reflector.resource_version == str(api.version))
        seen = len(api.requests)
        api.end()  # what follows comes too late for this stream
        api.put(NODES, node("b"))
        api.remove(NODES, "a")
        await until(lambda: mirror.state.keys() == {"b"})
        assert mirror.take() == ["+a", "+b", "-a"]
        assert "sendInitialEvents" not in api.requests[seen].query
        assert reflector.lists == 1


@pytest.mark.parametrize("how", ["cut", "error-500", "garbage", "not-an-object"])
async def test_a_stream_that_breaks_goes_on_from_the_last_version(api, how):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        before = api.version
        if how == "cut":
            api.cut()
        elif how == "error-500":
            api.error(500)
        elif how == "garbage":
            api.send(b"garbage\n")
        else:
            api.send(b'{"type": "ADDED", "object": 7}\n')
        await until(lambda: reflector.streams == 2)
        api.put(NODES, node("b"))
        await until(lambda: "b" in mirror.state)
        assert mirror.take() == ["+a", "+b"]
        assert api.requests[-1].query["resourceVersion"] == str(before)
        assert reflector.lists == 1
        assert mirror.troubles == []


async def test_bookmarks_move_the_version_on(api):
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        api.version += 50  # as writes to other collections do
        api.bookmark()
        await until(lambda: reflector.resource_version == str(api.version))
        api.cut()
        await until(lambda: reflector.streams == 2)
        assert api.requests[-1].query["resourceVersion"] == str(api.version)


@pytest.mark.parametrize("how", ["http", "event"])
async def test_deletes_missed_before_a_410_are_noticed(api, served, how):
    """B32: what vanished while the watch was broken must not stay booked."""
    for name in "abcde":
        api.put(NODES, node(name))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        mirror.take()
        if how == "http":
            api.cut()
        else:
            api.mute()
            for watch in api.watches():
                watch.muted = False
                watch.collection = "nowhere"  # sees no changes any more
        api.remove(NODES, "b")
        api.put(NODES, node("c", spec={"changed": True}))
        api.remove(NODES, "d")
        api.put(NODES, node("d"))  # the name again, with another uid
        api.put(NODES, node("f"))
        api.compact()
        if how == "event":
            api.error(410, "nowhere", reason="Expired")
        await until(lambda: reflector.lists == 2)
        calls = mirror.take()
        assert sorted(calls) == ["+c", "+d", "+f", "-b", "-d"]  # and nothing about a and e
        assert calls.index("-d") < calls.index("+d")
        assert mirror.state.keys() == names(api)
        assert mirror.synced == 1
        assert mirror.troubles == []


async def test_a_silent_stream_is_dropped(api, served):
    """B32: the connection is open, nothing comes, not even bookmarks."""
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api, pace=replace(HURRY, silence=0.15))
    async with running(reflector):
        await watching(reflector, api)
        api.mute()
        api.put(NODES, node("b"))
        await until(lambda: "b" in mirror.state)
        assert mirror.take() == ["+a", "+b"]
        assert mirror.troubles == []


async def test_age_tells_how_long_nothing_was_heard(api):
    now = 1000.0
    mirror = Mirror()
    reflector = mirror.reflector(api, clock=lambda: now)
    async with running(reflector):
        await watching(reflector, api)
        assert reflector.age == 0.0
        now += 2 * HURRY.silence + 1
        assert reflector.age == 2 * HURRY.silence + 1
        assert not reflector.healthy
        api.bookmark()
        await until(lambda: reflector.age == 0.0)
        assert reflector.healthy


async def test_a_restarted_server_is_found_again(api):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        port = api.port
        await api.stop()
        await until(lambda: reflector.trouble is Trouble.UNREACHABLE)
        api.put(NODES, node("b"))
        await api.start(port)
        await until(lambda: "b" in mirror.state and mirror.troubles[-1] == "none")
        assert mirror.troubles == ["unreachable", "none"]
        assert mirror.take() == ["+a", "+b"]


async def test_nobody_listens_at_the_start(api):
    port = api.port
    await api.stop()
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await until(lambda: mirror.troubles == ["unreachable"])
        assert not reflector.synced
        assert not reflector.healthy
        await api.start(port)
        await until(lambda: reflector.synced)
        await until(lambda: mirror.troubles == ["unreachable", "none"])


# --- Lists that go wrong ---


async def test_a_continue_token_that_is_too_old_starts_the_list_again(api):
    for name in "abcdefg":
        api.put(NODES, node(name))
    api.watch_list = False
    api.on("GET", "continue=", Answer(410, reason="Expired"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        assert sorted(mirror.take()) == [f"+{name}" for name in "abcdefg"]
        assert reflector.lists == 1


async def test_410_again_and_again_is_not_a_storm(api, served):
    api.on("GET", "/nodes", Answer(410, reason="Expired"), times=None)
    mirror = Mirror()
    async with running(mirror.reflector(api, pace=replace(HURRY, first_delay=0.05, longest_delay=10.0))):
        await asyncio.sleep(0.3)
        assert 2 <= len(api.requests) <= 6


async def test_a_list_that_fails_in_the_middle_is_no_reason_to_delete_anything(api):
    for name in "abcdefg":
        api.put(NODES, node(name))
    api.watch_list = False
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        mirror.take()
        api.on("GET", "continue=", Answer(500))
        api.compact()
        api.cut()
        await until(lambda: reflector.lists == 2)
        assert api.count("GET", "/nodes$") >= 3 + 1 + 2 + 3
        assert mirror.take() == []


async def test_initial_events_cut_in_the_middle_are_no_reason_to_delete_anything(api):
    for name in "abcdefg":
        api.put(NODES, node(name))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        mirror.take()
        api.initial_bookmark = False
        api.compact()
        api.cut()
        await until(lambda: reflector.streams == 2 and api.watches())
        api.initial_bookmark = True
        api.remove(NODES, "g")
        api.cut()
        await until(lambda: reflector.lists == 2)
        assert mirror.take() == ["-g"]


async def test_a_watch_whose_list_never_ends_is_replaced_by_a_list(api):
    """A server that ignores what it does not know sends the objects and never says that this was all."""
    api.initial_bookmark = False
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api, pace=replace(HURRY, silence=0.1))
    async with running(reflector):
        await until(lambda: reflector.synced)
        assert mirror.take() == ["+a"]
        assert sum("sendInitialEvents" in seen.query for seen in api.requests) == 2


@pytest.mark.parametrize("body", [b"null", b"{}", b'{"items": []}', b'{"items": 5, "metadata": null}'])
async def test_an_answer_that_is_no_list_is_asked_for_again(api, body):
    api.put(NODES, node("a"))
    api.watch_list = False
    api.on("GET", "limit=", Answer(200, body))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        assert mirror.state.keys() == {"a"}


# --- Refusals ---


@pytest.mark.parametrize(("code", "trouble"), [(403, "forbidden"), (401, "unauthorized")])
async def test_lost_permissions_are_reported_once_and_tried_again(api, code, trouble):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        api.on("GET", "/nodes", Answer(code), times=4)
        api.cut()
        await until(lambda: mirror.troubles)
        api.put(NODES, node("b"))
        await until(lambda: "b" in mirror.state)
        await until(lambda: mirror.troubles[-1] == "none")
        assert mirror.troubles == [trouble, "none"]
        assert reflector.lists == 1


async def test_a_version_that_the_server_refuses_to_go_on_from_is_given_up(api):
    """After an etcd restore the version may lie in the future, which is no 410."""
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        api.on("GET", "resourceVersion=", Answer(504, reason="Timeout"), times=None)
        api.cut()
        await until(lambda: reflector.lists == 2)
        assert mirror.troubles == ["refused", "none"]


async def test_the_server_says_when_to_come_back(api):
    reflector = Mirror().reflector(api)
    assert reflector._failed(errors.TooManyRequests(429, retry_after=7.0)) == 7.0
    assert reflector._failed(errors.ServerError(503)) <= HURRY.longest_delay


async def test_delays_double_up_to_a_limit_and_start_again_after_success(api):
    reflector = Mirror().reflector(api, pace=Pace())
    lost = errors.Unreachable("lost", sent=True)
    delays = [reflector._failed(lost) for _ in range(12)]
    for number, delay in enumerate(delays):
        step = min(30.0, 0.25 * 2**number)
        assert step / 2 <= delay <= step
    reflector._working()
    assert reflector._failed(lost) <= 0.25


# --- Receivers ---


async def test_a_bad_object_hides_no_other(api, served):
    api.put(NODES, node("a", bad=True))
    api.put(NODES, node("b"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        assert mirror.malformed == ["a: cannot be read"]
        assert mirror.take() == ["+b"]
        api.put(NODES, node("a"))
        await until(lambda: mirror.calls == ["+a"])


async def test_a_bug_of_the_receiver_ends_it_loudly(api):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    task = asyncio.create_task(reflector.run())
    await watching(reflector, api)
    mirror.state.clear()  # its delete raises now
    api.remove(NODES, "a")
    with pytest.raises(KeyError):
        await asyncio.wait_for(task, 3)


async def test_a_long_list_does_not_hold_the_loop(api, served, monkeypatch):
    """2,000 objects that take 0.5 ms each to apply: a second of work, in turns of two slices at most."""
    for number in range(2000):
        api.put(NODES, node(f"n{number}"))
    worked = 0.0
    monkeypatch.setattr(watch, "time", SimpleNamespace(perf_counter=lambda: worked))
    mirror = Mirror()

    def slow(obj):
        nonlocal worked
        worked += 0.0005
        return mirror.apply(obj)

    pace = replace(HURRY, page=400, slice=0.02)
    reflector = Reflector(
        api.client(), Target(NODES), apply=slow, delete=mirror.delete, pace=pace, clock=time.monotonic
    )
    turns: list[float] = []

    async def heartbeat():
        while not reflector.synced:
            before = worked
            await asyncio.sleep(0)
            turns.append(worked - before)

    async with running(reflector):
        await asyncio.wait_for(heartbeat(), 20)
    assert len(mirror.state) == 2000
    assert max(turns) <= 2 * (0.02 + 0.0005)


async def test_nothing_grows_with_the_objects_that_ever_were(api):
    """B35: per-object state dies with the object, also when its delete is only inferred by a list."""
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        for number in range(300):
            api.put(NODES, node(f"n{number}"))
            api.remove(NODES, f"n{number}")
        api.put(NODES, node("last"))
        await until(lambda: "last" in mirror.state)
        assert len(reflector) == 1
        api.cut()
        api.remove(NODES, "last")
        api.compact()
        await until(lambda: reflector.lists == 2)
        assert len(reflector) == 0
        assert mirror.state == {}


# --- Refresh ---


async def test_refresh_waits_for_what_happened_before_it(api):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        await reflector.refresh()  # nothing happened: the version is known
        assert reflector.streams == 1
        api.mute()  # a stream that lags
        api.put(NODES, node("b"))
        await reflector.refresh()
        assert mirror.state.keys() == {"a", "b"}
        assert reflector.lists == 1
        assert mirror.troubles == []
        assert api.requests[-1].query["timeoutSeconds"] == "3"


async def test_refresh_lists_again_when_no_bookmark_comes(api):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        api.version += 5  # other collections have moved on, and this server sends no bookmark
        await reflector.refresh(patience=0.1)
        assert reflector.lists == 2
        assert mirror.take() == ["+a"]


async def test_refresh_lists_few_objects_at_once(api):
    """And tells of what has changed only."""
    api.put(NODES, node("a"))
    api.put(NODES, node("gone"))
    mirror = Mirror()
    reflector = mirror.reflector(api, pace=replace(HURRY, few=2))
    async with running(reflector):
        await watching(reflector, api)
        mirror.take()
        api.mute()  # a stream that lags
        api.put(NODES, node("b"))
        api.remove(NODES, "gone")
        await reflector.refresh(patience=1000)
        assert mirror.take() == ["+b", "-gone"]
        assert reflector.lists == 2


async def test_refresh_waits_for_a_bookmark_where_there_are_more(api):
    for name in "abc":
        api.put(NODES, node(name))
    mirror = Mirror()
    reflector = mirror.reflector(api, pace=replace(HURRY, few=2))
    async with running(reflector):
        await watching(reflector, api)
        api.mute()
        api.put(NODES, node("d"))
        await reflector.refresh()
        assert mirror.state.keys() == {"a", "b", "c", "d"}
        assert reflector.lists == 1


async def test_refresh_before_the_first_list_waits_for_it(api):
    api.put(NODES, node("a"))
    api.on("GET", "watch=true", Delay(0.1, first=True))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await reflector.refresh()
        assert mirror.state.keys() == {"a"}


async def test_refresh_says_when_the_server_cannot_be_asked(api):
    mirror = Mirror()
    reflector = mirror.reflector(api)
    api.on("GET", "limit=1", Answer(403))
    with pytest.raises(errors.Forbidden):
        await reflector.refresh()


# --- Told again ---


async def test_all_is_told_again_when_asked_for(api, served):
    for name in "abcd":
        api.put(NODES, node(name))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        mirror.take()
        async with asyncio.timeout(5):
            await reflector.tell_again()
        assert sorted(mirror.take()) == ["+a", "+b", "+c", "+d"]
        assert (reflector.lists, mirror.synced) == (2, 1)
        await until(api.watches)
        api.put(NODES, node("e"))
        api.remove(NODES, "a")
        await until(lambda: mirror.state.keys() == set("bcde"))
        assert mirror.take() == ["+e", "-a"], "and then what is new"
        assert mirror.troubles == []


async def test_what_changes_meanwhile_is_not_lost(api, served):
    for i in range(40):
        api.put(NODES, node(f"n{i}"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        for i in range(10):
            task = asyncio.create_task(reflector.tell_again())
            api.put(NODES, node(f"n{i}", spec={"round": i}))
            api.remove(NODES, f"n{20 + i}")
            await asyncio.sleep(0.001 * i)
            api.put(NODES, node(f"m{i}"))
            async with asyncio.timeout(5):
                await task
        await until(lambda: mirror.state.keys() == names(api))
        assert mirror.state == {
            obj["metadata"]["name"]: int(obj["metadata"]["resourceVersion"])
            for obj in api._objects[NODES].values()
        }


async def test_asked_for_while_a_list_comes_in_it_is_told_after_that(api):
    """Half of that list was told before: it does not count."""
    api.watch_list = False
    for name in "abcdef":
        api.put(NODES, node(name))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    api.on("GET", "continue=", Delay(0.1))
    async with running(reflector):
        await until(lambda: mirror.state.keys() == set("abc"))
        mirror.take()
        async with asyncio.timeout(5):
            await reflector.tell_again()
        told = mirror.take()
        assert {"+a", "+b", "+c", "+d", "+e", "+f"} <= set(told)
        assert reflector.lists == 2


async def test_asked_for_while_nobody_answers_it_is_told_when_somebody_does(api, served):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        mirror.take()
        port = api.port
        await api.stop()
        task = asyncio.create_task(reflector.tell_again())
        await until(lambda: reflector.trouble is Trouble.UNREACHABLE)
        assert mirror.take() == []
        await api.start(port)
        async with asyncio.timeout(5):
            await task
        assert mirror.take() == ["+a"]


async def test_asked_for_while_the_stream_is_opened_it_is_told_at_once(api):
    api.put(NODES, node("a"))
    mirror = Mirror()
    reflector = mirror.reflector(api)
    async with running(reflector):
        await watching(reflector, api)
        mirror.take()
        api.on("GET", "watch=true", Delay(0.1, first=True))
        seen = len(api.requests)
        api.cut()
        await until(lambda: len(api.requests) > seen)
        async with asyncio.timeout(5):
            await reflector.tell_again()
        assert mirror.take() == ["+a"]
