"""Policies before any plugin: what several come to together, whom that shapes, what an audit tells."""

from tests.mutants.mutation import Subject

_MERGE = ("core/policy/merge.py", ("tests/core/policy/test_merge.py",))
_BOOK = ("core/policy/book.py", ("tests/core/policy/test_book.py",))
_INTAKE = (
    "core/intake/policies.py",
    ("tests/core/intake/test_policies.py", "tests/core/test_engine_policies.py"),
)
_DERIVE = ("core/policy/derive.py", ("tests/core/policy/test_derive.py",))
_ENGINE = ("tests/core/test_engine_policies.py",)
_order = Subject("policy order", *_MERGE)
_together = Subject("policies together", *_MERGE)
_strictest = Subject("policy guards together", *_MERGE)
_lost = Subject("policy fields lost", *_MERGE)
_lost_book = _lost.elsewhere("core/policy/book.py", "tests/core/policy/test_book.py")
_annotation = Subject(
    "policy annotation", "core/policy_effects.py", ("tests/core/test_policy_effects.py", *_ENGINE)
)
_shaping = _annotation.elsewhere("core/policy/merge.py", "tests/core/policy/test_merge.py")
_strategy = Subject("policy strategy", *_DERIVE)
_weights = Subject("policy weights", *_DERIVE)
_profile = Subject("policy profile", *_DERIVE)
_full = Subject("policy pools full", "core/attempts.py", _ENGINE)
_audit = Subject("policy audit", "core/audits.py", ("tests/core/test_audits.py",))
_change = Subject("policy changes", *_INTAKE)

