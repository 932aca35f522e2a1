"""Policies: windows, holds, the longest delay, the deadline and the backoff."""

from tests.mutants.mutation import Subject

_MERGE = ("core/policy/merge.py", ("tests/core/policy/test_merge.py",))
_HOLDS = ("core/policy/holds.py", ("tests/core/policy/test_holds.py",))
_TURNS = ("core/turns.py", ("tests/core/test_turns.py", "tests/core/test_engine_policies.py"))
_ENGINE = ("tests/core/test_engine_policies.py",)
_windows = Subject("policy windows", "core/policy/calendar.py", ("tests/core/policy/test_calendar.py",))
_holds = Subject("policy holds", *_HOLDS)
_held = _holds.elsewhere(_TURNS[0], *_TURNS[1])
_delay = Subject("policy maxDelay", *_HOLDS)
_deadline = Subject("policy pendingDeadline", *_TURNS)
_backoff = Subject(
    "policy backoff",
    "core/queue/scheduling_queue.py",
    ("tests/core/queue/test_scheduling_queue.py", *_ENGINE),
)

MUTATIONS = (
    # windows
    _windows.mutation("the week begins on Sunday", "day.weekday() not in", "day.isoweekday() % 7 not in"),
    _windows.mutation(
        "all days but these", "day.weekday() not in window.days", "day.weekday() in window.days"
    ),
    _windows.mutation(
        "the whole day is nothing", "if window.end > window.start else", "if window.end >= window.start else"
    ),
    _windows.mutation("over midnight is on the same day", "else day + timedelta(days=1)", "else day"),
    _windows.mutation("what began yesterday is over", "_BEFORE = 3", "_BEFORE = 0"),
    _windows.mutation("no clock is behind UTC's", "_BEFORE = 3", "_BEFORE = 1"),
    _windows.mutation("next week is too far", "_AHEAD = 15", "_AHEAD = 6"),
    _windows.mutation("all clocks are UTC's", "tzinfo=window.zone", "tzinfo=UTC"),
    _windows.mutation("of two the second", "fold=0", "fold=1"),
    _windows.mutation(
        "every day has 24 hours",
        "naive.replace(tzinfo=window.zone, fold=0).timestamp()",
        "datetime.combine(day, time(), window.zone).timestamp() + 60 * minutes",
    ),
    _windows.mutation("what ends before it begins is open", "if start < end:", "if start != end:"),
    _windows.mutation("Hold allows", "(0, 1) if hold else (1, 0)", "(1, 0) if hold else (0, 1)"),
    _windows.mutation(
        "Allow wins over Hold",
        "return not held and (bool(allowed)",
        "return bool(allowed) or not held and (bool(allowed)",
    ),
    _windows.mutation("Hold alone needs an Allow", "any(not window.hold for", "any(True for"),
    _windows.mutation(
        "outside Allow pods go", "any(not window.hold for", "all(window.hold and not window.hold for"
    ),
    _windows.mutation(
        "the first instant is out",
        "self._admits[bisect_right(self._changes, at)]",
        "self._admits[bisect_right(self._changes, at - 1)]",
    ),
    _windows.mutation("touching windows leave a gap", "or steps[index + 1][0] > instant", "or True"),
    _windows.mutation(
        "nothing changes after two weeks",
        "        self._work_out(at)\n        index = bisect_right(self._changes, at)\n        return",
        "        return",
    ),
    # what holds a pod, and until when
    _holds.mutation(
        "one open window is enough",
        "return Hold(tuple(policy.ref for policy in closed)",
        "return None if len(closed) < len(merged.timed) else Hold(tuple(policy.ref for policy in closed)",
    ),
    _holds.mutation(
        "the first policy only is named",
        "Hold(tuple(policy.ref for policy in closed)",
        "Hold(tuple(policy.ref for policy in closed[:1])",
    ),
    _holds.mutation(
        "all who have windows are named",
        "Hold(tuple(policy.ref for policy in closed)",
        "Hold(tuple(policy.ref for policy in merged.timed)",
    ),
    _holds.mutation(
        "the clock of another policy", "closed[0].windows[0].zone", "merged.timed[0].windows[0].zone"
    ),
    _holds.mutation("UTC for the local time", "local = datetime.fromtimestamp(instant, zone)", "local = utc"),
    _holds.mutation(
        "any change is the end",
        "if all(_may_go(policy, since, at, calendar_of) for policy in timed) != before:",
        "if True:",
    ),
    _holds.mutation("one change is all that is looked for", "_CHANGES = 500", "_CHANGES = 1"),
    _held.mutation("told at each look", "if queued.held_by != message:", "if True:"),
    _held.mutation(
        "no timer for the end", "if flip is not None:", "if flip is not None and not queued.held_by:"
    ),
    _held.mutation(
        "no timer for the beginning", "if flip is not None:", "if flip is not None and queued.held_by:"
    ),
    _held.mutation("what it was promised stays its own", "        self._nominator.withdraw(pod.uid)\n", ""),
    _held.mutation(
        "the nomination stays written", 'nomination = "" if pod.nominated_node else None', "nomination = None"
    ),
    _held.mutation("who was held goes last", "keeps_age=True", "keeps_age=False"),
    _held.mutation(
        "gates do not come first", "if self._runner_of(pod).pre_enqueue(pod) is not None:", "if False:"
    ),
    _held.mutation("a moment late", "and first <= now:", "and first < now:"),
    _held.mutation(
        "who waits for victims is held",
        "if queued.place is Place.IN_FLIGHT or self._queue.held(uid):",
        "if queued.place is Place.IN_FLIGHT:",
    ),
    _held.mutation("the census goes on about it", "            self._census.refuse(uid)\n", ""),
    # maxDelay
    _delay.mutation("a moment longer", "at >= since + policy.max_delay", "at > since + policy.max_delay"),
    _delay.mutation(
        "it closes", "return lifted or calendar_of(policy)", "return not lifted and calendar_of(policy)"
    ),
    _delay.mutation(
        "it is ignored", "lifted = policy.max_delay is not None and", "lifted = policy.max_delay is None and"
    ),
    _delay.mutation("windows go on closing", "if lifted is not None and at >= lifted:", "if False:"),
    _delay.mutation("the later of the two", "else min(change, lifted)", "else max(change, lifted)"),
    _delay.mutation(
        "no end without an opening",
        "return lifted if change is None else",
        "return None if change is None else",
    ),
    _delay.mutation(
        "it runs though gates are there",
        "return hold_of(merged, pod.waiting_since, now",
        "return hold_of(merged, pod.created, now",
        file=_TURNS[0],
        tests=_TURNS[1],
    ),
    # pendingDeadline
    _deadline.mutation("no timer", "turns.append(deadline)", "pass"),
    _deadline.mutation(
        "it runs though gates are there",
        "deadline_of(merged, pod.waiting_since)",
        "deadline_of(merged, pod.created)",
    ),
    _deadline.mutation("told again", "not queued.overdue and not pod.overdue", "not pod.overdue"),
    _deadline.mutation(
        "told though the pod says it", "not queued.overdue and not pod.overdue", "not queued.overdue"
    ),
    _deadline.mutation("told in flight", "elif queued.place is not Place.IN_FLIGHT:", "else:"),
    _deadline.mutation(
        "no warning", "RecordType.WARNING, DEADLINE_REASON", "RecordType.NORMAL, DEADLINE_REASON"
    ),
    _deadline.mutation("PodScheduled is overwritten", "        type=DEADLINE_CONDITION,\n", ""),
    _deadline.mutation("the condition says no", 'status="True"', 'status="False"'),
    _deadline.mutation("minutes beyond the hour", "whole // 60 % 60", "whole // 60"),
    _deadline.mutation(
        "it runs from the epoch",
        "else since + merged.pending_deadline[1]",
        "else merged.pending_deadline[1]",
        file=_HOLDS[0],
        tests=_HOLDS[1],
    ),
    _deadline.mutation(
        "the shortest counts",
        "[(p.ref, p.pending_deadline) for p in ordered]",
        "sorted([(p.ref, p.pending_deadline) for p in ordered], key=lambda each: each[1] or 9e9)",
        file=_MERGE[0],
        tests=_MERGE[1],
    ),
    # backoff
    _backoff.mutation("the first is doubled", "2 ** min(count - 1, 30)", "2 ** min(count, 30)"),
    _backoff.mutation("it does not grow", "2 ** min(count - 1, 30)", "1"),
    _backoff.mutation("no end to it", "float(min(initial *", "float(max(initial *"),
    _backoff.mutation(
        "the policy's first is ignored",
        "settings.initial_backoff if own.initial is None else own.initial",
        "settings.initial_backoff",
    ),
    _backoff.mutation(
        "the policy's longest is ignored",
        "if own.longest is None else own.longest",
        "if own.longest is None else settings.max_backoff",
    ),
    _backoff.mutation(
        "the first is cut off", "max(settings.max_backoff, own.initial or 0.0)", "settings.max_backoff"
    ),
    _backoff.mutation(
        "errors know no policies", "self._backoff_seconds(queued.pod, queued.error_count)", "1.0"
    ),
    _backoff.mutation(
        "first and longest are swapped",
        "Backoff(initial and initial[1], longest and longest[1])",
        "Backoff(longest and longest[1], initial and initial[1])",
        file=_MERGE[0],
        tests=_MERGE[1],
    ),
    _backoff.mutation(
        "the last policy counts",
        "for p in ordered]\n    initial",
        "for p in ordered[::-1]]\n    initial",
        file=_MERGE[0],
        tests=_MERGE[1],
    ),
    _backoff.mutation(
        "policies are not asked",
        "return self.book.shaping(pod).merged.backoff",
        "return Backoff()",
        file="core/intake/roster.py",
        tests=("tests/core/intake/test_roster.py",),
    ),
)
