"""The record of a decision: spelled as Kubernetes spells it, and empty where nothing was found."""

from moorage.core.model.decision import Code, Decision, Rejection
from moorage.core.model.pod import PodRef


def test_codes_are_spelled_as_in_kube_scheduler():
    assert [code.value for code in Code] == ["Unschedulable", "UnschedulableAndUnresolvable"]


def test_a_rejection_can_be_resolved_unless_it_says_otherwise():
    assert Rejection("P", ("no",)) == Rejection("P", ("no",), Code.UNSCHEDULABLE)


def test_decisions_share_nothing_that_could_be_written_to():
    ref = PodRef("default", "web", "1")
    one, two = Decision(ref), Decision(ref)
    assert one == two
    assert one.filtered is not two.filtered
    assert one.scores is not two.scores
