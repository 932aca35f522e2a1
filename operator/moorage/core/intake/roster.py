"""The profiles in force and their runners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.core.framework.runner import Runner
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.profile import Profile
from moorage.core.snapshot.snapshot import Snapshot


class Roster:
    """By scheduler name, the profiles and what runs their plugins."""

    def __init__(self, profiles: Mapping[str, Profile], snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.profiles: Mapping[str, Profile] = {}
        self.runners: Mapping[str, Runner] = {}
        self.replace(profiles)

    def replace(self, profiles: Mapping[str, Profile]) -> frozenset[str]:
        """Go by these profiles; returns the names of those that are new or decide otherwise than before.

        Raises ValueError if there are none.
        """
        if not profiles:
            raise ValueError("an engine needs at least one profile")
        before, self.profiles = self.profiles, profiles
        changed = frozenset(
            name
            for name, profile in profiles.items()
            if name not in before or not profile.decides_like(before[name])
        )
        self.runners = {
            name: self._runner(profile) if name in changed else self.runners[name]
            for name, profile in profiles.items()
        }
        self._first = next(iter(self.runners.values()))
        return changed

    def _runner(self, profile: Profile) -> Runner:
        return Runner(profile.plugins, profile.weights, self._snapshot, profile.points, profile.extenders)

    def runner_of(self, pod: Pod) -> Runner:
        """The runner of the pod's profile; the first one's for pods of other names."""
        return self.runners.get(pod.spec.scheduler_name, self._first)

    def sort_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        """The pod's place in the queue, by its profile's QueueSort."""
        return self.runner_of(pod).queue_sort.queue_key(pod, since)

    def wakes(self, pod: Pod) -> Mapping[str, Sequence[WakesOn]]:
        """By plugin of the pod's profile, what wakes the pods that the plugin rejected."""
        return self.runner_of(pod).wakes
