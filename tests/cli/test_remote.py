"""`moorage explain --server`: errors before and instead of an answer."""

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main


@pytest.fixture
def explain(tmp_path):
    def call(*options, user=None):
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": user if user is not None else {"token": "t0k"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        words = ["explain", "shop/web", "--kubeconfig", str(tmp_path / "config")]
        return CliRunner().invoke(main, [*words, *options])

    return call


@pytest.mark.parametrize(
    "server",
    [
        "http://10.0.0.1:1",
        "http://example.com",
        "http://127.evil.example",
        "http://[",
        "ftp://127.0.0.1",
        "127.0.0.1:1",
    ],
)
def test_a_token_does_not_travel_in_the_clear(explain, server):
    result = explain("--server", server)
    assert result.exit_code == 2
    assert "a token is only sent to https, or to this machine" in result.stderr


def test_nobody_listens(explain):
    result = explain("--server", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert "error: --server: http://127.0.0.1:1: " in result.stderr


def test_a_kubeconfig_without_a_token(explain):
    result = explain("--server", "http://127.0.0.1:1", user={})
    assert (result.exit_code, result.stderr) == (
        2,
        "error: the kubeconfig has no token, which --server needs\n",
    )


@pytest.mark.parametrize(
    "options", [("--cluster", "x"), ("--config", "x"), ("--plugin", "x.py"), ("-o", "html")]
)
def test_what_the_scheduler_decides_by_is_not_for_us_to_say(explain, options):
    result = explain("--server", "http://127.0.0.1:1", *options)
    assert result.exit_code == 2
    assert "--server goes with none of" in result.stderr
