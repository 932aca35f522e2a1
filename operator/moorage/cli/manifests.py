"""Manifests from files, folders and standard input, each object with the place it came from."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from moorage.adapters.kube.validate import Problem
from moorage.cli.cluster import Source

STDIN: Final = "-"
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_Base: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """YAML as Kubernetes reads it: times stay text, and a key may be given once only."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:str":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value!r} is given twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def find(paths: Iterable[str], problems: list[Problem]) -> Iterator[str]:
    """The files meant by the paths: a folder means all manifests below it, in the order of their names."""
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            found = sorted(str(p) for p in Path(path).rglob("*") if p.suffix in _SUFFIXES and p.is_file())
            if not found:
                problems.append(
                    Problem(path, 0, "", "there are no .yaml, .yml or .json files in this folder")
                )
            yield from found
        else:
            yield path


def read(path: str, problems: list[Problem]) -> Iterator[tuple[object, Source]]:
    """The documents of a file (``-``: standard input); what cannot be read is added to the problems."""
    name = "standard input" if path == STDIN else path
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        problems.append(Problem(name, 0, "", error.strerror or str(error)))
        return
    except UnicodeDecodeError as error:
        problems.append(Problem(name, 0, "", f"is not UTF-8 text: {error.reason} at byte {error.start}"))
        return
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield orjson.loads(text), Source(name, 1)
            return
        except orjson.JSONDecodeError:
            pass  # several JSON values, or YAML that begins like JSON
    yield from _documents(text, name, problems)


def _documents(text: str, name: str, problems: list[Problem]) -> Iterator[tuple[object, Source]]:
    """Each document parsed on its own, so that one that is not YAML does not hide the others."""
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    if not starts or not _is_blank(text[: starts[0]]):
        starts.insert(0, 0)
    line = text.count("\n", 0, starts[0])
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), 1):
        chunk = text[start:end]
        line_of_chunk, line = line, line + chunk.count("\n")
        try:
            for document in yaml.load_all(chunk, _Loader):
                if document is not None:
                    yield document, Source(name, number)
        except yaml.YAMLError as error:
            problems.append(Problem(name, number, "", f"not YAML: {_explain(error, line_of_chunk)}"))
        except (ValueError, RecursionError) as error:
            problems.append(Problem(name, number, "", f"cannot be read: {error}"))


def _is_blank(text: str) -> bool:
    """Whether there are only comments and directives."""
    return all(not line.strip() or line.lstrip()[0] in "#%" for line in text.splitlines())


def _explain(error: yaml.YAMLError, lines_before: int) -> str:
    """The parser's complaint on one line, with the line of the file."""
    problem = " ".join(str(getattr(error, "problem", None) or error).split())
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return f"line {mark.line + 1 + lines_before}: {problem}" if mark is not None else problem
