"""Alerts and dashboard, as far as they can be judged without Prometheus; their metrics are in tests/integration."""

import json
import re
from collections import Counter

import pytest

from tests.kit.helm import VALUES, Helm, only

pytestmark = pytest.mark.integration


def balanced(expression: str) -> bool:
    pairs = {")": "(", "]": "[", "}": "{"}
    open_ones: list[str] = []
    for character in re.sub(r'"[^"]*"', '""', expression):
        if character in pairs.values():
            open_ones.append(character)
        elif character in pairs and (not open_ones or open_ones.pop() != pairs[character]):
            return False
    return not open_ones


def test_alerts_are_complete_and_about_this_release(helm: Helm) -> None:
    (group,) = only(helm.template(VALUES / "everything.yaml"), "PrometheusRule")["spec"]["groups"]
    names = Counter(rule["alert"] for rule in group["rules"])
    assert len(names) >= 10
    assert set(names.values()) == {1}
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert balanced(rule["expr"]), rule["expr"]
        assert "$" not in rule["expr"]
        for selector in re.findall(r"\{([^}]*)\}", rule["expr"]):
            assert selector.startswith('job="pilot-metrics", namespace="harbour"'), rule["expr"]
    (unschedulable,) = [rule for rule in group["rules"] if rule["alert"] == "MooragePodsUnschedulable"]
    assert unschedulable["expr"].endswith("> 100")
    assert unschedulable["for"] == "30m"
    assert "{{ $value }}" in unschedulable["annotations"]["description"]


def test_the_dashboard_can_be_loaded(helm: Helm) -> None:
    data = only(helm.template(VALUES / "everything.yaml"), "ConfigMap", "pilot-dashboard")["data"]
    dashboard = json.loads(data["moorage.json"])
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert variables == {"datasource", "namespace", "job"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    used: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & used, f"{panel['title']} lies over another"
        assert place["x"] + place["w"] <= 24
        used |= cells
        if panel["type"] == "row":
            continue
        assert panel["description"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert balanced(target["expr"]), target["expr"]
            assert 'job="$job", namespace="$namespace"' in target["expr"]
