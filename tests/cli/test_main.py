"""The group of commands."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from moorage import __version__
from moorage.cli import main
from moorage.cli.main import _COMMANDS


def test_version():
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.output) == (0, f"moorage, version {__version__}\n")


def test_help_lists_every_command():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name, text in _COMMANDS.items():
        assert f"{name} " in result.output
        assert text in result.output


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_every_command_has_help_with_an_example(command):
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    assert "moorage" in result.output


def test_a_command_that_is_not_there(monkeypatch):
    monkeypatch.setitem(_COMMANDS, "not_yet", "Comes later.")
    assert "not_yet" not in CliRunner().invoke(main, ["--help"]).output
    result = CliRunner().invoke(main, ["not_yet"])
    assert result.exit_code == 2
    assert "No such command" in result.output


def test_offline_commands_do_not_import_what_only_a_running_scheduler_needs():
    program = (
        "import sys; from moorage.cli import main; main(['decide', '--help'], standalone_mode=False); "
        "print(sorted({'kopf', 'aiohttp', 'kubernetes_asyncio', 'rich'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
