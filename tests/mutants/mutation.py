"""What a mutation is, and all of them."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import areas

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("operator", "moorage")


class Inapplicable(Exception):
    """The mutation does not fit the source any more."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mistake: in ``file`` (below operator/moorage), ``original`` becomes ``mutated``.

    ``subject`` is the plugin, or the part of the framework, that is broken by it.  ``tests`` are pytest's arguments
    for the tests that must notice it: paths below tests/, at times with ``::name``.
    """

    subject: str
    name: str
    file: str
    original: str
    mutated: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}"

    def apply(self, text: str) -> str:
        """The text of the file with the mistake.  Raises Inapplicable."""
        count = text.count(self.original)
        if count != 1:
            raise Inapplicable(
                f"{self}: the original occurs {count} times in {self.file}, not once: {self.original!r}"
            )
        changed = text.replace(self.original, self.mutated)
        try:
            same = ast.dump(ast.parse(text)) == ast.dump(ast.parse(changed))
        except SyntaxError as error:
            raise Inapplicable(f"{self}: the mutated file is no Python: {error}") from error
        if same:
            raise Inapplicable(f"{self}: the mutation changes nothing")
        return changed

    def path(self, root: Path = ROOT) -> Path:
        """The file, in the repository or in a copy of it."""
        return root / PACKAGE / self.file


@dataclass(frozen=True, slots=True)
class Subject:
    """What several mutations have in common."""

    name: str
    file: str
    tests: tuple[str, ...]

    def mutation(
        self, name: str, original: str, mutated: str, *, file: str = "", tests: tuple[str, ...] = ()
    ) -> Mutation:
        """One of its mutations; ``file`` and ``tests`` where they are others than for the rest."""
        return Mutation(self.name, name, file or self.file, original, mutated, tests or self.tests)

    def elsewhere(self, file: str, *tests: str) -> Subject:
        """The same subject in another file, and the tests for that."""
        return Subject(self.name, file, tests)


def plugin(name: str, file: str, *more_tests: str) -> Subject:
    """A plugin as a subject: its file, and the test that mirrors it."""
    return Subject(name, f"core/plugins/{file}.py", (f"tests/core/plugins/test_{file}.py", *more_tests))


def all_mutations() -> Sequence[Mutation]:
    """The mutations of all areas, area by area."""
    found: list[Mutation] = []
    for info in sorted(pkgutil.iter_modules(areas.__path__), key=lambda info: info.name):
        found += importlib.import_module(f"{areas.__name__}.{info.name}").MUTATIONS
    return found
