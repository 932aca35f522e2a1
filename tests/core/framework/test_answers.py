"""Plugins are held to their contract, and what they raise names them."""

from typing import Any, ClassVar

import numpy as np
import pytest

from moorage.core.framework.answers import (
    PluginError,
    guarded,
    normalized_of,
    rejection_at,
    scores_of,
    verdict_of,
)
from moorage.core.framework.interface import Reads, Reason, Verdict
from moorage.core.model.decision import Code, Rejection
from moorage.core.plugins.node_name import NodeName
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.core.driving import explode

NODES = Nodes(Snapshot(), np.arange(3))
FITS = np.ones(3, dtype=np.bool_)


class Answering:
    """Gives the same answer at every point."""

    name: ClassVar[str] = "Odd"
    reads: ClassVar[Reads] = Reads.NODE

    def __init__(self, answer: Any) -> None:
        self.filter: Any = lambda state, nodes: answer
        self.score: Any = self.filter
        self.normalize: Any = lambda raw: answer
        self.pre_filter: Any = explode
        self.pre_score: Any = explode
        self.wakes_on: Any = explode


def lazy(fits: Any) -> Verdict:
    """A verdict without reasons."""
    return Verdict.lazy((), fits, explode)


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ("Filter", 'running "NodeName" filter plugin: RuntimeError: boom'),
        ("PreFilter", 'running PreFilter plugin "NodeName": RuntimeError: boom'),
        ("Permit", 'running Permit plugin "NodeName": RuntimeError: boom'),
    ],
)
def test_what_a_plugin_raises_names_plugin_and_point(point, text):
    """The words are kube-scheduler's, which are not the same for all points."""
    with pytest.raises(PluginError) as caught:
        guarded(NodeName(), point, explode, 1)
    assert (str(caught.value), caught.value.plugin, caught.value.point) == (text, "NodeName", point)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_what_ends_the_process_is_not_caught():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded(NodeName(), "Filter", stop)


def test_answers_that_keep_the_contract_come_through():
    verdict, scores = lazy(FITS), np.array([1, 2, 3])
    assert verdict_of(Answering(verdict), None, NODES) is verdict
    assert scores_of(Answering(scores), None, NODES) is scores
    assert normalized_of(Answering(scores), scores) is scores


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "must answer with a Verdict, not NoneType"),
        (FITS, "must answer with a Verdict, not ndarray"),
        (lazy(FITS[:2]), "must judge 3 nodes by booleans, not bool(2,)"),
        (lazy(FITS.astype(np.int64)), "must judge 3 nodes by booleans, not int64(3,)"),
    ],
)
def test_verdicts_that_do_not(answer, text):
    with pytest.raises(PluginError) as caught:
        verdict_of(Answering(answer), None, NODES)
    assert str(caught.value) == f'running "Odd" filter plugin: {text}'


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (None, "NoneType"),
        ([1, 2, 3], "list"),
        (np.array([1, 2]), "int64(2,)"),
        (np.array([1.0, 2.0, 3.0]), "float64(3,)"),
        (np.ones((3, 1), dtype=np.int64), "int64(3, 1)"),
    ],
)
def test_scores_that_do_not(answer, got):
    for point, call in (
        ("Score", lambda: scores_of(Answering(answer), None, NODES)),
        ("NormalizeScore", lambda: normalized_of(Answering(answer), np.array([1, 2, 3]))),
    ):
        with pytest.raises(PluginError) as caught:
            call()
        assert str(caught.value) == f'running {point} plugin "Odd": must give 3 int64 scores, not {got}'


def test_the_words_about_one_node():
    """A node is beyond help if any of the reasons is; reasons that do not apply are left out."""
    reasons = (Reason("a"), Reason("b", resolvable=False), Reason("c"))
    verdict = Verdict(reasons, np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0]], dtype=np.bool_))
    assert rejection_at("P", verdict, 0) == Rejection("P", ("a", "c"), Code.UNSCHEDULABLE)
    assert rejection_at("P", verdict, 1) is None
    assert rejection_at("P", verdict, 2) == Rejection("P", ("a", "b"), Code.UNRESOLVABLE)


def test_an_error_that_names_the_plugin_already_is_left_as_it_is():
    own = PluginError("Odd", "Filter", "its own words")

    def fail():
        raise own

    with pytest.raises(PluginError) as raised:
        guarded(NodeName(), "Filter", fail)
    assert raised.value is own
