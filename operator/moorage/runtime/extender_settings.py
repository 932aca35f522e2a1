"""What a user of ``moorage extender`` can set: from the environment, and from the command line on top of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from moorage.runtime.settings import (
    PREFIX,
    Listen,
    SettingsError,
    check_debug_listen,
    parse_bool,
    parse_names,
    parse_seconds,
)

#: Whose pods a kube-scheduler places that was told of no other name.
KUBE_SCHEDULER = "default-scheduler"

#: MiB; larger requests would leave no room for others.
MOST_BODY = 256

_LISTEN = Listen("127.0.0.1", 10270)
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """All options of ``moorage extender`` as a server; durations in seconds.

    ``scheduler_name``: whose pods it binds.  ``write_status``: nobody else writes the policies' status.  ``drain``: for
    how long it answers on after it was told to stop, so that who is in front of it can notice.  ``max_body``: how large
    a request may be, in MiB.  ``kubeconfig`` and ``context`` as for ``moorage run``.
    """

    listen: Listen = _LISTEN
    prefix: str = "/scheduler"
    full: bool = False
    enable_bind: bool = False
    scheduler_name: tuple[str, ...] = (KUBE_SCHEDULER,)
    write_status: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    client_ca: str = ""
    kubeconfig: str | None = None
    context: str | None = None
    drain: float = 3.0
    debug_listen: Listen | None = None
    max_body: int = 32

    def __post_init__(self) -> None:
        check_debug_listen(self.debug_listen)
        if not _PREFIX.fullmatch(self.prefix):
            raise SettingsError(f"prefix: must be a path like /scheduler, not {self.prefix!r}")
        if not self.scheduler_name or not all(self.scheduler_name):
            raise SettingsError("scheduler-name: must not be empty")
        if bool(self.tls_cert) != bool(self.tls_key):
            given, missing = ("tls-cert", "tls-key") if self.tls_cert else ("tls-key", "tls-cert")
            raise SettingsError(f"{missing}: is missing, and {given} is of no use without it")
        if self.client_ca and not self.tls_cert:
            raise SettingsError("client-ca: needs tls-cert and tls-key, as certificates are part of TLS")
        if not 1 <= self.max_body <= MOST_BODY:
            raise SettingsError(f"max-body: must be between 1 and {MOST_BODY} MiB, not {self.max_body}")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> ExtenderSettings:
        """The defaults, changed by ``MOORAGE_*`` variables; an empty one counts as not set."""
        given: dict[str, Any] = {}
        for field in fields(cls):
            name = PREFIX + field.name.upper()
            text = environ.get(name, "").strip()
            if not text:
                continue
            try:
                given[field.name] = _PARSERS.get(field.name, str)(text)
            except SettingsError as error:
                raise SettingsError(f"{name}: {error}") from None
        return cls(**given)

    def changed(self, **given: Any) -> ExtenderSettings:
        """With these values where they are not None."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def parse_listen(text: str) -> Listen:
    """An address; unlike those of metrics it cannot be turned off."""
    listen = Listen.parse(text)
    if listen is None:
        raise SettingsError(f"must be HOST:PORT, not {text!r}")
    return listen


def _parse_whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise SettingsError(f"must be a whole number, not {text!r}")
    return int(text)


_PARSERS: Mapping[str, Any] = {
    "listen": parse_listen,
    "full": parse_bool,
    "enable_bind": parse_bool,
    "write_status": parse_bool,
    "scheduler_name": parse_names,
    "drain": parse_seconds,
    "debug_listen": Listen.parse,
    "max_body": _parse_whole,
}
