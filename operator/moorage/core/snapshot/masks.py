"""Columns that follow from selectors, masks above all, kept until a node's own properties change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.snapshot.journal import Journal

D = TypeVar("D", bound=np.generic)


class MaskCache(Generic[D]):
    """A bounded cache of columns, boolean ones as a rule, each valid for one epoch of the journal it depends on."""

    #: Bytes of masks kept at the most.
    LIMIT = 32 * 1024 * 1024

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._masks: OrderedDict[Hashable, tuple[int, npt.NDArray[D]]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, compute: Callable[[], npt.NDArray[D]]) -> npt.NDArray[D]:
        """The mask of ``key``, computed if nothing valid is kept."""
        epoch = self._journal.epoch
        known = self._masks.get(key)
        if known is not None:
            if known[0] == epoch:
                return known[1]
            self._bytes -= known[1].nbytes
            del self._masks[key]
        mask = compute()
        mask.flags.writeable = False
        self._masks[key] = (epoch, mask)
        self._bytes += mask.nbytes
        while self._bytes > self.LIMIT and len(self._masks) > 1:
            _, (_, dropped) = self._masks.popitem(last=False)
            self._bytes -= dropped.nbytes
        return mask

    def clear(self) -> None:
        """Forget everything (the number of rows changed)."""
        self._masks.clear()
        self._bytes = 0
