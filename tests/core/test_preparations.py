"""Pods that wait for their volumes before they are bound: what is written and waited for, and every way it can end."""

from dataclasses import replace

import pytest

from moorage.core.framework.interface import GivenUp, Preparation, Progress, Wait
from moorage.core.model.events import (
    BindFailure,
    NodeGone,
    PodGone,
    PodLeftPending,
    StorageApplied,
    StorageGone,
    VolumesNotPrepared,
    VolumesPrepared,
)
from moorage.core.model.instructions import Attempted, Bind, BindVolume, PrepareVolumes, Record, SelectNode
from moorage.core.model.storage import StorageKind
from tests.core.driving import Driven, Permitting, assert_empty, conditions, explode, of_type, placements
from tests.kit.models import make_node
from tests.kit.volume_models import HOST, LATE, LOCAL, bound, make_claim, make_volume, with_claims

A = make_node("a", labels={HOST: "a"})
B = make_node("b", labels={HOST: "b"})


def driven(*objects, nodes=(A,), plugins=()):
    """An engine without preemption that knows these storage objects."""
    made = Driven(*plugins, without=("DefaultPreemption",))
    made.tell(*nodes, *map(StorageApplied, (LATE, LOCAL, *objects)))
    return made


def order_of(told):
    """The one PrepareVolumes among the instructions."""
    (order,) = of_type(told, PrepareVolumes)
    return order


def written(made, order, *versions):
    """The adapter's answer."""
    made.tell(VolumesPrepared(order.ref, order.ticket, versions))


def errors(told):
    """The words of every failed attempt."""
    return [i.message for i in of_type(told, Attempted) if i.result.value == "error"]


def prebind(text):
    return f'running PreBind plugin "VolumeBinding": {text}'


# -- the way it should go ------------------------------------------------------------------------


def test_an_existing_volume_is_given_to_the_claim_and_then_the_pod_is_bound():
    claim, volume = make_claim("data"), make_volume("disk", host="a")
    made = driven(claim, volume, nodes=(A, B))
    pod = with_claims("web", "data")
    made.tell(pod)
    told = made.run()
    order = order_of(told)
    assert order == PrepareVolumes(pod.ref, 1, (BindVolume("disk", "1", claim.ref),))
    assert of_type(told, Bind) == []
    assert made.engine.stats()["preparing"] == 1
    written(made, order, "2")
    made.tell(StorageApplied(replace(volume, claim=claim.ref, phase="Bound", resource_version="2")))
    assert made.run() == []
    made.tell(StorageApplied(bound(claim, "disk")))
    assert placements(made.run()) == {"web": "a"}
    assert made.engine.stats()["preparing"] == 0
    made.succeed(pod, "a")
    made.tell(replace(pod, node_name="a"))
    made.run()
    made.tell(PodGone(pod.ref), NodeGone("a"), NodeGone("b"))
    assert_empty(made.engine)


def test_a_volume_that_names_the_claim_already_gets_the_uid():
    claim = make_claim("data")
    volume = replace(make_volume("disk"), claim=replace(claim.ref, uid=""))
    made = driven(claim, volume)
    made.tell(with_claims("web", "data"))
    assert order_of(made.run()).steps == (BindVolume("disk", "1", claim.ref, prebound=True),)


def test_a_volume_is_provisioned_for_the_chosen_node():
    claim = make_claim("data", storage_class="late")
    made = driven(claim)
    pod = with_claims("web", "data")
    made.tell(pod)
    order = order_of(made.run())
    assert order.steps == (SelectNode(claim.ref, "1", "a"),)
    written(made, order, "2")
    selected = replace(claim, selected_node="a", resource_version="2")
    made.tell(StorageApplied(selected))
    assert made.run() == []
    # The claim may be shown before its volume is.
    made.tell(StorageApplied(bound(selected, "pvc-1", "3")))
    assert made.run() == []
    made.tell(StorageApplied(make_volume("pvc-1", storage_class="late", host="a", claim=claim)))
    assert placements(made.run()) == {"web": "a"}


