"""Every mutation still applies, and there are some of every plugin."""

import ast
from collections import Counter

import pytest

from moorage.core.profile import REGISTRY
from tests.mutants.mutation import ROOT, Inapplicable, Mutation, all_mutations

MUTATIONS = all_mutations()
#: Parts of the framework that a wrong decision can come from, beside the plugins.
PARTS = ("normalisation", "weights", "filtering", "requeue", "queue order", "preemption choice")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_the_mutation_applies(mutation: Mutation) -> None:
    mutation.apply(mutation.path().read_text())
    for test in mutation.tests:
        path, _, name = test.partition("::")
        source = (ROOT / path).read_text()
        functions = {each.name for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)}
        assert not name or name in functions, test


def test_names_are_unique() -> None:
    twice = [name for name, count in Counter(map(str, MUTATIONS)).items() if count > 1]
    assert not twice


@pytest.mark.parametrize("subject", [*REGISTRY, *PARTS])
def test_each_subject_is_broken_in_three_ways(subject: str) -> None:
    assert sum(mutation.subject == subject for mutation in MUTATIONS) >= 3


@pytest.mark.parametrize(
    ("original", "mutated", "words"),
    [
        ("x", "y", "occurs 2 times"),
        ("z", "y", "occurs 0 times"),
        ("x = 1", "x = = 1", "no Python"),
        ("x = 1", "x =  1", "changes nothing"),
    ],
)
def test_what_does_not_apply_is_said(original: str, mutated: str, words: str) -> None:
    mutation = Mutation("a", "b", "c.py", original, mutated, ())
    with pytest.raises(Inapplicable, match=words):
        mutation.apply("x = 1\nprint(x)\n")


def test_a_mutation_that_applies() -> None:
    mutation = Mutation("a", "b", "c.py", "x = 1", "x = 2", ())
    assert mutation.apply("x = 1\nprint(x)\n") == "x = 2\nprint(x)\n"
