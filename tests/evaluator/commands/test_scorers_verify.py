"""`scorers verify`: a metric's scores against released ones, told pair by pair and recorded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.released import verification
from benchmarks.schema import Benchmark
from benchmarks.tifa160.protocol import HUMAN, IMAGES
from evaluator.commands import scorers_verify
from evaluator.scorers.registry import ScorerRow, load_rows
from tests.benchmarks.tifa160.tifa_tree import human_file, small
from tests.evaluator.commands.submitting import code_of, typed
from tests.evaluator.scorers.tiny_models import picture, save_clip

METRIC, COLUMN = "clipscore-hessel", "clipscore_vitb32"
REPO, COMMIT = "openai/clip-vit-base-patch32", "a" * 40
PAIRS = list(human_file())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten images of two prompts, as TIFA160 has its eight hundred."""
    folder = tmp_path_factory.mktemp("data")
    (folder / IMAGES).mkdir(parents=True)
    (folder / HUMAN).write_text(json.dumps(human_file()))
    for n, pair in enumerate(PAIRS):
        picture(n).save(folder / IMAGES / f"{pair}.jpg")
    return folder


@pytest.fixture(scope="module")
def ours(data: Path, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.Series:
    """What the metric gives, by `scorers run`."""
    out = tmp_path_factory.mktemp("ours") / "ours.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluator.commands.scorers_run.load_registry", known)
        words = ("--benchmark", "tifa160", "--data", data, "--offline", "--out", out)
        done = typed("scorers", "run", METRIC, *words, "--checkpoint", f"model={checkpoint}")
    assert done.exit_code == 0, done.output
    found: pd.Series = pd.read_csv(out, index_col="pair_id")[METRIC]
    assert found.nunique() >= len(PAIRS) - 1  # two may be clamped
    return found


def known() -> Mapping[str, Benchmark]:
    return {"tifa160": small()}


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: None) -> None:
    """A record and a folder of work for each test."""
    monkeypatch.setattr(scorers_verify, "load_registry", known)
    records = tmp_path / "verified.toml"
    records.write_text("# Records.\n")
    monkeypatch.setattr(verification, "RECORDS", records)
    monkeypatch.chdir(tmp_path)


def released(folder: Path, scores: pd.Series) -> Path:
    """Scores as the release has them: forty times ours."""
    path = folder / "released.csv"
    scores.mul(40).rename(COLUMN).rename_axis("pair_id").to_csv(path)
    return path


def verified(*words: object, data: Path, checkpoint: Path) -> tuple[int, Any]:
    """Exit code, and what was told programs."""
    given = ("--data", data, "--checkpoint", f"model={checkpoint}", "--offline", "--json")
    done = typed("scorers", "verify", METRIC, *given, *words)
    assert code_of(done) in {"", "1"}, done.output
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.slow
def test_scores_of_the_same_model_agree(
    data: Path, checkpoint: Path, ours: pd.Series, tmp_path: Path
) -> None:
    theirs = released(tmp_path, ours[::-1])
    code, found = verified("--released", theirs, data=data, checkpoint=checkpoint)
    assert (code, found["agrees"], found["differing"]) == (0, True, [])
    assert (found["pairs"], found["unscored"], found["unreleased"]) == (len(PAIRS), 0, 0)
    assert (found["within"], found["share"]) == (len(PAIRS), 1.0)
    assert [found["plcc"], found["srcc"]] == pytest.approx([1.0, 1.0])
    assert found["largest"] < 1e-4
    reference = found["reference"]
    assert (reference["factor"], reference["tolerance"], reference["column"]) == (40.0, 0.1, COLUMN)
    assert reference["source"] == "https://github.com/Yushi-Hu/tifa"
    assert reference["licence"].startswith("Apache-2.0") and reference["commit"] == "8e37050"
    assert found["row_sha256"] == load_rows()[METRIC].digest
    assert {"torch", "transformers"} <= set(found["versions"])


