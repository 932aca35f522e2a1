"""The data on which the cost of expressions is tried."""

from moorage.adapters.policy.samples import SIZES, sample_node, sample_pod, with_fields
from moorage.core.model.policy import NodeFacts


def test_they_grow():
    assert list(SIZES) == sorted(SIZES)
    for sample in (sample_pod, sample_node):
        lengths = [len(repr(sample(size))) for size in SIZES]
        assert lengths[0] * 4 < lengths[-1]


def test_a_node_has_just_the_fields_there_are():
    assert set(sample_node(1)) == set(NodeFacts.__dataclass_fields__)


def test_what_is_spoken_of_is_there():
    paths = [
        ("spec", "containers"),
        ("metadata", "annotations", "x/y"),
        ("status", "a", "b"),
        ("metadata", "name", "c"),
        (),
    ]
    pod = with_fields(sample_pod(1), paths)
    assert len(pod["metadata"]["annotations"]["x/y"]) > 100
    assert len(pod["status"]["a"]["b"]) > 100
    assert pod["spec"]["containers"] == sample_pod(1)["spec"]["containers"]
    assert pod["metadata"]["name"] == sample_pod(1)["metadata"]["name"]
