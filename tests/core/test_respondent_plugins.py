"""What users' plugins change in an extender's answers, beside policies and beside the default plugins."""

import pytest

import moorage
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.decision import Rejection
from moorage.core.model.events import NodeApplied, PolicyApplied
from moorage.core.model.extender import Filtered, NoAnswer, Prioritized
from moorage.core.model.instructions import Bind
from moorage.core.model.policy import NodeRules, Scoring
from moorage.core.profile import NO_ADDITIONS, extender_profile
from moorage.core.respondent import Respondent
from moorage.plugins.declare import collecting
from tests.kit.models import make_node, make_pod
from tests.kit.policy_builders import labelled, make_policy
from tests.kit.user_plugins import user_plugins

NOW = 1000.0
NAMES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def _apart():
    with collecting():
        yield


@pytest.fixture(params=[False, True], ids=["policies only", "full"])
def full(request):
    return request.param


def asked(full, *things, policies=(), cpu=(4000, 4000, 4000)):
    """A respondent about nodes a, b and c, which are of generation 1, 2 and 3 and in this order ever cheaper."""
    additions = user_plugins(*things) if things else NO_ADDITIONS
    profile = extender_profile(full=full, additions=additions)
    engine = Engine(EngineConfig(profiles={profile.scheduler_name: profile}))
    for index, (name, most) in enumerate(zip(NAMES, cpu, strict=True)):
        labels = {"gen": str(index + 1), "price": str(9 - 3 * index)}
        engine.handle(NodeApplied(make_node(name, cpu=most, labels=labels)), NOW)
    for policy in policies:
        engine.handle(PolicyApplied(policy), NOW)
    return Respondent(engine)


def web(**fields):
    return make_pod("web", scheduler_name="default-scheduler", cpu=100, **fields)


def generations(**options):
    @moorage.filter(reason="wrong generation", **options)
    def generation(pod, nodes):
        return nodes.label("gen") == pod.labels.get("gen", "1")

    return generation


def cheap(**options):
    @moorage.score(**options)
    def cheaper(pod, nodes):
        return -nodes.label_number("price", default=0)

    return cheaper


def test_a_filter_takes_out_nodes_with_its_own_words(full):
    assert asked(full).filter(web(), NAMES, NOW).passed == tuple(NAMES)
    with_plugin = asked(full, generations())
    assert with_plugin.filter(web(), NAMES, NOW) == Filtered(("a",), dict.fromkeys("bc", "wrong generation"))
    assert with_plugin.filter(web(labels={"gen": "3"}), NAMES, NOW).passed == ("c",)


def test_what_eviction_cannot_help_is_unresolvable(full):
    filtering = generations(preemption_helps=False)
    answer = asked(full, filtering).filter(web(labels={"gen": "2"}), NAMES, NOW)
    assert answer == Filtered(("b",), {}, dict.fromkeys("ac", "wrong generation"))


def test_both_it_and_policies_must_agree(full):
    policy = make_policy("p", nodes=NodeRules(selector=labelled({"gen": "2"})))
    respondent = asked(full, generations(), policies=[policy])
    assert respondent.filter(web(labels={"gen": "2"}), NAMES, NOW).passed == ("b",)
    assert respondent.filter(web(labels={"gen": "3"}), NAMES, NOW).passed == ()


def test_a_score_decides_which_node_is_best():
    assert asked(False).prioritize(web(), NAMES, NOW) == Prioritized((("a", 0), ("b", 0), ("c", 0)))
    answer = asked(False, cheap()).prioritize(web(), NAMES, NOW)
    assert answer == Prioritized((("a", 0), ("b", 5), ("c", 10)))


def test_a_score_counts_beside_the_default_plugins_by_its_weight():
    without = dict(asked(True).prioritize(web(), NAMES, NOW).scores)
    assert len(set(without.values())) == 1, "else the plugin need not be why"
    light = dict(asked(True, cheap(weight=1)).prioritize(web(), NAMES, NOW).scores)
    heavy = dict(asked(True, cheap(weight=1000)).prioritize(web(), NAMES, NOW).scores)
    assert light["a"] < light["c"]
    assert heavy == {"a": 0, "b": 5, "c": 10}


def test_it_is_asked_before_a_binding_is_booked(full):
    respondent = asked(full, generations())
    assert respondent.claim(web(), "b", NOW) == Rejection("generation", ("wrong generation",))
    assert isinstance(respondent.claim(web(), "a", NOW), Bind)


def test_one_that_raises_is_no_answer_and_is_named(full):
    @moorage.filter
    def broken(pod, nodes):
        raise ValueError("no such rack")

    answer = asked(full, broken).filter(web(), NAMES, NOW)
    assert isinstance(answer, NoAnswer)
    assert "broken" in answer.message
    assert "no such rack" in answer.message


def test_a_policy_weighs_it_like_any_other():
    def best(**weights):
        policies = [make_policy("p", scoring=Scoring(weights=weights))] if weights else []
        plugins = (
            cheap(),
            moorage.score(name="dearer")(lambda pod, nodes: nodes.label_number("price", default=0)),
        )
        answer = asked(False, *plugins, policies=policies).prioritize(web(), NAMES, NOW)
        return max(answer.scores, key=lambda pair: pair[1])

    assert best(cheaper=3) == ("c", 8)
    assert best(dearer=4) == ("a", 8)
