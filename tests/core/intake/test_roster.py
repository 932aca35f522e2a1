"""The profiles in force."""

import pytest

from moorage.core.intake.roster import Roster
from moorage.core.model.policy import Backoff, NodeRules
from moorage.core.plugins.node_name import NodeName
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import Booking, profile_with
from tests.kit.models import make_pod, make_spec
from tests.kit.policy_builders import make_policy


@pytest.fixture
def roster():
    """One profile, "first"."""
    return Roster({"first": profile_with(name="first")}, Snapshot())


def pod_of(name):
    return make_pod("web", spec=make_spec(scheduler_name=name))


def test_a_pod_goes_by_its_own_profile_and_by_the_first_if_it_has_none(roster):
    roster.replace({"first": profile_with(name="first"), "second": profile_with(Booking(), name="second")})
    assert roster.runner_of(pod_of("second")) is roster.runners["second"]
    assert roster.runner_of(pod_of("unknown")) is roster.runners["first"]
    assert "Booking" in roster.wakes(pod_of("second"))
    assert "Booking" not in roster.wakes(pod_of("first"))


def test_the_order_of_the_queue_is_the_profile_s(roster):
    older, newer = roster.sort_key(pod_of("first"), 1.0), roster.sort_key(pod_of("first"), 2.0)
    assert older < newer
    assert roster.sort_key(make_pod("web", priority=5), 2.0) < older


def test_what_is_replaced_is_told_and_the_rest_keeps_its_runner(roster):
    before = roster.runners["first"]
    second = profile_with(name="second")
    assert roster.replace({**roster.profiles, "second": second}) == {"second"}
    assert roster.runners["first"] is before
    changed = profile_with(name="first", without=(NodeName.name,))
    assert roster.replace({"first": changed, "second": second}) == {"first"}
    assert roster.runners["first"] is not before
    assert roster.replace({"second": second}) == frozenset()
    assert roster.runner_of(pod_of("first")) is roster.runners["second"]


def test_there_is_always_a_profile(roster):
    with pytest.raises(ValueError, match="at least one profile"):
        roster.replace({})
    assert list(roster.runners) == ["first"]


# -- policies -------------------------------------------------------------------------------------

POLICY = make_policy("p", labels={"tier": "batch"}, nodes=NodeRules(), backoff=Backoff(3.0))
BATCH = make_pod("b", labels={"tier": "batch"}, scheduler_name="first")


def test_policies_in_force_for_a_pod_lead_to_a_runner_that_is_kept(roster):
    roster.book.apply(POLICY)
    runner = roster.runner_of(BATCH)
    assert runner is not roster.runners["first"]
    assert runner.filters[-1].name == "PolicyNodes"
    assert roster.runner_of(BATCH) is runner
    assert roster.wakes(BATCH) is runner.wakes
    assert roster.runner_of(pod_of("first")) is roster.runners["first"]
    assert roster.plain_runner(BATCH) is roster.runners["first"]
    roster.forget(POLICY)
    assert roster.runner_of(BATCH) is not runner


def test_what_was_only_tried_leaves_no_trace(roster):
    roster.book.apply(POLICY)
    merged = roster.book.shaping(BATCH).merged
    tried = roster.runner_trying(BATCH, merged)
    assert roster.runner_trying(BATCH, merged) is tried
    assert roster.runner_of(BATCH) is not tried


def test_policies_follow_a_pod_of_an_unknown_name_to_the_first_profile(roster):
    roster.book.apply(make_policy("p", nodes=NodeRules()))
    assert roster.runner_of(pod_of("unknown")) is roster.runner_of(pod_of("first"))


def test_a_profile_that_is_replaced_takes_what_was_derived_from_it_along(roster):
    roster.book.apply(POLICY)
    before = roster.runner_of(BATCH)
    roster.replace({"first": profile_with(name="first", without=(NodeName.name,))})
    after = roster.runner_of(BATCH)
    assert after is not before
    assert NodeName.name not in {plugin.name for plugin in after.plugins}


def test_the_backoff_is_what_policies_say(roster):
    roster.book.apply(POLICY)
    assert roster.backoff_of(BATCH) == Backoff(3.0)
    assert roster.backoff_of(pod_of("first")) == Backoff()
