"""What a user can set, as one value: from the environment, and from the command line on top of it.

``kopf run -A -m moorage.handlers`` has no command line of ours, so each option is also a ``MOORAGE_*``
variable, read here in one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from ipaddress import ip_address
from typing import Any

PREFIX = "MOORAGE_"
OFF = "off"

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class SettingsError(ValueError):
    """A setting that cannot be used; the text names it and says what it should be."""


@dataclass(frozen=True, slots=True)
class Listen:
    """An address to listen at."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Listen | None:
        """``HOST:PORT``, ``:PORT`` for all interfaces, ``[IPv6]:PORT``; ``off`` gives None."""
        if text.strip().lower() == OFF:
            return None
        host, colon, port = text.strip().rpartition(":")
        if not colon or not port.isdigit() or not 0 <= int(port) <= 65535:
            raise SettingsError(f'must be HOST:PORT or "{OFF}", not {text!r}')
        return cls(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - the user's explicit wish

    @property
    def loopback(self) -> bool:
        """Whether only this machine (or pod) can reach it."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:  # a name, which may mean anything
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_debug_listen(listen: Listen | None) -> None:
    """Raises ``SettingsError`` if others than those on this machine could reach the pages for debugging."""
    if listen is not None and not listen.loopback:
        raise SettingsError(f"debug-listen: must be a loopback address such as 127.0.0.1, not {listen}")


@dataclass(frozen=True, slots=True)
class Settings:
    """All options of ``moorage run``; durations in seconds.

    ``scheduler_name`` empty: those of the configuration's profiles, else ``moorage``.  ``config`` None: the default
    profile.  ``lease_namespace`` None: the pod's own namespace, else kube-system.  ``kubeconfig`` None: $KUBECONFIG,
    else the default file, else the in-cluster account.

    Some have no option on the command line, because nobody but a test is better off with another value:
    a stream without a byte for ``watch_silence`` is taken for dead; the pending pods are listed every
    ``pending_interval``, policies every ``policy_interval``, and what nodes use is asked for every ``usage_interval``.
    """

    scheduler_name: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None
    leader_elect: bool = True
    lease_name: str = "moorage"
    lease_namespace: str | None = None
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    node_ready_guard: bool = True
    metrics_listen: Listen | None = Listen("127.0.0.1", 10269)
    liveness: Listen | None = None
    max_binds: int = 100
    watch_silence: float = 75.0
    pending_interval: float = 30.0
    policy_interval: float = 30.0
    usage_interval: float = 15.0
    config: str | None = None
    explain_listen: Listen | None = None
    explain_tls_cert: str | None = None
    explain_tls_key: str | None = None
    debug_listen: Listen | None = None
    slow_decision: float = 0.1

    def __post_init__(self) -> None:
        if not all(self.scheduler_name):
            raise SettingsError("scheduler-name: must not be empty")
        if len(set(self.scheduler_name)) != len(self.scheduler_name):
            raise SettingsError(f"scheduler-name: {', '.join(self.scheduler_name)} names one twice")
        check_debug_listen(self.debug_listen)
        if not self.slow_decision > 0:
            raise SettingsError(f"slow-decision: must be more than 0 seconds, not {self.slow_decision:g}")
        if self.max_binds < 1:
            raise SettingsError(f"max-binds: must be at least 1, not {self.max_binds}")
        if (self.explain_tls_cert is None) != (self.explain_tls_key is None):
            raise SettingsError("explain-tls-cert and explain-tls-key: must be given together")
        listen = self.explain_listen
        if listen is not None and self.explain_tls_cert is None and not listen.loopback:
            raise SettingsError(
                f"explain-listen: {listen}: callers send tokens, so another address than loopback needs "
                "explain-tls-cert and explain-tls-key"
            )
        if not self.lease_duration > self.renew_deadline > 1.2 * self.retry_period > 0:
            raise SettingsError(
                "lease-duration must be longer than renew-deadline, and that longer than 1.2 x retry-period, "
                f"not {self.lease_duration:g}, {self.renew_deadline:g}, {self.retry_period:g}"
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
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

    def changed(self, **given: Any) -> Settings:
        """With these values where they are not None (a command line's options that were not used are)."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def with_addresses(self, **addresses: Listen | None) -> Settings:
        """With these addresses, where None is a value: not listening."""
        return replace(self, **addresses)  # type: ignore[arg-type]  # by the names of fields


def parse_names(text: str) -> tuple[str, ...]:
    """Names between spaces or commas.  Raises SettingsError."""
    names = tuple(filter(None, re.split(r"[\s,]+", text)))
    if not names:
        raise SettingsError("must be at least one name")
    return names


def parse_bool(text: str) -> bool:
    """A yes or no.  Raises SettingsError."""
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise SettingsError(f"must be true or false, not {text!r}")


def parse_seconds(text: str) -> float:
    """A duration.  Raises SettingsError."""
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        raise SettingsError(f"must be a number of seconds, not {text!r}") from None
    if not 0 < seconds < 86400:
        raise SettingsError(f"must be between 0 and a day, not {text!r}")
    return seconds


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SettingsError(f"must be a whole number, not {text!r}") from None


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "scheduler_name": parse_names,
    "leader_elect": parse_bool,
    "lease_duration": parse_seconds,
    "renew_deadline": parse_seconds,
    "retry_period": parse_seconds,
    "node_ready_guard": parse_bool,
    "metrics_listen": Listen.parse,
    "liveness": Listen.parse,
    "explain_listen": Listen.parse,
    "debug_listen": Listen.parse,
    "slow_decision": parse_seconds,
    "max_binds": _whole,
    "watch_silence": parse_seconds,
    "pending_interval": parse_seconds,
    "policy_interval": parse_seconds,
    "usage_interval": parse_seconds,
}