MUTATIONS = (
    # precedence
    _order.mutation(
        "a tenant has the first word",
        "return bool(policy.ref.namespace),",
        "return not policy.ref.namespace,",
    ),
    _order.mutation("the least precedence goes first", "-policy.precedence,", "policy.precedence,"),
    _order.mutation(
        "the younger goes first", ", policy.created, policy.ref", ", -policy.created, policy.ref"
    ),
    _order.mutation(
        "age counts before precedence",
        "-policy.precedence, policy.created,",
        "policy.created, -policy.precedence,",
    ),
    _order.mutation(
        "names do not decide", "policy.created, policy.ref\n", 'policy.created, PolicyRef("", "")\n'
    ),
    _order.mutation(
        "the order of coming counts",
        "ordered = tuple(sorted(policies, key=merge_key))",
        "ordered = tuple(policies)",
    ),
    _order.mutation(
        "the last word counts", "for ref, value in values:", "for ref, value in reversed(values):"
    ),
    _order.mutation(
        "0 is not set",
        "if value is None:\n                continue",
        "if not value:\n                continue",
    ),
    # what adds up
    _together.mutation(
        "windows of the first only",
        "timed=tuple(p for p in ordered if p.windows)",
        "timed=tuple(p for p in ordered if p.windows)[:1]",
    ),
    _together.mutation(
        "nodes of the first only",
        "for p in ordered if p.nodes is not None)",
        "for p in ordered[:1] if p.nodes is not None)",
    ),
    _together.mutation(
        "spread of the first only",
        "for p in ordered for rule in p.spread)",
        "for p in ordered[:1] for rule in p.spread)",
    ),
    _together.mutation(
        "limits of the first only",
        "for p in ordered for rule in p.limits)",
        "for p in ordered[:1] for rule in p.limits)",
    ),
    _together.mutation(
        "preferences of the first only",
        "for ref, scoring in scorings for item in scoring.prefer",
        "for ref, scoring in scorings[:1] for item in scoring.prefer",
    ),
    _together.mutation("the last to protect is named", "found.setdefault(item, ref)", "found[item] = ref"),
    _together.mutation("load targets add up", "if targets[resource][0] == ref}", "}"),
    _together.mutation("a load limit needs a target", "if own or load.limit:", "if own:"),
    _strictest.mutation("all must say Never", "never=any(", "never=all("),
    _strictest.mutation("the shortest run time counts", "max(runtimes,", "min(runtimes,"),
    _strictest.mutation("the narrowest gap counts", "max(gaps,", "min(gaps,"),
    _strictest.mutation("the most victims count", "min(victims,", "max(victims,"),
    _strictest.mutation("all must be strict about budgets", "strict_budgets=any(", "strict_budgets=all("),
    _strictest.mutation("a gap of 0 is none", "if r.min_priority_gap is not None]", "if r.min_priority_gap]"),
    _strictest.mutation("no victims is no bound", "if r.max_victims is not None]", "if r.max_victims]"),
    # Conflicted
    _lost.mutation("the loser is named as the winner", "LostField(name, found[0])", "LostField(name, ref)"),
    _lost.mutation("the winner loses", "self.lost.append((ref, Lost", "self.lost.append((found[0], Lost"),
    _lost.mutation("the key of a weight is not named", 'f"{name}.{key}"', "name"),
    _lost.mutation("equal ends of the backoff", '"backoff.max", [(ref', '"backoff.initial", [(ref'),
    _lost_book.mutation(
        "a pod that comes later is not asked about",
        "            self._shapings[key] = shaping\n            self._lost = None\n",
        "            self._shapings[key] = shaping\n",
    ),
    _lost_book.mutation(
        "a change is not noticed",
        "self._calendars.pop(ref, None)\n        self._lost = None\n",
        "self._calendars.pop(ref, None)\n",
    ),
    _lost_book.mutation(
        "the last field only", "setdefault(loser, set()).add(lost)", "__setitem__(loser, {lost})"
    ),
    _lost_book.mutation("in no order", "(lost.field, lost.winner)", "(lost.winner, lost.field)"),
    # the Binding's annotation
    _annotation.mutation(
        "who has lost everything is named",
        "ref.key for ref in self._book.shaping(pod).merged.shaping",
        "policy.ref.key for policy in self._book.shaping(pod).merged.policies",
    ),
    _annotation.mutation(
        "who is only audited is named",
        "self._book.shaping(pod).merged.shaping",
        "self._book.shaping(pod).refs",
    ),
    _annotation.mutation("the namespace is left out", '",".join(ref.key', '",".join(ref.name'),
    _annotation.mutation("another name", '"moorage.dev/policies"', '"moorage.dev/policy"'),
    _annotation.mutation("an empty one", "if q and q.shaped_by]", "if q]", file="core/attempts.py"),
    _shaping.mutation("losing all is no loss", "if _settings(p) > sum(", "if _settings(p) >= sum("),
    _shaping.mutation("losing something is losing all", "if _settings(p) > sum(", "if 1 > sum("),
    _shaping.mutation(
        "windows do not count", "len(policy.windows)\n        + (policy.nodes", "(policy.nodes"
    ),
    _shaping.mutation("nodes do not count", "        + (policy.nodes is not None)\n", ""),
    _shaping.mutation("pools do not count", "        + (policy.pools is not None)\n", ""),
    _shaping.mutation("spread does not count", "        + len(policy.spread)\n", ""),
    _shaping.mutation("limits do not count", "        + len(policy.limits)\n", ""),
    _shaping.mutation("a strategy does not count", "        + (scoring.strategy is not None)\n", ""),
    _shaping.mutation("weights do not count", "        + len(scoring.weights)\n", ""),
    _shaping.mutation("preferences do not count", "        + len(scoring.prefer)\n", ""),
    _shaping.mutation("protection does not count", "        + len(scoring.protect)\n", ""),
    _shaping.mutation("load targets do not count", "        + len(load.target)\n", ""),
    _shaping.mutation("load limits do not count", "        + len(load.limit)\n", ""),
    _shaping.mutation("guards do not count", "        + (policy.preemption is not None)\n", ""),
    _shaping.mutation("the first backoff does not count", "        + (backoff.initial is not None)\n", ""),
    _shaping.mutation("the longest backoff does not count", "        + (backoff.longest is not None)\n", ""),
    _shaping.mutation("the deadline does not count", "        + (policy.pending_deadline is not None)\n", ""),
    # the strategy of scoring
    _strategy.mutation(
        "it is ignored",
        "if merged.strategy is not None and isinstance(plugin, NodeR",
        "if merged.strategy is None and isinstance(plugin, NodeR",
    ),
    _strategy.mutation("always the same type", "StrategyType(rule.type)", "ScoringStrategy().type"),
    _strategy.mutation(
        "resources are ignored", "resources or ScoringStrategy().resources", "ScoringStrategy().resources"
    ),
    _strategy.mutation(
        "without resources nothing counts", "resources or ScoringStrategy().resources", "resources"
    ),
    _strategy.mutation("all resources weigh the same", "Weighted(name, weight)", "Weighted(name, 1)"),
    _strategy.mutation("the shape is ignored", ", rule.shape)", ")"),
    # the weights of scoring
    _weights.mutation(
        "the profile's win", "{**profile.weights, **changed}", "{**changed, **profile.weights}"
    ),
    _weights.mutation("the profile's are gone", "{**profile.weights, **changed}", "changed"),
    _weights.mutation(
        "plugins that are not there",
        "for name, weight in merged.weights.items() if name in names}",
        "for name, weight in merged.weights.items()}",
    ),
    _weights.mutation(
        "of the first policy only",
        "for _, mapping in values for key in mapping",
        "for _, mapping in values[:1] for key in mapping",
        file=_MERGE[0],
        tests=_MERGE[1],
    ),
    # the profile by which a pod is placed
    _profile.mutation(
        "pools come first",
        "        own.append(PolicyPools(*merged.pools, selects))",
        "        own.insert(0, PolicyPools(*merged.pools, selects))",
    ),
    _profile.mutation(
        "guards are ignored", "if merged.preemption is not None and", "if merged.preemption is None and"
    ),
    _profile.mutation("a spread counts on all nodes", "_within(merged), _since", "(), _since"),
    _profile.mutation(
        "protection needs a preference", "if merged.prefer or merged.protect:", "if merged.prefer:"
    ),
    _profile.mutation(
        "points leave the policies out",
        "        point: (*names, *(plugin.name for plugin in own if _has_part(plugin, point)))\n",
        "        point: names\n",
    ),
    _profile.mutation(
        "plugins at points where they have no part",
        "return point in PARTS and isinstance(plugin, PARTS[point])",
        "return True",
    ),
    _profile.mutation("spread waits since creation", "return pod.waiting_since", "return pod.created"),
    # PolicyHold where pools are full
    _full.mutation("it looks like a lack of nodes", 'POLICY_HOLD if held else ""', '""'),
    _full.mutation("all refusals are holds", 'POLICY_HOLD if held else ""', "POLICY_HOLD"),
    _full.mutation("the nodes are not told of", 'f"{held}: {failure.message}" if held', "held if held"),
    _full.mutation(
        "the pools are not told of",
        'f"{held}: {failure.message}" if held else',
        "failure.message if held else",
    ),
    _full.mutation(
        "one full pool is enough",
        "if not full[: len(items)].all():",
        "if not full[: len(items)].any():",
        file="core/plugins/policy_pools.py",
        tests=("tests/core/plugins/test_policy_pools.py",),
    ),
    _full.mutation(
        "nobody asks",
        "merged.pools is None else held_by(runner)",
        "merged.pools is None else ''",
        file="core/policy_effects.py",
    ),
    # what Audit tells
    _audit.mutation(
        "as good as is not the same",
        "real.rows.item(0) not in self.rows",
        "real.rows.item(0) != self.rows.item(0)",
    ),
    _audit.mutation("all that are placed are alike", 'return self.kind == "placed" and', "return False and"),
    _audit.mutation("held is refused", '"held" if self.held else "refused"', '"refused"'),
    _audit.mutation(
        "the policies in force are left out",
        "self._book.together(shaping.merged, policy)",
        "self._book.together(Merged(), policy)",
    ),
    _audit.mutation(
        "policies add up",
        "self._book.together(shaping.merged, policy)",
        "self._book.together(self._book.together(shaping.merged, shaping.audited[0]), policy)",
    ),
    _audit.mutation("all differ", "figures.different += differs", "figures.different += 1"),
    _audit.mutation(
        "only differences are evaluated", "figures.evaluated += 1", "figures.evaluated += differs"
    ),
    _audit.mutation("extenders are not thought of", "if runner.concerned(pod) or not self", "if not self"),
    _audit.mutation(
        "what is left out is not told",
        "figures.skipped += 1\n                continue\n            try:",
        "continue\n            try:",
    ),
    _audit.mutation(
        "what breaks is not told",
        "except PluginError:\n                figures.skipped += 1",
        "except PluginError:\n                figures.skipped += 0",
    ),
    _audit.mutation(
        "windows are not asked",
        "hold = hold_of(merged, pod.waiting_since, now, self._book.calendar_of)",
        "hold = None",
    ),
    _audit.mutation(
        "its end is not told", "            finally:\n                self.budget.audit_ends()\n", ""
    ),
    _audit.mutation("no end of samples", "deque(maxlen=SAMPLES)", "deque()"),
    _audit.mutation("more samples", "SAMPLES = 10", "SAMPLES = 20"),
    _audit.mutation(
        "nodes are swapped",
        "AuditSample(pod.key, chosen, instead, why)",
        "AuditSample(pod.key, instead, chosen, why)",
    ),
    _audit.mutation("the latest comes first", "figures.samples.append(", "figures.samples.appendleft("),
    _audit.mutation(
        "the last of equals is named",
        "return min((runner.snapshot.name_at",
        "return max((runner.snapshot.name_at",
    ),
    _audit.mutation("points less", "scores[there] - scores[here]", "scores[here] - scores[there]"),
    _audit.mutation("the least gain is named", "best = max(gains,", "best = min(gains,"),
    _audit.mutation(
        "what is tried stays",
        "return self._runner_with(pod, merged, self._tried)",
        "return self._runner_with(pod, merged, self._derived)",
        file="core/intake/roster.py",
        tests=("tests/core/intake/test_roster.py",),
    ),
    # a policy comes, changes or goes
    _change.mutation("guards that go wake nobody", "return evicts or", "return"),
    _change.mutation("who was refused by it sleeps on", "or not REJECTING.isdisjoint(queued.rejectors)", ""),
    _change.mutation("everyone wakes", "or not REJECTING.isdisjoint(queued.rejectors)", "or True"),
    _change.mutation("pods wait by what was", "    state.queue.regroup(uid)\n", ""),
    _change.mutation(
        "a new policy finds no pods",
        "if selected or (policy is not None and state.book.is_of(policy, pod)):",
        "if selected:",
    ),
    _change.mutation("a policy that goes has had none", "if selected or (policy", "if (policy"),
    _change.mutation("what was derived stays", "        state.roster.forget(before)\n", "        pass\n"),
    _change.mutation(
        "the same again is a change",
        "(before.uid, before.generation) == (policy.uid",
        "(before.uid, -1) == (policy.uid",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    _change.mutation(
        "a new generation is none",
        "(before.uid, before.generation) == (policy.uid, policy.generation)",
        "before.uid == policy.uid",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    _change.mutation(
        "a file never changes",
        "return bool(policy.uid) and (before",
        "return (before",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
)
