"""Disks mounted on rows, compared with what the pods there say one by one."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.pod_volumes import Disk
from moorage.core.snapshot.disks import Disks, meetings

disks = st.builds(
    Disk,
    st.lists(st.sampled_from([("a",), ("b",), ("c",)]), min_size=1, max_size=2, unique=True).map(tuple),
    st.booleans(),
)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.lists(disks, max_size=2)), max_size=6),
    st.lists(disks, max_size=2),
)
def test_conflicts_are_those_with_the_pods_on_the_row(pods, wanted):
    index = Disks()
    for row, mounted in pods:
        index.add(row, mounted)
    for count in range(len(pods) + 1):
        left = pods[count:]
        expected = {
            row
            for row, mounted in left
            if any(mine.conflicts(theirs) for mine in wanted for theirs in mounted)
        }
        assert index.rows_in_conflict(wanted) == expected
        if left:
            index.remove(*left[0])
    assert vars(index) == vars(Disks())


@given(
    st.lists(st.tuples(st.integers(0, 2), st.lists(disks, max_size=2)), max_size=5),
    st.lists(disks, max_size=2),
)
def test_conflicts_are_counted_pod_by_pod(pods, wanted):
    index = Disks()
    expected: Counter[int] = Counter()
    for row, mounted in pods:
        index.add(row, mounted)
        expected[row] += meetings(wanted, mounted)
    assert index.times_in_conflict(wanted) == +expected
    assert index.rows_in_conflict(wanted) == set(+expected)
