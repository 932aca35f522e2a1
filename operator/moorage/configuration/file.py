"""The configuration file: read at the start, and again whenever it has changed."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from moorage.configuration.read import ConfigError, Configuration, read_config
from moorage.core.profile import NO_ADDITIONS, Additions

logger = logging.getLogger(__name__)


class ConfigMeter(Protocol):
    """Counts what becomes of changes of the file."""

    def config_read(self, *, accepted: bool) -> None:
        """A new content was taken over, or refused: then what was in force before still is."""
        ...


class ConfigFile:
    """One file, known by its content: a ConfigMap's is a link to a link, and changes without a new name.

    ``apply`` takes a new configuration over; it raises ConfigError for one that cannot be.  ``additions`` as in
    ``read_config``.
    """

    def __init__(
        self,
        path: str,
        *,
        apply: Callable[[Configuration], Awaitable[None]],
        meter: ConfigMeter,
        additions: Additions = NO_ADDITIONS,
    ) -> None:
        self.path = path
        self._additions = additions
        self._apply = apply
        self._meter = meter
        self._settled = ""  # digest of the content that was judged last
        self._seen = ""  # digest at the last look

    def load(self) -> Configuration:
        """What the file says now.  Raises ConfigError, which names the file."""
        content, self._settled = self._read()
        self._seen = self._settled
        return self._parse(content)

    async def run(self, interval: float = 1.0) -> None:
        """Look at the file for ever."""
        while True:
            await asyncio.sleep(interval)
            await self.look()

    async def look(self) -> None:
        """Take over what the file says if that is new, and the same as at the last look: it is written completely."""
        content, digest = self._read()
        seen, self._seen = self._seen, digest
        if digest == self._settled or digest != seen:
            return
        self._settled = digest
        try:
            configuration = self._parse(content)
            await self._apply(configuration)
        except ConfigError as error:
            self._meter.config_read(accepted=False)
            for problem in error.problems:
                logger.error("%s: %s", self.path, ": ".join(part for part in problem if part))
            logger.error(
                "%s cannot be used as it is now: the configuration before it stays in force", self.path
            )
        else:
            self._meter.config_read(accepted=True)
            self.announce(configuration)

    def announce(self, configuration: Configuration) -> None:
        """Tell the log what is in force now."""
        logger.info("Configuration %s is in force: profiles %s", self.path, ", ".join(configuration.profiles))
        for warning in configuration.warnings:
            logger.warning("%s: %s", self.path, warning)

    def _read(self) -> tuple[bytes | OSError, str]:
        try:
            content = Path(self.path).read_bytes()
        except OSError as error:
            return error, f"cannot be read: {error}"
        return content, hashlib.blake2b(content, digest_size=16).hexdigest()

    def _parse(self, content: bytes | OSError) -> Configuration:
        if isinstance(content, OSError):
            raise ConfigError(
                [("", f"cannot be read: {content.strerror or content}")], self.path
            ) from content
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise ConfigError([("", f"is not UTF-8: {error}")], self.path) from error
        if not text.strip():
            raise ConfigError([("", "is empty")], self.path)
        try:
            return read_config(text, self._additions)
        except ConfigError as error:
            raise ConfigError(error.problems, self.path) from error
