"""Which host ports are taken on which rows."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.pod import HostPort
from moorage.core.snapshot.host_ports import WILDCARD, HostPorts, conflicts, meetings
from tests.kit.strategies import host_ports

HTTP = HostPort("10.0.0.1", "TCP", 80)


@pytest.mark.parametrize(
    ("wanted", "held", "expected"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", WILDCARD, True),
        (WILDCARD, "10.0.0.1", True),
        (WILDCARD, WILDCARD, True),
        ("127.0.0.1", "10.0.0.1", False),
    ],
)
def test_the_wildcard_meets_every_address(wanted, held, expected):
    assert conflicts(HostPort(wanted, "TCP", 80), held) is expected


@pytest.mark.parametrize("other", [HostPort("10.0.0.1", "UDP", 80), HostPort("10.0.0.1", "TCP", 81)])
def test_protocol_and_number_must_agree(other):
    ports = HostPorts()
    ports.add(3, [HTTP])
    assert ports.rows_in_conflict([HTTP]) == {3}
    assert ports.rows_in_conflict([other]) == set()
    assert ports.rows_in_conflict([other, HTTP]) == {3}


def test_all_rows_are_found():
    ports = HostPorts()
    for row, address in ((1, "10.0.0.1"), (2, "10.0.0.2"), (3, WILDCARD)):
        ports.add(row, [HostPort(address, "TCP", 80)])
    assert ports.rows_in_conflict([HTTP]) == {1, 3}
    assert ports.rows_in_conflict([HostPort(WILDCARD, "TCP", 80)]) == {1, 2, 3}


def test_a_port_held_twice_stays_taken_until_both_are_gone():
    ports = HostPorts()
    ports.add(1, [HTTP])
    ports.add(1, [HTTP])
    ports.remove(1, [HTTP])
    assert ports.rows_in_conflict([HTTP]) == {1}
    ports.remove(1, [HTTP])
    assert ports.rows_in_conflict([HTTP]) == set()
    assert ports._taken == {}


def test_another_address_of_the_row_stays_taken():
    ports, other = HostPorts(), HostPort("10.0.0.2", "TCP", 80)
    ports.add(1, [HTTP, other])
    ports.remove(1, [HTTP])
    assert (ports.rows_in_conflict([HTTP]), ports.rows_in_conflict([other])) == (set(), {1})


def test_a_row_that_is_cleared():
    ports = HostPorts()
    ports.add(1, [HTTP])
    ports.add(2, [HTTP])
    ports.clear_row(1)
    assert ports.rows_in_conflict([HTTP]) == {2}
    ports.clear_row(2)
    assert ports._taken == {}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.lists(host_ports, max_size=3)), max_size=5),
    st.lists(host_ports, max_size=3),
)
def test_conflicts_are_counted_pod_by_pod(pods, wanted):
    ports = HostPorts()
    expected: Counter[int] = Counter()
    for row, held in pods:
        ports.add(row, held)
        expected[row] += meetings(wanted, held)
    assert ports.times_in_conflict(wanted) == +expected
    assert ports.rows_in_conflict(wanted) == set(+expected)
