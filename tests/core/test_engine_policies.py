"""Policies through the engine: what they do to placements, to pods that wait, and what is told about it."""

from dataclasses import replace

import pytest

from moorage.core.model.events import (
    BindFailure,
    EvictionFinished,
    NamespaceApplied,
    PolicyApplied,
    PolicyGone,
    UsageMeasured,
    UsageSample,
)
from moorage.core.model.instructions import Attempted, Bind, Evict, Record, SetCondition
from moorage.core.model.policy import (
    Backoff,
    LimitRule,
    LoadRules,
    Mode,
    NodeRules,
    Pool,
    Pools,
    PreemptionRules,
    Preference,
    Scoring,
    SpreadRule,
    StrategyRule,
)
from moorage.core.model.workload import Namespace
from moorage.core.turns import DEADLINE_CONDITION
from tests.core.driving import Driven, conditions, of_type, placements, plain
from tests.kit.models import make_node, make_pod
from tests.kit.policy_builders import at, labelled, make_policy, window

NOON = at("2026-12-01 12:00")
HOUR = 3600.0
SSD = NodeRules(selector=labelled({"disk": "ssd"}))


def cluster(*policies, preempting=False, **config):
    """Nodes a and b, of which b has an SSD, at noon of a Tuesday."""
    driven = Driven(**config) if preempting else plain(**config)
    driven.now = NOON
    driven.tell(make_node("a"), make_node("b", labels={"disk": "ssd"}))
    for policy in policies:
        driven.tell(PolicyApplied(policy))
    return driven


def web(name="web", **fields):
    return make_pod(name, **{"cpu": 100, "created": NOON, **fields})


# -- placing --------------------------------------------------------------------------------------


def test_a_policy_narrows_the_nodes_of_its_pods_only():
    driven = cluster(make_policy("ssd", labels={"tier": "db"}, nodes=SSD))
    driven.tell(*[web(f"db{n}", labels={"tier": "db"}) for n in range(4)], *[web(f"w{n}") for n in range(4)])
    bound = driven.bound()
    assert {bound[f"db{n}"] for n in range(4)} == {"b"}
    assert "a" in {bound[f"w{n}"] for n in range(4)}


def test_a_namespaced_policy_leaves_pods_elsewhere_alone():
    driven = cluster(make_policy("none", namespace="x", nodes=NodeRules(selector=labelled({"no": "where"}))))
    driven.tell(web("in", namespace="x"), web("out", namespace="y", uid="out"))
    told = driven.run()
    assert set(placements(told)) == {"out"}
    assert [(pod, reason) for pod, reason, _ in conditions(told)] == [("in", "Unschedulable")]


def test_the_binding_names_the_policies_that_shaped_it():
    driven = cluster(
        make_policy("batch", nodes=SSD),
        make_policy("spread", namespace="default", scoring=Scoring(weights={"ImageLocality": 0})),
        make_policy("silent"),
        make_policy("audited", mode=Mode.AUDIT, nodes=SSD),
    )
    driven.tell(web())
    (bind,) = of_type(driven.run(), Bind)
    assert bind.annotations == (("moorage.dev/policies", "batch,default/spread"),)


def test_without_policies_nothing_is_written_on_the_binding():
    driven = cluster()
    driven.tell(web())
    (bind,) = of_type(driven.run(), Bind)
    assert bind.annotations == ()


def test_a_strategy_packs():
    strategy = StrategyRule("MostAllocated", (("cpu", 1), ("memory", 1)))
    driven = cluster(make_policy("pack", labels={"tier": "batch"}, scoring=Scoring(strategy=strategy)))
    driven.tell(make_pod("there", node="a", cpu=1000), web("packed", labels={"tier": "batch"}), web("spread"))
    assert driven.bound() == {"packed": "a", "spread": "b"}


def test_a_preference_decides():
    prefer = Preference(10, labelled({"disk": "ssd"}))
    driven = cluster(make_policy("prefer", scoring=Scoring(prefer=(prefer,))))
    driven.tell(make_pod("there", node="b", cpu=3000), web())
    assert driven.bound() == {"web": "b"}


def test_limits_count_what_was_placed_before():
    driven = cluster(make_policy("one", limits=(LimitRule("host", 1),)))
    driven.tell(make_node("a", labels={"host": "a"}), make_node("b", labels={"host": "b", "disk": "ssd"}))
    driven.tell(*[web(f"w{n}") for n in range(3)])
    told = driven.run()
    assert sorted(placements(told).values()) == ["a", "b"]
    assert [reason for _, reason, _ in conditions(told)] == ["Unschedulable"]


