"""What ``moorage check`` prints, and its exit status, against a server that lacks this or that."""

import socket

import pytest
import yaml
from click.testing import CliRunner

from moorage.adapters.kube.permissions import PERMISSIONS
from moorage.cli.check import _run, check
from tests.kit.fake_api import Answer, FakeApi

OPTIONS = {"leader_elect": True, "lease_namespace": "sea", "lease_name": "moorage"}


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


def write(path, server: str) -> str:
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": server}}],
        "users": [{"name": "x", "user": {"token": "t"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.fixture
def kubeconfig(api, tmp_path):
    return write(tmp_path / "kubeconfig", api.url)


async def test_all_is_well(api, kubeconfig, capsys):
    assert await _run(kubeconfig, None, **OPTIONS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"API server {api.url}, v1.37.2, by kubeconfig {kubeconfig}"
    assert all(line.startswith("ok ") for line in lines[1:])
    assert len(lines) == 1 + 2 + len(PERMISSIONS)
    assert "\x1b" not in "".join(lines)


async def test_a_missing_permission_is_named_with_its_rule(api, kubeconfig, capsys):
    api.denied |= {("create", "pods/binding"), ("update", "leases")}
    assert await _run(kubeconfig, None, **OPTIONS) == 1
    out = capsys.readouterr().out
    assert "missing   pods/binding: create" in out
    assert "missing   coordination.k8s.io leases: update in sea" in out
    assert "add to a Role in namespace sea:" in out
    assert "resources: [pods/binding]" in out


async def test_an_optional_permission_missing_is_no_failure(api, kubeconfig, capsys):
    api.denied.add(("create", "events"))
    assert await _run(kubeconfig, None, **OPTIONS) == 0
    out = capsys.readouterr().out
    assert "optional  events.k8s.io events: create" in out
    assert "off without it" in out


@pytest.mark.parametrize(
    ("gone", "state", "status"),
    [("events.k8s.io/v1", "optional", 0), ("coordination.k8s.io/v1", "missing", 1)],
)
async def test_an_api_that_is_not_served(api, kubeconfig, capsys, gone, state, status):
    api.groups.remove(gone)
    assert await _run(kubeconfig, None, **OPTIONS) == status
    assert f"{state:9} {gone}" in capsys.readouterr().out


async def test_without_leader_election_nothing_about_leases_is_asked(api, kubeconfig, capsys):
    api.groups.remove("coordination.k8s.io/v1")
    api.denied |= {(verb, "leases") for verb in ("get", "create", "update")}
    assert await _run(kubeconfig, None, **(OPTIONS | {"leader_elect": False})) == 0
    assert "lease" not in capsys.readouterr().out


async def test_not_being_allowed_to_ask_is_a_missing_permission(api, kubeconfig, capsys):
    api.on("POST", "/selfsubjectaccessreviews", Answer(403), times=None)
    assert await _run(kubeconfig, None, **OPTIONS) == 1
    assert "missing   authorization.k8s.io selfsubjectaccessreviews: create" in capsys.readouterr().out


async def test_wrong_credentials_are_a_cluster_that_cannot_be_used(api, kubeconfig, capsys):
    api.token = "another"
    assert await _run(kubeconfig, None, **OPTIONS) == 2
    assert "Unauthorized (HTTP 401)" in capsys.readouterr().err


def test_a_cluster_that_cannot_be_reached_is_one_line(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{unused.getsockname()[1]}"
        result = CliRunner().invoke(check, ["--kubeconfig", write(tmp_path / "k", server)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert server in result.stderr


def test_a_kubeconfig_that_is_not_there_is_one_line(tmp_path):
    result = CliRunner().invoke(check, ["--kubeconfig", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert f"{tmp_path / 'none'}: no such file" in result.stderr


def test_the_help_has_an_example():
    result = CliRunner().invoke(check, ["--help"])
    assert result.exit_code == 0
    assert "moorage check --kubeconfig" in result.stdout
