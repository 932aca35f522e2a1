"""Counts by domain follow the pods."""

import numpy as np
import pytest

from moorage.core.model.node import Node
from moorage.core.snapshot.domain_counts import DomainCounts
from moorage.core.snapshot.snapshot import Snapshot

ZONES = ("1", "2", "1", None)


@pytest.fixture
def snapshot():
    made = Snapshot()
    for row, zone in enumerate(ZONES):
        made.set_node(Node(f"n{row}", labels={"zone": zone} if zone else {}))
    return made


def by_value(counts, snapshot):
    """Counts by the label's value; None is no label."""
    column = snapshot.label("zone").values
    told = dict(zip(column, counts.values.tolist(), strict=False))
    return {**told, None: int(counts.values[-1])}


def test_from_sparse_counts(snapshot):
    counts = DomainCounts.of_rows(snapshot.topology.domains("zone"), {0: 2, 2: 1, 3: 5})
    assert by_value(counts, snapshot) == {"1": 3, "2": 0, None: 5}
    assert counts.total == 3


def test_from_many_sparse_counts():
    snapshot = Snapshot()
    for row in range(100):
        snapshot.set_node(Node(f"n{row}", labels={"zone": str(row % 3)}))
    counts = DomainCounts.of_rows(snapshot.topology.domains("zone"), {row: 1 + row % 2 for row in range(90)})
    assert by_value(counts, snapshot) == {"0": 45, "1": 45, "2": 45, None: 0}


def test_from_a_column_within_a_scope(snapshot):
    topology = snapshot.topology
    column = np.zeros(snapshot.capacity, dtype=np.int32)
    column[:4] = [1, 2, 3, 4]
    counts = DomainCounts.of_column(topology.domains("zone"), topology.scope((), None), column)
    assert by_value(counts, snapshot) == {"1": 4, "2": 2, None: 4}
    counts = DomainCounts.of_column(topology.domains("zone"), topology.scope(("zone",), None), column)
    assert by_value(counts, snapshot) == {"1": 4, "2": 2, None: 0}
    assert counts.total == 6


def test_pods_come_and_go(snapshot):
    counts = DomainCounts.of_rows(snapshot.topology.domains("zone"), {0: 1})
    counts.add(2, 1)
    counts.add(0, -1)
    counts.add(3, 1)
    assert by_value(counts, snapshot) == {"1": 1, "2": 0, None: 1}
    assert counts.total == 1


def test_pods_out_of_scope_do_not(snapshot):
    topology = snapshot.topology
    empty = np.zeros(snapshot.capacity, dtype=np.int32)
    counts = DomainCounts.of_column(topology.domains("zone"), topology.scope(("zone",), None), empty)
    counts.add(3, 1)
    counts.add(1, 1)
    assert by_value(counts, snapshot) == {"1": 0, "2": 1, None: 0}


def test_after_a_change_of_the_nodes_it_stands_still(snapshot):
    counts = DomainCounts.of_rows(snapshot.topology.domains("zone"), {0: 1})
    for number in range(200):
        snapshot.set_node(Node(f"more-{number}"))
    counts.add(150, 1)
    assert counts.values.tolist()[-1] == 0
