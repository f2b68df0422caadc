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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "questions.csv").write_text(QUESTIONS)
    (tmp_path / "answers.csv").write_text(ANSWERS)
    (tmp_path / "pairs.csv").write_text("pair_id,text_id\nb,dog\na,dog\nc,cat\n")
    return tmp_path


class Accumulation(Command):
    """The command with the files of the folder."""

    def __call__(self, *options: object) -> int:
        files = ("answers.csv", "--questions", "questions.csv", "--out", "scores.csv")
        return super().__call__(*files, *options)


@pytest.fixture
def call(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Accumulation:
    monkeypatch.chdir(folder)
    return Accumulation(main, monkeypatch, capsys)


def scores(folder: Path) -> dict[str, float]:
    table = pd.read_csv(folder / "scores.csv")
    assert list(table.columns) == ["pair_id", "score"]
    return dict(zip(table["pair_id"], table["score"], strict=True))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"a": 1 / 3, "b": 1 / 3}),  # only exactly yes; direct parents
        (("--correct", "contains_yes"), {"a": 1 / 3, "b": 1.0}),
        (("--correct", "given"), {"a": 1 / 3, "b": 1.0}),
        (("--correct", "tifa"), {"a": 1 / 3, "b": 1 / 3}),
    ],
)
def test_dsg(
    call: Accumulation,
    folder: Path,
    options: tuple[str, ...],
    expected: dict[str, float],
) -> None:
    assert call("--rule", "dsg", *options) == 0
    assert scores(folder) == pytest.approx(expected)


def test_mean_is_tifa_unless_said_otherwise_and_needs_no_parents(
    call: Accumulation, folder: Path
) -> None:
    table = pd.read_csv(folder / "questions.csv", dtype=str).drop(columns="parents")
    table.to_csv(folder / "questions.csv", index=False)
    assert call("--rule", "mean") == 0
    assert scores(folder) == pytest.approx({"a": 2 / 3, "b": 2 / 3})


def test_recursive_reads_the_notation_it_is_told(call: Accumulation, folder: Path) -> None:
    assert call("--rule", "recursive", "--parents", "dsg") == 0
    assert scores(folder) == pytest.approx({"a": 0.0, "b": 1.0})


def test_pairs_give_the_order_the_prompts_and_the_images_without_answers(
    call: Accumulation,
    folder: Path,
) -> None:
    table = pd.read_csv(folder / "answers.csv", dtype=str).drop(columns="text_id")
    table.to_csv(folder / "answers.csv", index=False)
    assert call("--rule", "dsg", "--pairs", "pairs.csv") == 0
    assert list(scores(folder).items()) == [
        ("b", pytest.approx(1 / 3)),
        ("a", pytest.approx(1 / 3)),
        ("c", 0.0),
    ]
    assert "3 images, 6 answers, 4 of them correct. Images without answers: 1." in (call.err)


def test_an_image_without_answers_may_stay_empty(call: Accumulation, folder: Path) -> None:
    options = ("--rule", "dsg", "--pairs", "pairs.csv", "--unanswered", "empty")
    assert call(*options) == 0
    assert (folder / "scores.csv").read_text().splitlines()[-1] == "c,"


def test_prompts_whose_parents_cannot_be_read_are_named(
    call: Accumulation,
    folder: Path,
) -> None:
    (folder / "questions.csv").write_text(QUESTIONS.replace("dog,2,1,", 'dog,2,"1, a dog",'))
    assert call("--rule", "dsg") == 0
    assert scores(folder) == pytest.approx({"a": 2 / 3, "b": 2 / 3})
    assert "cannot be read use no parents: dog" in call.err
    assert call("--rule", "dsg", "--unparsable", "repair", "--force") == 0
    assert scores(folder) == pytest.approx({"a": 1 / 3, "b": 1 / 3})
    assert "are repaired: dog" in call.err
    assert call("--rule", "dsg", "--unparsable", "refuse", "--force") == 1
    assert "bad_parents" in call.err


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("answers.csv", ("text_id", "prompt"), "[missing_columns]: answers.csv has no column"),
        ("answers.csv", ("answer,", "reply,"), "has no column answer"),
        ("questions.csv", ("parents", "above"), "questions.csv has no column parents"),
        ("answers.csv", ("a,dog,2", "a,dog,9"), "[unknown_questions]: answers.csv"),
        ("answers.csv", ("a,dog,2", "a,cat,2"), "[several_prompts]: answers.csv"),
        ("answers.csv", ("a,dog,2", "a,dog,1"), "[duplicate_answers]: answers.csv"),
        ("questions.csv", ("dog,2,1", "dog,2,8"), "[unknown_parents]: questions.csv"),
        ("answers.csv", (ANSWERS, ""), "[unreadable_file]: answers.csv"),
    ],
)
def test_wrong_files_end_with_one_message_and_code_1(
    call: Accumulation,
    folder: Path,
    *,
    file: str,
    change: tuple[str, str],
    says: str,
) -> None:
    content = (folder / file).read_text()
    assert change[0] in content
    (folder / file).write_text(content.replace(*change, 1))
    assert call("--rule", "dsg") == 1
    error = call.err
    assert says in error
    assert "Traceback" not in error
    assert not (folder / "scores.csv").exists()


def test_a_circle_of_questions_ends_with_code_1(
    call: Accumulation,
    folder: Path,
) -> None:
    (folder / "questions.csv").write_text(QUESTIONS.replace("dog,1,0", "dog,1,3"))
    assert call("--rule", "recursive", "--parents", "dsg") == 1
    assert "cyclic_questions" in call.err


def test_a_file_that_is_not_there_is_named(
    call: Accumulation,
    folder: Path,
) -> None:
    (folder / "answers.csv").unlink()
    assert call("--rule", "dsg") == 1
    assert "There is no file answers.csv" in call.err


def test_scores_that_cannot_be_written_end_with_code_1(
    call: Accumulation,
    folder: Path,
) -> None:
    (folder / "scores.csv").mkdir()
    assert call("--rule", "dsg") == 1
    assert "cannot_write" in call.err


def test_a_file_that_is_there_is_replaced_only_when_told(
    call: Accumulation,
    folder: Path,
) -> None:
    (folder / "scores.csv").write_text("mine")
    assert call("--rule", "dsg") == 1
    assert "[file_exists]: scores.csv exists. Replace it with --force." in call.err
    assert (folder / "scores.csv").read_text() == "mine"
    assert call("--rule", "dsg", "--force") == 0
    assert set(scores(folder)) == {"a", "b"}


@pytest.mark.parametrize("given", ["answers.csv", "questions.csv", "pairs.csv"])
def test_an_input_is_never_replaced(
    call: Accumulation,
    folder: Path,
    given: str,
) -> None:
    before = (folder / given).read_bytes()
    (folder / "link.csv").symlink_to(folder / given)
    for out in (given, f"../{folder.name}/{given}", "link.csv"):
        options = ("--rule", "dsg", "--pairs", "pairs.csv", "--force", "--out", out)
        assert call(*options) == 1
        assert "[output_is_input]" in call.err
    assert (folder / given).read_bytes() == before


@pytest.mark.parametrize("options", [(), ("--rule", "median"), ("--rule", "dsg", "--nonsense")])
def test_wrong_usage_ends_with_code_2(
    call: Accumulation, folder: Path, options: tuple[str, ...]
) -> None:
    assert call(*options) == 2
