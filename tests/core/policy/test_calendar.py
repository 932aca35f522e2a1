"""Windows: days, midnight, changes of the clocks, and what comes next."""

import functools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.policy.calendar import Calendar
from tests.kit.policy_builders import at, window

BERLIN = "Europe/Berlin"


def test_without_windows_pods_may_go_for_ever():
    calendar = Calendar(())
    assert calendar.admits(at("2026-12-01 12:00"))
    assert calendar.next_change(at("2026-12-01 12:00")) is None


def test_the_first_instant_is_in_and_the_last_is_out():
    calendar = Calendar((window("Tue", "09:00", "17:00"),))
    assert not calendar.admits(at("2026-12-01 09:00") - 0.5)
    assert calendar.admits(at("2026-12-01 09:00"))
    assert calendar.admits(at("2026-12-01 17:00") - 0.5)
    assert not calendar.admits(at("2026-12-01 17:00"))


def test_days_name_the_day_of_the_start():
    """Monday night reaches into Tuesday; Monday's small hours belong to Sunday, which is not named."""
    calendar = Calendar((window("Mon", "22:00", "06:00", BERLIN),))
    assert not calendar.admits(at("2026-11-30 05:00", BERLIN))
    assert calendar.admits(at("2026-11-30 22:00", BERLIN))
    assert calendar.admits(at("2026-12-01 05:59", BERLIN))
    assert not calendar.admits(at("2026-12-01 06:00", BERLIN))
    assert calendar.next_change(at("2026-12-01 06:00", BERLIN)) == at("2026-12-07 22:00", BERLIN)


def test_an_end_equal_to_the_start_is_a_whole_day():
    calendar = Calendar((window("Sat", "08:00", "08:00"),))
    assert calendar.admits(at("2026-12-05 08:00"))
    assert calendar.admits(at("2026-12-06 07:59"))
    assert not calendar.admits(at("2026-12-06 08:00"))


def test_hold_windows_keep_pods_back_even_where_an_allow_window_is_open():
    calendar = Calendar((window("", "08:00", "20:00"), window("", "12:00", "13:00", hold=True)))
    assert [calendar.admits(at(f"2026-12-01 {hour}:30")) for hour in ("07", "08", "12", "13", "20")] == [
        False, True, False, True, False,
    ]  # fmt: skip


def test_with_hold_windows_alone_pods_go_at_all_other_times():
    calendar = Calendar((window("Tue", "12:00", "13:00", hold=True),))
    assert calendar.admits(at("2026-12-01 11:59"))
    assert calendar.next_change(at("2026-12-01 11:59")) == at("2026-12-01 12:00")
    assert calendar.next_change(at("2026-12-01 12:00")) == at("2026-12-01 13:00")


def test_windows_that_touch_make_one_span():
    calendar = Calendar((window("Tue", "08:00", "12:00"), window("Tue", "12:00", "16:00")))
    assert calendar.next_change(at("2026-12-01 09:00")) == at("2026-12-01 16:00")


def test_a_hold_for_the_whole_week_never_ends():
    calendar = Calendar((window("", "00:00", "00:00", hold=True),))
    assert not calendar.admits(at("2026-12-01 09:00"))
    assert calendar.next_change(at("2026-12-01 09:00")) is None
    assert calendar.next_change(at("2026-12-20 09:00")) is None


def test_zones_are_kept_apart():
    """22:00 in Auckland is 09:00 UTC in December."""
    calendar = Calendar((window("Tue", "22:00", "23:00", "Pacific/Auckland"),))
    assert calendar.next_change(at("2026-12-01 00:00")) == at("2026-12-01 09:00")
    assert calendar.next_change(at("2026-12-01 09:00")) == at("2026-12-01 10:00")


# -- changes of the clocks: on 2026-03-29 Berlin has no 02:00-03:00, on 2026-10-25 it has it twice --


@pytest.mark.parametrize(
    ("start", "end", "opens", "closes"),
    [
        ("02:30", "05:00", "2026-03-29 01:30", "2026-03-29 03:00"),  # 03:30 to 05:00 there
        ("01:00", "02:30", "2026-03-29 00:00", "2026-03-29 01:30"),  # 01:00 to 03:30
        ("02:10", "02:40", "2026-03-29 01:10", "2026-03-29 01:40"),  # 03:10 to 03:40
        ("22:00", "02:30", "2026-03-29 20:00", "2026-03-30 00:30"),  # the day after is an ordinary one
    ],
)
def test_a_skipped_hour_moves_forward(start, end, opens, closes):
    calendar = Calendar((window("Sun", start, end, BERLIN),))
    assert calendar.next_change(at("2026-03-28 20:00")) == at(opens)
    assert calendar.next_change(at(opens)) == at(closes)


def test_a_start_that_moves_behind_the_end_leaves_nothing_of_that_day():
    calendar = Calendar((window("Sun", "02:30", "03:00", BERLIN),))
    assert calendar.next_change(at("2026-03-28 20:00")) == at("2026-04-05 02:30", BERLIN)


