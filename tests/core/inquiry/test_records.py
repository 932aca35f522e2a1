"""Explanations as data."""

import orjson

from moorage.core.engine import Engine
from moorage.core.inquiry.explanation import explain_in
from moorage.core.inquiry.records import decision_record, explanation_record, moment
from moorage.core.model.events import NodeApplied, PodPending
from tests.kit.builders import make_container, read_node, read_pod


def test_nothing_of_containers_is_told():
    engine = Engine()
    engine.handle(NodeApplied(read_node("a", unschedulable=True)), 0)
    secret = [
        {"name": "KEY", "value": "hush"},
        {"name": "K", "valueFrom": {"secretKeyRef": {"name": "hush"}}},
    ]
    pod = read_pod("p", containers=[make_container(env=secret, command=["hush"])], schedulerName="moorage")
    engine.handle(PodPending(pod), 0)
    record = explanation_record(explain_in(engine, pod, 0), {"a": engine.snapshot.node_at(0)})
    assert "hush" not in orjson.dumps(record).decode()
    assert record["decision"] == decision_record(engine.evaluate(pod, 0), pod)
    assert record["wouldHelp"] == [
        {"steps": [{"action": "uncordon", "node": "a"}], "placesOn": "a", "alike": 0},
        {
            "steps": [{"action": "addNode", "node": "a-more-1", "like": "a"}],
            "placesOn": "a-more-1",
            "alike": 0,
        },
    ]
    assert record["queue"]["place"] == "active"
    assert record["queue"]["added"] == "1970-01-01T00:00:00Z"


def test_times_are_utc():
    assert moment(1_893_535_200.4) == "2030-01-01T22:00:00Z"
