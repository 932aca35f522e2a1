"""Who asks, and may they: by the API server's word."""

import orjson
import pytest

from moorage.adapters.inquiry.access import Access, Gatekeeper
from moorage.adapters.kube.errors import Forbidden
from tests.kit.fake_api import Answer, FakeApi

TOKENS, ACCESS = "/tokenreviews$", "/subjectaccessreviews$"
USER = {"username": "eve", "uid": "7", "groups": ["dev"], "extra": {"scopes": ["x"]}}


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


def reviews(api, *, authenticated=True, allowed=True, user=USER):
    status = {"authenticated": authenticated, **({"user": user} if user else {})}
    api.on("POST", TOKENS, Answer(201, orjson.dumps({"status": status})), times=None)
    api.on("POST", ACCESS, Answer(201, orjson.dumps({"status": {"allowed": allowed}})), times=None)


async def test_the_api_server_is_asked_about_this_very_pod(api):
    reviews(api)
    assert await Gatekeeper(api.client()).may_see("t0k", "shop", "web") is Access.ALLOWED
    (token,) = api.seen("POST", TOKENS)
    assert token.body["spec"] == {"token": "t0k"}
    (access,) = api.seen("POST", ACCESS)
    assert access.body["spec"] == {
        "user": "eve",
        "uid": "7",
        "groups": ["dev"],
        "extra": {"scopes": ["x"]},
        "resourceAttributes": {"namespace": "shop", "verb": "get", "resource": "pods", "name": "web"},
    }


@pytest.mark.parametrize(
    ("answer", "access"),
    [
        ({"authenticated": False}, Access.UNKNOWN),
        ({"user": None}, Access.UNKNOWN),
        ({"user": {"username": ""}}, Access.UNKNOWN),
        ({"authenticated": "true"}, Access.UNKNOWN),
        ({"allowed": False}, Access.FORBIDDEN),
        ({"allowed": None}, Access.FORBIDDEN),
    ],
)
async def test_only_a_clear_yes_lets_in(api, answer, access):
    reviews(api, **answer)
    assert await Gatekeeper(api.client()).may_see("t0k", "shop", "web") is access


async def test_answers_hold_for_ten_seconds_for_the_same_question(api):
    reviews(api)
    time = 100.0
    keeper = Gatekeeper(api.client(), lambda: time)
    for namespace, token in (("shop", "t"), ("shop", "t"), ("other", "t"), ("shop", "u")):
        await keeper.may_see(token, namespace, "web")
    assert api.count("POST", ACCESS) == 3
    time = 111.0
    api.calm()
    reviews(api, allowed=False)
    assert await keeper.may_see("t", "shop", "web") is Access.FORBIDDEN


async def test_nobody_is_let_in_when_nobody_can_say(api):
    api.on("POST", TOKENS, Answer(403), times=None)
    with pytest.raises(Forbidden):
        await Gatekeeper(api.client()).may_see("t", "shop", "web")


async def test_tokens_are_not_kept(api):
    reviews(api)
    keeper = Gatekeeper(api.client())
    await keeper.may_see("very-secret", "shop", "web")
    assert "very-secret" not in repr(vars(keeper))
