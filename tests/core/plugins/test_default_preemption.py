"""DefaultPreemption: on which node the fewest and least important pods go, in kube-scheduler's order and words.

The rules are those of kube-scheduler v1.37: ``pickOneNodeForPreemption``, ``SelectVictimsOnNode``,
``FilterVictimsWithPDBViolation`` and ``PodEligibleToPreemptOthers``.
"""

from typing import Any

import numpy as np
import pytest

from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Reads, Reason, Rejected, Verdict
from moorage.core.framework.post_filter import Candidate, FailedAttempt
from moorage.core.framework.preemption_guards import PROTECTED, Guards
from moorage.core.framework.runner import Runner
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.policy import PreemptionRules
from moorage.core.model.selector import LabelSelector
from moorage.core.plugins.default_preemption import DefaultPreemption, best_candidates
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import profile_with
from tests.kit.models import label_in, make_node, make_pod, taint
from tests.kit.strategies import columns_of

ALL_GUARDED = LabelSelector((label_in("guard", "yes"),))


class Cluster:
    """Nodes of 1,000 milli-CPU unless told otherwise, with pods on them, and questions to the plugin."""

    def __init__(self, *nodes: Any, plugins: Any = ()) -> None:
        self.snapshot = Snapshot()
        for node in nodes or ("a",):
            self.snapshot.set_node(make_node(node, cpu=1000) if isinstance(node, str) else node)
        self.runner = Runner(profile_with(*plugins).plugins, {}, self.snapshot)
        self.plugin = DefaultPreemption()

    def add(self, name: str, cpu: int, priority: int = 0, node: str = "a", **fields: Any) -> Any:
        """A pod on a node, which started at 0 unless told otherwise."""
        pod = make_pod(name, cpu=cpu, priority=priority, node=node, **{"started": 0.0, **fields})
        self.snapshot.add_pod(self.snapshot.row_of(node) or 0, pod)
        return pod

    def ask(self, pod: Any = None, *, ahead: Any = (), budgets: Any = (), awaited: Any = ()) -> Any:
        """What is to be done for the pod; by default one of priority 10 that asks for a whole node."""
        pod = make_pod("web", cpu=1000, priority=10) if pod is None else pod
        nominated = {0: list(ahead)} if ahead else {}
        pre = self.runner.pre_filter(pod)
        diagnosis = self.runner.diagnose(pod, pre, nominated)
        attempt = FailedAttempt(self.runner, pre, diagnosis, nominated, budgets, frozenset(awaited))
        return self.plugin.post_filter(pod, attempt)

    def victims(self, *args: Any, **fields: Any) -> str:
        """The names of the victims, in the order of the answer."""
        chosen = self.ask(*args, **fields).chosen
        return "" if chosen is None else " ".join(pod.name for pod in chosen.victims)

    def state(self) -> Any:
        """All that a question could have changed."""
        ports = {
            key: {r: dict(c) for r, c in rows.items()}
            for key, rows in self.snapshot.host_ports._taken.items()
        }
        return columns_of(self.snapshot), [list(pods) for pods in self.snapshot.pods], ports


# -- who has to go ---------------------------------------------------------------------------------


def test_only_pods_of_lower_priority_go():
    cluster = Cluster()
    cluster.add("equal", 300, priority=10)
    cluster.add("higher", 300, priority=11)
    cluster.add("lower", 300, priority=9)
    assert cluster.victims(make_pod("web", cpu=400, priority=10)) == "lower"
    assert cluster.ask(make_pod("web", cpu=500, priority=10)).chosen is None


def test_nobody_goes_in_vain():
    """All go at first, then each that still fits is spared, the most important first."""
    cluster = Cluster()
    cluster.add("low", 400, priority=1)
    cluster.add("high", 300, priority=5)
    cluster.add("middle", 300, priority=3)
    assert cluster.victims(make_pod("web", cpu=300, priority=10)) == "low"
    assert cluster.victims(make_pod("web", cpu=500, priority=10)) == "middle low"


