"""The DeviceClasses by the resources that they stand for."""

from __future__ import annotations

from moorage.core.model.device_class import DeviceClass


class DeviceClasses:
    """All known classes; there are few, so a change files them anew."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, DeviceClass] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def of(self, resource: str) -> DeviceClass | None:
        """The class whose devices a pod gets that asks for this resource, None for an ordinary resource.

        Of several the youngest, and of those the first by name (kube-scheduler: ``ExtendedResourceCache``).
        """
        return self._by_resource.get(resource)

    def apply(self, new: DeviceClass) -> DeviceClass | None:
        """Add or replace a class; returns what it was before."""
        before = self._classes.get(new.name)
        if before != new:
            self._classes[new.name] = new
            self._file()
        return before

    def remove(self, name: str) -> DeviceClass | None:
        """The class is gone; returns what it was."""
        before = self._classes.pop(name, None)
        if before is not None:
            self._file()
        return before

    def _file(self) -> None:
        # The one that counts comes last and overwrites the others.
        by_name = sorted(self._classes.values(), key=lambda each: each.name, reverse=True)
        by_age = sorted(by_name, key=lambda each: each.created)
        self._by_resource = {resource: each for each in by_age for resource in each.resources}
