"""Which disruption budgets guard which pods, without comparing every budget with every pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.pod import Pod
from moorage.core.model.selector import LabelSelector
from moorage.core.snapshot.selector_index import SelectorIndex

Ints = npt.NDArray[np.int64]

#: In place of a budget's number.
NO_BUDGET, SEVERAL = -1, -2


class Budgets:
    """Some budgets, in the order in which they are used up."""

    def __init__(self, budgets: Sequence[DisruptionBudget]) -> None:
        self._budgets = budgets
        self._by_namespace: dict[str, SelectorIndex[int]] = {}
        self._selectors: dict[int, LabelSelector] = {}
        for number, budget in enumerate(budgets):
            if budget.selector is not None and budget.selector.requirements:
                index = self._by_namespace.setdefault(budget.namespace, SelectorIndex())
                index.add(number, budget.selector)
                self._selectors[number] = budget.selector

    def guarding(self, pods: Sequence[Pod]) -> Ints:
        """The number of the budget that guards each pod, shape (P,); NO_BUDGET or SEVERAL."""
        if not self._by_namespace:
            return np.full(len(pods), NO_BUDGET, dtype=np.int64)
        known: dict[tuple[str, int], tuple[int, ...]] = {}  # pods of a template share their labels
        numbers: list[int] = []
        for pod in pods:
            key = pod.namespace, id(pod.labels)
            found = known.get(key)
            if found is None:
                found = known[key] = self._matching(pod)
            if found:
                found = self._counting(pod, found)
            numbers.append(found[0] if len(found) == 1 else SEVERAL if found else NO_BUDGET)
        return np.array(numbers, dtype=np.int64)

    def allowed(self) -> Ints:
        """How many evictions each budget has left."""
        return np.array([budget.allowed for budget in self._budgets], dtype=np.int64)

    def _matching(self, pod: Pod) -> tuple[int, ...]:
        """The budgets whose selector matches the pod, in order."""
        index = self._by_namespace.get(pod.namespace)
        if index is None or not pod.labels:
            return ()
        found = sorted(set(index.candidates(pod.labels)))
        return tuple(n for n in found if self._selectors[n].matches(pod.labels))

    def _counting(self, pod: Pod, matching: tuple[int, ...]) -> tuple[int, ...]:
        """Without those that count the pod as disrupted already."""
        return tuple(n for n in matching if pod.name not in self._budgets[n].disrupted)

    def broken(self, pods: Iterable[Pod]) -> list[bool]:
        """For each pod whether its eviction breaks a budget, were all of them evicted in this order."""
        left: dict[int, int] = {}
        broken: list[bool] = []
        for pod in pods:
            breaks = False
            for number in self._counting(pod, self._matching(pod)):
                left[number] = left.get(number, self._budgets[number].allowed) - 1
                if left[number] < 0:
                    breaks = True
                    break
            broken.append(breaks)
        return broken
