"""`meta`: every number whole at every width, every dash with its reason, no silent nothing."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from evaluator.__main__ import main
from evaluator.commands.meta_table import NO_REASON, report
from tests.benchmarks.toy import Toy

DIRECTIONS = ("forward_text", "forward_image", "inverse_text", "inverse_image")
TEMPLATES = ("WL", "Likert", "DSG(H)")
SPLITS = ("all", "synthetic", "natural", "reliable", "attributes", "relations")
METRICS = ("clipscore_vit-b/32", "blip2-itm", "vqascore [flan-t5-xxl]", "tifa_mplug-large")


def rows_of(
    measures: Sequence[str],
    facets: Sequence[str | None],
    splits: Sequence[str | None] = SPLITS,
    metrics: Sequence[str] = METRICS,
) -> list[Row]:
    """A row for every combination, each with a value and an interval that no other has."""
    numbers = iter(np.random.default_rng(0).permutation(80_000) / 10_000 - 4)
    return [
        Row("wide", "1", metric, measure, next(numbers), split, None, "paper", facet)
        for metric in metrics
        for measure in measures
        for facet in facets
        for split in splits
    ]


def with_intervals(rows: Sequence[Row]) -> list[Row]:
    return [
        replace(
            r, ci_low=r.value - 10, ci_high=r.value + 10, n_items=28733 + n % 3, n_missing=n % 2
        )
        for n, r in enumerate(rows)
    ]


CROC_SYN = with_intervals(rows_of(["accuracy", "mean_margin"], DIRECTIONS))
GECKO = with_intervals(rows_of(["srcc", "pairwise_accuracy"], TEMPLATES))


def printed(rows: Sequence[Row], width: int, intervals: bool | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    for block in report(rows, width, intervals):
        console.print(block)
    return out.getvalue()


def numbers_in(text: str) -> list[str]:
    """Whole tokens only: what is left of a number that was cut or broken is not among them."""
    return re.findall(r"(?<![\w.-])-?\d+\.\d{4}(?![\w.…])", text)


def titles(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("wide")]


# Widths --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rows", [CROC_SYN, GECKO], ids=["croc_syn", "gecko"])
@pytest.mark.parametrize("intervals", [None, True, False])
@settings(max_examples=12, deadline=None)
@given(width=st.integers(50, 200))
def test_no_number_is_cut_or_lost_at_any_width(
    rows: list[Row], intervals: bool | None, width: int
) -> None:
    text = printed(rows, width, intervals)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    found = numbers_in(text)
    assert [row for row in rows if found.count(f"{row.value:.4f}") != 1] == []
    if intervals:
        assert [row for row in rows if f"{row.ci_low:.4f}" not in found] == []


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("rows", [CROC_SYN, GECKO], ids=["croc_syn", "gecko"])
def test_at_usual_widths_headers_and_names_are_whole(rows: list[Row], width: int) -> None:
    text = printed(rows, width)
    for name in {part for r in rows for part in (r.metric, r.measure, r.facet, r.split) if part}:
        assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), name


@given(name=st.text("ab _-/[]中ß", min_size=1, max_size=90), width=st.integers(50, 90))
@settings(max_examples=25, deadline=None)
def test_names_of_any_length_leave_the_numbers_whole(name: str, width: int) -> None:
    rows = with_intervals(rows_of(["a_measure_of_very_long_name"], DIRECTIONS, metrics=[name]))
    found = numbers_in(printed(rows, width))
    assert [row for row in rows if f"{row.value:.4f}" not in found] == []


def test_a_table_is_cut_by_measure_then_facet_then_split() -> None:
    rows = rows_of(["accuracy", "mean_margin"], DIRECTIONS, metrics=["m"])
    wide = printed(rows, 1000)
    assert titles(wide) == ["wide · variant paper"]
    assert titles(printed(rows, 400)) == [
        "wide · variant paper · accuracy",
        "wide · variant paper · mean_margin",
    ]
    by_facet = titles(printed(rows, 80))
    assert by_facet == [
        f"wide · variant paper · {measure} · {direction}"
        for measure in ("accuracy", "mean_margin")
        for direction in DIRECTIONS
    ]
    by_split = titles(printed(rows, 50))
    assert len(by_split) == 2 * len(by_facet)
    assert list(dict.fromkeys(by_split)) == by_facet


def test_measures_that_fit_side_by_side_share_a_table() -> None:
    rows = rows_of(["a", "b", "c", "d"], [None], [None], metrics=["m"])
    assert titles(printed(rows, 50)) == ["wide · variant paper"]


def test_where_nothing_fits_each_value_has_a_line() -> None:
    rows = with_intervals(rows_of(["rank"], [None], ["all", "nat"], metrics=["m" * 60]))
    text = printed(rows, 60)
    assert f"  all: {rows[0].value:.4f} [" in text
    assert "n 28733" in text
    assert "missing 1" in text


# Intervals and counts ------------------------------------------------------------------------


def test_intervals_stand_beside_values_where_a_measure_has_room() -> None:
    row = Row("wide", "1", "m", "rank", 0.5, ci_low=0.41234, ci_high=0.6, n_items=7)
    assert "0.5000 [0.4123, 0.6000]" in printed([row], 80)
    assert "[" not in printed([row], 80, intervals=False).replace("[low, high]", "")


def test_intervals_left_out_are_mentioned_and_can_be_had() -> None:
    assert "--intervals" in printed(GECKO, 80)
    low = f"{GECKO[0].ci_low:.4f}"
    assert low not in printed(GECKO, 80)
    assert low in printed(GECKO, 80, intervals=True)
    assert "--intervals" not in printed(GECKO, 80, intervals=True)


def test_counts_of_metrics_have_columns_only_where_they_differ() -> None:
    full = Row("wide", "1", "full", "rank", 0.5, n_items=10)
    half = replace(full, metric="half", n_items=4, n_missing=6)
    text = printed([full, half], 80)
    assert re.search(r"full +0\.5000 +10 +0\b", text)
    assert re.search(r"half +0\.5000 +4 +6\b", text)
    assert "n ≤ 10" in text
    alone = printed([full], 80)
    assert re.search(r"metric +n 10 *\n", alone)
    assert "missing" not in alone


def test_counts_that_differ_by_split_are_given_from_least_to_most() -> None:
    whole = Row("wide", "1", "half", "rank", 0.5, split="all", n_items=7, n_missing=3)
    part = replace(whole, split="nat", n_items=2, n_missing=1)
    full = replace(whole, metric="full", n_items=10, n_missing=0)
    text = printed([whole, part, full, replace(full, split="nat", n_items=3)], 80)
    assert re.search(r"half +0\.5000 +0\.5000 +2–7 +1–3\b", text)
    assert re.search(r"full +0\.5000 +0\.5000 +3–10 +0\b", text)


# Reasons -------------------------------------------------------------------------------------


def test_every_dash_has_its_reason() -> None:
    good = Row("wide", "1", "good", "rank", 0.5, split="all")
    rows = [
        good,
        replace(good, split="nat"),
        replace(good, metric="one", value=math.nan, note="one prompt only"),
        replace(good, metric="one", split="nat", note="tied throughout"),
        replace(good, metric="none", value=math.nan, note="one prompt only"),
        replace(good, metric="none", split="nat", value=math.nan),
    ]
    lines = [line.strip() for line in printed(rows, 100).splitlines()]
    assert "one, none (all): one prompt only" in lines
    assert "one (nat): tied throughout" in lines
    assert f"none (nat): {NO_REASON}" in lines


def test_a_note_of_every_metric_is_said_once() -> None:
    rows = [replace(row, note="as printed") for row in rows_of(["rank"], [None])]
    text = printed(rows, 200)
    assert text.count("as printed") == 1
    assert "every metric: as printed" in text


def test_a_measure_a_metric_does_not_have_is_blank_not_a_dash() -> None:
    rows = [Row("wide", "1", "a", "rank", 0.5), Row("wide", "1", "b", "sep", 0.5)]
    assert "–" not in printed(rows, 80)


# The command ---------------------------------------------------------------------------------


class Wide(Toy):
    """The toy, but with rows of its own."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)

    def evaluate(self, scores: ScoreTable, answers: Any, n_resamples: int = 1) -> Measured:
        return Measured(self.rows, np.full((len(self.rows), n_resamples), np.nan))


