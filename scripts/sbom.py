"""Print a bill of materials (CycloneDX 1.6, JSON) of what an installation by requirements.lock consists of.

The lock file is what the image is built from, so the bill is made from it and not from whatever environment runs
this. Licences are added for what is installed here in the same version.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+))?", re.MULTILINE)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")

Component = dict[str, Any]


def components(lock: str) -> Iterator[Component]:
    """A component for each pin; the hashes of its files are properties, as one component has several files."""
    pins = list(_PIN.finditer(lock))
    for pin, following in zip(pins, [*pins[1:], None], strict=True):
        name, version, marker = pin[1].lower().replace("_", "-"), pin[2], (pin[3] or "").strip()
        text = lock[pin.end() : following.start() if following else len(lock)]
        url = f"pkg:pypi/{name}@{version}"
        properties = [{"name": "moorage:file:sha256", "value": found} for found in _HASH.findall(text)]
        if marker:
            properties.append({"name": "moorage:marker", "value": marker})
        yield {
            "type": "library",
            "bom-ref": url,
            "name": name,
            "version": version,
            "purl": url,
            "scope": "optional" if marker else "required",
            **_licences(name, version),
            "properties": properties,
        }


def _licences(name: str, version: str) -> Component:
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return {}
    expression = found.get("License-Expression")
    if metadata.version(name) != version or not expression:
        return {}
    return {"licenses": [{"expression": expression}]}


def bill(lock: str, project: dict[str, Any]) -> Component:
    """The whole document."""
    url = f"pkg:pypi/{project['name']}@{project['version']}"
    found = list(components(lock))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url + lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": url,
                "name": project["name"],
                "version": project["version"],
                "purl": url,
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": found,
        "dependencies": [{"ref": url, "dependsOn": [each["bom-ref"] for each in found]}],
    }


def main() -> int:
    """The command."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (ROOT / "requirements.lock").read_text()
    json.dump(bill(lock, project), sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
