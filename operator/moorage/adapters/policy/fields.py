"""Reading the fields of a policy: what a CRD's schema and rules say, once more and with our words.

Values read as wrong are replaced by something harmless; what was reported decides whether the policy is taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeVar

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.resource_lists import is_label_value, is_qualified_name
from moorage.adapters.kube.selectors import read_label_selector
from moorage.core.model.selector import LabelSelector, Operator, Requirement

E = TypeVar("E", bound=Enum)
Fields = Mapping[str, Any]

_DURATION: Final = re.compile(r"(?:[0-9]+(?:ms|s|m|h))+")
_DURATION_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST: Final = 8760 * 3600.0
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_MOST_REQUIREMENTS, _MOST_VALUES = 32, 64

_POD_OPERATORS: Final = frozenset({Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST})


class FieldReader(Reader):
    """A ``Reader`` that also checks what a policy's fields must fulfil."""

    def section(self, parent: Fields, key: str, path: str, known: Collection[str]) -> Fields | None:
        """An object that is a field of another one; None if it is absent.  Fields not known are reported."""
        value = parent.get(key)
        if value is None:
            return None
        where = f"{path}.{key}"
        section = self.mapping(value, where)
        self.only(section, where, known)
        return section

    def only(self, section: Fields, path: str, known: Collection[str]) -> None:
        """Report fields that do not exist."""
        for key in section:
            if key not in known:
                self.report(f"{path}.{key}", f"is not a field; there are {', '.join(known)}")

    def items(
        self, parent: Fields, key: str, path: str, most: int, known: Collection[str]
    ) -> list[tuple[str, Fields]]:
        """A list of objects, if it is there at least one: path and content of each."""
        items = list(self.objects(parent.get(key), f"{path}.{key}"))
        self._count(parent.get(key), f"{path}.{key}", most)
        for where, item in items:
            self.only(item, where, known)
        return items

    def strings(self, parent: Fields, key: str, path: str, most: int) -> tuple[str, ...]:
        """A list of different strings that are not empty, if it is there at least one."""
        where = f"{path}.{key}"
        texts = self.texts(parent.get(key), where)
        self._count(parent.get(key), where, most)
        for index, text in enumerate(texts):
            if not text:
                self.report(f"{where}[{index}]", "must not be empty")
        self.different(((f"{where}[{index}]", text) for index, text in enumerate(texts)))
        return texts

    def _count(self, value: object, path: str, most: int) -> None:
        if isinstance(value, list | tuple):
            if not value:
                self.report(path, "must have at least one item")
            if len(value) > most:
                self.report(path, f"must have at most {most} items, not {len(value)}")

    def different(self, items: Iterable[tuple[str, str]]) -> None:
        """Report what comes twice, given as path and what identifies it."""
        seen = set()
        for path, item in items:
            if item in seen:
                self.report(path, f"{item!r} is there already")
            seen.add(item)

    def number(
        self, parent: Fields, key: str, path: str, within: tuple[int, int], default: int | None = None
    ) -> int | None:
        """A whole number in a range."""
        value = parent.get(key)
        return default if value is None else self.whole(value, f"{path}.{key}", within)

    def needed(self, parent: Fields, key: str, path: str) -> bool:
        """Whether the field is there; reported if not."""
        if parent.get(key) is None:
            self.report(f"{path}.{key}", "is missing")
            return False
        return True

    def choice(self, parent: Fields, key: str, path: str, choices: Mapping[str, E], default: E) -> E:
        """One of some words."""
        value = parent.get(key)
        if value is None:
            return default
        text = self.text(value, f"{path}.{key}")
        if text not in choices:
            self.report(f"{path}.{key}", f"must be one of {', '.join(choices)}, not {text!r}")
            return default
        return choices[text]

    def one_of(self, parent: Fields, key: str, path: str, choices: tuple[str, ...]) -> str:
        """One of some words; the first if absent."""
        value = parent.get(key)
        if value is None:
            return choices[0]
        text = self.text(value, f"{path}.{key}")
        if text not in choices:
            self.report(f"{path}.{key}", f"must be one of {', '.join(choices)}, not {text!r}")
            return choices[0]
        return text

    def duration(self, parent: Fields, key: str, path: str) -> float | None:
        """Seconds; None if absent."""
        value, where = parent.get(key), f"{path}.{key}"
        if value is None:
            return None
        text = self.text(value, where)
        if not _DURATION.fullmatch(text) or len(text) > 32:
            if isinstance(value, str):
                self.report(where, f"must be a duration such as 90s, 10m or 1h30m, not {text!r:.40}")
            return None
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in _DURATION_PART.findall(text))
        if not 0 < seconds <= _LONGEST:
            self.report(where, f"must be more than 0 and at most 8760h, not {text}")
        return seconds

    def key(self, value: object, path: str) -> str:
        """The key of a label or taint, or the name of a resource."""
        if value is None:
            self.report(path, "is missing")
            return ""
        text = self.text(value, path)
        if isinstance(value, str) and not is_qualified_name(text):
            self.report(path, f"{text!r} is not a valid key")
        return text

    def percentages(self, parent: Fields, key: str, path: str, within: tuple[int, int]) -> dict[str, int]:
        """Whole numbers by the name of a resource."""
        where = f"{path}.{key}"
        amounts = self.mapping(parent.get(key), where)
        if parent.get(key) is not None and not amounts:
            self.report(where, "must name at least one resource")
        result = {}
        for name, value in amounts.items():
            self.key(name, f"{where}.{name}")
            result[name] = self.whole(value, f"{where}.{name}", within)
            if value is None:
                self.report(f"{where}.{name}", "must be an integer, not null")
        return result

    def selector(self, parent: Fields, key: str, path: str, *, of_pods: bool = False) -> LabelSelector | None:
        """A selector; None if absent.  Only nodes are selected by Gt and Lt."""
        where = f"{path}.{key}"
        value = parent.get(key)
        section = self.section(parent, key, path, ("matchLabels", "matchExpressions"))
        selector = read_label_selector(value, where, self)
        if section is None or selector is None:
            return None
        labels = section.get("matchLabels")
        if isinstance(labels, Mapping):
            for name, text in labels.items():
                self.key(name, f"{where}.matchLabels.{name}")
                if isinstance(text, str) and not is_label_value(text):
                    self.report(f"{where}.matchLabels.{name}", f"{text!r} is not a label value")
                elif text is None:
                    self.report(f"{where}.matchLabels.{name}", "must be a string, not null")
        quiet = Reader()
        for at, item in quiet.objects(section.get("matchExpressions"), f"{where}.matchExpressions"):
            self.only(item, at, ("key", "operator", "values"))
            self.key(item.get("key"), f"{at}.key")
            name, values = quiet.text(item.get("operator"), at), quiet.texts(item.get("values"), at)
            if name in list(Operator):
                self._requirement(Requirement("", Operator(name), values), at, of_pods=of_pods)
        return selector

    def _requirement(self, requirement: Requirement, path: str, *, of_pods: bool) -> None:
        operator, values = requirement.operator, requirement.values
        if of_pods and operator not in _POD_OPERATORS:
            self.report(f"{path}.operator", f"{operator.value} is for nodes only")
        elif operator in (Operator.IN, Operator.NOT_IN):
            if not values:
                self.report(f"{path}.values", f"{operator.value} needs at least one")
            elif len(values) > _MOST_VALUES:
                self.report(f"{path}.values", f"must have at most {_MOST_VALUES} items, not {len(values)}")
        elif operator in (Operator.GT, Operator.LT):
            if len(values) != 1 or not _WHOLE.fullmatch(values[0]):
                self.report(f"{path}.values", f"{operator.value} needs just one, a whole number")
        elif values:
            self.report(f"{path}.values", f"{operator.value} takes none")
