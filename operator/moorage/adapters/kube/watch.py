"""List and watch of one collection, as client-go's reflector does it, for ever.

It must never stop silently: it tries again after everything that the API server and the network can
do, and only a bug of the receiver ends ``run``, with that bug's exception.  A new list is applied as a
difference (``known_objects.py``), so that deletes missed meanwhile are noticed and nothing is told twice.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

import aiohttp

from moorage.adapters.kube.backoff import Backoff
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import (
    ApiError,
    BadAnswer,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    TooManyRequests,
    Unauthorized,
)
from moorage.adapters.kube.known_objects import KnownObjects
from moorage.adapters.kube.watch_lines import LineReader, Obj, parse_event

T = TypeVar("T")

_END_OF_INITIAL = "k8s.io/initial-events-end"
#: A stream that lasted this long worked, even if nothing happened on it.
_WORKING_SECONDS = 1.0
#: So many refusals to go on from our version, and it is taken for useless.
_PATIENCE = 3
#: So many watches that ended within their initial events, and the list is got as a list.
_UNFINISHED = 2


class Trouble(StrEnum):
    """Why there is no stream now."""

    NONE = "none"
    UNREACHABLE = "unreachable"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    REFUSED = "refused"  # any other answer that is an error


@dataclass(frozen=True, slots=True)
class Target:
    """What to watch: the path of a collection, and selectors as the API takes them."""

    path: str
    field_selector: str = ""
    label_selector: str = ""

    def params(self) -> dict[str, str | int | bool]:
        """The selectors as query parameters."""
        pairs = (("fieldSelector", self.field_selector), ("labelSelector", self.label_selector))
        return {name: value for name, value in pairs if value}


@dataclass(frozen=True, slots=True)
class Pace:
    """The times of a reflector, in seconds; the defaults suit every cluster, tests are in a hurry.

    Bookmarks come about once a minute, so a stream without a byte for ``silence`` is dead, or so quiet
    that a new one costs nothing.
    """

    silence: float = 75.0
    server_timeout: float = 300.0  # at least; up to twice as long, so that streams do not end together
    first_delay: float = 0.25
    longest_delay: float = 30.0
    slice: float = 0.015  # objects are applied so long, twice that at most, before the loop gets a turn
    page: int = 500
    few: int = 0  # a collection of no more objects is listed anew at `refresh`, which is soon done


class Reflector(Generic[T]):
    """Keeps a receiver told of one collection; see the module."""

    def __init__(
        self,
        client: KubeClient,
        target: Target,
        *,
        apply: Callable[[Obj], T],
        delete: Callable[[T], None],
        on_synced: Callable[[], None] = lambda: None,
        on_malformed: Callable[[str, Exception], None] = lambda _key, _error: None,
        on_trouble: Callable[[Trouble, KubeError | None], None] = lambda _trouble, _error: None,
        pace: Pace | None = None,
        watch_list: bool = True,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        """``apply`` is told of every object that is new or changed, and returns the token for ``delete``.

        An exception in ``apply`` concerns that object only: it goes to ``on_malformed`` with the object's
        key, and until the object changes again, what was last applied stays.  ``on_synced`` is called once,
        after the first complete list; ``on_trouble`` once per change of ``trouble``.
        """
        self._client = client
        self._target = target
        self._known = KnownObjects(apply, delete, on_malformed)
        self._on_synced = on_synced
        self._on_trouble = on_trouble
        self._pace = pace or Pace()
        self._watch_list = watch_list
        self._clock = clock
        self._rng = rng or random.Random()
        self._backoff = Backoff(self._pace.first_delay, self._pace.longest_delay, self._rng)
        self._version = ""  # go on from here; "": list first
        self._seen: set[str] | None = None  # keys of the list that is coming in, if one is
        self._unfinished = 0  # lists begun as a watch, since one was complete
        self._failures = 0  # since something worked
        self._response: aiohttp.ClientResponse | None = None
        self._goal = 0  # the version `refresh` waits for
        self._reached = asyncio.Event()
        self._interrupted = False  # the present stream is ended by us
        self._asked, self._begun, self._told = (
            0,
            0,
            0,
        )  # `tell_again`: calls; those before the last list, while it
        self._retold = asyncio.Event()  # comes in and when it is complete
        self.synced = False
        self.trouble = Trouble.NONE
        self.last_activity = clock()  # when anything was last heard from the server
        self.lists = 0  # complete lists so far
        self.streams = 0  # streams opened so far

    def __len__(self) -> int:
        return len(self._known)

    @property
    def age(self) -> float:
        """Seconds since anything was heard: a byte of the stream, a page of the list."""
        return self._clock() - self.last_activity

    @property
    def healthy(self) -> bool:
        """Whether the receiver's state can be relied on: complete once, and heard of since."""
        return self.synced and self.age < 2 * self._pace.silence

    @property
    def resource_version(self) -> str:
        """The version of the collection that the receiver's state has reached; "" while a list is due."""
        return self._version

    async def run(self) -> None:
        """List and watch until cancelled."""
        self.last_activity = self._clock()
        while True:
            if self._asked > self._told:
                self._version = ""
            try:
                if self._version or (self._watch_list and self._unfinished < _UNFINISHED):
                    delay = 0.0 if await self._follow() else self._backoff.delay()
                else:
                    await self._list()
                    delay = 0.0
            except KubeError as error:
                delay = self._failed(error)
            if delay:
                await asyncio.sleep(delay)

    async def refresh(self, patience: float = 5.0) -> None:
        """Return when the receiver's state is at least as new as this call.

        For a new leader, whose stream may lag behind what the old one has bound.  The collection's version
        is asked for.  A small one is then listed anew.  Of a large one the stream is begun anew where it stands
        with a short time-out, which makes the server send a bookmark within about a second; if that is not
        enough after ``patience`` seconds, all is listed again.  Raises ``KubeError`` if the version cannot be read.
        """
        answer = await self._client.get(self._target.path, params=self._target.params() | {"limit": 1})
        goal = _number(answer["metadata"]["resourceVersion"])
        if self.synced and goal <= _number(self._version):
            return
        self._goal = max(self._goal, goal)
        self._reached.clear()
        if self.synced:
            if len(self) <= self._pace.few:
                self._version = ""
            self._interrupt()
        try:
            async with asyncio.timeout(patience):
                await self._reached.wait()
        except TimeoutError:
            if self.synced:
                self._version = ""
                self._interrupt()
            await self._reached.wait()

    async def tell_again(self) -> None:
        """Return when the receiver was told of every object anew, changed or not.

        The list that does it begins after this call, so what ``apply`` does from now on holds for all.
        """
        self._asked += 1
        mine = self._asked
        self._known.distrust()
        self._interrupt()
        while self._told < mine:
            self._retold.clear()
            await self._retold.wait()

    # --- Listing ---

    async def _list(self) -> None:
        """All pages of a list; a continue token that is too old starts it again (``Gone``)."""
        params = self._target.params() | {"limit": self._pace.page}
        self._seen = set()
        self._begun = self._asked
        while True:
            page = await self._client.get(self._target.path, params=params, timeout=60.0)
            self.last_activity = self._clock()
            try:
                items, version = page["items"] or [], str(page["metadata"]["resourceVersion"])
                more = page["metadata"].get("continue")
            except (KeyError, TypeError, AttributeError) as error:
                raise BadAnswer(f"{self._target.path}: the answer is no list") from error
            await asyncio.sleep(0)  # parsing a page is long enough for one turn
            await self._sliced(self._observe, items)
            if not more:
                break
            params["continue"] = more
        await self._complete(version)

    async def _complete(self, version: str) -> None:
        """A whole list was applied: what was not in it is gone."""
        missing = self._known.missing(self._seen or set())
        self._seen = None
        await self._sliced(self._known.forget, missing)
        self._unfinished = 0
        self.lists += 1
        self._working()
        if not self.synced:
            self.synced = True
            self._on_synced()
        self._advance(version)
        self._told = self._begun
        self._retold.set()
        if self._asked > self._told:  # asked again while this list came in
            self._interrupt()

    # --- Watching ---

    async def _follow(self) -> bool:
        """One watch request until its end; with no version to go on from, its beginning is a list.

        True if the stream worked: something came, or it lasted.
        """
        params = self._target.params() | {"watch": True, "allowWatchBookmarks": True}
        params["timeoutSeconds"] = round(self._pace.server_timeout * self._rng.uniform(1.0, 2.0))
        if self._version:
            params["resourceVersion"] = self._version
            if self._goal > _number(self._version):
                params["timeoutSeconds"] = 3  # a bookmark comes two seconds before the end
        else:
            params["sendInitialEvents"] = True
            params["resourceVersionMatch"] = "NotOlderThan"
        started, silence, quiet = self._clock(), self._pace.silence, True
        async with self._client.stream(
            self._target.path, params=params, silence=silence, connect_timeout=min(10.0, silence)
        ) as response:
            with self._opened(response):
                reader = LineReader(response.content)
                while (lines := await reader.batch()) is not None:
                    self.last_activity = self._clock()
                    if lines:
                        quiet = False
                        await self._take(lines)
        return not quiet or self._clock() - started >= _WORKING_SECONDS

    @contextmanager
    def _opened(self, response: aiohttp.ClientResponse) -> Iterator[None]:
        self.last_activity = self._clock()
        self.streams += 1
        self._interrupted = False
        self._response = response
        self._seen = None if self._version else set()
        self._unfinished += not self._version
        if not self._version:
            self._begun = self._asked
        elif self._asked > self._told:  # asked while the stream was being opened
            self._interrupt()
        timer = asyncio.get_running_loop().call_later(_WORKING_SECONDS, self._working)
        try:
            yield
        finally:
            timer.cancel()
            self._response = None

    async def _take(self, lines: list[bytes]) -> None:
        """Apply events, and remember where they have taken us.

        Twice a slice is the most: what arrived in the last turn may be read on without a wait, but no more.
        """
        end = time.perf_counter() + self._pace.slice
        for line in lines:
            kind, obj = parse_event(line)
            version = obj["metadata"].get("resourceVersion")
            if kind == "BOOKMARK":
                annotations = obj["metadata"].get("annotations") or {}
                if self._seen is not None and version and annotations.get(_END_OF_INITIAL) == "true":
                    await self._complete(version)
            elif kind == "DELETED":
                self._known.vanish(obj)
            else:
                self._observe(obj)
            if self._seen is None and version:
                self._advance(version)
            if time.perf_counter() > end:
                await asyncio.sleep(0)
                end = time.perf_counter() + self._pace.slice
        if self._failures:
            self._working()

    def _observe(self, obj: Obj) -> None:
        key = self._known.observe(obj)
        if self._seen is not None and key is not None:
            self._seen.add(key)

    async def _sliced(self, function: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Call it for each item, and give the loop a turn now and then."""
        end = time.perf_counter() + self._pace.slice
        for item in items:
            function(item)
            if time.perf_counter() > end:
                await asyncio.sleep(0)
                end = time.perf_counter() + self._pace.slice

    def _advance(self, version: str) -> None:
        self._version = version
        if self._goal and _number(version) >= self._goal:
            self._goal = 0
            self._reached.set()

    def _interrupt(self) -> None:
        """End the present stream, if there is one; what it was about to bring comes again."""
        if self._response is not None:
            self._interrupted = True
            self._response.close()

    # --- Trouble ---

    def _working(self) -> None:
        self._failures = 0
        self._backoff.reset()
        self._report(Trouble.NONE, None)

    def _failed(self, error: KubeError) -> float:
        """What the failure means for the next attempt; the seconds to wait before it."""
        self._seen = None
        if self._interrupted:
            self._interrupted = False
            return 0.0
        self._failures += 1
        if isinstance(error, Gone):
            # The usual answer to a version that is too old; a list that meets it again and again must wait.
            self._version = ""
            return 0.0 if self._failures == 1 else self._backoff.delay()
        if isinstance(error, Invalid) and not self._version and self._watch_list:
            self._watch_list = False  # a server that does not serve it says so; lists do the same
            return 0.0
        trouble, patience = _diagnose(error)
        if self._failures >= patience:
            self._report(trouble, error)
            if trouble is Trouble.REFUSED:
                self._version = ""
        delay = self._backoff.delay()
        return max(delay, error.retry_after) if isinstance(error, ApiError) else delay

    def _report(self, trouble: Trouble, error: KubeError | None) -> None:
        if trouble is not self.trouble:
            self.trouble = trouble
            self._on_trouble(trouble, error)


def _diagnose(error: KubeError) -> tuple[Trouble, int]:
    """The kind of trouble, and how many failures in a row make it one."""
    if isinstance(error, Forbidden):
        return Trouble.FORBIDDEN, 1
    if isinstance(error, Unauthorized):
        return Trouble.UNAUTHORIZED, 1
    if isinstance(error, ApiError | BadAnswer) and not isinstance(error, TooManyRequests):
        return Trouble.REFUSED, _PATIENCE
    return Trouble.UNREACHABLE, 2  # a single broken or silent stream is everyday life


def _number(version: str) -> int:
    """Resource versions are compared only to wait for one; what is no number is reached at once."""
    return int(version) if version.isdigit() else 0
