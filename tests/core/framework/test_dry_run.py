"""A dry run on one node: who would have to go, and the snapshot as it was afterwards."""

from moorage.core.framework.budgets import Budgets
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.dry_run import NO_VICTIMS, dry_run
from moorage.core.framework.post_filter import Candidate, FailedAttempt
from moorage.core.framework.runner import Runner
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod
from tests.kit.strategies import columns_of


def tried(*pods, cpu, ahead=()):
    """What comes of it on a node of 1,000 milli-CPU with these pods."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("a", cpu=1000))
    for pod in pods:
        snapshot.add_pod(0, pod)
    before = columns_of(snapshot), list(snapshot.pods[0])
    asking = make_pod("web", cpu=cpu, priority=10)
    runner = Runner(default_profile().plugins, {}, snapshot)
    nominated = {0: ahead} if ahead else {}
    attempt = FailedAttempt(runner, runner.pre_filter(asking), Diagnosis(snapshot), nominated)
    found = dry_run(asking, attempt, 0, Budgets(()))
    assert (columns_of(snapshot), list(snapshot.pods[0])) == before
    return found


def test_the_least_important_go():
    low, high = make_pod("low", cpu=500), make_pod("high", cpu=500, priority=5)
    assert tried(low, high, cpu=500) == Candidate("a", (low,))
    assert tried(low, high, cpu=600) == Candidate("a", (high, low))


def test_why_it_does_not_help():
    assert tried(make_pod("other", cpu=1000, priority=10), cpu=1) == (NO_VICTIMS,)
    assert tried(make_pod("low", cpu=10), cpu=1001) == ("Insufficient cpu",)
    assert tried(make_pod("low"), cpu=1) == ('expected at least one victim pod on node "a"',)


def test_room_for_those_ahead_is_left():
    low, lower = make_pod("low", cpu=500, priority=1), make_pod("lower", cpu=500)
    ahead = make_pod("ahead", cpu=400, priority=20)
    assert tried(low, lower, cpu=500, ahead=[ahead]) == Candidate("a", (low, lower))
    assert tried(low, lower, cpu=700, ahead=[ahead]) == ("Insufficient cpu",)
