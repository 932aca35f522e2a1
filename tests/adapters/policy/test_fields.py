"""Fields of policies, read one by one."""

import pytest

from moorage.adapters.policy.fields import FieldReader


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("8h", 28800.0), ("1h30m", 5400.0), ("500ms", 0.5), ("90s", 90.0), ("8760h", 31536000.0)],
)
def test_durations(text, seconds):
    reader = FieldReader()
    assert reader.duration({"d": text}, "d", "spec") == seconds
    assert reader.problems == []


@pytest.mark.parametrize(
    "text", ["", "8", "8d", "1.5h", "-1h", "0s", "8761h", "1h 30m", "9" * 40 + "h", 8, None, ["8h"]]
)
def test_what_is_no_duration(text):
    reader = FieldReader()
    reader.duration({"d": text}, "d", "spec")
    assert [path for path, _ in reader.problems] == ([] if text is None else ["spec.d"])


def test_reports_what_is_no_field():
    reader = FieldReader()
    assert reader.section({"a": {"b": 1, "c": 2}}, "a", "spec", ("b",)) == {"b": 1, "c": 2}
    assert reader.problems == [("spec.a.c", "is not a field; there are b")]


def test_reports_what_comes_twice_and_too_much():
    reader = FieldReader()
    assert reader.strings({"a": ["x", "x", ""]}, "a", "spec", 2) == ("x", "x", "")
    assert reader.problems == [
        ("spec.a", "must have at most 2 items, not 3"),
        ("spec.a[2]", "must not be empty"),
        ("spec.a[1]", "'x' is there already"),
    ]
