"""What somebody may read of an explanation who may see the pods of one namespace only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moorage.core.inquiry.explanation import Explanation
from moorage.core.model.pod import Pod

HIDDEN_NAMESPACE, HIDDEN_NAME = "another-namespace", "a-pod"
_HIDDEN = f"{HIDDEN_NAMESPACE}/{HIDDEN_NAME}"


def seen_from(explanation: Explanation, namespace: str) -> Explanation:
    """The explanation without the names of pods of other namespaces."""
    names = sorted(
        {*_keys(explanation)} - {key for key in _keys(explanation) if key.startswith(f"{namespace}/")},
        key=len,
        reverse=True,  # so that no name is taken for the beginning of another
    )

    def hide(text: str) -> str:
        for name in names:
            text = text.replace(name, _HIDDEN)
        return text

    decision = explanation.decision
    if decision.preemption is not None:
        preemption = decision.preemption
        hidden = replace(
            preemption,
            victims=tuple(map(hide, preemption.victims)),
            candidates={node: tuple(map(hide, keys)) for node, keys in preemption.candidates.items()},
        )
        decision = replace(decision, preemption=hidden)
    remedies = tuple(
        replace(
            remedy,
            change=replace(
                remedy.change, without=tuple(_hidden(pod, namespace) for pod in remedy.change.without)
            ),
        )
        for remedy in explanation.remedies
    )
    waits = tuple(replace(wait, text=hide(wait.text)) for wait in explanation.waits)
    return replace(explanation, decision=decision, remedies=remedies, waits=waits)


def _keys(explanation: Explanation) -> Iterable[str]:
    """The pods that the explanation names."""
    preemption = explanation.decision.preemption
    if preemption is not None:
        yield from preemption.victims
        for keys in preemption.candidates.values():
            yield from keys
    yield from explanation.leaving


def _hidden(pod: Pod, namespace: str) -> Pod:
    return pod if pod.namespace == namespace else replace(pod, namespace=HIDDEN_NAMESPACE, name=HIDDEN_NAME)
