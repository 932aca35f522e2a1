"""What lies around the plugins: filtering, normalisation, weights, the queue, and whom preemption chooses."""

from tests.mutants.mutation import Subject, plugin

_preemption = plugin("DefaultPreemption", "default_preemption")
_choice = Subject("preemption choice", "core/plugins/default_preemption.py", _preemption.tests)
_nominator = Subject("preemption choice", "core/queue/nominator.py", ("tests/core/queue/test_nominator.py",))
_promises = Subject(
    "preemption choice", "core/queue/preemptions.py", ("tests/core/queue/test_preemptions.py",)
)
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
    _preemption.mutation(
        "Never may", 'if pod.spec.preemption_policy == "Never":', 'if pod.spec.preemption_policy == "never":'
    ),
    _preemption.mutation(
        "equals are evicted", "if other.priority < pod.priority]", "if other.priority <= pod.priority]"
    ),
    _preemption.mutation(
        "the most important go first", "return -pod.priority, math.inf", "return pod.priority, math.inf"
    ),
    _preemption.mutation(
        "the younger count for more",
        "math.inf if pod.started is None else pod.started, pod.uid",
        "math.inf if pod.started is None else -pod.started, pod.uid",
    ),
    _preemption.mutation(
        "does not wait for its victims",
        "if going and other.priority < pod.priority:",
        "if going and other.priority > pod.priority:",
    ),
    _preemption.mutation(
        "waits for every dying pod",
        "going = (other.deleting and other.preempted) or",
        "going = other.deleting or",
    ),
    _preemption.mutation(
        "nominated pods do not count",
        "    if ahead:\n        for other in ahead:",
        "    if not ahead:\n        for other in ahead:",
    ),
    _preemption.mutation("a budget is one too many", "if left[index] < 0:", "if left[index] <= 0:"),
    _preemption.mutation(
        "budgets are spared last",
        "((violating, True), (others, False))",
        "((others, False), (violating, True))",
    ),
    _preemption.mutation(
        "a nomination stays", "clear_nomination=bool(pod.nominated_node)", "clear_nomination=False"
    ),
    _choice.mutation("broken budgets do not matter", "    lambda candidate: candidate.violations,\n", ""),
    _choice.mutation(
        "the highest priority may go",
        "lambda candidate: candidate.victims[0].priority,",
        "lambda candidate: -candidate.victims[0].priority,",
    ),
    _choice.mutation(
        "the sum of priorities does not matter",
        "    lambda candidate: sum(pod.priority + _PRIORITY_OFFSET for pod in candidate.victims),\n",
        "",
    ),
    _choice.mutation(
        "priorities may cancel each other",
        "sum(pod.priority + _PRIORITY_OFFSET for pod",
        "sum(pod.priority for pod",
    ),
    _choice.mutation(
        "the oldest go", "-_earliest_start(candidate.victims)", "_earliest_start(candidate.victims)"
    ),
    _choice.mutation(
        "the latest start counts",
        "return min(math.inf if pod.started is None else pod.started for pod in victims if",
        "return max(math.inf if pod.started is None else pod.started for pod in victims if",
    ),
    _choice.mutation("the last by name", "chosen = min(ties, key", "chosen = max(ties, key"),
    _nominator.mutation(
        "gives way to higher ones only", "p.priority >= pod.priority", "p.priority > pod.priority"
    ),
    _nominator.mutation("gives way to itself", "if p.uid != pod.uid and", "if"),
    _promises.mutation(
        "higher pods lose their promise",
        "if going and other.priority < preemptor.priority",
        "if going and other.priority > preemptor.priority",
    ),
    _promises.mutation("dying pods are evicted again", "if not victim.deleting]", "if victim]"),
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
        "feasible[row] = self.judge_with(pre, row, pods) is None",
        "feasible[row] = True",
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
    _queue.mutation(
        "backoff grows by thirds", "settings.initial_backoff * 2 **", "settings.initial_backoff * 3 **"
    ),
    _queue.mutation(
        "backoff without end", "float(min(settings.initial_backoff", "float(max(settings.initial_backoff"
    ),
    _queue.mutation(
        "backoff is over at once",
        "if queued.backoff_until > now:\n            self._move(queued, Place.BACKOFF",
        "if queued.backoff_until < now:\n            self._move(queued, Place.BACKOFF",
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
        "        queued.rejectors = rejectors\n        queued.age_from = now\n",
        "        queued.rejectors = rejectors\n",
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
