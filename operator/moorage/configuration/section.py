"""Reading one object of a configuration: its fields by name, what is wrong with them, and what is only odd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.adapters.kube.fields import Reader


class Findings(Reader):
    """What is wrong (``problems``) and what is accepted without effect (``warnings``), each with the field's path."""

    __slots__ = ("warnings",)

    def __init__(self) -> None:
        super().__init__()
        self.warnings: list[tuple[str, str]] = []

    def warn(self, path: str, message: str) -> None:
        """Note that the field at ``path`` has no effect."""
        self.warnings.append((path, message))


class Section:
    """An object at a path; fields are read by key, and a missing one is the same as null."""

    __slots__ = ("findings", "path", "values")

    def __init__(self, value: object, path: str, findings: Findings) -> None:
        self.findings = findings
        self.path = path
        self.values: Mapping[str, Any] = findings.mapping(value, path or "config")

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def where(self, key: str) -> str:
        """The path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str) -> Any:
        """The value as it is, None if it is missing."""
        return self.values.get(key)

    def report(self, key: str, message: str) -> None:
        """Note that a field is wrong; without a key, the object itself."""
        self.findings.report(self.where(key) if key else self.path, message)

    def warn(self, key: str, message: str) -> None:
        """Note that a field has no effect."""
        self.findings.warn(self.where(key), message)

    def only(self, *known: str, hints: Mapping[str, str] | None = None) -> None:
        """Report every field but these; ``hints`` say what to do instead."""
        for key in self.values:
            if key not in known and key in self:
                self.report(key, (hints or {}).get(key, "is not supported"))

    def text(self, key: str) -> str:
        """A string, "" if absent."""
        return self.findings.text(self.get(key), self.where(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        return self.findings.texts(self.get(key), self.where(key))

    def flag(self, key: str) -> bool:
        """True or false, false if absent."""
        return self.findings.flag(self.get(key), self.where(key))

    def whole(self, key: str, within: tuple[int, int], default: int = 0) -> int:
        """An integer in that range, the default if absent."""
        if key not in self:
            return default
        return self.findings.whole(self.get(key), self.where(key), within)

    def section(self, key: str) -> Section:
        """An object."""
        return Section(self.get(key), self.where(key), self.findings)

    def sections(self, key: str) -> Iterator[Section]:
        """A list of objects."""
        for path, value in self.findings.objects(self.get(key), self.where(key)):
            yield Section(value, path, self.findings)
