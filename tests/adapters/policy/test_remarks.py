"""What is legal, but hardly meant."""

import pytest

from moorage.adapters.policy.reading import read_policy
from tests.kit.raw_policies import FULL, make_policy

OD = {"name": "od", "selector": {"matchLabels": {"pool": "od"}}, "max": 3}
SPOT = {"name": "spot", "selector": {"matchLabels": {"pool": "spot"}}}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        (FULL, []),
        ({}, ["spec"]),
        ({"canary": {"percent": 0}, "pendingDeadline": "1h"}, ["spec.canary.percent"]),
        ({"nodes": {"keepFree": {"cpu": 100, "memory": 99}}}, ["spec.nodes.keepFree.cpu"]),
        ({"pools": {"items": [OD, SPOT]}}, []),
        ({"pools": {"items": [OD, SPOT], "whenFull": "wait"}}, ["spec.pools.items[1]"]),
        ({"pools": {"items": [OD, {**OD, "name": "again"}]}}, ["spec.pools.items[1]"]),
        ({"pools": {"items": [{"name": "all", "selector": {}}, OD]}}, ["spec.pools.items[1]"]),
    ],
)
def test_remarks(spec, paths):
    found = read_policy(make_policy(**spec))
    assert found.wrong == ()
    assert [path for path, _ in found.odd] == paths
