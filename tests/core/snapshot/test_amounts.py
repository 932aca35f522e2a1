"""Columns of sums that cannot overflow."""

import pytest

from moorage.core.model.resources import MAX_AMOUNT
from moorage.core.snapshot.amounts import SATURATED, AmountColumn


@pytest.fixture
def column():
    """Four rows."""
    return AmountColumn(4)


def test_sums(column):
    column.add(1, 5)
    column.add(1, 7)
    column.add(1, -3)
    column.set(2, 8)
    column.set(2, 6)
    assert column.values.tolist() == [0, 9, 6, 0]


def test_rows_that_hold_something_are_counted(column):
    for row, amount in ((0, 5), (0, -5), (1, 5), (1, 1), (2, 0), (3, -4)):
        column.add(row, amount)
    assert column.nonzero == 2
    column.set(1, 0)
    column.set(3, 0)
    assert column.nonzero == 0


def test_the_peak_is_never_exceeded_and_never_falls(column):
    column.add(0, 7)
    column.add(1, -9)
    column.set(0, 1)
    assert column.peak == 9


@pytest.mark.parametrize("sign", [1, -1])
def test_beyond_measure_a_column_shows_the_limit_and_remembers_the_sum(column, sign):
    for _ in range(5):
        column.add(0, sign * MAX_AMOUNT)
    assert column.values[0] == sign * SATURATED
    assert column.peak == SATURATED
    for _ in range(5):
        column.add(0, -sign * MAX_AMOUNT)
    column.add(0, sign * 3)
    assert column.values[0] == sign * 3
    assert column.nonzero == 1


@pytest.mark.parametrize("amount", [SATURATED - 1, SATURATED, SATURATED + 1])
def test_around_the_limit(column, amount):
    column.add(0, amount)
    assert column.values[0] == min(amount, SATURATED)
    column.add(0, 1 - amount)
    assert column.values[0] == 1


def test_setting_replaces_what_is_beyond_measure(column):
    column.set(0, MAX_AMOUNT)
    column.set(0, 4)
    assert column.values[0] == 4
    assert column._exact == {}


def test_growing_keeps_what_is_there(column):
    column.add(3, 5)
    column.add(0, MAX_AMOUNT)
    column.grow(6)
    column.add(5, 2)
    column.add(0, 2 - MAX_AMOUNT)
    assert column.values.tolist() == [2, 0, 0, 5, 0, 2]
