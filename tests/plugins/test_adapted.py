"""Users' functions as plugins of the core: what becomes of their answers, and of their faults."""

import logging
from typing import Any

import numpy as np
import pytest

import moorage
from moorage.core.engine import Engine, EngineConfig
from moorage.core.framework.interface import MAX_NODE_SCORE, Reads
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.events import NodeApplied
from moorage.core.profile import default_profile
from moorage.plugins.adapted import min_max
from moorage.plugins.declare import WAKERS, collecting
from moorage.plugins.wakers import wakes
from moorage.plugins.watch import Watch
from moorage.testing import Cluster, PluginFailed, node, pod
from tests.core.driving import Driven, conditions, placements
from tests.kit.models import make_node, make_pod
from tests.kit.user_plugins import user_plugins


@pytest.fixture(autouse=True)
def _apart():
    with collecting():
        yield


PRICE = "example.com/price"
NODES = tuple(node(name, labels={PRICE: price}) for name, price in (("a", "1"), ("b", "3"), ("c", "2.5")))


def scored(function, **options):
    """What the three nodes get from a function."""
    plugin = moorage.score(name="own", **options)(function)
    return Cluster(*NODES, plugins=plugin).explain(pod("p")).scores("own")


def filtered(function, **options):
    """The answer of a cluster of three nodes with that filter."""
    return Cluster(*NODES, plugins=moorage.filter(name="own", **options)(function)).explain(pod("p"))


# -- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda pod, nodes: nodes.label_number(PRICE, default=0), [0, 100, 75]),
        (lambda pod, nodes: -nodes.label_number(PRICE, default=0), [100, 0, 25]),
        (lambda pod, nodes: np.array([1, 2, 3]), [0, 50, 100]),
        (lambda pod, nodes: np.array([1, 2, 3], dtype=np.float32), [0, 50, 100]),
        (lambda pod, nodes: nodes.label(PRICE) == "3", [0, 100, 0]),
        (lambda pod, nodes: [5, 5, 5], [0, 0, 0]),
        (lambda pod, nodes: [0.1, 1, 2], [0, 47, 100]),
        (lambda pod, nodes: np.array([-1.7e308, 0, 1.7e308]), [0, 50, 100]),
        (lambda pod, nodes: np.array([0, 5e-324, 5e-324]), [0, 100, 100]),
    ],
)
def test_scores_are_brought_to_0_to_100(answer, expected):
    assert list(scored(answer).values()) == expected


def test_a_weight_counts():
    assert list(scored(lambda pod, nodes: [1, 2, 3], weight=7).values()) == [0, 350, 700]


def test_only_nodes_that_can_take_the_pod_are_compared():
    @moorage.filter
    def not_b(pod, nodes):
        return nodes.names != "b"

    @moorage.score
    def price(pod, nodes):
        return nodes.label_number(PRICE, default=0)

    answer = Cluster(*NODES, plugins=[not_b, price]).explain(pod("p"))
    assert answer.scores("price") == {"a": 0, "c": 100}


@pytest.mark.parametrize(
    ("answer", "feasible"),
    [
        (lambda pod, nodes: nodes.label(PRICE) == "3", ("b",)),
        (lambda pod, nodes: [True, False, True], ("a", "c")),
        (lambda pod, nodes: True, ("a", "b", "c")),
        (lambda pod, nodes: np.bool_(False), ()),
        (lambda pod, nodes: (nodes.names == "a", "not a"), ("a",)),
        (lambda pod, nodes: (False, "never"), ()),
    ],
)
def test_a_filter_decides_who_is_in(answer, feasible):
    assert filtered(answer).feasible == feasible


def test_the_reason_is_the_answer_s_or_the_declared_one_or_names_the_plugin():
    assert filtered(lambda pod, nodes: False).why_not("a") == "own: node(s) were refused by plugin own"
    assert filtered(lambda pod, nodes: False, reason="too dear").why_not("a") == "own: too dear"
    answer = filtered(lambda pod, nodes: (False, f"no room for {pod.name}"), reason="too dear")
    assert answer.why_not("a") == "own: no room for p"
    assert answer.message.startswith("0/3 nodes are available: 3 no room for p.")


def test_preemption_is_tried_only_where_it_may_help():
    def never(pod, nodes):
        return False

    no_victims, not_helpful = "No preemption victims found", "Preemption is not helpful"
    assert no_victims in filtered(never).message
    with collecting():
        assert not_helpful in filtered(lambda pod, nodes: False, preemption_helps=False).message


@pytest.mark.parametrize("helps", [True, False])
def test_preemption_heeds_the_filter(helps):
    """On trial, nodes are judged one by one, or all at once where pods cannot matter: with the same result."""

    @moorage.filter(preemption_helps=helps)
    def only_b(pod, nodes):
        return nodes.names == "b"

    nodes = [node(name, cpu="1") for name in "abc"]
    lesser = [pod(f"on-{name}", cpu="1", node=name, priority=1) for name in "abc"]
    answer = Cluster(*nodes, *lesser, plugins=only_b).explain(pod("p", cpu="1", priority=9))
    preemption = answer.decision.preemption
    assert preemption is not None
    assert (preemption.node, preemption.victims) == ("b", ("default/on-b",))
    assert dict(preemption.candidates) == {"b": ("default/on-b",)}


