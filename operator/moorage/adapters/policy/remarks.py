"""What is legal in a policy, but hardly meant."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.core.model.policy import Policy, Pools


def remarks(policy: Policy) -> Iterator[tuple[str, str]]:
    """Paths of fields, and what is to be said of them."""
    if policy.canary_percent == 0:
        yield "spec.canary.percent", "is 0, so the policy is about no pod"
    if not any(
        (
            policy.windows,
            policy.nodes,
            policy.pools,
            policy.spread,
            policy.limits,
            policy.scoring,
            policy.load,
            policy.preemption,
            policy.backoff,
            policy.pending_deadline,
        )
    ):
        yield "spec", "selects pods, but says nothing about them"
    if policy.nodes is not None:
        for resource, percent in policy.nodes.keep_free.items():
            if percent == 100:
                yield f"spec.nodes.keepFree.{resource}", "is 100, so no pod that asks for it fits anywhere"
    if policy.pools is not None:
        yield from _pools(policy.pools)


def _pools(pools: Pools) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(pools.items):
        path = f"spec.pools.items[{index}]"
        if index and pools.wait:
            yield path, f"is never used: with whenFull wait, pods wait for {pools.items[0].name!r}"
            continue
        for earlier in pools.items[:index]:
            if not earlier.selector.requirements or earlier.selector == item.selector:
                yield path, f"has no nodes: all that it selects are in {earlier.name!r} already"
                break
