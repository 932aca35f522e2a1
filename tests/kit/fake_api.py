"""An API server in memory that misbehaves on demand.

It knows no kinds: any path of a collection holds objects.  Lists (paged), watches (WatchList, bookmarks,
410), field selectors, resource versions and UIDs, merge patches, bindings and access reviews work well
enough for a client; what a test wants to go wrong, it says with ``on`` or tells the open watches.

    async with FakeApi() as api:
        api.put("/api/v1/nodes", {"metadata": {"name": "a"}})
        api.on("POST", r"/binding$", Drop(after=True))
        client = api.client()
"""

from __future__ import annotations

import asyncio
import copy
import re
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from aiohttp import web

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.credentials import Access, Credentials

Obj = dict[str, Any]

_PATH = re.compile(
    r"^(?P<prefix>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>.+))?)?$"
)
_END = object()


@dataclass(frozen=True)
class Answer:
    """Answer with this status instead of doing anything; the body is a Status unless given."""

    status: int
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    message: str = "told to"


@dataclass(frozen=True)
class Drop:
    """Reset the connection without an answer, before the request took effect or after."""

    after: bool = False


@dataclass(frozen=True)
class Delay:
    """Do the work (at once, or only then with ``first``), and answer after so many seconds."""

    seconds: float
    first: bool = False


Fault = Answer | Drop | Delay


@dataclass
class Rule:
    """One fault and how often it still happens (None: always)."""

    method: str
    pattern: re.Pattern[str]
    fault: Fault
    times: int | None


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(eq=False)
class Watch:
    """An open watch."""

    collection: str
    namespace: str
    selector: str
    queue: asyncio.Queue[Any]
    request: web.Request
    muted: bool = False


