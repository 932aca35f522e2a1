"""Write crds/*.yaml from crds.source.yaml: both kinds of policy share one spec.

``python scripts/crds.py`` writes the files, ``--check`` only says whether they are up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = Path(__file__).resolve().with_name("crds.source.yaml")
_CLUSTER_ONLY: Final = "cluster"
_HEADER: Final = "# Written by `make crds` from scripts/crds.source.yaml.\n"

_KINDS: Final = (
    {
        "kind": "SchedulingPolicy",
        "scope": "Namespaced",
        "short": "schedpol",
        "description": "A SchedulingPolicy says when and where pods of its namespace are placed.",
    },
    {
        "kind": "ClusterSchedulingPolicy",
        "scope": "Cluster",
        "short": "cschedpol",
        "description": "A ClusterSchedulingPolicy says when and where pods of any namespace are placed.",
    },
)


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: no anchors, lists not indented further than their key."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def rendered(source: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each file; ``source`` is the text of crds.source.yaml."""
    # One document for the parser, since anchors end with the document.
    schemas, _, template = source.partition("\n---\n")
    for kind in _KINDS:
        singular = kind["kind"].lower()
        plural = f"{singular.removesuffix('y')}ies"
        names = {**kind, "singular": singular, "plural": plural}
        indented = "".join(f"  {line}\n" for line in template.splitlines())
        crd = yaml.safe_load(f"{schemas}\ncrd:\n{Template(indented).safe_substitute(names)}")["crd"]
        crd = _for_scope(crd, cluster=kind["scope"] == "Cluster")
        text = yaml.dump(crd, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
        yield f"{plural}.yaml", _HEADER + text


def _for_scope(value: Any, *, cluster: bool) -> Any:
    """The value with what is for policies of the cluster lifted into its place, or left out."""
    if isinstance(value, list):
        return [_for_scope(item, cluster=cluster) for item in value]
    if not isinstance(value, Mapping):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        if key != _CLUSTER_ONLY:
            result[key] = _for_scope(item, cluster=cluster)
        elif cluster:
            result |= _for_scope(item, cluster=cluster)
    return result


def main() -> int:
    """Write or check the files; exit status 1: one was not up to date."""
    stale = []
    for name, text in rendered(SOURCE.read_text()):
        path = ROOT / "crds" / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
    for name in stale:
        print(f"crds/{name}: {'out of date, run make crds' if '--check' in sys.argv[1:] else 'written'}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