def test_what_the_streams_show_first_is_not_taken_for_news():
    """The write is answered before the watch shows it: until then the claim looks as if nothing was selected."""
    claim = make_claim("data", storage_class="late")
    made = driven(claim)
    made.tell(with_claims("web", "data"))
    written(made, order_of(made.run()), "12")
    made.tell(StorageApplied(replace(claim, resource_version="9")))
    assert made.run() == []
    made.tell(StorageApplied(bound(replace(claim, selected_node="a"), "pvc-1", "12")))
    made.tell(StorageApplied(make_volume("pvc-1", claim=claim)))
    assert placements(made.run()) == {"web": "a"}


def test_what_is_written_already_is_only_waited_for():
    claim = make_claim("data", storage_class="late", selected_node="a")
    made = driven(claim, nodes=(A, B))
    made.tell(with_claims("web", "data"))
    told = made.run()
    assert of_type(told, PrepareVolumes, Bind) == []
    made.tell(StorageApplied(make_volume("pvc-1", claim=claim)), StorageApplied(bound(claim, "pvc-1")))
    assert placements(made.run()) == {"web": "a"}


def test_several_volumes_are_one_order():
    local, late = make_claim("local"), make_claim("late", storage_class="late")
    volume = make_volume("disk")
    made = driven(local, late, volume)
    made.tell(with_claims("web", "late", "local"))
    order = order_of(made.run())
    assert order.steps == (BindVolume("disk", "1", local.ref), SelectNode(late.ref, "1", "a"))
    written(made, order, "2", "3")
    made.tell(StorageApplied(replace(volume, claim=local.ref, resource_version="2")))
    made.tell(StorageApplied(bound(local, "disk")))
    assert made.run() == []
    made.tell(StorageApplied(make_volume("pvc-1", claim=late)))
    made.tell(StorageApplied(bound(replace(late, selected_node="a"), "pvc-1")))
    assert placements(made.run()) == {"web": "a"}


def test_a_pod_whose_claims_are_bound_is_bound_at_once():
    claim = make_claim("data", volume="disk")
    made = driven(claim, make_volume("disk", claim=claim))
    made.tell(with_claims("web", "data"))
    assert placements(made.run()) == {"web": "a"}


def test_permit_comes_first():
    claim = make_claim("data", storage_class="late")
    permitting = Permitting(lambda pod, node: Wait(30.0))
    made = driven(claim, plugins=(permitting,))
    made.tell(with_claims("web", "data"))
    assert of_type(made.run(), PrepareVolumes) == []
    permitting.answer = lambda pod, node: None
    made.tell(with_claims("other"))
    order = order_of(made.run())
    assert order.steps == (SelectNode(claim.ref, "1", "a"),)


def test_other_pods_go_on_in_the_meantime():
    made = driven(make_claim("data", storage_class="late"))
    made.tell(with_claims("web", "data"), with_claims("plain"))
    assert placements(made.run()) == {"plain": "a"}


# -- promises ------------------------------------------------------------------------------------


def test_a_promised_volume_is_not_promised_again_and_is_free_when_the_promise_ends():
    first, second = make_claim("first"), make_claim("second")
    made = driven(first, second, make_volume("disk"))
    one, two = with_claims("one", "first"), with_claims("two", "second")
    made.tell(one)
    order = order_of(made.run())
    made.tell(two)
    text = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
    assert conditions(made.run()) == [("two", "Unschedulable", text)]
    assert made.place_of(two) == "unschedulable"
    made.now += 5
    made.tell(VolumesNotPrepared(order.ref, order.ticket, BindFailure.CONFLICT, "another version (HTTP 409)"))
    told = made.run()
    assert errors(told) == [prebind("another version (HTTP 409)")]
    assert order_of(told).ref == two.ref


def test_a_second_pod_with_the_claim_follows_to_the_selected_node():
    claim = make_claim("data", storage_class="late", access_modes=("ReadWriteMany",))
    made = driven(claim, nodes=(A, B))
    made.tell(with_claims("one", "data"))
    (step,) = order_of(made.run()).steps
    made.tell(with_claims("two", "data"))
    told = made.run()
    assert order_of(told).steps == (
        step,
    )  # the first pod's may still fail, and whoever comes second finds it done
    assert of_type(told, Attempted)[0].node_name == step.node_name


