"""Where the API server is and who we are there.

Reading kubeconfigs (merged files, exec plugins, OIDC) and the in-cluster account is left to
kubernetes_asyncio; what it lacks is here: token files and exec plugins are read again before and
after a token expires, client certificates can change, and failures name what was tried.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import ssl
import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config
from yarl import URL

from moorage.adapters.kube.errors import NoCredentials

logger = logging.getLogger(__name__)

ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: How often a token file is read again; tokens are renewed long before they expire.
REREAD_SECONDS = 60.0
#: A token with a known end is renewed this long before it.
EXPIRY_MARGIN = 60.0
#: Renewals that a 401 asks for are at least this far apart: an exec plugin may be slow or ask the user.
RENEW_INTERVAL = 5.0

# Beside its own exception, kubernetes_asyncio lets these through for a malformed file.
_UNREADABLE = (
    ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, AssertionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Access:
    """All that one reading of the credentials gave; a new reading makes a new value."""

    server: str
    authorization: str | None = None  # the header's value, "Bearer …" or "Basic …"
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    proxy_authorization: str | None = None
    digests: tuple[bytes, ...] = ()  # of the files: a mounted volume touches them all when one changes
    expires_in: float | None = None  # seconds; None: unknown

    def tls_identity(self) -> tuple[Any, ...]:
        """What needs new connections when it changes; a token does not."""
        files = (self.ca_file, self.certificate_file, self.key_file, self.digests)
        return (*files, self.server, self.verify, self.tls_server_name, self.proxy, self.proxy_authorization)

    def ssl_context(self) -> ssl.SSLContext:
        """A new context with our certificates; reads files."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class Credentials:
    """The present ``access``, and how to renew it."""

    def __init__(
        self,
        access: Access,
        *,
        source: str = "given",
        reload: Callable[[], Awaitable[Access]] | None = None,
        reread: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.access = access
        self.source = source
        self.generation = 0  # counts changes of the TLS identity
        self._reload = reload
        self._reread = reread
        self._clock = clock
        self._lock = asyncio.Lock()
        self._due_at = self._next_due()
        self._renew_after = -1.0  # by the clock: no forced renewal before

    @classmethod
    async def load(cls, kubeconfig: str | None = None, context: str | None = None) -> Credentials:
        """From the file given, else $KUBECONFIG, else ~/.kube/config, else the in-cluster account.

        Raises ``NoCredentials`` with everything that was tried and why it did not do.
        """
        env = os.environ.get("KUBECONFIG", "")
        default = Path.home() / ".kube" / "config"
        if kubeconfig:
            return await _from_file(kubeconfig, context, f"kubeconfig {kubeconfig}")
        if env:
            return await _from_file(env, context, f"$KUBECONFIG ({env})")
        if default.exists():
            return await _from_file(str(default), context, f"kubeconfig {default}")
        try:
            access = await _read_account()
        except _UNREADABLE as error:
            raise NoCredentials(
                f"no cluster to talk to: no --kubeconfig was given, $KUBECONFIG is not set, {default} does "
                f"not exist, and there is no in-cluster account ({str(error).rstrip('.')})"
            ) from error
        return cls(access, source="in-cluster account", reload=_read_account, reread=True)

    def due(self) -> bool:
        """Whether ``refresh`` should run before the next request.  Cheap."""
        return self._clock() >= self._due_at

    async def refresh(self) -> None:
        """Read the credentials again because it is time; failures keep what we have."""
        async with self._lock:
            if self.due():
                await self._read()

    async def renew(self, refused: str | None) -> bool:
        """Read them again because the server refused ``refused``; True: there is something new to try."""
        generation = self.generation
        async with self._lock:
            if self.access.authorization != refused or self.generation != generation:
                return True  # someone else was here while we waited
            now = self._clock()
            if now < self._renew_after:
                return False
            self._renew_after = now + RENEW_INTERVAL
            await self._read()
            return self.access.authorization != refused or self.generation != generation

    async def _read(self) -> None:
        if self._reload is not None:
            try:
                access = await self._reload()
            except _UNREADABLE as error:
                logger.warning("Credentials from %s cannot be renewed: %s", self.source, error)
            else:
                if access.tls_identity() != self.access.tls_identity():
                    self.generation += 1
                self.access = access
        self._due_at = self._next_due()

    def _next_due(self) -> float:
        if self._reload is None:
            return float("inf")
        now = self._clock()
        if self.access.expires_in is not None:
            return now + max(RENEW_INTERVAL, self.access.expires_in - EXPIRY_MARGIN)
        return now + REREAD_SECONDS if self._reread else float("inf")


def own_namespace() -> str | None:
    """The namespace of the pod we run in, None outside of a cluster."""
    try:
        return (ACCOUNT_FOLDER / "namespace").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


async def _from_file(paths: str, context: str | None, source: str) -> Credentials:
    """Credentials from one kubeconfig, or several joined by the path separator."""

    async def read() -> Access:
        return await _read_file(paths, context)

    try:
        texts = _texts(paths)
        if not texts:
            raise NoCredentials(f"{source}: no such file")
        access = await read()
    except _UNREADABLE as error:
        raise NoCredentials(f"{source} cannot be used: {str(error) or type(error).__name__}") from error
    # Files that a kubeconfig points to are renewed behind our back; data inside it is not (and if it
    # is after all, the 401 makes us look).
    reread = any("tokenFile" in text or "client-certificate:" in text for text in texts)
    return Credentials(access, source=source, reload=read, reread=reread)


def _texts(paths: str) -> list[str]:
    """The kubeconfigs that exist; a list of paths may name some that do not."""
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    return [file.read_text(encoding="utf-8") for file in files if file.exists()]


async def _read_file(paths: str, context: str | None) -> Access:
    configuration = Configuration()
    loader = await load_kube_config(paths, context=context, client_configuration=configuration)
    expiry = getattr(loader, "exec_plugin_expiry", None)
    return _access(configuration, None if expiry is None else expiry.timestamp() - time.time())


async def _read_account() -> Access:
    configuration = Configuration()
    load_incluster_config(  # type: ignore[no-untyped-call]
        client_configuration=configuration,
        try_refresh_token=False,
        token_filename=str(ACCOUNT_FOLDER / "token"),
        cert_filename=str(ACCOUNT_FOLDER / "ca.crt"),
    )
    return _access(configuration, None)


def _access(configuration: Configuration, expires_in: float | None) -> Access:
    server = str(configuration.host).rstrip("/")
    token = configuration.api_key.get("BearerToken")
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    proxy, proxy_authorization = _proxy(server, configuration.proxy)
    return Access(
        server=server,
        authorization=token.strip() if token else None,  # a token file may end in a newline
        ca_file=files[0],
        certificate_file=files[1],
        key_file=files[2],
        verify=bool(configuration.verify_ssl),
        tls_server_name=configuration.tls_server_name,
        proxy=proxy,
        proxy_authorization=proxy_authorization,
        digests=tuple(hashlib.sha256(Path(name).read_bytes()).digest() for name in files if name),
        expires_in=expires_in,
    )


def _proxy(server: str, configured: str | None) -> tuple[str | None, str | None]:
    """The proxy's URL without its password, and the header that carries the password instead.

    The environment counts as it does for kubernetes_asyncio, but is read once, not at every request.
    """
    url = URL(server)
    proxy = configured
    if proxy is None and url.host is not None and not urllib.request.proxy_bypass(url.host):
        proxy = urllib.request.getproxies().get(url.scheme)
    if not proxy:
        return None, None
    parsed = URL(proxy)
    if parsed.user is None:
        return proxy, None
    secret = f"{parsed.user}:{parsed.password or ''}".encode()
    return str(parsed.with_user(None)), "Basic " + base64.b64encode(secret).decode()
