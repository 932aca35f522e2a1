"""Which budget guards which pod, found by labels."""

from moorage.core.framework.budgets import NO_BUDGET, SEVERAL, Budgets
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from tests.kit.models import label_in, make_pod


def budget(name="keep", allowed=1, *, selector=None, namespace="default", **fields):
    """A budget for pods of app x unless told otherwise."""
    selector = LabelSelector((label_in("app", "x"),)) if selector is None else selector
    return DisruptionBudget(namespace, name, selector, allowed, **fields)


X, Y = {"app": "x"}, {"app": "y"}
NOT_Y = LabelSelector((Requirement("app", Operator.NOT_IN, ("y",)),))


def test_the_number_of_the_only_budget():
    pods = [
        make_pod("a", labels=X),
        make_pod("b", labels=Y),
        make_pod("c", labels={"app": "z"}),
        make_pod("d"),
    ]
    budgets = Budgets(
        [budget(selector=LabelSelector((label_in("app", "y"),))), budget(), budget(selector=NOT_Y)]
    )
    assert budgets.guarding(pods).tolist() == [SEVERAL, 0, 2, NO_BUDGET]
    assert Budgets(()).guarding(pods).tolist() == [NO_BUDGET] * 4
    assert budgets.allowed().tolist() == [1, 1, 1]


def test_it_agrees_with_the_budget_itself():
    pods = [
        make_pod("a", labels=X),
        make_pod("gone", labels=X),
        make_pod("b", labels=X, namespace="other"),
        make_pod("c"),
    ]
    for one in (
        budget(disrupted=frozenset(("gone",))),
        budget(namespace="other"),
        budget(selector=LabelSelector()),
        DisruptionBudget("default", "none"),
        budget(selector=NOT_Y),
    ):
        assert [number == 0 for number in Budgets([one]).guarding(pods)] == [one.guards(pod) for pod in pods]


def test_a_budget_is_used_up_in_order():
    pods = [make_pod(name, labels=X) for name in "abc"]
    assert Budgets([budget(allowed=2)]).broken(pods) == [False, False, True]
    assert Budgets([budget(allowed=-1)]).broken(pods) == [True, True, True]


def test_the_first_broken_budget_spares_the_others():
    """kube-scheduler looks no further once a pod breaks one."""
    both, only_second = make_pod("both", labels={"app": "x", "b": "1"}), make_pod("second", labels={"b": "1"})
    second = budget("second", 1, selector=LabelSelector((label_in("b", "1"),)))
    assert Budgets([budget(allowed=0), second]).broken([both, only_second]) == [True, False]
    assert Budgets([budget(allowed=1), second]).broken([both, only_second]) == [False, True]