@pytest.mark.slow
def test_changed_scores_differ_and_the_first_pairs_are_named_with_both_values(
    data: Path, checkpoint: Path, ours: pd.Series, tmp_path: Path
) -> None:
    theirs = ours.copy()
    for at, change in ((7, 0.02), (2, -0.05), (4, 0.001)):  # 0.04 of 0.1 for the last
        theirs.iloc[at] += change
    theirs = theirs.drop(PAIRS[9])
    path = released(tmp_path, theirs)
    code, found = verified("--released", path, data=data, checkpoint=checkpoint)
    assert (code, found["agrees"], found["within"]) == (1, False, 7)
    assert (found["pairs"], found["unreleased"]) == (9, 1)
    assert [one["pair_id"] for one in found["differing"]] == [PAIRS[2], PAIRS[7]]
    first = found["differing"][0]
    assert first["score"] == pytest.approx(ours[PAIRS[2]], abs=1e-6)
    assert first["ours"] == pytest.approx(40 * ours[PAIRS[2]], abs=1e-4)
    assert first["released"] == pytest.approx(40 * theirs[PAIRS[2]], abs=1e-4)
    assert first["difference"] == pytest.approx(2.0, abs=1e-3)
    assert found["largest"] == pytest.approx(2.0, abs=1e-3)
    shown = verified("--released", path, "--show", 1, data=data, checkpoint=checkpoint)[1]
    assert [one["pair_id"] for one in shown["differing"]] == [PAIRS[2]]


