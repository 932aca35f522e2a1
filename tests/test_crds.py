"""The CRD files: as their source has them, and each field explained."""

import runpy
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "crds.py"))
FILES = dict(SCRIPT["rendered"](SCRIPT["SOURCE"].read_text()))
BUDGETED = {"array": "maxItems", "string": "maxLength"}


def schema_of(name):
    (version,) = yaml.safe_load(FILES[name])["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def fields(schema, path=""):
    """The path and the schema of each field and of what is in lists and maps."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
    for key, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield f"{path}{suffix}", schema[key]
            yield from fields(schema[key], f"{path}{suffix}")


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_up_to_date(name):
    assert (ROOT / "crds" / name).read_text() == FILES[name], "run make crds"


def test_there_is_no_other_file():
    assert {path.name for path in (ROOT / "crds").iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_each_field_has_a_description_that_ends_like_a_sentence(name):
    wrong = [
        path
        for path, field in fields(schema_of(name))
        if not path.endswith(("[]", "{}", ".metadata", ".kind"))
        and not field.get("description", "").endswith(".")
    ]
    assert wrong == []


@pytest.mark.parametrize("name", FILES)
def test_each_list_and_text_of_the_spec_has_a_bound(name):
    unbounded = [
        path
        for path, field in fields(schema_of(name)["properties"]["spec"])
        if "enum" not in field and BUDGETED.get(field.get("type"), "type") not in field
    ]
    assert [path for path in unbounded if not path.endswith(".max")] == []


def test_the_two_kinds_differ_in_the_namespace_selector_only():
    namespaced, cluster = (
        dict(fields(schema_of(name)["properties"]["spec"])) for name in sorted(FILES, reverse=True)
    )
    del namespaced[".selector"], cluster[".selector"]
    extra = {
        path: cluster.pop(path) for path in list(cluster) if path.startswith(".selector.namespaceSelector")
    }
    assert ".selector.namespaceSelector" in extra
    assert cluster == namespaced


def test_says_what_is_out_of_date(tmp_path, monkeypatch, capsys):
    main = SCRIPT["main"]
    (tmp_path / "crds").mkdir()
    monkeypatch.setitem(main.__globals__, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["crds.py", "--check"])
    assert main() == 1
    assert "crds/schedulingpolicies.yaml: out of date" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["crds.py"])
    assert main() == 0
    monkeypatch.setattr("sys.argv", ["crds.py", "--check"])
    assert main() == 0
