"""Keeps what is known of pods in step with the expressions over pods that policies have.

Whether an expression holds is found out when a pod is read, since the core does not keep what it was read from.  So
for a new expression the pods must be read once more, and the policy that brings it waits until that is done:
in force any sooner, it would count too few pods.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moorage.adapters.kube.policy_register import PolicyRegister

logger = logging.getLogger(__name__)


class PodJudge:
    """``install`` has pods read with just these expressions from now on; ``look_again`` reads all of them once more."""

    def __init__(
        self,
        register: PolicyRegister,
        install: Callable[[frozenset[str]], None],
        look_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._register = register
        self._install = install
        self._look_again = look_again
        self._installed: frozenset[str] = frozenset()
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """The expressions in use have changed."""
        self._wanted.set()

    def begin(self) -> None:
        """No pod has been read yet, so all will be by the expressions known now."""
        self._wanted.clear()
        self._use(self._register.expressions())
        self._register.judged(self._installed)

    async def run(self) -> None:
        """Follow the changes for ever."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            expressions = self._register.expressions()
            new = expressions - self._installed
            self._use(expressions)
            if new:
                logger.info("Looking at all pods anew for %d new expressions of policies", len(new))
                await self._look_again()
            # What is not installed any more holds for pods as they were: it would have to be asked again.
            self._register.judged(expressions)

    def _use(self, expressions: frozenset[str]) -> None:
        if expressions != self._installed:
            self._install(expressions)
            self._installed = expressions
