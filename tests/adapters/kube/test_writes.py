"""Writes over real sockets: reuse, the check before the write, and every way to get no answer."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.credentials import Access, Credentials
from moorage.adapters.kube.errors import BadAnswer, Conflict, TooManyRequests, Unauthorized, Unreachable
from moorage.adapters.kube.writes import Writer
from tests.kit.fake_api import Answer, Delay, Drop, FakeApi

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


@asynccontextmanager
async def writing(client, limit=4):
    writer = Writer(client, limit=limit)
    try:
        yield writer
    finally:
        await writer.close()


@asynccontextmanager
async def server(*answers):
    """A raw server that gives these bytes, one an incoming request; None: close. Counts its connections."""
    script, connections, requests = list(answers), [], []

    async def serve(reader, writer):
        connections.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                requests.append(head + await reader.readexactly(length))
                answer = script.pop(0) if script else OK
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    client = KubeClient(Credentials(Access(f"http://127.0.0.1:{port}", "Bearer secret")))
    client.connections, client.arrived = connections, requests  # type: ignore[attr-defined]
    try:
        yield client
    finally:
        listening.close()
        for writer in connections:
            writer.close()
        await listening.wait_closed()
        await asyncio.sleep(0.01)


def body(name="e"):
    return {"metadata": {"name": name}}


async def test_what_is_sent_arrives(api):
    api.token = "secret"
    async with writing(api.client("secret")) as writer:
        await writer.write("POST", EVENTS, body())
        await writer.write("PATCH", f"{EVENTS}/e", {"note": "n"}, content_type="application/merge-patch+json")
    post, patch = api.requests
    assert (post.method, post.path, post.body["metadata"]["name"]) == ("POST", EVENTS, "e")
    assert post.headers["content-type"] == "application/json"
    assert patch.headers["content-type"] == "application/merge-patch+json"
    assert api.get("/apis/events.k8s.io/v1/events", "e", "default")["note"] == "n"


async def test_connections_are_used_again():
    async with server() as client, writing(client) as writer:
        for _ in range(5):
            await writer.write("POST", "/x", body())
        await asyncio.gather(*(writer.write("POST", "/x", body()) for _ in range(3)))
    assert len(client.connections) == 3
    assert len(client.arrived) == 8


async def test_no_more_are_under_way_than_the_limit(api):
    api.on("POST", "events", Delay(0.02), times=None)
    async with writing(api.client(), limit=2) as writer:
        await asyncio.gather(*(writer.write("POST", EVENTS, body(f"e{i}")) for i in range(6)))
        assert len(writer._open) <= 2


async def test_the_check_comes_when_the_slot_and_the_connection_are_there(api):
    """And what it raises means that nothing was sent, and harms nobody."""
    api.on("POST", "events", Delay(0.05, first=True))
    allowed = True

    def check():
        if not allowed:
            raise PermissionError("not any more")

    async with writing(api.client(), limit=1) as writer:
        first = asyncio.create_task(writer.write("POST", EVENTS, body("one"), check=check))
        second = asyncio.create_task(writer.write("POST", EVENTS, body("two"), check=check))
        await asyncio.sleep(0.02)
        allowed = False
        await first
        with pytest.raises(PermissionError):
            await second
        allowed = True
        await writer.write("POST", EVENTS, body("three"), check=check)
        assert len(writer._open) == 1
    assert [r.body["metadata"]["name"] for r in api.requests] == ["one", "three"]


async def test_refusals_are_the_clients_errors(api):
    api.on("POST", "events", Answer(409, reason="AlreadyExists", message="there"))
    api.on("POST", "events", Answer(429, headers={"Retry-After": "7"}))
    async with writing(api.client()) as writer:
        with pytest.raises(Conflict, match="there"):
            await writer.write("POST", EVENTS, body())
        with pytest.raises(TooManyRequests) as caught:
            await writer.write("POST", EVENTS, body())
    assert caught.value.retry_after == 7


async def test_a_refused_token_is_renewed_once(api):
    api.token = "new"
    renewed = Access(api.url, "Bearer new")

    async def reload():
        return renewed

    client = KubeClient(Credentials(Access(api.url, "Bearer old"), reload=reload))
    async with writing(client) as writer:
        await writer.write("POST", EVENTS, body())
        api.token = "newer"
        with pytest.raises(Unauthorized):
            await writer.write("POST", EVENTS, body())
    assert [r.headers["authorization"] for r in api.requests] == ["Bearer old", "Bearer new", "Bearer new"]


@pytest.mark.parametrize("after", [True, False])
async def test_a_lost_answer_may_have_been_sent(api, after):
    api.on("POST", "events", Drop(after=after))
    async with writing(api.client()) as writer:
        with pytest.raises(Unreachable) as caught:
            await writer.write("POST", EVENTS, body())
        assert caught.value.sent
        await writer.write("POST", EVENTS, body("another"))


async def test_an_answer_that_does_not_come(api):
    api.on("POST", "events", Delay(5, first=True))
    async with writing(api.client()) as writer:
        with pytest.raises(Unreachable, match="no answer in time") as caught:
            await writer.write("POST", EVENTS, body(), timeout=0.05)
        assert caught.value.sent
        await asyncio.sleep(0)
        assert not writer._open, "a late answer must not meet the next request"


async def test_a_refused_connection_was_not_sent():
    client = KubeClient(Credentials(Access("http://127.0.0.1:1")))
    async with writing(client) as writer:
        with pytest.raises(Unreachable, match="no connection") as caught:
            await writer.write("POST", "/x", body())
    assert not caught.value.sent


async def test_an_answer_that_is_no_answer():
    async with server(b"SSH-2.0-OpenSSH\r\n\r\n") as client, writing(client) as writer:
        with pytest.raises(BadAnswer, match="not HTTP") as caught:
            await writer.write("POST", "/x", body())
        assert caught.value.sent
        await writer.write("POST", "/x", body())


async def test_a_connection_closed_while_idle_is_not_used():
    async with server() as client, writing(client) as writer:
        await writer.write("POST", "/x", body())
        client.connections[0].close()
        await asyncio.sleep(0.02)
        await writer.write("POST", "/x", body())
        assert len(client.connections) == 2


async def test_a_connection_that_says_close_is_not_used():
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with server(closing) as client, writing(client) as writer:
        await writer.write("POST", "/x", body())
        await writer.write("POST", "/x", body())
        assert len(client.connections) == 2


async def test_an_answer_that_ends_with_the_connection():
    async with server(b"HTTP/1.1 200 OK\r\n\r\n{}", None) as client, writing(client) as writer:
        task = asyncio.create_task(writer.write("POST", "/x", body()))
        await asyncio.sleep(0.02)
        client.connections[0].close()
        await task


async def test_being_cancelled_leaves_no_connection_behind(api):
    api.on("POST", "events", Delay(5, first=True))
    async with writing(api.client()) as writer:
        task = asyncio.create_task(writer.write("POST", EVENTS, body()))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert not writer._open
        await writer.write("POST", EVENTS, body("another"))


async def test_new_certificates_need_new_connections():
    async with server() as client, writing(client) as writer:
        await writer.write("POST", "/x", body())
        client.credentials.generation += 1
        await writer.write("POST", "/x", body())
        assert len(client.connections) == 2


async def test_a_server_below_a_path_and_a_proxy(api, monkeypatch):
    async with server() as client, writing(client) as writer:
        access = client.credentials.access
        client.credentials.access = Access(f"{access.server}/clusters/one/", access.authorization)
        await writer.write("POST", "/x", body())
        assert client.arrived[0].startswith(b"POST /clusters/one/x HTTP/1.1\r\n")
    proxied = api.client()
    proxied.credentials.access = Access(api.url, proxy="http://proxy.test")
    passed = []

    async def request(method, path, **options):
        passed.append((method, path, options["body"]))

    monkeypatch.setattr(proxied, "request", request)
    async with writing(proxied) as writer:
        await writer.write("POST", "/x", {"a": 1})
    assert passed == [("POST", "/x", b'{"a":1}')]


async def test_closed_is_closed(api):
    writer = Writer(api.client(), limit=1)
    await writer.write("POST", EVENTS, body())
    await writer.close()
    with pytest.raises(Unreachable, match="closed") as caught:
        await writer.write("POST", EVENTS, body())
    assert not caught.value.sent
