"""`moorage decide`: lines in, lines out."""

import io
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from moorage.cli import decide as module
from moorage.cli import main
from moorage.cli.decide import read_cases
from tests.kit.builders import make_node, make_pod
from tests.kit.extender import FakeExtender, keep

CASE = json.dumps({"id": 1, "objects": [make_node("a")], "pods": [make_pod("p")]})


def answers(text):
    result = CliRunner().invoke(main, ["decide"], input=text)
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_one_answer_a_line_in_the_order_of_the_cases():
    found = answers(f"{CASE}\n\n{CASE.replace('1', '2', 1)}\n")
    assert [(answer["id"], answer["results"][0]["chosen"]) for answer in found] == [(1, "a"), (2, "a")]


def test_a_broken_line_is_answered_and_the_run_goes_on():
    found = answers(f'{CASE}\n{{"id": 2,\n[]\n{{"id": 3, "pods": 5}}\n{CASE}\n')
    assert [answer["id"] for answer in found] == [1, None, None, 3, 1]
    assert found[1]["error"].startswith("not JSON: ")
    assert found[2]["error"] == "a case must be a JSON object"
    assert found[4]["results"][0]["chosen"] == "a"


def test_a_broken_first_line_does_not_swallow_the_others():
    found = answers(f"{{broken\n{CASE}\n")
    assert [answer["id"] for answer in found] == [None, 1]


def test_indented_json_is_read_as_a_sequence_of_values():
    text = json.dumps(json.loads(CASE), indent=2)
    assert [answer["id"] for answer in answers(f"{text}\n{text}")] == [1, 1]


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_nothing_in_nothing_out(text):
    assert answers(text) == []


def test_a_file(tmp_path):
    path = tmp_path / "cases.ndjson"
    path.write_text(CASE)
    result = CliRunner().invoke(main, ["decide", str(path)])
    assert json.loads(result.stdout)["id"] == 1


def test_a_flaw_of_ours_does_not_end_the_run(monkeypatch):
    def fail(case, converter, **options):
        raise RuntimeError("oops")

    monkeypatch.setattr(module, "decide_case", fail)
    (answer,) = answers(CASE)
    assert answer == {"id": 1, "error": "internal error: RuntimeError: oops"}


def test_the_example_in_the_help_works():
    text = CliRunner().invoke(main, ["decide", "--help"]).output
    example = text[text.index("{") : text.rindex("}") + 1]
    (answer,) = answers(example)
    assert answer["results"][0]["chosen"] == "a"


def test_each_line_is_answered_at_once_so_a_process_can_be_kept_open():
    command = [sys.executable, "-m", "moorage", "decide"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(CASE.encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_reader_that_goes_away_is_no_error():
    command = [sys.executable, "-m", "moorage", "decide"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(CASE.encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        try:
            process.stdin.write((CASE + "\n").encode() * 50)
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.wait(10)
        assert b"Traceback" not in process.stderr.read()


def test_what_is_left_after_the_first_broken_line_is_read_line_by_line():
    stream = io.BytesIO(b"{\n1\nx\n2\n")
    values = list(read_cases(stream))
    assert [value for value in values if isinstance(value, int)] == [1, 2]
    assert len(values) == 4


def test_extenders_are_an_error_unless_they_may_be_called():
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a"},
        "status": {"allocatable": {"cpu": "2", "pods": "10"}},
    }
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}}
    with FakeExtender(filter=keep()) as fake:
        config = {"extenders": [{"urlPrefix": fake.url, "filterVerb": "filter"}]}
        case = json.dumps({"id": 1, "objects": [node], "pods": [pod], "config": config})
        refused = json.loads(CliRunner().invoke(main, ["decide"], input=case).output)
        assert refused["error"] == "config: extenders: are called over the network, which needs --allow-http"
        assert fake.asked == []
        (result,) = json.loads(CliRunner().invoke(main, ["decide", "--allow-http"], input=case).stdout)[
            "results"
        ]
        assert result["feasible"] == []
        assert [body["Pod"]["metadata"]["name"] for body in fake.bodies("filter")] == ["web"]
