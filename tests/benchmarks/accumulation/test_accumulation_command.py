"""`python -m benchmarks.accumulation`: files in, a scores file out, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.accumulation.__main__ import main
from tests.benchmarks.called import Command

QUESTIONS = """text_id,question_id,parents,choices,expected
dog,1,0,yes|no,yes
dog,2,1,brown|white|red,brown
dog,3,2,yes|no,yes
"""
ANSWERS = """pair_id,text_id,question_id,answer,mc_answer,correct
a,dog,1,no,no,0
a,dog,2,yes,brown,1
a,dog,3,yes,yes,1
b,dog,1,yes,yes,1
b,dog,2,"Yes, it is",white,1
b,dog,3,yes,yes,1
"""


class Accumulation(Command):
    """The command with the files of the folder."""

    def __call__(self, *options: object) -> int:
        files = ("answers.csv", "--questions", "questions.csv", "--out", "scores.csv")
        return super().__call__(*files, *options)


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Accumulation:
    Path(tmp_path / "questions.csv").write_text(QUESTIONS)
    Path(tmp_path / "answers.csv").write_text(ANSWERS)
    Path(tmp_path / "pairs.csv").write_text("pair_id,text_id\nb,dog\na,dog\nc,cat\n")
    monkeypatch.chdir(tmp_path)
    return Accumulation(main, monkeypatch, capsys)


def change(file: str, *replaced: str) -> None:
    content = Path(file).read_text()
    assert replaced[0] in content
    Path(file).write_text(content.replace(*replaced, 1))  # type: ignore[arg-type]


def scores() -> dict[str, float]:
    table = pd.read_csv("scores.csv")
    assert list(table.columns) == ["pair_id", "score"]
    return dict(zip(table["pair_id"], table["score"], strict=True))


@pytest.mark.parametrize(
    ("options", "a", "b"),
    [
        ("dsg", 1 / 3, 1 / 3),  # only exactly yes; direct parents
        ("dsg --correct=contains_yes", 1 / 3, 1.0),
        ("dsg --correct=given", 1 / 3, 1.0),
        ("dsg --correct=tifa", 1 / 3, 1 / 3),
        ("mean", 2 / 3, 2 / 3),  # tifa unless said otherwise
        ("recursive --parents=dsg", 0.0, 1.0),
    ],
)
def test_each_rule_with_what_counts_as_correct(
    call: Accumulation, options: str, a: float, b: float
) -> None:
    if options == "mean":  # needs no parents
        table = pd.read_csv("questions.csv", dtype=str).drop(columns="parents")
        table.to_csv("questions.csv", index=False)
    assert call("--rule", *options.split()) == 0
    assert scores() == pytest.approx({"a": a, "b": b})


def test_pairs_give_the_order_the_prompts_and_the_images_without_answers(
    call: Accumulation,
) -> None:
    table = pd.read_csv("answers.csv", dtype=str).drop(columns="text_id")
    table.to_csv("answers.csv", index=False)
    assert call("--rule", "dsg", "--pairs", "pairs.csv") == 0
    assert list(scores()) == ["b", "a", "c"]
    assert list(scores().values()) == pytest.approx([1 / 3, 1 / 3, 0.0])
    for told in ("3 images", "6 answers", "4 of them", "without answers: 1"):
        assert told in call.err
    options = ("--pairs", "pairs.csv", "--unanswered", "empty", "--force")
    assert call("--rule", "dsg", *options) == 0
    assert Path("scores.csv").read_text().splitlines()[-1] == "c,"


def test_prompts_whose_parents_cannot_be_read_are_named(call: Accumulation) -> None:
    change("questions.csv", "dog,2,1,", 'dog,2,"1, a dog",')
    for options, score in (((), 2 / 3), (("--unparsable", "repair"), 1 / 3)):
        assert call("--rule", "dsg", "--force", *options) == 0
        assert scores() == pytest.approx({"a": score, "b": score})
        assert ": dog" in call.err
    assert call("--rule", "dsg", "--unparsable", "refuse", "--force") == 1
    assert "[bad_parents]" in call.err


@pytest.mark.parametrize(
    ("file", "before", "after", "code", "says"),
    [
        ("answers.csv", "text_id", "prompt", "missing_columns", "text_id"),
        ("answers.csv", "answer,", "reply,", "missing_columns", "column answer"),
        ("questions.csv", "parents", "above", "missing_columns", "column parents"),
        ("answers.csv", "a,dog,2", "a,dog,9", "unknown_questions", ""),
        ("answers.csv", "a,dog,2", "a,cat,2", "several_prompts", ""),
        ("answers.csv", "a,dog,2", "a,dog,1", "duplicate_answers", ""),
        ("questions.csv", "dog,2,1", "dog,2,8", "unknown_parents", ""),
        ("questions.csv", "dog,1,0", "dog,1,3", "cyclic_questions", ""),
        ("answers.csv", ANSWERS, "", "unreadable_file", ""),
    ],
)
def test_wrong_files_end_with_one_message_and_code_1(
    call: Accumulation, *, file: str, before: str, after: str, code: str, says: str
) -> None:
    change(file, before, after)
    assert call("--rule", "recursive", "--parents", "dsg", "--correct", "contains_yes") == 1
    assert f"[{code}]: {'' if code == 'cyclic_questions' else file}" in call.err
    assert says in call.err
    assert "Traceback" not in call.err
    assert not Path("scores.csv").exists()


def test_an_absent_file_and_a_place_that_cannot_be_written_end_with_code_1(
    call: Accumulation,
) -> None:
    Path("scores.csv").mkdir()
    assert call("--rule", "dsg") == 1
    assert "[cannot_write]" in call.err
    Path("answers.csv").unlink()
    Path("scores.csv").rmdir()
    assert call("--rule", "dsg") == 1
    assert "answers.csv" in call.err


def test_a_file_that_is_there_is_replaced_only_when_told(call: Accumulation) -> None:
    Path("scores.csv").write_text("mine")
    assert call("--rule", "dsg") == 1
    assert "[file_exists]: scores.csv" in call.err
    assert "--force" in call.err
    assert Path("scores.csv").read_text() == "mine"
    assert call("--rule", "dsg", "--force") == 0
    assert set(scores()) == {"a", "b"}


@pytest.mark.parametrize("given", ["answers.csv", "questions.csv", "pairs.csv"])
def test_an_input_is_never_replaced(call: Accumulation, tmp_path: Path, given: str) -> None:
    before = Path(given).read_bytes()
    Path("link.csv").symlink_to(given)
    for out in (given, f"../{tmp_path.name}/{given}", "link.csv"):
        assert call("--rule", "dsg", "--pairs", "pairs.csv", "--force", "--out", out) == 1
        assert "[output_is_input]" in call.err
    assert Path(given).read_bytes() == before


@pytest.mark.parametrize("options", [(), ("--rule", "median"), ("--rule", "dsg", "--nonsense")])
def test_wrong_usage_ends_with_code_2(call: Accumulation, options: tuple[str, ...]) -> None:
    assert call(*options) == 2
