"""Why nodes were refused, as one text a node: what an extender is to say about many nodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.interface import Verdict
from moorage.core.model.decision import Code, Rejection

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Refusals:
    """Texts by node name; on ``unresolvable`` nodes evicting pods cannot help."""

    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)

    def add(self, names: Sequence[str], rejection: Rejection) -> None:
        """The same words for all these nodes."""
        into = self.failed if rejection.code is Code.UNSCHEDULABLE else self.unresolvable
        into.update(dict.fromkeys(names, ", ".join(rejection.reasons)))


def add_refusals(found: Refusals, diagnosis: Diagnosis, names: Sequence[str], rows: Ints) -> None:
    """Add the words about these refused nodes, ``names[i]`` on ``rows[i]``.

    Nodes about which the same reasons speak are worded together, which is what makes thousands of them cheap.
    """
    if diagnosis.prefilter is not None:
        found.add(names, diagnosis.prefilter)
        return
    overridden = np.isin(rows, np.fromiter(diagnosis.overrides, dtype=np.int64))
    owners = diagnosis.owners[rows]
    owners[overridden] = -1
    for i in np.flatnonzero(overridden).tolist():
        found.add([names[i]], diagnosis.overrides[int(rows[i])])
    excluded = diagnosis.excluded[rows] & ~overridden
    if excluded.any():
        plugins = ", ".join(diagnosis.narrowed_by)
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(diagnosis.narrowed_by)}]"
        left_out = [names[i] for i in np.flatnonzero(excluded).tolist()]
        found.add(left_out, Rejection(plugins, (text,), Code.UNRESOLVABLE))
    for owner in np.unique(owners[owners >= 0]):
        plugin, verdict = diagnosis.verdicts[owner]
        places = np.flatnonzero(owners == owner)
        _add_by_reasons(found, plugin, verdict, places, names, rows)


def _add_by_reasons(
    found: Refusals, plugin: str, verdict: Verdict, places: Ints, names: Sequence[str], rows: Ints
) -> None:
    failed = verdict.failed[:, rows[places]]
    left = np.ones(places.size, dtype=np.bool_)
    while left.any():
        pattern = failed[:, left.argmax()]
        alike = left & (failed == pattern[:, None]).all(axis=0)
        left &= ~alike
        against = [r for r, speaks in zip(verdict.reasons, pattern, strict=True) if speaks]
        code = Code.UNSCHEDULABLE if all(r.resolvable for r in against) else Code.UNRESOLVABLE
        chosen = [names[i] for i in places[alike].tolist()]
        found.add(chosen, Rejection(plugin, tuple(r.text for r in against), code))
