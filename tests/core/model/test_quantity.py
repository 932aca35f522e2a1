"""Quantities: every legal form, exactly, against fractions."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moorage.core.model.quantity import Quantity, QuantityError, milli_value, parse, value
from moorage.core.model.resources import MAX_AMOUNT

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("0", 0),
        ("1.", 1),
        (".5", 1),
        ("+7", 7),
        ("-7", -7),
        ("1k", 1000),
        ("1E", 10**18),
        ("1E3", 1000),
        ("2e9", 2 * 10**9),
        ("2E9", 2 * 10**9),
        ("1e+2", 100),
        ("5000e-3", 5),
        ("1E-2", 1),
        ("1048576Ki", 1 << 30),
        ("1.5Gi", 3 << 29),
        ("0.5Ki", 512),
        ("1073741824000m", 1 << 30),
        ("1073741823001m", 1 << 30),
        ("1n", 1),
        ("0.00000000001", 1),
        ("0001", 1),
        (" 1Gi ", 1 << 30),
        (7, 7),
        (1.5, 2),
        (1e3, 1000),
    ],
)
def test_whole_units(text, units):
    assert units == value(text)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1", 1000),
        ("100m", 100),
        (".1", 100),
        (0.1, 100),
        ("100u", 1),
        ("1n", 1),
        ("1500001u", 1501),
        (2, 2000),
    ],
)
def test_milli_units(text, millis):
    assert millis == milli_value(text)


def test_both_round_away_from_zero():
    assert (value("-1500001u"), milli_value("-1500001u")) == (-2, -1501)


@pytest.mark.parametrize(
    "text", ["16Ei", "50E", "9223372036854775807", "1e30", "9999999Ei", "1e999999999", 10**40]
)
def test_what_does_not_fit_is_the_largest_amount(text):
    assert milli_value(text) == MAX_AMOUNT
    assert value(text) == MAX_AMOUNT


def test_the_largest_amount_itself_is_exact():
    assert value("9223372036854775807") == 2**63 - 1
    assert value("9223372036854775808") == 2**63 - 1
    assert value("9223372036854775806") == 2**63 - 2


@pytest.mark.parametrize(
    "text",
    [
        "", "1 Gi", "1K", "1ki", "1KI", "1i", "1e", "1e3.5", "1E+", "1ee3", "0x10", "1,5", "--1", "1.1.1", "1_000",
        "١", "one", "Gi", "m", ".", "+", "-", "1Gib", "1GB", "1e3Ki", "Infinity",
        None, True, float("nan"), float("inf"), [], {}, b"1",
    ],
)  # fmt: skip
def test_what_is_not_a_quantity(text):
    with pytest.raises(QuantityError, match="not a quantity"):
        parse(text)


def test_a_long_text_is_not_shown_in_full():
    with pytest.raises(QuantityError) as caught:
        parse("x" * 10_000)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("9" * 5000, MAX_AMOUNT),
        ("0." + "0" * 5000 + "1", 1),
        ("1e" + "9" * 5000, MAX_AMOUNT),
        ("1e-" + "9" * 5000, 1),
    ],
)
def test_absurd_numbers_cost_little(text, units):
    assert units == value(text)


def test_sums_of_huge_amounts_are_not_clamped_early():
    assert parse("16Ei").millis * 2 == 2 * 16 * 2**60 * 1000


@st.composite
def numerals(draw):
    whole = draw(st.text("0123456789", max_size=25))
    fraction = draw(st.none() | st.text("0123456789", max_size=25))
    if not whole and not fraction:
        whole = "0"
    return draw(st.sampled_from(["", "+", "-"])) + whole + ("" if fraction is None else f".{fraction}")


def exact(numeral):
    """The numeral as a fraction; Decimal reads a lone point on either side."""
    return Fraction(Decimal(numeral))


def rounded(amount, unit):
    """Rounded away from zero to a multiple of the unit, counted in units."""
    steps = abs(amount) / unit
    return (1 if amount >= 0 else -1) * math.ceil(steps)


suffixes = st.sampled_from([*DECIMAL, *BINARY]) | st.builds(
    "{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 25)
)


@given(numerals(), suffixes)
@example("-0.000000000000000001", "Ki")
def test_every_form_equals_the_fraction(numeral, suffix):
    if suffix in BINARY:
        amount = exact(numeral) * 2 ** BINARY[suffix]
    elif suffix in DECIMAL:
        amount = exact(numeral) * Fraction(10) ** DECIMAL[suffix]
    else:
        amount = exact(numeral) * Fraction(10) ** int(suffix[1:])
    # The API keeps nothing finer than nano-units; what is finer was asked for and is rounded up.
    nanos = rounded(amount, Fraction(1, 10**9))
    assert Quantity(nanos) == parse(numeral + suffix)
    units = rounded(Fraction(nanos, 10**9), 1)
    assert max(-MAX_AMOUNT, min(MAX_AMOUNT, units)) == value(numeral + suffix)


@given(st.integers(-(2**70), 2**70))
def test_numbers_are_read_like_their_text(number):
    assert parse(str(number)) == parse(number)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30))
def test_floats_are_read_like_their_text(number):
    assert parse(repr(number)) == parse(number)


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_quantity_error(text):
    try:
        parse(text)
    except QuantityError:
        pass