@pytest.mark.parametrize(
    ("answer", "feasible", "message"),
    [
        (None, ("a", "b", "c"), ""),
        ({"a", "c", "unknown"}, ("a", "c"), ""),
        (["b"], ("b",), ""),
        ("not today", (), "0/3 nodes are available: not today."),
        (frozenset(), (), "node(s) didn't satisfy plugin own"),
    ],
)
def test_a_pre_filter_judges_the_pod(answer, feasible, message):
    plugin = moorage.pre_filter(name="own")(lambda pod, nodes: answer)
    found = Cluster(*NODES, plugins=plugin).explain(pod("p"))
    assert found.feasible == feasible
    assert message in found.message


def test_a_class_keeps_its_state_and_gets_its_arguments():
    @moorage.plugin(name="own")
    class Own:
        def __init__(self, *, least="a"):
            self.least = least

        def filter(self, pod, nodes):
            return nodes.names >= self.least

        def score(self, pod, nodes):
            return nodes.names == self.least

    answer = Cluster(*NODES, plugins=Own).explain(pod("p"))
    assert answer.scores("own") == {"a": 100, "b": 0, "c": 0}
    config = {"profiles": [{"pluginConfig": [{"name": "own", "args": {"least": "b"}}]}]}
    answer = Cluster(*NODES, plugins=Own, config=config).explain(pod("p"))
    assert answer.scores("own") == {"b": 100, "c": 0}


# -- faults --------------------------------------------------------------------------------------


def raising():
    """A function that raises, of which there is one for each test."""

    def raises(pod, nodes):
        return {"other": 1}["key"]

    return raises


def _exits(pod, nodes):
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda pod, nodes: None, "gave None: a return is missing"),
        (lambda pod, nodes: [1, 2], "must give 3 numbers, one a node, not 2"),
        (lambda pod, nodes: np.zeros((3, 1)), r"must give 3 numbers, one a node, not shape \(3, 1\)"),
        (lambda pod, nodes: 5, "must give 3 numbers, not int 5"),
        (lambda pod, nodes: ["1", "2", "3"], "must give numbers, not <U1"),
        (lambda pod, nodes: [1, [2], 3], "must give 3 numbers"),
        (lambda pod, nodes: np.array([1j, 2, 3]), "must give numbers, not complex128"),
        (lambda pod, nodes: [1, np.nan, 2], "gave nan for node b"),
        (lambda pod, nodes: 1 / np.zeros(3), "gave inf for node a, b, c"),
        (lambda pod, nodes: nodes.label(PRICE), "must give 3 numbers, not Labels"),
        (raising(), r"raised KeyError: 'key' \(.*test_adapted.py:\d+, in raises\)"),
        (_exits, "raised SystemExit: 3"),
    ],
)
def test_a_score_that_breaks_its_contract_is_named(answer, text):
    name = answer.__name__
    with pytest.raises(PluginFailed, match=rf'running Score plugin "own": {name}\(\) {text}'):
        scored(answer)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda pod, nodes: None, "gave None: a return is missing"),
        (lambda pod, nodes: np.ones(4, dtype=bool), "must give 3 booleans, one a node, not 4"),
        (lambda pod, nodes: nodes.label_number(PRICE, default=0), "must give booleans, not float64"),
        (lambda pod, nodes: (True, " "), "gave an empty reason"),
        (lambda pod, nodes: "no", "must give 3 booleans, not str 'no'"),
        (raising(), "raised KeyError"),
    ],
)
def test_a_filter_that_breaks_its_contract_is_named(answer, text):
    with pytest.raises(PluginFailed, match=rf'running "own" filter plugin: {answer.__name__}\(\) {text}'):
        filtered(answer)


@pytest.mark.parametrize(
    ("answer", "text"), [(True, "must give None, a reason"), ([1], "must give None"), (" ", "empty reason")]
)
def test_a_pre_filter_that_breaks_its_contract_is_named(answer, text):
    plugin = moorage.pre_filter(name="own")(lambda pod, nodes: answer)
    with pytest.raises(PluginFailed, match=f'PreFilter plugin "own": <lambda>.. .*{text}'):
        Cluster(*NODES, plugins=plugin).explain(pod("p"))


def test_one_pod_s_fault_is_not_the_others():
    @moorage.filter
    def picky(pod, nodes):
        if pod.name == "odd":
            raise RuntimeError("boom")
        return True

    driven = Driven(*user_plugins(picky).plugins)
    odd, even = make_pod("odd"), make_pod("even")
    driven.tell(make_node("a"), odd, even)
    told = driven.run()
    assert "even" in placements(told)
    (reason, message) = next(c[1:] for c in conditions(told) if c[0] == "odd")
    assert reason == "SchedulerError"
    assert 'running "picky" filter plugin: picky() raised RuntimeError: boom' in message
    assert driven.place_of(odd) == "backoff"


# -- the clock -----------------------------------------------------------------------------------


