"""The profiles in force and their runners, and those that policies derive from them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from moorage.core.framework.alike import AlikeCache
from moorage.core.framework.runner import Runner
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.policy import Backoff, Policy
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.derive import derive
from moorage.core.policy.merge import Merged
from moorage.core.profile import Profile
from moorage.core.snapshot.snapshot import Snapshot


class Roster:
    """By scheduler name, the profiles and what runs their plugins; with policies, by what is in force for a pod."""

    #: Runners that policies have led to kept at the most; the longest unused one makes room.
    DERIVED = 256

    def __init__(
        self, profiles: Mapping[str, Profile], snapshot: Snapshot, book: PolicyBook | None = None
    ) -> None:
        self._snapshot = snapshot
        self.book = PolicyBook(snapshot.namespaces.labels) if book is None else book
        self.profiles: Mapping[str, Profile] = {}
        self.runners: Mapping[str, Runner] = {}
        self._derived: OrderedDict[tuple[str, Merged], Runner] = OrderedDict()
        self._tried: OrderedDict[tuple[str, Merged], Runner] = (
            OrderedDict()
        )  # by audits, which must leave no trace
        self._shared = AlikeCache()
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
        self._first = next(iter(self.runners))
        self._drop(lambda name, _: name in changed or name not in profiles)
        return changed

    def _runner(self, profile: Profile, cache: AlikeCache | None = None) -> Runner:
        return Runner(
            profile.plugins, profile.weights, self._snapshot, profile.points, profile.extenders, cache
        )

    def runner_of(self, pod: Pod) -> Runner:
        """The runner of the pod's profile, with its policies; the first profile's for pods of other names."""
        return self._runner_with(pod, self.book.shaping(pod).merged, self._derived)

    def runner_trying(self, pod: Pod, merged: Merged) -> Runner:
        """The runner of the pod's profile, were these policies in force for it."""
        return self._runner_with(pod, merged, self._tried)

    def _runner_with(self, pod: Pod, merged: Merged, kept: OrderedDict[tuple[str, Merged], Runner]) -> Runner:
        name = pod.spec.scheduler_name
        if name not in self.runners:
            name = self._first
        if not merged.policies:
            return self.runners[name]
        key = name, merged
        runner = kept.get(key)
        if runner is None:
            profile = derive(self.profiles[name], merged, self.book.selects)
            same = profile is self.profiles[name]
            runner = kept[key] = self.runners[name] if same else self._runner(profile, self._shared)
            if len(kept) > self.DERIVED:
                kept.popitem(last=False)
        else:
            kept.move_to_end(key)
        return runner

    def forget(self, policy: Policy) -> None:
        """The policy is not in force any more as it was: drop what was derived from it."""
        self._drop(lambda _, merged: policy in merged.policies)

    def _drop(self, outdated: Callable[[str, Merged], bool]) -> None:
        for kept in (self._derived, self._tried):
            for key in [key for key in kept if outdated(*key)]:
                del kept[key]

    def plain_runner(self, pod: Pod) -> Runner:
        """The runner of the pod's profile without policies, for what these have no word in."""
        return self.runners.get(pod.spec.scheduler_name) or self.runners[self._first]

    def sort_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        """The pod's place in the queue, by its profile's QueueSort."""
        return self.plain_runner(pod).queue_sort.queue_key(pod, since)

    def wakes(self, pod: Pod) -> Mapping[str, Sequence[WakesOn]]:
        """By plugin of the pod's profile, policies included, what wakes the pods that the plugin rejected."""
        return self.runner_of(pod).wakes

    def backoff_of(self, pod: Pod) -> Backoff:
        """What the pod's policies say about its backoff."""
        return self.book.shaping(pod).merged.backoff
