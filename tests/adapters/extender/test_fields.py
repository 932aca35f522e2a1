"""Reading the protocol's JSON: Go's rules for names and for what is missing, and words for what is wrong."""

import gc

import pytest

from moorage.adapters.extender.fields import Malformed, fields, items, mapping, node_name, parsed, text, whole


def test_names_are_read_without_regard_to_case():
    assert fields({"NodeNames": 1, "pod": 2}, "x") == {"nodenames": 1, "pod": 2}


@pytest.mark.parametrize(("read", "zero"), [(mapping, {}), (fields, {}), (items, []), (text, ""), (whole, 0)])
def test_null_is_the_zero_value(read, zero):
    assert read(None, "x") == zero


@pytest.mark.parametrize(
    ("read", "value", "words"),
    [
        (mapping, [], "x must be an object, not list"),
        (fields, "a", "x must be an object, not str"),
        (items, {}, "x must be a list, not dict"),
        (text, 1, "x must be a string, not int"),
        (whole, True, "x must be an integer of 64 bits, not True"),
        (whole, 1 << 63, "x must be an integer of 64 bits, not 9223372036854775808"),
        (node_name, {"metadata": {"name": 1}}, "metadata.name must be a string, not int"),
        (node_name, {"metadata": 1}, "x's metadata must be an object, not int"),
    ],
)
def test_what_is_wrong_is_named(read, value, words):
    with pytest.raises(Malformed) as error:
        read(value, "x")
    assert str(error.value) == words


def test_what_is_no_json():
    with pytest.raises(Malformed, match="not JSON"):
        parsed(b"{")


def test_a_large_text_leaves_the_collector_as_it_was():
    large = b"[" + b"{}," * 500_000 + b"1]"
    assert len(parsed(large)) == 500_001
    assert gc.isenabled()
    with pytest.raises(Malformed):
        parsed(large + b"]")
    assert gc.isenabled()
