"""Places that others choose: booked only where nothing speaks against it, and given back when the binding fails."""

from moorage.core.engine import Engine, EngineConfig
from moorage.core.framework.interface import Rejected
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded, NodeApplied, PodBound
from moorage.core.model.instructions import Bind, FetchPod, Placement
from moorage.core.profile import bare_profile
from tests.core.driving import profile_with
from tests.kit.models import make_node, make_pod


def engine_with(profile=None):
    profile = profile or bare_profile()
    engine = Engine(EngineConfig(profiles={profile.scheduler_name: profile}))
    engine.handle(NodeApplied(make_node("a", cpu=1000)), 0.0)
    return engine


def test_a_claim_is_looked_up_when_no_stream_shows_it_and_ends_when_one_does():
    engine = engine_with()
    pod = make_pod("web", cpu=100)
    assert engine.claims.claim(pod, "a", 0.0) == Bind((Placement(pod.ref, "a"),))
    assert engine.cache.assumed_count == 1
    assert engine.last_look(Placement(pod.ref, "a")) is None
    assert FetchPod(pod.ref) in engine.step(3.0)
    engine.handle(BindSucceeded(pod.ref, "a"), 3.0)
    assert engine.cache.assumed_count == 1
    engine.handle(PodBound(make_pod("web", cpu=100, node="a")), 4.0)
    assert engine.cache.assumed_count == 0
    assert engine.next_wake() is None


def test_a_failed_binding_gives_the_place_back():
    engine = engine_with(profile_with())
    first, second = make_pod("one", cpu=800), make_pod("two", cpu=800)
    assert isinstance(engine.claims.claim(first, "a", 0.0), Bind)
    assert engine.claims.claim(second, "a", 0.0).reasons == ("Insufficient cpu",)
    engine.handle(BindFailed(first.ref, "a", BindFailure.CONFLICT, "no", 0.0), 1.0)
    assert isinstance(engine.claims.claim(second, "a", 1.0), Bind)


def test_what_cannot_be_claimed():
    engine = engine_with(profile_with())
    pod = make_pod("web", cpu=100)
    assert engine.claims.claim(pod, "x", 0.0).reasons == ("node x is not known",)
    engine.claims.claim(pod, "a", 0.0)
    assert engine.claims.claim(pod, "a", 0.0).reasons == ("the pod takes room on node a already",)


class Stingy:
    """Reserves nothing for anybody."""

    name = "Stingy"

    def __init__(self):
        self.undone = []

    def reserve(self, pod, node_name, snapshot):
        return Rejected(("all is taken",))

    def unreserve(self, pod, node_name, snapshot):
        self.undone.append(pod.name)

    def wakes_on(self):
        return (WakesOn(Resource.NODE, Action.ADD),)


def test_what_cannot_be_reserved_leaves_no_trace():
    stingy = Stingy()
    engine = engine_with(profile_with(stingy))
    assert engine.claims.claim(make_pod("web", cpu=100), "a", 0.0).reasons == ("all is taken",)
    assert stingy.undone == ["web"]
    assert len(engine.cache) == 0
    assert engine.next_wake() is None
