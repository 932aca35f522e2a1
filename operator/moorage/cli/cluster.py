"""A cluster that exists in files only: objects are checked, completed and read; then an engine is filled with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.defaults import PriorityClasses, complete_node, complete_pod, expand, with_identity
from moorage.adapters.kube.kinds import Kind, Role, look_up
from moorage.adapters.kube.storage_defaults import complete_storage
from moorage.adapters.kube.validate import NodeSample, Problem, Value, check, check_metadata, check_type
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.device_class import DeviceClass
from moorage.core.model.events import (
    BudgetApplied,
    DeviceClassApplied,
    NamespaceApplied,
    NodeApplied,
    PodBound,
    PodPending,
    PolicyApplied,
    StorageApplied,
    UsageMeasured,
    UsageSample,
    WorkloadApplied,
)
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.policy import Policy
from moorage.core.model.storage import StorageObject
from moorage.core.model.workload import Namespace, Workload
from moorage.core.profile import NO_ADDITIONS, Additions, score_plugins

_POD = Kind("Pod", namespaced=True, role=Role.USED)
_POLICY_KINDS = ("SchedulingPolicy", "ClusterSchedulingPolicy")


@dataclass(frozen=True, slots=True)
class Source:
    """Where an object comes from: a file, the number of the document in it, a path within that."""

    file: str = ""
    document: int = 0
    path: str = ""

    def problem(self, field: str, message: str, *, warning: bool = False) -> Problem:
        """Something wrong with a field of this object."""
        return Problem(
            self.file, self.document, ".".join(p for p in (self.path, field) if p), message, warning
        )


@dataclass(slots=True)
class Cluster:
    """What the objects come to.  ``asked`` are pending pods in the order in which they were given.

    ``waiting`` are pending pods that nobody asks about, but whose nominations count, as they were given, too.
    Nodes and bound pods are sorted by name: what depends on who comes first (an image's size is taken from the
    first node that has it) must not depend on the order of a file.  ``abrupt`` are the UIDs of pods whose grace
    period is 0: asked to go, they are gone.
    """

    nodes: list[Node] = field(default_factory=list)
    bound: list[Pod] = field(default_factory=list)
    asked: list[Pod] = field(default_factory=list)
    waiting: list[Pod] = field(default_factory=list)
    budgets: list[DisruptionBudget] = field(default_factory=list)
    storage: list[StorageObject] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    device_classes: list[DeviceClass] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    samples: dict[str, UsageSample] = field(default_factory=dict)  # by node
    abrupt: set[str] = field(default_factory=set)
    raw_pods: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by UID, complete
    raw_nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by name
    skipped: Counter[str] = field(default_factory=Counter)  # objects of kinds without influence

    def engine(self, config: EngineConfig, now: float) -> Engine:
        """An engine that knows this cluster; pods that were asked about are not in its queue."""
        engine = Engine(config)
        pods = (*self.bound, *self.waiting, *self.asked)
        known = {namespace.name: namespace for namespace in self.namespaces}
        for name in dict.fromkeys([*known, *(pod.namespace for pod in pods)]):
            engine.handle(NamespaceApplied(known.get(name) or Namespace(name)), now)
        for workload in self.workloads:
            engine.handle(WorkloadApplied(workload), now)
        for device_class in self.device_classes:
            engine.handle(DeviceClassApplied(device_class), now)
        for node in self.nodes:
            engine.handle(NodeApplied(node), now)
        for budget in self.budgets:
            engine.handle(BudgetApplied(budget), now)
        for obj in complete_storage(self.storage):
            engine.handle(StorageApplied(obj), now)
        for policy in self.policies:
            engine.handle(PolicyApplied(policy), now)
        if self.samples:
            engine.handle(UsageMeasured(self.samples), now)
        for pod in self.bound:
            engine.handle(PodBound(pod), now)
        for pod in (*self.waiting, *self.asked):
            if pod.nominated_node:
                engine.handle(PodPending(pod), now)
        return engine


@dataclass(frozen=True, slots=True)
class _Item:
    obj: dict[str, Any]
    kind: Kind
    source: Source
    asked: bool


class Intake:
    """Takes objects in, one by one, and gives the cluster back, with all that is wrong.

    ``problems`` holds what the API server would refuse and, as warnings, what is only odd.  ``additions`` are users'
    plugins, which policies may weigh.
    """

    def __init__(
        self,
        *,
        converter: Converter | None = None,
        unknown_is_wrong: bool = True,
        additions: Additions = NO_ADDITIONS,
    ) -> None:
        self.problems: list[Problem] = []
        self._converter = converter or Converter()
        self._unknown_is_wrong = unknown_is_wrong
        self._score_plugins = score_plugins(additions)
        self._items: list[_Item] = []
        self._seen: set[tuple[str, str, str]] = set()
        self._classes = PriorityClasses()
        self._skipped: Counter[str] = Counter()

    @property
    def errors(self) -> list[Problem]:
        """The problems that make the input unusable."""
        return [problem for problem in self.problems if not problem.warning]

    def add(self, obj: object, source: Source) -> None:
        """Take in an object, or every object of a list."""
        for path, item in expand(obj, source.path):
            where = replace(source, path=path)
            wrong = check_type(item)
            if wrong or not isinstance(item, Mapping):
                self._report(where, wrong)
                continue
            kind = look_up(item["apiVersion"], item["kind"])
            if kind.role is Role.USED:
                self._add(item, kind, where, asked=False)
            else:
                self._skip(item, kind, where)

    @staticmethod
    def items_of(obj: object, source: Source) -> Iterator[tuple[object, Source]]:
        """The object itself, or every object of a list, each with where it is."""
        for path, item in expand(obj, source.path):
            yield item, replace(source, path=path)

    def drop(self, kind: str, namespace: str, name: str) -> bool:
        """Forget an object that was taken in; whether there was one."""
        key = (kind, namespace, name)
        if key not in self._seen:
            return False
        self._seen.remove(key)
        self._items = [item for item in self._items if _key(item.kind.name, item.obj) != key]
        return True

    def add_pod(self, obj: object, source: Source) -> None:
        """Take in a pod to place, whose apiVersion and kind may be left out."""
        if isinstance(obj, Mapping):
            obj = {"apiVersion": "v1", "kind": "Pod", **obj}
        wrong = check_type(obj)
        if wrong or not isinstance(obj, Mapping):
            self._report(source, wrong)
        elif (obj["apiVersion"], obj["kind"]) != ("v1", "Pod"):
            self.problems.append(source.problem("kind", f"must be Pod, not {obj['kind']}"))
        elif isinstance(obj.get("spec"), Mapping) and obj["spec"].get("nodeName"):
            message = "is set already; bound pods belong among the objects"
            self.problems.append(source.problem("spec.nodeName", message))
        else:
            self._add(obj, _POD, source, asked=True)

    def cluster(self, now: float, advance: Callable[[int, int], None] = lambda done, total: None) -> Cluster:
        """Complete and read everything that was taken in; pods that do not say when they started did so now.

        ``advance`` is told how far it is.
        """
        result = Cluster(skipped=self._skipped)
        holds = self._read_policies(result)
        for done, item in enumerate(self._items):
            advance(done, len(self._items))
            obj, name = item.obj, item.kind.name
            if name in _POLICY_KINDS:
                continue
            if name == "Node":
                obj = complete_node(obj)
            elif name == "Pod":
                obj, remark = self._classes.apply(complete_pod(obj))
                if remark:
                    self._report(item.source, [("spec.priorityClassName", remark)], warning=True)
            found = check(obj, name, self._converter)
            self._report(item.source, found.wrong)
            self._report(item.source, found.odd, warning=True)
            if found.wrong:
                continue
            if holds is not None and isinstance(found.value, Pod):
                found.value = replace(found.value, holds=holds(obj))
            _sort(found.value, item, obj, result, now)
        result.nodes.sort(key=lambda node: node.name)
        result.bound.sort(key=lambda pod: (pod.namespace, pod.name))
        return result

    def _read_policies(self, result: Cluster) -> Callable[[Mapping[str, Any]], frozenset[str]] | None:
        """Read the policies, which must be known before the pods are; what says which expressions hold for a pod."""
        items = [item for item in self._items if item.kind.name in _POLICY_KINDS]
        if not items:
            return None
        from moorage.adapters.policy.pod_expressions import PodExpressions  # takes long to import
        from moorage.adapters.policy.reading import read_policy

        expressions = {}
        for item in items:
            wrong = check_metadata(item.obj)
            self._report(item.source, wrong)
            if wrong:
                continue
            found = read_policy(item.obj, self._score_plugins)
            self._report(item.source, found.wrong)
            self._report(item.source, found.odd, warning=True)
            if found.policy is not None:
                result.policies.append(found.policy)
            if found.pod_expression is not None:
                expressions[found.pod_expression.text] = found.pod_expression
        holds = PodExpressions()
        holds.only(expressions)
        return holds

    def _add(self, obj: Mapping[str, Any], kind: Kind, source: Source, *, asked: bool) -> None:
        metadata = obj.get("metadata")
        if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
            self._report(source, check(obj, kind.name, self._converter).wrong)
            return
        complete = with_identity(obj, kind, len(self._items) + 1)
        key = _key(kind.name, complete)
        name = "/".join(part for part in key[1:] if part)
        if key in self._seen:
            if asked:
                self.problems.append(source.problem("metadata.name", f"pod {name} is listed twice"))
            else:
                message = f"there is a {kind.name} {name} already; this one is ignored"
                self.problems.append(source.problem("metadata.name", message, warning=True))
            return
        self._seen.add(key)
        self._items.append(_Item(complete, kind, source, asked))
        if kind.name == "PriorityClass":
            self._classes.add(complete)

    def _skip(self, item: Mapping[str, Any], kind: Kind, where: Source) -> None:
        self._skipped[kind.name] += 1
        if kind.role is Role.MISTAKEN and self._unknown_is_wrong:
            self.problems.append(where.problem("kind", kind.remark))
        elif kind.role is not Role.IDLE:
            self.problems.append(where.problem("kind", f"{kind.remark}; skipped", warning=True))

    def _report(self, source: Source, wrong: Iterable[tuple[str, str]], *, warning: bool = False) -> None:
        self.problems += [source.problem(field, message, warning=warning) for field, message in wrong]


def _key(kind: str, obj: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return kind, str(metadata.get("namespace", "")), metadata["name"]


def _sort(value: Value, item: _Item, obj: Mapping[str, Any], result: Cluster, now: float) -> None:
    """Put what was read where it belongs."""
    match value:
        case Node() as node:
            result.nodes.append(node)
            result.raw_nodes[node.name] = obj
        case DisruptionBudget() as budget:
            result.budgets.append(budget)
        case Pod() as pod:
            if not pod.finished:
                _sort_pod(pod, item, result, now)
                result.raw_pods[pod.uid] = obj
        case Namespace() as namespace:
            result.namespaces.append(namespace)
        case Workload() as workload:
            result.workloads.append(workload)
        case DeviceClass() as device_class:
            result.device_classes.append(device_class)
        case NodeSample(node_name, sample):
            result.samples[node_name] = sample
        case None:
            pass
        case storage:
            result.storage.append(storage)


def _sort_pod(pod: Pod, item: _Item, result: Cluster, now: float) -> None:
    if item.obj.get("spec", {}).get("terminationGracePeriodSeconds") == 0:
        result.abrupt.add(pod.uid)
    if pod.node_name:
        result.bound.append(pod if pod.started is not None else replace(pod, started=now))
    elif item.asked:
        result.asked.append(pod)
    else:
        result.waiting.append(pod)
