"""`questions`: from a released file or a language model to a reviewed question file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import evaluator.commands.questions_write as writing
from benchmarks.errors import SubmitterError
from evaluator.commands.questions import app
from evaluator.scorers.questions.lines import read_lines, write_records
from evaluator.scorers.questions.question import Provenance, Question
from evaluator.scorers.questions.writers.by_name import Helpers
from tests.evaluator.scorers.questions.fakes import CannedText, yes_no

P = "a white cat"
CAT = yes_no(P, "1", "Is there a cat?")
WHITE = yes_no(P, "2", "Is it [very] white?", "1")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def failed(result: Result) -> SubmitterError:
    assert isinstance(result.exception, SubmitterError), result.output
    return result.exception


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "q.jsonl"
    write_records(path, [CAT, WHITE])
    return path


def test_check_lists_every_problem_with_file_and_line(file: Path) -> None:
    assert run("check", file).exit_code == 0
    write_records(file, [WHITE, CAT, yes_no(P, "3", "?", "9")])
    with file.open("ab") as out:
        out.write(b"{}\n")
    result = run("check", file)
    assert failed(result).code == "bad_questions"
    assert f"{file}:1: warning [forward_edge]" in result.output
    assert f"{file}:3: error [unknown_parent]" in result.output
    assert f"{file}:4: error [bad_line]" in result.output
    assert "1 prompts, 3 questions: 0 accepted, 0 rejected; 2 errors, 1 warnings." in result.output
    found = json.loads(run("check", file, "--json").output)
    assert [problem["line"] for problem in found] == [1, 3, 4]


def test_show_prints_questions_below_those_they_depend_on(file: Path) -> None:
    lines = run("show", file, P).output.splitlines()
    assert lines[0] == P
    assert "1. Is there a cat? (yes, no) -> yes" in lines[1]
    assert "2. Is it [very] white?" in lines[2]
    assert lines[2].index("2.") > lines[1].index("1.")
    assert "Did you mean 'a white cat'?" in str(failed(run("show", file, "a white cap")))


def test_a_review_marks_a_question_and_can_be_taken_back(file: Path) -> None:
    assert run("review", file, P, "reject", "--question", "2").exit_code == 0
    assert "[rejected]" in run("show", file, P).output
    assert run("review", file, P, "accept", "--question", "1").exit_code == 0
    assert "1 accepted, 1 rejected" in run("check", file).output
    assert run("review", file, P, "clear").exit_code == 0
    assert [line.record for line in read_lines(file)[0]] == [CAT, WHITE]
    assert failed(run("review", file, P, "accept", "--question", "7")).code == "unknown_question"


def test_a_release_is_imported_with_the_prompts_own_text(tmp_path: Path) -> None:
    released = tmp_path / "ts2.csv"
    released.write_text(
        "id,prompt,question_id,parent_question_id,question,choices,answer\n"
        "0,a cat a dog,0,-1,Cat?,yes|no,yes\n"
        "1,a cow,0,0,Cow?,yes|no,yes\n",
        encoding="utf-8",
    )
    prompts = tmp_path / "metadata.csv"
    prompts.write_text('id,target_prompt\n0,"a cat, a dog"\n1,a cow\n', encoding="utf-8")
    out = tmp_path / "out.jsonl"
    result = run("import", "ts2", released, "--prompts", prompts, "--out", out)
    assert result.exit_code == 0
    assert f"{released}:3: error [cyclic_questions]" in result.output
    assert [line.record.prompt for line in read_lines(out)[0]] == ["a cat, a dog"]
    assert failed(run("import", "ts2", released, "--out", out)).code == "file_exists"
    again = run("import", "ts2", released, "--out", released, "--force")
    assert failed(again).code == "output_is_input"


STATEMENTS = "1 | entity - whole (cat)\n2 | attribute - color (cat, white)"
ASKED = "1 | Is there a cat?\n2 | Is it white?"


def test_write_makes_a_file_that_a_second_run_leaves_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CannedText(STATEMENTS, ASKED, "1 | 0\n2 | 1", "nothing")
    given = (Helpers(model=model), Provenance(writer="dsg", model="canned", wording="assay-1"))
    monkeypatch.setattr(writing, "_helpers", lambda *_, **__: given)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(f"{P}\n\na dog\n{P}\n", encoding="utf-8")
    out = tmp_path / "q.jsonl"
    arguments = ("write", out, "--writer", "dsg", "--prompts", prompts, "--model", "canned")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "2 questions about 1 prompts written, 0 prompts were there, 1 got none." in result.output
    assert "'a dog': no statements" in result.output
    records = [line.record for line in read_lines(out)[0]]
    assert all(isinstance(record, Question) and record.provenance for record in records)
    content = out.read_bytes()
    model.answers = ["still nothing"]
    assert "1 prompts were there, 1 got none" in run(*arguments).output
    assert out.read_bytes() == content


def test_write_wants_prompts_of_one_kind_and_a_model(tmp_path: Path) -> None:
    assert run("write", tmp_path / "q.jsonl", "--writer", "dsg").exit_code == 2
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("prompt_id,prompt\n1,a cat\n", encoding="utf-8")
    result = run("write", tmp_path / "q.jsonl", "--writer", "dsg", "--prompts", prompts)
    assert failed(result).code == "writer_needs_model"
    folder = tmp_path / "nothing"
    folder.mkdir()
    with_model = run(
        "write", tmp_path / "q.jsonl", "--writer", "dsg", "--prompts", prompts, "--model", folder
    )
    assert failed(with_model).code.startswith("checkpoint_")
