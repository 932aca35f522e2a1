"""How the plugins' answers are put together."""

from typing import Any

import numpy as np
import pytest

from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Narrowed, Reads, Reason, Rejected, Skip, Verdict
from moorage.core.framework.runner import Runner
from moorage.core.model.decision import Code, Rejection
from moorage.core.plugins.node_ports import NodePorts
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.plugins.scheduling_gates import SchedulingGates
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import explode
from tests.kit.models import make_node, make_pod
from tests.kit.strategies import columns_of

POD = make_pod("web", cpu=400)


class Saying:
    """PreFilter's answer is given; Filter refuses the nodes named, or whatever ``filters`` says."""

    def __init__(
        self, name: str, answer: Any = "state", refuses: str = "", reads: Reads = Reads.CLUSTER
    ) -> None:
        self.name: Any = name
        self.reads: Any = reads
        self.answer = answer
        self.refuses = refuses
        self.asked = 0
        self.states: list[Any] = []

    def pre_filter(self, pod: Any, snapshot: Any) -> Any:
        """The answer given, or what it returns."""
        self.asked += 1
        return self.answer() if callable(self.answer) else self.answer

    def filter(self, state: Any, nodes: Any) -> Verdict:
        """By name."""
        self.states.append(state)
        names = [
            None if row >= len(nodes.snapshot.nodes) else nodes.snapshot.nodes[row] for row in nodes.rows
        ]
        failed = np.array([node is not None and node.name in self.refuses for node in names], dtype=np.bool_)
        return Verdict((Reason(f"{self.name} says no"),), failed[None, :])

    def wakes_on(self) -> Any:
        """Not asked here."""
        return ()


class Counting(Saying):
    """A plugin whose state is (pods added, pods removed)."""

    def with_pods(self, state: Any, row: int, added: Any, removed: Any, snapshot: Any) -> Any:
        """The names, and how many pods the snapshot shows there by now."""
        return [p.name for p in added], [p.name for p in removed], len(snapshot.pods[row])


def runner_of(*plugins, nodes=("a", "b", "c")):
    """These plugins on nodes of one cpu."""
    snapshot = Snapshot()
    for name in nodes:
        snapshot.set_node(make_node(name, cpu=1000))
    return Runner((PrioritySort(), *plugins), {}, snapshot)


def feasible(runner, pod=POD, nominated=None):
    """The names of the feasible nodes."""
    return "".join(
        runner.snapshot.name_at(int(r)) for r in np.flatnonzero(runner.screen(pod, nominated or {}).feasible)
    )


# -- PreEnqueue ------------------------------------------------------------------------------------


def test_the_first_to_object_keeps_the_pod_out():
    runner = runner_of(SchedulingGates())
    assert runner.pre_enqueue(POD) is None
    expected = Rejection("SchedulingGates", ("waiting for scheduling gates: [x]",), Code.UNRESOLVABLE)
    assert runner.pre_enqueue(make_pod("web", gates=("x",))) == expected


def test_one_that_raises_keeps_the_pod_out_and_says_why():
    class Gate:
        name: Any = "Gate"

        def pre_enqueue(self, pod):
            explode()

        def wakes_on(self):
            return ()

    text = 'running PreEnqueue plugin "Gate": RuntimeError: boom'
    assert runner_of(Gate()).pre_enqueue(POD) == Rejection("Gate", (text,), Code.UNRESOLVABLE)


# -- PreFilter -------------------------------------------------------------------------------------


def test_those_that_skip_are_not_asked_again():
    skipping, other = Saying("Skipping", Skip.SKIP, "abc"), Saying("Other", refuses="a")
    assert feasible(runner_of(skipping, other)) == "bc"
    assert skipping.states == []


def test_narrowed_names_are_intersected():
    one = Saying("One", Narrowed("state", frozenset("ab")))
    two = Saying("Two", Narrowed("state", frozenset(("b", "c", "ghost"))))
    runner = runner_of(two, one)
    pre = runner.pre_filter(POD)
    assert (pre.names, pre.narrowed_by, pre.rejection) == (frozenset("b"), ("One", "Two"), None)
    assert feasible(runner) == "b"
    assert set(runner.diagnose(POD, pre, {}).rejections()) == {"a", "c"}


def test_one_that_narrows_to_nothing_rejects_the_pod():
    pre = runner_of(Saying("One", Narrowed("state", frozenset()))).pre_filter(POD)
    assert pre.rejection == Rejection("One", ("node(s) didn't satisfy plugin One",), Code.UNRESOLVABLE)
    assert pre.rejectors == {"One"}


def test_several_that_leave_nothing_reject_the_pod_together_and_later_ones_are_not_asked():
    late = Saying("Late")
    plugins = Saying("Two", Narrowed("s", frozenset("a"))), Saying("One", Narrowed("s", frozenset("b"))), late
    pre = runner_of(*plugins).pre_filter(POD)
    text = "node(s) didn't satisfy plugin(s) [One Two] simultaneously"
    assert pre.rejection == Rejection("One, Two", (text,), Code.UNRESOLVABLE)
    assert (pre.rejectors, late.asked) == ({"One", "Two"}, 0)


