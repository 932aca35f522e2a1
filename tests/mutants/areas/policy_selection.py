"""Policies: which pods each is about, by its mode, its namespace, its selector and its canary."""

from tests.mutants.mutation import Subject

_MATCHING = ("core/policy/matching.py", ("tests/core/policy/test_matching.py",))
_BOOK = ("core/policy/book.py", ("tests/core/policy/test_book.py",))
_INTAKE = (
    "core/intake/policies.py",
    ("tests/core/intake/test_policies.py", "tests/core/test_engine_policies.py"),
)
_mode = Subject("policy mode", *_BOOK)
_scope = Subject("policy namespace", *_MATCHING)
_pods = Subject("policy podSelector", *_MATCHING)
_namespaces = Subject("policy namespaceSelector", *_MATCHING)
_classes = Subject("policy priorityClasses", *_MATCHING)
_schedulers = Subject("policy schedulerNames", *_MATCHING)
_expression = Subject("policy pod expression", *_MATCHING)
_canary = Subject("policy canary", "core/policy/canary.py", ("tests/core/policy/test_canary.py",))
_canary_book = _canary.elsewhere("core/policy/book.py", "tests/core/policy/test_book.py")

MUTATIONS = (
    # mode
    _mode.mutation(
        "Audit decides", "if policy.mode is Mode.ENFORCE)", "if policy.mode is not Mode.DISABLED)"
    ),
    _mode.mutation(
        "Enforce is audited", "if policy.mode is Mode.AUDIT)", "if policy.mode is not Mode.DISABLED)"
    ),
    _mode.mutation(
        "Audit counts no pods",
        "tuple(policy.ref for policy in key))",
        "tuple(policy.ref for policy in enforced))",
    ),
    _mode.mutation(
        "Disabled selects",
        "policy.mode is not Mode.DISABLED\n        and",
        "policy.mode is not None\n        and",
        file=_MATCHING[0],
        tests=_MATCHING[1],
    ),
    _mode.mutation(
        "Audit selects nobody",
        "policy.mode is not Mode.DISABLED\n        and",
        "policy.mode is Mode.ENFORCE\n        and",
        file=_MATCHING[0],
        tests=_MATCHING[1],
    ),
    _mode.mutation(
        "Disabled goes on counting",
        "if policy is None or policy.mode is Mode.DISABLED:",
        "if policy is None:",
        file=_INTAKE[0],
        tests=_INTAKE[1],
    ),
    _mode.mutation(
        "Enforce reports an audit",
        "if policy.mode is Mode.AUDIT else None",
        "if policy.mode is Mode.ENFORCE else None",
        file="core/intake/reports.py",
        tests=("tests/core/intake/test_reports.py",),
    ),
    # the namespace of a tenant
    _scope.mutation("tenants reach everywhere", 'in ("", namespace)', 'in ("", policy.ref.namespace)'),
    _scope.mutation("the cluster's reach nowhere", 'in ("", namespace)', "== namespace"),
    _scope.mutation(
        "tenants reach everywhere else",
        "in_scope(policy, pod.namespace)",
        "not in_scope(policy, pod.namespace)",
    ),
    _scope.mutation(
        "a new policy of a tenant is not noticed",
        "if ref.namespace:\n            self._scopes.pop(ref.namespace, None)",
        "if ref.namespace:\n            self._scopes.pop(ref.name, None)",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    _scope.mutation(
        "a new policy of the cluster is not noticed",
        "        else:\n            self._scopes.clear()\n",
        "",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    # podSelector
    _pods.mutation("takes the others", "and selection.pods.matches(", "and not selection.pods.matches("),
    _pods.mutation(
        "looks at the namespace",
        "selection.pods.matches(pod.labels)",
        "selection.pods.matches(namespace_labels)",
    ),
    _pods.mutation("all values are alike", "value if known is None or value in known else True", "True"),
    _pods.mutation(
        "greater than one, greater than all", "in (Operator.GT, Operator.LT):", "in (Operator.LT,):"
    ),
    _pods.mutation("less than one, less than all", "in (Operator.GT, Operator.LT):", "in (Operator.GT,):"),
    _pods.mutation(
        "each label makes another pod",
        "            if name in values:\n                known = values[name]\n",
        "            if True:\n                known = values.get(name)\n",
    ),
    _pods.mutation(
        "values of the last policy only",
        "known = values.setdefault(requirement.key, set())",
        "known = values[requirement.key] = set()",
    ),
    _pods.mutation(
        "other labels are not noticed",
        "            and labels is pod.labels\n",
        "",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    # namespaceSelector
    _namespaces.mutation(
        "takes the others", "selection.namespaces.matches(", "not selection.namespaces.matches("
    ),
    _namespaces.mutation(
        "none takes nobody",
        "(selection.namespaces is None or selection",
        "(selection.namespaces is not None and selection",
    ),
    _namespaces.mutation(
        "looks at the pod",
        "selection.namespaces.matches(namespace_labels)",
        "selection.namespaces.matches(pod.labels)",
    ),
    _namespaces.mutation(
        "other labels are not noticed",
        "if self._scopes.pop(name, None) is not None:\n            self._recent.clear()",
        "if self._scopes.get(name, None) is not None:\n            self._recent.clear()",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    _namespaces.mutation(
        "what is remembered of a pod stays",
        "if self._scopes.pop(name, None) is not None:\n            self._recent.clear()",
        "self._scopes.pop(name, None)",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    _namespaces.mutation(
        "pods elsewhere are looked at",
        "if queued.pod.namespace == name:",
        "if queued.pod.namespace != name:",
        file=_INTAKE[0],
        tests=_INTAKE[1],
    ),
    _namespaces.mutation(
        "pods on nodes are not counted again",
        "    state.snapshot.selected.track(*changed)\n",
        "",
        file=_INTAKE[0],
        tests=_INTAKE[1],
    ),
    # priorityClasses
    _classes.mutation("none takes nobody", "(not selection.priority_classes or pod", "(pod"),
    _classes.mutation(
        "takes the others", "pod.spec.priority_class in selection", "pod.spec.priority_class not in selection"
    ),
    _classes.mutation(
        "all classes are alike", "pod.spec.priority_class if self._reads_class", "None if self._reads_class"
    ),
    _classes.mutation("the last policy counts", "self._reads_class |= bool", "self._reads_class = bool"),
    # schedulerNames
    _schedulers.mutation("none takes nobody", "(not selection.scheduler_names or pod", "(pod"),
    _schedulers.mutation(
        "takes the others", "pod.spec.scheduler_name in selection", "pod.spec.scheduler_name not in selection"
    ),
    _schedulers.mutation(
        "all names are alike",
        "pod.spec.scheduler_name if self._reads_scheduler",
        "None if self._reads_scheduler",
    ),
    _schedulers.mutation(
        "the last policy counts", "self._reads_scheduler |= bool", "self._reads_scheduler = bool"
    ),
    # the selector's expression
    _expression.mutation("none takes nobody", "(not selection.expression or selection", "(selection"),
    _expression.mutation(
        "takes the others", "selection.expression in pod.holds", "selection.expression not in pod.holds"
    ),
    _expression.mutation("all pods are alike", "pod.holds & self._expressions if", "None if"),
    _expression.mutation(
        "the last policy counts",
        "expressions.add(selection.expression)",
        "expressions = {selection.expression}",
    ),
    _expression.mutation(
        "a pod for which it does not hold any more",
        "            and holds == pod.holds\n",
        "",
        file=_BOOK[0],
        tests=_BOOK[1],
    ),
    # canary
    _canary.mutation("one place more", "< policy.canary_percent", "<= policy.canary_percent"),
    _canary.mutation("0 percent are all", "policy.canary_percent is None or", "not policy.canary_percent or"),
    _canary.mutation("a place too many", "% 100\n", "% 101\n"),
    _canary.mutation("the same owners for every policy", "{_identity(policy)}/{owner}", "{owner}"),
    _canary.mutation("a roll-out counts anew", 'name.removesuffix(f"-{template_hash}")', "name"),
    _canary.mutation(
        "others lose their ending", 'if owner.kind == "ReplicaSet" and template_hash:', "if template_hash:"
    ),
    _canary.mutation("owners of one name are one", 'f"{pod.namespace}/{owner.kind}/{name}"', "name"),
    _canary.mutation(
        "a policy made anew has its old place",
        "        return policy.uid\n",
        "        return policy.ref.name\n",
    ),
    _canary_book.mutation(
        "without one, none has any",
        "if any(policy.canary_percent is not None",
        "if all(policy.canary_percent is not None",
    ),
    _canary_book.mutation(
        "all pods are in",
        "return selects(policy, pod, labels) and takes_part(policy, owner_key(pod))",
        "return selects(policy, pod, labels)",
    ),
    _canary_book.mutation(
        "the first owner decides for all", "selected.by_owner[owner] = shaping", "selected.shaping = shaping"
    ),
    _canary_book.mutation("another owner is not noticed", "            and owner is pod.owner\n", ""),
)
