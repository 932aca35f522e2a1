"""The engine's outputs: the words that users and dashboards see."""

from moorage.core.model.instructions import AttemptResult, RecordType, SetCondition
from moorage.core.model.pod import PodRef


def test_the_types_of_a_kubernetes_event():
    assert [kind.value for kind in RecordType] == ["Normal", "Warning"]


def test_results_are_kube_scheduler_s_metric_label():
    """``schedule_attempts_total{result=…}``: dashboards filter by these."""
    assert [result.value for result in AttemptResult] == ["scheduled", "unschedulable", "error"]


def test_a_condition_leaves_the_nomination_alone_unless_told():
    """An empty string clears it."""
    assert SetCondition(PodRef("default", "web", "1"), "7", "Unschedulable", "no").nominated_node is None
