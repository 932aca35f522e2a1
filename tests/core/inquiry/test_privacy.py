"""Who may see one namespace's pods learns no other pod's name."""

import orjson
import pytest

from moorage.core.engine import Engine
from moorage.core.inquiry.explanation import explain_in
from moorage.core.inquiry.privacy import seen_from
from moorage.core.inquiry.records import explanation_record
from moorage.core.model.events import NodeApplied, PodBound
from tests.kit.builders import read_node, read_pod


@pytest.mark.parametrize("priority", [0, 5])  # what would help, and whom it would evict
@pytest.mark.parametrize("deleting", [False, True])
def test_names_of_other_namespaces_are_hidden(priority, deleting):
    engine = Engine()
    engine.handle(NodeApplied(read_node("a", allocatable={"cpu": "2"})), 0)
    gone = {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}} if deleting else {}
    engine.handle(PodBound(read_pod("hush", namespace="secret", node="a", cpu="1", **gone)), 0)
    engine.handle(PodBound(read_pod("mine", namespace="shop", node="a", cpu="1")), 0)
    pod = read_pod("p", namespace="shop", cpu="2", priority=priority, status={"nominatedNodeName": "a"})
    found = explain_in(engine, pod, 0)
    text = orjson.dumps(explanation_record(found, {"a": engine.snapshot.node_at(0)})).decode()
    assert "secret/hush" in text
    seen = orjson.dumps(
        explanation_record(seen_from(found, "shop"), {"a": engine.snapshot.node_at(0)})
    ).decode()
    assert "secret" not in seen
    assert "hush" not in seen
    assert "shop/mine" in seen
    assert "another-namespace/a-pod" in seen
