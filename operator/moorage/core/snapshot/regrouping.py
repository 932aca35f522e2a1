"""Grouping all pods of a namespace anew, some rows at a time, and counting pods without groups in the meantime.

A selector that asks for a label key for the first time calls for other groups.  With 100,000 pods that takes longer
than a turn may, so it is spread over the next questions.  The rows before ``row`` are done; pods that come and go
there show in the new groups at once, those on the other rows when their turn comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moorage.core.model.pod import Pod
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import Requirement
from moorage.core.snapshot.pod_groups import NamespacePods

#: The pods of each row by UID.
Rows = Sequence[Mapping[str, Pod]]


class Regrouping:
    """The namespaces whose pods are grouped anew, and how far that is."""

    #: How much is done in one go: passing a pod by counts 1, grouping it 10; this is some 5 ms.
    EFFORT = 50_000

    def __init__(self, spaces: Iterable[NamespacePods]) -> None:
        self.row = 0
        self._spaces: dict[str, NamespacePods] = {}
        for space in spaces:
            if space.regrouping is not None:  # for an earlier key, in vain
                space.regrouping.leave(space)
            space.regrouping = self
            self._spaces[space.name] = space

    def leave(self, space: NamespacePods) -> None:
        """The namespace is not regrouped any more."""
        del self._spaces[space.name]
        space.regrouping = None

    def advance(self, pods: Rows) -> bool:
        """Group the pods of some more rows; True when all are done."""
        spaces, effort = self._spaces, self.EFFORT
        while spaces and self.row < len(pods):
            if effort <= 0:
                return False
            here = pods[self.row]
            effort -= len(here) + 1
            for pod in here.values():
                space = spaces.get(pod.namespace)
                if space is not None:
                    space.place(self.row, pod)
                    effort -= 9
            self.row += 1
        for space in list(spaces.values()):
            self.leave(space)
        return True


class _Admitted(dict[str | None, bool]):
    """Which values of a label satisfy a requirement, found out once for each."""

    def __init__(self, requirement: Requirement) -> None:
        super().__init__()
        self._requirement = requirement

    def __missing__(self, value: str | None) -> bool:
        found = self[value] = self._requirement.admits(value)
        return found


def rows_meant(pods: Rows, namespaces: frozenset[str], query: PodQuery) -> list[int]:
    """The row of each pod of these namespaces that the query means, found by looking at all of them."""
    requirements = query.selector.requirements
    all_, matches = query.terminating, query.selector.matches
    if not requirements:
        return [
            row
            for row, here in enumerate(pods)
            for pod in here.values()
            if pod.namespace in namespaces and (all_ or not pod.deleting)
        ]
    key, admitted, one = requirements[0].key, _Admitted(requirements[0]), len(requirements) == 1
    return [
        row
        for row, here in enumerate(pods)
        for pod in here.values()
        if pod.namespace in namespaces
        and admitted[pod.labels.get(key)]
        and (all_ or not pod.deleting)
        and (one or matches(pod.labels))
    ]
