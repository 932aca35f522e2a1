"""The client against a server that misbehaves: what arrives, and what each failure is called."""

import asyncio
import socket
import time

import aiohttp
import pytest

from moorage.adapters.kube import errors
from moorage.adapters.kube.client import STRATEGIC_PATCH, KubeClient
from moorage.adapters.kube.credentials import Access, Credentials
from tests.kit.fake_api import Answer, Delay, Drop, FakeApi

NODES = "/api/v1/nodes"


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


async def test_the_verbs_send_json_and_give_json(api):
    client = api.client(user_agent="moorage/test")
    made = await client.post(NODES, {"metadata": {"name": "a"}})
    assert (await client.get(f"{NODES}/a"))["metadata"]["uid"] == made["metadata"]["uid"]
    await client.patch(f"{NODES}/a", {"spec": {"unschedulable": True}})
    assert api.get(NODES, "a")["spec"] == {"unschedulable": True}
    await client.put(f"{NODES}/a", {"metadata": {"name": "a"}, "spec": {}})
    assert api.get(NODES, "a")["spec"] == {}
    await client.delete(f"{NODES}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})
    assert api.get(NODES, "a") is None

    types = {seen.method: seen.headers.get("content-type") for seen in api.requests}
    assert types == {
        "POST": "application/json",
        "GET": None,
        "PATCH": "application/merge-patch+json",
        "PUT": "application/json",
        "DELETE": "application/json",
    }
    assert {seen.headers["user-agent"] for seen in api.requests} == {"moorage/test"}
    assert "cookie" not in api.requests[-1].headers


async def test_parameters_are_quoted_and_bytes_are_sent_as_they_are(api):
    client = api.client()
    await client.get(NODES, params={"fieldSelector": "spec.nodeName!=,a=b c", "limit": 5, "watch": False})
    assert api.requests[-1].query == {
        "fieldSelector": "spec.nodeName!=,a=b c",
        "limit": "5",
        "watch": "false",
    }
    await client.request("POST", NODES, body=b'{"metadata":{"name":"raw"}}', content_type=STRATEGIC_PATCH)
    assert api.requests[-1].body == {"metadata": {"name": "raw"}}
    assert api.requests[-1].headers["content-type"] == STRATEGIC_PATCH


async def test_one_connection_serves_many_requests(api):
    client = api.client(connection_limit=1)
    await asyncio.gather(*(client.get("/version") for _ in range(20)))
    assert len({id(seen) for seen in api.requests}) == 20
    session = await client._ready()
    assert len(session.connector._conns) == 1


async def test_refusals_keep_what_the_server_said(api):
    api.put(NODES, {"metadata": {"name": "a"}})
    client = api.client()
    with pytest.raises(errors.NotFound, match='"b" not found') as caught:
        await client.get(f"{NODES}/b")
    assert caught.value.reason == "NotFound"
    with pytest.raises(errors.Conflict):
        await client.delete(f"{NODES}/a", {"preconditions": {"uid": "another"}})
    api.on("GET", "/nodes", Answer(429, headers={"Retry-After": "2"}))
    with pytest.raises(errors.TooManyRequests) as flooded:
        await client.get(NODES)
    assert flooded.value.retry_after == 2.0


async def test_a_redirect_is_not_followed_with_our_token(api):
    api.on("GET", "/nodes", Answer(302, headers={"Location": f"{api.url}/version"}))
    with pytest.raises(errors.ApiError):
        await api.client("secret").get(NODES)
    assert api.count("GET", "/version") == 0


async def test_nothing_was_sent_where_nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = KubeClient(Credentials(Access(f"http://127.0.0.1:{port}")))
        with pytest.raises(errors.Unreachable, match=f"127.0.0.1:{port}") as caught:
            await client.get(NODES)
        await client.close()
    assert caught.value.sent is False


@pytest.mark.parametrize("after", [False, True])
async def test_a_reset_may_have_taken_effect(api, after):
    api.on("POST", "/nodes", Drop(after=after))
    with pytest.raises(errors.Unreachable) as caught:
        await api.client().post(NODES, {"metadata": {"name": "a"}})
    assert caught.value.sent is True
    assert (api.get(NODES, "a") is not None) is after
    assert api.count("POST", "/nodes") == 1  # a POST is never repeated behind our back


async def test_a_timeout_while_waiting_for_the_answer_may_have_taken_effect(api):
    api.on("GET", "/nodes", Delay(30))
    started = time.monotonic()
    with pytest.raises(errors.Unreachable, match="in time") as caught:
        await api.client().get(NODES, timeout=0.1)
    assert caught.value.sent is True
    assert time.monotonic() - started < 1.0


async def test_a_timeout_while_waiting_for_a_connection_was_not_sent(api):
    client = api.client(connection_limit=1)
    api.on("GET", "/nodes", Delay(30))
    first = asyncio.create_task(client.get(NODES, timeout=0.3))
    while not api.requests:
        await asyncio.sleep(0.01)
    with pytest.raises(errors.Unreachable) as caught:
        await client.get("/version", timeout=0.1)
    assert caught.value.sent is False
    assert api.count("GET", "/version") == 0
    with pytest.raises(errors.Unreachable):
        await first


async def test_a_client_closed_under_a_request_ends_it(api):
    api.on("GET", "/nodes", Delay(30))
    client = api.client()
    request = asyncio.create_task(client.get(NODES))
    while not api.requests:
        await asyncio.sleep(0.01)
    await client.close()
    with pytest.raises(errors.Unreachable):
        await request


@pytest.mark.parametrize("status", [200, 201])
async def test_garbage_instead_of_json_is_as_good_as_no_answer(api, status):
    api.on("GET", "/nodes", Answer(status, b"<html>welcome</html>"))
    with pytest.raises(errors.BadAnswer, match="not JSON") as caught:
        await api.client().get(NODES)
    assert caught.value.sent is True


async def test_an_empty_answer_is_none(api):
    api.on("GET", "/nodes", Answer(200, b""))
    assert await api.client().get(NODES) is None


async def test_a_closed_client_says_so(api):
    client = api.client()
    await client.get("/version")
    await client.close()
    await client.close()
    with pytest.raises(errors.Unreachable, match="closed") as caught:
        await client.get("/version")
    assert caught.value.sent is False
    with pytest.raises(errors.Unreachable, match="closed"):
        async with client.stream(NODES):
            pass


async def test_separate_connections_are_not_held_up_by_the_others(api):
    client = api.client(connection_limit=1)
    lease = client.separate()
    api.on("GET", "/nodes", Delay(30))
    busy = asyncio.create_task(client.get(NODES, timeout=0.3))
    while not api.requests:
        await asyncio.sleep(0.01)
    assert await lease.get("/version", timeout=0.2)
    await lease.close()
    with pytest.raises(errors.Unreachable):
        await busy


# --- Credentials ---


def renewable(api, tokens: list[str]) -> KubeClient:
    """A client whose credentials are read again from ``tokens``, the last one staying."""

    async def read() -> Access:
        token = tokens.pop(0) if len(tokens) > 1 else tokens[0]
        return Access(api.url, f"Bearer {token}")

    client = KubeClient(Credentials(Access(api.url, "Bearer old"), reload=read))
    api._clients.append(client)
    return client


async def test_a_401_renews_the_credentials_once_and_tries_again(api):
    api.token = "new"
    assert await renewable(api, ["new"]).get("/version")
    assert [seen.headers["authorization"] for seen in api.requests] == ["Bearer old", "Bearer new"]


async def test_requests_refused_at_the_same_time_share_one_renewal(api):
    api.token = "new"
    tokens = ["new", "never", "never"]
    client = renewable(api, tokens)
    await asyncio.gather(*(client.get("/version") for _ in range(5)))
    assert tokens == ["never", "never"]


async def test_credentials_that_stay_bad_are_an_error_and_not_a_loop(api):
    api.token = "new"
    client = renewable(api, ["bad", "worse", "worst"])
    with pytest.raises(errors.Unauthorized):
        await client.get("/version")
    assert len(api.requests) == 2
    with pytest.raises(errors.Unauthorized):  # and the next request does not ask for others at once
        await client.get("/version")
    assert len(api.requests) == 3


async def test_credentials_that_cannot_be_renewed_are_tried_once(api):
    api.token = "new"
    with pytest.raises(errors.Unauthorized):
        await api.client("old").get("/version")
    assert len(api.requests) == 1


async def test_a_new_certificate_means_new_connections(api):
    digests = iter([(b"1",), (b"2",)])

    async def read() -> Access:
        return Access(api.url, "Bearer new", digests=next(digests))

    client = KubeClient(Credentials(Access(api.url, "Bearer old"), reload=read))
    api.token = None
    await client.get("/version")
    before = await client._ready()
    api.token = "new"
    await client.get("/version")
    after = await client._ready()
    assert after is not before
    assert not before.closed  # what is under way there may end
    await client.close()
    assert before.closed


# --- Streams ---


async def test_a_stream_gives_what_comes_while_it_comes(api):
    async with api.client().stream(NODES, params={"watch": True}) as response:
        while not api.watches():
            await asyncio.sleep(0.01)
        api.put(NODES, {"metadata": {"name": "a"}})
        assert b'"ADDED"' in await response.content.readany()
        api.end()
        assert await response.content.readany() == b""


async def test_a_silent_stream_fails_after_the_limit(api):
    with pytest.raises(errors.Unreachable) as caught:
        async with api.client().stream(NODES, params={"watch": True}, silence=0.1) as response:
            await response.content.readany()
    assert caught.value.sent is True


async def test_a_cut_stream_fails(api):
    async with api.client().stream(NODES, params={"watch": True}) as response:
        while not api.watches():
            await asyncio.sleep(0.01)
        api.cut()
        with pytest.raises((ConnectionError, aiohttp.ClientError)):
            await response.content.readany()
    with pytest.raises(errors.Unreachable):
        async with api.client().stream(NODES, params={"watch": True}):
            raise aiohttp.ClientPayloadError("cut")


async def test_a_refused_stream_is_the_error_it_is(api):
    api.on("GET", r"watch=true", Answer(410, reason="Expired"))
    with pytest.raises(errors.Gone):
        async with api.client().stream(NODES, params={"watch": True}):
            pass


async def test_a_stream_renews_credentials_as_a_request_does(api):
    api.token = "new"
    async with renewable(api, ["new"]).stream(NODES, params={"watch": True}) as response:
        assert response.status == 200


async def test_an_exception_of_the_reader_passes_unchanged(api):
    for bug in (KeyError("mine"), RuntimeError("mine")):
        with pytest.raises(type(bug), match="mine"):
            async with api.client().stream(NODES, params={"watch": True}):
                raise bug
