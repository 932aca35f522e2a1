"""What the decorators take, and what they refuse, with the place of the fault."""

import subprocess
import sys
from typing import Any

import pytest

import moorage as typed
from moorage.plugins.declare import DeclarationError, collecting, declaration_of, declared

moorage: Any = typed  # what a type checker would refuse must be refused without one, too


@pytest.fixture(autouse=True)
def found():
    with collecting() as found:
        yield found


def test_a_function_stays_what_it_is_and_is_remembered(found):
    def cheaper_first(pod, nodes, *, label="price"):
        return None

    assert moorage.score(weight=2, pure=True)(cheaper_first) is cheaper_first
    (declaration,) = found
    assert declaration_of(cheaper_first) is declaration
    assert declaration is not None
    assert (declaration.name, declaration.weight, declaration.pure) == ("cheaper_first", 2, True)
    assert declaration.parts == {"score"}
    assert dict(declaration.arguments) == {"label": "price"}
    assert declaration.file == __file__
    assert declaration.line == cheaper_first.__code__.co_firstlineno


def test_without_parentheses_too(found):
    @moorage.filter
    def one(pod, nodes):
        return True

    @moorage.pre_filter
    def two(pod, nodes):
        return None

    @moorage.plugin
    class Three:
        def score(self, pod, nodes):
            return []

    assert [(d.name, sorted(d.parts)) for d in found] == [
        ("one", ["filter"]),
        ("two", ["pre_filter"]),
        ("Three", ["score"]),
    ]


def test_a_class_is_all_of_its_methods(found):
    @moorage.plugin(name="many", refresh_every=30, wakes_on="node-labels")
    class Many:
        def __init__(self, *, url="http://x", hosts=("a",), rate=1.5):
            pass

        def filter(self, pod, nodes):
            return True

        @staticmethod
        def score(pod, nodes):
            return []

        def pre_filter(self, pod, nodes):
            return None

        async def refresh(self):
            pass

    (declaration,) = found
    assert declaration.parts == {"filter", "score", "pre_filter", "refresh"}
    assert (declaration.refresh_every, declaration.wakes_on) == (30, ("node-labels",))
    assert dict(declaration.arguments) == {"url": "http://x", "hosts": ("a",), "rate": 1.5}
    assert declaration.file == __file__


class _Scores:
    def score(self, pod, nodes):
        return []


class _Fresh(_Scores):
    async def refresh(self):
        pass


class _Blocking(_Scores):
    def refresh(self):
        pass


class _Nothing:
    pass


class _NoPod:
    def score(self):
        return []


class _Needs(_Scores):
    def __init__(self, url):
        pass


class _Odd(_Scores):
    def __init__(self, url=None):
        pass


class _PreFilter:
    def pre_filter(self, pod, nodes):
        return None


def _two(pod, nodes):
    return True


async def _waits(pod, nodes):
    return True


def _one(pod):
    return True


def _third(pod, nodes, third):
    return True


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (lambda: moorage.score(weight=0)(_two), "weight must be a whole number from 1"),
        (lambda: moorage.score(weight=True)(_two), "weight must be a whole number"),
        (lambda: moorage.score(weight=1.5)(_two), "weight must be a whole number"),
        (lambda: moorage.score(name="a b")(_two), "'a b' is not a plugin's name"),
        (lambda: moorage.score(name="*")(_two), "is not a plugin's name"),
        (lambda: moorage.score(lambda pod, nodes: 0), "'<lambda>' is not a plugin's name"),
        (lambda: moorage.score(_waits), "must be a plain function"),
        (lambda: moorage.filter(_one), "must take a pod and nodes"),
        (lambda: moorage.filter(_third), "must take a pod and nodes"),
        (lambda: moorage.filter(wakes_on=["nodes"])(_two), "wakes_on: must be of node, .*, not 'nodes'"),
        (lambda: moorage.score(_Scores), "@moorage.score is for functions, not a class"),
        (lambda: moorage.plugin(_two), "@moorage.plugin is for classes, not a function"),
        (lambda: moorage.plugin(_Nothing), "none of the methods filter, pre_filter and score"),
        (lambda: moorage.plugin(_NoPod), r"_NoPod.score must take a pod and nodes"),
        (lambda: moorage.plugin(_Needs), "argument 'url' must have a default"),
        (lambda: moorage.plugin(_Odd), "argument 'url' must default to a text.*not None"),
        (lambda: moorage.plugin(_Blocking), "refresh must be an async function"),
        (lambda: moorage.plugin(_Fresh), "refresh_every must say"),
        (lambda: moorage.plugin(refresh_every=0.5)(_Fresh), "refresh_every must say"),
        (lambda: moorage.plugin(refresh_every=-1)(_Scores), "refresh_every must be a number of seconds"),
        (lambda: moorage.plugin(refresh_every=5)(_Scores), "there is no method refresh"),
        (lambda: moorage.plugin(refresh_every=5, pure=True)(_Fresh), "pure and refresh do not go together"),
        (lambda: moorage.plugin(pure=True)(_PreFilter), "pure and pre_filter do not go together"),
    ],
)
def test_what_cannot_work_is_refused_at_its_place(declare, text, found):
    with pytest.raises(DeclarationError, match=text) as raised:
        declare()
    assert raised.value.file == __file__
    assert str(raised.value).startswith(f"{__file__}:{raised.value.line}: ")
    assert raised.value.line > 0
    assert found == []


def test_one_function_is_one_plugin():
    @moorage.score
    def both(pod, nodes):
        return []

    with pytest.raises(DeclarationError, match="both is declared already"):
        moorage.filter(both)


def test_what_is_collected_is_nowhere_else(found):
    before = declared()
    with collecting() as inner:
        moorage.score(name="inner")(lambda pod, nodes: [])
    assert [d.name for d in inner] == ["inner"]
    assert found == []
    assert declared() == before


def test_the_package_is_cheap_to_import_and_says_what_it_has():
    code = (
        "import sys, moorage; assert 'numpy' not in sys.modules; moorage.score; assert 'numpy' not in sys.modules;"
        "assert set(moorage.__all__) <= set(dir(moorage)); [getattr(moorage, name) for name in moorage.__all__]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with pytest.raises(AttributeError, match="has no attribute 'scores'"):
        _ = moorage.scores