def test_the_promise_to_a_second_pod_outlives_the_first_one_s():
    claim = make_claim("data", storage_class="late", access_modes=("ReadWriteMany",))
    made = driven(claim, nodes=(A, B))
    one, two = with_claims("one", "data"), with_claims("two", "data")
    made.tell(one)
    (step,) = order_of(made.run()).steps
    made.tell(two)
    made.run()
    made.tell(PodLeftPending(one.ref))
    made.run()
    believed = made.engine.snapshot.storage.claim("default/data")
    assert believed.selected_node == step.node_name


# -- ways it can go wrong ------------------------------------------------------------------------


def preparing(*, claim=None, volume=None, nodes=(A,)):
    """An engine with the pod ``web`` on its way to node ``a``: its order is written."""
    claim = claim or make_claim("data", storage_class="late")
    objects = [claim] if volume is None else [claim, volume]
    made = driven(*objects, nodes=nodes)
    pod = with_claims("web", "data")
    made.tell(pod)
    order = order_of(made.run())
    written(made, order, "2")
    if volume is None:
        made.tell(StorageApplied(replace(claim, selected_node="a", resource_version="2")))
    else:
        made.tell(StorageApplied(replace(volume, claim=claim.ref, resource_version="2")))
    assert made.run() == []
    return made, pod, claim


def test_a_provisioner_that_cannot_takes_the_node_away_and_the_pod_is_tried_again():
    made, pod, claim = preparing()
    made.tell(StorageApplied(replace(claim, resource_version="3")))
    told = made.run()
    text = prebind('binding volumes: provisioning failed for PVC "data"')
    assert errors(told) == [text]
    assert ("web", "SchedulerError", text) in conditions(told)
    assert made.place_of(pod) == "backoff"
    assert made.engine.stats()["assumed"] == 0
    assert len(made.engine.snapshot.storage.reservations) == 0
    again = order_of(made.later(1.0))
    assert (again.ticket, again.steps) == (2, (SelectNode(claim.ref, "3", "a"),))


def test_what_takes_too_long_is_given_up():
    made, pod, _ = preparing()
    assert errors(made.later(599.0)) == []
    told = made.later(1.5)
    assert errors(told)[0] == prebind("binding volumes: context deadline exceeded")
    assert made.place_of(pod) == "backoff"


def test_an_order_that_is_never_answered_is_given_up_too():
    made = driven(make_claim("data", storage_class="late"))
    made.tell(with_claims("web", "data"))
    order = order_of(made.run())
    told = made.later(600.5)
    assert errors(told)[0] == prebind("binding volumes: context deadline exceeded")
    written(made, order, "2")
    assert made.run() == []


@pytest.mark.parametrize("how", ["gone", "made-again"])
def test_a_claim_that_is_deleted_in_the_meantime(how):
    made, _, claim = preparing()
    if how == "gone":
        made.tell(StorageGone(StorageKind.CLAIM, claim.key))
    else:
        made.tell(StorageApplied(replace(claim, uid="another", resource_version="8")))
    text = 'failed to check provisioning pvc: persistentvolumeclaims "default/data" not found'
    assert errors(made.run()) == [prebind(f"binding volumes: {text}")]
    if how == "gone":
        text = '0/1 nodes are available: persistentvolumeclaim "data" not found.'
        assert conditions(made.later(1.0)) == [("web", "Unschedulable", text)]
        made.now += 10
        made.tell(StorageApplied(claim))
        assert order_of(made.run()).steps == (SelectNode(claim.ref, "1", "a"),)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("gone", 'failed to check binding: persistentvolumes "disk" not found'),
        ("reset", 'ClaimRef got reset for pv "disk"'),
        ("taken", 'ClaimRef got reset for pv "disk"'),
        ("moved", 'pv "disk" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'),
    ],
)
def test_a_volume_that_is_lost_in_the_meantime(change, text):
    claim, volume = make_claim("data"), make_volume("disk", host="a")
    made, _, _ = preparing(claim=claim, volume=volume)
    match change:
        case "gone":
            made.tell(StorageGone(StorageKind.VOLUME, "disk"))
        case "reset":
            made.tell(StorageApplied(replace(volume, resource_version="3")))
        case "taken":
            made.tell(StorageApplied(replace(volume, claim=make_claim("rival").ref, resource_version="3")))
        case "moved":
            elsewhere = make_volume("disk", host="b", claim=claim, version="3")
            made.tell(StorageApplied(elsewhere))
    assert errors(made.run()) == [prebind(f"binding volumes: {text}")]


