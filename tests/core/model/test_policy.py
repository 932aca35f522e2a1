"""What the values of a policy mean by themselves."""

import pytest

from moorage.core.model.policy import AvoidedTaint, PolicyRef
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, Taint


def test_a_policy_is_named_as_kubectl_would():
    assert PolicyRef("", "batch").key == "batch"
    assert PolicyRef("team", "batch").key == "team/batch"


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        (AvoidedTaint("old"), True),
        (AvoidedTaint("new"), False),
        (AvoidedTaint("old", "x"), True),
        (AvoidedTaint("old", ""), False),
        (AvoidedTaint("old", None, NO_SCHEDULE), True),
        (AvoidedTaint("old", "x", NO_EXECUTE), False),
    ],
)
def test_a_taint_is_avoided_by_all_that_the_rule_sets(rule, matches):
    assert rule.matches(Taint("old", "x", NO_SCHEDULE)) is matches
