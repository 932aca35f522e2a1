"""Evenness as such; what PodTopologySpread and PolicySpread make of it is in their tests."""

import numpy as np
import pytest

from moorage.core.framework.spread_scoring import SoftState, Weighed, admitted, normalize, scored_rows
from moorage.core.model.node import Node
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes


def made(*zones):
    snapshot = Snapshot()
    for row, zone in enumerate(zones):
        snapshot.set_node(Node(f"n{row}", labels={} if zone is None else {"zone": zone}))
    return snapshot


def ints(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("max_skew", "min_domains", "own", "expected"),
    [
        (1, 1, 1, [False, True, False, False]),
        (1, 1, 0, [False, True, True, False]),
        (2, 1, 1, [False, True, True, False]),
        (2, 3, 1, [False, True, True, False]),
        (1, 4, 1, [False, False, False, False]),
        (2, 4, 1, [False, True, False, False]),
    ],
)
def test_a_domain_is_admitted_by_how_far_it_would_be_ahead(max_skew, min_domains, own, expected):
    """Three domains with 3, 1 and 2 pods, and 9 pods in none."""
    good = admitted(ints(3, 1, 2, 9), np.arange(3), max_skew=max_skew, min_domains=min_domains, own=own)
    assert good.tolist() == expected


def test_domains_that_do_not_count_do_not_set_the_measure():
    good = admitted(ints(3, 0, 2, 0), np.array([0, 2]), max_skew=1, min_domains=1, own=1)
    assert good.tolist() == [False, True, True, False]
    nowhere = admitted(ints(0, 1, 0), np.zeros(0, dtype=np.intp), max_skew=1, min_domains=1, own=1)
    assert nowhere.tolist() == [True, False, False]


def test_domains_are_weighed_by_their_number_among_the_rows():
    snapshot = made("a", "b", "", None)
    domains = snapshot.topology.domains("zone")
    weighed = Weighed.of_domains(domains, 3, ints(0, 1, 2, 3), ints(1, 0, 1, 4))
    assert weighed.weight == pytest.approx(np.log(3 + 2))  # no label and an empty one are the same
    assert weighed.by_domain is not None
    assert weighed.by_domain.tolist() == pytest.approx([2 + np.log(5), 2, 2 + 5 * np.log(5), 0])


def test_rows_are_scored_and_those_out_of_scope_ignored():
    snapshot = made("a", "b", None)
    scope = snapshot.topology.scope(("zone",), None)
    nodes = Nodes(snapshot, ints(0, 1, 2))
    assert scored_rows(scope, nodes).tolist() == [0, 1]
    counts = np.zeros(snapshot.capacity, dtype=np.int32)
    counts[:3] = (2, 1, 5)
    by_row = Weighed.of_rows(snapshot.topology.domains("zone"), 1, ints(0, 1), counts)
    raw = SoftState((by_row, by_row), scope).score(nodes)
    assert raw.tolist() == [6, 3, -1]  # 2 * 2 * log(4) and 2 * log(4), rounded
    assert normalize(raw).tolist() == [50, 100, 0]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [((), []), ((0, 0), [100, 100]), ((-1, -1), [0, 0]), ((0, -1), [100, 0]), ((4, 2), [50, 100])],
)
def test_the_fewer_the_more_points(raw, expected):
    assert normalize(ints(*raw)).tolist() == expected
