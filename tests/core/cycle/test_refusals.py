"""Texts about refused nodes: the same words as the diagnosis has for each of them alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cycle.refusals import Refusals, add_refusals
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.interface import Reason, Verdict
from moorage.core.model.decision import Code, Rejection
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node

NAMES = [f"n{i}" for i in range(6)]
REASONS = (Reason("too hot"), Reason("too far", resolvable=False), Reason("too loud"))


def told(diagnosis):
    found = Refusals()
    refused = sorted(diagnosis.rejections())
    rows = np.array([diagnosis.snapshot.row_of(name) for name in refused], dtype=np.int64)
    add_refusals(found, diagnosis, refused, rows)
    return found


@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=3, max_size=3),
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5), max_size=3),
)
def test_every_node_gets_the_words_of_its_own_rejection(failed, excluded, overridden):
    snapshot = Snapshot()
    rows = [snapshot.set_node(make_node(name)) for name in NAMES]
    spread = np.zeros((3, snapshot.capacity), dtype=np.bool_)
    spread[:, rows] = failed
    verdict = Verdict(REASONS, spread)
    diagnosis = Diagnosis(snapshot, verdicts=[("Picky", verdict)], narrowed_by=("Narrow",))
    diagnosis.owners = np.where(verdict.fits, -1, 0).astype(np.int16)
    diagnosis.excluded = np.zeros(snapshot.capacity, dtype=np.bool_)
    diagnosis.excluded[[rows[i] for i in excluded]] = True
    diagnosis.owners[diagnosis.excluded] = -1
    for i in overridden - excluded:
        diagnosis.overrides[rows[i]] = Rejection("Other", ("taken", "promised"))
    found = told(diagnosis)
    expected = diagnosis.rejections()
    assert found.failed.keys() | found.unresolvable.keys() == expected.keys()
    for name, rejection in expected.items():
        into = found.failed if rejection.code is Code.UNSCHEDULABLE else found.unresolvable
        assert into[name] == ", ".join(rejection.reasons)


def test_a_pod_that_is_rejected_as_a_whole_is_told_so_for_every_node():
    found = Refusals()
    diagnosis = Diagnosis(Snapshot(), prefilter=Rejection("Gate", ("not today",), Code.UNRESOLVABLE))
    add_refusals(found, diagnosis, ["a", "b"], np.array([0, 1]))
    assert (found.failed, found.unresolvable) == ({}, {"a": "not today", "b": "not today"})
