"""Log lines for people or for machines, on standard error.

``kopf run`` sets up logging by its own options; ``moorage run`` does it here.  Either way Kopf is kept
from logging twice for every event of every pod (``quiet_kopf``).
"""

from __future__ import annotations

import logging
import sys
import time
from enum import StrEnum
from typing import Any

import orjson

#: What lines tell apart from their text, if they do: fields of a JSON line, ``name=value`` behind a text.
FIELDS = (
    "pod",
    "node",
    "policy",
    "attempt",
    "result",
    "scheduler",
    "plugins",
    "resource",
    "seconds",
    "phases",
)


class LogFormat(StrEnum):
    """How a line looks."""

    TEXT = "text"
    JSON = "json"


class _Text(logging.Formatter):
    """``2026-01-01T12:00:00.123Z INFO moorage.app: text``, in UTC."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        """The line, with its fields behind it."""
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items() if name != "phases")
        line = super().formatMessage(record)
        return f"{line} [{fields}]" if fields else line


class _Json(_Text):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        line: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    given = record.__dict__
    return {name: given[name] for name in FIELDS if name in given}


def configure(log_format: LogFormat = LogFormat.TEXT, verbosity: int = 0) -> None:
    """Log to standard error: information by default, debugging with ``verbosity`` 1, libraries' too with 2."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format is LogFormat.JSON else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    logging.getLogger("moorage").setLevel(logging.DEBUG if verbosity else logging.INFO)
    quiet_kopf(verbosity)


def quiet_kopf(verbosity: int = 0) -> None:
    """Let Kopf speak of what matters: it says of each event of each pod that a handler succeeded."""
    if verbosity < 2:
        logging.getLogger("kopf.objects").setLevel(logging.WARNING)
        for activity in ("startup", "probe", "authentication", "cleanup"):
            logging.getLogger(f"kopf.activities.{activity}").setLevel(logging.WARNING)
