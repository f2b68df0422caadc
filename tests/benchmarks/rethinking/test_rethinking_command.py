"""`python -m benchmarks.rethinking`: tables for people, JSON for programs, clear refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.rethinking.__main__ import main
from tests.benchmarks.called import Command

HEADER = "metric,model,seed,prompt_id,score,perturbed_score\n"


def scores_file(folder: Path) -> Path:
    path = folder / "scores.csv"
    body = "".join(
        f"vqascore,{model},{seed},p{i},{step * i + shift:.2f},{step * i + shift + 0.01:.2f}\n"
        for model, step, shift in (("SD3", 0.1, 0.3), ("SD-1.5", 0.08, 0.1))
        for seed in (42, 3407)
        for i in range(5)
    )
    path.write_text(HEADER + body, encoding="utf-8")
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("COLUMNS", "260")
    return Command(main, monkeypatch, capsys)


def test_the_tables_show_ranks_stability_change_and_significance(
    tmp_path: Path, run: Command
) -> None:
    assert run(str(scores_file(tmp_path)), "--resamples", "50") == 0
    assert "50.00" in run.out  # mean of SD3, times 100
    assert "Same ranking with every seed?" in run.out
    assert "0 of 1" in run.out
    assert "SD3 > SD-1.5" in run.out
    assert "1.00" in run.out  # the perturbation moves every score by 0.01


def test_names_are_shown_as_they_are_whatever_they_contain(tmp_path: Path, run: Command) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(HEADER + "m,SD[/v1],[red],p,1,\nm,B,[red],p,2,\n", encoding="utf-8")
    assert run(str(path), "--resamples", "10") == 0
    assert "SD[/v1] = B" in run.out
    assert "[red]" in run.out


def test_json_holds_the_same_unrounded(tmp_path: Path, run: Command) -> None:
    assert run(str(scores_file(tmp_path)), "--resamples", "50", "--json") == 0
    found = json.loads(run.out)
    assert found["scores"][0]["value"] == pytest.approx(0.5)
    assert found["stability"][0]["over_seeds"]["stable"] is True
    assert found["perturbation"][0]["largest"] == pytest.approx(0.01)
    assert found["comparisons"][0]["relation"] == ">"


def test_a_file_that_cannot_be_used_ends_with_code_1_and_one_message(
    tmp_path: Path, run: Command
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("metric,model\nm,A\n", encoding="utf-8")
    assert run(str(path)) == 1
    assert "missing_columns" in run.err


def board(models: int = 3, seeds: int = 2, prompts: int = 4, score: str | None = None) -> list[str]:
    """Lines of a file without its header; `score` for all, or made-up ones."""
    return [
        f"m,M{i},{s},p{p},{score or (7 * i + 3 * s + 5 * p * (i + 1)) % 11},"
        for i in range(models)
        for s in range(seeds)
        for p in range(prompts)
    ]


def written(folder: Path, lines: list[str]) -> str:
    path = folder / "scores.csv"
    path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (board(models=1), "m: one model: no ranks to compare and no pairs to test"),
        (board(seeds=1), "m: one seed: nothing can be said of the stability over seeds"),
        (board(prompts=1), "m: one prompt: no intervals and no t-tests by prompt"),
        (board(score="0.5"), "m: every score is the same"),
        (["m,A,1,p,,"], "m: no score at all"),
    ],
)
def test_where_little_can_be_said_the_command_says_so_and_gives_the_rest(
    lines: list[str], said: str, tmp_path: Path, run: Command
) -> None:
    path = written(tmp_path, lines)
    assert run(path, "--resamples", "20") == 0
    assert said in run.out
    assert run(path, "--resamples", "20", "--json") == 0
    assert "NaN" not in run.out
    assert "Infinity" not in run.out
    assert any(note.startswith(said) for note in json.loads(run.out)["notes"])


@pytest.mark.parametrize(
    ("lines", "refusal"),
    [
        (board()[:-1], ("different_prompts", "prompt 'p3' of model 'M2' with seed '1'")),
        (board() + board()[:1], ("duplicate_scores", "the first is line 26")),
        ([*board(), "m,M0,0,p9,0.5"], ("uneven_lines", "Line 26 has 5 cells")),
        ([*board(), "m,,0,p9,0.5,"], ("empty_name", "Line 26 has no model")),
        ([*board(), "m,M0,0,p9,good,"], ("bad_score", "Line 26: score 'good'")),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(
    lines: list[str], refusal: tuple[str, str], tmp_path: Path, run: Command
) -> None:
    assert run(written(tmp_path, lines)) == 1
    code, where = refusal
    assert f"[{code}]" in run.err
    assert where in run.err.replace("\n", " ")
    assert run.out == ""


def test_a_constant_gain_is_infinite_and_becomes_null_in_json(tmp_path: Path, run: Command) -> None:
    lines = [
        f"m,{model},1,p{i},{i + gain}," for model, gain in (("A", 1), ("B", 0)) for i in (1, 2)
    ]
    assert run(written(tmp_path, lines), "--resamples", "20", "--json") == 0
    [found] = json.loads(run.out)["comparisons"]
    assert (found["difference"], found["p_value"], found["relation"]) == (1.0, 0.0, ">")
    assert (found["t"], found["effect"], found["effect_low"]) == (None, None, None)


def test_with_several_seeds_both_units_are_shown_and_the_one_to_trust_is_named(
    tmp_path: Path, run: Command
) -> None:
    path = written(tmp_path, board(models=2))
    assert run(path, "--resamples", "20") == 0
    assert "Trust the prompt lines" in run.out
    assert " all  │ image  │ M0" in run.out
    assert " all  │ prompt │ M0" in run.out


def test_the_help_says_which_lines_to_trust_and_why(run: Command) -> None:
    assert run("--help") == 0
    assert "Trust the prompt lines" in run.out
    assert "p-values too small" in run.out


def test_swapped_models_are_named(tmp_path: Path, run: Command) -> None:
    lines = ["m,A,1,p,2,", "m,B,1,p,1,", "m,A,2,p,1,", "m,B,2,p,2,", "m,A,3,p,1,", "m,B,3,p,2,"]
    assert run(written(tmp_path, lines), "--resamples", "20", "--json") == 0
    [found] = json.loads(run.out)["stability"]
    assert found["models"] == ["A", "B"]
    assert found["over_seeds"]["swaps"] == [
        {"first": 0, "second": 1, "first_higher": 1, "second_higher": 2, "tied": 0}
    ]
