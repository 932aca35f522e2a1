"""Reading the protocol's JSON: keys without regard to case, as Go's decoder does; missing or null is the zero value."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import orjson

_LARGE = 1 << 20


class Malformed(Exception):
    """It is not what the protocol says; the text names the field."""


def parsed(content: bytes) -> Any:
    """The JSON.  Raises Malformed."""
    # The collector would look at what comes in again and again, in vain: it is a tree.
    paused = len(content) > _LARGE and gc.isenabled()
    if paused:
        gc.disable()
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error}") from error
    finally:
        if paused:
            gc.enable()


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """An object.  Raises Malformed."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed(f"{what} must be an object, not {_type(value)}")
    return value


def fields(value: Any, what: str) -> dict[str, Any]:
    """An object's fields by their names in lower case.  Raises Malformed."""
    return {key.lower(): item for key, item in mapping(value, what).items()}


def items(value: Any, what: str) -> list[Any]:
    """A list.  Raises Malformed."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{what} must be a list, not {_type(value)}")
    return value


def text(value: Any, what: str) -> str:
    """A string.  Raises Malformed."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(f"{what} must be a string, not {_type(value)}")
    return value


def whole(value: Any, what: str) -> int:
    """An integer of 64 bits.  Raises Malformed."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise Malformed(f"{what} must be an integer of 64 bits, not {value!r:.40}")
    return value


def node_name(item: Any, what: str = "a node") -> str:
    """The name of a node's object.  Raises Malformed."""
    metadata = fields(fields(item, what).get("metadata"), f"{what}'s metadata")
    return text(metadata.get("name"), "metadata.name")


def _type(value: Any) -> str:
    return type(value).__name__