def test_preemption_is_guarded():
    driven = cluster(
        make_policy("meek", labels={"meek": "yes"}, preemption=PreemptionRules(never=True)), preempting=True
    )
    for node in ("a", "b"):
        driven.tell(make_pod(f"low-{node}", node=node, cpu=3900))
    driven.tell(web("meek", priority=10, cpu=3000, labels={"meek": "yes"}))
    assert of_type(driven.run(), Evict) == []
    driven.tell(web("bold", priority=10, cpu=3000))
    assert len(of_type(driven.run(), Evict)) == 1


def test_a_policy_that_turns_preemption_off_and_goes_lets_the_pod_preempt():
    policy = make_policy("meek", preemption=PreemptionRules(never=True))
    driven = cluster(policy, preempting=True)
    for node in ("a", "b"):
        driven.tell(make_pod(f"low-{node}", node=node, cpu=3900))
    driven.tell(web(priority=10, cpu=3000))
    assert of_type(driven.run(), Evict) == []
    driven.tell(PolicyGone(policy.ref))
    assert len(of_type(driven.later(1.0), Evict)) == 1


# -- changes of policies --------------------------------------------------------------------------


def test_a_policy_takes_effect_on_the_next_pod_and_its_end_too():
    driven = cluster()
    policy = make_policy("ssd", nodes=SSD)
    driven.tell(PolicyApplied(policy), *[web(f"x{n}") for n in range(4)])
    assert set(driven.bound().values()) == {"b"}
    driven.tell(PolicyGone(policy.ref), *[web(f"y{n}") for n in range(4)])
    assert "a" in driven.bound().values()


def nowhere(name="none", **fields):
    return make_policy(name, nodes=NodeRules(selector=labelled({"no": "where"})), **fields)


@pytest.mark.parametrize("how", ["gone", "disabled", "audited", "eased", "elsewhere"])
def test_a_change_wakes_the_pods_it_may_help(how):
    policy = nowhere()
    driven = cluster(policy)
    driven.tell(web())
    assert placements(driven.run()) == {}
    change = {
        "gone": PolicyGone(policy.ref),
        "disabled": PolicyApplied(nowhere(mode=Mode.DISABLED)),
        "audited": PolicyApplied(nowhere(mode=Mode.AUDIT)),
        "eased": PolicyApplied(make_policy("none", nodes=SSD)),
        "elsewhere": PolicyApplied(nowhere(labels={"tier": "other"})),
    }[how]
    driven.tell(change)
    assert set(driven.bound(seconds=1.0)) == {"web"}


def test_a_change_wakes_nobody_else():
    policy = nowhere(labels={"tier": "batch"})
    driven = cluster(policy)
    selected, big = web("selected", labels={"tier": "batch"}), web("big", cpu=90_000)
    driven.tell(selected, big)
    driven.later(20.0)
    driven.tell(PolicyApplied(make_policy("none", labels={"tier": "batch"}, nodes=SSD)))
    told = driven.run()
    assert [i.ref.name for i in of_type(told, Attempted)] == ["selected"]
    assert driven.place_of(big) == "unschedulable"


def test_a_selected_pod_that_no_policy_refused_sleeps_on():
    driven = cluster(make_policy("ssd", nodes=NodeRules()))
    driven.tell(web(cpu=90_000))
    driven.later(20.0)
    driven.tell(PolicyApplied(make_policy("ssd", nodes=NodeRules(keep_free={"cpu": 1}))))
    assert of_type(driven.run(), Attempted) == []


def test_a_new_policy_for_nodes_does_not_wake_who_it_can_only_hinder():
    driven = cluster()
    driven.tell(web(cpu=90_000))
    driven.later(20.0)
    driven.tell(PolicyApplied(make_policy("ssd", nodes=SSD)))
    assert of_type(driven.run(), Attempted) == []


def test_a_pod_refused_under_an_old_policy_is_woken_by_what_the_new_one_waits_for():
    driven = cluster(nowhere())
    driven.tell(web(node_selector={"disk": "none yet"}))
    driven.run()
    driven.tell(PolicyApplied(make_policy("none", nodes=NodeRules(selector=labelled({"late": "yes"})))))
    driven.later(30.0)
    driven.tell(make_node("c", labels={"disk": "none yet", "late": "yes"}))
    assert driven.bound(seconds=10.0) == {"web": "c"}


def test_labels_of_a_namespace_bring_pods_under_a_policy_and_out_again():
    driven = cluster(nowhere(namespace_labels={"strict": "yes"}))
    driven.tell(NamespaceApplied(Namespace("default", {"strict": "yes"})), web())
    assert placements(driven.run()) == {}
    driven.tell(NamespaceApplied(Namespace("default", {})))
    assert set(driven.bound(seconds=1.0)) == {"web"}
    driven.tell(NamespaceApplied(Namespace("default", {"strict": "yes"})), web("late"))
    assert driven.bound(seconds=1.0) == {}


