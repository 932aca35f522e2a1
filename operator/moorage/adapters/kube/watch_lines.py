"""The bytes of a watch as events: one JSON document a line, of any length up to a bound."""

from __future__ import annotations

from typing import Any

import aiohttp
import orjson

from moorage.adapters.kube.errors import BadAnswer, Unreachable, error_from_status

#: etcd takes objects of 1.5 MiB by default; as JSON they are longer.  Beyond this it is no watch.
LONGEST_LINE = 8 * 2**20

Obj = dict[str, Any]


class LineReader:
    """Lines in batches: all that has arrived by the time it is asked.

    aiohttp's own ``readline`` wakes up for every line, and copies a long one over and over.
    """

    def __init__(self, content: aiohttp.StreamReader, longest: int = LONGEST_LINE) -> None:
        self._content = content
        self._longest = longest
        self._parts: list[bytes] = []  # of a line whose end has not come yet
        self._size = 0

    async def batch(self) -> list[bytes] | None:
        """The lines that are complete, perhaps none; None at the end.

        What follows the last newline then was cut off; its event comes again after the reconnect.
        """
        try:
            piece = await self._content.readany()
        except RuntimeError as error:  # aiohttp's word for a connection that went away just before
            raise Unreachable(str(error), sent=True) from error
        if not piece:
            return None
        lines = piece.split(b"\n")
        rest = lines.pop()
        if lines:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > self._longest:
                raise BadAnswer(f"a line of the watch is longer than {self._longest} bytes")
        return lines


def parse_event(line: bytes) -> tuple[str, Obj]:
    """The type and the object; an ERROR event is raised as the error it stands for."""
    try:
        event = orjson.loads(line)
        kind, obj = event["type"], event["object"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise BadAnswer(f"a line of the watch is no event: {line[:100]!r}") from error
    if kind == "ERROR":
        raise error_from_status(obj if isinstance(obj, dict) else {})
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        raise BadAnswer(f"a {kind} event without an object: {line[:100]!r}")
    return kind, obj
