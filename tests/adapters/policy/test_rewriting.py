"""What the library is given."""

import cel
import pytest

from moorage.adapters.policy.parsing import parse
from moorage.adapters.policy.rewriting import as_doubles, quantity_as_double


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("node.allocatable['cpu'] - 1", "node__allocatable['cpu'] - 1.0"),
        ("(1 + 2) * 3 - (4 - 5)", "(1.0 + 2.0) * 3.0 - (4.0 - 5.0)"),
        ("a.size() + 1 == 0x10", "double(size(v_a)) + 1.0 == 16.0"),
        ("pod.spec.containers[0].name == 'a'", "pod.spec.containers[0].name == 'a'"),
        ("a[size(a) - 1]", "v_a[int(double(size(v_a)) - 1.0)]"),
        ("a['x'][b]", "v_a['x'][v_b]"),
        ("7 % 4", "double(int(7.0) % int(4.0))"),
        ("int('3') / 2", "double(int('3')) / 2.0"),
        ("quantity('1.5Gi') > 1", "1610612736.0 > 1.0"),
        ("!(true && false) || -1 < 2", "!(true && false) || -1.0 < 2.0"),
        ("(true ? false : true) ? 1 : 2", "(true ? false : true) ? 1.0 : 2.0"),
        ("(a in b) == c", "v_a in v_b == v_c"),
        ("has(node.usage.cpu)", "has(node__usage.cpu)"),
        ("has(node.usage)", "true"),
        ("{1: 2, 'a': 3}", "{1: 2.0, 'a': 3.0}"),
        ("a.exists(pods, pods == 1)", "v_a.exists(v_pods, v_pods == 1.0)"),
    ],
)
def test_all_numbers_are_doubles(text, rewritten):
    assert as_doubles(parse(text)) == rewritten


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 - 2 - 3", -4.0),
        ("1 - (2 - 3)", 2.0),
        ("12 / 2 / 3", 2.0),
        ("12 / (2 / 4)", 24.0),
        ("5 / 2", 2.5),
        ("7 % 4 * 2", 6.0),
        ("-2 * -(3)", 6.0),
        ("true || false && false", True),
        ("(true || false) && false", False),
        ("1 < 2 == true", True),
        ("false ? 1 : true ? 2 : 3", 2.0),
        ("[1, 2, 3][1 + 1]", 3.0),
        ("[10, 20][size('a')]", 20.0),
        ("{'a': {1: 'x'}}['a'][1]", "x"),
        ("[1, 2, 3].filter(x, x % 2 == 1)", [1.0, 3.0]),
        ("[1, 2, 3].map(x, x > 1, x / 2)", [1.0, 1.5]),
        ("[1, 2].exists_one(x, x == 1)", True),
        ("2 in [1, 2]", True),
        ("string(2) + 'a'", "2a"),
        ("int('7') + size([1]) + double('0.5')", 8.5),
        (r"'a\'b'.size() == 3", True),
        ("r'\\d'.size() == 2", True),
    ],
)
def test_the_library_calculates_the_same(text, value):
    result = cel.evaluate(as_doubles(parse(text)))
    assert result == value
    assert not isinstance(result, int) or isinstance(result, bool)


@pytest.mark.parametrize(("text", "amount"), [("8", 8.0), ("500m", 0.5), ("8Gi", 8.0 * 2**30), (2.0, 2.0)])
def test_quantities(text, amount):
    assert quantity_as_double(text) == amount
