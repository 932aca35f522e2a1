"""KubeSchedulerConfiguration v1 to what the engine is made with.

Whatever would change a decision and is not honoured is an error that names the field, never silently ignored; what has
no meaning here is accepted with a warning that says why, and which option of ours is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from moorage.adapters.extender.endpoint import ExtenderEndpoint
from moorage.adapters.kube.fields import INT32, INT64
from moorage.configuration.extenders import read_extenders, with_extenders
from moorage.configuration.plugin_args import API_VERSION
from moorage.configuration.profiles import KUBE_SCHEDULER_NAME, read_profiles
from moorage.configuration.section import Findings, Section
from moorage.core.profile import (
    DEFAULT_SCHEDULER_NAME,
    NO_ADDITIONS,
    Additions,
    Profile,
    default_profile,
)
from moorage.core.queue.scheduling_queue import QueueSettings

_KIND: Final = "KubeSchedulerConfiguration"
#: Fields that mean nothing here, and what to do instead.
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "clientConnection": "use --kubeconfig and --context; requests are not throttled on this side",
    "delayCacheUntilActive": "a standby is kept warm, so that it takes over at once",
    "enableContentionProfiling": "there is no such profile",
    "enableProfiling": "there is no such endpoint; see /metrics at --metrics-listen",
    "leaderElection": "use --leader-elect, --lease-name, --lease-namespace, --lease-duration, --renew-deadline "
    "and --retry-period",
    "parallelism": "nodes are looked at as whole columns, in one thread",
    "percentageOfNodesToScore": "every node is scored (docs/decisions/0002)",
}
_GONE: Final[Mapping[str, str]] = {
    "healthzBindAddress": "is gone since v1; use --metrics-listen",
    "metricsBindAddress": "is gone since v1; use --metrics-listen",
}
_READ: Final = (
    "apiVersion",
    "kind",
    "extenders",
    "profiles",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
)


class ConfigError(ValueError):
    """The configuration is broken or asks for something that is not supported.

    ``problems`` are pairs of a field and what is wrong with it; the field is empty for the whole.
    """

    def __init__(self, problems: Sequence[tuple[str, str]], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        lines = [": ".join(part for part in (source, *problem) if part) for problem in problems]
        super().__init__(("\n" if source else "; ").join(lines))


@dataclass(frozen=True)
class Configuration:
    """What a file says.  ``warnings`` are what it says without effect, each beginning with the field."""

    profiles: Mapping[str, Profile]
    queue: QueueSettings = field(default_factory=QueueSettings)
    extenders: tuple[ExtenderEndpoint, ...] = ()
    warnings: tuple[str, ...] = ()


def read_config(config: object, additions: Additions = NO_ADDITIONS) -> Configuration:
    """A configuration from YAML text or the objects it stands for.  Raises ConfigError with all that is wrong.

    Without one, it is the default profile under kube-scheduler's name and ours.  ``additions`` are the plugins that it
    may name besides those that are built in; they are on unless it turns them off.
    """
    if isinstance(config, str):
        config = _parse(config)
    if config is None:
        names = (KUBE_SCHEDULER_NAME, DEFAULT_SCHEDULER_NAME)
        return Configuration({name: default_profile(name, additions=additions) for name in names})
    findings = Findings()
    top = Section(config, "", findings)
    for key, right in (("apiVersion", API_VERSION), ("kind", _KIND)):
        if top.values.get(key, right) != right:
            top.report(key, f"must be {right}, not {top.values[key]!r}")
    top.only(*_READ, *_WITHOUT_EFFECT, hints=_GONE)
    for key, instead in _WITHOUT_EFFECT.items():
        if key in top and top.get(key) not in ({}, 0, False):
            top.warn(key, f"is ignored: {instead}")
    # Numbers that are not used here must still be such as kube-scheduler accepts.
    top.whole("percentageOfNodesToScore", (0, 100))
    top.whole("parallelism", (1, INT32[1]))
    endpoints = read_extenders(top)
    profiles = read_profiles(top, additions)
    if endpoints:
        profiles = with_extenders(profiles, top, endpoints)
    queue = _backoff(top)
    if findings.problems:
        raise ConfigError(findings.problems)
    return Configuration(
        {profile.scheduler_name: profile for profile in profiles},
        queue,
        tuple(endpoints),
        tuple(f"{path}: {message}" for path, message in findings.warnings),
    )


def _backoff(top: Section) -> QueueSettings:
    first, last = "podInitialBackoffSeconds", "podMaxBackoffSeconds"
    initial, longest = top.whole(first, (1, INT64[1]), 1), top.whole(last, (1, INT64[1]), 10)
    if not any(path in (first, last) for path, _ in top.findings.problems) and longest < initial:
        top.report(last, f"must be at least {first}, which is {initial}, not {longest}")
    return QueueSettings(initial_backoff=float(initial), max_backoff=float(longest))


class _Loader(yaml.SafeLoader):
    """Refuses an object that has a key twice, as kube-scheduler does: which one was meant?"""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is there twice", key.start_mark
                )
            seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _parse(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError([("", f"not YAML: {error}")]) from error
