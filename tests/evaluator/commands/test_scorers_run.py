"""`scorers run`: scores that `meta` takes, resumed when repeated, with what made them written down."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.schema import BETWEEN_TEXTS, Benchmark, Questions, ScoreTable
from benchmarks.scores import read_scores
from evaluator.commands import scorers_run
from evaluator.commands.scorers_run import Facts, write_files
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import Runtime, load_rows
from evaluator.scoring.asking import ScoringPlan
from evaluator.scoring.column import RunVerdict, ScoreColumn, ShardFolder
from evaluator.scoring.comparing import Comparisons
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.submission.scores_file import examine_scores_file
from leaderboard.records import Cost
from leaderboard.submission_service import ScoresForm
from tests.evaluator.commands.submitting import Run, code_of, typed
from tests.evaluator.scorers.tiny_models import save_clip
from tests.kit.toy import PAIRS, Toy

SCORER, BENCHMARK = "clipscore-hessel", "demo_croc"
LIMIT = 24
Scored = Callable[..., str]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"), negative=True)


def words_of(out: Path, checkpoint: Path, *more: str) -> tuple[object, ...]:
    given = ("--offline", "--checkpoint", f"model={checkpoint}", "--out", out)
    return ("scorers", "run", SCORER, "--benchmark", BENCHMARK, *given, *more)


@pytest.fixture
def scored(run: Run, checkpoint: Path) -> Scored:
    """Score into a file; what was printed."""

    def called(out: Path, *more: str, limit: int | None = LIMIT) -> str:
        few = () if limit is None else ("--limit", str(limit))
        ended = run(*words_of(out, checkpoint, *few, *more))
        assert ended.code == 0, ended.err
        return ended.out

    return called


def record_of(out: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(out.with_name(f"{out.stem}.record.json").read_text())
    return record


@pytest.fixture(scope="module")
def first(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("first") / "scores.parquet"
    done = typed(*words_of(out, checkpoint, "--limit", str(LIMIT)))
    assert done.exit_code == 0, done.output
    return out


@pytest.mark.slow
def test_the_scores_are_those_of_the_engine(first: Path, checkpoint: Path, tmp_path: Path) -> None:
    whole = find(load_registry(), BENCHMARK).questions(None)
    questions = replace(whole, pairs=whole.pairs[:LIMIT])
    expected = run_plan(
        ScoringPlan.of(questions, bytes.fromhex(record_of(first)["seed"])),
        questions,
        ModelSource(load_rows()[SCORER], Runtime(folders={"model": checkpoint})),
        ShardFolder(tmp_path, "fingerprint"),
    )
    found = pd.read_parquet(first).set_index("pair_id")
    assert list(found.columns) == [SCORER]
    assert list(found.index) == [pair.pair_id for pair in questions.pairs]
    assert found[SCORER].tolist() == expected.overall.tolist()
    assert found[SCORER].nunique() > LIMIT / 2


def test_the_record_says_what_the_figures_need(first: Path, checkpoint: Path) -> None:
    record = record_of(first)
    revision = find(load_registry(), BENCHMARK).card.revision
    assert (record["scorer"]["name"], record["benchmark"]) == (SCORER, BENCHMARK)
    assert (record["revision"], record["findings"]["scored"]) == (revision, LIMIT)
    assert record["runtime"]["folders"] == {"model": str(checkpoint)}
    assert (record["engine"]["name"], record["engine"]["batch_pairs"]) == ("local", 64)
    assert {"device", "engine"} <= set(record["environment"])
    assert {"python", "torch", "transformers", "numpy"} <= set(record["versions"])
    cost = record["cost"]
    assert cost["pairs"] == LIMIT and cost["images_encoded"] == cost["images"] > 0
    assert list(record["files"]) == ["scores.parquet"]


def test_a_repeated_run_asks_nothing_and_says_what_is_next(first: Path, scored: Scored) -> None:
    before = first.read_bytes()
    printed = scored(first)
    assert [one for one in (str(LIMIT), "pairs/s", "memory", "--limit") if one not in printed] == []
    assert record_of(first)["resumed_pairs"] == LIMIT
    assert json.loads(scored(first, "--json")) == record_of(first)
    assert first.read_bytes() == before


@pytest.mark.slow
def test_another_setting_starts_afresh_and_spoils_nothing(first: Path, scored: Scored) -> None:
    other, again = first.with_name("other.csv"), first.with_name("again.csv")
    work = ("--work", str(first.with_suffix(".work")))
    scored(other, *work, "--dtype", "bfloat16")
    scored(again, *work)
    assert [record_of(out)["resumed_pairs"] for out in (other, again)] == [0, LIMIT]
    lower, same = (pd.read_csv(out)[SCORER] for out in (other, again))
    assert same.tolist() == pd.read_parquet(first)[SCORER].tolist()
    assert not np.allclose(lower, same, rtol=0, atol=1e-6)


class Damaged(Toy):
    """One of its pictures was cut off."""

    def questions(self, data: Path | None) -> Questions:
        whole = super().questions(data)
        cut = whole.images["image b"]()[:20]
        return replace(whole, images={**whole.images, "image b": lambda: cut})


@pytest.mark.slow
@pytest.mark.parametrize("toy", [Toy(), Damaged()], ids=["whole", "damaged"])
def test_meta_takes_the_file_of_a_benchmark_and_a_damaged_image_is_named(
    toy: Toy, scored: Scored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorers_run, "load_registry", lambda: {"toy": toy})
    out = tmp_path / "s.parquet"
    printed = scored(out, "--benchmark", "toy", limit=None)
    missing = isinstance(toy, Damaged)
    table = read_scores(out, toy, toy.answers(None))
    assert table.overall[SCORER].isna().tolist() == [False, missing, False]
    rows = toy.evaluate(table, toy.answers(None)).rows
    assert [row.n_missing for row in rows] == [int(missing)]
    if missing:
        assert "image b" in printed
        assert record_of(out)["findings"]["unscored"] == {"image_unreadable": 1}
        findings = pd.read_parquet(tmp_path / "s.findings.parquet")
        assert findings["code"].tolist() == ["image_unreadable"]


def test_elements_and_answers_have_files_of_their_own(tmp_path: Path) -> None:
    elements = pd.DataFrame({"pair_id": ["a"], "element_id": ["red (colour)"], "score": [0.5]})
    answers = pd.DataFrame({"pair_id": ["a"], "question_id": ["1"], "raw": ["yes"]})
    column = ScoreColumn(
        overall=pd.Series([1.0, 2.0, 3.0], index=pd.Index(PAIRS, name="pair_id")),
        elements=elements,
        cost=Cost(pairs=3, images=3, seconds=1.0, pairs_per_s=3.0),
        answers=answers,
        findings=(),
        environment={"engine": "local"},
        verdict=RunVerdict(3, 3),
    )
    toy, row, began = Toy(), load_rows()[SCORER], datetime(2026, 1, 1, tzinfo=UTC)
    facts = Facts(row, toy, Runtime(), "f", "00", EngineOptions(), None, None, began, 1.0)
    record = write_files(tmp_path / "s.parquet", column, facts)
    assert list(record["files"]) == ["s.parquet", "s.elements.parquet", "s.answers.parquet"]
    assert pd.read_parquet(tmp_path / "s.elements.parquet").equals(elements)
    assert pd.read_parquet(tmp_path / "s.answers.parquet").equals(answers)
    table = read_scores(tmp_path / "s.parquet", toy, toy.answers(None))
    assert table.overall[SCORER].tolist() == [1.0, 2.0, 3.0]
    assert table.elements[SCORER]["score"].tolist() == [0.5]


COMPARER = "compare-gpt-4o"


def compared(out: Path) -> ScoreTable:
    """Files of a run of a metric that compares, and what a worker's run would measure."""
    benchmark = find(load_registry(), "demo_gecko")
    asked = Comparisons.of(benchmark.questions(None), b"seed")
    ids = pd.Index(list(asked.pairs), name="pair_id")
    whole = ScoreColumn(
        overall=pd.Series(np.random.default_rng(1).normal(size=len(ids)), ids),
        elements=None,
        cost=Cost(pairs=len(ids), images=len(ids), seconds=1.0, pairs_per_s=1.0),
        answers=None,
        findings=(),
        environment={"engine": "local"},
        verdict=RunVerdict(len(ids), len(ids)),
    )
    column, began = asked.column(whole), datetime(2026, 1, 1, tzinfo=UTC)
    row = load_rows()[COMPARER]
    facts = Facts(row, benchmark, Runtime(), "f", "00", EngineOptions(), None, None, began, 1.0)
    write_files(out, column, facts)
    assert column.margins is not None
    overall = column.overall.to_frame(COMPARER).loc[list(benchmark.answers(None).pair_ids)]
    return ScoreTable(overall, margins={COMPARER: column.margins})


