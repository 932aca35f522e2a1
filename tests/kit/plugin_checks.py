"""Checks that every plugin must pass, whatever it is about: ``CHECKS`` by name.

Each takes the plugin, a cluster and a pod.  A check that does not concern the plugin passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from moorage.core.framework.interface import (
    FilterPlugin,
    Narrowed,
    Reads,
    Rejected,
    ScorePlugin,
    Skip,
    Verdict,
)
from moorage.core.framework.resource_scoring import StrategyType
from moorage.core.model.cluster_event import ClusterEvent
from moorage.core.model.decision import Rejection
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.scalar import RULES, counted
from tests.kit.strategies import Cluster, build, columns_of

#: (name, reasons, codes) by node; or PreFilter's answer about the whole pod.
Told = dict[str, tuple[tuple[str, bool], ...]] | Rejection | frozenset[str]


def verdict_of(plugin: Any, snapshot: Snapshot, pod: Pod, rows: Any = None) -> Verdict | None:
    """The plugin's Filter answer for these rows, None if it skips or rejects the pod as a whole."""
    state = plugin.pre_filter(pod, snapshot)
    if state is Skip.SKIP or isinstance(state, Rejected):
        return None
    if isinstance(state, Narrowed):
        state = state.state
    answer: Verdict = plugin.filter(state, Nodes(snapshot, rows))
    return answer


def scores_of(plugin: Any, snapshot: Snapshot, pod: Pod, rows: Any) -> np.ndarray[Any, Any] | None:
    """The plugin's raw scores of these rows, None if it skips."""
    state = plugin.pre_score(pod, snapshot, Nodes(snapshot, rows))
    if state is Skip.SKIP:
        return None
    scores: np.ndarray[Any, Any] = plugin.score(state, Nodes(snapshot, rows))
    return scores


def told(plugin: Any, snapshot: Snapshot, pod: Pod, rows: Any) -> dict[str, tuple[tuple[str, bool], ...]]:
    """The reasons against each node, by its name."""
    verdict = verdict_of(plugin, snapshot, pod, rows)
    if verdict is None:
        return {snapshot.name_at(int(row)): () for row in rows}
    return {
        snapshot.name_at(int(row)): tuple(
            (reason.text, reason.resolvable)
            for reason, failed in zip(verdict.reasons, verdict.failed[:, i], strict=True)
            if failed
        )
        for i, row in enumerate(rows)
    }


def alive_rows(snapshot: Snapshot) -> np.ndarray[Any, Any]:
    """The rows that hold a node."""
    return np.flatnonzero(snapshot.alive)


def no_wrap(plugin: Any, cluster: Cluster, pod: Pod, name: str) -> bool:
    """Whether the pod's amounts and those in use add up within 64 bits; other nodes are never feasible."""
    node = next(n for n in cluster.nodes if n.name == name)
    resources = plugin.strategy.resources if hasattr(plugin, "strategy") else getattr(plugin, "resources", ())
    pods = cluster.on(name)
    return all(
        requested < 1 << 63
        for defaults in (True, False)
        for _, requested, _, _ in counted(resources, pod, node, pods, defaults=defaults)
    )


def refusals(plugin: Any, pod: Pod, nodes: Sequence[Node], pods: Sequence[Pod] = ()) -> dict[str, list[str]]:
    """The reasons against each node that is refused; "(…)" around those that no preemption can lift."""
    snapshot = build(Cluster(tuple(nodes), tuple(pods)))
    answers = told(plugin, snapshot, pod, alive_rows(snapshot))
    return {
        name: [text if resolvable else f"({text})" for text, resolvable in reasons]
        for name, reasons in answers.items()
        if reasons
    }


def scores(
    plugin: Any, pod: Pod, nodes: Sequence[Node], pods: Sequence[Pod] = ()
) -> tuple[list[int], list[int]] | None:
    """(raw, normalised) scores of the nodes, None if the plugin skips."""
    snapshot = build(Cluster(tuple(nodes), tuple(pods)))
    raw = scores_of(plugin, snapshot, pod, alive_rows(snapshot))
    return None if raw is None else (raw.tolist(), plugin.normalize(raw).tolist())


def wakes(plugin: Any, pod: Pod, event: ClusterEvent | None) -> bool:
    """Whether the change wakes a pod that the plugin has rejected."""
    return event is not None and any(
        interest.resource is event.resource
        and bool(interest.action & event.action)
        and (interest.concerns is None or interest.concerns(event))
        and (interest.hint is None or interest.hint(pod, event))
        for interest in plugin.wakes_on()
    )


