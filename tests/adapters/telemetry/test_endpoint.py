"""The endpoint over real HTTP on loopback."""

import aiohttp
import pytest

from moorage.adapters.telemetry.endpoint import Endpoint
from moorage.adapters.telemetry.metrics import Metrics
from tests.kit.fakes import FakeClock


class Rig:
    def __init__(self):
        self.trouble = self.unready = None
        self.endpoint = Endpoint(
            Metrics(FakeClock()), healthy=lambda: self.trouble, ready=lambda: self.unready
        )

    async def get(self, path):
        host, port = self.endpoint.address
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{host}:{port}{path}") as response,
        ):
            return response.status, await response.text()


@pytest.fixture
async def rig():
    rig = Rig()
    await rig.endpoint.start("127.0.0.1", 0)
    yield rig
    await rig.endpoint.stop()


async def test_metrics(rig):
    status, text = await rig.get("/metrics")
    assert status == 200
    assert "moorage_build_info" in text


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
async def test_health(rig, path):
    assert await rig.get(path) == (200, "ok\n")
    rig.trouble = "stuck"
    assert await rig.get(path) == (503, "stuck\n")


async def test_readiness(rig):
    rig.unready = "not synced"
    assert await rig.get("/readyz") == (503, "not synced\n")
    assert (await rig.get("/healthz"))[0] == 200


async def test_a_taken_address_is_an_error_and_leaves_nothing(rig):
    other = Rig()
    with pytest.raises(OSError, match="address already in use"):
        await other.endpoint.start(*rig.endpoint.address)
    await other.endpoint.stop()