class FakeApi:
    """See the module; an async context manager."""

    def __init__(self) -> None:
        self.version = 100  # the resource version of the last write
        self.token: str | None = None  # every request needs it, if set
        self.watch_list = True  # whether sendInitialEvents is served
        self.initial_bookmark = True  # whether the end of the initial events is announced
        self.denied: set[tuple[str, ...]] = (
            set()
        )  # (verb, resource[/subresource][, group]) for access reviews
        self.groups = ["coordination.k8s.io/v1", "events.k8s.io/v1", "authorization.k8s.io/v1"]
        self.requests: list[Seen] = []
        self.url = ""
        self._objects: dict[str, dict[tuple[str, str], Obj]] = defaultdict(dict)
        self._log: list[
            tuple[int, str, Obj, Obj | None, Obj | None]
        ] = []  # version, collection, object, old, new
        self._compacted = 0
        self._pages: dict[str, list[Obj]] = {}
        self._rules: list[Rule] = []
        self._watches: list[Watch] = []
        self._runner: web.AppRunner | None = None
        self._clients: list[KubeClient] = []

    # --- Life ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            await client.close()
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen (again, with ``port``)."""
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = str(site.name) if port else f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._runner is not None
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening, and cut all connections."""
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()

    def client(self, token: str | None = None, **options: Any) -> KubeClient:
        """A client of this server, closed with it."""
        access = Access(self.url, f"Bearer {token}" if token else None)
        self._clients.append(KubeClient(Credentials(access), **options))
        return self._clients[-1]

    # --- State ---

    def put(self, collection: str, obj: Obj) -> Obj:
        """Create or replace an object, and tell the watches; gives what is stored."""
        meta = {"uid": str(uuid.uuid4()), **obj.get("metadata", {})}
        key = (meta.get("namespace", ""), meta["name"])
        old = self._objects[collection].get(key)
        if old is not None and "uid" not in obj.get("metadata", {}):
            meta["uid"] = old["metadata"]["uid"]
        self.version += 1
        stored = {**copy.deepcopy(obj), "metadata": {**meta, "resourceVersion": str(self.version)}}
        self._objects[collection][key] = stored
        self._publish(collection, stored, old, stored)
        return stored

    def remove(self, collection: str, name: str, namespace: str = "") -> None:
        """Delete an object, and tell the watches."""
        old = self._objects[collection].pop((namespace, name))
        self.version += 1
        gone = copy.deepcopy(old)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._publish(collection, gone, old, None)

    def get(self, collection: str, name: str, namespace: str = "") -> Obj | None:
        """What is stored."""
        return self._objects[collection].get((namespace, name))

    def compact(self) -> None:
        """Forget the history: older resource versions and continue tokens are answered with 410."""
        self.version += 1
        self._compacted = self.version
        self._log.clear()
        self._pages.clear()

    # --- Misbehaviour ---

    def on(self, method: str, pattern: str, fault: Fault, times: int | None = 1) -> None:
        """Let the next requests that match (path, and query after a "?") meet a fault."""
        self._rules.append(Rule(method, re.compile(pattern), fault, times))

    def calm(self) -> None:
        """Forget all faults."""
        self._rules.clear()

    def count(self, method: str, pattern: str) -> int:
        """How many such requests arrived."""
        return len(self.seen(method, pattern))

    def seen(self, method: str, pattern: str) -> list[Seen]:
        """The requests that match."""
        return [r for r in self.requests if r.method == method and re.search(pattern, r.path)]

    def watches(self, collection: str = "") -> list[Watch]:
        """The open watches."""
        return [watch for watch in self._watches if not collection or watch.collection == collection]

    def cut(self, collection: str = "") -> None:
        """Reset the connections of watches."""
        for watch in self.watches(collection):
            if watch.request.transport is not None:
                watch.request.transport.abort()

    def end(self, collection: str = "") -> None:
        """End watches as the server does at their time-out."""
        self._tell(collection, _END)

    def mute(self, collection: str = "") -> None:
        """Keep the present watches open, and send nothing on them any more."""
        for watch in self.watches(collection):
            watch.muted = True

    def bookmark(self, collection: str = "") -> None:
        """Send a bookmark."""
        self._tell(collection, _line("BOOKMARK", _bookmark(self.version)))

    def error(self, code: int, collection: str = "", reason: str = "") -> None:
        """Send an ERROR event."""
        status = {"kind": "Status", "code": code, "reason": reason, "message": "told to"}
        self._tell(collection, _line("ERROR", status))

    def send(self, raw: bytes, collection: str = "") -> None:
        """Send bytes as they are."""
        self._tell(collection, raw)

    def _tell(self, collection: str, item: Any) -> None:
        for watch in self.watches(collection):
            watch.queue.put_nowait(item)

    # --- Requests ---

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = orjson.loads(raw) if raw else None
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = dict(request.query)
        self.requests.append(Seen(request.method, request.path, query, headers, body))
        fault = self._fault(request.method, request.path_qs)
        if isinstance(fault, Drop) and not fault.after:
            return _drop(request)
        if isinstance(fault, Answer):
            content = fault.body
            if content is None:
                content = orjson.dumps(_status(fault.status, fault.reason, fault.message))
            return web.Response(status=fault.status, body=content, headers=fault.headers)
        if isinstance(fault, Delay) and fault.first:
            await asyncio.sleep(fault.seconds)
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            return _answer(_status(401, "Unauthorized", "Unauthorized"))
        response = await self._serve(request, query, body)
        if isinstance(fault, Delay) and not fault.first:
            await asyncio.sleep(fault.seconds)
        return _drop(request) if isinstance(fault, Drop) else response

    def _fault(self, method: str, path: str) -> Fault | None:
        for rule in self._rules:
            if rule.method == method and rule.pattern.search(path) and rule.times != 0:
                if rule.times is not None:
                    rule.times -= 1
                return rule.fault
        return None

    async def _serve(self, request: web.Request, query: dict[str, str], body: Any) -> web.StreamResponse:
        if request.path == "/version":
            return _answer({"gitVersion": "v1.37.2"})
        if request.path == "/apis":
            return _answer({"groups": [{"versions": [{"groupVersion": name}]} for name in self.groups]})
        match = _PATH.match(request.path)
        if match is None:
            return _answer(_status(404, "NotFound", f"no such path: {request.path}"))
        collection = f"{match['prefix']}/{match['resource']}"
        namespace, name, sub = match["namespace"] or "", match["name"], match["sub"] or ""
        if match["resource"].endswith("reviews"):
            return self._review(body)
        if name is None and request.method == "GET":
            if query.get("watch") == "true":
                return await self._watch(request, collection, namespace, query)
            return self._list(collection, namespace, query)
        if name is None and request.method == "POST":
            name = (
                body["metadata"].get("name")
                or body["metadata"].get("generateName", "") + uuid.uuid4().hex[:5]
            )
            if self.get(collection, name, namespace) is not None:
                return _answer(_status(409, "AlreadyExists", f"{name} already exists"))
            body["metadata"] = {
                **body["metadata"],
                "name": name,
                **({"namespace": namespace} if namespace else {}),
            }
            return web.json_response(self.put(collection, body), status=201)
        return self._one(request.method, collection, namespace, str(name), sub, body)

    def _one(
        self, method: str, collection: str, namespace: str, name: str, sub: str, body: Any
    ) -> web.Response:
        stored = self.get(collection, name, namespace)
        if stored is None:
            return _answer(_status(404, "NotFound", f'"{name}" not found'))
        meta = (body or {}).get("metadata") or (body or {}).get("preconditions") or {}
        for field_name in ("uid", "resourceVersion"):
            if meta.get(field_name) and meta[field_name] != stored["metadata"][field_name]:
                return _answer(
                    _status(409, "Conflict", f"{field_name} differs: the object has been modified")
                )
        if method == "GET":
            return _answer(stored)
        if method == "DELETE":
            self.remove(collection, name, namespace)
            return _answer({"kind": "Status", "status": "Success"})
        if sub == "binding":
            if stored.get("spec", {}).get("nodeName"):
                return _answer(_status(409, "Conflict", f"pod {name} is already assigned to node"))
            spec = {**stored.get("spec", {}), "nodeName": body["target"]["name"]}
            annotations = {**stored["metadata"].get("annotations", {}), **meta.get("annotations", {})}
            self.put(
                collection,
                {**stored, "metadata": {**stored["metadata"], "annotations": annotations}, "spec": spec},
            )
            return web.json_response({"kind": "Status", "status": "Success", "code": 201}, status=201)
        changed = body if method == "PUT" else _merge(stored, body)
        changed["metadata"] = {**stored["metadata"], **changed.get("metadata", {})}
        return _answer(self.put(collection, changed))

    def _review(self, body: Any) -> web.Response:
        asked = body["spec"]["resourceAttributes"]
        resource = "/".join(part for part in (asked["resource"], asked.get("subresource")) if part)
        denied = {(asked["verb"], resource), (asked["verb"], resource, asked.get("group", ""))} & self.denied
        allowed = not denied
        return web.json_response({"status": {"allowed": allowed}}, status=201)

    def _matching(self, collection: str, namespace: str, selector: str) -> list[Obj]:
        objects = self._objects[collection].values()
        found = [obj for obj in objects if _selected(obj, namespace, selector)]
        return sorted(found, key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))

    def _list(self, collection: str, namespace: str, query: dict[str, str]) -> web.Response:
        if token := query.get("continue"):
            if token not in self._pages:
                return _answer(_status(410, "Expired", "The provided continue parameter is too old"))
            found = self._pages.pop(token)
            version = token.partition("-")[0]
        else:
            found = self._matching(collection, namespace, query.get("fieldSelector", ""))
            version = str(self.version)
        limit = int(query.get("limit", 0)) or len(found)
        meta = {"resourceVersion": version}
        if found[limit:]:
            meta["continue"] = f"{version}-{uuid.uuid4().hex}"
            self._pages[meta["continue"]] = copy.deepcopy(found[limit:])
        return _answer({"kind": "List", "metadata": meta, "items": found[:limit]})

    # --- Watches ---

    def _publish(self, collection: str, obj: Obj, old: Obj | None, new: Obj | None) -> None:
        entry = (self.version, collection, copy.deepcopy(obj), old, copy.deepcopy(new))
        self._log.append(entry)
        for watch in self.watches(collection):
            if line := _event(entry, watch.namespace, watch.selector):
                watch.queue.put_nowait(line)

    async def _watch(
        self, request: web.Request, collection: str, namespace: str, query: dict[str, str]
    ) -> web.StreamResponse:
        selector = query.get("fieldSelector", "")
        since = int(query.get("resourceVersion") or 0)
        initial = query.get("sendInitialEvents") == "true"
        if initial and not self.watch_list:
            return _answer(_status(422, "Invalid", "sendInitialEvents: Forbidden: WatchList is not enabled"))
        if since and since < self._compacted:
            return _answer(_status(410, "Expired", "too old resource version"))
        watch = Watch(collection, namespace, selector, asyncio.Queue(), request)
        if initial:
            for obj in self._matching(collection, namespace, selector):
                watch.queue.put_nowait(_line("ADDED", obj))
            if self.initial_bookmark:
                watch.queue.put_nowait(_line("BOOKMARK", _bookmark(self.version, initial=True)))
        past = [] if initial else [e for e in self._log if e[0] > since and e[1] == collection]
        for line in filter(None, (_event(entry, namespace, selector) for entry in past)):
            watch.queue.put_nowait(line)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._watches.append(watch)
        try:
            while (item := await watch.queue.get()) is not _END:
                if not watch.muted:
                    await response.write(item)
        except ConnectionError:
            pass
        finally:
            self._watches.remove(watch)
        return response


