"""Write what the chart has from elsewhere: permissions, definitions of policies, and the table of values in its README.

``python scripts/chart.py`` writes the files, ``--check`` only says whether they are up to date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from moorage.adapters.kube.permissions import PERMISSIONS, Permission, needed_by_extender

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "charts" / "moorage"
CRDS: Final = ROOT / "crds"
_BEGIN, _END = "<!-- written by `make chart`: begin -->", "<!-- written by `make chart`: end -->"
#: The values of the extender that need more rights than it has without them.
_CASES: Final = ("full", "bind", "status")

Entry = dict[str, Any]


def permissions() -> dict[str, list[Entry]]:
    """What each component of the chart may do, each with the case in which it may: "" for always.

    Both are what Moorage checks at its start.
    """
    return {
        "scheduler": [_entry(permission, permission.verbs) for permission in PERMISSIONS],
        "extender": list(_of_extender()),
    }


def _of_extender() -> Iterator[Entry]:
    always = _needed("")
    for permission in always:
        yield _entry(permission, permission.verbs)
    granted = {
        (permission.group, permission.resource, verb) for permission in always for verb in permission.verbs
    }
    for case in _CASES:
        for permission in _needed(case):
            verbs = [v for v in permission.verbs if (permission.group, permission.resource, v) not in granted]
            if verbs:
                yield _entry(permission, verbs, when=case)


def _needed(case: str) -> list[Permission]:
    return needed_by_extender(full=case == "full", bind=case == "bind", status=case == "status")


def _entry(permission: Permission, verbs: Sequence[str], when: str = "") -> Entry:
    return {
        "why": permission.why,
        "feature": permission.feature,
        "when": when,
        "scope": str(permission.scope),
        "group": permission.group,
        "resource": permission.resource,
        "verbs": list(verbs),
    }


def leaves(
    schema: Mapping[str, Any], values: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, str]]:
    """Each value that can be set: its path, its default and what the schema says of it."""
    for name, below in schema["properties"].items():
        path = f"{prefix}{name}"
        if "properties" in below:
            yield from leaves(below, values[name], f"{path}.")
        elif path != "global":
            yield path, values[name], below["description"]


def _table() -> str:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = ["| value | default | meaning |", "| --- | --- | --- |"]
    for path, default, text in leaves(schema, values):
        default = json.dumps(default, ensure_ascii=False)
        escaped = text.replace("|", "\\|")
        rows.append(f"| `{path}` | `{default}` | {escaped} |")
    return "\n".join(rows)


def _features() -> str:
    rows = ["| feature | permissions |", "| --- | --- |"]
    for feature in dict.fromkeys(p.feature for p in PERMISSIONS if p.feature):
        rules = (f"{', '.join(p.verbs)} `{p.resource}`" for p in PERMISSIONS if p.feature == feature)
        rows.append(f"| `{feature}` | {'; '.join(rules)} |")
    return "\n".join(rows)


def rendered() -> dict[Path, str]:
    """The files and what is to be in them."""
    header = "# Written by `make chart` from operator/moorage/adapters/kube/permissions.py.\n"
    body = yaml.safe_dump(permissions(), sort_keys=False, width=110)
    readme = CHART / "README.md"
    before, _, rest = readme.read_text().partition(_BEGIN)
    written = f"{_BEGIN}\n\n{_table()}\n\n### Optional features\n\n{_features()}\n\n{_END}"
    files = {
        CHART / "files" / "permissions.yaml": header + body,
        readme: before + written + rest.partition(_END)[2],
    }
    for path in sorted(CRDS.glob("*.yaml")):
        files[CHART / "files" / "crds" / path.name] = path.read_text()
    return files


def stale() -> list[Path]:
    """The files that are not as they should be, and definitions that are there no longer."""
    files = rendered()
    wrong = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if CRDS.is_dir():
        wrong += [path for path in (CHART / "files" / "crds").iterdir() if path not in files]
    return wrong


def main(arguments: list[str]) -> int:
    """The command."""
    wrong = stale()
    if "--check" in arguments:
        for path in wrong:
            print(f"{path.relative_to(ROOT)} is out of date: run `make chart`", file=sys.stderr)
        return bool(wrong)
    files = rendered()
    for path in wrong:
        if path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