class Ticks:
    """A clock that a function under test moves on."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def decide_times(plugin, watch, times):
    """Let an engine with that plugin decide so many pods."""
    profile = default_profile(additions=user_plugins(plugin, watch=watch))
    engine = Engine(EngineConfig(profiles={"moorage": profile}))
    engine.handle(NodeApplied(make_node("a")), 0.0)
    return [engine.evaluate(make_pod(f"p{number}"), 0.0) for number in range(times)]


def test_a_slow_call_is_told_by_name_and_not_too_often(caplog):
    clock = Ticks()

    @moorage.score
    def dawdling(pod, nodes):
        clock.now += 0.06
        return [0.0]

    caplog.set_level(logging.WARNING)
    decide_times(dawdling, Watch(clock), 5)
    (record,) = caplog.records
    assert "Plugin dawdling: dawdling() took 60 ms" in record.getMessage()


def test_what_was_not_told_is_told_later(caplog):
    clock = Ticks()

    @moorage.score
    def dawdling(pod, nodes):
        clock.now += 25.0
        return [0.0]

    caplog.set_level(logging.WARNING)
    decide_times(dawdling, Watch(clock), 5)
    assert "(2 more times since it was last told)" in caplog.records[1].getMessage()


def test_a_fast_one_is_not_told(caplog):
    clock = Ticks()

    @moorage.score
    def quick(pod, nodes):
        clock.now += 0.04
        return [0.0]

    caplog.set_level(logging.WARNING)
    assert [d.error for d in decide_times(quick, Watch(clock), 3)] == [""] * 3
    assert caplog.records == []


def test_a_failure_is_told_with_its_traceback_once(caplog):
    decide_times(moorage.score(raising()), Watch(Ticks()), 5)
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "Plugin raises: raises() raised KeyError" in record.getMessage()
    assert record.exc_info is not None


# -- what is kept --------------------------------------------------------------------------------


def calls_for_three_alike_pods(*, pure):
    calls = []

    @moorage.score(pure=pure)
    def counted(pod, nodes):
        calls.append(len(nodes))
        return nodes.free("cpu")

    driven = Driven(*user_plugins(counted).plugins)
    spec = make_pod("template", cpu=1000).spec
    driven.tell(*(make_node(name) for name in "abc"), *(make_pod(f"p{n}", spec=spec) for n in range(3)))
    assert len(placements(driven.run())) == 3
    return calls


def test_only_pure_answers_are_kept_and_they_follow_what_pods_ask_for():
    assert calls_for_three_alike_pods(pure=False) == [3, 3, 3]
    assert calls_for_three_alike_pods(pure=True) == [3, 1, 1], (
        "asked again about the node that was taken only"
    )


def test_a_pure_plugin_may_not_read_the_pod_s_labels():
    @moorage.filter(pure=True)
    def by_label(pod, nodes):
        return nodes.label("gen") == pod.labels["gen"]

    with pytest.raises(PluginFailed, match=r"by_label\(\) raised AttributeError: pod.labels is not for"):
        Cluster(*NODES, plugins=by_label).explain(pod("p"))


def test_what_plugins_read_is_everything_unless_pure():
    def some(pod, nodes):
        return [0.0] * len(nodes)

    impure: Any
    pure: Any
    (impure,) = user_plugins(moorage.score(some)).plugins
    (pure,) = user_plugins(moorage.score(name="x", pure=True)(lambda pod, nodes: [])).plugins
    assert impure.reads & Reads.CLUSTER
    assert not pure.reads & Reads.CLUSTER


# -- waking --------------------------------------------------------------------------------------


def test_any_event_wakes_by_default_and_else_what_is_named():
    assert {w.resource for w in wakes(())} == set(Resource)
    assert wakes(("node-labels",)) == (
        WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        WakesOn(Resource.PENDING_POD, ~Action(0)),
    )
    for word in WAKERS:
        assert len(wakes((word,))) >= 2


def test_a_rejected_pod_is_woken_by_what_it_waits_for():
    @moorage.filter(wakes_on=["node-labels"])
    def labelled(pod, nodes):
        return nodes.has_label("ready-for-it")

    driven = Driven(*user_plugins(labelled).plugins)
    waiting = make_pod("p")
    driven.tell(make_node("a"), waiting)
    assert placements(driven.run()) == {}
    driven.tell(make_node("a", labels={"ready-for-it": "yes"}))
    assert placements(driven.later(20.0)) == {"p": "a"}


def test_a_filter_with_a_refresh_is_asked_again_after_it():
    @moorage.plugin(refresh_every=15)
    class Fresh:
        def filter(self, pod, nodes):
            return True

        async def refresh(self):
            pass

    profile = default_profile(additions=user_plugins(Fresh))
    engine = Engine(EngineConfig(profiles={"moorage": profile}))
    engine.handle(NodeApplied(make_node("a")), 100.0)
    assert engine.runners["moorage"].changes_at(make_pod("p")) == 115.0


def test_min_max_of_nothing():
    assert min_max(np.zeros(0)).shape == (0,)
    assert min_max(np.array([3.0])).tolist() == [0]
    assert min_max(np.linspace(-5, 5, 1000)).max() == MAX_NODE_SCORE