def test_a_rejection_for_good_ends_prefilter():
    late = Saying("Late")
    pre = runner_of(Saying("No", Rejected(("never",), Code.UNRESOLVABLE)), late).pre_filter(POD)
    assert (pre.rejection, late.asked) == (Rejection("No", ("never",), Code.UNRESOLVABLE), 0)


def test_a_rejection_that_eviction_may_lift_leaves_all_states_for_the_dry_runs():
    """kube-scheduler goes on with PreFilter after an Unschedulable status, and keeps the last of them."""
    plugins = (
        Saying("No", Rejected(("full",), state="dry")),
        Saying("Late"),
        Saying("Nor", Rejected(("too",))),
    )
    runner = runner_of(*plugins)
    pre = runner.pre_filter(POD)
    assert pre.rejection == Rejection("Nor", ("too",), Code.UNSCHEDULABLE)
    assert [(plugin.name, state) for plugin, state in pre.active] == [("No", "dry"), ("Late", "state")]
    assert feasible(runner) == ""


def test_what_prefilter_raises_names_the_plugin():
    with pytest.raises(PluginError, match=r'^running PreFilter plugin "Odd": RuntimeError: boom$'):
        runner_of(Saying("Odd", explode)).pre_filter(POD)


# -- Filter ----------------------------------------------------------------------------------------


def test_a_node_must_please_everybody():
    plugins = Saying("A", refuses="a"), Saying("B", refuses="b", reads=Reads.NODE)
    assert feasible(runner_of(*plugins)) == "c"


def test_alike_pods_share_prefilter_but_for_plugins_that_read_the_cluster():
    plugin, other = Saying("Node", reads=Reads.NODE), Saying("Cluster")
    runner = runner_of(plugin)
    assert (feasible(runner), feasible(runner), plugin.asked) == ("abc", "abc", 1)
    runner = runner_of(plugin, other)
    assert (feasible(runner), feasible(runner), plugin.asked, other.asked) == ("abc", "abc", 2, 2)


def test_the_first_plugin_to_refuse_owns_the_node():
    runner = runner_of(Saying("One", refuses="a"), Saying("Two", refuses="ab"))
    diagnosis = runner.diagnose(POD, runner.pre_filter(POD), {})
    assert diagnosis.message() == "0/3 nodes are available: 1 One says no, 1 Two says no."


def test_a_rejected_pod_s_nodes_are_not_looked_at():
    plugin = Saying("Late")
    runner = runner_of(plugin, Saying("No", Rejected(("full",))))
    assert runner.diagnose(POD, runner.pre_filter(POD), {}).verdicts == []
    assert plugin.states == []


# -- nominated pods and dry runs -------------------------------------------------------------------


def test_a_node_must_fit_with_the_nominated_pods_and_without():
    ahead = make_pod("ahead", cpu=700)
    runner = runner_of(NodeResourcesFit())
    before = columns_of(runner.snapshot)
    assert feasible(runner, nominated={1: [ahead]}) == "ac"
    assert columns_of(runner.snapshot) == before
    pre = runner.pre_filter(POD)
    diagnosis = runner.diagnose(POD, pre, {1: [ahead]})
    assert diagnosis.rejections() == {"b": Rejection("NodeResourcesFit", ("Insufficient cpu",))}


def test_nominated_pods_change_nothing_on_nodes_that_are_left_out():
    runner = runner_of(Saying("One", Narrowed("state", frozenset("a"))), NodeResourcesFit())
    diagnosis = runner.diagnose(POD, runner.pre_filter(POD), {1: [make_pod("ahead", cpu=9000)]})
    assert diagnosis.overrides == {}


def test_a_plugin_that_counts_pods_is_told_of_those_added_and_removed():
    plugin = Counting("Counting")
    runner = runner_of(plugin, NodePorts())
    there = make_pod("there")
    runner.snapshot.add_pod(0, there)
    pre = runner.pre_filter(POD)
    assert runner.judge_with(pre, 0, [make_pod("new"), make_pod("newer")], [there]) is None
    assert plugin.states == [(["new", "newer"], ["there"], 2)]


@pytest.mark.parametrize("point", ["filter", "with_pods"])
def test_the_snapshot_is_as_before_even_if_a_plugin_raises(point):
    plugin = Counting("Counting")
    runner = runner_of(plugin)
    there = make_pod("there", cpu=100, ports=[80])
    runner.snapshot.add_pod(0, there)
    runner.snapshot.add_pod(0, make_pod("later"))
    before, arrivals = columns_of(runner.snapshot), list(runner.snapshot.pods[0])
    pre = runner.pre_filter(POD)
    setattr(plugin, point, explode)
    with pytest.raises(PluginError, match="boom"):
        runner.judge_with(pre, 0, [make_pod("new", cpu=5, ports=[81])], [there])
    assert columns_of(runner.snapshot) == before
    assert list(runner.snapshot.pods[0]) == arrivals
    assert list(runner.snapshot.host_ports.rows_in_conflict(there.spec.host_ports)) == [0]