@pytest.mark.first_quick
@pytest.mark.parametrize("file", ["s.parquet", "s.csv", "s.scores.parquet"])
def test_meta_gives_the_rows_of_the_board_for_a_metric_that_compares(
    run: Run, registry: dict[str, Benchmark], tmp_path: Path, file: str
) -> None:
    benchmark = registry["demo_gecko"] = find(load_registry(), "demo_gecko")
    written = tmp_path / file.replace(".scores", "")
    table = compared(written)
    written.rename(tmp_path / file)
    ended = run("meta", "demo_gecko", "--scores", tmp_path / file, "--json")
    assert ended.code == 0, ended.err
    expected = [row.to_json() for row in benchmark.evaluate(table, benchmark.answers(None)).rows]
    assert json.loads(ended.out) == expected
    withheld = [row for row in expected if row["note"] == BETWEEN_TEXTS]
    assert withheld and {row["value"] for row in withheld} == {None}


def with_margins_of(folder: Path, **changed: Any) -> None:
    pd.read_parquet(folder / "s.margins.parquet").assign(**changed).to_parquet(
        folder / "s.margins.parquet", index=False
    )


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda folder: (folder / "s.margins.parquet").unlink(), "margins_missing"),
        (lambda folder: (folder / "s.margins.parquet").write_bytes(b"PAR1"), "bad_margins"),
        (lambda folder: with_margins_of(folder, metric="another"), "bad_margins"),
        (lambda folder: with_margins_of(folder, pair_id="another"), "bad_margins"),
        (lambda folder: with_margins_of(folder, margin="much"), "bad_margins"),
    ],
    ids=["none", "damaged", "of another metric", "of another benchmark", "no numbers"],
)
def test_scores_of_a_metric_that_compares_are_not_read_without_their_margins(
    tmp_path: Path, spoil: Callable[[Path], None], code: str
) -> None:
    compared(tmp_path / "s.parquet")
    benchmark = find(load_registry(), "demo_gecko")
    spoil(tmp_path)
    with pytest.raises(SubmitterError) as caught:
        read_scores(tmp_path / "s.parquet", benchmark, benchmark.answers(None))
    assert caught.value.code == code


