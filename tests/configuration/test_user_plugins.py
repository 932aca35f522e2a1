"""Users' plugins in a KubeSchedulerConfiguration: on by default, with weights, turned off, with arguments."""

import pytest

import moorage
from moorage.configuration.read import ConfigError, read_config
from moorage.core.framework.points import Point
from moorage.core.profile import score_plugins
from moorage.plugins.declare import collecting
from tests.kit.user_plugins import user_plugins


@pytest.fixture
def ours():
    with collecting():

        @moorage.score(weight=4)
        def cheap(pod, nodes, *, label="price", factor=1.0, floor=0, strict=False, zones=("a",)):
            return []

        @moorage.filter
        def picky(pod, nodes):
            return True

        @moorage.plugin(name="Both")
        class Both:
            def __init__(self, *, url="http://x"):
                if not url.startswith("http"):
                    raise ValueError("url must be of http")

            def score(self, pod, nodes):
                return []

            def filter(self, pod, nodes):
                return True

    return user_plugins(cheap, picky, Both)


def profile(ours, **fields):
    """The one profile that these fields make."""
    (found,) = read_config({"profiles": [fields]}, ours).profiles.values()
    return found


def plugin(found, name):
    return next(plugin for plugin in found.plugins if plugin.name == name)


def problems(ours, **fields):
    with pytest.raises(ConfigError) as raised:
        profile(ours, **fields)
    return raised.value.problems


def test_they_are_on_unless_turned_off(ours):
    for found in (*read_config(None, ours).profiles.values(), profile(ours)):
        assert [p.name for p in found.plugins][-3:] == ["cheap", "picky", "Both"]
        assert (found.weight("cheap"), found.weight("Both")) == (4, 1)


def test_one_point_can_be_turned_off(ours):
    found = profile(ours, plugins={"score": {"disabled": [{"name": "cheap"}, {"name": "Both"}]}})
    assert (found.weight("cheap"), found.weight("Both")) == (0, 0)
    assert "Both" in [p.name for p in found.plugins], "it filters still"
    found = profile(ours, plugins={"filter": {"disabled": [{"name": "Both"}]}})
    assert "Both" not in found.points[Point.FILTER]
    assert "picky" in found.points[Point.FILTER]


def test_all_of_one_can_be_turned_off(ours):
    found = profile(ours, plugins={"multiPoint": {"disabled": [{"name": "Both"}, {"name": "cheap"}]}})
    assert [p.name for p in found.plugins][-1] == "picky"


def test_a_weight_can_be_set(ours):
    found = profile(ours, plugins={"score": {"enabled": [{"name": "cheap", "weight": 9}]}})
    assert found.weight("cheap") == 9
    found = profile(ours, plugins={"multiPoint": {"enabled": [{"name": "cheap", "weight": 8}]}})
    assert found.weight("cheap") == 8


def test_one_alone_can_be_turned_on(ours):
    plugins = {
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "cheap"}]},
        "preScore": {"disabled": [{"name": "*"}], "enabled": [{"name": "cheap"}]},
    }
    found = profile(ours, plugins=plugins)
    assert {p.name for p in found.plugins if found.weight(p.name) and p.name in score_plugins(ours)} == {
        "cheap"
    }


def test_arguments_have_the_types_of_their_defaults(ours):
    args = {"label": "cost", "factor": 2, "floor": 3, "strict": True, "zones": ["b", "c"]}
    found = profile(ours, pluginConfig=[{"name": "cheap", "args": args}])
    assert dict(plugin(found, "cheap").arguments) == {**args, "zones": ("b", "c"), "factor": 2.0}
    assert dict(plugin(profile(ours), "cheap").arguments)["label"] == "price"


def test_the_same_arguments_give_the_same_plugin(ours):
    """So what a stateful one has fetched is not lost when the file is read again."""
    one, same, other = (
        profile(ours, pluginConfig=[{"name": "Both", "args": {"url": url}}])
        for url in ("http://y", "http://y", "http://z")
    )
    assert plugin(one, "Both") is plugin(same, "Both")
    assert plugin(one, "Both") is not plugin(other, "Both")
    assert one.decides_like(same)
    assert not one.decides_like(other)
    assert plugin(profile(ours), "Both") is plugin(profile(ours), "Both")


@pytest.mark.parametrize(
    ("name", "args", "field", "text"),
    [
        ("cheap", {"label": 3}, "label", "must be a string"),
        ("cheap", {"factor": "2"}, "factor", "must be a number"),
        ("cheap", {"factor": True}, "factor", "must be a number"),
        ("cheap", {"factor": float("nan")}, "factor", "must be a number"),
        ("cheap", {"floor": 1.5}, "floor", "must be"),
        ("cheap", {"strict": "yes"}, "strict", "must be"),
        ("cheap", {"zones": "b"}, "zones", "must be"),
        ("cheap", {"lable": "x"}, "lable", "is not supported"),
        ("picky", {"x": 1}, "x", "is not supported"),
        ("Both", {"url": "ftp://x"}, "", "plugin Both does not take this: ValueError: url must be of http"),
    ],
)
def test_wrong_arguments_are_named(ours, name, args, field, text):
    ((where, message),) = problems(ours, pluginConfig=[{"name": name, "args": args}])
    path = "profiles[0].pluginConfig[0].args"
    assert where == (f"{path}.{field}" if field else path)
    assert text in message


def test_names_that_nobody_has_are_wrong_still(ours):
    ((_, message),) = problems(ours, plugins={"score": {"enabled": [{"name": "cheep"}]}})
    assert message == "plugin 'cheep' is not supported"
    ((_, message),) = problems(ours, plugins={"filter": {"enabled": [{"name": "cheap"}]}})
    assert message == "plugin 'cheap' has no part in filter"


def test_the_names_whose_weights_can_be_set(ours):
    assert score_plugins(ours) - score_plugins() == {"cheap", "Both"}
    assert "TaintToleration" in score_plugins()
    assert "NodeName" not in score_plugins()
