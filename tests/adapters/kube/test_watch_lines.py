"""Events out of bytes that come in any pieces."""

from itertools import pairwise
from unittest.mock import AsyncMock

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.kube import errors
from moorage.adapters.kube.watch_lines import LineReader, parse_event


async def read(pieces: list[bytes], **options: int) -> list[bytes]:
    content = AsyncMock()
    content.readany.side_effect = [*pieces, b""]
    reader = LineReader(content, **options)
    lines: list[bytes] = []
    while (batch := await reader.batch()) is not None:
        lines += batch
    return lines


@given(
    lines=st.lists(st.binary(min_size=1, max_size=8).filter(lambda line: b"\n" not in line), max_size=6),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
async def test_lines_are_the_same_however_they_are_cut(lines, cuts):
    whole = b"".join(line + b"\n" for line in lines)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[a:b] for a, b in pairwise(places)]
    assert await read(pieces) == lines


async def test_what_follows_the_last_newline_is_dropped():
    assert await read([b"one\ntw"]) == [b"one"]


async def test_a_line_may_be_large_but_not_endless():
    large = b"x" * 50_000
    assert await read([large, large, b"\n"], longest=100_000) == [large * 2]
    with pytest.raises(errors.BadAnswer, match="longer than 99999"):
        await read([large, large, b"\n"], longest=99_999)


def test_an_event_is_its_type_and_object():
    line = orjson.dumps({"type": "ADDED", "object": {"metadata": {"name": "a"}}})
    assert parse_event(line) == ("ADDED", {"metadata": {"name": "a"}})


def test_an_error_event_is_raised_and_never_taken_for_an_object():
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    with pytest.raises(errors.Gone, match="too old"):
        parse_event(orjson.dumps({"type": "ERROR", "object": status}))
    with pytest.raises(errors.ServerError):
        parse_event(b'{"type": "ERROR", "object": null}')


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"1", b"{}", b'{"type": "ADDED"}', b'{"type": "ADDED", "object": 1}',
     b'{"type": "ADDED", "object": {}}', b'{"type": "ADDED", "object": {"metadata": null}}'],
)  # fmt: skip
def test_anything_else_is_a_bad_answer(line):
    with pytest.raises(errors.BadAnswer):
        parse_event(line)
