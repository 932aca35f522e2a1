"""Images on nodes as columns."""

import pytest

from moorage.core.snapshot.images import ImageColumns
from tests.kit.models import make_node

NODES = [make_node("a", images={"app": 9}), None, make_node("c", images={"app": 4, "db": 7})]


@pytest.fixture
def images():
    """Columns not asked for anything yet."""
    return ImageColumns()


def asked(images, name, nodes=NODES):
    """(rows, size)."""
    present, size = images.column(name, nodes, 4)
    return present.tolist(), size


def test_the_size_is_the_first_row_s(images):
    assert asked(images, "app") == ([True, False, True, False], 9)
    assert asked(images, "db") == ([False, False, True, False], 7)
    assert asked(images, "unknown") == ([False] * 4, 0)


def test_a_column_is_kept_up_to_date(images):
    asked(images, "app")
    images.set(0, make_node("a"))
    assert asked(images, "app", []) == ([False, False, True, False], 4)
    images.set(2, None)
    images.set(3, make_node("d", images={"app": 5}))
    assert asked(images, "app", []) == ([False, False, False, True], 5)
    images.set(3, make_node("d", images={"app": 6}))
    assert asked(images, "app", []) == ([False, False, False, True], 6)


def test_columns_are_built_anew_when_the_table_grows(images):
    asked(images, "app")
    images.grow()
    assert images.column("app", NODES, 8)[0].size == 8


def test_only_so_many_are_kept(images, monkeypatch):
    monkeypatch.setattr(ImageColumns, "_KEPT", 2)
    for name in ("one", "two", "app"):
        asked(images, name)
    assert list(images._present) == ["two", "app"]
    assert asked(images, "app") == ([True, False, True, False], 9)
