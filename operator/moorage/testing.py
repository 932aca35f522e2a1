"""Test your own plugins without a cluster.

::

    from moorage.testing import Cluster, node, pod

    def test_the_cheaper_node_is_taken():
        cluster = Cluster(node("dear", labels={"example.com/price": "9"}),
                          node("cheap", labels={"example.com/price": "2"}), plugins="my_rules.py")
        assert cluster.place(pod("web")).node == "cheap"

The code that decides is the one that schedules in ``moorage run``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from moorage.cli.cluster import Intake, Source
from moorage.configuration.read import read_config
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.decision import Decision
from moorage.core.model.events import PodBound
from moorage.core.model.pod import Pod
from moorage.core.profile import Additions
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from moorage.plugins import loading
from moorage.plugins.adapted import Adapted, Filtering, Scoring
from moorage.plugins.declare import Declaration, declaration_of
from moorage.plugins.pod import Pod as View
from moorage.plugins.refresh import refresh_once
from moorage.plugins.watch import Watch

__all__ = ["Answer", "Cluster", "PluginFailed", "node", "pod"]

Manifest = dict[str, Any]
#: Plugins under test: declared functions and classes, or files.
Plugins = str | Path | Callable[..., Any]


class PluginFailed(AssertionError):
    """A plugin has raised, or its answer cannot be used; the text names it, and says where."""


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    resources: Mapping[str, str] | None = None,
) -> Manifest:
    """The manifest of a node that is ready; ``resources`` are others than cpu, memory and pods."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str = "100m",
    memory: str = "64Mi",
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    node: str = "",
    **spec: Any,
) -> Manifest:
    """The manifest of a pod of one container, bound to ``node`` if that is given; ``spec`` adds to its spec."""
    requests = {"cpu": cpu, "memory": memory, **(resources or {})}
    container = {"name": "main", "image": "example.com/main:1", "resources": {"requests": requests}}
    if resources:
        container["resources"] = {"requests": requests, "limits": dict(resources)}
    bound = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {"schedulerName": "moorage", "containers": [container], **bound, **spec},
    }


@dataclass(frozen=True)
class Answer:
    """Where a pod goes, and why; ``decision`` is the whole record."""

    decision: Decision

    @property
    def node(self) -> str | None:
        """The chosen node, None if there is none."""
        return self.decision.chosen

    @property
    def feasible(self) -> tuple[str, ...]:
        """The nodes that can take the pod."""
        return self.decision.feasible

    @property
    def message(self) -> str:
        """Why it cannot be placed, as its PodScheduled condition would say; "" if it can."""
        return self.decision.message

    def scores(self, plugin: str) -> dict[str, int]:
        """What a plugin gave each feasible node, from 0 to 100 times its weight."""
        return {name: scores[plugin] for name, scores in self.decision.scores.items() if plugin in scores}

    def why_not(self, node: str) -> str:
        """The plugin that refuses a node, and its words: ``plugin: reason``; "" if none does."""
        refused = self.decision.filtered.get(node) or self.decision.prefilter or self.decision.preenqueue
        return "" if refused is None else f"{refused.plugin}: {', '.join(refused.reasons)}"

    def explain(self) -> str:
        """All of it as text, a line for each node."""
        decision = self.decision
        lines = [f"{decision.ref.key}: {decision.chosen or decision.message}"]
        for name in sorted({*decision.scores, *decision.filtered}):
            scores = decision.scores.get(name)
            if scores is None:
                lines.append(f"  {name}: {self.why_not(name)}")
            else:
                parts = ", ".join(f"{key} {value}" for key, value in scores.items() if key != "total")
                lines.append(f"  {name}: {scores['total']} ({parts})")
        return "\n".join(lines)


