"""Log lines."""

import json
import logging

import pytest

from moorage.adapters.telemetry.logs import LogFormat, configure


@pytest.fixture(autouse=True)
def _restore():
    root, names = logging.getLogger(), ("", "moorage", "kopf.objects")
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_text(capsys):
    configure()
    logging.getLogger("moorage.app").info("hello %s", "world")
    logging.getLogger("moorage.app").debug("hidden")
    line = capsys.readouterr().err
    assert line.endswith("Z INFO moorage.app: hello world\n")


def test_json(capsys):
    configure(LogFormat.JSON)
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("moorage.app").exception("it failed: %s", "x")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"], line["message"]) == ("error", "moorage.app", "it failed: x")
    assert "ValueError: why" in line["exception"]
    assert line["time"].endswith("Z")


def test_more_with_v_and_still_more_with_another(capsys):
    configure(verbosity=1)
    logging.getLogger("moorage.x").debug("ours")
    logging.getLogger("kopf.objects").info("Handler succeeded")
    logging.getLogger("aiohttp").debug("theirs")
    assert capsys.readouterr().err.count("\n") == 1
    configure(verbosity=2)
    logging.getLogger("aiohttp").debug("theirs")
    assert "theirs" in capsys.readouterr().err


def test_fields(capsys):
    configure(LogFormat.JSON)
    fields = {"pod": "ns/p", "node": "n", "policy": "a", "attempt": 2, "phases": {"filter": 0.1}, "other": 1}
    logging.getLogger("moorage.app").info("placed", extra=fields)
    line = json.loads(capsys.readouterr().err)
    assert {name: line.get(name) for name in fields} == {**fields, "other": None}
    configure(LogFormat.TEXT)
    logging.getLogger("moorage.app").info("placed", extra=fields)
    assert capsys.readouterr().err.endswith("moorage.app: placed [pod=ns/p node=n policy=a attempt=2]\n")
