"""Events in, instructions out: what a user sees of a pod's life."""

from dataclasses import replace

from moorage.core.model.events import (
    PodGone,
    PodLeftPending,
)
from moorage.core.model.instructions import (
    Attempted,
    AttemptResult,
    Bind,
    Placement,
    Record,
    RecordType,
    SetCondition,
)
from tests.core.driving import (
    NO_VICTIMS,
    Driven,
    conditions,
    of_type,
    placed,
    placements,
    plain,
)
from tests.kit.models import label_in, make_node, make_pod, make_spec, required, taint, term

# -- a pod's life ----------------------------------------------------------------------------------


def test_a_pod_that_fits_is_bound_and_recorded():
    driven = Driven()
    pod = make_pod("web", cpu=500)
    driven.tell(make_node("a"), pod)
    ref = pod.ref
    assert [
        Bind((Placement(ref, "a"),)),
        Attempted(ref, "moorage", AttemptResult.SCHEDULED, 1, 100.0, "a", 1),
    ] == driven.run()
    driven.succeed(pod, "a")
    text = "Successfully assigned default/web to a"
    assert [Record(ref, RecordType.NORMAL, "Scheduled", text, "Binding", "moorage")] == driven.run()
    driven.tell(replace(pod, node_name="a"), PodLeftPending(ref))
    assert driven.run() == []
    assert driven.engine.stats()["pods"] == 1
    assert driven.engine.stats()["assumed"] == 0
    assert driven.engine.next_wake() is None


