"""Who is held until when, and what a pod's age means."""

import functools
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.policy import PolicyRef
from moorage.core.policy.calendar import Calendar
from moorage.core.policy.holds import deadline_of, hold_of, next_flip
from moorage.core.policy.merge import merge
from tests.kit.policy_builders import at, make_policy, window

BERLIN = "Europe/Berlin"
NOON = at("2026-12-01 12:00")  # a Tuesday
HOUR = 3600.0


@functools.lru_cache
def calendar_of(policy):
    return Calendar(policy.windows)


def hold(policies, since=NOON, now=NOON):
    return hold_of(merge(policies), since, now, calendar_of)


def test_no_windows_no_hold():
    assert hold([make_policy()]) is None


def test_a_hold_names_the_policy_and_both_times():
    night = make_policy("night", namespace="team-a", windows=(window("", "22:00", "06:00", BERLIN),))
    held = hold([night])
    assert held is not None
    assert held.policies == (PolicyRef("team-a", "night"),)
    assert held.until == at("2026-12-01 21:00")
    assert held.zone == ZoneInfo(BERLIN)
    assert held.message == (
        'held by policy "team-a/night" until 2026-12-01T21:00:00Z (2026-12-01 22:00 Europe/Berlin)'
    )


def test_the_words_stay_the_same_while_it_lasts():
    night = make_policy("night", windows=(window("", "22:00", "06:00", BERLIN),))
    assert hold([night]).message == hold([night], now=NOON + HOUR).message


def test_all_policies_must_let_the_pod_go():
    night = make_policy("night", precedence=2, windows=(window("", "18:00", "06:00"),))
    quiet = make_policy("quiet", precedence=1, windows=(window("", "12:00", "20:00", hold=True),))
    held = hold([quiet, night])
    assert held.policies == (night.ref, quiet.ref)
    assert held.until == at("2026-12-01 20:00")
    assert held.message.startswith('held by policies "night", "quiet" until ')
    assert hold([quiet, night], now=at("2026-12-01 19:00")).policies == (quiet.ref,)
    assert hold([quiet, night], now=at("2026-12-01 20:00")) is None


def test_windows_that_never_meet():
    day = make_policy("day", windows=(window("", "08:00", "20:00"),))
    night = make_policy("night", windows=(window("", "20:00", "08:00"),))
    held = hold([day, night])
    assert held.until is None
    assert held.message == 'held by policy "night": no time at which the pod may go is in sight'


def test_after_its_longest_delay_a_pod_goes_anyway():
    night = make_policy("night", windows=(window("", "22:00", "06:00"),), max_delay=2 * HOUR)
    assert hold([night]).until == NOON + 2 * HOUR
    assert hold([night], now=NOON + 2 * HOUR - 1) is not None
    assert hold([night], now=NOON + 2 * HOUR) is None


def test_a_delay_ends_a_hold_that_no_window_does():
    always = make_policy("always", windows=(window("", "00:00", "00:00", hold=True),), max_delay=2 * HOUR)
    assert hold([always]).until == NOON + 2 * HOUR
    assert hold([always], now=NOON + 2 * HOUR) is None


def test_a_delay_beyond_the_opening_changes_nothing():
    night = make_policy("night", windows=(window("", "22:00", "06:00"),), max_delay=20 * HOUR)
    assert hold([night]).until == at("2026-12-01 22:00")


def test_a_longest_delay_lifts_only_the_windows_of_its_own_policy():
    night = make_policy("night", windows=(window("", "22:00", "06:00"),), max_delay=HOUR)
    quiet = make_policy("quiet", windows=(window("", "12:00", "15:00", hold=True),))
    held = hold([night, quiet])
    assert held.until == at("2026-12-01 15:00")
    assert hold([night, quiet], now=NOON + 2 * HOUR).policies == (quiet.ref,)


# -- what time alone changes ----------------------------------------------------------------------


def turn(policies, since=NOON, now=NOON):
    return next_flip(merge(policies), since, now, calendar_of)


def test_nothing_changes_without_windows():
    assert turn([make_policy()]) is None


def test_a_hold_begins_too():
    day = make_policy("day", windows=(window("", "08:00", "20:00"),))
    assert turn([day]) == at("2026-12-01 20:00")
    assert turn([day], now=at("2026-12-01 20:00")) == at("2026-12-02 08:00")


def test_a_pod_past_its_longest_delay_is_never_held_again():
    night = make_policy("night", windows=(window("", "22:00", "06:00"),), max_delay=HOUR)
    assert turn([night]) == NOON + HOUR
    assert turn([night], now=NOON + HOUR) is None


def test_a_deadline_runs_from_when_the_pod_began_to_wait():
    assert deadline_of(merge([make_policy(pending_deadline=60.0)]), NOON) == NOON + 60
    assert deadline_of(merge([make_policy()]), NOON) is None


WINDOWS = st.lists(
    st.builds(
        window,
        st.sampled_from(("", "Tue", "Wed")),
        st.sampled_from(("08:00", "12:30", "20:00")),
        st.sampled_from(("09:00", "13:00", "23:00")),
        st.sampled_from(("UTC", BERLIN)),
        hold=st.booleans(),
    ),
    min_size=1,
    max_size=2,
)
POLICIES = st.lists(
    st.tuples(WINDOWS, st.sampled_from((None, None, 3 * HOUR, 30 * HOUR))), min_size=1, max_size=3
)


@given(POLICIES, st.integers(0, 96))
def test_the_end_is_what_a_look_at_every_half_hour_finds(policies, late):
    merged = merge(
        make_policy(f"p{n}", windows=tuple(windows), max_delay=delay)
        for n, (windows, delay) in enumerate(policies)
    )
    now = NOON + 1800 * late
    held = hold_of(merged, NOON, now, calendar_of)
    looks = [now + 1800 * step for step in range(1, 48 * 8)]
    others = (at for at in looks if (hold_of(merged, NOON, at, calendar_of) is None) == (held is not None))
    flip = next(others, None)
    assert next_flip(merged, NOON, now, calendar_of) == flip
    if held is not None:
        assert held.until == flip


def test_the_local_time_is_that_of_the_policy_that_holds():
    open_now = make_policy(
        "open", precedence=1, windows=(window("", "08:00", "20:00", "Asia/Tokyo", hold=True),)
    )
    night = make_policy("night", windows=(window("", "22:00", "23:00", BERLIN),))
    held = hold([open_now, night])
    assert (held.policies, held.zone) == ((night.ref,), ZoneInfo(BERLIN))
