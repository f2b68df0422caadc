"""`python -m benchmarks.rethinking`: tables for people, JSON for programs, clear refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.rethinking.__main__ import main

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


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["benchmarks.rethinking", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


def test_the_tables_show_ranks_stability_change_and_significance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, str(scores_file(tmp_path)), "--resamples", "50") == 0
    printed = capsys.readouterr().out
    assert "50.00" in printed  # mean of SD3, times 100
    assert "Same ranking with every seed?" in printed
    assert "0 of 1" in printed
    assert "SD3 > SD-1.5" in printed
    assert "1.00" in printed  # the perturbation moves every score by 0.01


def test_names_are_shown_as_they_are_whatever_they_contain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(HEADER + "m,SD[/v1],[red],p,1,\nm,B,[red],p,2,\n", encoding="utf-8")
    assert run(monkeypatch, str(path), "--resamples", "10") == 0
    printed = capsys.readouterr().out
    assert "SD[/v1] = B" in printed
    assert "[red]" in printed


def test_json_holds_the_same_unrounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, str(scores_file(tmp_path)), "--resamples", "50", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["scores"][0]["value"] == pytest.approx(0.5)
    assert found["stability"][0]["over_seeds"]["stable"] is True
    assert found["perturbation"][0]["largest"] == pytest.approx(0.01)
    assert found["comparisons"][0]["relation"] == ">"


def test_a_file_that_cannot_be_used_ends_with_code_1_and_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("metric,model\nm,A\n", encoding="utf-8")
    assert run(monkeypatch, str(path)) == 1
    assert "missing_columns" in capsys.readouterr().err
