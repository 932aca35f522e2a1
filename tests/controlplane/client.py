"""A small client for tests: Kubernetes objects are plain dicts, in and out; synchronous, and safe to share by
threads.

It is written with the standard library on purpose: what tests use to look at the cluster must not share code,
and so bugs, with the client of the package under test. In async tests use `.aio`, the same methods to be
awaited.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import yaml

from tests.controlplane.discovery import Discovery, Resource

if TYPE_CHECKING:
    from tests.controlplane.aio import AsyncClient

T = TypeVar("T")
Obj = dict[str, Any]
Objs = list[Obj]

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiError(Exception):
    """The API server said no."""

    def __init__(self, status: int, body: Any, what: str) -> None:
        self.status = status
        self.body = body
        self.reason = body.get("reason", "") if isinstance(body, dict) else ""
        self.message = body.get("message", "") if isinstance(body, dict) else str(body)[:500]
        super().__init__(f"{what}: {status} {self.message}")


class Client:
    """Talks to one API server as one user. Connections are kept and reused; `close()` ends them."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30,
    ) -> None:
        self.url = url
        self._address = urlsplit(url)
        self._tls = ssl.create_default_context(cadata=ca)
        self._headers = {"Accept": "application/json", "Connection": "keep-alive", **(headers or {})}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPSConnection] = []
        self._discovery = Discovery(self.request)

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        """A client for a kubeconfig as `ControlPlane` writes it: one cluster, one user with a token."""
        config = yaml.safe_load(path.read_text())
        cluster = config["clusters"][0]["cluster"]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(cluster["server"], token=config["users"][0]["user"]["token"], ca=ca)

    @property
    def aio(self) -> AsyncClient:
        """The same client, to be awaited."""
        from tests.controlplane.aio import AsyncClient

        return AsyncClient(self)

    # --- Raw requests ---------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        """Send one request and give the parsed answer (text, if it is not JSON); ApiError for 400 and above."""
        target = f"{path}?{urlencode(params)}" if params else path
        headers = {**self._headers, "Accept": accept}
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        while True:
            connection, reused = self._take()
            try:
                connection.request(method, target, payload, headers)
                response = connection.getresponse()
                text = response.read()
            except (ConnectionError, ssl.SSLEOFError, http.client.HTTPException) as error:
                connection.close()
                if not reused:
                    raise ConnectionError(f"{method} {target}: {error!r}") from error
                continue  # an idle connection that the server has closed meanwhile
            except BaseException:
                connection.close()
                raise
            with self._lock:
                self._idle.append(connection)
            break
        answer = _parse(text, response.headers.get_content_type())
        if response.status >= 400:
            raise ApiError(response.status, answer, f"{method} {target}")
        return answer

    def _obj(self, *args: Any, **options: Any) -> Obj:
        answer: Obj = self.request(*args, **options)
        return answer

    def _connect(self, timeout: float | None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, timeout=timeout, context=self._tls
        )

    def _take(self) -> tuple[http.client.HTTPSConnection, bool]:
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        return self._connect(self._timeout), False

    def close(self) -> None:
        """Close all idle connections. The client may be used again afterwards."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Objects --------------------------------------------------------------------------------------------

    def resource(self, kind: str, api_version: str | None = None) -> Resource:
        """How a kind is served: `resource("Pod")`, `resource("Event", "events.k8s.io/v1")`."""
        return self._discovery.resource(kind, api_version)

    def resource_of(self, plural: str) -> Resource | None:
        """The kind with that plural name, if it is served."""
        return self._discovery.by_plural(plural)

    def path(
        self, kind: str, name: str | None = None, namespace: str | None = None, api_version: str | None = None
    ) -> str:
        """The URL path of an object, or of the collection without a name. Objects live in `default` by default."""
        resource = self.resource(kind, api_version)
        where = f"/namespaces/{namespace or 'default'}" if resource.namespaced and (name or namespace) else ""
        return f"{resource.root}{where}/{resource.plural}" + (f"/{quote(name)}" if name else "")

    def create(self, obj: Obj) -> Obj:
        """POST an object as it is; its status is ignored by most kinds (`apply` writes it)."""
        meta = obj["metadata"]
        resource = self.resource(obj["kind"], obj.get("apiVersion"))
        namespace = (meta.get("namespace") or "default") if resource.namespaced else None
        path = self.path(obj["kind"], None, namespace, obj.get("apiVersion"))
        return self._obj("POST", path, obj)

    def get(
        self, kind: str, name: str, namespace: str | None = None, *, api_version: str | None = None
    ) -> Obj:
        """Read one object; ApiError with status 404 if there is none."""
        return self._obj("GET", self.path(kind, name, namespace, api_version))

    def find(
        self, kind: str, name: str, namespace: str | None = None, *, api_version: str | None = None
    ) -> Obj | None:
        """Read one object, or None if there is none."""
        try:
            return self.get(kind, name, namespace, api_version=api_version)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        *,
        api_version: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        resource_version: str | None = None,
    ) -> Objs:
        """All objects of a kind, of all namespaces unless one is named; `labels` and `fields` are selectors."""
        given = {"labelSelector": labels, "fieldSelector": fields, "resourceVersion": resource_version}
        params = {key: value for key, value in given.items() if value}
        items: Objs = self._obj("GET", self.path(kind, None, namespace, api_version), params=params)["items"]
        return items

    def patch(
        self,
        kind: str,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        how: str = "merge",
        api_version: str | None = None,
    ) -> Obj:
        """Patch an object or a subresource of it; `how` is merge, json, strategic or apply."""
        path = self.path(kind, name, namespace, api_version) + (f"/{subresource}" if subresource else "")
        params = {"fieldManager": "moorage-tests", "force": "true"} if how == "apply" else None
        return self._obj("PATCH", path, body, params=params, content_type=_PATCH_TYPES[how])

    def patch_status(
        self, kind: str, name: str, status: Obj, namespace: str | None = None, **options: Any
    ) -> Obj:
        """Merge into an object's status. Lists are replaced as a whole."""
        return self.patch(kind, name, {"status": status}, namespace, subresource="status", **options)

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = 0,
        uid: str | None = None,
        api_version: str | None = None,
    ) -> Obj:
        """Delete an object, a pod at once unless `grace` says otherwise; `uid` as a precondition."""
        options: Obj = {"propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        return self._obj("DELETE", self.path(kind, name, namespace, api_version), options)

    def bind(self, name: str, node: str, namespace: str = "default", uid: str | None = None) -> Obj:
        """Bind a pod, as a scheduler does."""
        meta = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        return self._obj("POST", f"{self.path('Pod', name, namespace)}/binding", body)

    def apply(self, objects: Any, *, threads: int = 4) -> Objs:
        """Make the cluster hold these objects, status, priorities and deletions included: see apply.py."""
        from tests.controlplane.apply import apply

        return apply(self, objects, threads=threads)

    # --- Watching and waiting -------------------------------------------------------------------------------

    def watch(
        self,
        kind: str,
        namespace: str | None = None,
        *,
        api_version: str | None = None,
        initial_events: bool = False,
        timeout: float = 10,
        **params: Any,
    ) -> Generator[Obj]:
        """The events of a watch, until `timeout` seconds have passed. Close it, if you stop early."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": max(1, int(timeout)),
            **params,
        }
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        connection = self._connect(timeout + 5)
        try:
            target = f"{self.path(kind, None, namespace, api_version)}?{urlencode(query)}"
            connection.request("GET", target, headers=self._headers)
            response = connection.getresponse()
            if response.status >= 400:
                answer = _parse(response.read(), response.headers.get_content_type())
                raise ApiError(response.status, answer, f"GET {target}")
            for line in response:
                event: Obj = json.loads(line)
                yield event
        except http.client.HTTPException as error:  # cut off within a chunk
            raise ConnectionError(f"watch of {kind}: {error!r}") from error
        finally:
            connection.close()

    def wait_for(self, predicate: Callable[[], T], timeout: float = 10, what: str = "") -> T:
        """Call `predicate` until it gives something true, and give that; AssertionError after `timeout` seconds."""
        return wait_for(predicate, timeout, what)

    def node_of(self, name: str, namespace: str = "default") -> str | None:
        """The node that a pod is bound to."""
        pod = self.find("Pod", name, namespace)
        return pod["spec"].get("nodeName") if pod else None

    def placements(self, namespace: str | None = None) -> dict[str, str | None]:
        """Where every pod is: `{"namespace/pod": node or None}`."""
        return {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["spec"].get("nodeName")
            for pod in self.list("Pod", namespace)
        }

    def condition(self, name: str, namespace: str = "default", kind: str = "PodScheduled") -> Obj | None:
        """A condition of a pod, by default the scheduler's."""
        pod = self.find("Pod", name, namespace) or {}
        conditions = pod.get("status", {}).get("conditions") or ()
        return next((condition for condition in conditions if condition["type"] == kind), None)

    def events(self, name: str, namespace: str = "default", reason: str | None = None) -> Objs:
        """The events about a pod, oldest first."""
        fields = f"involvedObject.name={name}" + (f",reason={reason}" if reason else "")
        found = self.list("Event", namespace, api_version="v1", fields=fields)
        return sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])


#: A machine with other work to do may take this many times longer than an idle one, for which timeouts are written.
PATIENCE = 4


def wait_for(predicate: Callable[[], T], timeout: float = 10, what: str = "") -> T:
    """Call `predicate` until it gives something true, and give that; AssertionError long after `timeout` seconds."""
    timeout *= PATIENCE
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not in {timeout} s: {what or predicate}; last: {value!r}")
        time.sleep(0.02)
    return value


def _parse(text: bytes, content_type: str) -> Any:
    if "json" in content_type and text:
        return json.loads(text)
    return text.decode(errors="replace")