def test_scores_of_a_metric_that_compares_are_no_submission_of_their_own(tmp_path: Path) -> None:
    compared(tmp_path / "s.parquet")
    form = ScoresForm(name="m", version="1", benchmark="demo_gecko")
    report, file = examine_scores_file(tmp_path / "s.parquet", form, load_registry(), None)
    assert ([one.code for one in report.problems], file) == (["compares_images"], None)


def test_another_metric_with_the_same_file_leaves_no_margins_of_the_one_before(
    tmp_path: Path,
) -> None:
    compared(tmp_path / "s.parquet")
    assert (tmp_path / "s.margins.parquet").exists()
    test_elements_and_answers_have_files_of_their_own(tmp_path)
    assert not (tmp_path / "s.margins.parquet").exists()


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["clipscore-hesel"], 1, "clipscore-hessel"),
        ([SCORER, "--checkpoint", "tower=x"], 1, "'tower'"),
        ([SCORER, "--checkpoint", "model=nowhere"], 1, "checkpoint_missing"),
        ([SCORER, "--benchmark", "demo_crok"], 1, "demo_croc"),
        ([SCORER, "--out", "scores.xlsx"], 2, ".parquet"),
        ([SCORER, "--actors", "2"], 2, "--engine ray"),
        ([SCORER, "--engine", "ray", "--device", "cuda:1"], 2, "say cuda"),
        ([SCORER, "--engine", "ray", "--ray-address", "ray://x:1"], 1, "address"),
        ([SCORER, "--engine", "ray", "--ray-address", "127.0.0.1:1"], 3, "ray_unreachable"),
    ],
)
def test_what_cannot_be_run_is_said_at_once(
    run: Run,
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    words: Sequence[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    usual = ["--benchmark", BENCHMARK, "--out", "s.csv", "--limit", "4", "--offline"]
    if "--checkpoint" not in words:
        usual += ["--checkpoint", str(checkpoint)]
    ended = run("scorers", "run", *usual, *words)
    assert ended.code == code and said in ended.told
    assert not list(tmp_path.glob("s.*"))


@pytest.mark.nightly
def test_a_ray_for_a_run_gives_the_same_scores(
    first: Path, scored: Scored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before, out = signal.getsignal(signal.SIGTERM), tmp_path / "ray.parquet"
    scored(out, "--engine", "ray", "--actors", "1")
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == before
    record = record_of(out)
    assert (record["environment"]["engine"], record["engine"]["actors"]) == ("ray", 1)
    assert out.read_bytes() == first.read_bytes()
    assert (tmp_path / "ray.work" / "ray_logs").is_dir()
    assert not (tmp_path / "home" / ".ray").exists(), "Ray's token stays out of the home folder"


def test_a_metric_runs_on_the_gpu_or_is_refused_here(checkpoint: Path, tmp_path: Path) -> None:
    """As docs/gpu-and-cluster.md says it."""
    import torch

    out = tmp_path / "scores.parquet"
    found = typed(*words_of(out, checkpoint, "--benchmark", "demo_ts2", "--device", "cuda"))
    if torch.cuda.is_available():
        assert found.exit_code == 0 and out.is_file(), found.output
    else:
        assert code_of(found) == "device_missing"
