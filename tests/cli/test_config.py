"""KubeSchedulerConfiguration to profiles."""

import pytest

from moorage.cli.config import ConfigError, read_config
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.profile import REGISTRY


def one(**profile):
    (result,) = read_config({"profiles": [profile]}).values()
    return result


def plugin(profile, name):
    return next(p for p in profile.plugins if p.name == name)


def scoring_strategy(**strategy):
    args = {"scoringStrategy": strategy}
    return plugin(one(pluginConfig=[{"name": "NodeResourcesFit", "args": args}]), "NodeResourcesFit").strategy


def test_without_configuration_both_default_names_are_served():
    profiles = read_config(None)
    assert list(profiles) == ["default-scheduler", "moorage"]
    assert [p.name for p in profiles["default-scheduler"].plugins] == list(REGISTRY)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
        {
            "parallelism": 4,
            "percentageOfNodesToScore": 5,
            "leaderElection": {"leaderElect": False},
            "extenders": None,
        },
        "parallelism: 4\n",
    ],
)
def test_a_configuration_without_profiles_means_kube_scheduler_s_default(config):
    assert list(read_config(config)) == ["default-scheduler"]


def test_names_of_profiles():
    profiles = read_config({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]})
    assert [(name, profile.scheduler_name) for name, profile in profiles.items()] == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize("point", ["score", "multiPoint"])
def test_weights(point):
    profile = one(plugins={point: {"enabled": [{"name": "ImageLocality", "weight": 9}]}})
    assert profile.weight("ImageLocality") == 9
    assert profile.weight("TaintToleration") == 3


@pytest.mark.parametrize("point", ["score", "multiPoint"])
def test_a_plugin_that_is_mentioned_without_a_weight_weighs_1(point):
    enabled = [{"name": "TaintToleration"}, {"name": "NodeAffinity", "weight": 0}]
    profile = one(plugins={point: {"enabled": enabled}})
    assert (profile.weight("TaintToleration"), profile.weight("NodeAffinity")) == (1, 1)


def test_scores_can_be_turned_off_one_by_one_or_all_but_some():
    profile = one(plugins={"score": {"disabled": [{"name": "TaintToleration"}]}})
    assert profile.weight("TaintToleration") == 0
    assert plugin(profile, "TaintToleration")  # still filters
    enabled = [{"name": "NodeAffinity"}, {"name": "ImageLocality", "weight": 5}]
    profile = one(plugins={"score": {"disabled": [{"name": "*"}], "enabled": enabled}})
    weights = {p.name: profile.weight(p.name) for p in profile.plugins}
    assert {name: weight for name, weight in weights.items() if weight} == {
        "NodeAffinity": 1,
        "ImageLocality": 5,
    }
    profile = one(plugins={"score": {"disabled": [{"name": "*"}]}})
    assert not any(profile.weight(p.name) for p in profile.plugins)


def names(profile):
    return [plugin.name for plugin in profile.plugins]


def test_a_plugin_that_is_disabled_and_enabled_runs_last():
    again = [{"name": "TaintToleration", "weight": 7}]
    profile = one(plugins={"multiPoint": {"disabled": [{"name": "TaintToleration"}], "enabled": again}})
    assert names(profile) == [*(name for name in REGISTRY if name != "TaintToleration"), "TaintToleration"]
    assert profile.weight("TaintToleration") == 7
    profile = one(plugins={"multiPoint": {"enabled": again}})
    assert names(profile) == list(REGISTRY), "a plugin that is only enabled anew keeps its place"