def test_sparing_is_greedy():
    """The important one is spared although two others must go for it."""
    cluster = Cluster()
    for name, cpu, priority in (("large", 500, 5), ("small", 250, 1), ("small-too", 250, 1)):
        cluster.add(name, cpu, priority)
    assert cluster.victims(make_pod("web", cpu=500, priority=10)) == "small small-too"


def test_among_equals_the_longest_running_are_spared():
    """A pod that has not started yet is the least important of them."""
    cluster = Cluster()
    for name, started in (("young", 50.0), ("old", 10.0), ("not-yet", None), ("middle", 20.0)):
        cluster.add(name, 250, started=started)
    assert cluster.victims(make_pod("web", cpu=250, priority=10)) == "not-yet"
    assert cluster.victims(make_pod("web", cpu=750, priority=10)) == "middle young not-yet"


def test_dying_pods_can_be_victims():
    """They take room until they are gone; whether they are asked again is not the plugin's business."""
    cluster = Cluster()
    cluster.add("dying", 1000, deleting=True)
    assert cluster.victims() == "dying"


def test_ports_are_fought_for_as_well():
    cluster = Cluster()
    cluster.add("holder", 10, ports=[80])
    cluster.add("other", 10, ports=[81])
    assert cluster.victims(make_pod("web", cpu=10, priority=10, ports=[80])) == "holder"


def test_a_pod_that_does_not_fit_even_then_gets_the_reason():
    cluster = Cluster()
    cluster.add("low", 500)
    cluster.add("high", 500, priority=99)
    answer = cluster.ask(make_pod("web", cpu=600, priority=10))
    assert answer.chosen is None
    assert answer.message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


# -- disruption budgets ----------------------------------------------------------------------------


def budget(allowed, **fields):
    """A budget for all pods that are labelled so."""
    return DisruptionBudget("default", "keep", ALL_GUARDED, allowed, **fields)


GUARDED = {"guard": "yes"}


def test_pods_whose_eviction_breaks_a_budget_are_spared_first():
    """Before a more important one that has no budget; the victims are sorted by importance again."""
    cluster = Cluster()
    cluster.add("guarded", 500, labels=GUARDED)
    cluster.add("important", 250, priority=5)
    cluster.add("plain", 250)
    pod = make_pod("web", cpu=500, priority=10)
    assert cluster.victims(pod) == "guarded"
    assert cluster.victims(pod, budgets=[budget(0)]) == "important plain"
    assert cluster.victims(pod, budgets=[budget(1)]) == "guarded"
    assert cluster.ask(pod, budgets=[budget(0)]).chosen.violations == 0


def test_a_budget_is_used_up_by_the_most_important():
    """Two guarded pods, one may go: evicting the second would break it, so the second is spared first."""
    cluster = Cluster()
    cluster.add("second", 500, priority=1, labels=GUARDED)
    cluster.add("first", 500, priority=2, labels=GUARDED)
    assert cluster.victims(make_pod("web", cpu=500, priority=10), budgets=[budget(1)]) == "first"
    assert cluster.victims(make_pod("web", cpu=500, priority=10), budgets=[budget(2)]) == "second"


def test_budgets_do_not_forbid_preemption_and_violations_are_counted():
    cluster = Cluster()
    cluster.add("one", 500, labels=GUARDED)
    cluster.add("two", 500, labels=GUARDED)
    for allowed, violations in ((0, 2), (1, 1), (2, 0), (-1, 2)):
        chosen = cluster.ask(budgets=[budget(allowed)]).chosen
        assert (len(chosen.victims), chosen.violations) == (2, violations)


def test_a_pod_counts_once_however_many_budgets_it_breaks():
    cluster = Cluster()
    cluster.add("one", 1000, labels=GUARDED)
    assert cluster.ask(budgets=[budget(0), budget(0)]).chosen.violations == 1


