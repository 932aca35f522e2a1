"""The tree keeps the shape that docs/architecture.md describes."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "operator" / "moorage"
CORE = PACKAGE / "core"

# Files of the core without a test of their own, each with the reason.
UNTESTED: dict[str, str] = {
    "framework/post_filter.py": "values and a Protocol only; plugins/test_default_preemption.py puts them to use",
    "model/cluster_event.py": "names only; cache/test_node_changes.py and test_pod_changes.py say what they mean",
}


def test_operator_is_a_source_root_and_no_package():
    """`operator/__init__.py` would shadow the standard library's `operator`, a loose module any other name."""
    entries = {entry.name for entry in (ROOT / "operator").iterdir() if entry.name != "__pycache__"}
    assert entries == {"moorage"}


def test_every_folder_of_the_package_is_a_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_core_file_has_its_test():
    """`core/queue/backoff.py` has `tests/core/queue/test_backoff.py`, so a reader knows where to look."""
    files = [path.relative_to(CORE) for path in sorted(CORE.rglob("*.py")) if path.name != "__init__.py"]
    assert [str(file) for file in files if str(file) not in UNTESTED and not its_test(file).exists()] == []


def test_no_reason_is_given_for_a_file_that_is_gone_or_tested():
    for file in UNTESTED:
        assert (CORE / file).exists()
        assert not its_test(Path(file)).exists()


def its_test(file):
    return ROOT / "tests" / "core" / file.parent / f"test_{file.name}"
