"""Plugins that compare a pod with others: spread and affinity."""

from tests.mutants.mutation import plugin

_spread = plugin("PodTopologySpread", "pod_topology_spread")
_affinity = plugin("InterPodAffinity", "inter_pod_affinity")
_spreading = _spread.elsewhere(
    "core/framework/spreading.py",
    "tests/core/framework/test_spreading.py",
    "tests/core/plugins/test_pod_topology_spread.py",
)
_spread_hints = _spread.elsewhere(
    "core/framework/spread_hints.py", "tests/core/framework/test_spread_hints.py"
)
_terms = _affinity.elsewhere(
    "core/framework/pod_affinity.py",
    "tests/core/framework/test_pod_affinity.py",
    "tests/core/plugins/test_inter_pod_affinity.py",
)
_term_hints = _affinity.elsewhere(
    "core/framework/pod_affinity_hints.py", "tests/core/framework/test_pod_affinity_hints.py"
)

_spread_scores = _spread.elsewhere(
    "core/framework/spread_scoring.py",
    "tests/core/framework/test_spread_scoring.py",
    "tests/core/plugins/test_pod_topology_spread.py",
)

MUTATIONS = (
    _spread_scores.mutation(
        "the skew may be one less",
        "values <= max_skew + least - own",
        "values < max_skew + least - own",
    ),
    _spread_scores.mutation(
        "the pod itself does not count",
        "max_skew + least - own",
        "max_skew + least",
    ),
    _spread_scores.mutation(
        "minDomains do not matter", "present.size >= max(min_domains, 1)", "present.size >= 1"
    ),
    _spread_scores.mutation(
        "one domain too few",
        "present.size >= max(min_domains, 1)",
        "present.size > max(min_domains, 1)",
    ),
    _spread_scores.mutation(
        "the fullest domain is the measure",
        "int(values.take(present).min())",
        "int(values.take(present).max())",
    ),
    _spread_scores.mutation("a node without the label will do", "good[-1] = False", "good[-1] = True"),
    _spread.mutation(
        "preemption may give a node a label",
        '(missing required label)", resolvable=False)',
        '(missing required label)")',
    ),
    _spread.mutation(
        "evictions do not count",
        "for pods, change in ((added, 1), (removed, -1)):",
        "for pods, change in ((added, 1), (removed, 1)):",
    ),
    _spread_scores.mutation(
        "the skew does not count for the score",
        "by_domain = values * np.float64(weight) + float(max_skew - 1)",
        "by_domain = values * np.float64(weight)",
    ),
    _spread_scores.mutation(
        "domains do not weigh",
        "_number_of_domains(domains, rows) + 2",
        "_number_of_domains(domains, rows) + 1",
    ),
    _spread_scores.mutation("more is better", "(most + least - raw) // most", "(raw - least) // most"),
    _spread_scores.mutation(
        "the least does not count", "(most + least - raw) // most", "(most - raw) // most"
    ),
    _spread_scores.mutation("ignored nodes get points", "        scores[ignored] = 0\n", ""),
    _spreading.mutation(
        "dying pods count",
        "PodQuery(frozenset((namespace,)), selector, terminating=False)",
        "PodQuery(frozenset((namespace,)), selector, terminating=True)",
    ),
    _spreading.mutation(
        "an empty selector counts all pods",
        "if selector is not None and selector.requirements:",
        "if selector is not None:",
    ),
    _spreading.mutation(
        "nodeAffinityPolicy does not matter",
        "spec.required if constraint.honor_affinity else None",
        "spec.required",
    ),
    _spreading.mutation(
        "nodeTaintsPolicy does not matter",
        "spec.tolerations if constraint.honor_taints else None",
        "None",
    ),
    _spreading.mutation(
        "defaults soft and hard are mixed up",
        "if constraint.hard is hard]",
        "if constraint.hard is not hard]",
    ),
    _spread_hints.mutation(
        "pods of other namespaces wake",
        "either is None or either.namespace != pod.namespace",
        "either is None",
    ),
    _spread_hints.mutation(
        "pods that do not match wake",
        "return any(spread.means(either) for spread in spreads)",
        "return True",
    ),
    _spread_hints.mutation(
        "a node without the keys wakes",
        "all(key in node.labels for key in spreads.keys)",
        "any(key in node.labels for key in spreads.keys)",
    ),
    _affinity.mutation(
        "the first of its kind waits",
        "not any(counts.total for counts in self.required)",
        "any(counts.total for counts in self.required)",
    ),
    _affinity.mutation(
        "anybody may be the first",
        "            and self.together.matches(self.pod.namespace, self.pod.labels)\n",
        "",
    ),
    _affinity.mutation(
        "one of the terms is enough",
        "near = here if near is None else near & here",
        "near = here if near is None else near | here",
    ),
    _affinity.mutation("anti-affinity does not repel", "fits = fits & ~bad", "fits = fits | bad"),
    _affinity.mutation(
        "the second reason hides the first", "failed[1] = shunned & ~failed[0]", "failed[1] = shunned"
    ),
    _affinity.mutation(
        "terms of others do not repel",
        "        repelled = _any_domain(state.repelling, nodes)\n",
        "        repelled = _any_domain((), nodes)\n",
    ),
    _affinity.mutation(
        "preemption may bring friends", 'pod affinity rules", resolvable=False)', 'pod affinity rules")'
    ),
    _affinity.mutation(
        "the first may go without the label",
        "here = ids < counts.domains.size if anywhere",
        "here = ids <= counts.domains.size if anywhere",
    ),
    _affinity.mutation(
        "nodes without the label score", "by_domain[-1] = 0  # nodes", "by_domain[-1] += 0  # nodes"
    ),
    _affinity.mutation(
        "required terms of others weigh nothing",
        "yield terms.by_domain(term, snapshot.topology), self.hard_weight",
        "yield terms.by_domain(term, snapshot.topology), 1",
    ),
    _affinity.mutation(
        "scores are not spread out", "(raw - least).astype(np.float64)", "raw.astype(np.float64)"
    ),
    _affinity.mutation(
        "preferences of others are never ignored",
        "if self.ignore_preferred_of_existing and not own.preferred:",
        "if False:",
    ),
    _terms.mutation(
        "anti-affinity attracts",
        "-weighted.weight) for weighted in affinity.preferred_anti",
        "weighted.weight) for weighted in affinity.preferred_anti",
    ),
    _terms.mutation(
        "all namespaces of all terms",
        "namespaces & query.namespaces",
        "namespaces | query.namespaces",
    ),
    _term_hints.mutation(
        "pods that do not match wake",
        "return new is not None and _satisfies(own, new, labels)",
        "return new is not None",
    ),
    _term_hints.mutation(
        "one term is enough to wake",
        "all(term.means(other, labels) for term in own.required)",
        "any(term.means(other, labels) for term in own.required)",
    ),
    _term_hints.mutation("a node without the key wakes", "not keys.isdisjoint(new.labels)", "True"),
)
