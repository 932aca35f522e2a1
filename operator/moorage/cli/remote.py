"""Asks a running scheduler about a pod, with the bearer token of the kubeconfig."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from moorage.adapters.kube.credentials import Credentials
from moorage.adapters.kube.errors import KubeError
from moorage.runtime.settings import Listen

_TIMEOUT = aiohttp.ClientTimeout(total=60)


class RemoteError(Exception):
    """There is no answer; the text says why."""


def ask(
    server: str,
    ca: str | None,
    kubeconfig: str | None,
    context: str | None,
    pod: tuple[str, str],
    *,
    search: bool = True,
) -> dict[str, Any]:
    """The record of a pod (namespace, name).  Raises ``RemoteError``."""
    try:
        url = urlsplit(server)
        safe = url.scheme == "https" or (url.scheme == "http" and Listen(url.hostname or "", 0).loopback)
    except ValueError:
        safe = False
    if not safe:
        raise RemoteError(f"--server: {server}: a token is only sent to https, or to this machine")
    try:
        return asyncio.run(_ask(server, ca, kubeconfig, context, pod, search))
    except KubeError as error:
        raise RemoteError(f"the kubeconfig cannot be used: {error}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: no URL, no certificate, no JSON
        raise RemoteError(f"--server: {server}: {str(error) or type(error).__name__}") from error


async def _ask(
    server: str,
    ca: str | None,
    kubeconfig: str | None,
    context: str | None,
    pod: tuple[str, str],
    search: bool,
) -> dict[str, Any]:
    credentials = await Credentials.load(kubeconfig, context)
    authorization = credentials.access.authorization
    if not authorization:
        raise RemoteError("the kubeconfig has no token, which --server needs")
    tls: ssl.SSLContext | bool = True if ca is None else ssl.create_default_context(cafile=ca)
    url = f"{server.rstrip('/')}/explain/{pod[0]}/{pod[1]}"
    params = {} if search else {"search": "false"}
    headers = {"Authorization": authorization}
    async with (
        aiohttp.ClientSession(timeout=_TIMEOUT) as session,
        session.get(url, params=params, headers=headers, ssl=tls, allow_redirects=False) as response,
    ):
        answer = orjson.loads(await response.read())
    if response.status != 200 or not isinstance(answer, dict):
        said = answer.get("error") if isinstance(answer, dict) else None
        raise RemoteError(f"{server} answers {response.status}: {said or 'no reason is given'}")
    return answer