def test_a_claim_of_an_existing_volume_that_is_deleted():
    claim, volume = make_claim("data"), make_volume("disk")
    made, _, _ = preparing(claim=claim, volume=volume)
    made.tell(StorageGone(StorageKind.CLAIM, claim.key))
    text = 'failed to check binding: persistentvolumeclaims "default/data" not found'
    assert errors(made.run()) == [prebind(f"binding volumes: {text}")]


def test_a_volume_that_was_made_in_the_wrong_place():
    made, _, claim = preparing()
    made.tell(StorageApplied(make_volume("pvc-1", host="b", claim=claim)))
    made.tell(StorageApplied(bound(replace(claim, selected_node="a"), "pvc-1")))
    text = 'pv "pvc-1" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
    assert errors(made.run()) == [prebind(f"binding volumes: {text}")]


def test_a_node_that_is_gone():
    made, pod, _ = preparing()
    made.tell(NodeGone("a"))
    text = 'binding volumes: failed to get node "a": node "a" not found'
    assert errors(made.run()) == [prebind(text)]
    assert made.place_of(pod) == "backoff"


def test_a_node_that_no_longer_reaches_the_volume():
    claim, volume = make_claim("data"), make_volume("disk", host="a")
    made, _, _ = preparing(claim=claim, volume=volume)
    made.tell(replace(A, labels={HOST: "renamed"}))
    (text,) = errors(made.run())
    assert "node affinity doesn't match node" in text


@pytest.mark.parametrize("end", ["deleted", "finished", "bound elsewhere"])
def test_a_pod_that_has_no_use_for_volumes_any_more_gives_everything_back(end):
    made, pod, _ = preparing()
    made.tell(B)
    match end:
        case "deleted":
            made.tell(replace(pod, deleting=True))
        case "finished":
            made.tell(PodLeftPending(pod.ref))
        case "bound elsewhere":
            made.tell(replace(pod, node_name="b"))
    assert errors(made.run()) == []
    assert made.engine.stats()["preparing"] == 0
    assert len(made.engine.snapshot.storage.reservations) == 0
    on_b = end == "bound elsewhere"
    assert [len(pods) for pods in made.engine.snapshot.pods] == [0, int(on_b)]
    if not on_b:
        made.tell(NodeGone("a"), NodeGone("b"))
        assert_empty(made.engine)


@pytest.mark.parametrize(
    ("failure", "told_so"),
    [
        (BindFailure.CONFLICT, True),
        (BindFailure.GONE, True),
        (BindFailure.FORBIDDEN, True),
        (BindFailure.UNAVAILABLE, True),
        (BindFailure.NOT_LEADER, False),
    ],
)
def test_a_write_that_fails(failure, told_so):
    made = driven(make_claim("data", storage_class="late"))
    pod = with_claims("web", "data")
    made.tell(pod)
    order = order_of(made.run())
    made.tell(VolumesNotPrepared(order.ref, order.ticket, failure, "no such luck"))
    told = made.run()
    if told_so:
        assert errors(told) == [prebind("no such luck")]
        assert made.place_of(pod) == "backoff"
    else:
        assert of_type(told, Record) == []
        assert order_of(told).ticket == 2


def test_the_time_that_the_server_asks_for_is_waited():
    made = driven(make_claim("data", storage_class="late"))
    made.tell(with_claims("web", "data"))
    order = order_of(made.run())
    made.tell(VolumesNotPrepared(order.ref, order.ticket, BindFailure.UNAVAILABLE, "busy", 30.0))
    assert of_type(made.later(29.0), PrepareVolumes) == []
    assert of_type(made.later(2.0), PrepareVolumes) != []


