"""What lies around the plugins: filtering, normalisation, weights, and the queue."""

from tests.mutants.mutation import Subject

_normal = Subject("normalisation", "core/framework/interface.py", ("tests/core/framework/test_interface.py",))
_rounding = Subject("normalisation", "core/framework/go_math.py", ("tests/core/framework/test_go_math.py",))
_scores = Subject("weights", "core/cycle/scoring.py", ("tests/core/cycle/test_scoring.py",))
_selection = Subject("weights", "core/cycle/selection.py", ("tests/core/cycle/test_selection.py",))
_profile = Subject("weights", "core/profile.py", ("tests/core/test_profile.py",))
_runner = Subject("filtering", "core/framework/runner.py", ("tests/core/framework/test_runner.py",))
_diagnosis = Subject("filtering", "core/framework/diagnosis.py", ("tests/core/framework/test_diagnosis.py",))
_alike = Subject("filtering", "core/framework/alike.py", ("tests/core/framework/test_alike.py",))
_wakes = Subject(
    "requeue",
    "core/queue/unschedulable.py",
    ("tests/core/queue/test_unschedulable.py", "tests/core/queue/test_scheduling_queue.py"),
)
_queue = Subject("requeue", "core/queue/scheduling_queue.py", ("tests/core/queue/test_scheduling_queue.py",))
_flight = Subject("requeue", "core/queue/in_flight.py", ("tests/core/queue/test_in_flight.py",))
_order = Subject(
    "queue order", "core/queue/scheduling_queue.py", ("tests/core/queue/test_scheduling_queue.py",)
)
_line = Subject("queue order", "core/queue/line.py", ("tests/core/queue/test_line.py",))

MUTATIONS = (
    _normal.mutation("not by the highest", "top = int(raw.max(initial=0))", "top = int(raw.min(initial=0))"),
    _normal.mutation(
        "all zero is worst when reversed", "np.full_like(raw, MAX_NODE_SCORE) if reverse else raw", "raw"
    ),
    _normal.mutation("reversed the other way", "MAX_NODE_SCORE - scaled if reverse", "scaled if reverse"),
    _rounding.mutation("halves go down", "values - whole >= 0.5", "values - whole > 0.5"),
    _scores.mutation(
        "scores out of range pass",
        "int(scores.max()) > most",
        "int(scores.max()) > 2 * most",
    ),
    _scores.mutation("negative scores pass", "int(scores.min()) < 0 or", "False or"),
    _scores.mutation("weights do not count", "scores if weight == 1 else scores * weight", "scores"),
    _scores.mutation("the last plugin decides", "total += weighted", "total = weighted"),
    _selection.mutation("the worst node", "totals == totals.max()", "totals == totals.min()"),
    _selection.mutation("always the first", "int(rows[rng.integers(rows.size)])", "int(rows[0])"),
    _profile.mutation("taints weigh less", '"TaintToleration": 3', '"TaintToleration": 1'),
    _profile.mutation("affinity weighs less", '"InterPodAffinity": 2', '"InterPodAffinity": 1'),
    _profile.mutation(
        "no weight is no score", "return self.weights.get(name, 1)", "return self.weights.get(name, 0)"
    ),
    _runner.mutation("names that one plugin left are enough", "names & answer.names", "names | answer.names"),
    _runner.mutation(
        "excluded nodes may do", "feasible &= self._named(pre.names)", "feasible |= self._named(pre.names)"
    ),
    _runner.mutation(
        "nominated pods do not count",
        "judged = {row: self.judge_with(pre, row, there) for row, there in pods.items()}",
        "judged = {row: self.judge(pre, row) for row in pods}",
    ),
    _runner.mutation(
        "the last reason counts", "failed = ~verdict.fits & undecided", "failed = ~verdict.fits"
    ),
    _diagnosis.mutation(
        "one resolvable reason is enough",
        "verdict.failed[final].any(axis=0)",
        "verdict.failed[final].all(axis=0)",
    ),
    _diagnosis.mutation(
        "preemption may help everywhere", "if not reason.resolvable]", "if reason.resolvable]"
    ),
    _diagnosis.mutation(
        "every reason of a node counts", "np.count_nonzero(failed & owned)", "np.count_nonzero(failed)"
    ),
    _alike.mutation("changes of use are missed", "if reads_usage or not only_usage:", "if not only_usage:"),
    _alike.mutation("changes of a node are missed", "if reshaped.size:\n", "if not reshaped.size:\n"),
    _alike.mutation(
        "dead rows are open",
        "opened = snapshot.alive[target].copy()",
        "opened = np.ones_like(snapshot.alive[target])",
    ),
    _wakes.mutation(
        "no rejectors, no wake-up",
        "            if not rejectors:\n                helped.update(room.pods)\n",
        "",
    ),
    _wakes.mutation(
        "hints are not asked",
        "if interest.hint is None:\n                    helped",
        "if interest:\n                    helped",
    ),
    _wakes.mutation("what is left out is woken", "helped.pop(but, None)", "helped.get(but, None)"),
    _queue.mutation("missed changes do not count", "if missed is None or any(", "if missed is None and any("),
    _queue.mutation("backoff grows by thirds", "initial * 2 **", "initial * 3 **"),
    _queue.mutation("backoff without end", "float(min(initial", "float(max(initial"),
    _queue.mutation(
        "backoff is over at once",
        "Place.BACKOFF if queued.backoff_until > now",
        "Place.BACKOFF if queued.backoff_until < now",
    ),
    _queue.mutation(
        "flushed too late",
        "now - queued.since >= self._settings.flush_after",
        "now - queued.since > self._settings.flush_after",
    ),
    _queue.mutation("errors leave the queue early", "if not queued.backs_off_from_error:", "if queued:"),
    _flight.mutation(
        "changes before the try count", "list(self._log)[start - self._base :]", "list(self._log)"
    ),
    _flight.mutation(
        "too many changes are none",
        "if start < self._base:\n            missed = None",
        "if start < self._base:\n            missed = []",
    ),
    _order.mutation(
        "a new priority does not count",
        "resort = queued.place is Place.ACTIVE and queued.pod.priority != pod.priority",
        "resort = False",
    ),
    _order.mutation(
        "a try does not make it wait its turn",
        "        self._reject(queued, rejectors)\n        queued.age_from = now\n",
        "        self._reject(queued, rejectors)\n",
    ),
    _order.mutation(
        "those that back off come first",
        "self._active.pop() or self._early.pop()",
        "self._early.pop() or self._active.pop()",
    ),
    _line.mutation(
        "stale entries count",
        "while entries and not self._current(entries[0][1], entries[0][2]):",
        "while False:",
    ),
    _line.mutation(
        "the last comes first",
        "heapq.heappush(self._entries, (key, ticket, uid))",
        "self._entries.insert(0, (key, ticket, uid))",
    ),
)
