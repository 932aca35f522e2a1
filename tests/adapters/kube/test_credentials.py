"""Credentials: where they are looked for, what each source gives, and how they are renewed."""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.adapters.kube import credentials as module
from moorage.adapters.kube.credentials import Access, Credentials, own_namespace
from moorage.adapters.kube.errors import NoCredentials


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No kubeconfig, no account, no proxy: each test says what there is."""
    for name in [*os.environ]:
        if name.upper() in {"KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}:
            monkeypatch.delenv(name)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(module, "ACCOUNT_FOLDER", tmp_path / "account")


def kubeconfig(path: Path, server: str = "https://x:6443", user: Any = None, **cluster: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "o", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": server, **cluster}},
            {"name": "o", "cluster": {"server": "https://other:6443"}},
        ],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def account(folder: Path, monkeypatch, token: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_text("a certificate")
    (folder / "namespace").write_text("sea\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")


def read(path: str | None) -> str:
    return Path(str(path)).read_text()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# --- Where from ---


async def test_the_file_given_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "env", "https://env:1")))
    given = await Credentials.load(str(kubeconfig(tmp_path / "given", "https://given:1/")))
    assert given.access.server == "https://given:1"
    assert given.access.authorization == "Bearer t"
    assert "given" in given.source


async def test_then_the_environment_then_the_home_then_the_account(tmp_path, monkeypatch):
    account(tmp_path / "account", monkeypatch, "secret\n")
    found = await Credentials.load()
    assert found.access.server == "https://10.0.0.1:443"
    assert found.access.authorization == "Bearer secret"
    assert found.access.ca_file == str(tmp_path / "account" / "ca.crt")
    assert found.source == "in-cluster account"

    kubeconfig(tmp_path / "home" / ".kube" / "config", "https://home:1")
    assert (await Credentials.load()).access.server == "https://home:1"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "env", "https://env:1")))
    assert (await Credentials.load()).access.server == "https://env:1"


async def test_nothing_found_names_everything_that_was_tried(tmp_path):
    with pytest.raises(NoCredentials) as caught:
        await Credentials.load()
    text = str(caught.value)
    for part in ("--kubeconfig", "$KUBECONFIG", str(tmp_path / "home" / ".kube" / "config"), "in-cluster"):
        assert part in text


async def test_a_file_that_is_not_there_is_not_replaced_by_another_source(tmp_path, monkeypatch):
    account(tmp_path / "account", monkeypatch, "t")
    with pytest.raises(NoCredentials, match=r"missing.*no such file"):
        await Credentials.load(str(tmp_path / "missing"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    with pytest.raises(NoCredentials, match=r"\$KUBECONFIG .*gone.*no such file"):
        await Credentials.load()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "clusters: 5", "apiVersion: v1", "current-context: x\ncontexts: []\n", "\t"]
)
async def test_a_file_that_cannot_be_read_is_named(tmp_path, text):
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(NoCredentials, match="broken cannot be used"):
        await Credentials.load(str(path))


async def test_a_context_can_be_chosen(tmp_path):
    path = str(kubeconfig(tmp_path / "k"))
    assert (await Credentials.load(path, "other")).access.server == "https://other:6443"
    with pytest.raises(NoCredentials, match="nowhere"):
        await Credentials.load(path, "nowhere")


async def test_several_files_are_merged(tmp_path, monkeypatch):
    first = kubeconfig(tmp_path / "a")
    paths = os.pathsep.join([str(first), str(tmp_path / "missing")])
    monkeypatch.setenv("KUBECONFIG", paths)
    assert (await Credentials.load()).access.server == "https://x:6443"


# --- What ---


async def test_certificates_and_their_options_are_taken_over(tmp_path):
    data = base64.b64encode(b"a certificate").decode()
    user = {"client-certificate-data": data, "client-key-data": data}
    path = kubeconfig(
        tmp_path / "k", user=user, **{"certificate-authority-data": data, "tls-server-name": "kube.example"}
    )
    access = (await Credentials.load(str(path))).access
    files = {access.ca_file, access.certificate_file, access.key_file}
    assert {read(file) for file in files} == {"a certificate"}
    assert access.tls_server_name == "kube.example"
    assert access.verify
    unverified: dict[str, Any] = {"insecure-skip-tls-verify": True}
    insecure = kubeconfig(tmp_path / "i", **unverified)
    assert not (await Credentials.load(str(insecure))).access.verify


async def test_a_password_is_basic_authorization(tmp_path):
    path = kubeconfig(tmp_path / "k", user={"username": "me", "password": "pw"})
    secret = base64.b64encode(b"me:pw").decode()
    assert (await Credentials.load(str(path))).access.authorization == f"Basic {secret}"


async def test_no_user_at_all_is_fine(tmp_path):
    path = kubeconfig(tmp_path / "k", "http://127.0.0.1:1", user={})
    assert (await Credentials.load(str(path))).access.authorization is None


@pytest.mark.parametrize(
    ("configured", "environment", "expected"),
    [
        (None, {}, (None, None)),
        ("http://proxy:3128", {}, ("http://proxy:3128", None)),
        (None, {"https_proxy": "http://env:3128"}, ("http://env:3128", None)),
        ("http://proxy:1", {"https_proxy": "http://env:3128"}, ("http://proxy:1", None)),
        (None, {"https_proxy": "http://env:3128", "no_proxy": "x"}, (None, None)),
        (None, {"http_proxy": "http://env:3128"}, (None, None)),
        (
            None,
            {"https_proxy": "http://me:pw@env:3128"},
            ("http://env:3128", "Basic " + base64.b64encode(b"me:pw").decode()),
        ),
    ],
)
async def test_proxies(tmp_path, monkeypatch, configured, environment, expected):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    cluster = {"proxy-url": configured} if configured else {}
    access = (await Credentials.load(str(kubeconfig(tmp_path / "k", **cluster)))).access
    proxy, authorization = access.proxy, access.proxy_authorization
    assert (proxy and proxy.rstrip("/"), authorization) == expected


def test_our_own_namespace_is_the_pods(tmp_path, monkeypatch):
    assert own_namespace() is None
    account(tmp_path / "account", monkeypatch, "t")
    assert own_namespace() == "sea"


# --- Renewal ---


async def test_the_accounts_token_is_read_again_every_minute(tmp_path, monkeypatch):
    account(tmp_path / "account", monkeypatch, "one")
    found = await Credentials.load()
    found._clock = clock = Clock()
    found._due_at = found._next_due()
    account(tmp_path / "account", monkeypatch, "two")
    clock.now += 59
    assert not found.due()
    clock.now += 1
    assert found.due()
    await found.refresh()
    assert found.access.authorization == "Bearer two"
    assert not found.due()
    assert found.generation == 0  # a token needs no new connections


async def test_a_token_that_cannot_be_read_now_stays(tmp_path, monkeypatch, caplog):
    account(tmp_path / "account", monkeypatch, "one")
    found = await Credentials.load()
    (tmp_path / "account" / "token").write_text("")
    assert not await found.renew("Bearer one")
    assert found.access.authorization == "Bearer one"
    assert "cannot be renewed" in caplog.text


async def test_a_renewed_client_certificate_is_a_new_generation(tmp_path):
    for name in ("crt", "key"):
        (tmp_path / name).write_text("old")
    user = {"client-certificate": str(tmp_path / "crt"), "client-key": str(tmp_path / "key")}
    found = await Credentials.load(str(kubeconfig(tmp_path / "k", user=user)))
    assert found._next_due() < float("inf")  # files are looked at now and then
    (tmp_path / "crt").write_text("newer")
    assert await found.renew(None)
    assert found.generation == 1


async def test_a_plain_kubeconfig_is_read_again_only_when_refused(tmp_path):
    path = kubeconfig(tmp_path / "k")
    found = await Credentials.load(str(path))
    assert found._next_due() == float("inf")
    kubeconfig(path, user={"token": "new"})
    assert await found.renew("Bearer t")
    assert found.access.authorization == "Bearer new"


def plugin(folder: Path, expiry: str | None = None) -> dict[str, Any]:
    """An exec plugin whose token counts its runs."""
    script = folder / "plugin.py"
    script.write_text(
        "import json, pathlib\n"
        f"log = pathlib.Path({str(folder / 'runs')!r})\n"
        "log.open('a').write('x')\n"
        "status = {'token': f'run-{len(log.read_text())}'}\n"
        f"expiry = {expiry!r}\n"
        "if expiry: status['expirationTimestamp'] = expiry\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': status}))\n"
    )
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": ["-I", str(script)]}}


async def test_an_exec_plugin_runs_again_when_refused_and_not_too_often(tmp_path):
    path = kubeconfig(tmp_path / "k", user=plugin(tmp_path))
    found = await Credentials.load(str(path))
    assert found.access.authorization == "Bearer run-1"
    assert await found.renew("Bearer run-1")
    assert found.access.authorization == "Bearer run-2"
    assert not await found.renew("Bearer run-2")  # an instant later
    assert (tmp_path / "runs").read_text() == "xx"


async def test_an_exec_plugins_token_is_renewed_before_it_expires(tmp_path):
    expiry = "2999-01-01T00:00:00Z"
    found = await Credentials.load(str(kubeconfig(tmp_path / "k", user=plugin(tmp_path, expiry))))
    assert found.access.expires_in is not None
    assert found.access.expires_in > 10**9
    assert not found.due()

    async def read() -> Access:
        return Access("https://x", "Bearer two", expires_in=600.0)

    clock = Clock()
    soon = Credentials(Access("https://x", "Bearer one", expires_in=300.0), reload=read, clock=clock)
    clock.now += 239
    assert not soon.due()
    clock.now += 1
    assert soon.due()
    await soon.refresh()
    assert soon.access.authorization == "Bearer two"
    assert not soon.due()


async def test_a_token_that_has_expired_already_is_not_asked_for_all_the_time():
    async def read() -> Access:
        return Access("https://x", "Bearer old", expires_in=-100.0)

    clock = Clock()
    expired = Credentials(Access("https://x", "Bearer old", expires_in=-100.0), reload=read, clock=clock)
    assert not expired.due()
    clock.now += module.RENEW_INTERVAL
    assert expired.due()
    await expired.refresh()
    assert not expired.due()


async def test_a_failing_exec_plugin_is_named(tmp_path):
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable}}
    user["exec"] |= {"args": ["-c", "import sys; sys.exit('no luck')"]}  # type: ignore[dict-item]
    with pytest.raises(NoCredentials, match="no luck"):
        await Credentials.load(str(kubeconfig(tmp_path / "k", user=user)))


def test_the_json_of_a_kubeconfig_is_yaml_too(tmp_path):
    path = tmp_path / "k"
    path.write_text(json.dumps(yaml.safe_load(kubeconfig(tmp_path / "y").read_text())))
    assert module._texts(f"{path}{os.pathsep}{tmp_path / 'none'}") == [path.read_text()]
