"""The pages over real HTTP on loopback."""

import asyncio
import json

import aiohttp
import pytest

from moorage.adapters.telemetry.debug.endpoint import DebugEndpoint


class Rig:
    def __init__(self):
        self.lines = [{"node": f"n{i}", "filler": "x" * 100} for i in range(2000)]
        self.endpoint = DebugEndpoint({"cache": self.dump, "empty": self.nothing})

    async def dump(self):
        for line in self.lines:
            yield line

    async def nothing(self):
        for line in self.lines[:0]:
            yield line

    async def get(self, path, **headers):
        host, port = self.endpoint.address
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{host}:{port}/debug{path}", headers=headers) as response,
        ):
            return response.status, await response.text()


@pytest.fixture
async def rig():
    rig = Rig()
    await rig.endpoint.start("127.0.0.1", 0)
    yield rig
    await rig.endpoint.stop()


async def test_the_index_names_every_page(rig):
    status, text = await rig.get("/")
    assert status == 200
    assert [line.partition("?")[0] for line in text.splitlines()] == ["cache", "empty", "profile", "heap"]


async def test_a_dump_is_a_line_for_each_object(rig):
    status, text = await rig.get("/cache")
    assert status == 200
    assert [json.loads(line) for line in text.splitlines()] == rig.lines
    assert await rig.get("/empty") == (200, "")


def work(until):
    """Something to be found by a profile."""
    return sum(i * i for i in range(until))


async def _busy():
    while True:
        work(20_000)
        await asyncio.sleep(0)


async def test_a_profile_shows_what_the_loop_does(rig):
    busy = asyncio.create_task(_busy())
    try:
        status, text = await rig.get("/profile?seconds=0.5")
        assert status == 200
        assert "test_pages.work" in text
        status, text = await rig.get("/profile?seconds=0.5&format=folded")
        assert status == 200
        stacks = dict(line.rsplit(" ", 1) for line in text.splitlines())
        assert any("test_pages._busy;" in stack for stack in stacks)
        assert all(int(count) > 0 for count in stacks.values())
    finally:
        busy.cancel()


async def test_the_heap_shows_what_is_kept(rig):
    kept = []

    async def keep():
        while True:
            kept.append(bytearray(200_000))
            await asyncio.sleep(0.01)

    keeping = asyncio.create_task(keep())
    try:
        status, text = await rig.get("/heap?seconds=0.5")
    finally:
        keeping.cancel()
    found = json.loads(text)
    assert status == 200
    assert found["resident"] > 1_000_000
    assert found["objects"][0]["count"] > 0
    line = next(each for each in found["growth"] if "test_pages.py" in each["line"])
    assert line["bytes"] >= 200_000


async def test_a_heap_summary_without_waiting_traces_nothing(rig):
    status, text = await rig.get("/heap?seconds=0")
    assert status == 200
    assert json.loads(text)["growth"] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/profile?seconds=soon", "seconds: must be a number from 0.1 to 60, not 'soon'"),
        ("/profile?seconds=61", "seconds: must be"),
        ("/profile?seconds=nan", "seconds: must be"),
        ("/profile?format=svg", "format: must be top or folded, not 'svg'"),
        ("/heap?seconds=-1", "seconds: must be a number from 0 to 60"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(rig, path, text):
    status, answer = await rig.get(path)
    assert status == 400
    assert text in answer


async def test_one_at_a_time(rig):
    first = asyncio.create_task(rig.get("/profile?seconds=1"))
    await asyncio.sleep(0.2)
    assert (await rig.get("/heap?seconds=0"))[0] == 409
    assert (await first)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "10.0.0.1", "127.0.0.1.evil.example", "["]
)
async def test_a_name_that_is_not_loopback_is_refused(rig, host):
    """A page in a browser can have its own name point at 127.0.0.1; it must not read the answer."""
    assert (await rig.get("/", Host=host))[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:99"])
async def test_names_of_loopback_are_fine(rig, host):
    assert (await rig.get("/", Host=host))[0] == 200


async def test_nothing_can_be_written(rig):
    host, port = rig.endpoint.address
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://{host}:{port}/debug/cache") as response,
    ):
        assert response.status == 405


async def test_a_taken_address_is_an_error_and_leaves_nothing(rig):
    other = Rig()
    with pytest.raises(OSError, match="address already in use"):
        await other.endpoint.start(*rig.endpoint.address)
    await other.endpoint.stop()
