"""Finds users' plugins: in files, in installed packages, and in what Kopf has imported."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from moorage.core.profile import REGISTRY, REMOVED_UPSTREAM, UPSTREAM_ONLY, Additions
from moorage.plugins.adapted import adapt
from moorage.plugins.declare import (
    Declaration,
    DeclarationError,
    collecting,
    declaration_of,
    declared,
)
from moorage.plugins.watch import Watch

#: Entry points of this group name a module with plugins, or one plugin.
GROUP: Final = "moorage.plugins"
#: ``off`` in this variable: plugins of installed packages are not loaded.
INSTALLED: Final = "MOORAGE_INSTALLED_PLUGINS"

#: In an answer this stands for the sum of all scores.
_TOTAL: Final = "total"


class PluginLoadError(Exception):
    """Some plugins cannot be used; ``problems`` are the reasons, each beginning with its place."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load(files: Iterable[str] = (), *, watch: Watch | None = None) -> Additions:
    """The plugins of these files and of installed packages.  Raises PluginLoadError with all that is wrong."""
    found: list[Declaration] = []
    problems: list[str] = []
    for file in files:
        try:
            found += load_file(file)
        except DeclarationError as error:
            problems.append(str(error))
    return _additions(found, problems, watch)


def load_declared(*, watch: Watch | None = None) -> Additions:
    """The plugins of what was imported by somebody else, and of installed packages.  Raises PluginLoadError."""
    return _additions(list(declared()), [], watch)


def additions(declarations: Iterable[Declaration], *, watch: Watch | None = None) -> Additions:
    """These plugins.  Raises PluginLoadError."""
    return _adapted(list(declarations), [], watch or Watch())


def load_file(path: str) -> list[Declaration]:
    """What a file declares.  Raises DeclarationError with file, line and reason.

    As Kopf does it: the file's folder comes first where modules are looked for.
    """
    file = Path(path)
    try:
        source = file.read_bytes()
    except OSError as error:
        raise DeclarationError(path, 0, f"cannot be read: {error.strerror or error}") from error
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"__moorage_plugins__{file.stem}_{len(sys.modules)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise DeclarationError(path, 0, "is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with collecting() as found:
        try:
            exec(compile(source, path, "exec"), vars(module))  # noqa: S102 - the user's own code, and wish
        except DeclarationError:
            raise
        except SyntaxError as error:
            raise DeclarationError(
                error.filename or path, error.lineno or 0, f"{type(error).__name__}: {error.msg}"
            ) from error
        except (Exception, SystemExit) as error:
            line = _line_in(path, error)
            raise DeclarationError(path, line, f"{type(error).__name__}: {error}") from error
    if not found:
        found = _marked(module)
    if not found:
        raise DeclarationError(
            path,
            0,
            "declares no plugin: nothing in it is marked by @moorage.score, filter, pre_filter or plugin",
        )
    return found


def _line_in(path: str, error: BaseException) -> int:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return lines[-1] or 0 if lines else 0


def _marked(thing: Any) -> list[Declaration]:
    """The declarations of an object, or of everything that a module names."""
    things = vars(thing).values() if isinstance(thing, ModuleType) else (thing,)
    found = map(declaration_of, things)
    return list({id(each): each for each in found if each is not None}.values())


def _installed(problems: list[str]) -> list[Declaration]:
    if os.environ.get(INSTALLED, "").strip().lower() in ("off", "no", "false", "0"):
        return []
    found: list[Declaration] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        place = f"entry point {entry.name} of {_package(entry)}"
        try:
            with collecting():  # an import that somebody did before declares nothing now
                thing = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
            problems.append(f"{place}: {type(error).__name__}: {error}")
            continue
        theirs = _marked(thing)
        if not theirs:
            problems.append(f"{place}: declares no plugin")
        found += theirs
    return found


def _package(entry: EntryPoint) -> str:
    return "an installed package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _additions(found: list[Declaration], problems: list[str], watch: Watch | None) -> Additions:
    known = {id(declaration) for declaration in found}
    found += [each for each in _installed(problems) if id(each) not in known]
    return _adapted(found, problems, watch or Watch())


def _adapted(found: list[Declaration], problems: list[str], watch: Watch) -> Additions:
    plugins = []
    first: dict[str, Declaration] = {}
    for each in found:
        taken = _taken(each, first.get(each.name))
        first.setdefault(each.name, each)
        if taken:
            problems.append(str(each.wrong(taken)))
            continue
        try:
            plugins.append(adapt(each, watch))
        except DeclarationError as error:
            problems.append(str(error))
    if problems:
        raise PluginLoadError(problems)
    return Additions(tuple(plugins), {each.name: each.weight for each in found})


def _taken(declaration: Declaration, other: Declaration | None) -> str:
    """Why the name cannot be had, "" if it can."""
    name = declaration.name
    if name in REGISTRY:
        return f"{name!r} is the name of a built-in plugin: choose another, by name="
    if name in UPSTREAM_ONLY | REMOVED_UPSTREAM:
        return f"{name!r} is the name of a plugin of kube-scheduler: choose another, by name="
    if name == _TOTAL:
        return f"{name!r} stands for the sum of scores in answers: choose another name, by name="
    if name.startswith("Policy") and name[6:7].isupper():
        return f"{name!r}: names that begin so are those of policies' own plugins: choose another, by name="
    if other is not None:
        return f"there is a plugin {name!r} already, at {other.file}:{other.line}: choose another, by name="
    return ""
