"""What Kopf loads: ``kopf run -A -m moorage.handlers``.

Kopf owns the process; these handlers start and stop the scheduler (``app.py``), and pass on policies and the pods
that wait for a node.  Thin on purpose: settings come from ``MOORAGE_*`` variables, or from ``moorage run`` by the
memo.  So do plugins that users wrote: Kopf imports their files itself, and ``moorage run`` hands over what it has
loaded.  (Never run this file by its path: Kopf would put the package's folder in front of the standard library.)
"""

from __future__ import annotations

import logging
import os
import signal
from typing import Any

import kopf

from moorage.adapters.kube.kopf_session import open_kopf_session
from moorage.adapters.kube.kopf_settings import configure_kopf
from moorage.adapters.kube.policy_kinds import CLUSTER_SCHEDULING_POLICY, GROUP, SCHEDULING_POLICY, VERSION
from moorage.adapters.telemetry.logs import quiet_kopf
from moorage.app import App
from moorage.assembly.plugins import announce
from moorage.assembly.startup import StartupError, tune_collector
from moorage.plugins.loading import PluginLoadError, load_declared
from moorage.runtime.settings import Settings, SettingsError

logger = logging.getLogger(__name__)


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def start(memo: kopf.Memo, settings: kopf.OperatorSettings, **_: Any) -> None:
    """Connect, check permissions, and start scheduling in the background."""
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        quiet_kopf()
    tune_collector()
    try:
        ours = memo.get("settings") or Settings.from_env(os.environ)
        additions = memo["additions"] if "additions" in memo else load_declared()
        announce(additions)
        app = await App.create(ours, additions=additions, on_failure=lambda failure: _broken(memo, failure))
    except (SettingsError, PluginLoadError, StartupError) as error:
        memo.failure = error
        raise kopf.PermanentError(str(error)) from error
    configure_kopf(settings, app.pending_selector, ours.watch_silence)
    memo.app = app
    try:
        await app.start()
    except BaseException as error:
        await app.stop()
        if isinstance(error, StartupError):
            memo.failure = error
            raise kopf.PermanentError(str(error)) from error
        raise


@kopf.on.cleanup(errors=kopf.ErrorsMode.PERMANENT)
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """End the binds under way and release the lease; with an error if the scheduler has broken down."""
    app: App | None = memo.get("app")
    if app is None:
        return
    await app.stop()
    if app.failure is not None:
        raise kopf.PermanentError(f"the scheduler has failed: {app.failure!r}") from app.failure


@kopf.on.login()
async def login(memo: kopf.Memo, **_: Any) -> kopf.AiohttpSession | None:
    """Let Kopf in by the scheduler's own credentials."""
    app: App | None = memo.get("app")
    return await open_kopf_session(app.credentials) if app is not None else None


@kopf.on.probe(id="scheduler")
async def alive(memo: kopf.Memo, **_: Any) -> str:
    """Whether the scheduler works; a probe that fails makes Kopf's endpoint answer with an error."""
    trouble = memo.app.trouble()
    if trouble is not None:
        raise kopf.PermanentError(trouble)
    return "ok"


@kopf.on.event("", "v1", "pods", id="pod")
async def pod_event(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """A pod that waits for a node is new, has changed, or waits no longer."""
    memo.app.pod_event(event["type"], event["object"])


@kopf.on.event(GROUP, VERSION, SCHEDULING_POLICY.plural, id="policy")
async def policy_event(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """A policy of a namespace is new, has changed, or is gone."""
    memo.app.policies.event(event["type"], event["object"])


@kopf.on.event(GROUP, VERSION, CLUSTER_SCHEDULING_POLICY.plural, id="cluster-policy")
async def cluster_policy_event(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """A policy of the cluster is new, has changed, or is gone."""
    memo.app.policies.event(event["type"], event["object"])


def _broken(memo: kopf.Memo, failure: BaseException) -> None:
    """A part of the scheduler has died: let Kopf stop as if it were told to; ``stop`` then makes it an error."""
    logger.critical("The scheduler has failed and stops: %r", failure, exc_info=failure)
    memo.failure = failure
    os.kill(os.getpid(), signal.SIGTERM)  # the one way that Kopf's own command offers
