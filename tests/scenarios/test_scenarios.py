"""Clusters and pods give the placements and the texts that are written beside them."""

from pathlib import Path

import pytest

from moorage.cli.cases import decide_case
from moorage.core.profile import REGISTRY
from tests.scenarios.reading import CASES, NEEDS, SCENARIOS, case, failures, misses, scenario


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    question, expected = scenario(path)
    assert "\n".join(misses(expected, decide_case(question))) == ""


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_case(folder: Path) -> None:
    answer = decide_case(case(folder))
    if missing := [name for name in NEEDS.get(folder.name, ()) if name not in REGISTRY]:
        refused = [
            r["message"]
            for r in answer["results"]
            if (r["prefilter"] or {}).get("plugin") == "SupportedFeatures"
        ]
        assert refused, f"{', '.join(missing)} is not there, yet no pod is refused"
        assert all("which this scheduler does not support yet" in message for message in refused)
        return
    assert "\n".join(failures(folder, answer)) == ""


def test_every_case_that_needs_something_is_there() -> None:
    assert NEEDS.keys() <= {folder.name for folder in CASES}
    assert len(CASES) == 27
    assert len(SCENARIOS) >= 15
