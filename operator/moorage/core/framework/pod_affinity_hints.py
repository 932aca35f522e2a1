"""Which changes may help a pod that inter-pod affinity kept off a node.

Where kube-scheduler's hints leave such a pod waiting for the periodic flush although it could go (terms with a
namespace selector, nodes that matter to terms of other pods, the last pod of a group gone), these wake it.
"""

from __future__ import annotations

from collections.abc import Hashable

from moorage.core.framework.pod_affinity import NamespaceLabels, OwnTerms, own_terms
from moorage.core.model.cluster_event import ClusterEvent
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.workload import Namespace


def terms_of(pod: Pod) -> Hashable:
    """What the hints about the pod's own terms read of it; labels that differ from pod to pod are no part of it."""
    own = own_terms(pod)
    return pod.namespace, own, _satisfies(own, pod, None)


def labels_of(pod: Pod) -> Hashable:
    """What the terms of other pods read of it."""
    return pod.namespace, id(pod.labels)


def repels_others(event: ClusterEvent) -> bool:
    """Whether the pod that is gone had anti-affinity to anybody."""
    affinity = event.old.spec.pod_affinity
    return affinity is not None and bool(affinity.required_anti)


def after_repelling_pod(pod: Pod, event: ClusterEvent) -> bool:
    """A placed pod went that may have kept this one away."""
    old: Pod = event.old
    return any(term.means(pod, event.namespace_labels) for term in own_terms(old).required_anti)


def after_assigned_pod(pod: Pod, event: ClusterEvent) -> bool:
    """A placed pod came, went or changed its labels, in the light of the pod's own terms."""
    own = own_terms(pod)
    old: Pod | None = event.old
    new: Pod | None = event.new
    labels = event.namespace_labels
    if old is None:
        return new is not None and _satisfies(own, new, labels)
    if new is None:
        return _shunned(own, old, labels) or _leaves_the_first(own, pod, old, labels)
    if not _satisfies(own, old, labels) and _satisfies(own, new, labels):
        return True
    if _shunned(own, old, labels) and not _shunned(own, new, labels):
        return True
    return not _satisfies(own, new, labels) and _leaves_the_first(own, pod, old, labels)


def after_node(pod: Pod, event: ClusterEvent) -> bool:
    """A node came, went or changed its labels.

    Without required affinity any new node may do.  A label that a node loses or changes may have tied it to
    pods to keep away from, its own or those that have terms against this pod; one that it gains only helps to find pods
    to be near to.
    """
    own = own_terms(pod)
    old: Node | None = event.old
    new: Node | None = event.new
    if new is None:
        return True  # the pods on it count no longer
    keys = {term.topology_key for term in own.required}
    if old is None:
        return not keys or not keys.isdisjoint(new.labels)
    if any(key in new.labels and old.labels.get(key) != new.labels[key] for key in keys):
        return True
    return any(new.labels.get(key) != value for key, value in old.labels.items())


def after_namespace(pod: Pod, event: ClusterEvent) -> bool:
    """A namespace came or changed its labels: terms may mean other pods, or this pod, than before."""
    new: Namespace = event.new
    old = event.old.labels if event.old is not None else None
    if pod.namespace == new.name:
        return True
    own = own_terms(pod)
    for term in (*own.required, *own.required_anti):
        selector = term.match.namespace_selector
        if selector is not None and selector.requirements:
            before = old is not None and selector.matches(old)
            if before != selector.matches(new.labels):
                return True
    return False


def _satisfies(own: OwnTerms, other: Pod, labels: NamespaceLabels | None) -> bool:
    return bool(own.required) and all(term.means(other, labels) for term in own.required)


def _shunned(own: OwnTerms, other: Pod, labels: NamespaceLabels | None) -> bool:
    return any(term.means(other, labels) for term in own.required_anti)


def _leaves_the_first(own: OwnTerms, pod: Pod, old: Pod, labels: NamespaceLabels | None) -> bool:
    """Whether the pod may be the first of its kind now that another is not of it any more."""
    return _satisfies(own, old, labels) and _satisfies(own, pod, labels)
