"""What is scheduled by: profiles, queue settings and extenders, from the options or from the configuration file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moorage.adapters.extender.endpoint import ExtenderEndpoint
from moorage.adapters.kube.raw_objects import RawObjects
from moorage.assembly.startup import StartupError
from moorage.configuration.file import ConfigFile
from moorage.configuration.read import ConfigError, Configuration
from moorage.core.model.extender import Verb
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, NO_ADDITIONS, Additions, Profile, default_profile
from moorage.core.queue.scheduling_queue import QueueSettings
from moorage.runtime.settings import Settings


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What is in force; ``profiles`` maps scheduler names to profiles, and there is at least one."""

    profiles: Mapping[str, Profile]
    queue: QueueSettings
    endpoints: Sequence[ExtenderEndpoint] = ()


def first_scheduling(
    settings: Settings,
    file: ConfigFile | None,
    off: frozenset[str],
    additions: Additions = NO_ADDITIONS,
) -> Scheduling:
    """What to begin with, without what the features that are off would do.  Raises ``StartupError``.

    ``additions`` are users' plugins; a file knows them already.
    """
    if file is None:
        names = settings.scheduler_name or (DEFAULT_SCHEDULER_NAME,)
        profiles = {name: default_profile(name, additions=additions) for name in names}
        return Scheduling(_allowed(profiles, off), QueueSettings())
    try:
        configuration = file.load()
        scheduling = scheduling_by(configuration, settings, off)
    except ConfigError as error:
        raise StartupError(str(error)) from error
    file.announce(configuration)
    return scheduling


def scheduling_by(configuration: Configuration, settings: Settings, off: frozenset[str]) -> Scheduling:
    """What a configuration asks for.

    Raises ``ConfigError`` if names are given as options, too, and are not those of the profiles.
    """
    given, found = settings.scheduler_name, tuple(configuration.profiles)
    if given and set(given) != set(found):
        message = (
            f"the profiles are for {', '.join(found)}, but --scheduler-name says {', '.join(given)}: "
            "leave that option out, or name the same"
        )
        raise ConfigError([("profiles", message)], settings.config or "")
    return Scheduling(_allowed(configuration.profiles, off), configuration.queue, configuration.extenders)


def keep_for(endpoints: Sequence[ExtenderEndpoint], raw: RawObjects) -> None:
    """Keep the objects that these extenders want to see."""
    blind = [endpoint for endpoint in endpoints if not endpoint.node_cache_capable]
    raw.keep(
        pending=bool(endpoints),
        nodes=any({Verb.FILTER, Verb.PRIORITIZE} & endpoint.extender.verbs for endpoint in blind),
        bound=any(Verb.PREEMPT in endpoint.extender.verbs for endpoint in blind),
    )


def _allowed(profiles: Mapping[str, Profile], off: frozenset[str]) -> Mapping[str, Profile]:
    """The profiles without the plugins that permissions are missing for."""
    without = ("DefaultPreemption",) if "preemption" in off else ()
    return {name: profile.without(without) for name, profile in profiles.items()} if without else profiles