def test_a_disruption_under_way_is_not_counted_again():
    cluster = Cluster()
    cluster.add("one", 500, labels=GUARDED)
    cluster.add("two", 500, labels=GUARDED)
    assert cluster.ask(budgets=[budget(0, disrupted=frozenset({"one"}))]).chosen.violations == 1


# -- which node ------------------------------------------------------------------------------------


def candidate(name, *victims, violations=0):
    """Victims as (priority, started), most important first."""
    pods = tuple(make_pod(f"{name}{i}", priority=p, started=s) for i, (p, s) in enumerate(victims))
    return Candidate(name, pods, violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (candidate("a", (9, 0.0), (9, 0.0)), candidate("b", (1, 5.0), violations=1)),
        (candidate("a", (5, 0.0), (5, 0.0), (5, 0.0)), candidate("b", (6, 9.0))),
        (candidate("a", (5, 0.0), (1, 0.0)), candidate("b", (5, 9.0), (2, 9.0))),
        (candidate("a", (5, 0.0)), candidate("b", (5, 9.0), (-2147483648, 9.0))),
        (candidate("a", (-5, 0.0)), candidate("b", (-5, 9.0), (-5, 9.0))),
        (candidate("a", (5, 7.0), (1, 0.0)), candidate("b", (5, 6.0), (1, 9.0))),
        (candidate("a", (5, 7.0), (5, 8.0)), candidate("b", (5, 9.0), (5, 6.0))),
        (candidate("a", (5, None)), candidate("b", (5, 9.0))),
    ],
    ids=[
        "fewest-violations",
        "lowest-top-priority",
        "lowest-sum",
        "fewest-pods",
        "negative-priorities-add-up-too",
        "latest-start-of-the-top-ones",
        "earliest-of-several-top-ones",
        "not-started-is-latest",
    ],
)
def test_the_rules_in_their_order(better, worse):
    assert best_candidates([worse, better]) == [better]
    assert best_candidates([better, worse]) == [better]


def test_what_the_rules_cannot_tell_apart_is_a_tie():
    one, two = candidate("a", (5, 1.0)), candidate("b", (5, 1.0))
    assert best_candidates([candidate("c", (5, 0.5)), two, one]) == [two, one]


def test_the_best_node_is_chosen_and_the_first_by_name_among_ties():
    cluster = Cluster("d", "c", "b", "a")
    for node, priority in (("a", 5), ("b", 3), ("c", 3), ("d", 4)):
        cluster.add(f"on-{node}", 1000, priority, node)
    answer = cluster.ask()
    assert answer.chosen.node_name == "b"
    assert answer.ties == ("b", "c")
    assert [found.node_name for found in answer.candidates] == ["d", "c", "b", "a"]
    assert answer.message == "preemption: found a potential placement for pod on node b, preempting 1 victims"


# -- nominated pods --------------------------------------------------------------------------------


def test_room_promised_to_others_cannot_be_won():
    """They count as there, and are no victims themselves."""
    cluster = Cluster()
    cluster.add("low", 400)
    ahead = make_pod("ahead", cpu=500, priority=10)
    pod = make_pod("web", cpu=500, priority=10)
    assert cluster.victims(pod, ahead=[ahead]) == "low"
    answer = cluster.ask(make_pod("web", cpu=501, priority=10), ahead=[ahead])
    assert answer.message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def test_pods_are_spared_only_if_that_leaves_room_for_the_promised():
    cluster = Cluster()
    cluster.add("one", 250, priority=2)
    cluster.add("two", 250, priority=1)
    pod = make_pod("web", cpu=500, priority=10)
    for promised, victims in ((0, ""), (1, "two"), (300, "one two")):
        assert cluster.victims(pod, ahead=[make_pod("ahead", cpu=promised, priority=10)]) == victims


# -- who may not -----------------------------------------------------------------------------------


def test_a_pod_that_never_preempts():
    cluster = Cluster()
    cluster.add("low", 1000)
    answer = cluster.ask(make_pod("web", cpu=1000, priority=10, preemption_policy="Never"))
    assert answer.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert (answer.chosen, answer.clear_nomination) == (None, False)


