"""kube-scheduler, too, decides the scenarios and the cases as is written beside them."""

from pathlib import Path

import pytest

from tests.parity import sides
from tests.parity.oracle import Oracle
from tests.scenarios.reading import CASES, SCENARIOS, case, failures, misses, scenario

pytestmark = [pytest.mark.integration, pytest.mark.parity]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(oracle: Oracle, path: Path) -> None:
    question, expected = scenario(path)
    assert "\n".join(misses(expected, oracle.ask(sides.for_oracle(question)))) == ""


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_case(oracle: Oracle, folder: Path) -> None:
    answer = oracle.ask(case(folder))
    assert "\n".join(failures(folder, answer, of_kube_scheduler=True)) == ""
