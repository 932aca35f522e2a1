"""Reading manifests."""

import io

import pytest

from moorage.adapters.kube.validate import Problem
from moorage.cli.cluster import Source
from moorage.cli.manifests import find, read


@pytest.fixture
def file(tmp_path):
    def write(text, name="a.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def everything(path):
    problems: list[Problem] = []
    return [(obj, source.document) for obj, source in read(path, problems)], [str(p) for p in problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n", [({"a": 1}, 1)]),
        ("a: 1\n---\nb: 2\n", [({"a": 1}, 1), ({"b": 2}, 2)]),
        ("---\na: 1\n---\nb: 2\n", [({"a": 1}, 1), ({"b": 2}, 2)]),
        ("# comment\n%YAML 1.2\n---\na: 1\n", [({"a": 1}, 1)]),
        ("a: 1\n---\n# nothing\n---\n---\nb: 2\n", [({"a": 1}, 1), ({"b": 2}, 4)]),
        ("\n" * 5000 + "a: 1\n", [({"a": 1}, 1)]),
        ("--- {a: 1}\n", [({"a": 1}, 1)]),
        ("a: |\n  ---\n  text\n", [({"a": "---\ntext\n"}, 1)]),
        ("a: ---x\n", [({"a": "---x"}, 1)]),
        ("", []),
        ("# only a comment\n", []),
        ('{"a": 1}', [({"a": 1}, 1)]),
        ('[{"a": 1}]', [([{"a": 1}], 1)]),
        ("{a: 1}", [({"a": 1}, 1)]),  # YAML that looks like JSON at first
        ("\ufeffa: 1\n", [({"a": 1}, 1)]),
        ("a: 2026-01-05T10:00:00Z\nb: 2026-01-05\n", [({"a": "2026-01-05T10:00:00Z", "b": "2026-01-05"}, 1)]),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}\n", [({"a": {"b": 1}, "c": {"b": 1, "d": 2}}, 1)]),
    ],
)
def test_documents(file, text, expected):
    assert everything(file(text)) == (expected, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "not YAML: line 2: "),
        ("a: 1\n\n---\nb: 2\n  c: 3\n", "document 2: not YAML: line 5: "),
        ("a: 1\nb: 2\na: 3\n", "document 1: not YAML: line 3: key 'a' is given twice"),
        ("x:\n  a: 1\n  a: 3\n", "document 1: not YAML: line 3: key 'a' is given twice"),
        ("a: !!python/object:os.system {}\n", "document 1: not YAML: line 1: "),
        ("a: *nobody\n", "document 1: not YAML: line 1: found undefined alias"),
        (b"a: \xff\n", "is not UTF-8 text"),
        ("a: \x00\n", "document 1: not YAML: "),
        ("a: " + "9" * 5000 + "\n", "document 1: cannot be read: "),
    ],
)
def test_what_is_not_yaml_is_told_with_document_and_line(file, text, message):
    path = file(text)
    _, problems = everything(path)
    assert len(problems) == 1
    assert problems[0].startswith(path)
    assert message in problems[0]


def test_one_broken_document_does_not_hide_the_others(file):
    objects, problems = everything(file("a: 1\n---\nb: [\n---\nc: 3\n---\nd: {\n"))
    assert objects == [({"a": 1}, 1), ({"c": 3}, 3)]
    assert [problem.split(":")[0].split(", ")[-1] for problem in problems] == ["document 2", "document 4"]


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n---\nb: [\n")))
    problems: list[Problem] = []
    assert list(read("-", problems)) == [({"a": 1}, Source("standard input", 1))]
    assert str(problems[0]).startswith("standard input, document 2: not YAML")


def test_a_file_that_is_not_there():
    assert everything("/nowhere/x.yaml") == ([], ["/nowhere/x.yaml: No such file or directory"])


def test_a_folder_means_the_manifests_below_it(tmp_path):
    for name in ("b.yml", "a.yaml", "sub/c.json", "notes.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    problems: list[Problem] = []
    found = list(find([str(tmp_path), "x.yaml", "-"], problems))
    assert found == [str(tmp_path / name) for name in ("a.yaml", "b.yml", "sub/c.json")] + ["x.yaml", "-"]
    assert problems == []


def test_an_empty_folder_is_a_mistake(tmp_path):
    problems: list[Problem] = []
    assert list(find([str(tmp_path)], problems)) == []
    assert str(problems[0]) == f"{tmp_path}: there are no .yaml, .yml or .json files in this folder"
