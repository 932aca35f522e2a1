"""KubeSchedulerConfiguration to profiles."""

from typing import Any

import pytest

from moorage.configuration.read import ConfigError, read_config
from moorage.core.framework.points import Point, at_point
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.spread import SpreadConstraint
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from moorage.core.profile import PARTS, REGISTRY, default_profile


def one(**profile):
    (result,) = read_config({"profiles": [profile]}).profiles.values()
    return result


def plugin(profile, name):
    return next(p for p in profile.plugins if p.name == name)


def scoring_strategy(**strategy):
    args = {"scoringStrategy": strategy}
    return plugin(one(pluginConfig=[{"name": "NodeResourcesFit", "args": args}]), "NodeResourcesFit").strategy


def test_without_configuration_both_default_names_are_served():
    profiles = read_config(None).profiles
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
    assert list(read_config(config).profiles) == ["default-scheduler"]


def test_names_of_profiles():
    profiles = read_config({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}).profiles
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
    args: Any = {
        "name": "NodeResourcesBalancedAllocation",
        "args": {"resources": [{"name": "cpu", "weight": 1}]},
    }
    profile = one(plugins=off, pluginConfig=[args])
    assert "NodeResourcesBalancedAllocation" not in names(profile)
    args["args"]["resources"][0]["weight"] = 2
    with pytest.raises(ConfigError, match=r"resources\[0\].weight: must be 1, not 2"):
        one(plugins=off, pluginConfig=[args])


def test_empty_arguments_are_no_arguments():
    none: list[dict[str, Any]] = [{"args": {}}, {}, {"args": {"kind": "NodeAffinityArgs"}}]
    for empty in none:
        assert names(one(pluginConfig=[{"name": "NodeAffinity", **empty}])) == list(REGISTRY)


def test_plugins_can_be_removed():
    profile = one(
        plugins={"multiPoint": {"disabled": [{"name": "NodePorts"}, {"name": "PodTopologySpread"}]}}
    )
    assert "NodePorts" not in names(profile)
    profile = one(plugins={"multiPoint": {"disabled": [{"name": "NodeDeclaredFeatures"}]}})
    assert names(profile) == [name for name in REGISTRY if name != "NodeDeclaredFeatures"]


def test_arguments_about_other_pods():
    weights = {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True}
    config = [{"name": "InterPodAffinity", "args": weights}]
    assert plugin(one(pluginConfig=config), "InterPodAffinity") == InterPodAffinity(0, True)
    hard = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [hard]}
    spread = plugin(one(pluginConfig=[{"name": "PodTopologySpread", "args": args}]), "PodTopologySpread")
    assert spread.defaults.constraints == (SpreadConstraint("zone", 2),)
    assert not spread.defaults.system
    system = [{"name": "PodTopologySpread", "args": {"defaultingType": "System"}}]
    assert plugin(one(pluginConfig=system), "PodTopologySpread") == PodTopologySpread()


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
        (
            {"extenders": [{"urlPrefix": "x"}]},
            "extenders[0].urlPrefix: must be an http or https URL, not 'x'",
        ),
        ({"featureGates": {}}, "featureGates: is not supported"),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName: two profiles have the same name 'a'",
        ),
        ({"profiles": [{"policy": 1}]}, "profiles[0].policy: is not supported"),
        (
            {"profiles": [{"plugins": {"filtre": {"enabled": []}}}]},
            "profiles[0].plugins.filtre: is not supported",
        ),
        (
            {"profiles": [{"plugins": {"podGroupPostFilter": {"enabled": [{"name": "DefaultPreemption"}]}}}]},
            "profiles[0].plugins.podGroupPostFilter: is not supported: pod groups are not scheduled as groups",
        ),
        (
            {"profiles": [{"plugins": {"preFilter": {"disabled": [{"name": "NodePorts"}]}}}]},
            "profiles[0].plugins.preFilter: plugin 'NodePorts' is off here but on at filter",
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {}]},
            "profiles[1].schedulerName: must not be empty where there are several profiles",
        ),
        ({"profiles": [{"schedulerName": ""}]}, "profiles[0].schedulerName: must not be empty"),
        ({"podInitialBackoffSeconds": 20}, "podMaxBackoffSeconds: must be at least podInitialBackoffSeconds"),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: must be between 1 and"),
        ({"metricsBindAddress": "x"}, "metricsBindAddress: is gone since v1; use --metrics-listen"),
        ("parallelism: 4\nparallelism: 5\n", "the key 'parallelism' is there twice"),
        (
            {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "EBSLimits"}]}}}]},
            "plugin 'EBSLimits' is gone; NodeVolumeLimits does its work",
        ),
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
            "profiles[0].plugins.score.enabled[0].name: plugin 'NodeName' has no part in score",
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
            {"profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": {}}]}]},
            "profiles[0].pluginConfig[0].name: arguments of plugin 'DynamicResources' are not supported",
        ),
        (
            {
                "profiles": [
                    {"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]}
                ]
            },
            "args.hardPodAffinityWeight: must be between 0 and 100",
        ),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {"name": "PodTopologySpread", "args": {"defaultConstraints": [{"maxSkew": 1}]}}
                        ]
                    }
                ]
            },
            "args.defaultConstraints: must be empty where defaultingType is System",
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


# -- extension points ----------------------------------------------------------------------------


