"""A configuration changes while the engine is at work."""

from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType
from moorage.core.model.events import Reconfigured
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.profile import Profile, default_profile
from moorage.core.queue.scheduling_queue import QueueSettings
from tests.core.driving import Driven, of_type, placements
from tests.kit.models import make_node, make_pod

PACKING = ScoringStrategy(StrategyType.MOST_ALLOCATED)


def profile(name="moorage", *, without=("DefaultPreemption",), strategy=None):
    base = default_profile(name, without=without)
    plugins = tuple(
        NodeResourcesFit(strategy) if strategy and isinstance(p, NodeResourcesFit) else p
        for p in base.plugins
    )
    return Profile(name, plugins, base.weights)


def reconfigured(*profiles, queue=None):
    return Reconfigured({p.scheduler_name: p for p in profiles}, queue or QueueSettings())


def driven(*profiles):
    return Driven(profiles={p.scheduler_name: p for p in profiles or [profile()]})


def two_nodes(engine):
    engine.tell(make_node("a", cpu=10_000, memory=10), make_node("b", cpu=10_000, memory=10))
    engine.tell(make_pod("there", cpu=1000, memory=5, node="a"))


def test_the_next_decision_is_by_the_new_profile():
    engine = driven(profile(without=("DefaultPreemption", "NodeResourcesBalancedAllocation")))
    two_nodes(engine)
    engine.tell(make_pod("before", cpu=100))
    assert engine.bound() == {"before": "b"}
    without = ("DefaultPreemption", "NodeResourcesBalancedAllocation")
    engine.tell(reconfigured(profile(without=without, strategy=PACKING)), make_pod("after", cpu=100))
    assert engine.bound() == {"after": "a"}


def test_a_profile_that_is_as_before_keeps_what_it_has_worked_out():
    engine = driven(profile(), profile("other"))
    kept, replaced = engine.engine.runners["moorage"], engine.engine.runners["other"]
    engine.tell(reconfigured(profile(), profile("other", strategy=PACKING)))
    assert engine.engine.runners["moorage"] is kept
    assert engine.engine.runners["other"] is not replaced


def test_pods_that_were_refused_are_tried_again_where_their_profile_has_changed():
    engine = driven(profile(), profile("other"))
    engine.tell(make_node("a", cpu=1000))
    mine, theirs = make_pod("mine", cpu=9000), make_pod("theirs", cpu=9000, scheduler_name="other")
    engine.tell(mine, theirs)
    assert engine.bound() == {}
    unfitting = profile(without=("DefaultPreemption", "NodeResourcesFit"))
    engine.tell(reconfigured(unfitting, profile("other")))
    assert engine.bound(seconds=5) == {"mine": "a"}
    assert engine.place_of(theirs) == "unschedulable"


def test_a_pod_that_is_gated_comes_in_when_nothing_gates_it_any_more():
    engine = driven()
    engine.tell(make_node("a", cpu=1000), make_pod("web", gates=("g",)))
    assert engine.bound() == {}
    engine.tell(reconfigured(profile(without=("DefaultPreemption", "SchedulingGates"))))
    assert engine.bound() == {"web": "a"}


def test_pods_of_a_profile_that_is_gone_are_none_of_ours():
    engine = driven(profile(), profile("other"))
    engine.tell(
        make_pod("theirs", scheduler_name="other"), make_pod("gated", scheduler_name="other", gates=("g",))
    )
    engine.tell(reconfigured(profile()))
    assert len(engine.engine.queue) == 0
    engine.tell(make_pod("late", scheduler_name="other"))
    assert len(engine.engine.queue) == 0


def test_pods_of_a_new_profile_are_ours():
    engine = driven()
    engine.tell(reconfigured(profile(), profile("other")), make_node("a", cpu=1000))
    engine.tell(make_pod("theirs", scheduler_name="other"))
    assert engine.bound() == {"theirs": "a"}


def test_a_bind_under_way_ends_well_though_its_profile_is_gone():
    engine = driven(profile(), profile("other"))
    pod = make_pod("theirs", scheduler_name="other")
    engine.tell(make_node("a", cpu=1000), pod)
    assert placements(engine.run()) == {"theirs": "a"}
    engine.tell(reconfigured(profile()))
    engine.succeed(pod, "a")
    assert [record.reason for record in of_type(engine.run(), object) if hasattr(record, "reason")] == [
        "Scheduled"
    ]


def test_backoff_is_as_long_as_the_new_configuration_says():
    engine = driven()
    pod = make_pod("web", cpu=9000)
    engine.tell(reconfigured(profile(), queue=QueueSettings(initial_backoff=7.0, max_backoff=20.0)))
    engine.tell(make_node("a", cpu=1000), pod)
    engine.run()
    assert engine.queued(pod).backoff_until == engine.now + 7.0
