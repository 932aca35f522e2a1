"""A DeviceClass of dynamic resource allocation, as much of it as is needed to know what it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Every class stands for the extended resource of this prefix and its own name, whether or not it names another.
IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class; ``extended_resource`` ("": none) is the resource that pods may ask for to get its devices.

    ``created`` is in seconds since the epoch: of two classes for one resource the younger counts.
    """

    name: str
    extended_resource: str = ""
    created: float = 0.0

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of resources that mean devices of this class."""
        implicit = IMPLICIT_PREFIX + self.name
        return (implicit, self.extended_resource) if self.extended_resource else (implicit,)
