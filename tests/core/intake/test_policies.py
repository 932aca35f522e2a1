"""Policy events, beside what tests/core/test_engine_policies.py sees from outside: what is kept and what is not."""

from dataclasses import replace

from moorage.core.model.events import NamespaceApplied, NamespaceGone, PolicyApplied, PolicyGone, Reconfigured
from moorage.core.model.policy import LimitRule, Mode, NodeRules, PolicyRef
from moorage.core.model.workload import Namespace
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, default_profile
from moorage.core.queue.scheduling_queue import QueueSettings
from tests.core.driving import plain
from tests.kit.models import make_node, make_pod
from tests.kit.policy_builders import labelled, make_policy, window

LIMITED = (LimitRule("host", 5),)


def cluster(*policies):
    driven = plain()
    driven.tell(make_node("a"), *map(PolicyApplied, policies))
    return driven


def runner_of(driven, pod):
    return driven.engine._roster.runner_of(pod)


def test_a_change_keeps_the_runners_that_it_does_not_touch():
    tiers = {tier: make_policy(tier, labels={"tier": tier}, nodes=NodeRules()) for tier in ("x", "y")}
    driven = cluster(*tiers.values())
    pods = [make_pod(tier, labels={"tier": tier}) for tier in tiers]
    before = [runner_of(driven, pod) for pod in pods]
    assert before[0] is not before[1]
    driven.tell(PolicyApplied(make_policy("x", labels={"tier": "x"}, nodes=NodeRules())))
    after = [runner_of(driven, pod) for pod in pods]
    assert after[0] is not before[0]
    assert after[1] is before[1]


def test_a_pod_that_waits_for_room_waits_by_the_plugins_of_its_policies():
    driven = cluster(make_policy("p", nodes=NodeRules()))
    pod = make_pod("big", cpu=90_000)
    driven.tell(pod)
    driven.run()
    driven.tell(PolicyApplied(make_policy("p", nodes=NodeRules(keep_free={"cpu": 1}))))
    assert driven.place_of(pod) == "unschedulable"
    waiting = driven.engine.queue._unschedulable
    assert waiting._rooms[waiting._places[pod.uid]].wakes is runner_of(driven, pod).wakes


def test_pods_of_the_same_policies_share_a_runner():
    driven = cluster(make_policy("p", nodes=NodeRules()))
    assert runner_of(driven, make_pod("one", cpu=1)) is runner_of(driven, make_pod("two", cpu=2))


def test_without_a_word_in_placing_the_profiles_own_runner_does():
    driven = cluster(make_policy("p", windows=(window("", "1:00", "0:00"),)))
    assert runner_of(driven, make_pod("one")) is driven.engine.runners[DEFAULT_SCHEDULER_NAME]


def test_the_runners_that_are_kept_are_bounded(monkeypatch):
    driven = cluster(*(make_policy(f"p{n}", labels={"n": str(n)}, nodes=NodeRules()) for n in range(5)))
    roster = driven.engine._roster
    monkeypatch.setattr(roster, "DERIVED", 2)
    for n in (0, 1, 2, 1, 3):
        runner_of(driven, make_pod(f"x{n}", labels={"n": str(n)}))
    assert len(roster._derived) == 2
    kept = {policy.ref.name for _, merged in roster._derived for policy in merged.policies}
    assert kept == {"p1", "p3"}


def test_nothing_is_left_of_policies_that_are_gone():
    policy = make_policy("p", nodes=NodeRules(), limits=LIMITED)
    driven = cluster(policy)
    driven.tell(make_pod("there", node="a"), make_pod("one"), make_pod("big", cpu=90_000))
    driven.run()
    driven.tell(PolicyGone(policy.ref), PolicyGone(PolicyRef("x", "unheard of")))
    engine = driven.engine
    assert (len(engine._roster._derived), len(engine._census), engine.snapshot.selected.tracked) == (
        0,
        0,
        False,
    )
    assert engine.policies._shapings == {}


def test_a_disabled_policy_is_not_counted():
    driven = cluster(make_policy("p", limits=LIMITED, mode=Mode.DISABLED))
    assert not driven.engine.snapshot.selected.tracked


def test_pods_on_nodes_are_counted_again_when_labels_of_their_namespace_change():
    policy = make_policy("p", namespace_labels={"team": "data"}, limits=LIMITED)
    driven = cluster(policy)
    driven.tell(make_pod("there", node="a"))
    total = driven.engine.snapshot.selected.total
    assert total(policy.ref) == 0
    driven.tell(NamespaceApplied(Namespace("default", {"team": "data"})))
    assert total(policy.ref) == 1
    driven.tell(NamespaceGone("default"))
    assert total(policy.ref) == 0


def test_another_configuration_leads_to_other_runners():
    driven = cluster(make_policy("p", nodes=NodeRules(selector=labelled({"no": "where"}))))
    pod = make_pod("one")
    driven.tell(pod)
    driven.run()
    before = runner_of(driven, pod)
    profile = replace(default_profile(), weights={"NodeAffinity": 7})
    driven.tell(Reconfigured({DEFAULT_SCHEDULER_NAME: profile}, QueueSettings()))
    after = runner_of(driven, pod)
    assert after is not before
    assert "PolicyNodes" in {plugin.name for plugin in after.plugins}
    assert driven.bound(seconds=30.0) == {}


def test_another_configuration_frees_no_pod_that_policies_hold():
    driven = cluster(make_policy("p", windows=(window("", "12:00", "13:00"),)))
    pod = make_pod("one")
    driven.tell(pod)
    driven.run()
    profile = replace(default_profile(), weights={"NodeAffinity": 7})
    driven.tell(Reconfigured({DEFAULT_SCHEDULER_NAME: profile}, QueueSettings()))
    assert driven.bound(seconds=30.0) == {}
    assert driven.place_of(pod) == "gated"
