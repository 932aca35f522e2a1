"""Policies: each field of theirs that a plugin applies, what they count, and what time changes."""

from tests.mutants.mutation import Subject, plugin

_nodes = plugin("PolicyNodes", "policy_nodes")
_pools = plugin("PolicyPools", "policy_pools")
_limits = plugin("PolicyLimits", "policy_limits")
_spread = plugin("PolicySpread", "policy_spread")
_load = plugin("PolicyLoad", "policy_load")
_likes = plugin("PolicyPreferences", "policy_preferences")
_guards = Subject(
    "preemption guards",
    "core/framework/preemption_guards.py",
    ("tests/core/framework/test_preemption_guards.py", "tests/core/plugins/test_default_preemption.py"),
)
_counts = Subject(
    "policy counts", "core/snapshot/selected_pods.py", ("tests/core/snapshot/test_selected_pods.py",)
)
_use = Subject("policy use", "core/snapshot/usage_samples.py", ("tests/core/snapshot/test_usage_samples.py",))
_columns = Subject(
    "policy expressions",
    "core/snapshot/expression_columns.py",
    ("tests/core/snapshot/test_expression_columns.py",),
)
_last = Subject("policy pools last", "core/framework/runner.py", ("tests/core/framework/test_runner.py",))
_hints = Subject(
    "policy hints", "core/framework/selected_hints.py", ("tests/core/framework/test_selected_hints.py",)
)
_exact = Subject(
    "policy percentages", "core/framework/percentages.py", ("tests/core/framework/test_percentages.py",)
)

