"""Canaries: the stable share of owners that a policy with a percentage applies to.

The share is cut by a hash of the policy and the owner, so it is the same on every replica and after every restart, all
pods of one owner are in or out together, and a higher percentage only adds owners.
"""

from __future__ import annotations

import hashlib

from moorage.core.model.pod import Pod
from moorage.core.model.policy import Policy

#: The label in which a ReplicaSet's pods carry what its name has behind that of its Deployment.
_TEMPLATE_HASH = "pod-template-hash"


def owner_key(pod: Pod) -> str:
    """``namespace/kind/name`` of whom the pod belongs to: its controller, else ``namespace/Pod/uid``.

    A ReplicaSet counts by its name without the hash of the pod template, so a Deployment stays in, or out, over
    roll-outs.
    """
    owner = pod.owner
    if owner is None:
        return f"{pod.namespace}/Pod/{pod.uid or f'Pod/{pod.namespace}/{pod.name}'}"
    name = owner.name
    template_hash = pod.labels.get(_TEMPLATE_HASH, "")
    if owner.kind == "ReplicaSet" and template_hash:
        name = name.removesuffix(f"-{template_hash}")
    return f"{pod.namespace}/{owner.kind}/{name}"


def place_of(policy: Policy, owner: str) -> int:
    """Where, from 0 to 99, an owner (see ``owner_key``) comes in line for a policy."""
    digest = hashlib.sha256(f"{_identity(policy)}/{owner}".encode()).hexdigest()
    return int(digest[:8], 16) % 100


def takes_part(policy: Policy, owner: str) -> bool:
    """Whether the policy applies to an owner (see ``owner_key``); without a percentage it applies to all."""
    return policy.canary_percent is None or place_of(policy, owner) < policy.canary_percent


def _identity(policy: Policy) -> str:
    """The policy's UID; a file has none, so kind, namespace and name stand in."""
    if policy.uid:
        return policy.uid
    kind = "SchedulingPolicy" if policy.ref.namespace else "ClusterSchedulingPolicy"
    return f"{kind}/{policy.ref.namespace}/{policy.ref.name}"
