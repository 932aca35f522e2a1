"""The soak's verdict, and that its churn comes to as many events as were asked for."""

import pytest

from tests.bench.soak import Window, churn, judge


def windows(memory, microseconds):
    return [Window(1000, size, micro / 1e6 * 1000) for size, micro in zip(memory, microseconds, strict=True)]


def test_what_stays_is_flat():
    verdict = judge(windows([80, 100, 101, 100, 101, 100, 101, 100, 101, 100], [300] * 10))
    assert verdict.flat


@pytest.mark.parametrize(
    ("memory", "cpu"),
    [([100 + 3 * i for i in range(20)], [100] * 20), ([100] * 20, [100 + 5 * i for i in range(20)])],
    ids=["memory", "cpu"],
)
def test_what_grows_is_not(memory, cpu):
    assert not judge(windows(memory, cpu)).flat


def test_growth_while_warming_up_does_not_count():
    memory = [10 * i for i in range(1, 7)] + [60] * 14
    assert judge(windows(memory, [100] * 20)).flat


def test_too_few_windows_tell_nothing():
    with pytest.raises(ValueError, match="too few"):
        judge(windows([1, 1], [1, 1]))


def test_pods_come_are_bound_and_go():
    found = list(churn(600, nodes=5, windows=3, standing=50))
    assert len(found) == 3
    assert 600 <= sum(window.events for window in found) <= 610
    assert all(window.resident > 0 and window.cpu > 0 for window in found)