def _selected(obj: Obj, namespace: str, selector: str) -> bool:
    if namespace and obj["metadata"].get("namespace") != namespace:
        return False
    for term in filter(None, selector.split(",")):
        path, operator, wanted = re.split(r"(!=|=)", term, maxsplit=1)
        value: Any = obj
        for part in path.split("."):
            value = value.get(part, {}) if isinstance(value, dict) else {}
        if ((value or "") == wanted) != (operator == "="):
            return False
    return True


def _event(
    entry: tuple[int, str, Obj, Obj | None, Obj | None], namespace: str, selector: str
) -> bytes | None:
    """What a watch with this selector sees of a change: leaving the selector is a delete, too."""
    _, _, obj, old, new = entry
    was = old is not None and _selected(old, namespace, selector)
    now = new is not None and _selected(new, namespace, selector)
    if now:
        return _line("MODIFIED" if was else "ADDED", obj)
    return _line("DELETED", obj) if was else None


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _line(kind: str, obj: Obj) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def _bookmark(version: int, *, initial: bool = False) -> Obj:
    meta: Obj = {"resourceVersion": str(version)}
    if initial:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"metadata": meta}


def _status(code: int, reason: str, message: str) -> Obj:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


def _answer(obj: Obj) -> web.Response:
    code = obj.get("code", 200) if obj.get("kind") == "Status" else 200
    return web.Response(status=code, body=orjson.dumps(obj), content_type="application/json")


def _drop(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