@pytest.mark.parametrize(
    ("start", "end", "opens", "closes"),
    [
        ("02:30", "05:00", "2026-10-25 00:30", "2026-10-25 04:00"),  # the first 02:30; three and a half hours
        ("01:00", "02:30", "2026-10-24 23:00", "2026-10-25 00:30"),  # closes at the first 02:30
    ],
)
def test_of_an_hour_that_comes_twice_the_first_is_meant(start, end, opens, closes):
    calendar = Calendar((window("Sun", start, end, BERLIN),))
    assert calendar.next_change(at("2026-10-24 12:00")) == at(opens)
    assert calendar.next_change(at(opens)) == at(closes)


# -- against a look at every minute ---------------------------------------------------------------

STARTS = ("00:00", "01:30", "02:00", "02:30", "03:00", "09:15", "22:00", "23:59")
ENDS = (*STARTS, "24:00")
WINDOWS = st.builds(
    window,
    st.sampled_from(("", "Mon", "Sun", "Sat Sun", "Mon Wed Fri")),
    st.sampled_from(STARTS),
    st.sampled_from(ENDS),
    st.sampled_from(("UTC", BERLIN, "America/New_York", "Pacific/Auckland", "Australia/Lord_Howe")),
    hold=st.booleans(),
)
MOMENTS = st.sampled_from(
    (
        "2026-03-07 12:00",
        "2026-03-28 12:00",
        "2026-04-04 06:00",
        "2026-10-24 12:00",
        "2026-10-31 12:00",
        "2026-12-01 08:20",
    )
)


def open_then(window, instant):
    """By the definition: look at the opening of each day around, as the wall clocks there show it."""
    for back in range(-2, 3):
        day = (datetime.fromtimestamp(instant, window.zone) + timedelta(days=back)).date()
        if day.weekday() not in window.days:
            continue
        over = timedelta(days=0 if window.end > window.start else 1)
        start = on_the_clock(day, window.start, window.zone)
        end = on_the_clock(day + over, window.end, window.zone)
        if start <= instant < end:
            return True
    return False


@functools.cache
def on_the_clock(day, minutes, zone):
    """The first instant of that local time, or as much after the gap as it lies in it."""
    wall = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=minutes)
    offsets = {datetime.fromtimestamp(wall.timestamp() + 3600 * h, zone).utcoffset() for h in range(-36, 37)}
    instants = sorted(wall.timestamp() - offset.total_seconds() for offset in offsets if offset is not None)
    shown = [i for i in instants if datetime.fromtimestamp(i, zone).replace(tzinfo=UTC) == wall]
    return shown[0] if shown else instants[-1]


def may_go(windows, instant):
    is_open = {hold: [open_then(w, instant) for w in windows if w.hold is hold] for hold in (True, False)}
    return not any(is_open[True]) and (not is_open[False] or any(is_open[False]))


@given(st.lists(WINDOWS, min_size=1, max_size=3), MOMENTS, st.integers(0, 1440))
def test_the_next_change_is_what_a_look_at_every_minute_finds(windows, moment, minutes):
    """Sixteen hours, minute by minute."""
    begin = at(moment) + 60 * minutes
    answers = [may_go(windows, begin + 60 * minute) for minute in range(16 * 60)]
    calendar = Calendar(windows)
    assert calendar.admits(begin) == answers[0]
    flips = [begin + 60 * m for m in range(1, len(answers)) if answers[m] != answers[m - 1]]
    found, instant = [], begin
    while (change := calendar.next_change(instant)) is not None and change < begin + 16 * 3600:
        found.append(change)
        instant = change
    assert found == flips


@given(
    st.lists(WINDOWS, min_size=1, max_size=3), st.lists(MOMENTS, min_size=2, max_size=5), st.integers(0, 3000)
)
def test_what_was_asked_before_does_not_matter(windows, moments, minutes):
    used = Calendar(windows)
    for moment in moments:
        instant = at(moment) + 60 * minutes
        assert used.admits(instant) == Calendar(windows).admits(instant)
        assert used.next_change(instant) == Calendar(windows).next_change(instant)


def test_what_is_open_at_the_first_look_may_have_opened_two_days_before():
    night = Calendar([window("Mon", "22:00", "06:00")])
    assert night.admits(at("2026-12-01 03:00"))
    behind = "Etc/GMT+12"  # half a day behind UTC
    whole_day = Calendar([window("Mon", "13:00", "13:00", behind)])
    noon = at("2026-12-02 00:30")
    assert noon == at("2026-12-01 12:30", behind)
    assert whole_day.admits(noon)
    assert whole_day.next_change(noon) == noon + 1800


def test_a_look_at_the_end_of_what_was_worked_out_goes_on():
    calendar = Calendar([window("Mon", "09:00", "10:00")])
    assert calendar.next_change(at("2026-11-30 00:00")) == at("2026-11-30 09:00")
    assert calendar.next_change(at("2026-12-13 00:00")) == at("2026-12-14 09:00")
