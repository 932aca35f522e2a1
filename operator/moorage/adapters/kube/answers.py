"""The bytes of an HTTP/1.1 answer as a value: just what ``writes.py`` needs, and no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: What answers to writes are far from; beyond it, it is no answer of an API server.
_LONGEST = 8 * 2**20
_HEAD_END = b"\r\n\r\n"


class BrokenAnswer(Exception):
    """These bytes are no HTTP answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer; header names are in title case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    keep_alive: bool = True


class AnswerReader:
    """Takes bytes as they come, and gives the answer when it is whole; then it is ready for the next."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Answer | None:
        """More bytes; the answer, if they complete it."""
        buffer = self._buffer = self._buffer + data if self._buffer else data
        while True:
            end = buffer.find(_HEAD_END)
            if end < 0:
                self._check_size()
                return None
            status, headers = _head(buffer[:end])
            start = end + len(_HEAD_END)
            if status >= 200:
                break
            buffer = self._buffer = buffer[start:]  # 100 Continue and the like: the real one follows
        found = _body(buffer, start, status, headers)
        if found is None:
            self._check_size()
            return None
        body, after = found
        rest, self._buffer = buffer[after:], b""
        if rest:
            raise BrokenAnswer("more came than was asked for")
        return Answer(status, body, headers, headers.get("Connection", "").lower() != "close")

    def end(self) -> Answer | None:
        """Nothing more comes; the answer, if that is how it ends."""
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            return None
        status, headers = _head(self._buffer[:end])
        if status < 200 or "Content-Length" in headers or "Transfer-Encoding" in headers:
            return None
        return Answer(status, self._buffer[end + len(_HEAD_END) :], headers, keep_alive=False)

    def _check_size(self) -> None:
        if len(self._buffer) > _LONGEST:
            raise BrokenAnswer(f"the answer is longer than {_LONGEST} bytes")


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    if not first.startswith("HTTP/1.") or not first[9:12].isdigit():
        raise BrokenAnswer(f"not HTTP: {first[:50]!r}")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().title()] = value.strip()
    return int(first[9:12]), headers


def _body(buffer: bytes, start: int, status: int, headers: Mapping[str, str]) -> tuple[bytes, int] | None:
    """The body and where it ends, None while it is not all there."""
    if status in (204, 304):
        return b"", start
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        return _chunks(buffer, start)
    length = headers.get("Content-Length")
    if length is None:
        return None  # it ends with the connection
    if not length.isdigit():
        raise BrokenAnswer(f"Content-Length: {length}")
    end = start + int(length)
    return (buffer[start:end], end) if len(buffer) >= end else None


def _chunks(buffer: bytes, at: int) -> tuple[bytes, int] | None:
    parts: list[bytes] = []
    while True:
        line_end = buffer.find(b"\r\n", at)
        if line_end < 0:
            return None
        try:
            size = int(buffer[at:line_end].split(b";", 1)[0], 16)
        except ValueError:
            raise BrokenAnswer(f"the size of a chunk: {buffer[at : at + 20]!r}") from None
        start = line_end + 2
        if size == 0:
            # Trailers, if any, and an empty line.
            end = start if buffer.startswith(b"\r\n", start) else buffer.find(_HEAD_END, start)
            if end < 0 or len(buffer) < start + 2:
                return None
            return b"".join(parts), end + (2 if end == start else len(_HEAD_END))
        if len(buffer) < start + size + 2:
            return None
        parts.append(buffer[start : start + size])
        at = start + size + 2
