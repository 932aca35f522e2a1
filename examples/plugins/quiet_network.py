"""Prefer nodes whose network has little to do, as Prometheus sees it.

The query's answer is fetched every 15 seconds in the background; a decision only looks it up, and waits for nobody.
While Prometheus is away, what it said last is used for ``max_age`` seconds, and after that nothing.

Where Prometheus is, and what is asked, is set in the configuration::

    profiles:
    - pluginConfig:
      - name: quiet_network
        args:
          url: http://prometheus.monitoring:9090
          query: sum by (node) (rate(node_network_receive_bytes_total[1m]))
"""

import math
import time

import aiohttp
import numpy as np

import moorage


@moorage.plugin(name="quiet_network", weight=2, refresh_every=15)
class QuietNetwork:
    """The fewer bytes a second a node receives, the better; a node that Prometheus does not know is as good as none."""

    def __init__(
        self,
        *,
        url: str = "http://prometheus.monitoring:9090",
        query: str = "sum by (node) (rate(node_network_receive_bytes_total[1m]))",
        label: str = "node",
        max_age: float = 120.0,
    ) -> None:
        self.url = url
        self.query = query
        self.label = label
        self.max_age = max_age
        self.traffic = moorage.NodeValues()
        self.fetched = -math.inf

    async def refresh(self) -> None:
        """Ask Prometheus; whatever goes wrong is logged by the scheduler, and tried again."""
        timeout = aiohttp.ClientTimeout(total=10)
        async with (
            aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session,
            session.get(f"{self.url}/api/v1/query", params={"query": self.query}) as response,
        ):
            answer = await response.json()
        samples = (
            (each["metric"].get(self.label), float(each["value"][1])) for each in answer["data"]["result"]
        )
        self.traffic = moorage.NodeValues(
            {node: rate for node, rate in samples if node and math.isfinite(rate)}
        )
        self.fetched = time.monotonic()

    def score(self, pod: moorage.Pod, nodes: moorage.Nodes) -> moorage.ScoreAnswer:
        """Called for each pod: looks up, and waits for nobody."""
        if time.monotonic() - self.fetched > self.max_age:
            return np.zeros(len(nodes))  # nothing is known: all are equal
        rate = nodes.values(self.traffic, default=np.nan)
        return -np.where(np.isnan(rate), np.fmax.reduce(rate, initial=0.0), rate)
