"""The list of errata: complete, readable, and one function for each that is recomputed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from benchmarks.errata import (
    Erratum,
    ErratumCell,
    entries,
    errata,
    recompute_tifa160,
    recompute_ts2,
)
from benchmarks.errata.__main__ import main
from benchmarks.errata.entries import ErrataFile, erratum
from benchmarks.errata.recompute import RecomputedCell, functions, recompute
from benchmarks.errors import PlatformError, SubmitterError

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
    assert set(functions()) == {e.id for e in errata() if e.recompute}


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
    assert (cell.shown, cell.confirmed, cell.explained) == ("0.24", True, True)
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


class TestCommand:
    def run(self, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["benchmarks.errata", *arguments])
        monkeypatch.setenv("COLUMNS", "250")
        monkeypatch.delenv("ASSAY_DATA", raising=False)
        try:
            return main()
        except SystemExit as end:
            return int(end.code or 0)

    def test_without_an_id_all_are_listed(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch) == 0
        printed = capsys.readouterr().out
        assert all(found.id in printed for found in errata())

    def test_with_an_id_printed_and_recomputed_stand_side_by_side(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch, "evalmuse-vq2-overall") == 0
        printed = capsys.readouterr().out
        assert "67.9" in printed
        assert "67.2" in printed

    def test_a_tick_says_that_the_data_give_the_correct_figure(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch, "ts2-ranks-of-ties") == 0
        printed = capsys.readouterr().out
        assert "-0.8947 ✓" in printed
        assert "-1 ✓" in printed
        assert "differs" not in printed

    def test_another_figure_and_another_mistake_are_said_to_differ(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cell = RecomputedCell("sum", printed="3", correct="4", recomputed=5.0, mistake=2.0)
        monkeypatch.setattr("benchmarks.errata.command.recompute", lambda *_: (cell,))
        assert self.run(monkeypatch, "ts2-ranks-of-ties") == 0
        printed = capsys.readouterr().out
        assert "5 differs" in printed
        assert "2 differs" in printed

    def test_one_that_is_not_recomputed_is_shown_as_entered(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch, "croc-share-of-setups") == 0
        assert "not known" in capsys.readouterr().out

    def test_json_is_for_programs(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch, "gecko-sxs-alpha", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["recomputed"][0]["recomputed"] == pytest.approx(0.5465)
        assert found["recomputed"][0]["confirmed"] is True
        assert self.run(monkeypatch, "--json") == 0
        assert len(json.loads(capsys.readouterr().out)) == len(errata())

    def test_missing_data_end_with_code_1(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch, "gecko-release") == 1
        assert "data_missing" in capsys.readouterr().err


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


def test_two_functions_for_one_erratum_are_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recompute_tifa160, "RECOMPUTE", recompute_ts2.RECOMPUTE)
    functions.cache_clear()
    try:
        with pytest.raises(PlatformError, match="Two functions recompute") as found:
            functions()
    finally:
        functions.cache_clear()
    assert found.value.code == "duplicate_recompute"


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
