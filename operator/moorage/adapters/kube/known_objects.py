"""What a receiver has been told of a collection, so that it is told only what is new.

Of each object that is its UID, its resource version and a *token*: whatever the receiver gave back when
it was told, and is handed again when the object is gone.  Raw objects are not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from moorage.adapters.kube.watch_lines import Obj

T = TypeVar("T")


class KnownObjects(Generic[T]):
    """Tells a receiver of changes: ``apply`` of new and changed objects, ``delete`` of those gone."""

    def __init__(
        self,
        apply: Callable[[Obj], T],
        delete: Callable[[T], None],
        on_malformed: Callable[[str, Exception], None],
    ) -> None:
        self._apply = apply
        self._delete = delete
        self._on_malformed = on_malformed
        # By name, not by UID: a name used again must be seen as such, whatever events were missed.
        self._known: dict[str, tuple[str, str, Any]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def observe(self, obj: Obj) -> str | None:
        """Tell of an object, unless this very version is known; its key, None if it has none."""
        meta = obj.get("metadata") or {}
        key, uid, version = _key(meta), meta.get("uid"), meta.get("resourceVersion")
        if not (key and uid and version):
            self._on_malformed(key, ValueError("an object without name, uid or resourceVersion"))
            return None
        token: Any = _NONE
        known = self._known.get(key)
        if known is not None:
            if known[0] != uid:
                self.forget(key)  # the name is used again: the old one goes before the new one comes
            elif known[1] == version:
                return key
            else:
                token = known[2]
        try:
            token = self._apply(obj)
        except Exception as error:  # noqa: BLE001 - one bad object must not hide all others
            self._on_malformed(key, error)
        self._known[key] = (uid, version, token)
        return key

    def distrust(self) -> None:
        """Tell of every object anew when it is seen next, whether it has changed or not."""
        self._known = {key: (uid, _STALE, token) for key, (uid, _, token) in self._known.items()}

    def vanish(self, obj: Obj) -> None:
        """Tell that an object is gone; the delete of an earlier one of that name does not concern the present."""
        meta = obj["metadata"]
        key = _key(meta)
        known = self._known.get(key)
        if known is not None and known[0] == meta.get("uid"):
            self.forget(key)

    def forget(self, key: str) -> None:
        """Tell that the object of this key is gone."""
        token = self._known.pop(key)[2]
        if token is not _NONE:
            self._delete(token)

    def missing(self, seen: set[str]) -> list[str]:
        """The keys of known objects that a complete list did not show."""
        return [key for key in self._known if key not in seen]


class _Nothing:
    """The type of ``_NONE``."""


#: The token of an object that could never be applied: the receiver does not know it.
_NONE = _Nothing()

#: In the place of a version: no object has this one.
_STALE = ""


def _key(meta: Obj) -> str:
    namespace = meta.get("namespace")
    return f"{namespace}/{meta.get('name')}" if namespace else str(meta.get("name") or "")
