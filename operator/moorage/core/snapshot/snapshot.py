"""The columns of all nodes and of what the pods on them take."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.resources import CPU, MEMORY, PODS, Requests
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.snapshot.amounts import AmountColumn
from moorage.core.snapshot.attached_volumes import AttachedVolumes
from moorage.core.snapshot.declared_features import DeclaredFeatures
from moorage.core.snapshot.device_classes import DeviceClasses
from moorage.core.snapshot.disks import Disks
from moorage.core.snapshot.expression_columns import ExpressionColumns
from moorage.core.snapshot.host_ports import HostPorts
from moorage.core.snapshot.images import ImageColumns
from moorage.core.snapshot.journal import Journal
from moorage.core.snapshot.labels import LabelColumn
from moorage.core.snapshot.masks import MaskCache
from moorage.core.snapshot.namespaces import Namespaces
from moorage.core.snapshot.pod_counts import PodCounts
from moorage.core.snapshot.pod_terms import PodTerms
from moorage.core.snapshot.ranking import Ranking
from moorage.core.snapshot.selected_pods import SelectedPods
from moorage.core.snapshot.storage import Storage
from moorage.core.snapshot.taints import TaintSets
from moorage.core.snapshot.topology import Topology
from moorage.core.snapshot.usage_samples import UsageSamples
from moorage.core.snapshot.workloads import Workloads

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_FIRST_CAPACITY = 64
#: Label keys kept as columns; the oldest makes room (it is built again when it is asked for).
_LABEL_COLUMNS = 1024


class Snapshot:
    """All nodes as columns; ``capacity`` rows are allocated, of which ``alive`` ones hold a node.

    Columns have the shape (capacity,).  A row whose node is gone holds zeros and is not ``alive``.
    ``static`` journals changes of nodes themselves, ``usage`` changes of what their pods take.
    ``now`` is the engine's time as of its current verb: seconds since the epoch (UTC), never going backwards.  No
    journal tells that it has gone on, so only plugins that declare ``Reads.CLUSTER`` may read it.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.capacity = _FIRST_CAPACITY
        self.alive: Bools = np.zeros(self.capacity, dtype=np.bool_)
        self.unschedulable: Bools = np.zeros(self.capacity, dtype=np.bool_)
        self.pod_count: Ints = np.zeros(self.capacity, dtype=np.int64)
        self.scoring_cpu = AmountColumn(self.capacity)
        self.scoring_memory = AmountColumn(self.capacity)
        self.nodes: list[Node | None] = []
        self.pods: list[dict[str, Pod]] = []  # by row: uid -> pod, in order of arrival
        self.ranking = Ranking(self.pods)
        self.node_count = 0
        self.static = Journal()
        self.usage = Journal()
        self.taints = TaintSets(self.capacity)
        self.host_ports = HostPorts()
        self.images = ImageColumns()
        self.features = DeclaredFeatures()
        self.disks = Disks()
        self.storage = Storage()
        self.attached = AttachedVolumes(self.storage, self.capacity)
        self.storage.listen(self.attached.storage_changed)
        self.topology = Topology(self)
        self.pod_counts = PodCounts(self)
        self.pod_terms = PodTerms()
        self.selected = SelectedPods(self)
        self.usage_samples = UsageSamples(self)
        self.expressions = ExpressionColumns(self)
        self.namespaces = Namespaces()
        self.workloads = Workloads()
        self.device_classes = DeviceClasses()
        self._row_of: dict[str, int] = {}
        self._free_rows: list[int] = []
        self._allocatable: dict[str, AmountColumn] = {}
        self._requested: dict[str, AmountColumn] = {}
        self._labels: dict[str, LabelColumn] = {}
        self._masks: MaskCache[np.bool_] = MaskCache(self.static)
        self._firsts: MaskCache[np.int64] = MaskCache(self.static)
        self._zeros: Ints = np.zeros(self.capacity, dtype=np.int64)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that some node has or some pod on a node asks for."""
        return tuple(dict.fromkeys((*self._allocatable, *self._requested)))

    def row_of(self, node_name: str) -> int | None:
        """The row of a node, None if there is no such node."""
        return self._row_of.get(node_name)

    def node_names(self) -> list[str]:
        """The nodes there are."""
        return list(self._row_of)

    def node_at(self, row: int) -> Node:
        """The node on that row; raises LookupError for a free row."""
        node = self.nodes[row]
        if node is None:
            raise LookupError(f"row {row} holds no node")
        return node

    def name_at(self, row: int) -> str:
        """The name of the node on that row."""
        return self.node_at(row).name

    def allocatable(self, resource: str) -> Ints:
        """What the nodes have of a resource in base units, shape (capacity,); zeros if no node has it."""
        column = self._allocatable.get(resource)
        return self._zeros if column is None else column.values

    def requested(self, resource: str) -> Ints:
        """What the pods on the nodes ask for in base units, shape (capacity,)."""
        column = self._requested.get(resource)
        return self._zeros if column is None else column.values

    def peak(self, resource: str) -> int:
        """An amount that no node has, and no pods on a node ask for, more than."""
        columns = (self._allocatable.get(resource), self._requested.get(resource))
        peak = max((column.peak for column in columns if column is not None), default=0)
        scoring = {CPU: self.scoring_cpu, MEMORY: self.scoring_memory}.get(resource)
        return peak if scoring is None else max(peak, scoring.peak)

    def everywhere(self, resource: str) -> bool:
        """Whether every node has some of the resource."""
        column = self._allocatable.get(resource)
        return column is not None and column.nonzero == self.node_count

    def label(self, key: str) -> LabelColumn:
        """The column of a label key, built when first asked for."""
        column = self._labels.get(key)
        if column is None:
            if len(self._labels) >= _LABEL_COLUMNS:
                del self._labels[next(iter(self._labels))]
            column = self._labels[key] = LabelColumn(key, self.nodes, self.capacity)
        return column

    def requirement_mask(self, requirement: Requirement) -> Bools:
        """Which nodes satisfy a requirement on their labels, shape (capacity,); cached, do not write."""
        return self._masks.get(requirement, lambda: self.label(requirement.key).admitted(requirement))

    def term_mask(self, term: NodeSelectorTerm) -> Bools:
        """Which nodes a node selector term matches, shape (capacity,); cached, do not write."""
        return self._masks.get(term, lambda: self._compute_term(term))

    def selector_mask(self, selector: NodeSelector) -> Bools:
        """Which nodes a node selector matches, shape (capacity,); cached, do not write."""
        return self._masks.get(selector, lambda: self._compute_selector(selector))

    def labelled_mask(self, selector: LabelSelector) -> Bools:
        """Which nodes a label selector matches, shape (capacity,), free rows never; cached, do not write."""
        return self._masks.get(selector, lambda: self._compute_labelled(selector))

    def first_labelled(self, selectors: tuple[LabelSelector, ...]) -> Ints:
        """The index of the first selector that matches each node, -1 where none does; cached, do not write."""
        return self._firsts.get(selectors, lambda: self._compute_first(selectors))

    def _compute_labelled(self, selector: LabelSelector) -> Bools:
        mask = self.alive.copy()
        for requirement in selector.requirements:
            mask &= self.requirement_mask(requirement)
        return mask

    def _compute_first(self, selectors: tuple[LabelSelector, ...]) -> Ints:
        first = np.full(self.capacity, -1, dtype=np.int64)
        for index in range(len(selectors) - 1, -1, -1):
            first[self.labelled_mask(selectors[index])] = index
        return first

    def _compute_term(self, term: NodeSelectorTerm) -> Bools:
        mask = np.full(self.capacity, bool(term.expressions or term.fields), dtype=np.bool_)
        for requirement in term.expressions:
            mask &= self.requirement_mask(requirement)
        for field in term.fields:
            mask &= self._compute_field(field)
        return mask

    def _compute_field(self, field: Requirement) -> Bools:
        """Which nodes satisfy a requirement on ``metadata.name``, the only field there is."""
        mask = np.zeros(self.capacity, dtype=np.bool_)
        if field.key != "metadata.name":
            return mask
        if field.operator is Operator.IN:  # a DaemonSet's pods each ask for one node by name
            rows = [row for row in map(self.row_of, field.values) if row is not None]
            mask[rows] = True
            return mask
        for row, node in enumerate(self.nodes):
            mask[row] = node is not None and field.admits(node.name)
        return mask

    def _compute_selector(self, selector: NodeSelector) -> Bools:
        mask = np.zeros(self.capacity, dtype=np.bool_)
        for term in selector.terms:
            mask |= self.term_mask(term)
        return mask

    # -- nodes -----------------------------------------------------------------------------------

    def set_node(self, node: Node) -> int:
        """Add a node or replace the one of its name; returns its row.  Pods are not touched."""
        row = self._row_of.get(node.name)
        if row is None:
            row = self._take_row(node.name)
            self.node_count += 1
        before = self.nodes[row]
        self.nodes[row] = node
        self.alive[row] = True
        self.unschedulable[row] = node.unschedulable
        self.taints.set(row, node.taints)
        self._set_allocatable(row, node, before)
        for key, column in self._labels.items():
            column.set(row, node.labels.get(key))
        if before is None or before.images != node.images:
            self.images.set(row, node)
        if before is None or before.declared_features != node.declared_features:
            self.features.set(row, node)
        if before is None:
            self.attached.node_added(row, node.name)
            self.usage_samples.node_added(row, node.name)
        if before is None or before.labels != node.labels or before.taints != node.taints:
            self.topology.changed()
        self.static.mark(row)
        return row

    def drop_node(self, node_name: str) -> None:
        """Free the row of a node with everything on it."""
        row = self._row_of.pop(node_name)
        before = self.nodes[row]
        for pod in list(self.pods[row].values()):
            self.remove_pod(row, pod)
        self.nodes[row] = None
        self.node_count -= 1
        self.alive[row] = False
        self.unschedulable[row] = False
        self.taints.set(row, ())
        if before is not None:
            for resource in before.allocatable:
                self._allocatable[resource].set(row, 0)
        for key, column in list(self._labels.items()):
            column.set(row, None)
            if column.wasteful:
                del self._labels[key]
        self.images.set(row, None)
        self.features.set(row, None)
        self.attached.node_dropped(row)
        self.usage_samples.node_dropped(row)
        self.topology.changed()
        self._free_rows.append(row)
        self.static.mark(row)

    def _set_allocatable(self, row: int, node: Node, before: Node | None) -> None:
        if before is not None:
            if before.allocatable == node.allocatable:
                return
            for resource in before.allocatable:
                if resource not in node.allocatable:
                    self._allocatable[resource].set(row, 0)
        for resource, amount in node.allocatable.items():
            column = self._allocatable.get(resource)
            if column is None:
                column = self._allocatable[resource] = AmountColumn(self.capacity)
            column.set(row, amount)

    def _take_row(self, node_name: str) -> int:
        if self._free_rows:
            row = self._free_rows.pop()
        else:
            row = len(self.nodes)
            if row == self.capacity:
                self._grow()
            self.nodes.append(None)
            self.pods.append({})
        self._row_of[node_name] = row
        return row

    def _grow(self) -> None:
        # A sixteenth more, not twice as much: every decision pays for rows without a node.
        old = self.capacity
        new = old + max(_FIRST_CAPACITY, old // 16)
        self.capacity = new
        for name in ("alive", "unschedulable", "pod_count", "_zeros"):
            column = getattr(self, name)
            grown = np.zeros(new, dtype=column.dtype)
            grown[:old] = column
            setattr(self, name, grown)
        for amounts in (
            self.scoring_cpu,
            self.scoring_memory,
            *self._allocatable.values(),
            *self._requested.values(),
        ):
            amounts.grow(new)
        for labels in self._labels.values():
            labels.grow(new)
        self.taints.grow(new)
        self.images.grow()
        self.features.grow(new)
        self.attached.grow(new)
        self.pod_counts.grow(new)
        self.selected.grow(new)
        self.usage_samples.grow(new)
        self._masks.clear()
        self._firsts.clear()

    # -- pods ------------------------------------------------------------------------------------

    def add_pod(self, row: int, pod: Pod) -> None:
        """Count a pod on that row."""
        self.pods[row][pod.uid] = pod
        self.pod_count[row] += 1
        self._count(row, pod.requests, 1)
        if pod.spec.host_ports:
            self.host_ports.add(row, pod.spec.host_ports)
        if pod.volumes:
            self.disks.add(row, pod.volumes.disks)
            self.attached.add(row, pod)
        self._tell(row, pod)
        if self.selected.tracked:
            self.selected.add(row, pod)
        if self.usage_samples.kept:
            self.usage_samples.add(row, pod)
        self.ranking.changed(row)
        self.usage.mark(row)

    def refresh_pod(self, row: int, pod: Pod) -> None:
        """A pod on that row has a new description but takes what it took."""
        before = self.pods[row][pod.uid]
        self.pods[row][pod.uid] = pod
        if self.selected.tracked:
            self.selected.refresh(row, before, pod)
        self.ranking.changed(row)
        if (
            before.labels != pod.labels
            or before.deleting != pod.deleting
            or before.spec.pod_affinity is not pod.spec.pod_affinity
        ):
            self._tell_no_more(row, before)
            self._tell(row, pod)

    def remove_pod(self, row: int, pod: Pod) -> None:
        """Take a pod off that row again; ``pod`` must be the very object that was added."""
        counted = self.pods[row].pop(pod.uid)
        self.pod_count[row] -= 1
        self._count(row, counted.requests, -1)
        if counted.spec.host_ports:
            self.host_ports.remove(row, counted.spec.host_ports)
        if counted.volumes:
            self.disks.remove(row, counted.volumes.disks)
            self.attached.remove(row, counted)
        self._tell_no_more(row, counted)
        if self.selected.tracked:
            self.selected.remove(row, counted)
        if self.usage_samples.kept:
            self.usage_samples.remove(row, counted)
        self.ranking.changed(row)
        self.usage.mark(row)

    def arrange_pods(self, row: int, order: Iterable[str]) -> None:
        """Put the pods of a row into this order of UIDs, which names each of them: that of their arrival."""
        pods = self.pods[row]
        self.pods[row] = {uid: pods[uid] for uid in order}

    def _tell(self, row: int, pod: Pod) -> None:
        """Let those know of the pod who count pods by labels and keep the affinity terms of pods."""
        self.pod_counts.add(row, pod)
        if pod.spec.pod_affinity is not None:
            self.pod_terms.add(row, pod)

    def _tell_no_more(self, row: int, pod: Pod) -> None:
        self.pod_counts.remove(row, pod)
        if pod.spec.pod_affinity is not None:
            self.pod_terms.remove(row, pod)

    def _count(self, row: int, requests: Requests, sign: int) -> None:
        for resource, amount in requests.amounts.items():
            if amount:
                column = self._requested.get(resource)
                if column is None:
                    column = self._requested[resource] = AmountColumn(self.capacity)
                column.add(row, sign * amount)
        self.scoring_cpu.add(row, sign * requests.scoring_cpu)
        self.scoring_memory.add(row, sign * requests.scoring_memory)

    def allowed_pods(self) -> Ints:
        """How many pods each node may hold, shape (capacity,); a node that does not say allows none."""
        return self.allocatable(PODS)
