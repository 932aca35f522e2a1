"""Floats to the last bit as Go computes them."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.framework import go_math


@pytest.mark.parametrize(
    ("number", "bits"),
    # Go 1.26 on amd64: fmt.Printf("%016x", math.Float64bits(math.Log(n))).  C's log says otherwise for the first five.
    [
        (3, "3ff193ea7aad030a"),
        (14, "40051cca16d7bba8"),
        (48, "400ef8383c50bb74"),
        (74, "4011375cd6fcab1c"),
        (176, "4014ae935b3cb89e"),
        (2, "3fe62e42fefa39ef"),
        (5002, "40210901f6dc84b9"),
        (200004, "40286984f9a7474a"),
    ],
)
def test_the_logarithm_is_go_s(number, bits):
    assert struct.pack(">d", go_math.log(float(number))).hex() == bits


@given(st.integers(2, 10**9))
def test_the_logarithm_is_a_logarithm(number):
    assert go_math.log(float(number)) == pytest.approx(math.log(number), rel=1e-15)


def test_halves_go_up_and_what_is_just_below_does_not():
    """Adding a half and cutting off would make 1 of the last one."""
    values = np.array([0.0, 0.4, 0.5, 1.5, 2.5, 7.49, 0.49999999999999994])
    assert go_math.rounded(values).tolist() == [0, 0, 1, 2, 3, 7, 0]
    assert go_math.rounded(values).dtype == np.int64


@given(st.lists(st.floats(0, 2**52), max_size=5))
def test_rounding_is_to_the_nearest(values):
    given_values = np.array(values, dtype=np.float64)
    kept = given_values.copy()
    rounded = go_math.rounded(given_values)
    assert kept.tolist() == given_values.tolist()
    for value, result in zip(values, rounded.tolist(), strict=True):
        assert abs(result - value) <= 0.5
        assert result - value != -0.5
