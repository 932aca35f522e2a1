"""Pictures of clusters: whole, harmless, and of a size."""

from dataclasses import replace

import pytest

from moorage.cli.picture import (
    BARS,
    bars_of,
    candidates_section,
    cluster_section,
    funnel_section,
    page,
    rows_table,
)
from tests.kit.builders import read_node, read_pod
from tests.kit.html import Page

EVIL = '<script>alert("1")</script>&amp;\'"'


def test_nothing_is_run_and_nothing_is_fetched():
    html = page("t", ["lead"], [cluster_section(bars_of([read_node("a")], [], []))])
    found = Page(html)
    assert not {"script", "link", "img", "iframe", "object"} & found.tags.keys()
    assert not {"src", "href", "onclick", "onload", "style"} & found.attributes
    assert "default-src 'none'" in html
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html


def test_names_are_only_text():
    node = replace(read_node("a"), name=EVIL)
    pod = replace(read_pod("p", cpu="1"), node_name=EVIL)
    html = page(
        EVIL,
        [EVIL],
        [
            rows_table((EVIL,), [(EVIL,)]),
            candidates_section({EVIL: {EVIL: 3, "total": 3}}, EVIL),
            funnel_section(1, [(EVIL, 1, 0, EVIL)]),
            cluster_section(bars_of([node], [], [pod], {EVIL: EVIL})),
        ],
    )
    found = Page(html)
    assert "script" not in found.tags
    assert found.text.count(EVIL) >= 9


def test_what_comes_and_what_goes():
    nodes = [read_node("a"), read_node("b"), read_node("c")]
    p, q = read_pod("p", cpu="1", node="a"), read_pod("q", cpu="2", node="b")
    bars = bars_of(nodes, [p], [q])
    assert [(bar.node.name, bar.changed) for bar in bars] == [("a", True), ("b", True), ("c", False)]
    html = cluster_section(bars)
    assert "1 → 0 of 4" in html
    assert "0 → 2 of 4" in html
    assert html.count('class="new"') == 3  # cpu and pods of b, and the legend
    assert html.count('class="gone"') == 3
    assert "before and after" in html
    assert "before and after" not in cluster_section(bars_of(nodes, [p], [p]))


def test_candidates_by_score():
    scores = {"a": {"X": 1, "total": 1}, "b": {"X": 9, "total": 9}, "c": {"X": 5, "total": 5}}
    html = candidates_section(scores, "b")
    assert html.index("b ◀ chosen") < html.index("<td>c") < html.index("<td>a")
    assert 'class="s9"' in html
    assert 'class="s0"' in html
    assert candidates_section({}, None) == ""


def test_a_funnel_gets_narrower():
    html = funnel_section(4, [("First", 1, 3, "1 no"), ("Second", 3, 0, "3 never")])
    assert [f'width="{width:.1f}"' in html for width in (300, 225, 0)] == [True, True, True]


@pytest.mark.parametrize("number", [0, 1, 81])
def test_any_number_of_nodes(number):
    Page(page("t", [], [cluster_section(bars_of([read_node(f"n{i}") for i in range(number)], [], []))]))


def test_five_thousand_nodes_are_one_page_that_opens():
    nodes = [read_node(f"node-{i:04}.some.zone.example.com") for i in range(5000)]
    pods = [read_pod(f"p{i}", cpu="1", node=nodes[i % 5000].name) for i in range(10_000)]
    html = page("t", [], [cluster_section(bars_of(nodes, pods[:9000], pods))])
    found = Page(html)
    assert found.tags["title"] == 5001  # one for each node on the map, and the page's
    assert found.tags["tr"] == BARS + 1
    assert len(html) < 1_500_000


def test_long_tables_are_cut():
    found = Page(rows_table(("a",), [(str(i),) for i in range(500)], most=7))
    assert found.tags["tr"] == 9
    assert "… and 493 more" in found.text
