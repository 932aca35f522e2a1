"""The command line of ``moorage run``: what it makes of options and variables."""

import pytest
from click.testing import CliRunner

from moorage.cli import run as module
from moorage.runtime.settings import Listen, Settings


@pytest.fixture
def invoke(monkeypatch):
    """Invoke the command with the operator left out; gives the result and the settings it would run with."""
    seen: list[Settings] = []
    monkeypatch.setattr(module, "_operate", lambda settings, _: seen.append(settings))
    monkeypatch.setattr(module, "configure", lambda *_: None)

    def call(*args, **env):
        seen.clear()
        result = CliRunner().invoke(module.run, list(args), env=env)
        return result, (seen[0] if seen else None)

    return call


def test_without_options_the_defaults_hold(invoke):
    result, settings = invoke()
    assert (result.exit_code, settings) == (0, Settings())


def test_options_become_settings(invoke):
    _, settings = invoke(
        *("--scheduler-name", "a", "--scheduler-name", "b", "--no-leader-elect", "--lease-name", "l"),
        *("--lease-namespace", "ns", "--kubeconfig", "k", "--context", "c", "--no-node-ready-guard"),
        *("--metrics-listen", "off", "--liveness", "127.0.0.1:1", "--max-binds", "9"),
        *("--debug-listen", "127.0.0.1:2", "--slow-decision", "0.5"),
    )
    assert settings == Settings(
        scheduler_name=("a", "b"),
        leader_elect=False,
        lease_name="l",
        lease_namespace="ns",
        kubeconfig="k",
        context="c",
        node_ready_guard=False,
        metrics_listen=None,
        liveness=Listen("127.0.0.1", 1),
        max_binds=9,
        debug_listen=Listen("127.0.0.1", 2),
        slow_decision=0.5,
    )


def test_the_command_line_goes_before_the_environment(invoke):
    env = {"MOORAGE_LEASE_NAME": "env", "MOORAGE_MAX_BINDS": "3", "MOORAGE_METRICS_LISTEN": "off"}
    _, settings = invoke("--lease-name", "line", **env)
    assert (settings.lease_name, settings.max_binds, settings.metrics_listen) == ("line", 3, None)


@pytest.mark.parametrize(
    ("args", "env", "text"),
    [
        (["--max-binds", "0"], {}, "max-binds: must be at least 1"),
        (["--slow-decision", "0"], {}, "slow-decision: must be more than 0 seconds"),
        (["--debug-listen", "0.0.0.0:1"], {}, "debug-listen: must be a loopback address"),
        (["--metrics-listen", "nonsense"], {}, "must be HOST:PORT"),
        ([], {"MOORAGE_LEADER_ELECT": "perhaps"}, "MOORAGE_LEADER_ELECT"),
    ],
)
def test_what_cannot_be_used_is_named(invoke, args, env, text):
    result, settings = invoke(*args, **env)
    assert (result.exit_code, settings) == (2, None)
    assert text in result.output


def test_a_failure_is_shown_and_gives_1(invoke, monkeypatch):
    monkeypatch.setattr(module, "_operate", lambda *_: RuntimeError("it broke"))
    result, _ = invoke()
    assert result.exit_code == 1
    assert "moorage run: it broke" in result.output


def test_help_names_each_variable_and_shows_an_example(invoke):
    result, _ = invoke("--help")
    assert result.exit_code == 0
    assert "Examples:" in result.output
    text = " ".join(result.output.split())
    for variable in ("SCHEDULER_NAME", "LEADER_ELECT", "NODE_READY_GUARD", "MAX_BINDS", "LEASE_DURATION"):
        assert f"[env: MOORAGE_{variable}]" in text
