"""Prefer cheap nodes, by a label that says what a node costs an hour.

    kubectl label node worker-1 example.com/price=0.42
    moorage run cheaper_first.py

A node without the label, or with something else than a number, counts as the dearest there is: who does not know
what a node costs should not find out from the bill.
"""

import numpy as np

import moorage


@moorage.score(weight=2)
def cheaper_first(
    pod: moorage.Pod, nodes: moorage.Nodes, *, label: str = "example.com/price"
) -> moorage.ScoreAnswer:
    """The lower the price, the better; a configuration can name another label (pluginConfig, args)."""
    price = nodes.label_number(label, default=np.nan)
    dearest = np.fmax.reduce(price, initial=0.0)  # of those that are known
    return -np.where(np.isnan(price), dearest, price)
