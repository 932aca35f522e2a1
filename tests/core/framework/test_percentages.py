"""Percentages are compared without rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.framework.percentages import at_least

amounts = st.one_of(st.integers(0, 300), st.sampled_from(((1 << 55) + 1, 1 << 61, (1 << 62) - 1, 1 << 62)))


@given(st.lists(st.tuples(amounts, amounts), min_size=1), st.integers(0, 100), st.booleans())
def test_it_is_the_comparison_of_the_exact_products(pairs, percent, negative):
    sign = -1 if negative else 1
    part, whole = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    found = at_least(sign * part, sign * percent, whole, max(max(pair) for pair in pairs))
    assert found.dtype == np.bool_
    assert found.tolist() == [sign * p * 100 >= sign * percent * w for p, w in pairs]


def test_what_is_missing_of_a_whole_number_is_missing():
    part, whole = np.array([1, 2]), np.array([3, 3])
    assert at_least(part, 50, whole, 3).tolist() == [False, True]


@pytest.mark.parametrize("peak", [1, 1 << 60])
def test_no_nodes_are_no_special_case(peak):
    none = np.zeros(0, dtype=np.int64)
    assert at_least(none, 10, none, peak).tolist() == []
