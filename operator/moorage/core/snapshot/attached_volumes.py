"""Volumes of CSI drivers attached to nodes, as columns: how many of each driver, and how many there may be.

A volume counts once on a node, however many pods there use it.  Which volume a claim means is found out when
somebody asks, for the rows where something changed since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from moorage.core.model.csi_migration import driver_of, inline_source, is_in_tree, volume_source
from moorage.core.model.pod import Pod
from moorage.core.model.pod_volumes import ClaimUse
from moorage.core.model.storage import (
    CSINode,
    CSISource,
    InTreeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from moorage.core.snapshot.storage import Storage

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: What a driver without a limit can attach.
NO_LIMIT = 1 << 31


class AttachedVolumes:
    """Follows the pods on rows and the storage objects; ``storage`` is only read."""

    def __init__(self, storage: Storage, capacity: int) -> None:
        self._storage = storage
        self._capacity = capacity
        self._node_names: dict[int, str] = {}
        self._row_of: dict[str, int] = {}
        self._pods: dict[int, dict[str, Pod]] = {}  # by row: those with volumes
        self._claim_rows: dict[str, Counter[int]] = {}
        self._users: Counter[str] = Counter()  # pods by claim, ephemeral ones left out
        self._stale: set[int] = set()
        self._used: dict[int, frozenset[CSISource]] = {}  # by pods
        self._others: dict[int, frozenset[CSISource]] = {}  # attached, and used by none of these pods
        self._counts: dict[str, Ints] = {}
        self._rows_using: dict[CSISource, set[int]] = {}
        self._limits: dict[str, Ints] = {}
        self._installed: dict[str, Bools] = {}
        self.known: Bools = np.zeros(capacity, dtype=np.bool_)  # rows whose CSINode is known

    # -- looking ---------------------------------------------------------------------------------

    def in_use(self, claim_key: str) -> bool:
        """Whether a pod on a node has the claim among its volumes."""
        return claim_key in self._users

    def counts(self, driver: str) -> Ints:
        """How many volumes of the driver are attached, shape (capacity,); do not write."""
        self._settle()
        return self._column(self._counts, driver, 0)

    def rows_using(self, source: CSISource) -> frozenset[int]:
        """The rows where a pod uses this very volume."""
        self._settle()
        return frozenset(self._rows_using.get(source, ()))

    def limits(self, driver: str) -> Ints:
        """How many volumes the driver can attach, shape (capacity,); do not write."""
        return self._column(self._limits, driver, NO_LIMIT)

    def installed(self, driver: str) -> Bools:
        """Where the driver is there at all, shape (capacity,); do not write."""
        column = self._installed.get(driver)
        return np.zeros(self._capacity, dtype=np.bool_) if column is None else column

    def source_of(self, claim: PersistentVolumeClaim, csi_node: bool) -> CSISource | None:
        """The volume that a claim counts as; one that has none yet counts as a volume of its class's driver.

        ``csi_node``: on nodes whose CSINode is known; only there do drivers stand in for in-tree plugins.
        """
        volume = self._storage.volumes.get(claim.volume_name) if claim.volume_name else None
        if volume is not None:
            if isinstance(volume.source, InTreeSource) and not csi_node:
                return None
            return volume_source(volume)
        storage_class = self._storage.classes.get(claim.storage_class) if claim.storage_class else None
        if storage_class is None:
            return None
        driver: str | None = storage_class.provisioner
        if is_in_tree(storage_class.provisioner):
            driver = driver_of(storage_class.provisioner) if csi_node else None
        return CSISource(driver, f"claim {claim.key}") if driver else None

    # -- nodes and pods --------------------------------------------------------------------------

    def node_added(self, row: int, node_name: str) -> None:
        """A node is on that row now."""
        self._node_names[row] = node_name
        self._row_of[node_name] = row
        self._set_csi_node(row, self._storage.csi_nodes.get(node_name))
        self._stale.add(row)

    def node_dropped(self, row: int) -> None:
        """The row is free; the pods on it were removed before."""
        self._row_of.pop(self._node_names.pop(row), None)
        self._set_csi_node(row, None)
        self._stale.add(row)

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        self._capacity = capacity
        for driver, column in self._counts.items():
            self._counts[driver] = _grown(column, capacity)
        for driver, column in self._limits.items():
            self._limits[driver] = _grown(column, capacity, NO_LIMIT)
        for driver, mask in self._installed.items():
            self._installed[driver] = _grown_mask(mask, capacity)
        self.known = _grown_mask(self.known, capacity)

    def add(self, row: int, pod: Pod) -> None:
        """A pod with volumes is on that row now."""
        self._pods.setdefault(row, {})[pod.uid] = pod
        for use, key in _claims(pod):
            self._claim_rows.setdefault(key, Counter())[row] += 1
            if not use.ephemeral:
                self._users[key] += 1
        self._stale.add(row)

    def remove(self, row: int, pod: Pod) -> None:
        """The pod is gone."""
        pods = self._pods[row]
        counted = pods.pop(pod.uid)
        if not pods:
            del self._pods[row]
        for use, key in _claims(counted):
            rows = self._claim_rows[key]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if not rows:
                del self._claim_rows[key]
            if not use.ephemeral:
                self._users[key] -= 1
                if not self._users[key]:
                    del self._users[key]
        self._stale.add(row)

    # -- storage objects -------------------------------------------------------------------------

    def storage_changed(self, before: StorageObject | None, after: StorageObject | None) -> None:
        """A storage object is new, changed or gone."""
        changed = before if after is None else after
        match changed:
            case PersistentVolumeClaim():
                self._stale.update(self._claim_rows.get(changed.key, ()))
            case PersistentVolume():
                for key in self._storage.claims_of_volume(changed.name):
                    self._stale.update(self._claim_rows.get(key, ()))
                attached = self._storage.attachments_of(changed.name)
                self._stale.update(self._row_of[a.node_name] for a in attached if a.node_name in self._row_of)
            case StorageClass():
                self._stale.update(self._pods)
            case VolumeAttachment():
                for attachment in (before, after):
                    if isinstance(attachment, VolumeAttachment) and attachment.node_name in self._row_of:
                        self._stale.add(self._row_of[attachment.node_name])
            case CSINode():
                row = self._row_of.get(changed.name)
                if row is not None:
                    self._set_csi_node(row, after if isinstance(after, CSINode) else None)
                    self._stale.add(row)
            case _:
                pass

    def _set_csi_node(self, row: int, csi_node: CSINode | None) -> None:
        self.known[row] = csi_node is not None
        limits = {} if csi_node is None else csi_node.limits
        for column in self._limits.values():
            column[row] = NO_LIMIT
        for mask in self._installed.values():
            mask[row] = False
        for driver, limit in limits.items():
            self._column(self._limits, driver, NO_LIMIT, keep=True)[row] = (
                NO_LIMIT if limit is None else limit
            )
            known = self._installed.get(driver)
            if known is None:
                known = self._installed[driver] = np.zeros(self._capacity, dtype=np.bool_)
            known[row] = True

    # -- counting --------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Count again where something changed."""
        while self._stale:
            row = self._stale.pop()
            self._uncount(row)
            used = frozenset(self._used_on(row))
            others = frozenset(self._attached_on(row)) - used
            if used:
                self._used[row] = used
                for source in used:
                    self._rows_using.setdefault(source, set()).add(row)
            if others:
                self._others[row] = others
            for source in used | others:
                self._column(self._counts, source.driver, 0, keep=True)[row] += 1

    def _uncount(self, row: int) -> None:
        used = self._used.pop(row, frozenset())
        for source in used:
            rows = self._rows_using[source]
            rows.discard(row)
            if not rows:
                del self._rows_using[source]
        for source in used | self._others.pop(row, frozenset()):
            self._counts[source.driver][row] -= 1

    def _used_on(self, row: int) -> Iterator[CSISource]:
        csi_node = bool(self.known[row])
        for pod in self._pods.get(row, {}).values():
            for use, key in _claims(pod):
                claim = self._storage.claims.get(key)
                if claim is None or (use.ephemeral and claim.owner != pod.uid):
                    continue
                source = self.source_of(claim, csi_node)
                if source is not None:
                    yield source
            if csi_node:
                for inline in pod.volumes.in_tree:
                    source = inline_source(inline)
                    if source is not None:
                        yield source

    def _attached_on(self, row: int) -> Iterator[CSISource]:
        node_name = self._node_names.get(row)
        if node_name is None:
            return
        for attachment in self._storage.attachments_on(node_name):
            volume = self._storage.volumes.get(attachment.volume_name)
            if attachment.attacher and volume is not None and isinstance(volume.source, CSISource):
                yield CSISource(attachment.attacher, volume.source.handle)

    def _column(self, columns: dict[str, Ints], driver: str, default: int, *, keep: bool = False) -> Ints:
        column = columns.get(driver)
        if column is None:
            column = np.full(self._capacity, default, dtype=np.int64)
            if keep:
                columns[driver] = column
        return column


def _claims(pod: Pod) -> Iterator[tuple[ClaimUse, str]]:
    for use in pod.volumes.claims:
        yield use, f"{pod.namespace}/{use.name}"


def _grown(column: Ints, capacity: int, default: int = 0) -> Ints:
    grown = np.full(capacity, default, dtype=np.int64)
    grown[: column.size] = column
    return grown


def _grown_mask(column: Bools, capacity: int) -> Bools:
    grown = np.zeros(capacity, dtype=np.bool_)
    grown[: column.size] = column
    return grown