MUTATIONS = (
    # nodes.selector
    _nodes.mutation(
        "the selector keeps the others", "failed.append(~nodes.labelled(", "failed.append(nodes.labelled("
    ),
    _nodes.mutation(
        "preemption is tried against the selector",
        'match the node selector of {policy}", resolvable=False',
        'match the node selector of {policy}", resolvable=True',
    ),
    _nodes.mutation(
        "any node that comes wakes pods",
        "        if not self._matches(event.new):\n            return False\n",
        "",
    ),
    # nodes.expression
    _nodes.mutation(
        "the expression keeps the others",
        "failed.append(~(truth if nodes.whole",
        "failed.append((truth if nodes.whole",
    ),
    _nodes.mutation(
        "what pods ask for is taken for lasting",
        "rule.expression.speaks & Speaks.REQUESTED\n            found",
        "rule.expression.speaks & Speaks.NODE\n            found",
    ),
    _nodes.mutation(
        "real use is taken for a property of the node", "reads |= Reads.CLUSTER", "reads |= Reads.NODE"
    ),
    # nodes.avoidTaints
    _nodes.mutation("taints attract", "rules.avoid_taints) > 0", "rules.avoid_taints) == 0"),
    _nodes.mutation("all rules must match a taint", "return int(any(rule", "return int(all(rule"),
    _nodes.mutation(
        "the value of a taint does not matter",
        "self.value in (None, taint.value)",
        "True",
        file="core/model/policy.py",
    ),
    # nodes.keepFree
    _nodes.mutation(
        "the pod itself is left out",
        "at_least(allocatable - requested - amount, percent",
        "at_least(allocatable - requested, percent",
    ),
    _nodes.mutation(
        "what is taken is left out",
        "at_least(allocatable - requested - amount, percent",
        "at_least(allocatable - amount, percent",
    ),
    _nodes.mutation("pods are counted by their requests", "if resource == PODS:", 'if resource == "none":'),
    _nodes.mutation(
        "every shortage can be resolved",
        "return short & ~never, short & never",
        "return short, short & never & ~short",
    ),
    _exact.mutation(
        "more than enough is asked for",
        "enough: Bools = part * 100 >= percent",
        "enough: Bools = part * 100 > percent",
    ),
    _exact.mutation("huge amounts wrap", "if peak < _EXACT:", "if peak < _EXACT << 10:"),
    _exact.mutation(
        "percent are rounded",
        "enough: Bools = part * 100 >= percent * whole",
        "enough: Bools = part >= percent * whole // 100",
    ),
    # pools
    _pools.mutation("one pod more fits", "count >= limit", "count > limit"),
    _pools.mutation(
        "the number is a percentage",
        "return pool.max_pods\n",
        "return -(-pool.max_pods * (placed + 1) // 100)\n",
    ),
    _pools.mutation("full pools are used", "member & ~full[pool_of]\n", "member\n"),
    _pools.mutation(
        "the percentage rounds down",
        "-(-pool.max_percent * (placed + 1) // 100)",
        "pool.max_percent * (placed + 1) // 100",
    ),
    _pools.mutation("the pod is not part of the whole", "* (placed + 1) // 100", "* placed // 100"),
    _pools.mutation(
        "pods in no pool are part of the whole",
        "placed = int(counts.sum())\n        most",
        "placed = int(counts.sum()) + 1\n        most",
    ),
    _pools.mutation(
        "the last pool goes first",
        "pool_of[open_to].min(initial=len(self.pools.items))",
        "pool_of[open_to].max(initial=-1)",
    ),
    _pools.mutation("waiting goes on to the next", "open_to &= pool_of == 0", "open_to &= pool_of >= 0"),
    _pools.mutation(
        "held though it may go on",
        "self.pools.items[:1] if self.pools.wait else",
        "self.pools.items[:1] if not self.pools.wait else",
    ),
    _pools.mutation(
        "a pool's share does not grow with what comes",
        "Action.ADD | Action.DELETE if relative",
        "Action.DELETE if relative",
    ),
    _pools.mutation(
        "in no pool is resolvable",
        'node(s) in no pool of {policy}", resolvable=False',
        'node(s) in no pool of {policy}", resolvable=True',
    ),
    _pools.mutation("is not asked last", "last: ClassVar[bool] = True", "last: ClassVar[bool] = False"),
    _last.mutation(
        "nominated pods come after the choice",
        "if plugin.name in self._late and (plugin.name in self._last) is last:",
        "if plugin.name in self._late and last is False:",
    ),
    _last.mutation(
        "reasons are told in the order of the plugins",
        "            active.sort(key=lambda each: each[0].name in self._last)\n",
        "",
    ),
    _last.mutation(
        "what nominated pods take is chosen",
        "undecided[list(diagnosis.overrides)] = False",
        "undecided[list(diagnosis.overrides)] = True",
    ),
    # limits
    _limits.mutation("one pod more fits", "counts < most", "counts <= most"),
    _limits.mutation("nodes without the label are in", "below[-1] = False", "below[-1] = True"),
    _limits.mutation("the dying do not count", "everywhere, dying=True)", "everywhere, dying=False)"),
    _limits.mutation("the last policy counts", "fits &= below", "fits = below"),
    _limits.mutation(
        "a pod that goes wakes nobody",
        "WakesOn(Resource.ASSIGNED_POD, Action.DELETE, concerns",
        "WakesOn(Resource.ASSIGNED_POD, Action.ADD, concerns",
    ),
    # spread
    _spread.mutation("the skew is one", "max_skew=rule.max_skew,", "max_skew=1,"),
    _spread.mutation("the pod does not count itself", "own=1", "own=0"),
    _spread.mutation("the dying count", "domains, scope, dying=False),", "domains, scope, dying=True),"),
    _spread.mutation("minDomains is ignored", "min_domains=rule.min_domains or 1", "min_domains=1"),
    _spread.mutation(
        "all domains must be there", "min_domains=rule.min_domains or 1", "min_domains=rule.min_domains or 9"
    ),
    _spread.mutation(
        "one domain fewer will do",
        "min_domains=rule.min_domains or 1",
        "min_domains=(rule.min_domains or 2) - 1",
    ),
    _spread.mutation(
        "never soft",
        "rule.hard_for is None or waited < rule.hard_for)) is hard",
        "rule.hard_for is None or waited >= 0)) is hard",
    ),
    _spread.mutation("hard a moment longer", "waited < rule.hard_for)", "waited <= rule.hard_for)"),
    _spread.mutation(
        "hard without end becomes soft",
        "rule.hard_for is None or waited",
        "rule.hard_for is not None and waited",
    ),
    _spread.mutation("ScheduleAnyway is hard", "(rule.hard and (rule.hard_for", "(True and (rule.hard_for"),
    _spread.mutation("no timer for the end", "if end > snapshot.now)", "if end < snapshot.now)"),
    _spread.mutation(
        "the affinity of the pod is ignored",
        "own = NodeRules.of(pod.spec.node_selector, pod.spec.required, None)",
        "own = NodeRules.of({}, None, None)",
    ),
    _spread.mutation("what policies leave is ignored", "if not self.within:", "if True:"),
    _spread.mutation(
        "created counts though somebody knows better",
        "waited = snapshot.now - self.since(pod)",
        "waited = snapshot.now - pod.created",
    ),
    # load
    _load.mutation(
        "the limit is out, too",
        "return at_least(-used, -limit, allocatable, peak)",
        "return ~at_least(used, limit, allocatable, peak)",
    ),
    _load.mutation("the limit is of what is not used", "known & _above(", "known & ~_above("),
    _load.mutation(
        "pods placed since do not count",
        "limit, nodes.taken(samples.used(resource)))",
        "limit, nodes.taken(samples.measured(resource)))",
    ),
    _load.mutation("an old sample counts", "known = fresh & nodes", "known = nodes"),
    _load.mutation(
        "Ignore excludes",
        "if rules.on_stale is OnStale.EXCLUDE:\n                stale",
        "if rules.on_stale is OnStale.IGNORE:\n                stale",
    ),
    _load.mutation("a sample that lacks the resource is fresh", "stale |= ~nodes", "stale &= ~nodes"),
    _load.mutation(
        "an unknown node is the best", "samples.knows(resource)))] = 0", "samples.knows(resource)))] = 100"
    ),
    _load.mutation(
        "the best resource counts",
        "np.minimum(worst, points, out=worst)",
        "np.maximum(worst, points, out=worst)",
    ),
    _load.mutation(
        "points fall from nothing",
        "np.where(low, MAX_NODE_SCORE, np.minimum",
        "np.where(False, MAX_NODE_SCORE, np.minimum",
    ),
    _load.mutation("the target is missed", "low = used * 100 <= target", "low = used * 100 < target"),
    _load.mutation("the slope starts at 0", "(100 - target) * allocatable, 1", "100 * allocatable, 1"),
    _load.mutation(
        "a node that opens wakes nobody", "opened |= was_above & ~is_above", "opened |= was_above & is_above"
    ),
    _load.mutation(
        "no timer for what goes stale",
        "if rules.on_stale is OnStale.IGNORE:\n                high",
        "if rules.on_stale is OnStale.EXCLUDE:\n                high",
    ),
    # scoring.prefer and scoring.protect
    _likes.mutation("a match weighs one", "MAX_NODE_SCORE * item.weight) * nodes", "MAX_NODE_SCORE) * nodes"),
    _likes.mutation(
        "what does not match is preferred",
        "* nodes.labelled(item.selector)",
        "* ~nodes.labelled(item.selector)",
    ),
    _likes.mutation(
        "the last match counts",
        "total += np.int64(MAX_NODE_SCORE * item.weight)",
        "total = np.int64(MAX_NODE_SCORE * item.weight)",
    ),
    _likes.mutation(
        "scores are cut off",
        "go_math.rounded((values if nodes.whole else values[nodes.rows]) * item.weight)",
        "((values if nodes.whole else values[nodes.rows]) * item.weight).astype(np.int64)",
    ),
    _likes.mutation(
        "scores are rounded before they are weighed",
        "go_math.rounded((values if nodes.whole else values[nodes.rows]) * item.weight)",
        "go_math.rounded(values if nodes.whole else values[nodes.rows]) * item.weight",
    ),
    _likes.mutation(
        "an expression weighs one", "values[nodes.rows]) * item.weight)", "values[nodes.rows]) * 1)"
    ),
    _likes.mutation(
        "real use is taken for a property of the node", "reads |= Reads.CLUSTER", "reads |= Reads.NODE"
    ),
    _likes.mutation(
        "who asks keeps off, too",
        "if not pod.spec.requests.of(resource)",
        "if pod.spec.requests.of(resource) >= 0",
    ),
    _likes.mutation(
        "what has it is preferred", "(nodes.allocatable(resource) == 0)", "(nodes.allocatable(resource) > 0)"
    ),
    _likes.mutation("protection weighs one", "PROTECT_WEIGHT = 10", "PROTECT_WEIGHT = 1"),
    _likes.mutation(
        "the scale ends too early", "+ PROTECT_WEIGHT * len(self.protect)", "+ len(self.protect)"
    ),
    # preemption
    _guards.mutation(
        "Never may",
        "NEVER if self.guards.rules.never else",
        "NEVER if not self.guards.rules else",
        file="core/plugins/default_preemption.py",
    ),
    _guards.mutation("the gap must be wider", "max(gap, 1) + 1", "max(gap, 1)"),
    _guards.mutation("the gap is ignored", "max(gap, 1) + 1", "1 + 1"),
    _guards.mutation("a gap of 0 lets peers be victims", "max(gap, 1) + 1", "gap + 1"),
    _guards.mutation(
        "a moment longer",
        "start_of(other) <= self.latest_start(now)",
        "start_of(other) < self.latest_start(now)",
    ),
    _guards.mutation(
        "who has not started may go",
        "now - least if least else math.inf",
        "now + least if least else math.inf",
    ),
    _guards.mutation("the run time is ignored", "now - least if least else math.inf", "math.inf"),
    _guards.mutation(
        "one victim more",
        "len(victims) > self.rules.max_victims",
        "len(victims) > self.rules.max_victims + 1",
    ),
    _guards.mutation(
        "one victim less", "len(victims) > self.rules.max_victims", "len(victims) >= self.rules.max_victims"
    ),
    _guards.mutation(
        "the victims are not counted",
        "if self.rules.max_victims is not None and",
        "if self.rules.max_victims is None and",
    ),
    _guards.mutation("budgets are always sacred", "if self.rules.strict_budgets and any(", "if any("),
    _guards.mutation(
        "budgets are never sacred", "if self.rules.strict_budgets and any(", "if False and any("
    ),
    _guards.mutation(
        "budgets are asked about all who could go",
        "self._guards.against(victims, self._budgets)",
        "self._guards.against(self._lesser.pods[start:stop], self._budgets)",
        file="core/framework/dry_runs.py",
        tests=("tests/laws/test_dry_runs.py",),
    ),
    _guards.mutation("the last to be old enough sets the timer", "first = min(starts", "first = max(starts"),
    # what they count and measure
    _counts.mutation("the dying are forgotten", "if pod.deleting:", "if not pod.deleting:"),
    _counts.mutation(
        "a changed pod stays where it was", "if refs != self._selected_by.get(pod.uid, ()) or", "if"
    ),
    _counts.mutation("a pod that begins to die is not noticed", "or before.deleting != pod.deleting:", ":"),
    _counts.mutation(
        "a pod is taken off by what it is now",
        "refs = self._selected_by.pop(pod.uid, None)",
        "refs = self._selects(pod)",
    ),
    _use.mutation(
        "a sample of the same instant shows the pod",
        "since < self.at.item(row)",
        "since <= self.at.item(row)",
    ),
    _use.mutation(
        "the start of a pod does not matter",
        "since = now if pod.started is None else min(pod.started, now)",
        "since = now",
    ),
    _use.mutation(
        "a dry run makes pods young", "if self._left_at == now and pod.uid in self._left:", "if False:"
    ),
    _use.mutation(
        "stale a moment early",
        "return self.snapshot.now - self.at <= stale_after",
        "return self.snapshot.now - self.at < stale_after",
    ),
    _use.mutation("what was young stays so", "            if since < at:\n", "            if since > at:\n"),
    _columns.mutation(
        "a node that changes is not looked at", "if static != self._static:", "if self._static < 0:"
    ),
    _columns.mutation(
        "pods that come are not noticed",
        "if speaks & (Speaks.REQUESTED | Speaks.USAGE):",
        "if speaks & Speaks.USAGE:",
    ),
    _columns.mutation("samples are not noticed", "samples.epoch != self._samples or", ""),
    _columns.mutation(
        "what goes stale is not noticed",
        "self._dirty |= fresh != self._fresh",
        "self._dirty |= fresh & ~self._fresh",
    ),
    _columns.mutation("errors are not counted", "failures.count += 1", "failures.count += 0"),
    _columns.mutation("everything is evaluated every time", "dirty[due] = False", "dirty[due] = True"),
    _columns.mutation(
        "milli-CPU for cores", "amount / 1000 if resource == CPU", "amount / 1 if resource == CPU"
    ),
    _hints.mutation(
        "pods of others wake", "not self.refs.isdisjoint(self.selects(pod))", "bool(self.selects(pod))"
    ),
    _hints.mutation(
        "only who was selected matters", "for pod in (event.old, event.new)", "for pod in (event.old,)"
    ),
    _hints.mutation(
        "any change of a pod that counts wakes",
        "self.refs.intersection(self.selects(old)) != self.refs",
        "self.selects(old) == self.selects(old) or self.refs",
    ),
)
