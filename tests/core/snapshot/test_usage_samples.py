"""Samples of what nodes use, and what is added for pods that the samples do not show yet."""

import math

import pytest

from moorage.core.model.events import UsageSample
from moorage.core.model.resources import CPU, MEMORY
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod

POD = make_pod("web", cpu=100)


def made(now=100.0, **samples):
    snapshot = Snapshot()
    snapshot.now = now
    for name in "ab":
        snapshot.set_node(make_node(name))
    if samples:
        apply(snapshot, **samples)
    return snapshot


def apply(snapshot, **samples):
    return snapshot.usage_samples.apply(
        {name: UsageSample(at, {CPU: cpu}) for name, (at, cpu) in samples.items()}
    )


def used(snapshot, resource=CPU):
    return snapshot.usage_samples.used(resource)[:2].tolist()


def test_before_the_first_samples_nothing_is_kept():
    snapshot = made()
    snapshot.add_pod(0, POD)
    samples = snapshot.usage_samples
    assert not samples.kept
    assert used(snapshot) == [0, 0]
    assert not samples.fresh(1e9).any()
    assert not samples.knows(CPU).any()
    assert samples.resources == ()
    assert samples.goes_stale(10) is None


def test_a_sample_is_fresh_up_to_its_age_and_a_missing_one_never():
    snapshot = made(a=(40.0, 700))
    samples = snapshot.usage_samples
    assert samples.fresh(60.0)[:2].tolist() == [True, False]
    assert samples.fresh(59.9)[:2].tolist() == [False, False]
    assert samples.knows(CPU)[:2].tolist() == [True, False]
    assert not samples.knows(MEMORY).any()
    assert (samples.stale_count(60.0), samples.stale_count(59.0)) == (1, 2)


def test_it_goes_stale_at_the_first_instant_at_which_it_is_not_fresh():
    snapshot = made(a=(40.0, 700), b=(90.0, 1))
    samples = snapshot.usage_samples
    at = samples.goes_stale(60.0)
    assert at == pytest.approx(100.0)
    snapshot.now = at
    assert samples.fresh(60.0)[:2].tolist() == [False, True]
    snapshot.now = math.nextafter(at, 0)
    assert samples.fresh(60.0)[:2].tolist() == [True, True]
    snapshot.now = 100.0
    only_b = snapshot.alive.copy()
    only_b[0] = False
    assert samples.goes_stale(60.0, only_b) == pytest.approx(150.0)


def test_a_pod_adds_its_requests_until_a_sample_is_younger():
    snapshot = made(a=(90.0, 700))
    snapshot.add_pod(0, POD)
    assert used(snapshot) == [800, 0]
    assert snapshot.usage_samples.used_at(CPU, 0) == 800
    assert snapshot.usage_samples.measured(CPU)[0] == 700
    snapshot.now = 115.0
    apply(snapshot, a=(100.0, 700))  # as young as the pod: it may not show it yet
    assert used(snapshot) == [800, 0]
    apply(snapshot, a=(100.5, 790))
    assert used(snapshot) == [790, 0]
    snapshot.remove_pod(0, POD)
    assert used(snapshot) == [790, 0]


@pytest.mark.parametrize(("started", "expected"), [(None, 800), (89.0, 700), (90.0, 800), (500.0, 800)])
def test_a_pod_is_as_old_as_its_start_or_else_as_our_knowledge_of_it(started, expected):
    pod = make_pod("web", cpu=100, started=started)
    snapshot = made(a=(90.0, 700))
    snapshot.add_pod(0, pod)
    assert used(snapshot)[0] == expected
    before = made()
    before.add_pod(0, pod)
    apply(before, a=(90.0, 700))
    assert used(before)[0] == expected


@pytest.mark.parametrize("sampled", [90.0, 105.0])
def test_a_look_without_a_pod_leaves_no_trace(sampled):
    """A dry run takes pods away and puts them back within one instant."""
    snapshot = made(a=(90.0, 700))
    snapshot.add_pod(0, POD)
    snapshot.now = 110.0
    apply(snapshot, a=(sampled, 700))
    before = used(snapshot)
    snapshot.remove_pod(0, POD)
    assert used(snapshot)[0] == 700
    snapshot.add_pod(0, POD)
    assert used(snapshot) == before
    snapshot.now = 111.0
    apply(snapshot, a=(104.0, 700))
    assert used(snapshot) == [700, 0]


