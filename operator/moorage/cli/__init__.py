"""The command line: one module a command, loaded when the command is called."""

from moorage.cli.main import main

__all__ = ["main"]
