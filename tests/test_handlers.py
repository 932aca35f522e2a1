"""The handlers that Kopf calls, with an app on a fake API server; Kopf itself runs in the integration tests."""

import asyncio
import os
from typing import Any

import kopf
import pytest
import yaml

import moorage
from moorage import handlers
from moorage.core.model.events import PodLeftPending, PodPending
from moorage.core.model.policy import PolicyRef
from moorage.plugins.declare import collecting
from moorage.plugins.loading import PluginLoadError, additions
from moorage.runtime.settings import Settings
from tests.kit.fake_api import FakeApi
from tests.kit.raw_policies import make_policy

# Kopf declares them with all the arguments that it passes; they take what they need.
start: Any = handlers.start
stop: Any = handlers.stop
login: Any = handlers.login
alive: Any = handlers.alive
pod_event: Any = handlers.pod_event
policy_event: Any = handlers.policy_event
cluster_policy_event: Any = handlers.cluster_policy_event


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


@pytest.fixture
def kubeconfig(api, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": api.url}}],
                "users": [{"name": "u", "user": {"token": "secret"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return str(path)


@pytest.fixture(autouse=True)
def _untuned(monkeypatch):
    monkeypatch.setattr(handlers, "tune_collector", lambda: None)
    monkeypatch.setattr(handlers, "quiet_kopf", lambda: None)


def memo_for(kubeconfig, **options):
    return kopf.Memo(settings=Settings(kubeconfig=kubeconfig, metrics_listen=None, **options))


@pytest.fixture
async def memo(kubeconfig):
    memo = memo_for(kubeconfig)
    await start(memo=memo, settings=kopf.OperatorSettings())
    yield memo
    if not memo.app.failure:
        await stop(memo=memo)


def raw_pod(name="p", scheduler="moorage", **spec):
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"schedulerName": scheduler, "containers": [{"name": "c"}], **spec}}


async def test_it_starts_and_stops(api, memo):
    async with asyncio.timeout(5):
        while not memo.app.state.synced:
            await asyncio.sleep(0.01)
    assert memo.app.unready() is None
    assert await alive(memo=memo) == "ok"
    await stop(memo=memo)
    lease = api.get("/apis/coordination.k8s.io/v1/leases", "moorage", "kube-system")
    assert not lease["spec"]["holderIdentity"]
    await stop(memo=memo)  # Kopf may be impatient


async def test_kopf_gets_the_same_credentials(api, memo):
    info = await login(memo=memo)
    async with info.aiohttp_session as session:
        assert (info.server, session.headers["Authorization"]) == (api.url, "Bearer secret")


async def test_kopf_is_not_let_in_by_nobody():
    assert await login(memo=kopf.Memo()) is None


async def test_pods_are_passed_on(memo, monkeypatch):
    submitted: list[object] = []
    monkeypatch.setattr(memo.app.loop, "submit", submitted.append)
    for kind in (None, "ADDED", "MODIFIED"):
        result = await pod_event(event={"type": kind, "object": raw_pod()}, memo=memo)
        assert result is None, "Kopf would write a result into the pod"
    await pod_event(event={"type": "DELETED", "object": raw_pod(nodeName="n")}, memo=memo)
    assert [type(event) for event in submitted] == [PodPending] * 3 + [PodLeftPending]


async def test_pods_of_other_schedulers_are_not_taken(memo, monkeypatch):
    submitted: list[object] = []
    monkeypatch.setattr(memo.app.loop, "submit", submitted.append)
    for kind in ("ADDED", "DELETED"):
        await pod_event(event={"type": kind, "object": raw_pod(scheduler="other")}, memo=memo)
    assert submitted == []


@pytest.mark.parametrize(
    "obj", [{}, {"metadata": {}, "spec": {"schedulerName": "moorage"}}, {"spec": None}, {"metadata": None}]
)
@pytest.mark.parametrize("kind", ["ADDED", "DELETED"])
async def test_nonsense_is_no_error(memo, obj, kind):
    await pod_event(event={"type": kind, "object": obj}, memo=memo)


async def test_a_missing_permission_is_named_and_ends_the_start(api, kubeconfig):
    api.denied.add(("create", "pods/binding"))
    memo = memo_for(kubeconfig)
    with pytest.raises(kopf.PermanentError, match="create pods/binding"):
        await start(memo=memo, settings=kopf.OperatorSettings())
    assert "create pods/binding" in str(memo.failure)
    await stop(memo=memo)


async def test_a_setting_that_cannot_be_used_is_named(monkeypatch):
    monkeypatch.setenv("MOORAGE_MAX_BINDS", "many")
    with pytest.raises(kopf.PermanentError, match="MOORAGE_MAX_BINDS"):
        await start(memo=kopf.Memo(), settings=kopf.OperatorSettings())


async def test_plugins_that_cannot_be_used_end_the_start(kubeconfig, monkeypatch):
    def broken():
        raise PluginLoadError(["rules.py:3: a name is taken"])

    monkeypatch.setattr(handlers, "load_declared", broken)
    memo = memo_for(kubeconfig)
    with pytest.raises(kopf.PermanentError, match="a name is taken"):
        await start(memo=memo, settings=kopf.OperatorSettings())
    assert isinstance(memo.failure, PluginLoadError)


async def test_plugins_that_were_loaded_already_are_used(api, kubeconfig):
    with collecting() as declared:
        moorage.filter(name="closed")(lambda pod, nodes: False)
    memo = memo_for(kubeconfig)
    memo.additions = additions(declared)
    await start(memo=memo, settings=kopf.OperatorSettings())
    assert "closed" in [plugin.name for plugin in memo.app.engine.runners["moorage"].plugins]
    await stop(memo=memo)


async def test_a_part_that_dies_ends_the_process_with_an_error(memo, monkeypatch):
    kills: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *args: kills.append(args))

    def fail(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(memo.app.engine, "handle", fail)
    await pod_event(event={"type": "ADDED", "object": raw_pod()}, memo=memo)
    async with asyncio.timeout(5):
        while not kills:
            await asyncio.sleep(0.01)
    with pytest.raises(kopf.PermanentError, match="a bug"):
        await alive(memo=memo)
    with pytest.raises(kopf.PermanentError, match="a bug"):
        await stop(memo=memo)


async def test_a_lost_lease_ends_the_process(api, kubeconfig, monkeypatch):
    monkeypatch.setattr(os, "kill", lambda *_: None)
    memo = memo_for(kubeconfig, lease_duration=1.0, renew_deadline=0.6, retry_period=0.05)
    await start(memo=memo, settings=kopf.OperatorSettings())
    async with asyncio.timeout(5):
        while not memo.app.loop.idle_for() or not memo.app._leadership.allowed:
            await asyncio.sleep(0.01)
        leases = "/apis/coordination.k8s.io/v1/leases"
        lease = api.get(leases, "moorage", "kube-system")
        api.put(leases, {**lease, "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15}})
        while memo.app.failure is None:
            await asyncio.sleep(0.01)
    with pytest.raises(kopf.PermanentError, match="lease is lost"):
        await stop(memo=memo)


async def test_an_address_that_is_taken_ends_the_start_when_it_was_asked_for(kubeconfig, memo):
    from moorage.runtime.settings import Listen

    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    other = kopf.Memo(settings=Settings(kubeconfig=kubeconfig, metrics_listen=Listen("127.0.0.1", port)))
    with pytest.raises(kopf.PermanentError, match="cannot be listened at"):
        await start(memo=other, settings=kopf.OperatorSettings())
    server.close()
    await server.wait_closed()


# -- policies --------------------------------------------------------------------------------------


def raw_policy(name="p", generation=1, **spec):
    meta = {"name": name, "uid": name, "resourceVersion": str(generation), "generation": generation}
    return make_policy(name, **spec) | {"metadata": meta}


async def in_force(memo, *names: str) -> None:
    async with asyncio.timeout(30):
        while sorted(report.ref.name for report in memo.app.engine.policy_reports()) != sorted(names):
            await asyncio.sleep(0.01)


async def test_policies_are_passed_on(memo):
    cluster = raw_policy("b")
    for event in ("ADDED", "MODIFIED"):
        result = await cluster_policy_event(event={"type": event, "object": cluster}, memo=memo)
        assert result is None, "Kopf would write a result into the policy"
    ours = raw_policy("a") | {"kind": "SchedulingPolicy"}
    ours["metadata"]["namespace"] = "n"
    assert await policy_event(event={"type": None, "object": ours}, memo=memo) is None
    await in_force(memo, "a", "b")
    assert {report.ref for report in memo.app.engine.policy_reports()} == {
        PolicyRef("n", "a"),
        PolicyRef("", "b"),
    }
    await cluster_policy_event(event={"type": "DELETED", "object": cluster}, memo=memo)
    await in_force(memo, "a")


async def test_a_policy_that_makes_no_sense_is_no_error(memo):
    for obj in ({}, {"metadata": None}, raw_policy("bad", mode="Sometimes")):
        await cluster_policy_event(event={"type": "ADDED", "object": obj}, memo=memo)
    await cluster_policy_event(event={"type": "ADDED", "object": raw_policy("good")}, memo=memo)
    await in_force(memo, "good")


async def test_policies_are_known_when_it_starts(api, kubeconfig):
    api.put("/apis/moorage.dev/v1alpha1/clusterschedulingpolicies", raw_policy())
    memo = memo_for(kubeconfig)
    await start(memo=memo, settings=kopf.OperatorSettings())
    try:
        await in_force(memo, "p")
    finally:
        await stop(memo=memo)


async def test_a_new_expression_has_all_pods_read_again(api, memo):
    selector = {"expression": "pod.spec.containers.size() == 1"}
    bound = raw_pod("bound", nodeName="n", containers=[{"name": "a"}])
    waits = raw_pod("waits", containers=[{"name": "a"}])
    api.put("/api/v1/nodes", {"metadata": {"name": "n"}})
    for pod in (bound, waits):
        api.put("/api/v1/pods", pod)
    await pod_event(event={"type": None, "object": waits}, memo=memo)
    async with asyncio.timeout(30):
        while not memo.app.state.synced:
            await asyncio.sleep(0.01)
    await cluster_policy_event(event={"type": "ADDED", "object": raw_policy(selector=selector)}, memo=memo)
    await in_force(memo, "p")
    async with asyncio.timeout(30):
        while True:
            (report,) = memo.app.engine.policy_reports()
            if report.matched == 2:
                break
            await asyncio.sleep(0.01)
