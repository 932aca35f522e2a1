"""Which kinds the API server serves, and where: read from it, so that custom resources work like built-in ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    has_status: bool

    @property
    def root(self) -> str:
        """The URL path of the group and version."""
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"


class Discovery:
    """The kinds by name, asked for once, and again when a kind is not known (its CRD may be new)."""

    def __init__(self, request: Callable[..., Any]) -> None:
        self._request = request
        self._resources: list[Resource] = []

    def resource(self, kind: str, api_version: str | None = None) -> Resource:
        """The kind in that version, or in the first the server names: the core group comes before all others."""
        if found := self._find(kind, api_version):
            return found
        self._refresh()
        if found := self._find(kind, api_version):
            return found
        raise LookupError(f"the API server serves no {api_version or ''} {kind}")

    def by_plural(self, plural: str) -> Resource | None:
        """The first kind with that plural name."""
        if not self._resources:
            self._refresh()
        return next((resource for resource in self._resources if resource.plural == plural), None)

    def _refresh(self) -> None:
        self._resources = [*self._read("/api"), *self._read("/apis")]

    def _find(self, kind: str, api_version: str | None) -> Resource | None:
        for resource in self._resources:
            if resource.kind == kind and api_version in (None, resource.api_version):
                return resource
        return None

    def _read(self, path: str) -> list[Resource]:
        found: list[Resource] = []
        for group in self._request("GET", path, accept=_ACCEPT)["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name")
                api_version = f"{name}/{version['version']}" if name else version["version"]
                for entry in version.get("resources", ()):
                    kind = entry.get("responseKind", {}).get("kind")
                    subresources = {sub["subresource"] for sub in entry.get("subresources", ())}
                    if kind:
                        namespaced = entry["scope"] == "Namespaced"
                        has_status = "status" in subresources
                        found.append(Resource(api_version, kind, entry["resource"], namespaced, has_status))
        return found