def test_labels_of_a_pod_bring_it_under_a_policy_and_out_again():
    driven = cluster(nowhere(labels={"tier": "batch"}))
    driven.tell(web(labels={"tier": "batch"}))
    assert placements(driven.run()) == {}
    driven.tell(web(labels={"tier": "web"}))
    assert set(driven.bound(seconds=1.0)) == {"web"}


def test_the_same_generation_again_changes_nothing():
    driven = cluster(nowhere(uid="u", generation=2))
    driven.tell(web())
    driven.run()
    driven.later(30.0)
    driven.tell(PolicyApplied(nowhere(uid="u", generation=2)))
    assert driven.run() == []


# -- windows --------------------------------------------------------------------------------------

NIGHT = window("", "22:00", "06:00", "Europe/Berlin")
HELD = 'held by policy "night" until 2026-12-01T21:00:00Z (2026-12-01 22:00 Europe/Berlin)'


def night(**fields):
    return make_policy("night", windows=(NIGHT,), **fields)


def test_a_pod_outside_its_windows_is_held_and_goes_by_itself():
    driven = cluster(night())
    driven.tell(web())
    told = driven.run()
    assert conditions(told) == [("web", "PolicyHold", HELD)]
    assert [(r.reason, r.message) for r in of_type(told, Record)] == [("PolicyHold", HELD)]
    assert of_type(told, Attempted) == []
    assert driven.place_of(web()) == "gated"
    assert driven.engine.next_wake() == at("2026-12-01 21:00")
    assert driven.later(9 * HOUR - 1) == []
    assert driven.bound(seconds=1.0).keys() == {"web"}


def test_a_held_pod_is_told_only_once():
    driven = cluster(night())
    pod = web()
    driven.tell(pod)
    driven.run()
    driven.tell(replace(pod, scheduled_condition=("False", "PolicyHold", HELD)))
    assert driven.run() == []


def test_a_window_that_closes_holds_pods_that_wait_for_room():
    """Else an autoscaler would add a node for a pod that may not go."""
    driven = cluster(make_policy("day", windows=(window("", "08:00", "13:00"),)))
    driven.tell(web(cpu=90_000))
    assert [reason for _, reason, _ in conditions(driven.run())] == ["Unschedulable"]
    told = driven.later(HOUR + 1)
    assert conditions(told)[-1][1] == "PolicyHold"
    assert driven.place_of(web()) == "gated"
    driven.tell(make_node("large", cpu=100_000))
    assert driven.bound(seconds=HOUR) == {}
    assert driven.bound(seconds=18 * HOUR) == {"web": "large"}


def test_a_longest_delay_runs_from_creation():
    driven = cluster(night(max_delay=2 * HOUR))
    driven.tell(web(created=NOON - HOUR))
    assert driven.bound(seconds=HOUR - 1) == {}
    assert driven.bound(seconds=1.0).keys() == {"web"}


def test_a_longest_delay_runs_from_the_removal_of_the_last_gate():
    driven = cluster(night(max_delay=2 * HOUR))
    driven.tell(web(gates=("g",), created=NOON - 5 * HOUR))
    driven.later(HOUR)
    for _ in range(2):  # shown again, it is as old as it was
        driven.tell(web(created=NOON - 5 * HOUR))
    assert driven.bound(seconds=2 * HOUR - 1) == {}
    assert driven.bound(seconds=1.0).keys() == {"web"}


def test_evaluate_says_that_a_pod_is_held():
    driven = cluster(night())
    decision = driven.engine.evaluate(web(), NOON)
    assert (decision.preenqueue.plugin, decision.preenqueue.reasons) == ("PolicyWindows", (HELD,))
    assert decision.feasible == ()
    assert driven.engine.evaluate(web(), NOON + 10 * HOUR).feasible == ("a", "b")


def test_evaluate_knows_when_the_queue_saw_the_last_gate_go():
    driven = cluster(night(max_delay=HOUR))
    driven.tell(web(gates=("g",), created=NOON - 5 * HOUR))
    driven.tell(web(created=NOON - 5 * HOUR))
    assert driven.engine.evaluate(web(created=NOON - 5 * HOUR), NOON).preenqueue is not None
    assert driven.engine.evaluate(web("other", created=NOON - 5 * HOUR), NOON).preenqueue is None


