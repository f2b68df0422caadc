"""The list of errata: complete, readable, and one function for each that is recomputed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from benchmarks.errata import Erratum, ErratumCell, entries, errata
from benchmarks.errata.__main__ import main
from benchmarks.errata.entries import ErrataFile, erratum
from benchmarks.errata.figures import RECOMPUTE
from benchmarks.errata.recompute import RecomputedCell, recompute
from benchmarks.errors import PlatformError, SubmitterError
from tests.benchmarks.called import Command

NEEDS_NO_DATA = [entry for entry in errata() if entry.recompute and not entry.data]


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


def test_every_erratum_that_is_recomputed_has_a_function_and_no_other() -> None:
    assert set(RECOMPUTE) == {e.id for e in errata() if e.recompute}


def test_every_recomputed_cell_has_a_figure_to_be_held_to() -> None:
    for found in errata():
        if found.recompute:
            assert all(float(cell.correct) == float(cell.correct) for cell in found.cells)


@pytest.mark.parametrize("found", errata(), ids=lambda e: e.id)
def test_an_erratum_says_something_about_what_is_printed(found: Erratum) -> None:
    if found.id != "gecko-sxs-alpha":  # there one of the two figures fits, to show that it can
        assert all(cell.printed != cell.correct for cell in found.cells)
    assert found.title.endswith(".")
    assert found.why.endswith(".")


def test_papers_have_the_errata_they_should() -> None:
    assert {e.paper for e in errata()} == {
        "croc",
        "dsg",
        "evalmuse",
        "gecko",
        "genai_bench",
        "ntire2025",
        "tifa",
        "ts2",
    }  # none is known of Re-Thinking
    assert len(errata()) == 36


def test_the_command_names_the_data_only_where_they_are_read() -> None:
    assert erratum("tifa-rouge-rounded-twice").command.endswith("rounded-twice --data DATA")
    assert erratum("croc-syn-chance").command == "python -m benchmarks.errata croc-syn-chance"
    assert erratum("croc-first-cell").command == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"paper": "unheard"}, "no 'unheard'"),
        ({"cells": [{"label": "a", "printed": "1"}] * 2}, "stands twice"),
        ({"data": ["x.csv"]}, "is not recomputed"),
        ({"cells": []}, "at least 1 item"),
        ({"kind": "rumour"}, "recomputed"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(changes: dict, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        entry(**changes)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([entry(recompute=True, data=["x.csv"])], r"'x\.csv' is not among the files"),
        ([entry(), entry()], "id 'some-slip' stands twice"),
    ],
)
def test_a_list_that_does_not_fit_together_is_refused(entries: list[Erratum], reason: str) -> None:
    listed = {"files": [], "errata": [e.model_dump() for e in entries]}
    with pytest.raises(ValidationError, match=reason):
        ErrataFile.model_validate(listed)


@pytest.mark.parametrize("found", NEEDS_NO_DATA, ids=lambda e: e.id)
def test_what_the_printed_tables_or_arithmetic_decide_is_confirmed(found: Erratum) -> None:
    for cell in recompute(found, None):
        assert cell.confirmed, cell
        assert cell.explained is not False, cell


def test_a_cell_is_confirmed_by_its_digits_and_explained_by_the_printed_ones() -> None:
    cell = RecomputedCell("rouge", printed="0.25", correct="0.24", recomputed=0.2449, mistake=0.25)
    assert (cell.rounded, cell.confirmed, cell.explained) == ("0.24", True, True)
    other = RecomputedCell("rouge", printed="0.25", correct="0.25", recomputed=0.2449, mistake=None)
    assert (other.confirmed, other.explained) == (False, None)


def test_what_has_no_function_is_not_recomputed() -> None:
    with pytest.raises(SubmitterError, match="'croc-first-cell' is not recomputed here"):
        recompute(erratum("croc-first-cell"), None)


@pytest.mark.parametrize("folder", [None, "empty"])
def test_missing_data_are_named(folder: str | None, tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match=r"tifa160/human_annotations_with_scores\.json"):
        recompute(erratum("tifa-rouge-rounded-twice"), tmp_path if folder else None)


def test_an_unknown_erratum_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SubmitterError, match="croc-syn-chance"):
        erratum("no-such-thing")


def test_a_cell_may_have_no_known_correction() -> None:
    assert ErratumCell(label="a", printed="1").correct == ""


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
    monkeypatch.setattr("benchmarks.errata.command.recompute", lambda *_: (cell,))
    assert run("ts2-ranks-of-ties") == 0
    assert "5 differs" in run.out
    assert "2 differs" in run.out


def test_json_is_for_programs(run: Command) -> None:
    assert run("gecko-sxs-alpha", "--json") == 0
    (cell,) = json.loads(run.out)["recomputed"]
    assert cell["confirmed"] is True
    assert cell["recomputed"] == pytest.approx(0.5465)
    assert run("--json") == 0
    assert len(json.loads(run.out)) == len(errata())


def test_missing_data_end_with_code_1(run: Command) -> None:
    assert run("gecko-release") == 1
    assert "data_missing" in run.err


def test_a_list_that_contradicts_itself_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "errata.toml"
    wrong.write_text('files = []\n[[errata]]\nid = "Not An Id"\n')
    monkeypatch.setattr(entries, "FILE", wrong)
    entries._list.cache_clear()
    try:
        with pytest.raises(PlatformError, match=r"errata\.toml: .*should match pattern") as found:
            errata()
    finally:
        entries._list.cache_clear()
    assert found.value.code == "malformed_errata"


def test_a_function_that_computes_other_cells_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = NEEDS_NO_DATA[0]
    more = known.model_copy(
        update={
            "cells": (*known.cells, ErratumCell(label="unheard of", printed="1", correct="2")),
        }
    )
    with pytest.raises(PlatformError, match="only one side has unheard of") as found:
        recompute(more, None)
    assert found.value.code == "labels_differ"
