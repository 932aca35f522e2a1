"""Answers become the error that says what to do next."""

import orjson
import pytest

from moorage.adapters.kube import errors


def status(code: int, reason: str = "", **more: object) -> bytes:
    return orjson.dumps({"kind": "Status", "code": code, "reason": reason, "message": "so it is", **more})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.Invalid),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (422, errors.Invalid),
        (429, errors.TooManyRequests),
        (500, errors.ServerError),
        (503, errors.ServerError),
        (504, errors.ServerError),
        (302, errors.ApiError),
        (418, errors.ApiError),
    ],
)
def test_a_status_code_has_its_class(code, kind):
    error = errors.error_from_answer(code, {}, status(code, "Why"))
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, "Why", "so it is")
    assert str(error) == f"so it is (HTTP {code})"


def test_the_http_code_wins_over_the_one_in_the_body():
    assert errors.error_from_answer(409, {}, status(500)).status == 409


def test_an_expired_version_is_gone_whatever_its_code():
    error = errors.error_from_answer(500, {}, status(500, "Expired"))
    assert isinstance(error, errors.Gone)


def test_a_status_in_a_watch_has_its_own_code():
    error = errors.error_from_status({"code": 410, "reason": "Gone", "message": "too old"})
    assert isinstance(error, errors.Gone)
    assert error.status == 410


@pytest.mark.parametrize("broken", [{}, {"code": "many"}, {"code": None, "details": "no"}, {"code": True}])
def test_a_status_without_sense_is_a_server_error(broken):
    assert isinstance(errors.error_from_status(broken), errors.ServerError)


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({"Retry-After": "7"}, {}, 7.0),
        ({}, {"retryAfterSeconds": 3}, 3.0),
        ({"Retry-After": "7"}, {"retryAfterSeconds": 3}, 7.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}, 0.0),
        ({"Retry-After": "-1"}, {}, 0.0),
        ({}, {}, 0.0),
    ],
)
def test_how_long_to_wait_is_in_the_header_or_in_the_details(headers, details, seconds):
    error = errors.error_from_answer(429, headers, status(429, details=details))
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    "body", [b"", b"<html>\n  Bad  gateway\n</html>", b"\xff\xfe", b"[1]", b'{"kind": "Pod"}']
)
def test_a_body_that_is_no_status_is_quoted(body):
    error = errors.error_from_answer(502, {}, body)
    assert isinstance(error, errors.ServerError)
    assert str(error).endswith("(HTTP 502)")
    if b"html" in body:
        assert "<html> Bad gateway </html>" in str(error)


def test_no_answer_says_whether_it_was_sent():
    assert errors.Unreachable("gone", sent=False).sent is False
    assert errors.BadAnswer("garbage").sent is True
    assert isinstance(errors.BadAnswer(""), errors.Unreachable)
