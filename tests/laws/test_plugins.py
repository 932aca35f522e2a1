"""Every registered plugin, and some set up differently, against every check of ``tests.kit.plugin_checks``."""

import pytest
from hypothesis import given, note

from moorage.core.framework.interface import FilterPlugin, PreEnqueuePlugin, ScorePlugin
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.core.model.selector import Operator, PreferredTerm, Requirement
from moorage.core.plugins.node_affinity import NodeAffinity
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.profile import REGISTRY
from tests.kit.models import label_in, make_pod, required, term
from tests.kit.plugin_checks import CHECKS
from tests.kit.scalar import RULES
from tests.kit.strategies import GPU, HUGE_PAGES, clusters, specs

_RESOURCES = (Weighted(CPU, 3), Weighted(MEMORY, 1), Weighted(GPU, 5), Weighted(EPHEMERAL_STORAGE, 2))

PLUGINS = {
    **{name: make() for name, make in REGISTRY.items()},
    "NodeAffinity-added": NodeAffinity(
        added_required=required(term(label_in("zone", "a", "b"))),
        added_preferred=(PreferredTerm(7, term(Requirement("gen", Operator.GT, ("9",)))),),
    ),
    "NodeResourcesFit-ignoring": NodeResourcesFit(
        ignored=frozenset({GPU}), ignored_groups=frozenset({"example.org"})
    ),
    "NodeResourcesFit-ignoring-a-group": NodeResourcesFit(ignored_groups=frozenset({"example.com"})),
    "NodeResourcesFit-least": NodeResourcesFit(ScoringStrategy(StrategyType.LEAST_ALLOCATED, _RESOURCES)),
    "NodeResourcesFit-most": NodeResourcesFit(ScoringStrategy(StrategyType.MOST_ALLOCATED, _RESOURCES)),
    "NodeResourcesFit-ratio": NodeResourcesFit(
        ScoringStrategy(
            StrategyType.REQUESTED_TO_CAPACITY_RATIO, _RESOURCES, ((0, 0), (40, 7), (70, 3), (100, 10))
        )
    ),
    "NodeResourcesFit-falling": NodeResourcesFit(
        ScoringStrategy(
            StrategyType.REQUESTED_TO_CAPACITY_RATIO,
            (Weighted(CPU), Weighted(HUGE_PAGES, 4)),
            ((10, 10), (90, 0)),
        )
    ),
    "NodeResourcesBalancedAllocation-4": NodeResourcesBalancedAllocation(_RESOURCES),
    "NodeResourcesBalancedAllocation-1": NodeResourcesBalancedAllocation((Weighted(MEMORY),)),
}


@pytest.mark.parametrize(
    "plugin", [name for name, p in PLUGINS.items() if isinstance(p, FilterPlugin | ScorePlugin)]
)
@given(cluster=clusters(), spec=specs())
def test_laws(plugin, cluster, spec):
    """All checks on each example, for making examples is what costs; the note names the one that fails."""
    for name, check in CHECKS.items():
        note(f"check: {name}")
        check(PLUGINS[plugin], cluster, make_pod("asking", spec=spec))


@pytest.mark.parametrize("plugin", PLUGINS)
def test_whoever_can_reject_names_what_may_undo_it(plugin):
    if isinstance(PLUGINS[plugin], FilterPlugin | PreEnqueuePlugin):
        assert PLUGINS[plugin].wakes_on()


def test_every_plugin_that_decides_has_a_scalar_reference():
    deciding = {p.name for p in PLUGINS.values() if isinstance(p, FilterPlugin | ScorePlugin)}
    assert set(RULES) == deciding
    for plugin in PLUGINS.values():
        if isinstance(plugin, FilterPlugin):
            assert RULES[plugin.name].node is not None
        if isinstance(plugin, ScorePlugin):
            assert RULES[plugin.name].score is not None


def test_names_are_the_registry_s():
    assert {name: name for name in REGISTRY} == {name: make().name for name, make in REGISTRY.items()}
