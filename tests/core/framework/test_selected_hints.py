"""Which changes of pods concern a plugin that counts the pods of policies."""

import pytest

from moorage.core.framework.selected_hints import SelectedHints
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from tests.kit.models import make_pod
from tests.kit.policies import BLUE, RED, selects

X, Y = make_pod("a", labels={"app": "x"}), make_pod("a", labels={"app": "y"})
OTHERS = make_pod("a", labels={"tier": ""})
TIER = make_pod("a", labels={"app": "x", "tier": ""})


def event(old, new):
    return ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, old, new)


@pytest.mark.parametrize(
    ("old", "new", "counted", "otherwise"),
    [
        (None, X, True, True),
        (X, None, True, True),
        (None, Y, False, False),
        (None, OTHERS, False, False),  # a policy selects it, but not one of these
        (X, Y, True, True),
        (Y, X, True, True),
        (X, X, True, False),
        (Y, Y, False, False),
        (X, TIER, True, False),  # blue is not asked about
    ],
)
def test_only_pods_of_the_policies_matter(old, new, counted, otherwise):
    hints = SelectedHints(frozenset((RED,)), selects)
    assert hints.counted(event(old, new)) is counted
    assert hints.counted_otherwise(event(old, new)) is otherwise


def test_all_policies_asked_about_matter():
    assert SelectedHints(frozenset((RED, BLUE)), selects).counted_otherwise(event(X, TIER))


def test_if_nobody_knows_who_selects_whom_every_pod_may_matter():
    hints = SelectedHints(frozenset((RED,)), None)
    assert hints.counted(event(None, Y))
    assert hints.counted_otherwise(event(Y, Y))
