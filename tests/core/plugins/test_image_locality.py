"""ImageLocality."""

import pytest

from moorage.core.plugins.image_locality import ImageLocality
from tests.kit.models import MI, make_node, make_pod
from tests.kit.plugin_checks import scores


def score(pod_images, *node_images):
    """The scores of nodes with these images."""
    nodes = [make_node(f"n{i}", images=images) for i, images in enumerate(node_images)]
    pod = make_pod("web", images=pod_images)
    told = scores(ImageLocality(), pod, nodes)
    assert told is not None
    assert told[0] == told[1]
    return told[0]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (22 * MI, 0),
        (23 * MI, 0),
        (32 * MI, 0),
        (33 * MI, 1),
        (23 * MI + 977 * MI // 2, 50),
        (999 * MI, 99),
        (1000 * MI, 100),
        (9000 * MI, 100),
    ],
)
def test_between_23_and_1000_mib(size, expected):
    assert score(("app",), {"app": size}) == [expected]


def test_an_image_counts_by_the_share_of_nodes_that_have_it():
    """Against the heating of one node; half of 1046 MiB is 523, of which 500 are above the least."""
    assert score(("app",), {"app": 1046 * MI}, {}) == [100 * 500 // 977, 0]


def test_several_containers_add_up_and_raise_the_most():
    """The same image twice counts twice; 2000 MiB would be the most."""
    size = 500 * MI
    assert score(("app", "app"), {"app": size}) == [100 * 977 // 1977]
    assert score(("app", "db"), {"app": size, "db": size}) == [100 * 977 // 1977]


def test_images_that_no_node_has_score_nothing():
    assert score(("app",), {"db": 500 * MI}, {}) == [0, 0]


def test_a_size_beyond_measure_does_not_wrap():
    huge = (1 << 63) - 1
    assert score(("app", "db", "db"), {"app": huge, "db": huge}) == [100]
