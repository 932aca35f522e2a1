"""Reading JSON that may be anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.kube.fields import PORTS, Reader, kind_of

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("method", "good", "empty", "bad", "message"),
    [
        ("text", "a", "", 1, "must be a string, not a number (1)"),
        ("whole", 3, 0, "3", "must be an integer, not a string ('3')"),
        ("whole", 3, 0, 1.5, "must be an integer, not a number (1.5)"),
        ("whole", 3, 0, True, "must be an integer, not a boolean (True)"),
        ("whole", 3, 0, 2**31, "must be between -2147483648 and 2147483647, not 2.14748e+09"),
        ("flag", True, False, "yes", "must be true or false, not a string ('yes')"),
        ("mapping", {"a": 1}, {}, [], "must be an object, not a list"),
        ("mapping", {"a": 1}, {}, {1: 2}, "keys must be strings, 1 is a number"),
        ("sequence", [1], (), "ab", "must be a list, not a string"),
        ("texts", ("a", "b"), (), "ab", "must be a list, not a string"),
        ("text_map", {"a": "b"}, {}, 3, "must be an object, not a number"),
    ],
)
def test_good_absent_and_bad(method, good, empty, bad, message):
    reader = Reader()
    read = getattr(reader, method)
    assert read(list(good) if method == "texts" else good, "f") == good
    assert read(None, "f") == empty
    assert reader.problems == []
    assert read(bad, "f") == empty
    assert reader.problems == [("f", message)]


def test_each_wrong_item_is_named_by_its_path():
    reader = Reader()
    assert reader.texts(["a", 1], "f") == ("a", "")
    assert reader.text_map({"k": 1}, "g") == {"k": ""}
    assert [(path, dict(item)) for path, item in reader.objects([{"a": 1}, 2, None], "h")] == [
        ("h[0]", {"a": 1}),
        ("h[1]", {}),
    ]
    assert [path for path, _ in reader.problems] == ["f[1]", "g.k", "h[1]", "h[2]"]


def test_a_whole_float_is_an_integer():
    reader = Reader()
    assert reader.whole(8080.0, "f", PORTS) == 8080
    assert reader.problems == []


def test_long_values_are_not_shown_in_full():
    reader = Reader()
    reader.whole("x" * 1000, "f")
    assert len(reader.problems[0][1]) < 100


@pytest.mark.parametrize("method", ["text", "whole", "flag", "mapping", "sequence", "texts", "text_map"])
@given(value=anything)
def test_nothing_raises(method, value):
    getattr(Reader(), method)(value, "f")


@given(anything)
def test_lists_of_objects_do_not_raise_either(value):
    list(Reader().objects(value, "f"))
    assert kind_of(value)
