"""What can go wrong between us and the API server.

Two questions decide what a caller does next, so the hierarchy answers just these: did an answer
arrive (``ApiError``) or not (``Unreachable``), and, without one, may the request have taken effect
(``Unreachable.sent``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

#: A body that is no Status object (a proxy's HTML page) is quoted up to here.
_QUOTED_BYTES = 200


class KubeError(Exception):
    """Anything that keeps a request to the API server from giving its result."""


class NoCredentials(KubeError):
    """No usable kubeconfig or in-cluster account; the text names what was tried."""


class Unreachable(KubeError):
    """No answer arrived: refused, reset, timed out, or cut off.

    ``sent`` tells whether the request may have reached the server, and so may have taken effect.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class BadAnswer(Unreachable):
    """An answer arrived that is not JSON; what the request did is as unknown as with none."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=True)


class ApiError(KubeError):
    """The API server refused the request.

    ``reason`` is the machine-readable word of the Status (``AlreadyExists``), ``retry_after`` the
    seconds the server asks to wait, 0 if it does not say.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message or reason or f"HTTP status {status}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.args[0]} (HTTP {self.status})"


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: another version, another UID, already there, or already bound."""


class Forbidden(ApiError):
    """403."""


class Unauthorized(ApiError):
    """401, after the credentials were renewed once."""


class Invalid(ApiError):
    """400 or 422: the same request will be refused again."""


class TooManyRequests(ApiError):
    """429: come back after ``retry_after``."""


class Gone(ApiError):
    """410: the resource version (or the continue token) is too old; list again."""


class ServerError(ApiError):
    """5xx."""


_CLASSES: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def error_from_status(status: Mapping[str, Any], code: int = 0, retry_after: float = 0.0) -> ApiError:
    """The error for a Status object, be it an answer's body or the object of an ERROR watch event."""
    number = code or _whole(status.get("code")) or 500
    details = status.get("details")
    if not isinstance(details, Mapping):
        details = {}
    reason = str(status.get("reason") or "")
    kind = _CLASSES.get(number) or (ServerError if number >= 500 else ApiError)
    # An expired resource version has been sent with other codes, too; the reason is what counts.
    if reason == "Expired":
        kind = Gone
    return kind(
        number,
        reason,
        str(status.get("message") or ""),
        details,
        retry_after or float(_whole(details.get("retryAfterSeconds"))),
    )


def error_from_answer(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error for an HTTP answer outside 2xx; the body need not be a Status, or JSON at all."""
    retry_after = float(_whole(headers.get("Retry-After")))
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, Mapping) and parsed.get("kind") == "Status":
        return error_from_status(parsed, code, retry_after)
    text = " ".join(body[:_QUOTED_BYTES].decode("utf-8", "replace").split())
    return error_from_status({"message": text}, code, retry_after)


def _whole(value: Any) -> int:
    """A number of seconds or a code, 0 for anything else (a Retry-After may be a date)."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return 0
    try:
        return max(0, int(value))
    except ValueError:
        return 0
