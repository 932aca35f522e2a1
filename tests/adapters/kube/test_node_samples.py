"""NodeMetrics, read."""

import pytest

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.node_samples import read_node_sample
from moorage.core.model.events import UsageSample

METRICS = {
    "metadata": {"name": "a"},
    "timestamp": "2030-01-01T00:00:00Z",
    "window": "20s",
    "usage": {"cpu": "1500m", "memory": "2Gi"},
}


def test_base_units():
    reader = Reader()
    assert read_node_sample(METRICS, reader) == (
        "a",
        UsageSample(1893456000.0, {"cpu": 1500, "memory": 2 << 30}),
    )
    assert reader.problems == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"timestamp": None}, "timestamp"),
        ({"timestamp": "yesterday"}, "timestamp"),
        ({"usage": {"cpu": "x"}}, "usage.cpu"),
        ({"metadata": {"name": 3}}, "metadata.name"),
    ],
)
def test_what_cannot_be_read_is_named(change, field):
    reader = Reader()
    read_node_sample({**METRICS, **change}, reader)
    assert [path for path, _ in reader.problems] == [field]
