"""HTTP answers from bytes, in whatever pieces they come."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.kube.answers import Answer, AnswerReader, BrokenAnswer

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = (
    b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\nretry-after: 3\r\n\r\n"
    b'4\r\n{"a"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n'
)
TRAILED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
CLOSING = b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN

CASES = {
    "plain": (PLAIN, 201, b"{}", True),
    "chunked": (CHUNKED, 409, b'{"a":1}', True),
    "trailed": (TRAILED, 200, b"{}", True),
    "empty": (EMPTY, 204, b"", True),
    "closing": (CLOSING, 503, b"busy", False),
    "continued": (CONTINUED, 201, b"{}", True),
}


def feed(reader: AnswerReader, pieces: list[bytes]) -> Answer | None:
    """Feed all pieces; only the last one may complete the answer."""
    answers = [reader.feed(piece) for piece in pieces]
    assert all(answer is None for answer in answers[:-1])
    return answers[-1]


@pytest.mark.parametrize("case", CASES)
@given(cuts=st.sets(st.integers(1, 150)))
def test_an_answer_is_the_same_however_it_is_cut(case, cuts):
    data, status, body, keep_alive = CASES[case]
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    reader = AnswerReader()
    for _ in range(2):  # and a second one on the same connection
        answer = feed(reader, [data[a:b] for a, b in pairwise(edges)])
        assert answer is not None
        assert (answer.status, answer.body, answer.keep_alive) == (status, body, keep_alive)


def test_headers_are_found_however_they_are_spelt():
    answer = AnswerReader().feed(CHUNKED)
    assert answer is not None
    assert answer.headers["Retry-After"] == "3"


def test_an_answer_without_a_length_ends_with_the_connection():
    reader = AnswerReader()
    assert reader.feed(b"HTTP/1.0 502 Bad\r\n\r\noh ") is None
    assert reader.feed(b"no") is None
    answer = reader.end()
    assert answer is not None
    assert (answer.status, answer.body, answer.keep_alive) == (502, b"oh no", False)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", PLAIN[:-1], CHUNKED[:-1]])
def test_an_answer_that_is_cut_off_is_none(data):
    reader = AnswerReader()
    assert reader.feed(data) is None
    assert reader.end() is None


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        PLAIN + b"more",
    ],
)
def test_nonsense_is_told(data):
    with pytest.raises(BrokenAnswer):
        AnswerReader().feed(data)


def test_an_endless_answer_is_told():
    reader = AnswerReader()
    for _ in range(8):
        assert reader.feed(b"x" * 2**20) is None
    with pytest.raises(BrokenAnswer, match="longer"):
        reader.feed(b"x")


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_being_told(data):
    try:
        AnswerReader().feed(b"HTTP/1.1 200 OK\r\n" + data)
    except BrokenAnswer:
        pass
