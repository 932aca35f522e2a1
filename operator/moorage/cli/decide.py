"""``moorage decide``: cases in, decisions out, one a line."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from typing import IO, Any

import click
import orjson

from moorage.adapters.kube.convert import Converter
from moorage.cli.cases import decide_case
from moorage.cli.plugin_files import Refreshed, load_plugins, split
from moorage.core.profile import Additions


class _BrokenLine:
    """A line that is not JSON, and why."""

    def __init__(self, why: str) -> None:
        self.why = why


@click.command("decide", short_help="Answer cases, one a line, with the full record of each decision.")
@click.argument("files", nargs=-1, metavar="[FILE] [FILE.py]...")
@click.option(
    "--allow-http",
    is_flag=True,
    help="Call the extenders that a case's config names; else they are an error.",
)
def decide(files: tuple[str, ...], allow_http: bool) -> None:
    """Read cases from FILE (standard input by default) and write the decision record of each.

    A case is a JSON object on one line: a cluster ("objects") and the pods to place in it ("pods", in this
    order). The answer says for each pod which nodes are feasible and why the others are not, the scores by
    plugin, and the node chosen. Each answer is written at once, so a process can be kept open and asked again.
    A case that is broken is answered with an "error", and the next one is read. A FILE that ends in .py holds
    plugins of your own (docs/plugins.md).

    Exit status 0: all that could be read was answered; 2: a file, or a plugin, is broken.

    \b
    Example:
      echo '{"id": 1,
             "objects": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"},
                          "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}}],
             "pods": [{"metadata": {"name": "web"}, "spec": {"containers": [
                       {"name": "web", "resources": {"requests": {"cpu": "500m"}}}]}}]}' | moorage decide
    """
    plugin_files, others = split(files)
    if len(others) > 1:
        raise click.UsageError(f"cases are read from one file, not from {' and '.join(others)}")
    source = click.File("rb").convert(others[0] if others else "-", None, click.get_current_context())
    additions = load_plugins(plugin_files)
    refreshed = Refreshed()
    out = sys.stdout.buffer
    converter = Converter()
    try:
        for case in read_cases(source):
            answer = _answer(case, converter, allow_http, additions, refreshed)
            out.write(orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS) + b"\n")
            out.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has what it wanted; Python would complain at exit


def read_cases(stream: IO[bytes]) -> Iterator[Any]:
    """One case a line; if the first line is not a whole JSON value, all of the input is a sequence of values."""
    lines = (line.strip() for line in stream)
    first = next((line for line in lines if line), None)
    if first is None:
        return
    case = _parse(first)
    if isinstance(case, _BrokenLine):
        rest = [line for line in lines if line]
        values = _sequence(b"\n".join([first, *rest]))
        yield from values if values is not None else (case, *map(_parse, rest))
        return
    yield case
    yield from (_parse(line) for line in lines if line)


def _parse(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return _BrokenLine(str(error))


def _sequence(text: bytes) -> list[Any] | None:
    """All JSON values in the text, one after the other, or None if it is anything else."""
    decoder = json.JSONDecoder()
    values = []
    try:
        rest = text.decode().strip()
        while rest:
            value, end = decoder.raw_decode(rest)
            values.append(value)
            rest = rest[end:].lstrip()
    except (ValueError, RecursionError):
        return None
    return values


def _answer(
    case: Any, converter: Converter, allow_http: bool, additions: Additions, refreshed: Refreshed
) -> dict[str, Any]:
    if isinstance(case, _BrokenLine):
        return {"id": None, "error": f"not JSON: {case.why}"}
    try:
        return decide_case(case, converter, allow_http=allow_http, additions=additions, prepare=refreshed)
    except Exception as error:  # noqa: BLE001 - a flaw of ours in one case must not end the run
        traceback.print_exc()
        return {"id": case.get("id"), "error": f"internal error: {type(error).__name__}: {error}"}
