"""The plugins that look at other pods, against every check, in worlds where pods have something to say."""

import pytest
from hypothesis import given, note

from moorage.core.model.spread import SYSTEM_DEFAULTS, SpreadDefaults
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from tests.kit.peers import peer_pods, worlds
from tests.kit.plugin_checks import CHECKS
from tests.kit.strategies import Cluster

#: Whether there is a score at all depends on the cluster here: the plugins' own tests compare scores.
_NOT_HERE = {"score_by_the_rules"}
PLUGINS = {
    "spread": PodTopologySpread(),
    "spread-listed": PodTopologySpread(SpreadDefaults(SYSTEM_DEFAULTS.constraints)),
    "affinity": InterPodAffinity(),
    "affinity-heavy": InterPodAffinity(hard_weight=100, ignore_preferred_of_existing=True),
}


@pytest.mark.parametrize("plugin", PLUGINS)
@given(world=worlds(), pod=peer_pods("asking"))
def test_laws(plugin, world, pod):
    for name, check in CHECKS.items():
        if name not in _NOT_HERE:
            note(f"check: {name}")
            check(PLUGINS[plugin], Cluster(world.nodes, world.pods), pod)
