"""How even a spread is: which domains can take one pod more, and how many points the others get.

The rules are those of PodTopologySpread, whoever the pods are that are counted.  Source: Kubernetes documentation,
"Pod Topology Spread Constraints", and kube-scheduler v1.37.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moorage.core.framework import go_math
from moorage.core.framework.interface import MAX_NODE_SCORE, Bools, Ints
from moorage.core.snapshot.topology import Domains, Scope
from moorage.core.snapshot.view import Nodes

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int32]
Ids = npt.NDArray[np.intp]

#: The raw score of a node that lacks a topology key: it gets 0 whatever the others get.
_IGNORED = -1


def admitted(values: Ints, present: Ids, *, max_skew: int, min_domains: int, own: int) -> Bools:
    """The domains that can take the pod without too great a skew, shape (size + 1,).

    ``values`` (size + 1,) are the pods by domain, ``present`` the domains that count, ``own`` is 1 if the pod
    counts itself.
    """
    least = 0
    if present.size >= max(min_domains, 1):
        least = int(values.take(present).min())
    good: Bools = values <= max_skew + least - own
    good[-1] = False
    return good


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """A soft constraint: ``by_domain`` holds each domain's share of the score, shape (size + 1,), 0 without the label.

    For the hostname the pods on each node are counted instead: ``by_row``, shape (capacity,).
    """

    domains: Domains
    max_skew: int
    weight: float
    by_domain: Floats | None
    by_row: Counts | None

    @classmethod
    def of_domains(cls, domains: Domains, max_skew: int, rows: Ints, values: Ints) -> Weighed:
        """Weighed by the number of domains among the rows; ``values`` are the pods by domain, shape (size + 1,)."""
        weight = go_math.log(float(_number_of_domains(domains, rows) + 2))
        if domains.blank >= 0:  # the empty value is one domain with the nodes that have no label at all
            values = values.copy()
            values[domains.blank] += values[-1]
        by_domain = values * np.float64(weight) + float(max_skew - 1)
        by_domain[-1] = 0.0
        return cls(domains, max_skew, weight, by_domain, None)

    @classmethod
    def of_rows(cls, domains: Domains, max_skew: int, rows: Ints, counts: Counts) -> Weighed:
        """Weighed by the number of rows; ``counts`` are the pods by row, shape (capacity,)."""
        return cls(domains, max_skew, go_math.log(float(rows.size + 2)), None, counts)


@dataclass(frozen=True, slots=True, eq=False)
class SoftState:
    """Soft constraints, at least one; nodes outside ``scope`` are ignored."""

    constraints: tuple[Weighed, ...]
    scope: Scope

    def score(self, nodes: Nodes) -> Ints:
        """Matching pods nearby, weighed; fewer is better."""
        total: Floats | None = None
        for weighed in self.constraints:
            if weighed.by_domain is not None:
                share = weighed.by_domain.take(nodes.ids(weighed.domains))
            else:
                assert weighed.by_row is not None, "one of the two is there"
                share = weighed.by_row.take(nodes.rows) * np.float64(weighed.weight)
                share += float(weighed.max_skew - 1)
                if not weighed.domains.complete:
                    share[nodes.ids(weighed.domains) == weighed.domains.size] = 0.0
            total = share if total is None else total + share
        assert total is not None, "without constraints the plugin skips"
        raw = go_math.rounded(total)
        if not self.scope.everywhere:
            raw[~self.scope.mask.take(nodes.rows)] = _IGNORED
        return raw


def scored_rows(scope: Scope, nodes: Nodes) -> Ints:
    """Those of the nodes that are not ignored."""
    rows = nodes.rows
    return rows[scope.mask.take(rows)] if nodes.whole or not scope.everywhere else rows


def normalize(raw: Ints) -> Ints:
    """The fewer pods, the more points; ignored nodes get none."""
    if not raw.size:
        return raw
    most, least = int(raw.max()), int(raw.min())
    if least < 0:
        ignored = raw < 0
        least = int(raw[~ignored].min()) if most >= 0 else 0
        scores = _scaled(raw, least, most)
        scores[ignored] = 0
        return scores
    return _scaled(raw, least, most)


def _scaled(raw: Ints, least: int, most: int) -> Ints:
    if most <= 0:
        return np.full_like(raw, MAX_NODE_SCORE)
    scaled: Ints = MAX_NODE_SCORE * (most + least - raw) // most
    return scaled


def _number_of_domains(domains: Domains, rows: Ints) -> int:
    """Distinct values of the label among the rows; no label is the same as an empty one."""
    marked = np.zeros(domains.size + 1, dtype=np.bool_)
    marked[domains.ids.take(rows)] = True
    number = int(np.count_nonzero(marked))
    if domains.blank >= 0 and marked[-1] and marked[domains.blank]:
        number -= 1
    return number
