"""Label and node selectors as values, and their meaning on one set of labels.

The scalar ``matches`` functions are the definition; the snapshot evaluates the same selectors on
whole label columns.  Source of the rules: the Kubernetes API documentation of ``LabelSelector``
and ``NodeSelector`` (a missing key satisfies NotIn and DoesNotExist; Gt and Lt compare base-10
integers and never match anything else).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


class Operator(StrEnum):
    """How a requirement compares a label with its values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


def parse_int64(text: str) -> int | None:
    """The integer that ``text`` spells in base 10 within 64 bits, as Go's ParseInt reads it, else None."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    value = int(text)
    return value if _INT64_MIN <= value <= _INT64_MAX else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label (or field)."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def admits(self, value: str | None) -> bool:
        """Whether a label with this value (None: no such label) satisfies the requirement."""
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                if value is None or len(self.values) != 1:
                    return False
                have, want = parse_int64(value), parse_int64(self.values[0])
                if have is None or want is None:
                    return False
                return have > want if self.operator is Operator.GT else have < want


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; a selector without any matches everything.

    ``matchLabels`` are requirements with the operator In.  A *missing* selector, which by the API
    matches nothing, is ``None`` wherever a ``LabelSelector | None`` is asked for.
    """

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy every requirement."""
        return all(r.admits(labels.get(r.key)) for r in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements on labels and on fields (``metadata.name``), all of which must hold.

    A term without any requirement matches no node.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node of that name and labels satisfies the term."""
        if not self.expressions and not self.fields:
            return False
        return all(r.admits(labels.get(r.key)) for r in self.expressions) and all(
            r.key == "metadata.name" and r.admits(name) for r in self.fields
        )


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match; without terms it matches no node."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether any term matches the node of that name and labels."""
        return any(term.matches(name, labels) for term in self.terms)


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A node selector term that adds ``weight`` (1..100) to the score of nodes it matches.

    An empty term matches nothing here, too: by the API documentation of PreferredSchedulingTerm it
    is a no-op.
    """

    weight: int
    term: NodeSelectorTerm
