"""Picking one of the best nodes."""

import numpy as np

from moorage.core.cycle.selection import best_rows, pick

ROWS = np.array([2, 3, 5, 7])


def test_the_best_are_all_those_with_the_highest_total():
    assert best_rows(ROWS, np.array([10, 30, 20, 30])).tolist() == [3, 7]
    assert best_rows(ROWS, np.array([-4, -4, -9, -4])).tolist() == [2, 3, 7]


def test_every_one_of_the_best_is_drawn_about_as_often():
    rng = np.random.default_rng(0)
    drawn = [pick(ROWS, rng) for _ in range(4000)]
    assert [row for row in ROWS if not 850 < drawn.count(row) < 1150] == []


def test_without_a_choice_no_chance_is_used():
    """So that a placement without ties does not move the draws that come after it."""
    rng, untouched = np.random.default_rng(0), np.random.default_rng(0)
    assert pick(ROWS[:1], rng) == 2
    assert rng.bit_generator.state == untouched.bit_generator.state
