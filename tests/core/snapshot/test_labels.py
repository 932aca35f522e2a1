"""Label columns."""

import numpy as np
import pytest

from moorage.core.model.selector import Operator, Requirement
from moorage.core.snapshot.labels import LabelColumn
from tests.kit.models import make_node

VALUES = ["a", None, "b", "10", "9", ""]


@pytest.fixture
def column():
    """Rows with these values; row 6 has no node."""
    nodes = [make_node(f"n{i}", labels={} if v is None else {"key": v}) for i, v in enumerate(VALUES)]
    return LabelColumn("key", [*nodes, None], 8)


@pytest.mark.parametrize(
    ("operator", "values", "rows"),
    [
        (Operator.IN, ("a", "9", "unknown"), [0, 4]),
        (Operator.IN, (), []),
        (Operator.NOT_IN, ("a", "unknown"), [1, 2, 3, 4, 5, 6, 7]),
        (Operator.EXISTS, (), [0, 2, 3, 4, 5]),
        (Operator.DOES_NOT_EXIST, (), [1, 6, 7]),
        (Operator.GT, ("9",), [3]),
        (Operator.LT, ("10",), [4]),
        (Operator.GT, ("x",), []),
    ],
)
def test_requirements(column, operator, values, rows):
    """Rows without a node are as if without the label; the callers leave them out."""
    admitted = column.admitted(Requirement("key", operator, values))
    assert [row for row in range(8) if admitted[row]] == rows


def test_values_change(column):
    column.set(0, "b")
    column.set(2, None)
    column.set(1, "new")
    assert [None if i < 0 else column.values[i] for i in column.ids] == [
        "b", "new", None, "10", "9", "", None, None,
    ]  # fmt: skip
    assert column.id_of("a") >= 0
    assert column.id_of("unknown") == -1


def test_new_rows_do_not_have_the_label(column):
    column.grow(10)
    assert column.admitted(Requirement("key", Operator.EXISTS)).tolist()[8:] == [False, False]
    assert column.ids[0] == column.id_of("a")


def test_a_column_of_values_that_nobody_has_any_more_is_wasteful():
    column = LabelColumn("hostname", [], 2)
    for number in range(66):
        column.set(0, f"host-{number}")
    assert not column.wasteful
    column.set(0, "one more")
    assert column.wasteful


def test_values_as_numbers(column):
    numbers = column.numbers()
    assert numbers[column.ids].tolist()[3:5] == [10.0, 9.0]
    assert np.isnan(numbers[column.ids[[0, 1, 2, 5, 6, 7]]]).all()


def test_numbers_follow_new_values(column):
    column.numbers()
    for row, value in enumerate(("1e3", "-0.5", "inf", "nan", "1_0", "9")):
        column.set(row, value)
    found = column.numbers()[column.ids[:6]].tolist()
    assert found[:2] == [1000.0, -0.5]
    assert np.isnan(found[2:4]).all(), "what is no finite number is none"
    assert found[5] == 9.0
