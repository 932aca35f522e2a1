"""Names and amounts of resources."""

import pytest

from moorage.core.model.resources import Requests, is_extended, is_scalar


def test_what_is_not_named_is_not_asked_for():
    requests = Requests({"cpu": 100, "example.com/fpga": 0})
    assert (requests.of("cpu"), requests.of("example.com/fpga"), requests.of("memory")) == (100, 0, 0)


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("kubernetes.io/batch-cpu", False, True),
        ("scheduling.k8s.io/x", True, True),
        ("requests.nvidia.com/gpu", False, False),  # a name of quotas
        ("gpu", False, False),
        ("cpu", False, False),
        ("pods", False, False),
    ],
)
def test_which_names_take_part_in_scheduling(name, extended, scalar):
    assert (extended, scalar) == (is_extended(name), is_scalar(name))