WAITING = "preemption: not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    ("fields", "awaited", "waits"),
    [
        ({"deleting": True, "preempted": True}, (), True),
        ({"deleting": True}, (), False),
        ({"preempted": True}, (), False),
        ({"deleting": True, "preempted": True, "priority": 10}, (), False),
        ({}, ("uid-dying",), True),
        ({}, ("uid-other",), False),
    ],
    ids=["preempted", "deleted-by-a-user", "not-deleted", "not-lower", "asked-to-go", "another-asked-to-go"],
)
def test_a_pod_whose_victims_are_going_waits(fields, awaited, waits):
    """``awaited``: the order to evict is out, and no stream shows the victim going yet."""
    cluster = Cluster()
    cluster.add("dying", 400, **{"priority": 0, **fields})
    cluster.add("low", 600)
    answer = cluster.ask(make_pod("web", cpu=600, priority=10, nominated_node="a"), awaited=awaited)
    assert (answer.message == WAITING) is waits
    assert (answer.chosen is None) is waits
    assert not answer.clear_nomination


def test_victims_going_on_another_node_than_the_promised_are_no_reason_to_wait():
    cluster = Cluster("a", "b")
    cluster.add("dying", 1000, deleting=True, preempted=True)
    cluster.add("low", 1000, node="b")
    for promised in ("b", "ghost", ""):
        assert cluster.ask(make_pod("web", cpu=1000, priority=10, nominated_node=promised)).chosen is not None


def test_a_promised_node_that_is_beyond_help_is_no_reason_to_wait():
    """kube-scheduler: ``nominatedNodeStatus`` UnschedulableAndUnresolvable lets the pod preempt again."""
    cluster = Cluster(make_node("a", cpu=1000, taints=[taint("x")]), "b")
    cluster.add("dying", 1000, deleting=True, preempted=True)
    cluster.add("low", 1000, node="b")
    assert cluster.victims(make_pod("web", cpu=1000, priority=10, nominated_node="a")) == "low"


# -- words -----------------------------------------------------------------------------------------


