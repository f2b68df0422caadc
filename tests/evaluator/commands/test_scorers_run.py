"""`scorers run`: scores that `meta` takes, resumed when repeated, with what made them written down."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer

from benchmarks import command_line
from benchmarks.registry import find, load_registry
from benchmarks.schema import Questions
from benchmarks.scores import read_scores
from evaluator.commands import scorers_run
from evaluator.commands.scorers_run_files import Facts, write_files
from evaluator.scorers.registry import load_rows
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.column import Cost, RunVerdict, ScoreColumn
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.in_process.asker import ModelSource
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.shards import ShardFolder
from tests.benchmarks.toy import PAIRS, Toy
from tests.evaluator.scorers.tiny_dual import save_clip
from tests.evaluator.scoring.on_ray.ray_token import keep_token_out_of_home

SCORER, BENCHMARK = "clipscore-hessel", "demo_croc"
LIMIT = 24


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"), negative=True)


def command(*arguments: str) -> int:
    """The exit code."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(scorers_run.run)

    def called() -> None:
        try:
            app(list(arguments))
        except SystemExit as end:
            if end.code:
                raise

    try:
        return command_line.run(called)
    except SystemExit as end:
        return int(end.code or 0)


def scored(
    out: Path, checkpoint: Path, *more: str, limit: int | None = LIMIT, name: str = SCORER
) -> int:
    few = [] if limit is None else ["--limit", str(limit)]
    place = ["--benchmark", BENCHMARK, "--out", str(out), "--checkpoint", f"model={checkpoint}"]
    return command(name, *place, "--offline", *few, *more)


