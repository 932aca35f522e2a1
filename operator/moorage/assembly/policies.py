"""Policies: from Kopf's handlers, and from lists, to the engine, and how they fare back into their status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.node_metrics import NodeMetricsPoller
from moorage.adapters.kube.policy_conditions import needs_usage
from moorage.adapters.kube.policy_judge import PodJudge
from moorage.adapters.kube.policy_list import PolicyLister
from moorage.adapters.kube.policy_register import PolicyRegister, Problem
from moorage.adapters.kube.policy_status import PolicyStatusWriter
from moorage.adapters.policy.expressions import PodExpression
from moorage.adapters.policy.pod_expressions import PodExpressions
from moorage.adapters.policy.reading import read_policy
from moorage.adapters.telemetry.metrics import Metrics
from moorage.core.model.events import Event
from moorage.core.model.policy import Policy, PolicyRef
from moorage.core.model.policy_report import PolicyReport
from moorage.runtime.ports import Clock
from moorage.runtime.settings import Settings

logger = logging.getLogger(__name__)

#: How long an API server that does not tell of policies is waited for at the start.
_PATIENCE = 10.0


class Policies:
    """All that has to do with policies and waits for the network.

    ``holds`` is what pods are read with; ``look_again`` reads all of them once more.
    ``score_plugins`` are the names of what policies may weigh.  ``status``: whether it is written; not ``exact``: it
    says that what counts is best effort.
    """

    def __init__(
        self,
        client: KubeClient,
        clock: Clock,
        metrics: Metrics,
        *,
        holds: PodExpressions,
        submit: Callable[[Event], None],
        reports: Callable[[], Sequence[PolicyReport]],
        leading: Callable[[], bool],
        look_again: Callable[[], Awaitable[None]],
        settings: Settings,
        score_plugins: frozenset[str],
        status: bool = True,
        exact: bool = True,
    ) -> None:
        self._metrics = metrics
        self._holds = holds
        self._compiled: dict[str, PodExpression] = {}
        self._writes_status = status
        self._score_plugins = score_plugins
        self._register = PolicyRegister(
            self._read,
            submit,
            clock,
            metrics,
            on_change=self._changed,
            on_expressions=self._expressions_changed,
        )
        self._judge = PodJudge(self._register, self._install, look_again)
        self._lister = PolicyLister(client, self._register, clock, interval=settings.policy_interval)
        self._poller = NodeMetricsPoller(
            client, submit, metrics, wanted=self._usage_wanted, interval=settings.usage_interval
        )
        self._status = PolicyStatusWriter(
            client,
            self._register,
            clock,
            reports=reports,
            usage=lambda: self._poller.usage,
            leading=leading,
            failures=lambda text: holds.failures.get(text, (0, "")),
            count=metrics.policy_status_written,
            exact=exact,
        )

    async def first(self) -> None:
        """Learn which policies there are, before any pod is read or decided upon."""
        await self._lister.first(_PATIENCE)
        self._judge.begin()

    async def run(self) -> None:
        """Follow them for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._lister.run(), name="moorage list of policies")
            tasks.create_task(self._judge.run(), name="moorage expressions over pods")
            tasks.create_task(self._poller.run(), name="moorage metrics of nodes")
            if self._writes_status:
                tasks.create_task(self._status.run(), name="moorage status of policies")

    def event(self, kind: str | None, obj: Mapping[str, Any]) -> None:
        """The stream shows a policy, or that it is gone (``DELETED``); never raises."""
        self._register.event(kind, obj)

    def refresh_gauges(self) -> None:
        """Count the policies."""
        self._metrics.count_policies(
            in_force=sum(known.in_force is not None for known in self._register),
            refused=sum(bool(known.problems) for known in self._register),
        )

    def _read(self, obj: Mapping[str, Any]) -> Policy | tuple[Problem, ...]:
        found = read_policy(obj, self._score_plugins)
        for path, remark in found.odd:
            logger.info("Policy %s: %s %s", found.ref.key, path, remark)
        if found.policy is None:
            return found.wrong
        if found.pod_expression is not None:
            self._compiled[found.pod_expression.text] = found.pod_expression
        return found.policy

    def _install(self, expressions: frozenset[str]) -> None:
        self._compiled = {text: self._compiled[text] for text in expressions}
        self._holds.only(self._compiled)

    def _changed(self, ref: PolicyRef) -> None:
        self._status.changed(ref)
        self._poller.wake()
        if self._register.get(ref) is None:
            self._metrics.policy_gone(ref)

    def _expressions_changed(self) -> None:
        self._judge.want()

    def _usage_wanted(self) -> bool:
        return any(known.in_force is not None and needs_usage(known.in_force) for known in self._register)