class Cluster:
    """Nodes and bound pods, any other objects, as manifests; and the plugins under test beside the built-in ones.

    ``config`` is a KubeSchedulerConfiguration, for plugins with arguments or other weights; its one profile decides.
    Raises ValueError for manifests that an API server would refuse, ``DeclarationError``, ``PluginLoadError`` and
    ``ConfigError``.
    """

    def __init__(
        self,
        *objects: Manifest,
        plugins: Plugins | Iterable[Plugins] = (),
        config: str | Mapping[str, Any] | None = None,
        now: float | None = None,
    ) -> None:
        self._now = time.time() if now is None else now
        additions = _additions(plugins)
        self._profiles = read_config(config, additions).profiles
        intake = Intake(additions=additions)
        for index, obj in enumerate(objects):
            intake.add(obj, Source(path=f"objects[{index}]"))
        self._engine: Engine = (
            _checked(intake).cluster(self._now).engine(EngineConfig(profiles=self._profiles), self._now)
        )
        _checked(intake)
        self._count = 0

    def explain(self, manifest: Manifest) -> Answer:
        """Where a pod could go; nothing changes.  Raises PluginFailed."""
        return self._decide(manifest)[0]

    def place(self, manifest: Manifest) -> Answer:
        """Where a pod goes; later pods find it there.  Raises PluginFailed."""
        answer, found = self._decide(manifest)
        if answer.node is not None:
            placed = replace(found, node_name=answer.node, nominated_node="", started=self._now)
            self._engine.reserve(placed)
            self._engine.handle(PodBound(placed), self._now)
        return answer

    async def refresh(self) -> None:
        """Have stateful plugins fetch what they go by, as happens in the background; a failure goes to the log."""
        plugins = {id(p): p for profile in self._profiles.values() for p in profile.plugins}
        await refresh_once(plugins.values(), Watch())

    def _decide(self, manifest: Manifest) -> tuple[Answer, Pod]:
        self._count += 1
        metadata = manifest.get("metadata", {})
        uid = metadata.get("uid") or f"test-{self._count}"
        intake = Intake()
        intake.add_pod({**manifest, "metadata": {**metadata, "uid": uid}}, Source(path="pod"))
        (found,) = _checked(intake).cluster(self._now).asked or (None,)
        _checked(intake)
        assert found is not None, "a pod without a fault is asked about"
        decision = self._engine.evaluate(found, self._now)
        if decision.error:
            raise PluginFailed(decision.error)
        for plugin in {id(p): p for profile in self._profiles.values() for p in profile.plugins}.values():
            if isinstance(plugin, Adapted) and plugin.declaration.pure:
                _check_purity(plugin, found, self._engine.snapshot)
        return Answer(decision), found


def _check_purity(plugin: Adapted, found: Pod, snapshot: Snapshot) -> None:
    """What is said of a node alone must be what is said of it among all."""
    rows = np.flatnonzero(snapshot.alive)
    among = Nodes(snapshot, rows)
    seen = View(found, spec_only=True)
    for position, row in enumerate(rows):
        alone = Nodes(snapshot, np.array([row]))
        same = True
        if isinstance(plugin, Scoring):
            same = bool(plugin.score(seen, alone)[0] == plugin.score(seen, among)[position])
        if same and isinstance(plugin, Filtering):
            same = bool(plugin.filter(seen, alone).fits[0] == plugin.filter(seen, among).fits[position])
        if not same:
            raise PluginFailed(
                f"plugin {plugin.name} is declared to be pure, but its answer for node {snapshot.name_at(int(row))} "
                "is another when it is asked about that node alone: leave pure out"
            )


def _checked(intake: Intake) -> Intake:
    if intake.errors:
        raise ValueError("; ".join(map(str, intake.errors)))
    return intake


def _additions(plugins: Plugins | Iterable[Plugins]) -> Additions:
    given: list[Any] = [plugins] if isinstance(plugins, str | Path) or callable(plugins) else list(plugins)
    found: list[Declaration] = []
    for each in given:
        if isinstance(each, str | Path):
            found += loading.load_file(str(each))
        elif (declaration := declaration_of(each)) is not None:
            found.append(declaration)
        else:
            raise TypeError(f"{each!r} is no plugin: nothing in moorage has declared it")
    return loading.additions(found)
