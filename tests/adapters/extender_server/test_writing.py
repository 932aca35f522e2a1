"""What is answered, as our own client of the protocol reads it."""

import orjson
import pytest

from moorage.adapters.extender import wire
from moorage.adapters.extender_server import writing
from moorage.core.model.extender import Filtered, Preempted, Prioritized

FILTERED = Filtered(("b",), {"a": "too hot"}, {"c": "too far"})


def test_names_where_names_were_sent():
    body = writing.filter_result(FILTERED, ["a", "b", "c"], None)
    assert wire.read_filtered(body, node_cache_capable=True) == FILTERED
    assert orjson.loads(body)["Nodes"] is None


def test_the_very_objects_where_objects_were_sent():
    nodes = [{"metadata": {"name": name}, "what": name} for name in "abc"]
    body = writing.filter_result(FILTERED, ["a", "b", "c"], nodes)
    assert wire.read_filtered(body, node_cache_capable=False) == FILTERED
    answer = orjson.loads(body)
    assert answer["Nodes"]["items"] == nodes[1:2]
    assert answer["NodeNames"] is None


def test_scores_victims_and_errors():
    scores = Prioritized((("a", 10), ("b", 0)))
    assert wire.read_prioritized(writing.priority_list(scores)) == scores
    victims = Preempted({"a": (("u", "v"), 1)})
    assert wire.read_preempted(writing.preemption_result(victims)) == victims
    with pytest.raises(wire.Refused, match="no"):
        wire.read_filtered(writing.error("no"), node_cache_capable=True)
    wire.read_bound(writing.error(""))