def test_a_pod_that_fits_nowhere_is_told_so_once():
    """One condition and one event an attempt; the condition is not written again while it says the same."""
    driven = plain()
    pod = make_pod("web", cpu=5000)
    driven.tell(
        make_node("a"), make_node("b", taints=[taint("gone")]), make_node("c", unschedulable=True), pod
    )
    text = (
        "0/3 nodes are available: "
        "1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )
    ref = pod.ref
    plugins = ("NodeResourcesFit", "NodeUnschedulable", "TaintToleration")
    failed = Record(ref, RecordType.WARNING, "FailedScheduling", text, "Scheduling", "moorage")
    assert [
        failed,
        SetCondition(ref, "", "Unschedulable", text),
        Attempted(ref, "moorage", AttemptResult.UNSCHEDULABLE, 1, 100.0, plugins=plugins, message=text),
    ] == driven.run()
    shown = replace(pod, resource_version="7", scheduled_condition=("False", "Unschedulable", text))
    driven.tell(shown)
    assert driven.run() == []
    assert driven.later(340.0) == [
        failed,
        Attempted(ref, "moorage", AttemptResult.UNSCHEDULABLE, 2, 100.0, plugins=plugins, message=text),
    ]


def test_the_message_of_preemption_comes_behind():
    driven = Driven()
    driven.tell(
        make_node("a"), make_pod("web", cpu=5000), make_pod("db", cpu=3000, node="a"), make_pod("x", cpu=2000)
    )
    too_big = (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    full = f"0/1 nodes are available: 1 Insufficient cpu. {NO_VICTIMS}"
    assert {("web", "Unschedulable", too_big), ("x", "Unschedulable", full)} == set(conditions(driven.run()))


def test_no_node_at_all_has_a_text_of_its_own():
    driven = Driven()
    pod = make_pod("web")
    driven.tell(pod)
    assert [("web", "Unschedulable", "no nodes available to schedule pods")] == conditions(driven.run())


def test_the_first_node_wakes_a_pod_tried_without_any():
    """kube-scheduler: no plugin rejected it, so every event may help."""
    driven = Driven()
    driven.tell(make_pod("web"))
    driven.run()
    driven.tell(make_node("a"))
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_a_fitting_node_brings_a_waiting_pod_in_at_once():
    driven = plain()
    driven.tell(make_node("a"), make_pod("web", cpu=5000))
    driven.later(5.0)
    driven.tell(make_node("b", cpu=8000))
    assert {"web": "b"} == driven.bound()


def test_reasons_of_narrowed_nodes():
    driven = plain()
    pod = make_pod("web", cpu=9000, required=required(term(names=("a",))))
    driven.tell(make_node("a"), make_node("b"), pod)
    text = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert [("web", "Unschedulable", text)] == conditions(driven.run())


def test_conflicting_names_reject_the_pod_as_a_whole():
    driven = plain()
    both = replace(
        term(names=("a",)), fields=(label_in("metadata.name", "a"), label_in("metadata.name", "b"))
    )
    driven.tell(make_node("a"), make_pod("web", required=required(both)))
    text = "0/1 nodes are available: pod affinity terms conflict."
    assert [("web", "Unschedulable", text)] == conditions(driven.run())


def test_what_is_not_supported_is_refused_with_words():
    driven = plain()
    pod = make_pod("web", unsupported=("volumes",))
    driven.tell(make_node("a"), pod)
    text = "0/1 nodes are available: pod asks for volumes, which this scheduler does not support yet."
    assert [("web", "Unschedulable", text)] == conditions(driven.run())
    driven.tell(replace(pod, spec=make_spec()))
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_pods_of_other_schedulers_are_counted_and_never_placed():
    """Case B30."""
    driven = plain()
    foreign = make_pod("foreign", scheduler_name="other")
    driven.tell(
        make_node("a", cpu=1000), foreign, make_pod("theirs", cpu=800, node="a", scheduler_name="other")
    )
    assert driven.run() == []
    driven.tell(make_pod("ours", cpu=300))
    assert driven.bound() == {}


# -- the order of the queue ------------------------------------------------------------------------


def test_higher_priority_goes_first_then_age():
    driven = plain()
    driven.tell(make_node("a"))
    for name, priority in (("old", 0), ("urgent", 5), ("young", 0), ("urgent-too", 5)):
        driven.tell(make_pod(name, priority=priority))
        driven.now += 1.0
    told = [p.ref.name for p in placed(driven.run())]
    assert ["urgent", "urgent-too", "old", "young"] == told


def test_a_hopeless_pod_of_high_priority_does_not_block_the_rest():
    """Case B25: heartbeats are no events, and the others get their turn."""
    driven = plain()
    node = make_node("a", cpu=1000)
    hopeless = [make_pod(f"h{i}", cpu=5000, priority=5000) for i in range(30)]
    gated = [make_pod(f"g{i}", gates=("wait",)) for i in range(30)]
    driven.tell(node, *hopeless, *gated)
    driven.run()
    driven.tell(make_pod("small", cpu=100, priority=10))
    assert {"small": "a"} == placements(driven.step())
    tries = 0
    for beat in range(60):
        driven.tell(replace(node, images={"image": beat}))
        tries += len(of_type(driven.later(0.5), Attempted))
    assert tries <= 4 * len(hopeless)


def test_gated_pods_wait_outside_until_the_last_gate_is_gone():
    """Cases B31 and B07."""
    driven = plain()
    pod = make_pod("web", gates=("one", "two"))
    driven.tell(make_node("a"), pod)
    assert driven.run() == []
    assert driven.place_of(pod) == "gated"
    decision = driven.engine.evaluate(pod, driven.now)
    assert decision.preenqueue is not None
    assert ("waiting for scheduling gates: [one two]",) == decision.preenqueue.reasons
    driven.tell(replace(pod, gates=("two",)))
    assert driven.later(400.0) == []
    driven.tell(replace(pod, gates=()))
    assert {"web": "a"} == driven.bound()


def test_backoff_doubles_from_one_second_to_ten():
    """Another pod keeps the queue from being idle, for an idle scheduler tries pods before their backoff ends."""
    driven = plain()
    node = make_node("a", cpu=1000)
    pod = make_pod("web", cpu=900)
    blocker = make_pod("blocker", cpu=900, node="a")
    driven.tell(node, blocker, pod)
    driven.run()
    for expected in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        assert driven.queued(pod).backoff_until - driven.now == expected
        driven.tell(
            make_pod("decoy", node="a"), PodGone(make_pod("decoy").ref)
        )  # a delete that does not help
        driven.now += expected
        driven.run()
    driven.tell(PodGone(blocker.ref))
    assert driven.place_of(pod) in ("backoff", "active")


def test_the_flush_tries_a_pod_after_five_minutes_at_the_latest():
    driven = plain()
    pod = make_pod("web", cpu=5000)
    driven.tell(make_node("a"), pod)
    driven.run()
    assert of_type(driven.later(299.0), Attempted) == []
    assert len(of_type(driven.later(32.0), Attempted)) == 1