@pytest.mark.slow
def test_people_read_figures_pairs_and_a_verdict_and_a_second_start_scores_nothing(
    data: Path, checkpoint: Path, ours: pd.Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--data", data, "--checkpoint", f"model={checkpoint}", "--offline")
    path = released(tmp_path, ours + np.where(np.arange(len(PAIRS)) == 3, 1.0, 0.0))
    done = typed("scorers", "verify", METRIC, *words, "--released", path)
    assert done.exit_code == 1
    parts = ("PLCC", "SRCC", "largest difference", "Differs", PAIRS[3], "Apache-2.0", "90 %")
    assert [part for part in parts if part not in done.stdout] == []
    assert PAIRS[2] not in done.stdout
    monkeypatch.setattr("evaluator.scorers.in_process.load_scorer", lambda *_: 1 / 0)
    again = typed("scorers", "verify", METRIC, *words, "--released", path)
    assert again.stdout == done.stdout


@pytest.mark.slow
def test_a_pair_that_cannot_be_scored_counts_against_the_metric(
    data: Path, checkpoint: Path, ours: pd.Series, tmp_path: Path
) -> None:
    damaged = tmp_path / "data"
    shutil.copytree(data, damaged)
    image = damaged / IMAGES / f"{PAIRS[5]}.jpg"
    image.write_bytes(image.read_bytes()[:60])
    path = released(tmp_path, ours)
    code, found = verified("--released", path, data=damaged, checkpoint=checkpoint)
    assert (code, found["pairs"], found["unscored"], found["share"]) == (1, 9, 1, 0.9)
    (only,) = found["differing"]
    assert (only["pair_id"], only["score"], only["difference"]) == (PAIRS[5], None, None)


def refused(code: str, *words: object) -> str:
    done = typed("scorers", "verify", *words)
    assert code_of(done) == code, done.output
    assert getattr(done.exception, "exit_code", 1) == 1
    return str(done.exception)


def test_everything_that_is_missing_is_told_at_once(data: Path, tmp_path: Path) -> None:
    missing = "verification_inputs_missing"
    words = (METRIC, "--offline", "--device", "cuda:99", "--data", tmp_path)
    said = refused(missing, *words)
    for part in (HUMAN, IMAGES, REPO, "--offline", "cuda:99", "fetch tifa160", "docs/verify.md"):
        assert part in said
    few = tmp_path / "few"
    shutil.copytree(data, few)
    for pair in (PAIRS[1], PAIRS[4]):
        (few / IMAGES / f"{pair}.jpg").unlink()
    said = refused(missing, METRIC, "--data", few, "--checkpoint", f"model={tmp_path / 'no'}")
    for part in ("2 of the 10", PAIRS[1], PAIRS[4], str(tmp_path / "no")):
        assert part in said
    said = refused(missing, "tifa-blip2", "--data", few, "--offline")
    for part in ("2 of the 10", "--questions", "Salesforce/blip2-flan-t5-xl", "all-mpnet-base-v2"):
        assert part in said
    assert "gone.jsonl" in refused(missing, "tifa-blip2", "--questions", "gone.jsonl")
    assert not (tmp_path / ".assay").exists()


def test_what_cannot_be_compared_is_refused(data: Path, tmp_path: Path) -> None:
    assert METRIC in refused("unknown_scorer", "clipscore-hesel")
    assert METRIC in refused("no_released_scores", "bvqa")
    malformed = "released_malformed"
    for content, code, named in (
        ("pair_id,score\na,1\n", malformed, COLUMN),
        (f"id,{COLUMN}\na,1\n", malformed, "pair_id"),
        (f"pair_id,{COLUMN}\na,1\na,2\n", malformed, "'a' twice"),
        ("", "unreadable_file", "released.csv"),
    ):
        path = tmp_path / "released.csv"
        path.write_text(content)
        given = ("--data", data, "--released", path)
        assert named in refused(code, METRIC, *given)
    (tmp_path / "released.parquet").write_bytes(b"no table")
    for name, code in (("released.parquet", malformed), ("gone.csv", "file_missing")):
        assert name in refused(code, METRIC, "--released", tmp_path / name)


@pytest.mark.parametrize(
    "given", [("--limit", 3), ("--released", "r.csv"), ("--checkpoint", "model=.")]
)
def test_a_part_or_weights_without_a_commit_are_not_recorded(given: tuple[str, Any]) -> None:
    said = refused("verification_not_recordable", METRIC, "--record", *given)
    assert given[0] in said


@pytest.mark.slow
def test_a_record_is_kept_and_shown_and_goes_stale_with_its_row(
    data: Path,
    checkpoint: Path,
    ours: pd.Series,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = tmp_path / "hub" / f"models--{REPO.replace('/', '--')}" / "snapshots" / COMMIT
    shutil.copytree(checkpoint, snapshot)
    (tmp_path / "assay_checkpoints.json").write_text(json.dumps({REPO: COMMIT}))
    table = ours.mul(40).rename(COLUMN).rename_axis("pair_id").reset_index()
    monkeypatch.setattr(scorers_verify, "released_table", lambda _: table)
    assert state_of(METRIC) == "not yet"

    done = typed("scorers", "verify", METRIC, "--data", data, "--offline", "--record")
    assert done.exit_code == 0, done.output
    assert "commit it" in done.stdout
    found = verification.verifications()[METRIC]
    assert found.weights["model"].model_dump() == {"id": REPO, "commit": COMMIT}
    assert (found.pairs, found.agrees, found.device, found.dtype) == (10, True, "cpu", "float32")
    assert {"torch", "transformers", "open_clip_torch"} <= set(found.packages)
    assert state_of(METRIC) == "verified"
    told = json.loads(typed("scorers", "describe", METRIC, "--json").stdout)["verification"]
    assert told["record"]["weights"] == {"model": {"id": REPO, "commit": COMMIT}}
    assert COMMIT[:12] in typed("scorers", "describe", METRIC).stdout

    table[COLUMN] += 1.0
    again = typed("scorers", "verify", METRIC, "--data", data, "--offline", "--record")
    assert (again.exit_code, state_of(METRIC)) == (1, "differs")

    row = load_rows()[METRIC]
    other = row.checkpoints["model"].model_copy(update={"revision": "b" * 40})
    for changed in (
        row.model_copy(update={"options": {**row.options, "prefix": "A photo of "}}),
        row.model_copy(update={"checkpoints": {"model": other}}),
    ):
        monkeypatch.setattr(
            "evaluator.commands.scorers.load_rows", lambda one=changed: {METRIC: one}
        )
        assert state_of(METRIC) == "earlier version"


def state_of(name: str) -> str:
    listed = json.loads(typed("scorers", "list", "--json").stdout)
    state: str = next(one for one in listed if one["name"] == name)["verification"]["state"]
    return state


def test_the_list_says_plainly_what_was_verified() -> None:
    listed = json.loads(typed("scorers", "list", "--json").stdout)
    states = {one["name"]: one["verification"]["state"] for one in listed}
    assert {name for name, state in states.items() if state == "not yet"} == set(
        verification.references()
    )
    assert set(states.values()) == {"not yet", "none released"}
    assert "not yet verified" in typed("scorers", "describe", METRIC).stdout
    assert "no released per-image scores known" in typed("scorers", "describe", "bvqa").stdout


def test_references_are_of_rows_that_there_are() -> None:
    rows = load_rows()
    assert set(verification.references()) <= set(rows)
    for name, one in verification.references().items():
        assert bool(one.questions) == rows[name].asks_questions


def digest(**changes: Any) -> str:
    row: ScorerRow = load_rows()[METRIC]
    return row.model_copy(update=changes).digest


def test_the_digest_of_a_row_is_of_what_decides_its_scores() -> None:
    row, before = load_rows()[METRIC], digest()
    pinned = row.checkpoints["model"].model_copy(update={"revision": COMMIT, "licence": "MIT"})
    assert digest(title="Another", notes=("One.",), checkpoints={"model": pinned}) == before
    other = row.checkpoints["model"].model_copy(update={"id": "openai/another"})
    changed: tuple[dict[str, Any], ...] = (
        {"dtype": "float16"}, {"options": {}}, {"family": "table"}, {"checkpoints": {"model": other}},
    )  # fmt: skip
    assert before not in {digest(**changes) for changes in changed}
