"""Tells the log which plugins of users are there."""

from __future__ import annotations

import logging

from moorage.core.profile import Additions
from moorage.plugins.adapted import Adapted

logger = logging.getLogger(__name__)


def announce(additions: Additions) -> None:
    """Name each plugin, with what it does and where it is from."""
    for plugin in additions.plugins:
        if isinstance(plugin, Adapted):
            declaration = plugin.declaration
            logger.info(
                "Plugin %s (%s) from %s:%d",
                *(plugin.name, ", ".join(sorted(declaration.parts)), declaration.file, declaration.line),
            )
