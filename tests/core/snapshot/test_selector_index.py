"""The index leads to every selector that matches, and to few others."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.snapshot.selector_index import SelectorIndex
from tests.kit.models import label_in
from tests.kit.peers import label_selectors, pod_labels


def indexed(*selectors):
    index: SelectorIndex[int] = SelectorIndex()
    for number, selector in enumerate(selectors):
        index.add(number, selector)
    return index


@given(st.lists(label_selectors, max_size=8), pod_labels, st.sets(st.integers(0, 7)))
def test_no_match_is_missed_and_none_comes_twice(selectors, labels, dropped):
    index = indexed(*selectors)
    for number in dropped:
        index.discard(number)
    found = list(index.candidates(labels))
    matching = {i for i, s in enumerate(selectors) if s.matches(labels) and i not in dropped}
    assert matching <= set(found)
    assert len(set(found)) == len(found)
    assert dropped.isdisjoint(found)
    assert len(index) == len(selectors) - len(dropped & set(range(len(selectors))))


def test_equalities_lead_straight_to_the_few_that_can_match():
    index = indexed(*(LabelSelector((label_in("app", f"a{i}"), label_in("tier", "f"))) for i in range(100)))
    assert list(index.candidates({"app": "a7", "tier": "f"})) == [7]
    assert list(index.candidates({"tier": "f"})) in (
        [],
        [0],
    )  # the first one did not know what others would ask for


def test_it_files_under_the_rarest_requirement():
    common = [LabelSelector((label_in("tier", "f"), label_in("app", f"a{i}"))) for i in range(50)]
    index = indexed(LabelSelector((label_in("tier", "f"),)), *common)
    assert list(index.candidates({"tier": "f", "app": "none"})) == [0]


def test_existence_is_found_by_the_key():
    exists, absent = (
        LabelSelector((Requirement("app", o),)) for o in (Operator.EXISTS, Operator.DOES_NOT_EXIST)
    )
    index = indexed(exists, absent)
    assert list(index.candidates({"app": "x"})) == [0, 1]
    assert list(index.candidates({"tier": "x"})) == [1]


def test_one_of_several_values_is_found_by_each():
    index = indexed(LabelSelector((label_in("app", "x", "y", "x"),)))
    assert [list(index.candidates({"app": value})) for value in "xyz"] == [[0], [0], []]


def test_what_is_dropped_leaves_nothing_behind():
    index = indexed(
        LabelSelector((label_in("app", "x"),)), LabelSelector((Requirement("app", Operator.EXISTS),))
    )
    index.discard(0)
    index.discard(1)
    index.discard(1)
    assert not index
    assert not list(index.candidates({"app": "x"}))
    assert not index._filed
    assert index._keys == 0
