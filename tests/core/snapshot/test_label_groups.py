"""Rows grouped by labels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.snapshot.label_groups import label_groups
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.plugin_checks import alive_rows
from tests.kit.strategies import LABEL_KEYS, build, clusters


@given(clusters(), st.lists(st.sampled_from(LABEL_KEYS), unique=True), st.integers(0, 15))
def test_rows_of_a_group_look_the_same_and_those_of_two_do_not(cluster, keys, bits):
    snapshot = build(cluster, holes=(1,))
    rows = alive_rows(snapshot)
    mask = np.array([bool(bits >> i & 1) for i in range(rows.size)], dtype=np.bool_)

    def looks(index):
        node = snapshot.node_at(int(rows[index]))
        return tuple(node.labels.get(key) for key in keys), bool(mask[index])

    first, group = label_groups(snapshot, rows, keys, [mask])
    assert group.shape == rows.shape
    assert len({looks(i) for i in range(rows.size)}) == first.size
    for index in range(rows.size):
        assert looks(index) == looks(first[group[index]])


def test_without_labels_all_rows_are_one_group():
    snapshot = Snapshot()
    first, group = label_groups(snapshot, np.arange(snapshot.capacity), ())
    assert first.tolist() == [0]
    assert set(group.tolist()) == {0}