# -- the checks ----------------------------------------------------------------------------------


def check_shapes_and_types(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """Verdicts are (K, M) of bool, scores (M,) of int64, for the whole table and for a part of it."""
    snapshot = build(cluster, holes=(0, 2))
    rows = alive_rows(snapshot)
    if isinstance(plugin, FilterPlugin):
        for part in (None, rows, rows[:1], rows[:0]):
            verdict = verdict_of(plugin, snapshot, pod, part)
            if verdict is not None:
                size = snapshot.capacity if part is None else part.size
                assert verdict.failed.shape == (len(verdict.reasons), size)
                assert verdict.failed.dtype == np.bool_
    if isinstance(plugin, ScorePlugin):
        for part in (None, rows, rows[:1], rows[:0]):
            scores = scores_of(plugin, snapshot, pod, part)
            if scores is not None:
                size = snapshot.capacity if part is None else part.size
                assert scores.shape == (size,)
                assert scores.dtype == np.int64
                normalized = plugin.normalize(scores)
                assert normalized.shape == (size,)
                assert normalized.dtype == np.int64


def check_changes_nothing(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """A call writes to nothing it is given, the scores handed to ``normalize`` included."""
    snapshot = build(cluster, holes=(1,))
    before = repr(columns_of(snapshot))
    epochs = snapshot.static.epoch, snapshot.usage.epoch
    rows = alive_rows(snapshot)
    kept = rows.copy()
    if isinstance(plugin, FilterPlugin):
        verdict_of(plugin, snapshot, pod, rows)
        verdict_of(plugin, snapshot, pod)
    if isinstance(plugin, ScorePlugin):
        raw = scores_of(plugin, snapshot, pod, rows)
        if raw is not None:
            copied = raw.copy()
            raw.flags.writeable = False
            plugin.normalize(raw)
            assert copied.tolist() == raw.tolist()
    assert kept.tolist() == rows.tolist()
    assert before == repr(columns_of(snapshot))
    assert epochs == (snapshot.static.epoch, snapshot.usage.epoch)


def check_same_question_same_answer(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """Asked twice, and asked on another snapshot of the same cluster, the answer is the same."""
    snapshot, twin = build(cluster), build(cluster)
    rows = alive_rows(snapshot)
    if isinstance(plugin, FilterPlugin):
        first = told(plugin, snapshot, pod, rows)
        assert first == told(plugin, snapshot, pod, rows)
        assert first == told(plugin, twin, pod, rows)
    if isinstance(plugin, ScorePlugin):
        assert _listed(scores_of(plugin, snapshot, pod, rows)) == _listed(
            scores_of(plugin, snapshot, pod, rows)
        )
        assert _listed(scores_of(plugin, snapshot, pod, rows)) == _listed(scores_of(plugin, twin, pod, rows))


def check_rows_do_not_matter(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """Neither the order of the rows nor free ones among them change what is said about a node."""
    plain = build(cluster)
    turned = build(cluster, order=tuple(reversed(range(len(cluster.nodes)))), holes=(0, 1, 3))
    if isinstance(plugin, FilterPlugin):
        assert told(plugin, plain, pod, alive_rows(plain)) == told(plugin, turned, pod, alive_rows(turned))
    if isinstance(plugin, ScorePlugin):
        assert _named(plugin, plain, pod) == _named(plugin, turned, pod)


def check_subset_gives_subset(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """What is said about a node does not depend on which others are asked about; the reasons are the same tuple.

    Scores that read the cluster may compare the nodes asked about.
    """
    snapshot = build(cluster, holes=(1,))
    rows = alive_rows(snapshot)
    if isinstance(plugin, FilterPlugin):
        whole = verdict_of(plugin, snapshot, pod)
        for part in (rows, rows[::-1], rows[1:], rows[:1]):
            some = verdict_of(plugin, snapshot, pod, part)
            if whole is None or some is None:
                assert whole is some
            else:
                assert whole.reasons == some.reasons
                assert whole.failed[:, part].tolist() == some.failed.tolist()
    if isinstance(plugin, ScorePlugin) and not plugin.reads & Reads.CLUSTER:
        whole_scores = scores_of(plugin, snapshot, pod, None)
        for part in (rows, rows[::-1], rows[1:], rows[:1]):
            scores = scores_of(plugin, snapshot, pod, part)
            if whole_scores is None or scores is None:
                assert whole_scores is scores
            else:
                assert whole_scores[part].tolist() == scores.tolist()


def check_no_nodes(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """A snapshot without nodes, fresh or emptied, is no special case."""
    emptied = build(cluster)
    for node in cluster.nodes:
        emptied.drop_node(node.name)
    none = np.zeros(0, dtype=np.int64)
    for snapshot in (Snapshot(), emptied):
        if isinstance(plugin, FilterPlugin):
            verdict_of(plugin, snapshot, pod)
            verdict = verdict_of(plugin, snapshot, pod, none)
            assert verdict is None or verdict.failed.shape == (len(verdict.reasons), 0)
        if isinstance(plugin, ScorePlugin):
            scores_of(plugin, snapshot, pod, None)
            scores = scores_of(plugin, snapshot, pod, none)
            assert scores is None or plugin.normalize(scores).tolist() == []


def check_scores_in_range(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """0..100 after normalising."""
    if not isinstance(plugin, ScorePlugin):
        return
    snapshot = build(cluster)
    rows = alive_rows(snapshot)
    rows = (
        rows[[no_wrap(plugin, cluster, pod, snapshot.name_at(int(row))) for row in rows]]
        if rows.size
        else rows
    )
    scores = scores_of(plugin, snapshot, pod, rows)
    if scores is not None:
        normalized = plugin.normalize(scores)
        assert [s for s in normalized.tolist() if not 0 <= s <= 100] == []


def check_filter_by_the_rules(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """PreFilter and Filter say what the scalar reference says, word for word and in its order."""
    if not isinstance(plugin, FilterPlugin):
        return
    rules = RULES[plugin.name]
    snapshot = build(cluster, holes=(0,))
    whole = rules.whole(plugin, pod) if rules.whole else None
    answer = plugin.pre_filter(pod, snapshot)
    if isinstance(whole, Rejection):
        assert isinstance(answer, Rejected)
        assert whole == Rejection(plugin.name, answer.reasons, answer.code)
        return
    assert not isinstance(answer, Rejected)
    assert whole == (answer.names if isinstance(answer, Narrowed) else None)
    assert rules.node is not None
    expected = {node.name: tuple(rules.node(plugin, pod, node, cluster)) for node in cluster.nodes}
    assert expected == told(plugin, snapshot, pod, alive_rows(snapshot))


def check_score_by_the_rules(plugin: Any, cluster: Cluster, pod: Pod) -> None:
    """Raw and normalised scores are those of the scalar reference.

    Of amounts beyond 2**56 the lowest bits are let go (kube-scheduler overflows there), which can cost one percent.
    """
    if not isinstance(plugin, ScorePlugin):
        return
    rules = RULES[plugin.name]
    assert rules.score is not None
    snapshot = build(cluster, holes=(0,))
    rows = alive_rows(snapshot)
    scores = scores_of(plugin, snapshot, pod, rows)
    if not rules.scores(plugin, pod):
        assert scores is None or set(scores.tolist()) <= {0}
        return
    assert scores is not None
    by_name = {snapshot.name_at(int(row)): int(score) for row, score in zip(rows, scores, strict=True)}
    nodes = [node for node in cluster.nodes if no_wrap(plugin, cluster, pod, node.name)]
    for node in nodes:
        expected = rules.score(plugin, pod, node, cluster)
        if plugin.name == "NodeResourcesFit" and any(
            amount > 1 << 56 for amount in node.allocatable.values()
        ):
            kind = plugin.strategy.type  # type: ignore[attr-defined]  # the plugin of that name has one
            steepest = 10 if kind is StrategyType.REQUESTED_TO_CAPACITY_RATIO else 1
            assert abs(expected - by_name[node.name]) <= steepest, node.name
        else:
            assert expected == by_name[node.name], node.name
    raw = [by_name[node.name] for node in nodes]
    assert rules.normalize(list(raw)) == plugin.normalize(np.array(raw, dtype=np.int64)).tolist()


def _listed(scores: np.ndarray[Any, Any] | None) -> list[int] | None:
    return None if scores is None else scores.tolist()


def _named(plugin: Any, snapshot: Snapshot, pod: Pod) -> Mapping[str, int] | None:
    rows = alive_rows(snapshot)
    scores = scores_of(plugin, snapshot, pod, rows)
    if scores is None:
        return None
    return {snapshot.name_at(int(row)): int(score) for row, score in zip(rows, scores, strict=True)}


CHECKS: Mapping[str, Callable[[Any, Cluster, Pod], None]] = {
    name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")
}
