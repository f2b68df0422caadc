"""Errata: complete, each that can be recomputed confirmed, and the files they are made from."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from pydantic import ValidationError

from benchmarks.errata import Erratum, ErratumCell, entries, errata
from benchmarks.errata.__main__ import main
from benchmarks.errata.entries import FILE, ErrataFile, data_folder, erratum, files
from benchmarks.errata.figures import RECOMPUTE, RecomputedCell, address, check_data, recompute
from benchmarks.registry import load_registry
from tests.kit.checks import Command
from tests.kit.refusals import refused

FROM_DATA = [entry for entry in errata() if entry.data]
NEEDS_NO_DATA = [entry for entry in errata() if entry.recompute and not entry.data]
GENAI = erratum("genai-out-of-range-ratings")
TS2 = ("ts2/metadata.csv", "ts2/scores.csv")
PAPERS = {"croc", "dsg", "evalmuse", "gecko", "genai_bench", "ntire2025", "tifa", "ts2"}
"""None is known of Re-Thinking."""


# Entries.


def test_the_list_is_complete_and_each_that_is_recomputed_has_a_function() -> None:
    assert {e.paper for e in errata()} == PAPERS
    assert len(errata()) == 36
    assert set(RECOMPUTE) == {e.id for e in errata() if e.recompute}
    assert set(files()) == {path for entry in errata() for path in entry.data}
    for found in errata():
        assert found.title.endswith(".")
        assert found.why.endswith(".")
        if found.id != "gecko-sxs-alpha":  # there one of the two figures fits, to show that it can
            assert all(cell.printed != cell.correct for cell in found.cells)
        if found.recompute:
            assert all(float(cell.correct) == float(cell.correct) for cell in found.cells)
    assert erratum("tifa-rouge-rounded-twice").command.endswith("rounded-twice --data DATA")
    assert erratum("croc-syn-chance").command == "python -m benchmarks.errata croc-syn-chance"
    assert erratum("croc-first-cell").command == ""
    with refused("unknown_erratum") as caught:
        erratum("no-such-thing")
    assert "croc-syn-chance" in caught.value.hint


def entry(**changes: object) -> Erratum:
    fields: dict[str, object] = {
        "id": "some-slip",
        "paper": "tifa",
        "where": "Table 1",
        "title": "A figure is wrong.",
        "why": "It does not add up.",
        "kind": "inconsistent",
        "cells": [{"label": "sum", "printed": "3", "correct": "4"}],
    }
    return Erratum.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"paper": "unheard"}, "no 'unheard'"),
        ({"cells": [{"label": "a", "printed": "1"}] * 2}, "stands twice"),
        ({"data": ["x.csv"]}, "not recomputed"),
        ({"cells": []}, "at least 1"),
        ({"kind": "rumour"}, "recomputed"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(changes: dict, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        entry(**changes)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([entry(recompute=True, data=["x.csv"])], r"'x\.csv'"),
        ([entry(), entry()], "'some-slip' stands"),
    ],
)
def test_a_list_that_does_not_fit_together_is_refused(entries: list[Erratum], reason: str) -> None:
    listed = {"files": [], "errata": [e.model_dump() for e in entries]}
    with pytest.raises(ValidationError, match=reason):
        ErrataFile.model_validate(listed)


def test_a_list_that_contradicts_itself_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "errata.toml"
    wrong.write_text('files = []\n[[errata]]\nid = "Not An Id"\n')
    monkeypatch.setattr(entries, "FILE", wrong)
    entries._list.cache_clear()
    try:
        with refused("malformed_errata", match=r"errata\.toml: .*pattern"):
            errata()
    finally:
        entries._list.cache_clear()


# Recomputing.


@pytest.mark.parametrize("found", NEEDS_NO_DATA, ids=lambda e: e.id)
def test_what_the_printed_tables_or_arithmetic_decide_is_confirmed(found: Erratum) -> None:
    for cell in recompute(found, None):
        assert cell.confirmed, cell
        assert cell.explained is not False, cell


@pytest.mark.paper
@pytest.mark.slow
@pytest.mark.parametrize("entry", FROM_DATA, ids=lambda e: e.id)
def test_correct_figures_follow_from_the_released_data(entry: Erratum, assay_data: Path) -> None:
    """The table and the source are named in the entry itself."""
    cells = recompute(entry, assay_data)
    assert [cell.label for cell in cells] == [cell.label for cell in entry.cells]
    known = entry.paper in {"ts2", "tifa", "dsg", "ntire2025", "genai_bench"}  # how it came about
    for cell in cells:
        assert cell.confirmed, cell
        assert cell.explained or (cell.explained is None and not known), cell


def test_a_cell_is_confirmed_by_its_digits_and_explained_by_the_printed_ones() -> None:
    cell = RecomputedCell("rouge", printed="0.25", correct="0.24", recomputed=0.2449, mistake=0.25)
    assert (cell.rounded, cell.confirmed, cell.explained) == ("0.24", True, True)
    other = RecomputedCell("rouge", printed="0.25", correct="0.25", recomputed=0.2449, mistake=None)
    assert (other.confirmed, other.explained) == (False, None)


def test_what_has_no_function_or_other_cells_is_not_recomputed() -> None:
    with refused("not_recomputable", match="'croc-first-cell'"):
        recompute(erratum("croc-first-cell"), None)
    known, other = NEEDS_NO_DATA[0], ErratumCell(label="unheard of", printed="1", correct="2")
    with refused("labels_differ", match="unheard of"):
        recompute(known.model_copy(update={"cells": (*known.cells, other)}), None)


# The files: where anyone gets them, where they may lie, what they must be.


def test_every_file_has_an_origin_and_a_hash_and_those_of_benchmarks_are_of_their_cards() -> None:
    cards = {f.path: f for b in load_registry().values() for f in b.card.files if not f.optional}
    for path, file in files().items():
        assert file.sha256
        assert file.size
        assert (file.supplied or address(file)).count("https://") == 1
        if path in cards:
            assert file == cards[path].model_copy(update={"role": "answers"})
    assert {"ts2/metadata.csv", "genai_1600/genai_image.json", "gecko/prompts.csv"} <= {*cards} & {
        *files()
    }
    assert address(files()["genai_527/genai_image.json"]) == (
        "https://huggingface.co/datasets/zhiqiulin/GenAI-Bench-527/resolve/main/genai_image.json"
    )


@pytest.mark.parametrize("entry", FROM_DATA, ids=lambda e: e.id)
def test_missing_files_are_named_with_the_way_to_get_each(entry: Erratum, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with refused("data_missing") as raised:
            check_data(entry, folder)
        for path in entry.data:
            assert path in raised.value.message
            assert (files()[path].supplied or address(files()[path])) in raised.value.hint
        assert ("--data" in raised.value.hint) == (folder is None)


def test_only_the_missing_files_are_named(assay_data: Path, tmp_path: Path) -> None:
    (tmp_path / "ts2").mkdir()
    shutil.copyfile(assay_data / "ts2" / "metadata.csv", tmp_path / "ts2" / "metadata.csv")
    with refused("data_missing", match=r"from ts2/scores\.csv;"):
        check_data(erratum("ts2-delta-subsets"), tmp_path)


def test_a_file_of_another_release_is_refused_by_its_hash(tmp_path: Path) -> None:
    (tmp_path / "gecko").mkdir()
    (tmp_path / "gecko" / "prompts.csv").write_text("prompt_type\nGecko(S)\n")
    with refused("data_malformed", match=r"prompts\.csv .*81058b468d1bef5b"):
        recompute(erratum("gecko-release"), tmp_path)


@pytest.mark.parametrize(
    "place", ["genai_1600/genai_image.json", "genai_bench/genai1600_genai_image.json"]
)
def test_ratings_are_found_where_fetch_puts_them_and_where_a_copy_may_lie(
    place: str, assay_data: Path, tmp_path: Path
) -> None:
    released = data_folder(assay_data)
    for path, there in zip(GENAI.data, (place, "genai_527/genai_image.json"), strict=True):
        (tmp_path / there).parent.mkdir(exist_ok=True)
        shutil.copyfile(released.path(path), tmp_path / there)
    assert all(cell.confirmed for cell in recompute(GENAI, tmp_path))


def test_the_documented_lines_make_the_released_scores_file(
    assay_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a table laid out like `scores_final_all_3.csv`, with columns that are not kept."""
    folder = tmp_path / "data"
    (folder / "ts2").mkdir(parents=True)
    shutil.copyfile(assay_data / "ts2" / "metadata.csv", folder / "ts2" / "metadata.csv")
    scores = pd.read_csv(assay_data / "ts2" / "scores.csv", dtype=str, keep_default_na=False)
    released = scores.drop(columns="pair_id").iloc[:, ::-1].assign(fuyu_tifa="0.5")
    released.insert(0, "image_id", "")
    released.to_csv(tmp_path / "scores_final_all_3.csv", index=False)
    text = (FILE.parent / "FORMAT.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(lines, {})
    assert (
        data_folder(folder).path("ts2/scores.csv").read_bytes()
        == (assay_data / "ts2" / "scores.csv").read_bytes()
    )


# The command.


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    return Command(main, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], [entry.id for entry in errata()]),
        (["evalmuse-vq2-overall"], ["67.9", "67.2"]),
        (["ts2-ranks-of-ties"], ["-0.8947 ✓", "-1 ✓"]),
        (["croc-share-of-setups"], ["not known"]),  # not recomputed: shown as entered
    ],
)
def test_the_command_lists_all_or_shows_one(
    run: Command, arguments: list[str], printed: list[str]
) -> None:
    assert run(*arguments) == 0
    assert all(text in run.out for text in printed)
    assert "differs" not in run.out or not arguments


def test_another_figure_and_another_mistake_are_said_to_differ(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = RecomputedCell("sum", printed="3", correct="4", recomputed=5.0, mistake=2.0)
    monkeypatch.setattr("benchmarks.errata.__main__.recompute", lambda *_: (cell,))
    assert run("ts2-ranks-of-ties") == 0
    assert {"5 differs", "2 differs"} <= set(re.findall(r"\d differs", run.out))


def test_json_is_for_programs_and_missing_data_end_with_code_1(run: Command) -> None:
    assert run("gecko-sxs-alpha", "--json") == 0
    (cell,) = json.loads(run.out)["recomputed"]
    assert (cell["confirmed"], cell["recomputed"]) == (True, pytest.approx(0.5465))
    assert run("--json") == 0
    assert len(json.loads(run.out)) == len(errata())
    assert run("gecko-release") == 1
    assert "data_missing" in run.err
