"""Cases of ``moorage decide``: a cluster and pods as one line of JSON, and the record of each decision as another.

The protocol is that of the parity oracle, a program around kube-scheduler's own code, so that the two can be
compared line by line; ``now`` and ``seed`` are ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from moorage.adapters.extender.endpoint import ExtenderEndpoint
from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.fields import Reader
from moorage.cli.cluster import Cluster, Intake, Source
from moorage.configuration.read import ConfigError, read_config
from moorage.core.engine import Engine, EngineConfig
from moorage.core.framework.interface import Plugin
from moorage.core.inquiry.records import decision_record, rejection_record
from moorage.core.model.decision import Decision, Rejection
from moorage.core.model.events import PodBound, PodGone, PodPending
from moorage.core.model.pod import Pod
from moorage.core.profile import NO_ADDITIONS, Additions

NOMINATE, EVICT, NONE = "nominate", "evict", "none"
_KEYS: Final = ("id", "objects", "pods", "config", "commit", "preempt", "now", "seed")


class CaseError(ValueError):
    """The case cannot be decided; the text says which part of it is wrong."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case as it was given, its parts not yet read."""

    objects: Sequence[object]
    pods: Sequence[object]
    config: object
    commit: bool
    preempt: str
    now: float
    seed: int
    warnings: tuple[str, ...]


def decide_case(
    raw: object,
    converter: Converter | None = None,
    *,
    allow_http: bool = False,
    additions: Additions = NO_ADDITIONS,
    prepare: Callable[[Iterable[Plugin]], None] = lambda plugins: None,
) -> dict[str, Any]:
    """The answer to a case: ``{"id", "results"}``, or ``{"id", "error"}``, and ``warnings`` if there are any.

    A converter that is used for many cases reads the templates that they have in common once.  Extenders of the
    case's configuration are asked only with ``allow_http``; without, they are an error.  ``additions`` are users'
    plugins; ``prepare`` is called with those that decide.
    """
    answer: dict[str, Any] = {"id": raw.get("id") if isinstance(raw, Mapping) else None}
    warnings: list[str] = []
    try:
        case = read_case(raw)
        warnings += case.warnings
        try:
            configuration = read_config(case.config, additions)
        except ConfigError as error:
            raise CaseError(f"config: {error}") from error
        prepare(plugin for profile in configuration.profiles.values() for plugin in profile.plugins)
        if configuration.extenders and not allow_http:
            raise CaseError("config: extenders: are called over the network, which needs --allow-http")
        intake = Intake(converter=converter, unknown_is_wrong=False, additions=additions)
        for index, pod in enumerate(case.pods):
            intake.add_pod(pod, Source(path=f"pods[{index}]"))
        for index, obj in enumerate(case.objects):
            intake.add(obj, Source(path=f"objects[{index}]"))
        cluster = intake.cluster(case.now)
        warnings += [str(problem) for problem in intake.problems if problem.warning]
        if intake.errors:
            raise CaseError("; ".join(map(str, intake.errors)))
        config = EngineConfig(profiles=configuration.profiles, seed=case.seed)
        answer["results"] = _Run(cluster, config, case, configuration.extenders).results()
    except CaseError as error:
        answer["error"] = str(error)
    if warnings:
        answer["warnings"] = warnings
    return answer


def read_case(raw: object) -> Case:
    """The parts of a case with their defaults; raises CaseError."""
    if not isinstance(raw, Mapping):
        raise CaseError("a case must be a JSON object")
    reader = Reader()
    commit = True if raw.get("commit") is None else reader.flag(raw["commit"], "commit")
    preempt = reader.text(raw.get("preempt"), "preempt") or NOMINATE
    if preempt not in (NOMINATE, EVICT, NONE):
        reader.report("preempt", f"must be one of {NOMINATE}, {EVICT}, {NONE}, not {preempt!r}")
    case = Case(
        objects=reader.sequence(raw.get("objects"), "objects"),
        pods=reader.sequence(raw.get("pods"), "pods"),
        config=raw.get("config"),
        commit=commit,
        preempt=preempt,
        now=_read_now(raw.get("now"), reader),
        seed=reader.whole(raw.get("seed"), "seed", (0, (1 << 63) - 1)),
        warnings=tuple(f"unknown key {key!r} ignored" for key in sorted(raw) if key not in _KEYS),
    )
    if reader.problems:
        raise CaseError("; ".join(f"{field}: {message}" for field, message in reader.problems))
    return case


