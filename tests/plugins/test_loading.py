"""Where plugins are found: files, installed packages, what Kopf imported; and what is wrong with them, and where."""

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from moorage.core.profile import default_profile
from moorage.plugins import loading
from moorage.plugins.declare import collecting
from moorage.plugins.loading import PluginLoadError, load, load_declared, load_file

GOOD = """
import moorage

@moorage.score(weight=3)
def good(pod, nodes):
    return nodes.free("cpu")
"""


@pytest.fixture(autouse=True)
def _apart(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    with collecting():
        yield


@pytest.fixture
def write(tmp_path):
    def call(text, name="rules.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return call


def wrong(*files):
    """What is wrong with these files."""
    with pytest.raises(PluginLoadError) as raised:
        load(files)
    return raised.value.problems


def test_a_file_s_plugins_run_after_the_built_in_ones(write):
    found = load([write(GOOD)])
    assert [plugin.name for plugin in found.plugins] == ["good"]
    profile = default_profile(additions=found)
    assert [plugin.name for plugin in profile.plugins][-1] == "good"
    assert (profile.weight("good"), profile.weight("TaintToleration")) == (3, 3)
    assert bool(found)
    assert not load()


def test_a_file_may_import_its_neighbours(write):
    write("PRICE = 5\n", "our_prices_of_things.py")
    path = write("import our_prices_of_things\n" + GOOD)
    try:
        assert [d.name for d in load_file(path)] == ["good"]
    finally:
        sys.modules.pop("our_prices_of_things", None)


def test_a_plugin_may_be_imported_from_elsewhere(write):
    write(GOOD, "shared_rules_of_ours.py")
    path = write("from shared_rules_of_ours import good\n")
    try:
        assert [d.name for d in load_file(path)] == ["good"]
        assert [d.name for d in load_file(path)] == ["good"], "the module is there already"
    finally:
        sys.modules.pop("shared_rules_of_ours", None)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("import moorage\n\ndef (\n", 3, "SyntaxError: "),
        (
            "\nimport no_such_module_at_all\n",
            2,
            "ModuleNotFoundError: No module named 'no_such_module_at_all'",
        ),
        ("def f():\n    raise ValueError('bad')\n\nf()\n", 2, "ValueError: bad"),
        ("import sys\nsys.exit(4)\n", 2, "SystemExit: 4"),
        (GOOD.replace("weight=3", "weight=0"), 4, "weight must be a whole number"),
        (
            GOOD.replace("weight=3", "name='NodeAffinity'"),
            4,
            "'NodeAffinity' is the name of a built-in plugin",
        ),
        (GOOD.replace("weight=3", "name='DynamicResources'"), 4, "is the name of a plugin of kube-scheduler"),
        (GOOD.replace("weight=3", "name='EBSLimits'"), 4, "is the name of a plugin of kube-scheduler"),
        (GOOD.replace("weight=3", "name='PolicyNodes'"), 4, "names that begin so are those of policies"),
        (GOOD.replace("weight=3", "name='total'"), 4, "'total' stands for the sum of scores"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(write, text, line, reason):
    path = write(text)
    (problem,) = wrong(path)
    assert problem.startswith(f"{path}:{line}: {reason}") or (
        problem.startswith(f"{path}:{line}: ") and reason in problem
    )


def test_files_that_are_none(write, tmp_path):
    assert wrong(str(tmp_path / "missing.py")) == (
        f"{tmp_path}/missing.py: cannot be read: No such file or directory",
    )
    empty = write("import moorage\n", "empty.py")
    assert wrong(empty)[0].startswith(f"{empty}: declares no plugin")
    text = write(GOOD, "rules.txt")
    assert "its name must end in .py" in wrong(text)[0]


def test_a_class_that_cannot_be_made_is_told(write):
    path = write(
        "import moorage\n@moorage.plugin\nclass Bad:\n    def __init__(self):\n        raise OSError('no')\n"
        "    def score(self, pod, nodes):\n        return []\n"
    )
    (problem,) = wrong(path)
    assert problem.startswith(f"{path}:2: Bad() raised OSError: no")


def test_a_name_is_given_once_and_all_faults_are_told(write):
    one, two = write(GOOD, "one.py"), write(GOOD, "two.py")
    broken = write("1 +", "broken.py")
    problems = wrong(one, broken, two)
    assert len(problems) == 2
    assert problems[0].startswith(f"{broken}:1: SyntaxError")
    assert problems[1].startswith(f"{two}:4: there is a plugin 'good' already, at {one}:4")


def test_two_functions_of_one_name_in_one_file_are_told(write):
    (problem,) = wrong(write(GOOD + GOOD))
    assert "there is a plugin 'good' already" in problem


def test_what_somebody_else_imported_is_found(write, monkeypatch):
    monkeypatch.setattr("moorage.plugins.declare._lists", [[]])
    exec(compile(GOOD, "theirs.py", "exec"), {})  # noqa: S102
    assert [plugin.name for plugin in load_declared().plugins] == ["good"]


# -- installed packages --------------------------------------------------------------------------


@pytest.fixture
def install(monkeypatch):
    """Make entry points of modules with this source."""
    made: list[EntryPoint] = []
    monkeypatch.setattr(loading, "entry_points", lambda group: made if group == "moorage.plugins" else [])

    def call(source, *, attribute="", name="theirs"):
        module = types.ModuleType(f"pyplugins_of_{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        with collecting():
            exec(compile(source, "/pkg/rules.py", "exec"), vars(module))  # noqa: S102
        made.append(EntryPoint(name, module.__name__ + attribute, "moorage.plugins"))

    return call


def test_installed_packages_are_asked(install, write):
    install(GOOD.replace("good", "theirs"))
    assert [plugin.name for plugin in load([write(GOOD)]).plugins] == ["good", "theirs"]


def test_an_entry_point_may_name_one_plugin(install):
    install(GOOD + GOOD.replace("good", "other"), attribute=":other")
    assert [plugin.name for plugin in load().plugins] == ["other"]


def test_installed_plugins_can_be_turned_off(install, monkeypatch):
    install(GOOD)
    monkeypatch.setenv("MOORAGE_INSTALLED_PLUGINS", "off")
    assert load().plugins == ()


def test_a_package_that_cannot_be_used_is_named(install):
    install("x = 1\n", name="empty")
    install(GOOD, attribute=":nobody", name="gone")
    problems = wrong()
    assert problems[0].startswith("entry point empty of an installed package: declares no plugin")
    assert "entry point gone of an installed package: AttributeError" in problems[1]


def test_a_plugin_that_is_installed_and_given_counts_once(install, write):
    install(GOOD)
    (problem,) = wrong(write(GOOD))
    assert problem.startswith("/pkg/rules.py:4: there is a plugin 'good' already")
