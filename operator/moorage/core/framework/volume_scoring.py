"""How full storage gets: the score of a node by what the pod takes of its volumes or capacities.

Source of the rule: ``volumebinding/scorer.go`` of kube-scheduler v1.37 (gate StorageCapacityScoring, on by default).
"""

from __future__ import annotations

from itertools import pairwise

from moorage.core.framework.interface import MAX_NODE_SCORE
from moorage.core.framework.volume_matching import Offer

#: (utilisation 0..100, score 0..10), ascending.
Shape = tuple[tuple[int, int], ...]

#: The emptier the better, and so the tighter a volume fits the worse; the default of kube-scheduler v1.37.
DEFAULT_SHAPE: Shape = ((0, 10), (100, 0))
_FULL = 100


def storage_score(offer: Offer, shape: Shape) -> int:
    """The mean over the storage classes of what is offered, 0..MAX_NODE_SCORE; 0 if no class counts.

    If existing volumes are to be bound, those alone count; else capacities do, where they are tracked.
    """
    classes: dict[str, tuple[int, int]] = {}  # requested and capacity in bytes
    if offer.bindings:
        for binding in offer.bindings:
            name = binding.volume.storage_class
            requested, capacity = classes.get(name, (0, 0))
            wanted = binding.claim.request
            size = 0 if wanted is None else wanted.value()
            classes[name] = requested + size, capacity + binding.volume.capacity.value()
    else:
        for provision in offer.provisions:
            if provision.capacity is not None and provision.claim.request is not None:
                name = provision.claim.storage_class
                requested, _ = classes.get(name, (0, 0))
                room = provision.capacity.capacity  # of the pool, which several claims share
                capacity = 0 if room is None else room.value()
                classes[name] = requested + provision.claim.request.value(), capacity
    if not classes:
        return 0
    total = sum(_score(requested, capacity, shape) for requested, capacity in classes.values())
    return (2 * total + len(classes)) // (2 * len(classes))  # rounded half up


def _score(requested: int, capacity: int, shape: Shape) -> int:
    full = capacity == 0 or requested > capacity
    return _on_line(_FULL if full else requested * _FULL // capacity, shape)


def _on_line(utilisation: int, shape: Shape) -> int:
    """The broken line through the points, with division truncating towards zero."""
    points = [(at, score * (MAX_NODE_SCORE // 10)) for at, score in shape]
    if utilisation <= points[0][0]:
        return points[0][1]
    for (u0, s0), (u1, s1) in pairwise(points):
        if utilisation <= u1:
            rise = (s1 - s0) * (utilisation - u0)
            return s0 + (rise // (u1 - u0) if rise >= 0 else -(-rise // (u1 - u0)))
    return points[-1][1]