def _read_now(value: object, reader: Reader) -> float:
    text = reader.text(value, "now")
    if not text:
        return float(int(time.time()))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reader.report("now", f"must be an RFC 3339 time, not {text!r}")
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class _Run:
    """Decides the pods of one case in order; each sees what the ones before it led to."""

    def __init__(
        self, cluster: Cluster, config: EngineConfig, case: Case, extenders: Sequence[ExtenderEndpoint] = ()
    ) -> None:
        self._extenders = extenders
        self._cluster = cluster
        self._case = case
        self._names = config.profiles
        self._engine: Engine = cluster.engine(config, case.now)
        self._pending = {pod.uid: pod for pod in (*cluster.waiting, *cluster.asked)}
        self._bound = {pod.key: pod for pod in cluster.bound}
        self._placed = 0

    def results(self) -> list[dict[str, Any]]:
        """One result for each pod that was asked about."""
        return [self._result(pod.uid, self._case.preempt) for pod in self._cluster.asked]

    def _result(self, uid: str, preempt: str) -> dict[str, Any]:
        pod = self._pending[uid]
        name = pod.spec.scheduler_name
        if name not in self._names:
            error = f'no profile for schedulerName "{name}": kube-scheduler leaves this pod alone'
            return decision_record(Decision(pod.ref, error=error), pod) | {"message": ""}
        if pod.deleting:
            error = "the pod is being deleted: kube-scheduler skips it"
            return decision_record(Decision(pod.ref, error=error), pod) | {"message": ""}
        if self._extenders:
            decision = self._consult(pod)
        else:
            decision = self._engine.evaluate(pod, self._case.now)
        result = decision_record(decision, pod)
        if not self._case.commit:
            return result
        if decision.chosen is not None:
            refused = self._place(pod, decision.chosen)
            if refused is not None:
                result |= {"chosen": None, "reserve": rejection_record(refused)}
        elif preempt != NONE and decision.preemption is not None:
            self._preempt(pod, decision.preemption.node, decision.preemption.victims, evict=preempt == EVICT)
            if preempt == EVICT:
                result["retry"] = self._result(uid, NONE)
        elif preempt != NONE and decision.clears_nomination and pod.nominated_node:
            self._nominate(pod, "")
        return result

    def _consult(self, pod: Pod) -> Decision:
        from moorage.cli.consult import (
            Objects,
            consult,
        )  # few cases need a network, and it takes long to import

        objects = Objects(self._cluster.raw_pods, self._cluster.raw_nodes)
        return consult(self._engine.explanation(pod, self._case.now), self._extenders, objects)

    def _place(self, pod: Pod, node_name: str) -> Rejection | None:
        bound = replace(
            pod, node_name=node_name, nominated_node="", started=self._case.now + self._placed + 1
        )
        refused = self._engine.reserve(bound)
        if refused is not None:
            return refused
        self._placed += 1
        self._engine.handle(PodBound(bound), self._case.now)
        self._bound[bound.key] = bound
        del self._pending[pod.uid]
        return None

    def _preempt(self, pod: Pod, node_name: str, victims: Sequence[str], *, evict: bool) -> None:
        """What follows a preemption: the node is promised to the pod, and the victims are going or gone."""
        for other in list(self._pending.values()):
            if other.nominated_node == node_name and other.uid != pod.uid and other.priority < pod.priority:
                self._nominate(other, "")
        self._nominate(pod, node_name)
        for key in victims:
            victim = self._bound[key]
            if evict or victim.uid in self._cluster.abrupt:
                self._engine.handle(PodGone(victim.ref), self._case.now)
                del self._bound[key]
            elif not victim.deleting:
                self._bound[key] = replace(victim, deleting=True, preempted=True)
                self._engine.handle(PodBound(self._bound[key]), self._case.now)

    def _nominate(self, pod: Pod, node_name: str) -> None:
        self._pending[pod.uid] = replace(pod, nominated_node=node_name)
        self._engine.handle(PodPending(self._pending[pod.uid]), self._case.now)