def test_a_pod_that_comes_back_later_is_new():
    snapshot = made(a=(110.0, 700))
    snapshot.add_pod(0, POD)
    assert used(snapshot)[0] == 700  # the sample is younger
    snapshot.remove_pod(0, POD)
    snapshot.now = 120.0
    snapshot.add_pod(0, POD)
    assert used(snapshot)[0] == 800


def test_a_node_without_a_sample_loses_what_it_had_and_one_that_comes_finds_its_own():
    snapshot = made(a=(90.0, 700), c=(95.0, 5))
    apply(snapshot, b=(95.0, 1), c=(95.0, 5))
    assert used(snapshot) == [0, 1]
    assert snapshot.usage_samples.fresh(60.0)[:2].tolist() == [False, True]
    snapshot.set_node(make_node("c"))
    assert snapshot.usage_samples.used(CPU)[2] == 5
    snapshot.drop_node("b")
    assert used(snapshot) == [0, 0]
    assert not snapshot.usage_samples.fresh(60.0)[1]
    snapshot.set_node(make_node("b"))
    assert used(snapshot) == [0, 1]


def test_it_grows_with_the_snapshot():
    snapshot = made(a=(90.0, 700), n99=(90.0, 3))
    for number in range(100):
        snapshot.set_node(make_node(f"n{number}"))
    snapshot.add_pod(101, POD)
    assert snapshot.usage_samples.used(CPU)[[0, 101]].tolist() == [700, 103]
    assert snapshot.usage_samples.knows(CPU)[[0, 100, 101]].tolist() == [True, False, True]
    assert snapshot.usage_samples.peak(CPU) >= 700
    apply(snapshot, n99=(200.0, 3))
    assert snapshot.usage_samples.used(CPU)[[0, 101]].tolist() == [0, 3]


def test_when_nobody_measures_any_more_it_is_as_in_the_beginning():
    snapshot = made(a=(90.0, 700))
    snapshot.add_pod(0, POD)
    snapshot.usage_samples.forget()
    assert not snapshot.usage_samples.kept
    assert used(snapshot) == [0, 0]
    apply(snapshot, a=(95.0, 1))
    assert used(snapshot) == [101, 0]


def test_a_change_tells_the_highest_use_since_the_samples_before():
    snapshot = made(a=(90.0, 700), b=(40.0, 10))
    snapshot.add_pod(0, POD)
    snapshot.remove_pod(0, POD)
    change = apply(snapshot, a=(95.0, 600))
    assert change.peak(CPU)[:2].tolist() == [800, 10]
    assert change.peak(MEMORY)[:2].tolist() == [0, 0]
    assert change.was_fresh(50.0)[:2].tolist() == [True, False]
    assert change.knew(CPU)[:2].tolist() == [True, True]
    assert not change.knew(MEMORY).any()
    again = apply(snapshot, a=(96.0, 500))
    assert again.peak(CPU)[:2].tolist() == [600, 0]
    assert again.knew(CPU)[:2].tolist() == [True, False]


def test_a_look_leaves_no_trace_on_a_node_that_has_lost_its_sample():
    snapshot = made(a=(110.0, 700))
    snapshot.add_pod(0, POD)  # the sample is younger
    apply(snapshot, b=(110.0, 1))
    assert used(snapshot) == [0, 1]
    snapshot.remove_pod(0, POD)
    snapshot.add_pod(0, POD)
    assert used(snapshot) == [0, 1]


def test_sums_beyond_int64_do_not_wrap():
    snapshot = made(a=(90.0, (1 << 63) - 1))
    snapshot.add_pod(0, make_pod("huge", cpu=(1 << 63) - 1))
    assert used(snapshot)[0] > 1 << 62
    assert snapshot.usage_samples.peak(CPU) >= used(snapshot)[0]
