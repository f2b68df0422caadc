"""`questions`: from a released file or a language model to a reviewed question file."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import evaluator.commands.questions as writing
from evaluator.scorers.questions.files import Provenance, Question, read_lines, write_records
from evaluator.scorers.questions.instructions import WORDING
from evaluator.scorers.questions.writers import Helpers
from tests.evaluator.commands import submitting as command
from tests.evaluator.commands.submitting import code_of, typed
from tests.evaluator.scorers.questions.fakes import CannedText, yes_no

P = "a white cat"
CAT = yes_no(P, "1", "Is there a cat?")
WHITE = yes_no(P, "2", "Is it [very] white?", "1")


said = partial(command.said, "questions")


def refused(code: str, *words: object) -> str:
    return command.refused(code, "questions", *words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "q.jsonl"
    write_records(path, [CAT, WHITE])
    return path


def test_check_lists_every_problem_with_file_and_line(file: Path) -> None:
    said("check", file)
    write_records(file, [WHITE, CAT, yes_no(P, "3", "?", "9")])
    with file.open("ab") as out:
        out.write(b"{}\n")
    told = refused("bad_questions", "check", file)
    for line in ("1: warning [forward_edge]", "3: error [unknown_parent]", "4: error [bad_line]"):
        assert f"{file}:{line}" in told
    assert "2 errors, 1 warnings" in told
    found = json.loads(typed("questions", "check", file, "--json").output)
    assert [problem["line"] for problem in found] == [1, 3, 4]


def test_show_prints_questions_below_those_they_depend_on(file: Path) -> None:
    lines = said("show", file, P).splitlines()
    places = [
        line.find(f"{n}. {q.question}") for n, line, q in ((1, lines[1], CAT), (2, lines[2], WHITE))
    ]
    assert lines[0] == P and 0 < places[0] < places[1]
    assert lines[1].endswith("(yes, no) -> yes")
    assert f"'{P}'" in refused("unknown_prompt", "show", file, "a white cap")


def test_a_review_marks_a_question_and_can_be_taken_back(file: Path) -> None:
    said("review", file, P, "reject", "--question", "2")
    assert "[rejected]" in said("show", file, P)
    said("review", file, P, "accept", "--question", "1")
    assert "1 accepted, 1 rejected" in said("check", file)
    said("review", file, P, "clear")
    assert [line.record for line in read_lines(file)[0]] == [CAT, WHITE]
    refused("unknown_question", "review", file, P, "accept", "--question", "7")


def test_a_release_is_imported_with_the_prompts_own_text(tmp_path: Path) -> None:
    released, prompts, out = (tmp_path / name for name in ("ts2.csv", "meta.csv", "out.jsonl"))
    released.write_text(
        "id,prompt,question_id,parent_question_id,question,choices,answer\n"
        "0,a cat a dog,0,-1,Cat?,yes|no,yes\n1,a cow,0,0,Cow?,yes|no,yes\n"
    )
    prompts.write_text('id,target_prompt\n0,"a cat, a dog"\n1,a cow\n')
    told = said("import", "ts2", released, "--prompts", prompts, "--out", out)
    assert f"{released}:3: error [cyclic_questions]" in told
    assert [line.record.prompt for line in read_lines(out)[0]] == ["a cat, a dog"]
    refused("file_exists", "import", "ts2", released, "--out", out)
    refused("output_is_input", "import", "ts2", released, "--out", released, "--force")


def test_the_table_of_dpg_is_imported_with_its_ids_and_dependencies(tmp_path: Path) -> None:
    table, out = tmp_path / "dpg_bench.csv", tmp_path / "dpg.jsonl"
    table.write_text(
        "item_id,text,keywords,proposition_id,dependency,category_broad,category_detailed,tuple,"
        "question_natural_language\n"
        '7,"A car, red",car,1,0,entity,whole,entity - whole (car),A car?\n'
        '7,"A car, red",red,2,1,attribute,color,"attribute - color (car, red)",Red?\n'
    )
    said("import", "dpg", table, "--out", out)
    found = [line.record for line in read_lines(out)[0]]
    asked = [(q.prompt_id, q.question, q.parents) for q in found if isinstance(q, Question)]
    assert asked == [("7", "A car?", ()), ("7", "Red?", ("1",))]


def test_a_second_run_leaves_a_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements = "1 | entity - whole (cat)\n2 | attribute - color (cat, white)"
    asked = "1 | Is there a cat?\n2 | Is it white?"
    model = CannedText(statements, asked, "1 | 0\n2 | 1", "nothing")
    given = (Helpers(model=model), Provenance(writer="dsg", model="canned", wording=WORDING))
    monkeypatch.setattr(writing, "_helpers", lambda *_, **__: given)
    prompts, out = tmp_path / "prompts.txt", tmp_path / "q.jsonl"
    prompts.write_text(f"{P}\n\na dog\n{P}\n")
    words = ("write", out, "--writer", "dsg", "--prompts", prompts, "--model", "canned")
    told = said(*words)
    assert "2 questions about 1 prompts" in told and "'a dog': no statements" in told
    records = [line.record for line in read_lines(out)[0]]
    assert all(isinstance(record, Question) and record.provenance for record in records)
    content = out.read_bytes()
    model.answers = ["still nothing"]
    assert "1 prompts were there, 1 got none" in said(*words)
    assert out.read_bytes() == content


def test_write_wants_prompts_of_one_kind_and_a_model(tmp_path: Path) -> None:
    words = ("write", tmp_path / "q.jsonl", "--writer", "dsg")
    assert typed("questions", *words).exit_code == 2
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("prompt_id,prompt\n1,a cat\n")
    refused("writer_needs_model", *words, "--prompts", prompts)
    (tmp_path / "nothing").mkdir()
    done = typed("questions", *words, "--prompts", prompts, "--model", tmp_path / "nothing")
    assert code_of(done).startswith("checkpoint_")
