"""Selectors from JSON."""

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.selectors import read_label_selector, read_node_affinity
from moorage.core.model.selector import LabelSelector, Operator, Requirement


def test_a_missing_selector_is_not_an_empty_one():
    reader = Reader()
    assert read_label_selector(None, "f", reader) is None
    assert read_label_selector({}, "f", reader) == LabelSelector()
    assert reader.problems == []


def test_labels_and_expressions_all_become_requirements():
    selector = {
        "matchLabels": {"b": "2", "a": "1"},
        "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["3"]}],
    }
    assert read_label_selector(selector, "f", Reader()) == LabelSelector(
        (
            Requirement("a", Operator.IN, ("1",)),
            Requirement("b", Operator.IN, ("2",)),
            Requirement("c", Operator.NOT_IN, ("3",)),
        )
    )


def test_required_without_terms_matches_nothing_but_absent_is_no_restriction():
    reader = Reader()
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    required, _ = read_node_affinity({key: {}}, "f", reader)
    assert required is not None
    assert not required.matches("a", {})
    assert read_node_affinity({}, "f", reader) == (None, ())
    assert reader.problems == []


def test_wrong_types_are_reported_with_their_path():
    reader = Reader()
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    read_node_affinity({key: [{"weight": "5", "preference": []}]}, "f", reader)
    assert [path for path, _ in reader.problems] == [f"f.{key}[0].weight", f"f.{key}[0].preference"]
