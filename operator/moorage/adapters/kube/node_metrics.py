"""What nodes really use, from metrics.k8s.io: asked for now and then, while some policy wants to know.

The samples carry the time at which they were taken, so what to make of old ones is decided where they are used; a poll
that fails only keeps new ones from coming.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Protocol

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import BadAnswer, Forbidden, Gone, KubeError, NotFound
from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.policy_conditions import Usage
from moorage.adapters.kube.resource_lists import base_units, read_list
from moorage.core.model.events import UsageMeasured, UsageSample

logger = logging.getLogger(__name__)

PATH = "/apis/metrics.k8s.io/v1beta1/nodes"

_PAGE = 500
_TIMEOUT = 10.0
#: The shares of the interval between which the pause is drawn, so that replicas do not ask together.
_JITTER = (0.9, 1.0)

_NOT_YET = Usage(False, "NotAskedYet", "metrics.k8s.io has not been asked yet")


class SampleMeter(Protocol):
    """Counts polls, and what cannot be read."""

    def object_malformed(self, resource: str) -> None:
        """An object of this kind makes no sense."""
        ...

    def usage_polled(self, outcome: str) -> None:
        """A poll ended; the outcome is the reason of ``Usage``."""
        ...


class NodeMetricsPoller:
    """Submits a ``UsageMeasured`` every ``interval`` seconds while ``wanted``."""

    def __init__(
        self,
        client: KubeClient,
        submit: Callable[[UsageMeasured], None],
        meter: SampleMeter,
        *,
        wanted: Callable[[], bool],
        on_change: Callable[[], None] = lambda: None,
        interval: float = 15.0,
        slice: float = 0.008,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._submit = submit
        self._meter = meter
        self._wanted = wanted
        self._on_change = on_change
        self._interval = interval
        self._slice = slice
        self._rng = rng or random.Random()
        self._wake = asyncio.Event()
        #: What came of the last poll.
        self.usage = _NOT_YET

    def wake(self) -> None:
        """Whether samples are wanted may have changed."""
        self._wake.set()

    async def run(self) -> None:
        """Poll for ever."""
        asked = float("-inf")
        while True:
            now = asyncio.get_running_loop().time()
            if not self._wanted():
                await self._wake.wait()
            elif now < asked:
                await _at_most(asked - now, self._wake)
            else:
                await self.poll()
                asked = asyncio.get_running_loop().time() + self._interval * self._rng.uniform(*_JITTER)
            self._wake.clear()

    async def poll(self) -> None:
        """Ask once.  Never raises for anything the API server can do; ``usage`` tells what came of it."""
        try:
            samples = await self._samples()
        except NotFound:
            usage = Usage(False, "NotServed", "the API server does not serve metrics.k8s.io")
        except Forbidden as error:
            usage = Usage(False, "Forbidden", f"the scheduler may not list nodes.metrics.k8s.io: {error}")
        except KubeError as error:
            usage = Usage(False, "Unavailable", f"metrics.k8s.io does not answer: {error}")
        else:
            self._submit(UsageMeasured(samples))
            usage = Usage(True, "Measured", "there are recent samples of the nodes")
            if not samples:
                usage = Usage(False, "NoSamples", "metrics.k8s.io has no samples of nodes")
        self._meter.usage_polled(usage.reason)
        if usage.reason != self.usage.reason:
            # Of a right that is missing the start has warned.
            level = logging.INFO if usage.available or usage.reason == "Forbidden" else logging.WARNING
            logger.log(level, "Real use of nodes: %s", usage.message)
            self.usage = usage
            self._on_change()

    async def _samples(self) -> dict[str, UsageSample]:
        while True:
            try:
                return await self._listed()
            except Gone:
                logger.debug("The list of node metrics took too long and starts over")

    async def _listed(self) -> dict[str, UsageSample]:
        params: dict[str, str | int | bool] = {
            "limit": _PAGE
        }  # metrics-server answers all at once, others may not
        samples: dict[str, UsageSample] = {}
        while True:
            page = await self._client.get(PATH, params=params, timeout=_TIMEOUT)
            await asyncio.sleep(0)
            end = time.perf_counter() + self._slice
            if not isinstance(page, dict) or not isinstance(items := page.get("items") or [], list):
                raise BadAnswer(f"{PATH}: the answer is no list")
            for item in items:
                self._read(item, samples)
                if time.perf_counter() > end:
                    await asyncio.sleep(0)
                    end = time.perf_counter() + self._slice
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return samples
            params["continue"] = token

    def _read(self, item: object, samples: dict[str, UsageSample]) -> None:
        sample = read_sample(item)
        if isinstance(sample, tuple):
            samples[sample[0]] = sample[1]
        else:
            self._meter.object_malformed("node metrics")
            logger.info("Metrics of a node cannot be read and are left out: %s", sample)


def read_sample(item: object) -> tuple[str, UsageSample] | str:
    """A node's name and sample out of a NodeMetrics, or what is wrong with it."""
    reader = Reader()
    obj = reader.mapping(item, "item")
    name = reader.text(reader.mapping(obj.get("metadata"), "metadata").get("name"), "metadata.name")
    at = reader.time(obj.get("timestamp"), "timestamp")
    usage = read_list(reader, obj.get("usage"), "usage")
    if not name:
        reader.report("metadata.name", "is missing")
    if obj.get("timestamp") is None:
        reader.report("timestamp", "is missing")
    if reader.problems:
        return f"{name or 'a node'}: " + "; ".join(f"{path}: {text}" for path, text in reader.problems)
    return name, UsageSample(at, base_units(usage))


async def _at_most(delay: float, event: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(event.wait(), delay)
    except TimeoutError:
        pass
