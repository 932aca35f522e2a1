"""What a report adds up by itself."""

from moorage.core.model.policy import PolicyRef
from moorage.core.model.policy_report import PolicyReport


def test_matched_pods_are_those_that_wait_and_those_that_are_bound():
    assert PolicyReport(PolicyRef("", "batch"), 1, pending=2, bound=3).matched == 5
