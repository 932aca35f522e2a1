"""Small cases with answers derived by hand, put to both schedulers: this is also the oracle's own test."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.cli.cases import decide_case
from moorage.core.profile import REGISTRY
from tests.parity.oracle import Case, Oracle

HERE = Path(__file__).resolve().parent
DECISIONS = HERE.parents[1] / "docs" / "decisions"
CASES: list[Case] = yaml.safe_load((HERE / "answers.yaml").read_text())
ANSWERABLE = [case for case in CASES if REGISTRY.keys() >= set(case.get("needs", ()))]

#: Lines that are no cases: each is answered with an error, and the next line is read.
BROKEN: list[Any] = [
    [],
    {"id": 2, "objects": [{"kind": "Node"}]},
    {"id": 3, "pods": [{"metadata": {}}]},
    {
        "id": 4,
        "pods": [
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]},
            }
        ],
    },
    {"id": 5, "config": {"profiles": 3}},
]


def question(case: Case) -> Case:
    """The part of a case that is put to the schedulers."""
    return {key: case[key] for key in ("objects", "pods", "config", "commit", "preempt") if key in case}


def misses(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where the answer lacks something expected; of an object only the keys that are expected are looked at."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            yield from misses(value, found.get(key), f"{path}.{key}" if path else key)
    elif expected != found:
        yield f"{path}:\n  expected {expected!r}\n  got      {found!r}"


def check(case: Case, expected: list[Any], answer: dict[str, Any]) -> None:
    """Fail with all differences."""
    assert "error" not in answer, answer["error"]
    assert len(expected) == len(answer["results"]), "an expectation for each pod"
    pairs = zip(expected, answer["results"], strict=True)
    assert "\n".join(line for want, got in pairs for line in misses(want, got, got["pod"])) == ""


@pytest.mark.parametrize("case", ANSWERABLE, ids=lambda case: case["name"])
def test_moorage(case: Case) -> None:
    check(case, case["expect"], decide_case(question(case)))


@pytest.mark.integration
@pytest.mark.parity
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_kube_scheduler(oracle: Oracle, case: Case) -> None:
    answer = oracle.ask(question(case))
    differs = case.get("kube") or [{}] * len(case["expect"])
    check(case, [ours | theirs for ours, theirs in zip(case["expect"], differs, strict=True)], answer)
    (*found, warning) = answer.get("warnings") or [None]
    assert not found
    assert (warning is None) if "warns" not in case else (case["warns"] in warning)


@pytest.mark.integration
@pytest.mark.parity
@pytest.mark.parametrize("case", BROKEN, ids=range(1, len(BROKEN) + 1))
def test_what_is_broken_is_an_error_on_both_sides(oracle: Oracle, case: Any) -> None:
    for answer in (decide_case(case), oracle.ask(case)):
        assert answer["error"]
        assert not answer.get("results")


def test_every_difference_has_a_page() -> None:
    for case in CASES:
        assert ("kube" in case) == ("decision" in case), case["name"]
        if "decision" in case:
            (page,) = DECISIONS.glob(f"{case['decision']}-*.md")
            assert re.match(r"# \d{4}: .* \(difference\)\n", page.read_text())