def test_the_weights_of_scorers():
    runner = Runner((PrioritySort(), NodeResourcesFit()), {"NodeResourcesFit": 3}, Snapshot())
    assert [(plugin.name, weight) for plugin, weight in runner.scorers] == [("NodeResourcesFit", 3)]
    assert Runner((PrioritySort(), NodeResourcesFit()), {"NodeResourcesFit": 0}, Snapshot()).scorers == []
    assert [weight for _, weight in Runner((PrioritySort(), NodeResourcesFit()), {}, Snapshot()).scorers] == [
        1
    ]


@pytest.mark.parametrize("plugins", [(), (Counting("counting"),)])
def test_many_nodes_with_nominated_pods_are_judged_as_one_by_one(plugins):
    """At once where the plugins can, else one after the other."""
    runner = Runner((*default_profile().plugins, *plugins), {}, Snapshot())
    for number in range(8):
        runner.snapshot.set_node(make_node(f"n{number}", cpu=1000 * (number % 2), pods=1 + number % 3))
    nominated = {row: [make_pod(f"promised{row}", cpu=row * 200)] for row in range(7)}
    pod = make_pod("web", cpu=100)
    pre = runner.pre_filter(pod)
    among = np.arange(runner.snapshot.capacity) != 3
    judged = {row: runner.judge_with(pre, row, pods) for row, pods in nominated.items() if among[row]}
    expected = {row: rejection for row, rejection in judged.items() if rejection is not None}
    assert 2 < len(expected) < 6
    assert runner.judge_nominated(pre, nominated, among) == expected


# -- who chooses last, and who changes with time -------------------------------------------------


class Choosing(Saying):
    """Accepts the first of the nodes it is asked about, and notes how many these are."""

    late = True
    last = True

    def filter(self, state: Any, nodes: Any) -> Verdict:
        """The first by row."""
        self.states.append(len(nodes))
        failed = np.ones((1, len(nodes)), dtype=np.bool_)
        failed[0, :1] = False
        return Verdict((Reason(f"{self.name} prefers another"),), failed)


def running(snapshot: Snapshot, *plugins: Any) -> Runner:
    """A runner of these plugins."""
    return Runner((PrioritySort(), *plugins), {}, snapshot)


def small_nodes(*names: str) -> Snapshot:
    snapshot = Snapshot()
    for name in names:
        snapshot.set_node(make_node(name, cpu=1000))
    return snapshot


def test_who_chooses_among_what_is_left_is_asked_last_whatever_its_place():
    choosing = Choosing("Choosing")
    runner = running(small_nodes("a", "b", "c"), choosing, Saying("Other", refuses="a"))
    screened = runner.screen(POD, {})
    assert np.flatnonzero(screened.feasible).tolist() == [1]
    assert choosing.states == [2]
    told = runner.diagnose(POD, screened.pre, {}).rejections()
    assert {name: rejection.plugin for name, rejection in told.items()} == {"a": "Other", "c": "Choosing"}


def test_who_chooses_last_does_not_choose_a_node_that_nominated_pods_take():
    choosing = Choosing("Choosing")
    runner = running(small_nodes("a", "b", "c"), choosing, NodeResourcesFit())
    nominated = {0: [make_pod("first", cpu=700)]}
    screened = runner.screen(POD, nominated)
    assert np.flatnonzero(screened.feasible).tolist() == [1]
    told = runner.diagnose(POD, screened.pre, nominated).rejections()
    assert {name: rejection.plugin for name, rejection in told.items()} == {
        "a": "NodeResourcesFit",
        "c": "Choosing",
    }


class Timed(Saying):
    """Changes its mind at a given time."""

    def changes_at(self, pod: Any, snapshot: Any) -> Any:
        """What PreFilter would say."""
        return self.answer() if callable(self.answer) else self.answer


@pytest.mark.parametrize(
    ("times", "first"), [((), None), ((None,), None), ((7.0,), 7.0), ((9.0, None, 3.0), 3.0)]
)
def test_the_first_plugin_to_change_its_mind_counts(times, first):
    plugins = [Timed(f"T{i}", time) for i, time in enumerate(times)]
    assert running(Snapshot(), Saying("Plain"), *plugins).changes_at(POD) == first


def test_a_plugin_that_raises_when_asked_for_the_time_is_named():
    runner = running(Snapshot(), Timed("Timed", explode))
    with pytest.raises(PluginError, match='running ChangesAt plugin "Timed"'):
        runner.changes_at(POD)
