"""The session that Kopf uses, on a fake API server."""

import json

import pytest

from moorage.adapters.kube import kopf_kinds
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


POLICIES = "/apis/moorage.dev/v1alpha1/schedulingpolicies"


async def test_a_kind_that_is_not_served_reads_as_an_empty_list(api):
    api.on("GET", POLICIES, Answer(404, b"404 page not found\n", {"Content-Type": "text/plain"}))
    info = await open_kopf_session(Credentials(Access(api.url)))
    async with info.aiohttp_session as session, session.get(info.server + POLICIES) as response:
        answer = await response.json()
    assert (response.status, answer["items"], answer["metadata"]) == (200, [], {"resourceVersion": "0"})


@pytest.mark.parametrize("status", [403, 404])
async def test_a_watch_of_it_ends_after_a_while_as_one_too_old(api, status, monkeypatch):
    monkeypatch.setattr(kopf_kinds, "LOOK_AGAIN", 0.05)
    api.on("GET", POLICIES, Answer(status))
    info = await open_kopf_session(Credentials(Access(api.url)))
    async with info.aiohttp_session as session:
        async with session.get(f"{info.server}{POLICIES}?watch=true&resourceVersion=0") as response:
            lines = [line async for line in response.content]
        (event,) = map(json.loads, lines)
        assert (response.status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
        async with session.get(info.server + POLICIES) as response:
            assert (await response.json())["kind"] == "List", "what is served is passed on"


async def test_other_refusals_stay_what_they_are(api):
    api.on("GET", "/api/v1/pods", Answer(403))
    api.on("GET", POLICIES, Answer(500))
    info = await open_kopf_session(Credentials(Access(api.url)))
    async with info.aiohttp_session as session:
        for path, status in (("/api/v1/pods", 403), (POLICIES, 500)):
            async with session.get(info.server + path) as response:
                assert response.status == status


async def test_discovery_tells_of_the_policies_kinds_served_or_not(api):
    info = await open_kopf_session(Credentials(Access(api.url)))
    api.on("GET", "/apis/moorage.dev/v1alpha1$", Answer(404, b"404 page not found\n"))
    async with info.aiohttp_session as session:
        async with session.get(f"{info.server}/apis") as response:
            groups = (await response.json())["groups"]
        async with session.get(f"{info.server}/apis/moorage.dev/v1alpha1") as response:
            resources = (await response.json())["resources"]
    assert response.status == 200
    assert len(groups) == len(api.groups) + 1
    assert groups[-1]["name"] == "moorage.dev"
    assert {(r["name"], r["kind"], r["namespaced"]) for r in resources} == {
        ("schedulingpolicies", "SchedulingPolicy", True),
        ("clusterschedulingpolicies", "ClusterSchedulingPolicy", False),
    }