def record_of(out: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(out.with_name(f"{out.stem}.record.json").read_text())
    return record


@pytest.fixture(scope="module")
def first(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("first") / "scores.parquet"
    assert scored(out, checkpoint) == 0
    return out


@pytest.mark.slow
def test_the_scores_are_those_of_the_engine(first: Path, checkpoint: Path, tmp_path: Path) -> None:
    row = load_rows()[SCORER]
    questions = _first_pairs(find(load_registry(), BENCHMARK).questions(None))
    seed = bytes.fromhex(record_of(first)["seed"])
    expected = run_plan(
        ScoringPlan.of(questions, seed),
        questions,
        ModelSource(row, Runtime(folders={"model": checkpoint})),
        ShardFolder(tmp_path, "fingerprint"),
    )

    found = pd.read_parquet(first).set_index("pair_id")

    assert list(found.columns) == [SCORER]
    assert list(found.index) == [pair.pair_id for pair in questions.pairs]
    assert found[SCORER].tolist() == expected.overall.tolist()
    assert found[SCORER].nunique() > LIMIT / 2


def test_the_record_says_what_the_figures_need(first: Path, checkpoint: Path) -> None:
    record = record_of(first)

    assert record["scorer"]["name"] == SCORER
    assert record["benchmark"] == BENCHMARK
    assert record["revision"] == find(load_registry(), BENCHMARK).card.revision
    assert record["runtime"]["folders"] == {"model": str(checkpoint)}
    assert record["engine"]["name"] == "local"
    assert record["engine"]["batch_pairs"] == 64
    assert {"device", "engine"} <= set(record["environment"])
    assert {"python", "torch", "transformers", "numpy"} <= set(record["versions"])
    assert record["cost"]["pairs"] == LIMIT
    assert record["cost"]["images_encoded"] == record["cost"]["images"] > 0
    assert record["findings"]["scored"] == LIMIT
    assert list(record["files"]) == ["scores.parquet"]


def test_a_repeated_run_asks_nothing_and_gives_the_same_bytes(
    first: Path, checkpoint: Path
) -> None:
    before = first.read_bytes()

    assert scored(first, checkpoint) == 0

    assert first.read_bytes() == before
    assert record_of(first)["resumed_pairs"] == LIMIT


def test_another_setting_starts_afresh_and_spoils_nothing(first: Path, checkpoint: Path) -> None:
    other = first.with_name("other.csv")
    work = first.with_suffix(".work")

    assert scored(other, checkpoint, "--work", str(work), "--dtype", "bfloat16") == 0
    assert record_of(other)["resumed_pairs"] == 0

    again = first.with_name("again.csv")
    assert scored(again, checkpoint, "--work", str(work)) == 0
    assert record_of(again)["resumed_pairs"] == LIMIT
    assert pd.read_csv(again)[SCORER].tolist() == pd.read_parquet(first)[SCORER].tolist()
    assert not np.allclose(
        pd.read_csv(other)[SCORER], pd.read_csv(again)[SCORER], rtol=0, atol=1e-6
    )


def test_what_is_printed_names_the_verdict_the_cost_and_the_next_step(
    first: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored(first, checkpoint)

    printed = capsys.readouterr().out
    assert f"All {LIMIT} pairs were scored" in printed
    assert "pairs/s" in printed
    assert "peak memory" in printed
    assert "leave --limit out" in printed


def test_json_is_the_record(
    first: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored(first, checkpoint, "--json")

    assert json.loads(capsys.readouterr().out) == record_of(first)


@pytest.mark.slow
def test_meta_takes_the_file_of_a_whole_benchmark(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy()
    monkeypatch.setattr(scorers_run, "load_registry", lambda: {"toy": toy})
    out = tmp_path / "whole.parquet"

    assert scored(out, checkpoint, "--benchmark", "toy", limit=None) == 0

    table = read_scores(out, toy, toy.answers(None))
    assert table.metrics == (SCORER,)
    assert table.overall[SCORER].notna().all()
    assert [row.n_missing for row in toy.evaluate(table, toy.answers(None)).rows] == [0]


@pytest.mark.slow
def test_an_image_that_cannot_be_read_is_named_and_the_rest_is_scored(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(scorers_run, "load_registry", lambda: {"toy": Damaged()})
    out = tmp_path / "damaged.parquet"

    assert scored(out, checkpoint, "--benchmark", "toy", limit=None) == 0

    assert "2 of 3 pairs were scored and 1 were not" in (printed := capsys.readouterr().out)
    assert "image b" in printed
    assert record_of(out)["findings"]["unscored"] == {"image_unreadable": 1}
    assert pd.read_parquet(out)[SCORER].isna().tolist() == [False, True, False]
    findings = pd.read_parquet(tmp_path / "damaged.findings.parquet")
    assert findings["code"].tolist() == ["image_unreadable"]


def test_elements_and_answers_have_files_of_their_own(
    first: Path, checkpoint: Path, tmp_path: Path
) -> None:
    elements = pd.DataFrame({"pair_id": ["a"], "element_id": ["red (colour)"], "score": [0.5]})
    answers = pd.DataFrame({"pair_id": ["a"], "question_id": ["1"], "raw": ["yes"]})
    toy, row = Toy(), load_rows()[SCORER]
    overall = pd.Series([1.0, 2.0, 3.0], index=pd.Index(PAIRS, name="pair_id"))
    column = ScoreColumn(
        overall=overall,
        elements=elements,
        cost=Cost(3, 3, 1.0, 3.0, 0, 0),
        answers=answers,
        findings=(),
        environment={"engine": "local"},
        verdict=RunVerdict(3, 3),
    )
    runtime, began = Runtime(), datetime(2026, 1, 1, tzinfo=UTC)
    facts = Facts(row, toy, runtime, "f", "00", EngineOptions(), None, None, began, 1.0)

    record = write_files(tmp_path / "s.parquet", column, facts)

    assert list(record["files"]) == ["s.parquet", "s.elements.parquet", "s.answers.parquet"]
    assert pd.read_parquet(tmp_path / "s.elements.parquet").equals(elements)
    assert pd.read_parquet(tmp_path / "s.answers.parquet").equals(answers)
    table = read_scores(tmp_path / "s.parquet", toy, toy.answers(None))
    assert table.overall[SCORER].tolist() == [1.0, 2.0, 3.0]
    assert table.elements[SCORER]["score"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["clipscore-hesel"], 1, "clipscore-hessel"),
        ([SCORER, "--checkpoint", "tower=x"], 1, "has no checkpoint 'tower'"),
        ([SCORER, "--checkpoint", "model=nowhere"], 1, "checkpoint_missing"),
        ([SCORER, "--benchmark", "demo_crok"], 1, "demo_croc"),
        ([SCORER, "--out", "scores.xlsx"], 2, ".parquet or .csv"),
        ([SCORER, "--actors", "2"], 2, "only with --engine ray"),
        ([SCORER, "--engine", "ray", "--device", "cuda:1"], 2, "say cuda"),
        ([SCORER, "--engine", "ray", "--ray-address", "ray://x:1"], 1, "no address"),
        ([SCORER, "--engine", "ray", "--ray-address", "127.0.0.1:1"], 3, "ray_unreachable"),
    ],
)
def test_what_cannot_be_run_is_said_at_once(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    arguments: Sequence[str],
    exit_code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    usual = ["--benchmark", BENCHMARK, "--out", "s.csv", "--limit", "4", "--offline"]
    if "--checkpoint" not in arguments:
        usual += ["--checkpoint", str(checkpoint)]

    assert command(*usual, *arguments) == exit_code

    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not list(tmp_path.glob("s.*"))


@pytest.mark.slow
def test_a_ray_that_is_started_for_a_run_gives_the_same_scores_and_ends(
    first: Path, checkpoint: Path, tmp_path: Path
) -> None:
    import ray

    keep_token_out_of_home()
    before = signal.getsignal(signal.SIGTERM)
    out = tmp_path / "ray.parquet"

    assert scored(out, checkpoint, "--engine", "ray", "--actors", "1") == 0

    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == before
    assert record_of(out)["environment"]["engine"] == "ray"
    assert record_of(out)["engine"]["actors"] == 1
    assert out.read_bytes() == first.read_bytes()
    assert (tmp_path / "ray.work" / "ray_logs").is_dir()


class Damaged(Toy):
    """One of its pictures was cut off."""

    def questions(self, data: Path | None) -> Questions:
        whole = super().questions(data)
        cut = whole.images["image b"]()[:20]
        return replace(whole, images={**whole.images, "image b": lambda: cut})


def _first_pairs(questions: Questions) -> Questions:
    return replace(questions, pairs=questions.pairs[:LIMIT])
