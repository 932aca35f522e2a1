"""The endpoint over real HTTP on loopback."""

import asyncio

import aiohttp
import pytest

from moorage.adapters.inquiry.access import Access
from moorage.adapters.inquiry.endpoint import InquiryEndpoint
from moorage.adapters.kube.errors import Unreachable
from moorage.runtime.ports import PodReadError


class Rig:
    def __init__(self):
        self.access = Access.ALLOWED
        self.error = None
        self.asked = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.endpoint = InquiryEndpoint(self, self.explain)  # type: ignore[arg-type]  # it is its own gatekeeper

    async def may_see(self, token, namespace, pod):
        if token == "down":
            raise Unreachable("away", sent=False)
        return self.access if token == "good" else Access.UNKNOWN

    async def explain(self, namespace, pod, search):
        self.asked.append((namespace, pod, search))
        await self.gate.wait()
        if self.error:
            raise self.error
        return {"pod": f"{namespace}/{pod}"} if pod == "web" else None

    async def get(self, path="/explain/shop/web", *, method="GET", **headers):
        host, port = self.endpoint.address
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"http://{host}:{port}{path}", headers=headers) as response,
        ):
            body = await response.json() if response.content_type == "application/json" else None
            return response.status, body, response.headers


@pytest.fixture
async def rig():
    rig = Rig()
    await rig.endpoint.start("127.0.0.1", 0)
    yield rig
    await rig.endpoint.stop()


async def test_an_answer(rig):
    status, body, headers = await rig.get(Authorization="Bearer good")
    assert (status, body) == (200, {"pod": "shop/web"})
    assert headers["Cache-Control"] == "no-store"
    await rig.get("/explain/shop/web?search=false", Authorization="bearer good")
    assert rig.asked == [("shop", "web", True), ("shop", "web", False)]


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer  ", "Basic Z29vZA==", "good", "Bearer bad"]
)
async def test_who_is_unknown_learns_nothing(rig, authorization):
    headers = {} if authorization is None else {"Authorization": authorization}
    for path in ("/explain/shop/web", "/explain/shop/nobody"):
        status, _, answer = await rig.get(path, **headers)
        assert status == 401
        assert answer["WWW-Authenticate"] == "Bearer"
    assert rig.asked == []


async def test_who_may_not_learns_nothing(rig):
    rig.access = Access.FORBIDDEN
    for name in ("web", "nobody"):
        status, body, _ = await rig.get(f"/explain/shop/{name}", Authorization="Bearer good")
        assert (status, body) == (403, {"error": f"not allowed to get pod shop/{name}"})
    assert rig.asked == []


async def test_no_such_pod(rig):
    assert (await rig.get("/explain/shop/nobody", Authorization="Bearer good"))[0] == 404


@pytest.mark.parametrize("name", ["WEB", "a%2Fb", "..%2f", "-x", "a" * 300])
async def test_names_that_no_pod_can_have(rig, name):
    assert (await rig.get(f"/explain/shop/{name}", Authorization="Bearer good"))[0] in (400, 404)
    assert rig.asked == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD"])
async def test_it_is_for_reading_only(rig, method):
    assert (await rig.get(method=method, Authorization="Bearer good"))[0] == 405


async def test_nothing_else_is_served(rig):
    for path in ("/", "/metrics", "/explain", "/explain/shop"):
        assert (await rig.get(path, Authorization="Bearer good"))[0] == 404


async def test_an_api_server_that_is_away(rig):
    assert (await rig.get(Authorization="Bearer down"))[0] == 503
    rig.error = PodReadError("away")
    assert (await rig.get(Authorization="Bearer good"))[0] == 503


async def test_too_many_questions_are_sent_away(rig):
    rig.gate.clear()
    asking = [asyncio.create_task(rig.get(Authorization="Bearer good")) for _ in range(8)]
    while rig.endpoint._waiting < 8:
        await asyncio.sleep(0.01)
    status, _, headers = await rig.get(Authorization="Bearer good")
    assert (status, headers["Retry-After"]) == (503, "1")
    assert len(rig.asked) == 1  # one at a time
    rig.gate.set()
    assert [status for status, _, _ in await asyncio.gather(*asking)] == [200] * 8