def at(profile, point) -> list[str]:
    """The plugins that have a part in a point, in their order there."""
    found = at_point(profile.plugins, profile.points, point)
    part: Any = PARTS[point]
    return [plugin.name for plugin in found if isinstance(plugin, part)]


def filters(**plugins):
    return at(one(plugins=plugins), Point.FILTER)


DEFAULT_FILTERS = at(default_profile(), Point.FILTER)


def test_a_plugin_may_be_off_at_single_points():
    off = {"disabled": [{"name": "NodePorts"}]}
    assert filters(filter=off, preFilter=off) == [name for name in DEFAULT_FILTERS if name != "NodePorts"]
    assert filters(filter=off) == [name for name in DEFAULT_FILTERS if name != "NodePorts"]
    profile = one(plugins={"filter": off})
    assert "NodePorts" in at(profile, Point.PRE_FILTER)
    profile = one(plugins={"postFilter": {"disabled": [{"name": "*"}]}})
    assert at(profile, Point.POST_FILTER) == []
    assert "DefaultPreemption" in names(profile)


def test_a_plugin_that_is_named_at_a_point_goes_first_there_and_is_not_there_twice():
    order = filters(filter={"enabled": [{"name": "NodeResourcesFit"}, {"name": "NodePorts"}]})
    rest = [name for name in DEFAULT_FILTERS if name not in ("NodeResourcesFit", "NodePorts")]
    assert order == [rest[0], "NodeResourcesFit", "NodePorts", *rest[1:]]
    assert rest[0] == "SupportedFeatures"


def test_a_plugin_may_be_on_at_single_points_only():
    multi = {"disabled": [{"name": "NodePorts"}]}
    both = {"enabled": [{"name": "NodePorts"}]}
    order = filters(multiPoint=multi, preFilter=both, filter=both)
    assert order == [*(name for name in DEFAULT_FILTERS if name != "NodePorts"), "NodePorts"]


def test_all_but_some_may_be_off_at_a_point():
    some = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeName"}]}
    assert filters(preFilter=some, filter=some) == ["SupportedFeatures", "NodeName"]


def test_a_plugin_may_score_only():
    multi = {"disabled": [{"name": "NodeAffinity"}]}
    both = {"enabled": [{"name": "NodeAffinity", "weight": 4}]}
    profile = one(plugins={"multiPoint": multi, "preScore": both, "score": both})
    assert profile.weight("NodeAffinity") == 4
    assert "NodeAffinity" not in at(profile, Point.FILTER)


def test_the_weight_at_score_goes_before_that_at_multi_point():
    score = {"enabled": [{"name": "NodeAffinity", "weight": 4}]}
    multi = {"enabled": [{"name": "NodeAffinity", "weight": 5}]}
    assert one(plugins={"multiPoint": multi, "score": score}).weight("NodeAffinity") == 4


def test_nothing_is_said_of_points_that_are_as_by_default():
    assert one(plugins={"score": {"disabled": [{"name": "NodeAffinity"}]}}).points == {}


# -- the rest ------------------------------------------------------------------------------------


def test_added_affinity():
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": term}],
    }
    profile = one(pluginConfig=[{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}])
    found = plugin(profile, "NodeAffinity")
    wanted = NodeSelectorTerm((Requirement("zone", Operator.IN, ("a",)),))
    assert found.added_required == NodeSelector((wanted,))
    assert [(each.weight, each.term) for each in found.added_preferred] == [(3, wanted)]
    term["matchExpressions"][0]["operator"] = "Exists"
    with pytest.raises(
        ConfigError, match=r"addedAffinity\.required.*nodeSelectorTerms\[0\]\.matchExpressions\[0\]"
    ):
        one(pluginConfig=[{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}])


def test_backoff():
    queue = read_config({"podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 30}).queue
    assert (queue.initial_backoff, queue.max_backoff) == (2.0, 30.0)
    queue = read_config({}).queue
    assert (queue.initial_backoff, queue.max_backoff) == (1.0, 10.0)


def test_what_has_no_meaning_here_is_named_with_the_option_that_is_meant():
    configuration = read_config(
        {
            "leaderElection": {"leaderElect": True},
            "clientConnection": {"kubeconfig": "/x"},
            "percentageOfNodesToScore": 50,
            "enableProfiling": False,
        }
    )
    text = "\n".join(configuration.warnings)
    assert len(configuration.warnings) == 3
    assert "leaderElection: is ignored: use --leader-elect" in text
    assert "clientConnection: is ignored: use --kubeconfig" in text
    assert "percentageOfNodesToScore: is ignored: every node is scored (docs/decisions/0002)" in text


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        read_config({"parallelism": 0, "profiles": [{"plugins": {"x": {}, "score": {"y": 1}}}]})
    assert [field for field, _ in caught.value.problems] == [
        "parallelism",
        "profiles[0].plugins.x",
        "profiles[0].plugins.score.y",
    ]


@pytest.mark.parametrize("args", [{"kind": "NodeNameArgs"}, {"apiVersion": "v1"}])
def test_arguments_must_be_of_their_plugin(args):
    with pytest.raises(
        ConfigError, match=r"profiles\[0\]\.pluginConfig\[0\]\.args\.(kind|apiVersion): must be"
    ):
        one(pluginConfig=[{"name": "NodeAffinity", "args": args}])


def test_no_candidates_at_all_are_no_arguments_of_preemption():
    none = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}
    with pytest.raises(ConfigError, match="cannot both be 0"):
        one(pluginConfig=[{"name": "DefaultPreemption", "args": none}])