def test_gates_come_before_windows():
    driven = cluster(night())
    driven.tell(web(gates=("g",)))
    assert driven.run() == []
    assert driven.engine.evaluate(web(gates=("g",)), NOON).preenqueue.plugin == "SchedulingGates"
    driven.tell(web())
    assert [reason for _, reason, _ in conditions(driven.run())] == ["PolicyHold"]


@pytest.mark.parametrize("how", ["gone", "opened", "audited"])
def test_a_change_of_the_policy_lets_held_pods_go(how):
    driven = cluster(night())
    driven.tell(web())
    driven.run()
    change = {
        "gone": PolicyGone(night().ref),
        "opened": PolicyApplied(make_policy("night", windows=(window("", "08:00", "20:00"),))),
        "audited": PolicyApplied(night(mode=Mode.AUDIT)),
    }[how]
    driven.tell(change)
    assert set(driven.bound()) == {"web"}


def test_a_policy_with_windows_holds_the_pods_that_wait_already():
    driven = cluster()
    driven.tell(web(cpu=90_000))
    driven.run()
    driven.tell(PolicyApplied(night()))
    assert conditions(driven.run()) == [("web", "PolicyHold", HELD)]


def test_held_pods_go_in_the_order_in_which_they_came():
    driven = cluster(night())
    for name in ("first", "second", "third"):
        driven.tell(web(name))
        driven.later(60.0)
    told = driven.later(10 * HOUR)
    assert list(placements(told)) == ["first", "second", "third"]


def test_a_held_pod_gives_up_what_it_was_promised():
    driven = cluster(night())
    driven.tell(web(nominated_node="a"))
    (condition,) = of_type(driven.run(), SetCondition)
    assert condition.nominated_node == ""
    assert len(driven.engine.nominator) == 0


def test_a_window_that_closes_while_victims_go():
    """The pod is held as soon as it would be tried again."""
    driven = cluster(make_policy("day", windows=(window("", "08:00", "13:00"),)), preempting=True)
    for node in ("a", "b"):
        driven.tell(make_pod(f"low-{node}", node=node, cpu=3900))
    pod = web(priority=10, cpu=3000)
    driven.tell(pod)
    (evict,) = of_type(driven.run(), Evict)
    driven.now = NOON + 2 * HOUR
    driven.run()
    driven.tell(EvictionFinished(evict.preemptor))
    assert conditions(driven.run())[-1][1] == "PolicyHold"
    assert driven.place_of(pod) == "gated"


@pytest.mark.parametrize("noticed", [False, True])
def test_a_bind_that_fails_after_the_window_has_closed(noticed):
    driven = cluster(make_policy("day", windows=(window("", "08:00", "13:00"),)))
    pod = web()
    driven.tell(pod)
    node = placements(driven.run())["web"]
    driven.now = NOON + 2 * HOUR
    if noticed:
        driven.run()
    driven.fail(pod, node, BindFailure.STALE)
    told = driven.run()
    assert placements(told) == {}
    assert conditions(told)[-1][1] == "PolicyHold"
    assert driven.queued(pod).attempts == 1


# -- pools ----------------------------------------------------------------------------------------


def pools(*items, wait=False):
    return Pools(tuple(items), wait)


OD, SPOT = labelled({"pool": "od"}), labelled({"pool": "spot"})


def pooled(policy):
    driven = plain()
    driven.now = NOON
    driven.tell(make_node("od", labels={"pool": "od"}), make_node("spot", labels={"pool": "spot"}))
    driven.tell(PolicyApplied(policy))
    return driven


def test_full_pools_hold_a_pod():
    driven = pooled(make_policy("p", pools=pools(Pool("od", OD, 1), Pool("spot", SPOT, 1))))
    driven.tell(*[web(f"w{n}") for n in range(3)])
    told = driven.run()
    assert placements(told) == {"w0": "od", "w1": "spot"}
    ((pod, reason, message),) = conditions(told)
    assert (pod, reason) == ("w2", "PolicyHold")
    assert message.startswith('all pools of policy "p" are full: 0/2 nodes are available: ')


def test_a_pod_that_waits_for_the_first_pool_is_held():
    driven = pooled(make_policy("p", pools=pools(Pool("od", OD, 1), Pool("spot", SPOT), wait=True)))
    driven.tell(*[web(f"w{n}") for n in range(2)])
    told = driven.run()
    assert placements(told) == {"w0": "od"}
    assert [(pod, reason) for pod, reason, _ in conditions(told)] == [("w1", "PolicyHold")]


