"""Plugins that look at the node and at what runs on it, and those before and after the nodes are looked at."""

from tests.mutants.mutation import plugin

_features = plugin("SupportedFeatures", "supported_features")
_declared = plugin("NodeDeclaredFeatures", "node_declared_features")
_gates = plugin("SchedulingGates", "scheduling_gates")
_sort = plugin("PrioritySort", "priority_sort")
_name = plugin("NodeName", "node_name")
_cordon = plugin("NodeUnschedulable", "node_unschedulable")
_taints = plugin("TaintToleration", "taint_toleration")
_affinity = plugin("NodeAffinity", "node_affinity")
_ports = plugin("NodePorts", "node_ports")
_images = plugin("ImageLocality", "image_locality")
_binder = plugin("DefaultBinder", "default_binder")

MUTATIONS = (
    _declared.mutation(
        "needs the others", "~nodes.declaring(state)[None, :]", "nodes.declaring(state)[None, :]"
    ),
    _declared.mutation("preemption may help", 'required features", resolvable=False)', 'required features")'),
    _declared.mutation("never checks", "return pod.spec.required_features or Skip.SKIP", "return Skip.SKIP"),
    _declared.mutation(
        "a node that declared it before wakes", " and not (event.old and needed.issubset(before))", ""
    ),
    _features.mutation(
        "devices for nodes that advertise the resource",
        "nodes.allocatable(resource) <= 0",
        "nodes.allocatable(resource) > 0",
    ),
    _features.mutation(
        "places pods with problems",
        "if reasons:\n            return Rejected",
        "if not reasons:\n            return Rejected",
    ),
    _features.mutation(
        "lets unreadable fields pass", "for problem in pod.spec.invalid)", "for problem in ())"
    ),
    _features.mutation(
        "a rejection that preemption could lift", "Rejected(reasons, Code.UNRESOLVABLE)", "Rejected(reasons)"
    ),
    _gates.mutation("lets gated pods in", "if not pod.gates:", "if pod.gates:"),
    _gates.mutation("names the first gate only", '" ".join(pod.gates)', '" ".join(pod.gates[:1])'),
    _gates.mutation(
        "a rejection of the other kind",
        '(f"waiting for scheduling gates: [{gates}]",), Code.UNRESOLVABLE',
        '(f"waiting for scheduling gates: [{gates}]",), Code.UNSCHEDULABLE',
    ),
    _gates.mutation("wakes on another change", "UPDATE_POD_GATES_ELIMINATED", "UPDATE_POD_LABEL"),
    _sort.mutation("the lowest priority first", "(-pod.priority, since)", "(pod.priority, since)"),
    _sort.mutation("the youngest first", "(-pod.priority, since)", "(-pod.priority, -since)"),
    _sort.mutation("age before priority", "(-pod.priority, since)", "(since, -pod.priority)"),
    _name.mutation(
        "refuses the named node", "failed[nodes.rows == row] = False", "failed[nodes.rows != row] = False"
    ),
    _name.mutation("does not narrow", "Narrowed(name, frozenset((name,))) if name", "name if name"),
    _name.mutation("preemption may help", 'requested node name", resolvable=False)', 'requested node name")'),
    _name.mutation(
        "any node wakes", "event.new.name == pod.spec.node_name", "event.new.name != pod.spec.node_name"
    ),
    _cordon.mutation(
        "never checks", "Skip.SKIP if tolerated(_CORDON, pod.spec.tolerations) else None", "Skip.SKIP"
    ),
    _cordon.mutation("refuses open nodes", "nodes.unschedulable[None, :]", "~nodes.unschedulable[None, :]"),
    _cordon.mutation("preemption may help", 'were unschedulable", resolvable=False)', 'were unschedulable")'),
    _cordon.mutation(
        "a cordon of another effect",
        'Taint(UNSCHEDULABLE_KEY, "", NO_SCHEDULE)',
        'Taint(UNSCHEDULABLE_KEY, "", "NoExecute")',
    ),
    _cordon.mutation("a cordoned node wakes", "return not event.new.unschedulable and (", "return ("),
    _taints.mutation(
        "NoExecute does not repel",
        "t.effect in (NO_SCHEDULE, NO_EXECUTE) and",
        "t.effect in (NO_SCHEDULE,) and",
    ),
    _taints.mutation(
        "NoSchedule does not repel",
        "t.effect in (NO_SCHEDULE, NO_EXECUTE) and",
        "t.effect in (NO_EXECUTE,) and",
    ),
    _taints.mutation("soft taints are liked", "normalize_by_max(raw, reverse=True)", "normalize_by_max(raw)"),
    _taints.mutation(
        "tolerations without an effect do not count for the score",
        'if t.effect in ("", PREFER_NO_SCHEDULE))',
        "if t.effect in (PREFER_NO_SCHEDULE,))",
    ),
    _taints.mutation(
        "preemption may help", 'untolerated taint(s)", resolvable=False)', 'untolerated taint(s)")'
    ),
    _taints.mutation(
        "a node that was open before wakes", "return bool(was) and not _repelled", "return not _repelled"
    ),
    _affinity.mutation(
        "selector or affinity", "for r in self.selector) and (", "for r in self.selector) or ("
    ),
    _affinity.mutation(
        "names of one term add up", "of_term & set(field.values)", "of_term | set(field.values)"
    ),
    _affinity.mutation("names of terms must agree", "names |= of_term", "names = of_term"),
    _affinity.mutation(
        "NotIn narrows, too",
        'field.key == "metadata.name" and field.operator is Operator.IN',
        'field.key == "metadata.name"',
    ),
    _affinity.mutation(
        "an open term does not matter",
        "is open to every name\n                return wanted",
        "is open to every name\n                continue",
    ),
    _affinity.mutation(
        "the reason of the pod comes first",
        "np.stack((~enforced, enforced & ~matched))",
        "np.stack((~enforced & matched, ~matched))",
    ),
    _affinity.mutation("weights do not count", "np.int64(preferred.weight) * nodes", "np.int64(1) * nodes"),
    _affinity.mutation(
        "terms of the configuration do not score",
        "self.added_preferred + pod.spec.preferred",
        "pod.spec.preferred",
    ),
    _affinity.mutation(
        "a node that matched before wakes", "(event.old is None or not matches(event.old))", "True"
    ),
    _ports.mutation(
        "any pod may have any port", "return pod.spec.host_ports or Skip.SKIP", "return Skip.SKIP"
    ),
    _ports.mutation(
        "protocols are not told apart",
        "(held.protocol, held.port) == (wanted.protocol, wanted.port)",
        "held.port == wanted.port",
    ),
    _ports.mutation(
        "addresses are not told apart when a port is freed", " and conflicts(wanted, held.ip)", ""
    ),
    _ports.mutation(
        "every address conflicts",
        "return WILDCARD in (wanted.ip, ip) or wanted.ip == ip",
        "return True",
        file="core/snapshot/host_ports.py",
        tests=("tests/core/snapshot/test_host_ports.py",),
    ),
    _images.mutation("a lower threshold", "_MIN_THRESHOLD = 23 * _MIB", "_MIN_THRESHOLD = 20 * _MIB"),
    _images.mutation(
        "a higher threshold", "_MAX_THRESHOLD_PER_CONTAINER = 1000", "_MAX_THRESHOLD_PER_CONTAINER = 1024"
    ),
    _images.mutation(
        "not scaled by spread", "int(float(size) * (having / nodes.snapshot.node_count))", "size"
    ),
    _images.mutation(
        "the most does not grow with the containers",
        "_MAX_THRESHOLD_PER_CONTAINER * count",
        "_MAX_THRESHOLD_PER_CONTAINER",
    ),
    _binder.mutation("binds nothing", "return True", "return False"),
    _binder.mutation(
        "configurations know it by another name",
        '"DefaultBinder"',
        '"Binder"',
        tests=("tests/configuration/test_read.py",),
    ),
    _binder.mutation(
        "a profile can do without",
        "if not any(isinstance(p, BindPlugin)",
        "if any(p is None and isinstance(p, BindPlugin)",
        file="configuration/profiles.py",
        tests=("tests/configuration/test_read.py",),
    ),
)
