"""Node masks of selectors, kept until a node's own properties change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np
import numpy.typing as npt

from moorage.core.snapshot.journal import Journal

Bools = npt.NDArray[np.bool_]


class MaskCache:
    """A bounded cache of boolean columns, each valid for one epoch of the journal it depends on."""

    #: Bytes of masks kept at the most.
    LIMIT = 32 * 1024 * 1024

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._masks: OrderedDict[Hashable, tuple[int, Bools]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, compute: Callable[[], Bools]) -> Bools:
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
