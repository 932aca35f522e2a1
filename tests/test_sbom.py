"""The bill of materials names everything that the lock file installs."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = (ROOT / "requirements.lock").read_text()


def printed() -> str:
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_it_is_complete_and_the_same_each_time():
    text = printed()
    assert printed() == text
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    pins = dict(re.findall(r"^(\S+)==(\S+)", LOCK, re.MULTILINE))
    assert len(pins) > 15
    assert {c["name"]: c["version"] for c in bill["components"]} == {
        name.lower().replace("_", "-"): version for name, version in pins.items()
    }
    assert all(c["purl"] == f"pkg:pypi/{c['name']}@{c['version']}" for c in bill["components"])
    references = [c["bom-ref"] for c in bill["components"]]
    assert len(set(references)) == len(references)
    assert bill["dependencies"][0]["dependsOn"] == references


def test_every_file_s_hash_is_in_it():
    properties = [p for c in json.loads(printed())["components"] for p in c["properties"]]
    hashes = {p["value"] for p in properties if p["name"] == "moorage:file:sha256"}
    assert hashes == set(re.findall(r"sha256:([0-9a-f]{64})", LOCK))


def test_what_only_some_platforms_need_is_optional():
    """A pin with a marker is not installed everywhere."""
    marked = set(re.findall(r"^(\S+)==\S+ ;", LOCK, re.MULTILINE))
    optional = {c["name"] for c in json.loads(printed())["components"] if c["scope"] == "optional"}
    assert optional == {name.lower() for name in marked}
    assert optional