@dataclass
class Ended:
    code: int
    out: str
    err: str


Meta = Callable[..., Ended]


@pytest.fixture
def meta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Meta:
    """Run `meta` on a benchmark with the given rows at the given width."""
    file = tmp_path / "scores.csv"
    file.write_text("pair_id,score\na,1\nb,2\nc,3\n")

    def run(rows: Sequence[Row], *words: str, width: int = 100) -> Ended:
        monkeypatch.setattr("evaluator.commands.meta.load_registry", lambda: {"wide": Wide(rows)})
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.argv", ["x", "meta", "wide", "--scores", str(file), *words])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return run


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_command_prints_whole_numbers(meta: Meta, width: int) -> None:
    end = meta(CROC_SYN, width=width)
    assert end.code == 0
    assert "…" not in end.out
    found = numbers_in(end.out)
    assert [row for row in CROC_SYN if f"{row.value:.4f}" not in found] == []
    assert max(map(len, end.out.splitlines())) <= width


def test_intervals_can_be_asked_for(meta: Meta) -> None:
    assert f"{GECKO[0].ci_low:.4f}" not in meta(GECKO, width=80).out
    assert f"{GECKO[0].ci_low:.4f}" in meta(GECKO, "--intervals", width=80).out


@pytest.mark.parametrize("more", [(), ("--json",), ("--variant", "paper")])
def test_an_unknown_variant_is_an_error_that_lists_the_known(
    meta: Meta, more: tuple[str, ...]
) -> None:
    rows = [GECKO[0], replace(GECKO[0], variant="assay")]
    end = meta(rows, "--variant", "papr", *more)
    assert (end.code, end.out) == (1, "")
    assert "unknown_variant" in end.err
    assert "'papr'" in end.err
    assert "paper, assay" in end.err


def test_a_known_variant_is_shown_alone(meta: Meta) -> None:
    rows = [GECKO[0], replace(GECKO[0], variant="assay")]
    assert titles(meta(rows, "--variant", "assay").out)[0].startswith("wide · variant assay")


def test_a_variant_of_skills_only_is_not_passed_over_in_silence(meta: Meta) -> None:
    rows = [GECKO[0], replace(GECKO[0], variant="assay", skill="counting")]
    end = meta(rows, "--variant", "assay")
    assert end.code == 0
    assert "--skills" in end.out
    assert "counting" in meta(rows, "--variant", "assay", "--skills").out


def test_json_holds_every_field_of_every_row(meta: Meta) -> None:
    rows = [GECKO[0], replace(GECKO[0], skill="counting", value=math.nan, note="why")]
    assert json.loads(meta(rows, "--json").out) == [row.to_json() for row in rows]
