"""Extenders for offline commands: the answers are waited for on the spot."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from moorage.adapters.extender.client import ExtenderClient
from moorage.adapters.extender.endpoint import ExtenderEndpoint
from moorage.core.cycle.consultation import Asking
from moorage.core.model.decision import Decision
from moorage.core.model.extender import Answer
from moorage.core.model.pod import PodRef


class Objects:
    """The objects of a case, as an extender wants to see them; implements ``ObjectSource``."""

    def __init__(self, pods: Mapping[str, Mapping[str, Any]], nodes: Mapping[str, Mapping[str, Any]]) -> None:
        self._pods = pods
        self._nodes = nodes

    async def pod(self, ref: PodRef) -> bytes:
        """A pod by UID."""
        return _text(self._pods[ref.uid])

    async def nodes(self, names: Sequence[str]) -> list[bytes]:
        """Nodes by name."""
        return [_text(self._nodes[name]) for name in names]


def _text(obj: Mapping[str, Any]) -> bytes:
    return orjson.dumps({key: value for key, value in obj.items() if key not in ("apiVersion", "kind")})


def consult(steps: Asking[Decision], endpoints: Sequence[ExtenderEndpoint], objects: Objects) -> Decision:
    """Run a decision to its end, asking whom it wants to ask."""
    answers: tuple[Answer, ...] | None = None
    with asyncio.Runner() as runner:
        while True:
            try:
                questions = steps.send(answers)  # type: ignore[arg-type]  # None begins it
            except StopIteration as end:
                decision: Decision = end.value
                return decision

            async def ask(questions: Sequence[Any] = questions) -> list[Answer]:
                client = ExtenderClient(objects, endpoints)
                try:
                    return await asyncio.gather(*(client.ask(question) for question in questions))
                finally:
                    await client.close()

            answers = tuple(runner.run(ask()))
