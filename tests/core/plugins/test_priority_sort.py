"""PrioritySort."""

from moorage.core.plugins.priority_sort import PrioritySort
from tests.kit.models import make_pod


def test_priority_first_then_age():
    waiting = [
        ("low", -5, 1.0),
        ("young", 7, 9.0),
        ("old", 7, 8.0),
        ("top", 2_000_001_000, 99.0),
        ("plain", 0, 0.0),
    ]
    keys = {name: PrioritySort().queue_key(make_pod(name, priority=p), since) for name, p, since in waiting}
    assert sorted(keys, key=keys.__getitem__) == ["top", "old", "young", "plain", "low"]
