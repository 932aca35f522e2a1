"""The extension points by name, and which plugins run at each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from moorage.core.framework.interface import Plugin

P = TypeVar("P", bound=Plugin)


class Point(StrEnum):
    """The extension points of a pod's way, in the order in which it meets them; the values are the API's names.

    Here one plugin method prepares and one filters (or scores), and both are called by the same rule, so a plugin
    that is at ``FILTER`` must be at ``PRE_FILTER``, and one at ``SCORE`` at ``PRE_SCORE``, too.
    """

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"


#: The plugins at some points, by name, in order.  At a point that is absent, all plugins run that have a part in it.
Points = Mapping[Point, tuple[str, ...]]


def at_point(plugins: Sequence[P], points: Points, point: Point) -> list[P]:
    """The plugins that may run at a point, in order; those that have no part in it are the caller's to leave out."""
    names = points.get(point)
    if names is None:
        return list(plugins)
    by_name = {plugin.name: plugin for plugin in plugins}
    return [by_name[name] for name in names]
