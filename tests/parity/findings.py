"""Cases on which the two disagree: made small, shown and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.parity import sides
from tests.parity.oracle import Case, Oracle
from tests.parity.shrink import shrink

FAILURES = Path(__file__).resolve().parents[2] / ".cache" / "parity"


def kinds(oracle: Oracle, case: Case) -> Iterator[str]:
    """The kind of the first difference, if the case still makes sense to both sides."""
    answer = oracle.ask(sides.for_oracle(case))
    if answer.get("error") or answer.get("warnings"):
        return
    found = sides.differences(case, answer)
    if found:
        yield found[0].kind


def shrunk(oracle: Oracle, case: Case, kind: str) -> Case:
    """The smallest case found on which the two still differ in this way."""
    return shrink(case, lambda smaller: kind in kinds(oracle, smaller))


def report(oracle: Oracle, case: Case) -> str:
    """The case as YAML, and how the two differ on it."""
    answer = oracle.ask(sides.for_oracle(case))
    text = yaml.safe_dump(case, sort_keys=False, default_flow_style=None, width=140)
    found = sides.differences(case, answer)
    lines = [f"    {line}" for line in text.splitlines()]
    return "\n".join([*lines, *(f"  {difference}" for difference in found[:12])])


def save(case: Case) -> Path:
    """Keep the case as a file, named by its content."""
    text = json.dumps(case, indent=1)
    FAILURES.mkdir(parents=True, exist_ok=True)
    path = FAILURES / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    path.write_text(text + "\n")
    return path
