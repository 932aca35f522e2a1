"""Why nodes were refused: who counts, in which words, and whether eviction could help."""

import numpy as np
import pytest

from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.interface import Reason, Verdict
from moorage.core.model.decision import Code, Rejection
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node

FIT = (
    Reason("Insufficient cpu"),
    Reason("Insufficient cpu", resolvable=False),
    Reason("Insufficient memory"),
)


@pytest.fixture
def snapshot():
    """Nodes a to e on rows 0 to 4."""
    snapshot = Snapshot()
    for name in "abcde":
        snapshot.set_node(make_node(name))
    return snapshot


def column(snapshot, *rows):
    """A mask of these rows."""
    mask = np.zeros(snapshot.capacity, dtype=np.bool_)
    mask[list(rows)] = True
    return mask


def diagnosed(snapshot, *, owners, excluded=(), **fields):
    """Plugin Taints refuses a; plugin Fit refuses a, b (cpu), c (cpu, for good, and memory)."""
    taints = Verdict((Reason("tainted", resolvable=False),), column(snapshot, 0)[None, :])
    fit = Verdict(FIT, np.stack([column(snapshot, 0, 1), column(snapshot, 2), column(snapshot, 2)]))
    diagnosis = Diagnosis(snapshot, verdicts=[("Taints", taints), ("Fit", fit)], **fields)
    diagnosis.owners = np.full(snapshot.capacity, -1, dtype=np.int16)
    for row, owner in owners.items():
        diagnosis.owners[row] = owner
    diagnosis.excluded = column(snapshot, *excluded)
    return diagnosis


def names(snapshot, mask):
    """The nodes of a mask."""
    return {snapshot.name_at(int(row)) for row in np.flatnonzero(mask)}


OWNERS = {0: 0, 1: 1, 2: 1}


def test_the_first_plugin_to_refuse_a_node_owns_it(snapshot):
    diagnosis = diagnosed(snapshot, owners=OWNERS)
    assert diagnosis.rejections() == {
        "a": Rejection("Taints", ("tainted",), Code.UNRESOLVABLE),
        "b": Rejection("Fit", ("Insufficient cpu",), Code.UNSCHEDULABLE),
        "c": Rejection("Fit", ("Insufficient cpu", "Insufficient memory"), Code.UNRESOLVABLE),
    }
    assert diagnosis.plugins == {"Taints", "Fit"}
    assert diagnosed(snapshot, owners={0: 0}).plugins == {"Taints"}


def test_the_message_counts_reasons_and_sorts_them_as_text(snapshot):
    """One reason for good and one for now read the same and are counted together."""
    message = diagnosed(snapshot, owners=OWNERS).message("preemption: no")
    assert message == (
        "0/5 nodes are available: 1 Insufficient memory, 1 tainted, 2 Insufficient cpu. preemption: no"
    )


def test_ten_sorts_before_two(snapshot):
    """As text, as kube-scheduler sorts it."""
    many = {row: Rejection("P", ("b",) if row < 2 else ("a",)) for row in range(12)}
    assert "10 a, 2 b." in diagnosed(snapshot, owners={}, overrides=many).message()


def test_which_nodes_eviction_could_help(snapshot):
    assert names(snapshot, diagnosed(snapshot, owners=OWNERS).resolvable()) == {"b"}


def test_one_reason_for_good_is_enough(snapshot):
    """Of two such reasons only one speaks against the node."""
    reasons = (Reason("cpu", resolvable=False), Reason("memory", resolvable=False), Reason("pods"))
    verdict = Verdict(
        reasons, np.stack([column(snapshot, 0, 1), column(snapshot, 1), column(snapshot, 0, 2)])
    )
    diagnosis = diagnosed(snapshot, owners={0: 0, 1: 0, 2: 0})
    diagnosis.verdicts = [("Fit", verdict)]
    assert names(snapshot, diagnosis.resolvable()) == {"c"}


def test_nodes_left_out_before_filter(snapshot):
    diagnosis = diagnosed(snapshot, owners={0: 0}, excluded=(3, 4), narrowed_by=("NodeAffinity", "NodeName"))
    text = "node(s) didn't satisfy plugin(s) [NodeAffinity NodeName]"
    assert diagnosis.rejections()["d"] == Rejection("NodeAffinity, NodeName", (text,), Code.UNRESOLVABLE)
    assert diagnosis.plugins == {"Taints", "NodeAffinity", "NodeName"}
    assert diagnosis.message() == f"0/5 nodes are available: 1 tainted, 2 {text}."
    assert not diagnosis.resolvable()[[3, 4]].any()


def test_the_words_about_a_node_with_nominated_pods_stand_for_the_others(snapshot):
    overrides = {0: Rejection("Ports", ("port taken",)), 3: Rejection("Gone", ("gone",), Code.UNRESOLVABLE)}
    diagnosis = diagnosed(snapshot, owners=OWNERS, overrides=overrides)
    assert (diagnosis.rejections()["a"], diagnosis.rejections()["d"]) == (overrides[0], overrides[3])
    assert diagnosis.plugins == {"Fit", "Ports", "Gone"}
    assert diagnosis.message() == (
        "0/5 nodes are available: 1 Insufficient memory, 1 gone, 1 port taken, 2 Insufficient cpu."
    )
    assert names(snapshot, diagnosis.resolvable()) == {"a", "b"}


@pytest.mark.parametrize(("code", "helped"), [(Code.UNSCHEDULABLE, set("abcde")), (Code.UNRESOLVABLE, set())])
def test_a_pod_rejected_as_a_whole(snapshot, code, helped):
    whole = Rejection("Quota", ("over quota", "really"), code)
    diagnosis = Diagnosis(snapshot, prefilter=whole, rejectors=frozenset({"Quota"}))
    assert diagnosis.message() == "0/5 nodes are available: over quota, really."
    assert diagnosis.plugins == {"Quota"}
    assert diagnosis.rejections() == {}
    assert names(snapshot, diagnosis.resolvable()) == helped


def test_without_nodes_the_text_is_another():
    assert Diagnosis(Snapshot()).message("preemption: no") == "no nodes available to schedule pods"


def test_reasons_come_with_the_plugin_that_owns_the_refusal(snapshot):
    diagnosis = diagnosed(snapshot, owners=OWNERS, excluded=(3,), narrowed_by=("NodeName",))
    diagnosis.overrides = {1: Rejection("Ports", ("taken",))}
    assert diagnosis.reasons() == {
        ("Taints", "tainted"),
        ("Fit", "Insufficient cpu"),
        ("Fit", "Insufficient memory"),
        ("Ports", "taken"),
        ("NodeName", "node(s) didn't satisfy plugin(s) [NodeName]"),
    }


def test_the_reasons_of_a_whole_refusal(snapshot):
    whole = Rejection("Volumes", ("no claim", "no class"), Code.UNRESOLVABLE)
    assert diagnosed(snapshot, owners={}, prefilter=whole).reasons() == {
        ("Volumes", "no claim"),
        ("Volumes", "no class"),
    }
