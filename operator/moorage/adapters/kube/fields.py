"""Reading JSON that may be anything, without ever raising.

A value of the wrong type is reported with the path of its field and replaced by "nothing there", so that one
bad field neither hides the others nor stops the queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

INT32: Final = (-(1 << 31), (1 << 31) - 1)
INT64: Final = (-(1 << 63), (1 << 63) - 1)
PORTS: Final = (0, 65535)

_NOTHING: Final[Mapping[str, Any]] = {}


class Reader:
    """Collects what is wrong while values are read.

    Every method takes a value and the path of its field; null and absent are the same, as in the API.
    """

    __slots__ = ("problems",)

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []

    def report(self, path: str, message: str) -> None:
        """Note that the field at ``path`` is wrong."""
        self.problems.append((path, message))

    def mapping(self, value: object, path: str) -> Mapping[str, Any]:
        """An object; its keys are checked to be strings."""
        if value is None:
            return _NOTHING
        if not isinstance(value, Mapping):
            self.report(path, f"must be an object, not {kind_of(value)}")
            return _NOTHING
        odd = [key for key in value if not isinstance(key, str)]
        if odd:
            self.report(path, f"keys must be strings, {odd[0]!r} is {kind_of(odd[0])}")
            return {key: item for key, item in value.items() if isinstance(key, str)}
        return value

    def sequence(self, value: object, path: str) -> Sequence[Any]:
        """A list."""
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            self.report(path, f"must be a list, not {kind_of(value)}")
            return ()
        return value

    def objects(self, value: object, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """A list of objects: the path and the content of each."""
        for index, item in enumerate(self.sequence(value, path)):
            where = f"{path}[{index}]"
            if item is None:
                self.report(where, "must be an object, not null")
            else:
                yield where, self.mapping(item, where)

    def text(self, value: object, path: str) -> str:
        """A string, "" if absent."""
        if value is None:
            return ""
        if not isinstance(value, str):
            self.report(path, f"must be a string, not {kind_of(value)} ({value!r:.40})")
            return ""
        return value

    def texts(self, value: object, path: str) -> tuple[str, ...]:
        """A list of strings."""
        items = enumerate(self.sequence(value, path))
        return tuple(self.text(item, f"{path}[{index}]") for index, item in items)

    def text_map(self, value: object, path: str) -> dict[str, str]:
        """An object whose values are strings, such as labels."""
        return {key: self.text(item, f"{path}.{key}") for key, item in self.mapping(value, path).items()}

    def whole(self, value: object, path: str, within: tuple[int, int] = INT32) -> int:
        """An integer in that range, 0 if absent."""
        if value is None:
            return 0
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # YAML's 1.0 and JSON's 1e3 are written back as integers before they are sent
        if isinstance(value, bool) or not isinstance(value, int):
            self.report(path, f"must be an integer, not {kind_of(value)} ({value!r:.40})")
            return 0
        low, high = within
        if not low <= value <= high:
            self.report(path, f"must be between {low} and {high}, not {value:.6g}")
            return 0
        return value

    def flag(self, value: object, path: str) -> bool:
        """True or false, false if absent."""
        if value is None:
            return False
        if not isinstance(value, bool):
            self.report(path, f"must be true or false, not {kind_of(value)} ({value!r:.40})")
            return False
        return value

    def time(self, value: object, path: str) -> float:
        """Seconds since the epoch of an RFC 3339 time, 0 if absent."""
        if value is None:
            return 0.0
        try:
            time = datetime.fromisoformat(value)  # type: ignore[arg-type]
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        except (TypeError, ValueError):
            self.report(path, f"must be an RFC 3339 time, not {value!r:.40}")
            return 0.0


def kind_of(value: object) -> str:
    """What JSON calls the value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a {type(value).__name__}"
