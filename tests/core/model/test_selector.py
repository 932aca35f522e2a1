"""Selectors on one set of labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.selector import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    parse_int64,
)

LABELS = {"zone": "a", "gen": "10", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", Operator.IN, ("a", "b"), True),
        ("zone", Operator.IN, ("b",), False),
        ("rack", Operator.IN, ("a",), False),
        ("zone", Operator.NOT_IN, ("b",), True),
        ("zone", Operator.NOT_IN, ("a",), False),
        ("rack", Operator.NOT_IN, ("a",), True),  # a missing key is not among the values
        ("zone", Operator.EXISTS, (), True),
        ("empty", Operator.EXISTS, (), True),
        ("rack", Operator.EXISTS, (), False),
        ("zone", Operator.DOES_NOT_EXIST, (), False),
        ("rack", Operator.DOES_NOT_EXIST, (), True),
        ("gen", Operator.GT, ("9",), True),  # as numbers: as text, "10" < "9"
        ("gen", Operator.GT, ("10",), False),
        ("gen", Operator.LT, ("11",), True),
        ("gen", Operator.LT, ("9",), False),
        ("zone", Operator.GT, ("1",), False),
        ("gen", Operator.GT, ("nine",), False),
        ("rack", Operator.LT, ("1",), False),
        ("gen", Operator.GT, (), False),
        ("gen", Operator.GT, ("1", "2"), False),
    ],
)
def test_requirement(key, operator, values, expected):
    assert expected is Requirement(key, operator, values).admits(LABELS.get(key))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("-5", -5), ("+5", 5), ("007", 7), ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None), ("-9223372036854775808", -(2**63)), ("-9223372036854775809", None),
        ("", None), ("-", None), ("1.0", None), (" 1", None), ("1_0", None), ("٣", None), ("0x1", None),
    ],
)  # fmt: skip
def test_numbers_of_gt_and_lt(text, number):
    assert number == parse_int64(text)


def test_a_label_selector_without_requirements_matches_everything():
    assert LabelSelector().matches({})


def test_all_requirements_of_a_label_selector_must_hold():
    selector = LabelSelector(
        (Requirement("zone", Operator.IN, ("a",)), Requirement("gen", Operator.IN, ("11",)))
    )
    assert not selector.matches(LABELS)
    assert selector.matches({**LABELS, "gen": "11"})


def test_an_empty_term_and_an_empty_node_selector_match_nothing():
    assert not NodeSelectorTerm().matches("n", LABELS)
    assert not NodeSelector().matches("n", LABELS)


def test_a_term_needs_its_labels_and_its_fields():
    term = NodeSelectorTerm(
        (Requirement("zone", Operator.EXISTS),), (Requirement("metadata.name", Operator.IN, ("n",)),)
    )
    assert term.matches("n", LABELS)
    assert not term.matches("m", LABELS)
    assert not term.matches("n", {})


def test_an_unknown_field_matches_nothing():
    term = NodeSelectorTerm((), (Requirement("metadata.uid", Operator.NOT_IN, ("x",)),))
    assert not term.matches("n", LABELS)


def test_one_term_of_a_node_selector_is_enough():
    here = NodeSelectorTerm((Requirement("zone", Operator.IN, ("a",)),))
    there = NodeSelectorTerm((Requirement("zone", Operator.IN, ("z",)),))
    assert NodeSelector((there, here)).matches("n", LABELS)
    assert not NodeSelector((there, NodeSelectorTerm())).matches("n", LABELS)


@given(st.none() | st.sampled_from(["a", "b", "1"]), st.lists(st.sampled_from(["a", "b", "1"])))
def test_opposite_operators_are_opposites(label, values):
    def admits(operator):
        return Requirement("k", operator, tuple(values)).admits(label)

    assert admits(Operator.IN) is not admits(Operator.NOT_IN)
    assert admits(Operator.EXISTS) is not admits(Operator.DOES_NOT_EXIST)
