"""Moorage, a Kubernetes scheduler: it scores every node for every pod and can explain each decision.

What a file with plugins of one's own needs is here: ``score``, ``filter``, ``pre_filter`` and ``plugin`` declare them,
``Pod``, ``Nodes``, ``Labels`` and ``Node`` are what they are given, ``NodeValues`` holds what a refresh brings.
Each is imported when it is first asked for.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.core.model.node import Node
    from moorage.plugins.answers import FilterAnswer, PreFilterAnswer, ScoreAnswer
    from moorage.plugins.declare import DeclarationError, filter, plugin, pre_filter, score
    from moorage.plugins.labels import Labels
    from moorage.plugins.nodes import Nodes, NodeValues
    from moorage.plugins.pod import Pod

__version__ = "0.1.0"

# The core multiplies no matrices, so threads of the linear algebra under numpy would only take memory and, at
# their start, CPU from others. Read when numpy is first imported, hence here; who sets a number keeps it.
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_variable, "1")

__all__ = [
    "DeclarationError",
    "FilterAnswer",
    "Labels",
    "Node",
    "NodeValues",
    "Nodes",
    "Pod",
    "PreFilterAnswer",
    "ScoreAnswer",
    "__version__",
    "filter",
    "plugin",
    "pre_filter",
    "score",
]

_HOMES = {
    "moorage.core.model.node": ("Node",),
    "moorage.plugins.answers": ("FilterAnswer", "PreFilterAnswer", "ScoreAnswer"),
    "moorage.plugins.declare": ("DeclarationError", "filter", "plugin", "pre_filter", "score"),
    "moorage.plugins.labels": ("Labels",),
    "moorage.plugins.nodes": ("NodeValues", "Nodes"),
    "moorage.plugins.pod": ("Pod",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """A public name from its module."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
