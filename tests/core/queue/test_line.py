"""A line from which pods may leave anywhere."""

import itertools

import pytest

from moorage.core.queue.line import Line


@pytest.fixture
def tickets():
    """The valid ticket by UID."""
    return {}


@pytest.fixture
def line(tickets):
    """A line of the pods with those tickets."""
    return Line[float](lambda ticket, uid: tickets.get(uid) == ticket)


def push(line, tickets, key, ticket, uid):
    """Put a pod in line with its new ticket."""
    tickets[uid] = ticket
    line.push(key, ticket, uid)


@pytest.mark.parametrize("order", list(itertools.permutations(((2.0, 1, "c"), (1.0, 3, "b"), (1.0, 2, "a")))))
def test_the_smallest_key_goes_first_then_the_older_ticket(line, tickets, order):
    for key, ticket, uid in order:
        push(line, tickets, key, ticket, uid)
    assert line.first_key() == 1.0
    assert [line.pop() for _ in range(4)] == ["a", "b", "c", None]
    assert line.first_key() is None


def test_a_pod_that_left_is_passed_over(line, tickets):
    push(line, tickets, 1.0, 1, "a")
    push(line, tickets, 2.0, 2, "b")
    del tickets["a"]
    assert (line.first_key(), line.pop(), line.pop()) == (2.0, "b", None)


def test_only_the_last_place_in_line_counts(line, tickets):
    push(line, tickets, 1.0, 1, "a")
    push(line, tickets, 5.0, 2, "a")
    push(line, tickets, 3.0, 3, "b")
    assert [line.pop() for _ in range(3)] == ["b", "a", None]


def test_a_line_that_nobody_takes_from_does_not_grow(line, tickets):
    push(line, tickets, 9e9, 0, "stays")
    for ticket in range(1, 5000):
        push(line, tickets, -float(ticket), ticket, "comes and goes")
        assert len(line) <= 64 + 2 * 2 + 1
    del tickets["comes and goes"]
    assert (line.pop(), line.pop()) == ("stays", None)
