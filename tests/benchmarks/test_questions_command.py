"""`python -m benchmarks questions`: what it writes, tells people and programs, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.question_folder import Key, QuestionFolder
from benchmarks.registry import load_registry
from tests.benchmarks.toy import Toy


def test_the_command_exports_and_says_what_goes_where(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks", "questions", "demo_ts2", "--out", str(tmp_path)]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["name"], told["counts"]["pairs"]) == ("demo_ts2", 295)
    assert "image 295 of 295" in done.stderr
    key = Key.read(Path(told["key"]))
    assert (key.tag, len(key.pairs)) == (told["tag"], 295)
    benchmark = load_registry()["demo_ts2"]
    assert len(QuestionFolder(tmp_path).questions(benchmark).pairs) == 295


def test_the_command_tells_people_what_stays_with_the_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.commands.common.load_registry", lambda: {"toy": Toy()})
    monkeypatch.setattr(
        "sys.argv", ["benchmarks", "questions", "toy", "--out", str(tmp_path / "new/out")]
    )
    assert main_code() == 0
    told = capfd.readouterr()
    assert told.out == ""
    assert "3 pairs, 3 images, " in told.err
    assert "toy.key.parquet stays with the judge" in told.err
    (tmp_path / "new/out/toy/benchmark.json").unlink()
    assert main_code() == 1
    assert "error [not_a_question_folder]" in capfd.readouterr().err


def test_the_command_cannot_write_below_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("benchmarks.commands.common.load_registry", lambda: {"toy": Toy()})
    monkeypatch.setattr(
        "sys.argv", ["benchmarks", "questions", "toy", "--out", str(tmp_path / "file/out")]
    )
    assert main_code() == 1
    assert "error [cannot_write]" in capfd.readouterr().err


def main_code() -> int:
    """The exit code of the command line, Typer's own way to end included."""
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)