def test_a_pool_without_room_is_no_hold():
    """A new node in it would help."""
    driven = pooled(make_policy("p", pools=pools(Pool("od", OD, 5))))
    driven.tell(web(cpu=90_000))
    assert [reason for _, reason, _ in conditions(driven.run())] == ["Unschedulable"]


def test_a_pod_that_goes_makes_room_in_its_pool():
    driven = pooled(make_policy("p", pools=pools(Pool("od", OD, 1))))
    first = make_pod("first", node="od", cpu=100)
    driven.tell(first, web())
    assert placements(driven.run()) == {}
    driven.later(30.0)
    driven.tell(replace(first, finished=True))
    assert driven.bound(seconds=1.0) == {"web": "od"}


# -- time -----------------------------------------------------------------------------------------


def test_a_backoff_of_a_policys_own():
    driven = cluster(make_policy("slow", backoff=Backoff(initial=20.0, longest=60.0)))
    pod = web(cpu=90_000)
    driven.tell(pod)
    driven.run()
    assert driven.queued(pod).backoff_until == NOON + 20.0
    queue = driven.engine.queue
    assert [queue._backoff_seconds(pod, count) for count in (1, 2, 3)] == [20.0, 40.0, 60.0]
    assert queue._backoff_seconds(make_pod("x"), 9) == 60.0
    driven.tell(PolicyGone(make_policy("slow").ref))
    assert queue._backoff_seconds(pod, 9) == 10.0


def test_one_end_of_the_backoff_moves_the_other_where_they_cross():
    driven = cluster(make_policy("p", backoff=Backoff(initial=30.0)))
    assert driven.engine.queue._backoff_seconds(web(), 1) == 30.0
    driven.tell(PolicyApplied(make_policy("p", backoff=Backoff(longest=0.5))))
    assert driven.engine.queue._backoff_seconds(web(), 1) == 0.5


def test_a_pod_that_is_pending_for_too_long():
    driven = cluster(make_policy("p", pending_deadline=HOUR))
    driven.tell(web(cpu=90_000, created=NOON - 60))
    assert deadline_words(driven.later(HOUR - 61)) == []
    told = driven.later(1.0)
    text = 'pending for longer than the 1h that policy "p" allows'
    assert deadline_words(told) == [("True", text)]
    assert [(r.type, r.message) for r in of_type(told, Record) if "Deadline" in r.reason] == [
        ("Warning", text)
    ]
    assert deadline_words(driven.later(10 * HOUR)) == []


def deadline_words(told):
    return [(c.status, c.message) for c in of_type(told, SetCondition) if c.type == DEADLINE_CONDITION]


def test_a_pod_that_says_itself_that_it_is_overdue_is_left_alone():
    driven = cluster(make_policy("p", pending_deadline=HOUR))
    driven.tell(replace(web(cpu=90_000), overdue=True))
    assert deadline_words(driven.later(3 * HOUR)) == []


def test_a_deadline_counts_while_a_pod_is_held():
    driven = cluster(night(pending_deadline=HOUR))
    driven.tell(web())
    assert len(deadline_words(driven.later(HOUR))) == 1
    assert driven.bound(seconds=9 * HOUR).keys() == {"web"}


def test_a_hard_spread_turns_soft_while_the_pod_sleeps():
    spread = (SpreadRule("zone", hard_for=60.0),)
    driven = plain()
    driven.now = NOON
    driven.tell(make_node("a", labels={"zone": "a"}), make_node("b", labels={"zone": "b"}, cpu=50))
    driven.tell(PolicyApplied(make_policy("p", spread=spread)), make_pod("there", node="a", cpu=100))
    driven.tell(web())
    assert driven.bound(seconds=59.0) == {}
    assert driven.bound(seconds=1.5) == {"web": "a"}


def test_new_samples_wake_the_pods_that_load_refused():
    hot, cool = (
        {name: UsageSample(NOON + 30 * n, {"cpu": cpu}) for name in "ab"} for n, cpu in ((0, 3900), (1, 10))
    )
    driven = cluster(make_policy("cool", load=LoadRules(limit={"cpu": 50})))
    driven.tell(UsageMeasured(hot), web())
    assert placements(driven.run()) == {}
    driven.later(30.0)
    driven.tell(UsageMeasured(cool))
    assert set(driven.bound()) == {"web"}


def test_samples_that_go_stale_wake_the_pods_that_load_refused():
    driven = cluster(make_policy("cool", load=LoadRules(limit={"cpu": 50}, stale_after=60.0)))
    driven.tell(UsageMeasured({name: UsageSample(NOON, {"cpu": 3900}) for name in "ab"}), web())
    assert driven.bound(seconds=60.0) == {}
    assert set(driven.bound(seconds=5.0)) == {"web"}
