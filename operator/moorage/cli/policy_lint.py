"""``moorage policy lint``: what is wrong with policies, before a cluster sees them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import click
import orjson

from moorage.adapters.kube.defaults import expand
from moorage.adapters.kube.validate import Problem, check_metadata, check_type
from moorage.adapters.policy.reading import API_VERSION, KINDS, read_policy
from moorage.cli.cluster import Source
from moorage.cli.manifests import find, read
from moorage.cli.plugin_files import load_plugins, split
from moorage.core.profile import score_plugins

GOOD, BAD = 0, 2
_GROUP = API_VERSION.partition("/")[0]


@dataclass(slots=True)
class Linted:
    """What was found in files: ``policies`` are where each of them is, ``others`` how many objects are none."""

    policies: list[tuple[Source, str]] = field(default_factory=list)
    others: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> list[Problem]:
        """What makes a policy unusable."""
        return [problem for problem in self.problems if not problem.warning]


@click.command("lint", short_help="Check policies in files, without a cluster.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def lint(files: tuple[str, ...], output: str) -> None:
    """Check the policies in FILE... as the API server and the scheduler would.

    FILE is a YAML or JSON manifest, a folder of them, or - for standard input; objects that are no policies are passed
    over. Each problem is told with its file, the number of the document in it, and the field. A FILE that ends in .py
    holds plugins of your own (docs/plugins.md), whose weights the policies may set.

    Exit status 0: all are good (there may be warnings); 2: some are not, or there is no policy at all.

    \b
    Examples:
      moorage policy lint policies/ || exit 1
      helm template my-chart | moorage policy lint -
    """
    found = lint_files(files)
    if output == "json":
        click.echo(orjson.dumps(_document(found), option=orjson.OPT_INDENT_2).decode())
    else:
        for problem in found.problems:
            click.echo(f"{'warning' if problem.warning else 'error'}: {problem}", err=True)
        click.echo(_summary(found), err=bool(found.errors))
    sys.exit(BAD if found.errors else GOOD)


def lint_files(paths: Sequence[str]) -> Linted:
    """Check all policies in these files and folders; those that end in .py hold users' plugins."""
    found = Linted()
    seen: dict[tuple[str, str], Source] = {}
    plugin_files, manifests = split(paths)
    weighable = score_plugins(load_plugins(plugin_files))
    for path in find(manifests, found.problems):
        for document, source in read(path, found.problems):
            for where, obj in expand(document, source.path):
                _lint(obj, replace(source, path=where), found, seen, weighable)
    if not found.policies and not found.errors:
        found.problems.append(Problem(", ".join(manifests), 0, "", "there is no policy in it"))
    return found


def _lint(
    obj: object,
    source: Source,
    found: Linted,
    seen: dict[tuple[str, str], Source],
    weighable: frozenset[str],
) -> None:
    wrong = check_type(obj)
    if wrong or not isinstance(obj, Mapping):
        found.problems += [source.problem(*problem) for problem in wrong]
        return
    kind, version = obj["kind"], obj["apiVersion"]
    if version.partition("/")[0] != _GROUP and kind not in KINDS:
        found.others += 1
        return
    if version != API_VERSION or kind not in KINDS:
        message = f"must be {' or '.join(KINDS)} of {API_VERSION}, not {kind} of {version}"
        found.problems.append(source.problem("kind" if version == API_VERSION else "apiVersion", message))
        return
    wrong = check_metadata(obj)
    if wrong:
        found.problems += [source.problem(*problem) for problem in wrong]
        return
    read_one = read_policy(obj, weighable)
    key = (kind, read_one.ref.key)
    found.policies.append((source, f"{kind} {read_one.ref.key}"))
    found.problems += [source.problem(*problem) for problem in read_one.wrong]
    found.problems += [source.problem(*problem, warning=True) for problem in read_one.odd]
    if key in seen:
        first = seen[key]
        where = f"{first.file}, document {first.document}"
        found.problems.append(
            source.problem("metadata.name", f"there is a {kind} {key[1]} already, in {where}")
        )
    seen.setdefault(key, source)


def _summary(found: Linted) -> str:
    warnings = len(found.problems) - len(found.errors)
    parts = [_count(len(found.policies), "policy", "policies"), _count(len(found.errors), "error")]
    if warnings:
        parts.append(_count(warnings, "warning"))
    others = f" ({_count(found.others, 'object')} of other kinds passed over)" if found.others else ""
    return f"{', '.join(parts)}{others}."


def _document(found: Linted) -> dict[str, object]:
    def shown(problem: Problem) -> dict[str, object]:
        return {
            "file": problem.file,
            "document": problem.document,
            "field": problem.field,
            "message": problem.message,
        }

    return {
        "policies": [{"policy": name, "file": s.file, "document": s.document} for s, name in found.policies],
        "errors": [shown(problem) for problem in found.errors],
        "warnings": [shown(problem) for problem in found.problems if problem.warning],
    }


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"
