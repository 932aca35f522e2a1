"""Preemption: who may, whom it tries, whom it spares, which node it takes, and what is promised."""

from tests.mutants.mutation import Subject, plugin

_LAWS = "tests/laws/test_dry_runs.py"
_preemption = plugin("DefaultPreemption", "default_preemption")
_one = _preemption.elsewhere(
    "core/framework/dry_run.py", "tests/core/framework/test_dry_run.py", *_preemption.tests, _LAWS
)
_many = _preemption.elsewhere(
    "core/framework/dry_runs.py", "tests/core/framework/test_dry_runs.py", *_preemption.tests, _LAWS
)
_budgets = _preemption.elsewhere(
    "core/framework/budgets.py", "tests/core/framework/test_budgets.py", *_preemption.tests
)
_trials = _preemption.elsewhere("core/framework/trials.py", "tests/core/framework/test_trials.py", _LAWS)
_guards = _preemption.elsewhere(
    "core/framework/preemption_guards.py", "tests/core/framework/test_preemption_guards.py"
)
_choice = Subject(
    "preemption choice", "core/framework/post_filter.py", ("tests/core/plugins/test_default_preemption.py",)
)
_first = _choice.elsewhere("core/plugins/default_preemption.py", *_choice.tests)
_ranks = _choice.elsewhere("core/snapshot/ranking.py", "tests/core/snapshot/test_ranking.py", *_choice.tests)
_found = _choice.elsewhere("core/framework/dry_runs.py", *_many.tests)
_nominator = _choice.elsewhere("core/queue/nominator.py", "tests/core/queue/test_nominator.py")
_promises = _choice.elsewhere("core/queue/preemptions.py", "tests/core/queue/test_preemptions.py")

MUTATIONS = (
    _preemption.mutation(
        "Never may", 'if pod.spec.preemption_policy == "Never":', 'if pod.spec.preemption_policy == "never":'
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
        "waits although the node is closed for good",
        "if row is None or not attempt.diagnosis.resolvable()[row]:",
        "if row is None:",
    ),
    _preemption.mutation(
        "a nomination stays", "clear_nomination=bool(pod.nominated_node)", "clear_nomination=False"
    ),
    _preemption.mutation(
        "nodes that are beyond help do not count",
        "            counts[_NOT_HELPFUL] += rest\n",
        "            counts[_NOT_HELPFUL] += 0\n",
    ),
    _one.mutation(
        "nominated pods do not count",
        "            runner.snapshot.add_pod(row, other)\n        try:",
        "            runner.snapshot.row_of(other.name)\n        try:",
    ),
    _one.mutation(
        "budgets are spared last", "for is_violating in (True, False):", "for is_violating in (False, True):"
    ),
    _one.mutation(
        "nobody is spared", "                    if reasons_against():\n", "                    if True:\n"
    ),
    _one.mutation("no budget is ever broken", "violations += is_violating", "violations += 0 * is_violating"),
    _many.mutation(
        "among many, nobody is spared",
        "relief[:, at[fits]] = less[:, fits]",
        "relief[:, at[fits]] = relief[:, at[fits]]",
    ),
    _many.mutation(
        "among many, budgets are spared last", "np.lexsort((~broken, at))", "np.lexsort((broken, at))"
    ),
    _many.mutation(
        "among many, a budget is one too many",
        "rank >= self._budgets.allowed()",
        "rank > self._budgets.allowed()",
    ),
    _many.mutation(
        "among many, equals are evicted", "below = guards.below(pod)", "below = guards.below(pod) + 1"
    ),
    _budgets.mutation(
        "of one pod, a budget is one too many", "if left[number] < 0:", "if left[number] <= 0:"
    ),
    _budgets.mutation(
        "pods that are counted already count again",
        "if pod.name not in self._budgets[n].disrupted",
        "if pod.name",
    ),
    _budgets.mutation(
        "one budget is enough",
        "found[0] if len(found) == 1 else SEVERAL",
        "found[0] if len(found) >= 1 else SEVERAL",
    ),
    _trials.mutation(
        "those that come do not count",
        "self._fit(change[:, visited] + self.coming[:, there], there)",
        "self._fit(change[:, visited], there)",
    ),
    _trials.mutation(
        "one plugin is enough",
        "fits &= _judged(name, balance, change[sums], at).fits",
        "fits |= _judged(name, balance, change[sums], at).fits",
    ),
    _choice.mutation(
        "broken budgets do not matter", "        candidate.violations,\n        top,", "        top,"
    ),
    _choice.mutation(
        "the highest priority may go",
        "        candidate.violations,\n        top,",
        "        candidate.violations,\n        -top,",
    ),
    _choice.mutation(
        "the sum of priorities does not matter",
        "        sum(victim.priority + PRIORITY_OFFSET for victim in victims),\n",
        "",
    ),
    _choice.mutation(
        "priorities may cancel each other",
        "sum(victim.priority + PRIORITY_OFFSET for",
        "sum(victim.priority for",
    ),
    _choice.mutation("the oldest go", "        -earliest,\n", "        earliest,\n"),
    _choice.mutation(
        "the start of all counts",
        "for victim in victims if victim.priority == top)",
        "for victim in victims)",
    ),
    _first.mutation("the last by name", "chosen = min(ties, key", "chosen = max(ties, key"),
    _ranks.mutation(
        "the least important first",
        "return -pod.spec.priority, start_of(pod)",
        "return pod.spec.priority, start_of(pod)",
    ),
    _ranks.mutation(
        "the younger count for more",
        "return -pod.spec.priority, start_of(pod)",
        "return -pod.spec.priority, -start_of(pod)",
    ),
    _found.mutation(
        "among many, broken budgets do not matter",
        "            self._violations,\n            top,",
        "            top,",
    ),
    _found.mutation(
        "among many, priorities may cancel each other",
        "priorities + PRIORITY_OFFSET, first",
        "priorities, first",
    ),
    _found.mutation(
        "among many, the oldest go",
        "-np.minimum.reduceat(starts, first)",
        "np.minimum.reduceat(starts, first)",
    ),
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
)