def test_the_message_counts_nodes_by_reason():
    """Nodes that no eviction can help are counted together, whatever is wrong with them."""
    cluster = Cluster("a", "b", "c", make_node("d", cpu=10), make_node("e", unschedulable=True))
    cluster.add("low", 500)
    cluster.add("high", 500, priority=99)
    for node in "bc":
        cluster.add(f"high-{node}", 1000, 99, node)
    assert cluster.ask().message == (
        "preemption: 0/5 nodes are available: 1 Insufficient cpu, "
        "2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )


def test_a_promise_that_nothing_can_keep_is_void():
    cluster = Cluster(make_node("a", cpu=10))
    for promised, void in (("a", True), ("", False)):
        answer = cluster.ask(make_pod("web", cpu=1000, priority=10, nominated_node=promised))
        assert answer.message == (
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        assert answer.clear_nomination is void


def test_it_rejects_nothing_by_itself():
    """The plugins whose rejection the eviction lifts wake the pod."""
    assert DefaultPreemption().wakes_on() == ()


# -- the snapshot ----------------------------------------------------------------------------------


def a_mixed_cluster(*plugins):
    """Two nodes full of pods of all kinds, arrived in no order of importance."""
    cluster = Cluster("a", "b", plugins=plugins)
    cluster.add("low", 300, 1, ports=[80])
    cluster.add("high", 300, 9, labels=GUARDED)
    cluster.add("lower", 300, -3, labels=GUARDED)
    cluster.add("on-b", 1000, 5, "b")
    return cluster


@pytest.mark.parametrize("cpu", [400, 1000, 2000])
def test_a_dry_run_leaves_every_column_as_it_was(cpu):
    cluster = a_mixed_cluster()
    before = cluster.state()
    cluster.ask(
        make_pod("web", cpu=cpu, priority=10, ports=[80]),
        ahead=[make_pod("ahead", cpu=10, priority=10, ports=[81])],
        budgets=[budget(1)],
    )
    columns, uids, ports = cluster.state()
    assert (columns, ports) == (before[0], before[2])
    assert [sorted(there) for there in uids] == [sorted(there) for there in before[1]]


def test_asked_twice_the_answer_is_the_same():
    """Of two equals one must go; the budget lets one go. Which one, must not depend on an earlier question."""
    cluster = Cluster()
    cluster.add("one", 500, labels=GUARDED)
    cluster.add("two", 500, labels=GUARDED)
    before = cluster.state()
    told = [cluster.victims(make_pod("web", cpu=500, priority=10), budgets=[budget(1)]) for _ in range(3)]
    assert told == [told[0]] * 3
    assert cluster.state() == before


class Fragile:
    """A Filter plugin that refuses node a while a pod is there, and raises at the call of that number."""

    name: Any = "Fragile"
    reads: Any = Reads.NODE | Reads.USAGE

    def __init__(self, breaks_at: int) -> None:
        self.calls = 0
        self.breaks_at = breaks_at

    def pre_filter(self, pod: Any, snapshot: Any) -> None:
        """Nothing to prepare."""

    def filter(self, state: Any, nodes: Any) -> Verdict:
        """Raise, in a dry run, when it is time."""
        if len(nodes) == 1:
            self.calls += 1
            if self.calls == self.breaks_at:
                raise RuntimeError("boom")
        return Verdict((Reason("fragile"),), (nodes.pod_count > 0)[None, :])

    def wakes_on(self) -> Any:
        """Not asked here, but every plugin that rejects must name something."""
        return (WakesOn(Resource.ASSIGNED_POD, Action.DELETE),)


@pytest.mark.parametrize("breaks_at", [1, 2, 3, 4, 5])
def test_a_plugin_that_raises_in_the_middle_leaves_the_snapshot_as_it_was(breaks_at):
    plugin = Fragile(breaks_at)
    cluster = a_mixed_cluster(plugin)
    before = cluster.state()
    with pytest.raises(PluginError, match=r'^running "Fragile" filter plugin: RuntimeError: boom$'):
        cluster.ask(make_pod("web", cpu=10, priority=10), budgets=[budget(1)])
    assert plugin.calls == breaks_at
    columns, uids, ports = cluster.state()
    assert (columns, ports) == (before[0], before[2])
    assert [sorted(there) for there in uids] == [sorted(there) for there in before[1]]


class Quota(Fragile):
    """Rejects every pod as a whole, resolvably; in dry runs node a is fine, others only without pods."""

    name: Any = "Quota"

    def pre_filter(self, pod: Any, snapshot: Any) -> Any:
        """Evicting may help."""
        return Rejected(("over quota",), state="dry")

    def filter(self, state: Any, nodes: Any) -> Verdict:
        """Everything but node a must be empty."""
        failed = np.array([row != 0 for row in nodes.rows]) & (nodes.pod_count > 0)
        return Verdict((Reason("over quota"),), failed[None, :])


def test_after_a_rejection_as_a_whole_all_nodes_are_tried():
    cluster = Cluster("a", "b", plugins=[Quota(0)])
    cluster.add("low", 10, node="b")
    assert cluster.victims(make_pod("web", cpu=10, priority=10)) == "low"


def test_a_node_where_nobody_would_have_to_go_is_no_candidate():
    """kube-scheduler leaves it out ("expected at least one victim pod on node") and takes one of the others."""
    cluster = Cluster("a", "b", plugins=[Quota(0)])
    cluster.add("spared", 10)
    cluster.add("low", 10, node="b")
    assert cluster.victims(make_pod("web", cpu=10, priority=10)) == "low"


# -- what policies forbid ------------------------------------------------------------------------


def guarded_by(**rules: Any) -> DefaultPreemption:
    return DefaultPreemption(Guards(PreemptionRules(**rules)))


def full(*pods: Any) -> Cluster:
    """One node of 1,000 milli-CPU with pods on it, as (name, cpu, fields), 1,000 s after the epoch."""
    cluster = Cluster()
    cluster.snapshot.now = 1000.0
    for name, cpu, fields in pods:
        cluster.add(name, cpu, **fields)
    return cluster


def test_a_policy_may_allow_no_preemption_at_all():
    cluster = full(("low", 1000, {}))
    assert cluster.victims() == "low"
    cluster.plugin = guarded_by(never=True)
    answer = cluster.ask()
    assert answer.chosen is None
    assert answer.message == "preemption: not eligible due to a policy that allows no preemption."


@pytest.mark.parametrize(("gap", "victims"), [(None, "low"), (10, "low"), (11, "")])
def test_a_policy_may_spare_pods_of_nearly_the_same_priority(gap, victims):
    cluster = full(("low", 1000, {}))
    cluster.plugin = guarded_by(min_priority_gap=gap)
    assert cluster.victims() == victims


@pytest.mark.parametrize(("runtime", "victims"), [(None, "new"), (99.0, "old"), (600.0, "old"), (601.0, "")])
def test_a_policy_may_spare_pods_that_have_not_run_long(runtime, victims):
    cluster = full(("old", 500, {"started": 400.0}), ("new", 500, {"started": 950.0}))
    cluster.plugin = guarded_by(min_victim_runtime=runtime)
    half = make_pod("web", cpu=500, priority=10)
    assert cluster.victims(half) == victims


def test_pods_that_are_spared_are_not_even_tried():
    cluster = full(("new", 1000, {"started": 950.0}))
    cluster.plugin = guarded_by(min_victim_runtime=60.0)
    assert cluster.ask().message == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert cluster.plugin.changes_at(make_pod("web", priority=10), cluster.snapshot) == 1010.0


@pytest.mark.parametrize(("most", "victims"), [(None, "a b"), (2, "a b"), (1, "")])
def test_a_policy_may_limit_the_victims(most, victims):
    cluster = full(("a", 500, {}), ("b", 500, {}))
    cluster.plugin = guarded_by(max_victims=most)
    before = cluster.state()
    answer = cluster.ask()
    assert (" ".join(pod.name for pod in answer.chosen.victims) if answer.chosen else "") == victims
    if not victims:
        assert answer.message == (
            "preemption: 0/1 nodes are available: 1 node(s) would need more victims than a policy allows."
        )
    assert cluster.state() == before


@pytest.mark.parametrize(
    ("strict", "allowed", "victims"), [(False, 0, "a b"), (True, 1, ""), (True, 2, "a b")]
)
def test_a_policy_may_hold_disruption_budgets_sacred(strict, allowed, victims):
    cluster = full(("a", 500, {"labels": {"guard": "yes"}}), ("b", 500, {"labels": {"guard": "yes"}}))
    cluster.plugin = guarded_by(strict_budgets=strict)
    budgets = [DisruptionBudget("default", "guard", ALL_GUARDED, allowed)]
    answer = cluster.ask(budgets=budgets)
    assert (" ".join(pod.name for pod in answer.chosen.victims) if answer.chosen else "") == victims
    if not victims:
        assert PROTECTED in answer.message


def test_a_strict_budget_is_about_the_victims_not_about_who_else_could_go():
    """Both together would break it, the one that has to go does not."""
    cluster = full(("a", 400, {"labels": {"guard": "yes"}}), ("b", 600, {"labels": {"guard": "yes"}}))
    cluster.plugin = guarded_by(strict_budgets=True)
    budgets = [DisruptionBudget("default", "guard", ALL_GUARDED, 1)]
    assert cluster.victims(make_pod("web", cpu=600, priority=10), budgets=budgets) == "b"


def test_profiles_with_other_guards_decide_otherwise():
    assert DefaultPreemption() == DefaultPreemption(Guards())
    assert DefaultPreemption() != guarded_by(max_victims=1)
