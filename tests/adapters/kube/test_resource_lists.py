"""Resource lists and names."""

import pytest

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.resource_lists import (
    base_units,
    is_counted,
    is_label_value,
    is_qualified_name,
    is_subdomain,
    read_list,
)
from moorage.core.model.resources import MAX_AMOUNT


def test_amounts_are_thousandths_rounded_up_as_the_api_server_does():
    reader = Reader()
    given = {"cpu": "1500100u", "memory": "1Ki", "nvidia.com/gpu": 2, "ephemeral-storage": None}
    expected = {"cpu": 1501, "memory": 1024000, "nvidia.com/gpu": 2000, "ephemeral-storage": 0}
    assert read_list(reader, given, "f") == expected
    assert reader.problems == []


def test_bad_amounts_are_reported_and_the_others_kept():
    reader = Reader()
    assert read_list(reader, {"cpu": "1 core", "memory": "-1", "pods": "1"}, "f") == {
        "memory": 0,
        "pods": 1000,
    }
    assert reader.problems == [
        ("f.cpu", "not a quantity: '1 core'"),
        ("f.memory", "must not be negative, got '-1'"),
    ]


def test_base_units_round_up_and_leave_out_what_is_not_counted():
    amounts = {"cpu": 1501, "memory": 1001, "gpu": 5000, "pods": 3000, "example.com/x": 1, "storage": 1}
    assert base_units(amounts) == {"cpu": 1501, "memory": 2, "example.com/x": 1}
    assert base_units(amounts, also_pods=True)["pods"] == 3


def test_huge_amounts_are_clamped_at_the_end():
    assert base_units({"cpu": 10**40, "memory": 10**40}) == {"cpu": MAX_AMOUNT, "memory": MAX_AMOUNT}


@pytest.mark.parametrize(
    ("name", "counted"),
    [("cpu", True), ("hugepages-1Gi", True), ("a.b/c", True), ("gpu", False), ("pods", False)],
)
def test_counted_names(name, counted):
    assert is_counted(name) is counted


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("app", True), ("a.b/c_d.e-f", True), ("A", True), ("a/b/c", False), ("/a", False), ("a/", False),
        ("-a", False), ("a-", False), ("", False), ("x" * 63, True), ("x" * 64, False), ("A.b/c", False),
    ],
)  # fmt: skip
def test_qualified_names(name, legal):
    assert is_qualified_name(name) is legal


@pytest.mark.parametrize(
    ("value", "legal"), [("", True), ("a_B.c-9", True), ("-a", False), ("a b", False), ("x" * 64, False)]
)
def test_label_values(value, legal):
    assert is_label_value(value) is legal


@pytest.mark.parametrize(
    ("name", "legal"), [("a-b.c9", True), ("Web", False), ("a_b", False), ("a..b", False), ("x" * 254, False)]
)
def test_object_names(name, legal):
    assert is_subdomain(name) is legal