def test_all_plugins_can_be_turned_off_but_for_those_that_are_named():
    enabled = [{"name": name} for name in ("NodePorts", "PrioritySort", "NodeName", "DefaultBinder")]
    profile = one(plugins={"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}})
    assert names(profile) == ["SupportedFeatures", "NodePorts", "PrioritySort", "NodeName", "DefaultBinder"]


def test_arguments_of_a_disabled_plugin_are_read_and_not_used():
    off = {"multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}}

    def of_weight(weight):
        args = {"resources": [{"name": "cpu", "weight": weight}]}
        return one(plugins=off, pluginConfig=[{"name": "NodeResourcesBalancedAllocation", "args": args}])

    assert "NodeResourcesBalancedAllocation" not in names(of_weight(1))
    with pytest.raises(ConfigError, match=r"resources\[0\].weight: must be 1, not 2"):
        of_weight(2)


def test_empty_arguments_are_no_arguments():
    for args in (None, {}, {"kind": "NodeAffinityArgs"}):
        assert names(one(pluginConfig=[{"name": "NodeAffinity", "args": args}])) == list(REGISTRY)


def test_plugins_can_be_removed():
    profile = one(
        plugins={"multiPoint": {"disabled": [{"name": "NodePorts"}, {"name": "PodTopologySpread"}]}}
    )
    assert "NodePorts" not in names(profile)


def test_scoring_strategies():
    assert plugin(one(pluginConfig=[{"name": "NodeResourcesFit"}]), "NodeResourcesFit") == NodeResourcesFit()
    assert scoring_strategy(type="LeastAllocated") == ScoringStrategy()
    assert scoring_strategy(
        type="MostAllocated", resources=[{"name": "cpu", "weight": 3}, {"name": "a.b/c"}]
    ) == (ScoringStrategy(StrategyType.MOST_ALLOCATED, (Weighted("cpu", 3), Weighted("a.b/c", 1))))
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = scoring_strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})
    assert strategy.shape == ((0, 0), (100, 10))


def test_other_arguments():
    configs = [
        {
            "name": "NodeResourcesFit",
            "args": {"ignoredResources": ["a.b/c"], "ignoredResourceGroups": ["d.e"]},
        },
        {"name": "NodeResourcesBalancedAllocation", "args": {"resources": [{"name": "cpu", "weight": 1}]}},
        {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 10}},
    ]
    profile = one(pluginConfig=configs)
    assert plugin(profile, "NodeResourcesFit") == NodeResourcesFit(
        ignored=frozenset({"a.b/c"}), ignored_groups=frozenset({"d.e"})
    )
    assert plugin(profile, "NodeResourcesBalancedAllocation") == NodeResourcesBalancedAllocation(
        resources=(Weighted("cpu", 1),)
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("a: [", "not YAML"),
        ([], "config: must be an object, not a list"),
        ({"kind": "Other"}, "kind: must be KubeSchedulerConfiguration, not 'Other'"),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "apiVersion: must be"),
        ({"extenders": [{"urlPrefix": "x"}]}, "extenders: is not supported"),
        ({"featureGates": {}}, "featureGates: is not supported"),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles: two profiles have the same",
        ),
        ({"profiles": [{"policy": 1}]}, "profiles[0].policy: is not supported"),
        ({"profiles": [{"plugins": {"filter": {}}}]}, "profiles[0].plugins.filter: is not supported"),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "Mine"}]}}}]},
            "plugin 'Mine' is not supported",
        ),
        (
            {"profiles": [{"plugins": {"score": {"disabled": [{"name": "Mine"}]}}}]},
            "there is no plugin 'Mine'",
        ),
        (
            {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}]}}}]},
            "profiles[0]: profile 'default-scheduler' needs exactly one QueueSort plugin",
        ),
        (
            {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultBinder"}]}}}]},
            "profiles[0]: profile 'default-scheduler' needs a Bind plugin",
        ),
        (
            {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "SupportedFeatures"}]}}}]},
            "profiles[0].plugins.multiPoint.disabled[0].name: there is no plugin 'SupportedFeatures'",
        ),
        (
            {
                "profiles": [
                    {"plugins": {"multiPoint": {"enabled": [{"name": "NodeName"}, {"name": "NodeName"}]}}}
                ]
            },
            "profiles[0].plugins.multiPoint.enabled[1].name: plugin 'NodeName' is enabled twice",
        ),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "NodeName"}]}}}]},
            "profiles[0].plugins.score.enabled[0].name: plugin 'NodeName' does not score nodes",
        ),
        (
            {
                "profiles": [
                    {
                        "plugins": {
                            "multiPoint": {"disabled": [{"name": "NodeAffinity"}]},
                            "score": {"enabled": [{"name": "NodeAffinity"}]},
                        }
                    }
                ]
            },
            "plugin 'NodeAffinity' is disabled; enabling it for scores alone is not supported",
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]}]},
            "profiles[0].pluginConfig[1].name: the arguments of plugin 'NodeAffinity' are given twice",
        ),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 101}}
                        ]
                    }
                ]
            },
            "args.minCandidateNodesPercentage: must be between 0 and 100, not 101",
        ),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {"name": "NodeResourcesFit", "args": {"ignoredResourceGroups": ["a/b"]}}
                        ]
                    }
                ]
            },
            "args.ignoredResourceGroups[0]: must not contain '/'",
        ),
        ({"parallelism": 0}, "parallelism: must be between 1 and"),
        ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore: must be between 0 and 100"),
        (
            {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "PrioritySort"}]}}}]},
            "profiles[0]: profile 'default-scheduler' needs exactly one QueueSort plugin",
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "InterPodAffinity", "args": {}}]}]},
            "profiles[0].pluginConfig[0].name: arguments of plugin 'InterPodAffinity' are not supported",
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"colour": 1}}]}]},
            "profiles[0].pluginConfig[0].args.colour: is not supported",
        ),
    ],
)
def test_what_is_not_honoured_is_an_error_and_names_the_field(config, message):
    with pytest.raises(ConfigError) as caught:
        read_config(config)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("strategy", "field"),
    [
        ({"type": "Tetris"}, "type"),
        ({}, "type"),
        (
            {"type": "MostAllocated", "requestedToCapacityRatio": {"shape": [{"utilization": 1}]}},
            "requestedToCapacityRatio",
        ),
        ({"type": "RequestedToCapacityRatio"}, "requestedToCapacityRatio.shape"),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 5}, {"utilization": 5}]},
            },
            "requestedToCapacityRatio.shape",
        ),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 101}]},
            },
            "requestedToCapacityRatio.shape[0].utilization",
        ),
        ({"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1000}]}, "resources[0].weight"),
        ({"type": "LeastAllocated", "kind": "x"}, "kind"),
    ],
)
def test_broken_strategies(strategy, field):
    with pytest.raises(ConfigError) as caught:
        scoring_strategy(**strategy)
    assert str(caught.value).startswith(f"profiles[0].pluginConfig[0].args.scoringStrategy.{field}: ")
