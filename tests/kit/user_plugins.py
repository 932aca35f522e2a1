"""Users' plugins from functions and classes that a test declares."""

from __future__ import annotations

from typing import Any

from moorage.core.profile import Additions
from moorage.plugins.declare import declaration_of
from moorage.plugins.loading import additions
from moorage.plugins.watch import Watch


def user_plugins(*things: Any, watch: Watch | None = None) -> Additions:
    """The plugins that these were declared to be."""
    found = [declaration_of(thing) for thing in things]
    return additions([each for each in found if each is not None], watch=watch)
