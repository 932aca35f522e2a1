"""The session that Kopf uses, on a fake API server."""

import json

import pytest

from moorage.adapters.kube.credentials import Access, Credentials
from moorage.adapters.kube.kopf_session import open_kopf_session
from tests.kit.fake_api import Answer, FakeApi


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


async def test_it_has_our_credentials_and_a_new_login_reads_them_again(api):
    api.token = "new"

    async def reload():
        return Access(api.url, "Bearer new")

    credentials = Credentials(Access(api.url, "Bearer old"), reload=reload)
    info = await open_kopf_session(credentials)
    async with info.aiohttp_session as session, session.get(f"{info.server}/api/v1/pods") as response:
        assert response.status == 200


async def test_a_watch_that_is_too_old_reads_as_an_event(api):
    api.on("GET", "watch=true", Answer(410))
    info = await open_kopf_session(Credentials(Access(api.url)))
    async with info.aiohttp_session as session:
        async with session.get(f"{info.server}/api/v1/pods?watch=true") as response:
            assert response.status == 200
            lines = [line async for line in response.content]
        (event,) = map(json.loads, lines)
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        async with session.get(f"{info.server}/api/v1/pods") as response:
            assert response.status == 200, "the connection, or another one, goes on"


async def test_a_list_that_is_too_old_stays_what_it_is(api):
    api.on("GET", "/pods", Answer(410))
    info = await open_kopf_session(Credentials(Access(api.url)))
    async with info.aiohttp_session as session, session.get(f"{info.server}/api/v1/pods") as response:
        assert response.status == 410
