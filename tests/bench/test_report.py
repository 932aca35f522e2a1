"""Medians, ratios, tables and the chart, from runs that were made up."""

import json
import xml.etree.ElementTree as ET

import pytest

from tests.bench import report, summary
from tests.bench.chart import Bars, draw

MACHINE = {
    "processors": 2,
    "model": "some",
    "memory_gib": 8.0,
    "python": "3.11.9",
    "numpy": "2.2",
    "kubernetes": "v1.37.2",
}


def made_up(contestant, round_number, seconds, workload="basic", **more):
    """A run of a thousand pods."""
    usage = {"cpu_seconds": 4.0, "memory_mib": 150.0}
    telling = {"written": 1000, "dropped": 0, "mean_lag": 0.5, "p99_lag_at_most": 1.0, "longest_turn": 0.01}
    return {
        "round": round_number,
        "workload": workload,
        "contestant": contestant,
        "nodes": 5000,
        "pods": 1000,
        "seconds": seconds,
        "from_start": seconds + 3,
        "usage": usage,
        "settled": usage,
        "latency": None,
        "placement": {"nodes_used": 800, "most": 3, "cpu_stdev": 0.21},
        "evicted": 0,
        "events": {"scheduled": 1000, "behind": 2.0},
        "telling": telling if contestant == "moorage" else None,
        "load": 0.5,
        **more,
    }


RUNS = [
    made_up("moorage", 0, 1.0),
    made_up("kube-scheduler", 0, 4.0),
    made_up("bind-only", 0, 0.5),
    made_up("kube-scheduler", 1, 10.0),  # the machine was slow
    made_up("moorage", 1, 5.0),
    made_up("kube-scheduler", 2, 4.0),
    made_up("moorage", 2, 1.0),
]


@pytest.fixture
def written(tmp_path):
    """Writes a file as ``compare`` does."""

    def write(runs, name="a.json", machine=MACHINE):
        file = tmp_path / name
        file.write_text(json.dumps({"machine": machine, "runs": runs}))
        return file

    return write


def test_the_ratio_is_the_median_of_the_rounds(written):
    """Rounds give 4, 2 and 4; the medians alone would give 4, too, a round's outlier 2.5 by means."""
    measured = summary.read([written(RUNS)])
    assert measured.ratio("basic", summary.rate) == 4
    assert measured.median("basic", "kube-scheduler", summary.rate) == 250
    assert measured.share_of_limit("basic") == 0.5


def test_rounds_of_different_files_are_not_compared(written):
    """Round 0 of one day has nothing to do with round 0 of another."""
    files = [written(RUNS[:1], "a.json"), written(RUNS[1:2], "b.json")]
    measured = summary.read(files)
    assert str(measured.ratio("basic", summary.rate)) == "nan"
    assert measured.median("basic", "moorage", summary.rate) == 1000


def test_a_failed_run_is_told_and_left_out(written):
    """What was not bound has no rate."""
    lost = {"round": 1, "workload": "basic", "contestant": "moorage", "error": "TimeoutError: 3 of 9\nmore"}
    measured = summary.read([written([*RUNS[:2], lost])])
    assert measured.ratio("basic", summary.rate) == 4
    assert "- basic, moorage, round 2: TimeoutError: 3 of 9\n" in report.text(measured)


def test_files_of_two_machines_are_refused(written):
    """Their figures do not belong into one table."""
    other = written(RUNS, "b.json", {**MACHINE, "processors": 64})
    with pytest.raises(ValueError, match=r"b\.json: measured on another machine"):
        summary.read([written(RUNS), other])


@pytest.mark.parametrize("text", ["", "[]", '{"runs": []}', '{"machine": {}, "runs": []}'])
def test_what_is_no_result_is_refused(tmp_path, text):
    """With the file's name, if it is the file's fault."""
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"a\.json: not a file of compare|no runs"):
        summary.read([file])


def test_every_table_row_has_as_many_cells_as_its_head(written):
    """A pipe too many, and the page shows no table."""
    latency = {"p50": 4.0, "p90": 9.0, "p99": 20.0}
    paced = [made_up(who, 0, 30.0, "latency", latency=latency) for who in ("moorage", "kube-scheduler")]
    text = report.text(summary.read([written([*RUNS, *paced])]))
    assert "| 100 pods/s arriving | 5,000 | 1,000 | Moorage | 4.0 | 9.0 | 20.0 |" in text
    for table in text.split("\n\n"):
        widths = {line.count("|") for line in table.splitlines() if line.startswith("|")}
        assert len(widths) <= 1, table


def test_what_is_lost_on_a_large_cluster_is_told(written):
    """Of 1,000 pods a second 800 are left."""
    sizes = {"basic-1000": 1.0, "basic": 1.1, "basic-15000": 1.25}
    runs = [made_up("moorage", 0, seconds, name) for name, seconds in sizes.items()]
    text = report.text(summary.read([written(runs)]))
    assert "| Pods all alike | Moorage | – | 1,000 | 909 | 800 | 20 |" in text


def test_the_page_keeps_what_is_around_the_results(written, tmp_path):
    """Written twice, the results are there once."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    for _ in range(2):
        report.write([written(RUNS)], page)
    text = page.read_text()
    assert text.startswith(f"before\n{report.BEGIN}\n")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text
    assert text.count("### Throughput") == 1
    assert "![Throughput](page.svg)" in text
    assert "4.0×" in (tmp_path / "page.svg").read_text()


def test_a_page_without_marks_is_refused(written, tmp_path):
    """Nothing is overwritten by guess."""
    page = tmp_path / "page.md"
    page.write_text("all mine\n")
    with pytest.raises(ValueError, match=r"page\.md: no <!-- results: begin"):
        report.write([written(RUNS)], page)
    assert page.read_text() == "all mine\n"


def test_bars_are_as_long_as_their_values_say():
    """On one scale, and none where nothing was measured."""
    groups = [Bars("a < b", (100.0, 50.0), "2×"), Bars("c", (25.0, float("nan")), "–")]
    root = ET.fromstring(draw("title", ("x", "y"), groups, "pods/s"))  # noqa: S314 - it is our own
    space = "{http://www.w3.org/2000/svg}"
    bars = [float(each.attrib["width"]) for each in root.iter(f"{space}rect")][3:]
    assert [width / bars[0] for width in bars] == [1, 0.5, 0.25]
    assert "a < b" in [each.text for each in root.iter(f"{space}text")]