def test_an_answer_to_an_earlier_order_means_nothing():
    made, _, claim = preparing()
    made.tell(StorageApplied(replace(claim, resource_version="3")))
    made.run()
    order = order_of(made.later(1.0))
    assert order.ticket == 2
    made.tell(VolumesPrepared(order.ref, 1, ("7",)))
    made.tell(VolumesNotPrepared(order.ref, 1, BindFailure.CONFLICT, "late"))
    assert made.run() == []
    written(made, order, "4")
    made.tell(StorageApplied(make_volume("pvc-1", claim=claim)))
    made.tell(StorageApplied(bound(replace(claim, selected_node="a"), "pvc-1")))
    assert placements(made.run()) == {"web": "a"}


def test_a_bind_that_fails_afterwards_finds_the_volumes_ready():
    made, pod, claim = preparing()
    made.tell(StorageApplied(make_volume("pvc-1", host="a", claim=claim)))
    made.tell(StorageApplied(bound(replace(claim, selected_node="a"), "pvc-1")))
    assert placements(made.run()) == {"web": "a"}
    made.fail(pod, "a", BindFailure.CONFLICT)
    told = made.later(1.0)
    assert of_type(told, PrepareVolumes) == []
    assert placements(told) == {"web": "a"}


def test_a_change_that_concerns_nobody_does_not_end_a_wait():
    made, _, claim = preparing()
    made.tell(
        StorageApplied(make_claim("another")),
        StorageApplied(make_volume("v")),
        replace(A, annotations={"x": "y"}),
    )
    made.tell(StorageApplied(replace(claim, selected_node="a", resource_version="5")))
    assert made.run() == []


# -- other plugins -------------------------------------------------------------------------------


class Fetching:
    """A PreBind plugin whose answers are set by the test."""

    name = "Fetching"

    def __init__(self, preparation=None, progress=Progress.UNDER_WAY):
        self.preparation, self.answer = preparation, progress

    def pre_bind(self, pod, node_name, snapshot):
        return self.preparation(pod) if callable(self.preparation) else self.preparation

    def progress(self, pod, node_name, snapshot):
        return self.answer(pod) if callable(self.answer) else self.answer

    def overdue(self):
        return "too slow"

    def wakes_on(self):
        return ()


def test_any_plugin_can_have_a_pod_wait():
    fetching = Fetching(Preparation((), 10.0))
    made = driven(plugins=(fetching,))
    made.tell(with_claims("web"))
    assert of_type(made.run(), Bind) == []
    told = made.later(10.0)
    assert errors(told)[0] == 'running PreBind plugin "Fetching": too slow'


def test_the_wait_is_over_when_every_plugin_is_done():
    fetching = Fetching(Preparation((), 10.0), Progress.DONE)
    made = driven(make_claim("data", storage_class="late", selected_node="a"), plugins=(fetching,))
    claim = make_claim("data", storage_class="late", selected_node="a")
    made.tell(with_claims("web", "data"))
    assert of_type(made.run(), Bind) == []
    made.tell(StorageApplied(make_volume("v", claim=claim)), StorageApplied(bound(claim, "v")))
    assert placements(made.run()) == {"web": "a"}


@pytest.mark.parametrize(
    ("fetching", "text"),
    [
        (Fetching(explode), 'running PreBind plugin "Fetching": RuntimeError: boom'),
        (Fetching(Preparation((), 1.0), explode), 'running PreBind plugin "Fetching": RuntimeError: boom'),
        (Fetching(Preparation((), 1.0), GivenUp("no")), 'running PreBind plugin "Fetching": no'),
    ],
)
def test_a_plugin_that_fails_costs_the_pod_its_place(fetching, text):
    made = driven(plugins=(fetching,))
    pod = with_claims("web")
    made.tell(pod)
    assert errors(made.run()) == [text]
    assert made.place_of(pod) == "backoff"
    assert made.engine.stats()["pods"] == 0
