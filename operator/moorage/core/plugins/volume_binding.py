"""VolumeBinding: claims that are bound, and those that are bound or provisioned once a node is chosen.

A claim of a class that waits for its first consumer gets its volume by way of the scheduler: Filter looks for nodes
where there is one or where one can be made, Reserve promises it, PreBind has it written (the volume then names
the claim, or the claim the node) and waits until the volume controller has bound the claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import (
    GivenUp,
    Ints,
    Preparation,
    Progress,
    Reads,
    Reason,
    Rejected,
    Skip,
    Verdict,
    no_change,
)
from moorage.core.framework.pod_claims import PodClaims, claim_problem, claims_of
from moorage.core.framework.trials import Balance, Trial
from moorage.core.framework.volume_matching import Offer, VolumeFinder
from moorage.core.framework.volume_progress import volume_progress
from moorage.core.framework.volume_scoring import DEFAULT_SHAPE, Shape, storage_score
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.instructions import BindVolume, SelectNode, VolumeStep
from moorage.core.model.pod import Pod
from moorage.core.snapshot.label_groups import label_groups
from moorage.core.snapshot.reservations import Reservation
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_NO_LABELS: Mapping[str, str] = {}
_REASONS = (
    Reason("node(s) didn't match PersistentVolume's node affinity", resolvable=False),
    Reason("node(s) didn't find available persistent volumes to bind", resolvable=False),
    Reason("node(s) did not have enough free storage", resolvable=False),
    Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", resolvable=False),
)


@dataclass(slots=True)
class Search:
    """What is looked for; nodes that do not differ in what matters are looked at once."""

    finder: VolumeFinder
    _known: dict[tuple[object, ...], Offer] = field(default_factory=dict)

    def offers(self, nodes: Nodes) -> tuple[list[Offer], Ints]:
        """The different offers, and which of them each node makes, shape (M,)."""
        finder, snapshot, known = self.finder, nodes.snapshot, self._known
        keys, plugins, selected = finder.keys, finder.plugins, finder.selected_nodes
        masks = [_is(nodes, selected)] if selected else []
        masks += [_migrated(nodes, plugin) for plugin in plugins]
        first, group = label_groups(snapshot, nodes.rows, keys, masks)
        offers = []
        for index, row in zip(first.tolist(), nodes.rows[first].tolist(), strict=True):
            node = snapshot.nodes[row] if row < len(snapshot.nodes) else None
            labels = _NO_LABELS if node is None else node.labels
            flags = tuple(bool(mask[index]) for mask in masks)
            looks = (*map(labels.get, keys), *flags)
            offer = known.get(looks)
            if offer is None:
                on = flags[len(flags) - len(plugins) :]
                migrated = frozenset(name for name, taken_over in zip(plugins, on, strict=True) if taken_over)
                offer = finder.offer(labels, migrated, is_selected=bool(selected) and flags[0])
                known[looks] = offer
            offers.append(offer)
        return offers, group


def _search(pod: Pod, claims: PodClaims, snapshot: Snapshot) -> Search:
    """What one step of a cycle has found out is there for the next."""
    storage = snapshot.storage
    key = (pod.namespace, pod.uid, pod.volumes)
    return storage.shared(key, lambda: Search(VolumeFinder(claims, storage)))


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """``bind_timeout`` is in seconds; ``shape`` is how the use of storage turns into a score."""

    name: ClassVar[str] = "VolumeBinding"
    reads: ClassVar[Reads] = Reads.NODE | Reads.CLUSTER
    late: ClassVar[bool] = True

    bind_timeout: float = 600.0
    shape: Shape = DEFAULT_SHAPE

    # -- choosing a node -------------------------------------------------------------------------

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Search | Skip | Rejected:
        """Rejects a pod with a claim that is missing, lost, dying, or should be bound by now."""
        if not pod.volumes.claims:
            return Skip.SKIP
        problem = claim_problem(pod, snapshot.storage)
        if problem:
            return Rejected((problem,), Code.UNRESOLVABLE)
        claims = claims_of(pod, snapshot.storage)
        if claims.immediate:
            text = "pod has unbound immediate PersistentVolumeClaims"
            return Rejected((text,), Code.UNRESOLVABLE)
        return _search(pod, claims, snapshot)

    def filter(self, state: Search, nodes: Nodes) -> Verdict:
        """Nodes fail that do not reach the bound volumes, or have none to offer for the other claims."""
        offers, group = state.offers(nodes)
        table = np.zeros((len(_REASONS), len(offers)), dtype=np.bool_)
        for index, offer in enumerate(offers):
            table[:, index] = offer.unreachable, offer.unmatched, offer.too_small, offer.missing
        return Verdict(_REASONS, table[:, group])

    def trial(self, state: Search, trial: Trial) -> Balance:
        """Pods on the node do not matter."""
        return Balance.fixed(self, state, trial)

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> Search | Literal[Skip.SKIP] | None:
        """None for a pod whose volumes are all settled: every node is as good, and says so."""
        if not pod.volumes.claims or claim_problem(pod, snapshot.storage):
            return None
        claims = claims_of(pod, snapshot.storage)
        return _search(pod, claims, snapshot) if claims.delayed else None

    def score(self, state: Search | None, nodes: Nodes) -> Ints:
        """How full the volumes or the storage would be."""
        if state is None:
            return np.zeros(len(nodes), dtype=np.int64)
        offers, group = state.offers(nodes)
        scores = np.array([storage_score(offer, self.shape) for offer in offers], dtype=np.int64)
        return scores[group]

    def normalize(self, raw: Ints) -> Ints:
        """Raw scores are in range already."""
        return no_change(raw)

    # -- on the chosen node ----------------------------------------------------------------------

    def reserve(self, pod: Pod, node_name: str, snapshot: Snapshot) -> Rejected | None:
        """Promise the pod what the node offers."""
        row = snapshot.row_of(node_name)
        if not pod.volumes.claims or row is None:
            return None
        claims = claims_of(pod, snapshot.storage)
        if not claims.delayed:
            return None
        offers, _ = _search(pod, claims, snapshot).offers(Nodes(snapshot, np.array([row])))
        (offer,) = offers
        refused = (offer.unreachable, offer.unmatched, offer.too_small, offer.missing)
        if any(refused):
            texts = tuple(reason.text for reason, yes in zip(_REASONS, refused, strict=True) if yes)
            return Rejected(texts, Code.UNRESOLVABLE)
        provisions = tuple(provision.claim for provision in offer.provisions)
        snapshot.storage.reservations.begin(Reservation(pod.uid, node_name, offer.bindings, provisions))
        return None

    def unreserve(self, pod: Pod, node_name: str, snapshot: Snapshot) -> None:
        """Take the promise back."""
        snapshot.storage.reservations.end(pod.uid)

    def pre_bind(self, pod: Pod, node_name: str, snapshot: Snapshot) -> Preparation | None:
        """Have the promise written, unless the API server shows it already."""
        storage = snapshot.storage
        reservation = storage.reservations.get(pod.uid)
        if reservation is None:
            return None
        steps: list[VolumeStep] = []
        for binding in reservation.bindings:
            volume, ref = binding.volume, binding.claim.ref
            shown = storage.volumes.get(volume.name, volume)
            if shown.claim != ref:
                prebound = shown.claim is not None
                steps.append(BindVolume(volume.name, volume.resource_version, ref, prebound=prebound))
        steps += [
            SelectNode(claim.ref, claim.resource_version, node_name)
            for claim in reservation.provisions
            if storage.claims.get(claim.key, claim).selected_node != node_name
        ]
        return Preparation(tuple(steps), self.bind_timeout)

    def progress(self, pod: Pod, node_name: str, snapshot: Snapshot) -> Progress | GivenUp:
        """Done when the volume controller has bound every claim."""
        reservation = snapshot.storage.reservations.get(pod.uid)
        if reservation is None:
            return Progress.DONE
        row = snapshot.row_of(node_name)
        if row is None:
            text = f'failed to get node "{node_name}": node "{node_name}" not found'
            return GivenUp(f"binding volumes: {text}")
        answer = volume_progress(reservation, snapshot.node_at(row), snapshot.storage)
        return answer if isinstance(answer, Progress) else GivenUp(f"binding volumes: {answer.text}")

    def overdue(self) -> str:
        """The words of kube-scheduler, whose wait is a context with a deadline."""
        return "binding volumes: context deadline exceeded"

    # -- being asked again -----------------------------------------------------------------------

    def wakes_on(self) -> Sequence[WakesOn]:
        """A class, claim, volume, node or capacity appears, or changes for the better."""
        return (
            WakesOn(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, _allows_more),
            WakesOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, _is_mine, per_spec=False),
            WakesOn(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE),
            WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            WakesOn(Resource.CSI_NODE, Action.ADD | Action.UPDATE, _takes_over),
            WakesOn(Resource.CSI_DRIVER, Action.UPDATE | Action.DELETE, _stops_tracking),
            WakesOn(Resource.CSI_STORAGE_CAPACITY, Action.ADD | Action.UPDATE, _has_more),
        )


def _is(nodes: Nodes, names: frozenset[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The node of this name; none if there are several names."""
    mask = np.zeros(nodes.snapshot.capacity, dtype=np.bool_)
    row = nodes.snapshot.row_of(next(iter(names))) if len(names) == 1 else None
    if row is not None:
        mask[row] = True
    return mask[nodes.rows]


def _migrated(nodes: Nodes, plugin: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where a CSI driver handles the volumes of an in-tree plugin."""
    snapshot = nodes.snapshot
    mask = np.zeros(snapshot.capacity, dtype=np.bool_)
    for name, csi_node in snapshot.storage.csi_nodes.items():
        row = snapshot.row_of(name)
        if row is not None and plugin in csi_node.migrated:
            mask[row] = True
    return mask[nodes.rows]


def _allows_more(pod: Pod, event: ClusterEvent) -> bool:
    return event.old is None or event.old.topologies != event.new.topologies


def _is_mine(pod: Pod, event: ClusterEvent) -> bool:
    claim = event.new
    return pod.namespace == claim.namespace and any(use.name == claim.name for use in pod.volumes.claims)


def _takes_over(pod: Pod, event: ClusterEvent) -> bool:
    return event.old is None or event.old.migrated != event.new.migrated


def _stops_tracking(pod: Pod, event: ClusterEvent) -> bool:
    return bool(event.old.tracks_capacity) and (event.new is None or not event.new.tracks_capacity)


def _has_more(pod: Pod, event: ClusterEvent) -> bool:
    if event.old is None:
        return True
    before, after = event.old.limit, event.new.limit
    return after is not None and (before is None or after > before)
