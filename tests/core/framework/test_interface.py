"""Verdicts, and the scaling that plugins share."""

import numpy as np
import pytest

from moorage.core.framework.interface import (
    Reason,
    StatefulFilterPlugin,
    Verdict,
    no_change,
    normalize_by_max,
)
from moorage.core.plugins.node_ports import NodePorts

REASONS = (Reason("one"), Reason("two"))


def matrix(*rows):
    """Reasons against nodes."""
    return np.array(rows, dtype=np.bool_)


def test_a_node_fits_if_no_reason_speaks_against_it():
    verdict = Verdict(REASONS, matrix([0, 1, 0, 1], [0, 0, 1, 1]))
    assert verdict.fits.tolist() == [True, False, False, False]


def test_verdicts_with_one_reason_and_with_none():
    assert Verdict(REASONS[:1], matrix([0, 1])).fits.tolist() == [True, False]
    assert Verdict((), np.zeros((0, 2), dtype=np.bool_)).fits.tolist() == [True, True]


def test_a_lazy_verdict_explains_itself_once_and_only_when_asked():
    asked = []

    def explain():
        asked.append(1)
        return matrix([0, 1], [0, 0])

    verdict = Verdict.lazy(REASONS, np.array([True, False]), explain)
    assert (verdict.fits.tolist(), asked) == ([True, False], [])
    assert verdict.failed.tolist() == verdict.failed.tolist() == [[False, True], [False, False]]
    assert asked == [1]


@pytest.mark.parametrize(
    ("raw", "scaled", "reversed_"),
    [
        ([0, 1, 3], [0, 33, 100], [100, 67, 0]),
        ([7], [100], [0]),
        ([0, 0], [0, 0], [100, 100]),
        ([], [], []),
        ([200, 1], [100, 0], [0, 100]),
    ],
)
def test_the_highest_becomes_a_hundred(raw, scaled, reversed_):
    """``DefaultNormalizeScore``: integer division, and reversing is a hundred less that."""
    given = np.array(raw, dtype=np.int64)
    assert normalize_by_max(given).tolist() == scaled
    assert normalize_by_max(given, reverse=True).tolist() == reversed_
    assert given.tolist() == raw


def test_some_scores_are_in_range_already():
    raw = np.array([3, 99])
    assert no_change(raw) is raw


def test_which_filters_count_pods_in_their_state():
    class Counting(NodePorts):
        def with_pods(self, state, row, added, removed, snapshot):
            return state

    assert isinstance(Counting(), StatefulFilterPlugin)
    assert not isinstance(NodePorts(), StatefulFilterPlugin)
