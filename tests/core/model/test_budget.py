"""Which pods a disruption budget guards."""

from dataclasses import replace

import pytest

from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from tests.kit.models import label_in, make_pod

POD = make_pod("web", labels={"app": "web"})
BUDGET = DisruptionBudget("default", "keep", LabelSelector((label_in("app", "web"),)))


def test_a_selected_pod_is_guarded_however_many_may_go():
    assert BUDGET.guards(POD)
    assert replace(BUDGET, allowed=5).guards(POD)


@pytest.mark.parametrize(
    ("budget", "pod"),
    [
        (BUDGET, replace(POD, labels={"app": "db"})),
        (BUDGET, replace(POD, namespace="other")),
        (replace(BUDGET, disrupted=frozenset({"web"})), POD),
        (replace(BUDGET, selector=None), POD),
        (replace(BUDGET, selector=LabelSelector()), POD),
    ],
    ids=["other-labels", "other-namespace", "disrupted-already", "no-selector", "empty-selector"],
)
def test_others_are_not(budget, pod):
    """kube-scheduler: a nil or an empty selector matches nothing here, other than elsewhere in Kubernetes."""
    assert not budget.guards(pod)


def test_a_pod_without_labels_is_guarded_by_none():
    """Not even by a selector that admits it (``FilterVictimsWithPDBViolation`` looks at the labels first)."""
    budget = replace(BUDGET, selector=LabelSelector((Requirement("app", Operator.DOES_NOT_EXIST),)))
    assert budget.guards(replace(POD, labels={"tier": "x"}))
    assert not budget.guards(replace(POD, labels={}))
