"""The bundle of released results: what is in it, where it comes from, and that nobody changed it."""

from __future__ import annotations

import json
import shutil
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.genai_bench.protocol import GENAI_1600
from benchmarks.parquet import parquet_table
from benchmarks.published import papers
from benchmarks.registry import load_registry
from benchmarks.released import bundle
from benchmarks.released.bundle import FOLDER, read_manifest, released_bytes, released_table
from benchmarks.rows import Row
from benchmarks.scores import read_scores
from benchmarks.sources.pins import sha256_of
from benchmarks.tifa160.protocol import TIFA160
from benchmarks.ts2.protocol import Ts2
from tests.kit.refusals import refused
from tests.kit.tiers import led_by
from tools.make_released import MAKERS, changed_originals

BUNDLED = {"ts2": Ts2(), "tifa160": TIFA160, "genai_1600": GENAI_1600}
PATHS = tuple(file.path for file in read_manifest().files)
SCORES = pytest.mark.parametrize("one", read_manifest().scores, ids=lambda one: one.name)
# Text in a table names something; it never is a prompt or a question.
TEXTS = {"pair_id", "prompt_id", "label", "model", "questions", "answered_by", "parents", "tag"}
MALFORMED = {"ts2/scores.parquet": {"llmscore_over"}}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle that a test may spoil."""
    folder = tmp_path / "released"
    shutil.copytree(FOLDER, folder)
    monkeypatch.setattr(bundle, "FOLDER", folder)
    return folder


def test_the_manifest_names_every_table_and_nothing_else() -> None:
    there = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.parquet")}
    assert set(PATHS) == there == set(MAKERS)
    with refused("invalid_benchmark"):
        released_bytes("ts2/other.parquet")


@pytest.mark.parametrize("path", PATHS)
def test_a_table_is_the_one_of_the_manifest_and_holds_figures_and_ids_only(path: str) -> None:
    file = read_manifest().file(path)
    assert sha256_of(FOLDER / path) == file.sha256
    assert file.source.startswith("https://")
    assert file.commit and file.originals and file.holds
    assert any(name in file.licence for name in ("MIT", "Apache-2.0"))
    table = parquet_table((FOLDER / path).read_bytes())
    texts = {field.name for field in table.schema if str(field.type) in ("string", "large_string")}
    assert texts <= TEXTS | MALFORMED.get(path, set())
    for name in texts - {"parents"}:
        # An id, a tag or a cell that ought to be a number: never a sentence.
        assert max(len(text.split()) for text in table[name].to_pylist() if text) <= 2, name


@pytest.mark.slow
@pytest.mark.paper
def test_no_prompt_is_in_any_table(assay_data: Path) -> None:
    prompts = {text for one in BUNDLED.values() for text in one.texts(assay_data).values()}
    assert len(prompts) > 1500
    for path in PATHS:
        table = parquet_table((FOLDER / path).read_bytes())
        cells = {cell for column in table.columns for cell in column.to_pylist()}
        assert not prompts & cells, path


@pytest.mark.first_quick
@pytest.mark.paper
@pytest.mark.parametrize("path", led_by(PATHS, lambda path: path == "ts2/scores.parquet"))
def test_a_table_is_what_the_authors_files_give(assay_data: Path, path: str) -> None:
    assert changed_originals(read_manifest().file(path), assay_data) == []
    assert parquet_table((FOLDER / path).read_bytes()).equals(MAKERS[path](assay_data))


@pytest.mark.slow
@pytest.mark.paper
def test_scores_are_the_released_figures_cell_by_cell(assay_data: Path) -> None:
    ts2 = pd.read_csv(assay_data / "ts2" / "scores_all.csv", dtype=str, keep_default_na=False)
    found = released_table("ts2/scores.parquet")
    assert list(found) == list(ts2)
    for name in ts2.columns.drop(["pair_id", "llmscore_over"]):
        assert found[name].tolist() == pytest.approx(
            [float(cell) if cell else np.nan for cell in ts2[name]], rel=0, abs=0, nan_ok=True
        )
    assert found["llmscore_over"].tolist() == ts2["llmscore_over"].tolist()
    path = assay_data / "tifa160" / "human_annotations_with_scores.json"
    entries = json.loads(path.read_text("utf-8"))
    tifa = released_table("tifa160/scores.parquet").set_index("pair_id")
    assert tifa.shape == (800, 10)
    for name in map(str, tifa):
        assert tifa[name].to_dict() == {key: entry[name] for key, entry in entries.items()}


@pytest.mark.parametrize("path", PATHS)
def test_a_changed_table_is_told_by_name(copied: Path, path: str) -> None:
    content = bytearray((copied / path).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / path).write_bytes(content)
    with refused("data_malformed", match=f"benchmarks/released/{path} "):
        released_bytes(path)


@pytest.mark.parametrize(
    "table", ["ts2/structure.parquet", "tifa160/ratings.parquet", "genai_1600/tags.parquet"]
)
def test_a_benchmark_names_the_table_it_lacks(copied: Path, table: str) -> None:
    (copied / table).unlink()
    with refused("data_missing", match=f"benchmarks/released/{table} "):
        load_registry()[table.partition("/")[0]].answers(None)


@pytest.mark.parametrize("text", ["files = 1", "[[files]", "[[files]]\npath = 'a'"])
def test_a_broken_manifest_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "released.toml").write_text(text, "utf-8")
    monkeypatch.setattr(bundle, "MANIFEST", tmp_path / "released.toml")
    with refused("invalid_benchmark", match=r"released\.toml"):
        read_manifest.__wrapped__()


@pytest.mark.first_quick
@pytest.mark.paper
@pytest.mark.parametrize("name", BUNDLED)
def test_answers_of_the_bundle_are_those_of_the_authors_files(assay_data: Path, name: str) -> None:
    bundled, original = (BUNDLED[name].answers(data) for data in (None, assay_data))
    # The bundle has no prompts, so the items are compared by what their ratings are of.
    fields = ["images" if one == "items" else one for one in original.__dataclass_fields__]
    for field in fields:
        _same(getattr(bundled, field), getattr(original, field), f"{name}.{field}")
    assert list(bundled.counts().items()) == list(original.counts().items())


def _same(found: object, expected: object, place: str) -> None:
    if isinstance(expected, pd.DataFrame):
        assert isinstance(found, pd.DataFrame)
        pd.testing.assert_frame_equal(found, expected)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    elif is_dataclass(expected):
        _same(vars(found), vars(expected), place)
    elif isinstance(expected, dict):
        assert isinstance(found, dict) and set(found) == set(expected), place
        for key, value in expected.items():
            _same(found[key], value, f"{place}.{key}")
    else:
        assert found == expected, place


@pytest.mark.slow
@pytest.mark.paper
@SCORES
def test_rows_are_the_same_with_and_without_a_folder_of_data(assay_data: Path, one: Any) -> None:
    benchmark = load_registry()[one.benchmark]

    def rows(data: Path | None) -> list[dict[str, Any]]:
        answers = benchmark.answers(data)
        scores = read_scores(FOLDER / one.path, benchmark, answers)
        return list(map(Row.to_json, benchmark.evaluate(scores, answers, n_resamples=50).rows))

    assert rows(None) == rows(assay_data)


@SCORES
def test_released_scores_name_their_paper_authors_and_every_pair(one: Any) -> None:
    assert one.paper in papers() and one.authors
    benchmark = load_registry()[one.benchmark]
    answers = benchmark.answers(None)
    table = read_scores(FOLDER / one.path, benchmark, answers, lower_is_better=one.lower_is_better)
    assert len(table.metrics) in (9, 10, 18, 19)
    assert {m for m, sign in table.directions.items() if sign == -1} == set(one.lower_is_better)
    assert tuple(table.overall.index) == answers.pair_ids


@pytest.mark.parametrize("name", BUNDLED)
def test_prompts_are_there_only_with_a_folder_of_data(name: str) -> None:
    benchmark = BUNDLED[name]
    assert benchmark.has_answers(None) and not benchmark.has_questions(None)
    assert benchmark.texts(None) == {}
    cases = benchmark.cases(benchmark.answers(None), None)
    assert cases is not None and set(cases["prompt"]) == {""}
