"""Moorage and kube-scheduler decide the same generated cases in the same way.

The cases are the same in every run; `make parity N=100000` looks at new ones.  MOORAGE_PARITY_CASES sets how many of
them there are; a thousand take some ten seconds.
"""

import itertools
import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from moorage.adapters.kube.convert import Converter
from tests.kit.clusters import THEMES, cases, random_case
from tests.parity import sides
from tests.parity.findings import report, save, shrunk
from tests.parity.oracle import Case, Oracle

pytestmark = [pytest.mark.integration, pytest.mark.parity]

COUNT = int(os.environ.get("MOORAGE_PARITY_CASES", "2200"))
#: Cases of a theme in which the oracle may be unsure of itself (oracle/README.md); they are not compared.
MOST_UNSURE = 0.01


@pytest.mark.timeout(60 + COUNT)
@pytest.mark.parametrize("theme", THEMES)
def test_generated_cases(oracle: Oracle, theme: str) -> None:
    rng = random.Random(theme)
    unsure, compared, converter = 0, 0, Converter()
    made: Iterator[Case] = (random_case(rng, [theme]) for _ in itertools.count())
    number = max(1, COUNT // len(THEMES))
    for case, answer in sides.ask_all(oracle, itertools.islice(made, number)):
        try:
            found = sides.differences(case, answer, converter)
        except sides.OracleUnsure:
            unsure += 1
            continue
        compared += 1
        if found:
            disagree(oracle, shrunk(oracle, case, found[0].kind))
    assert unsure <= 1 + MOST_UNSURE * number
    assert compared


@settings(
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(case=cases())
def test_cases_that_hypothesis_makes(oracle: Oracle, case: Case) -> None:
    answer = oracle.ask(sides.for_oracle(case))
    try:
        found = sides.differences(case, answer)
    except sides.OracleUnsure:
        return
    if found:
        disagree(oracle, case)


def disagree(oracle: Oracle, case: Case) -> None:
    """Fail with the case and the differences."""
    path = save(case)
    pytest.fail(
        f"Moorage and kube-scheduler disagree:\n{report(oracle, case)}\n"
        f"Once more: python -m tests.parity --replay {path}",
        pytrace=False,
    )


def test_some_cases_have_many_nodes() -> None:
    rng = random.Random(1)
    sizes = [sum(o["kind"] == "Node" for o in random_case(rng)["objects"]) for _ in range(500)]
    assert sum(size > 64 for size in sizes) >= 5
    assert sum(size == 1 for size in sizes) >= 5
