"""`meta`: every number whole at every width, every dash with its reason, no silent nothing."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from evaluator.commands.meta import NO_REASON, report
from tests.evaluator.commands.submitting import Ended, Run
from tests.kit.toy import Toy

DIRECTIONS = ("forward_text", "forward_image", "inverse_text", "inverse_image")
TEMPLATES = ("WL", "Likert", "DSG(H)")
SPLITS = ("all", "synthetic", "natural", "reliable", "attributes", "relations")
METRICS = ("clipscore_vit-b/32", "blip2-itm", "vqascore [flan-t5-xxl]", "tifa_mplug-large")


def rows_of(
    measures: Sequence[str],
    facets: Sequence[str | None] = (None,),
    splits: Sequence[str | None] = SPLITS,
    metrics: Sequence[str] = ("m",),
    *,
    bare: bool = False,
) -> list[Row]:
    """A row for every combination, each with a value (and an interval) that no other has."""
    numbers = iter(np.random.default_rng(0).permutation(80_000) / 10_000 - 4)
    rows = [
        Row("wide", "1", metric, measure, next(numbers), split, None, "paper", facet)
        for metric in metrics
        for measure in measures
        for facet in facets
        for split in splits
    ]
    return (
        rows
        if bare
        else [
            replace(
                r, ci_low=r.value - 10, ci_high=r.value + 10, n_items=28733 + n % 3, n_missing=n % 2
            )
            for n, r in enumerate(rows)
        ]
    )


CROC_SYN = rows_of(["accuracy", "mean_margin"], DIRECTIONS, metrics=METRICS)
GECKO = rows_of(["srcc", "pairwise_accuracy"], TEMPLATES, metrics=METRICS)
BOTH = pytest.mark.parametrize("rows", [CROC_SYN, GECKO], ids=["croc_syn", "gecko"])


def printed(rows: Sequence[Row], width: int, intervals: bool | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    for block in report(rows, width, intervals):
        console.print(block)
    return out.getvalue()


def numbers_in(text: str) -> list[str]:
    """Whole tokens only: what is left of a number that was cut or broken is not among them."""
    return re.findall(r"(?<![\w.-])-?\d+\.\d{4}(?![\w.…])", text)


def lost(rows: Sequence[Row], text: str) -> list[Row]:
    found = numbers_in(text)
    return [row for row in rows if found.count(f"{row.value:.4f}") != 1]


def titles(rows: Sequence[Row], width: int) -> list[tuple[str, ...]]:
    """Of each table, without the benchmark."""
    lines = [line.strip() for line in printed(rows, width).splitlines() if line.startswith("wide")]
    return [tuple(line.split(" · ")[1:]) for line in lines]


# Widths --------------------------------------------------------------------------------------


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("intervals", [None, True, False])
@settings(max_examples=12, deadline=None)
@given(width=st.integers(50, 200))
def test_no_number_is_lost_at_any_width(
    rows: list[Row], intervals: bool | None, width: int
) -> None:
    text = printed(rows, width, intervals)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert lost(rows, text) == []
    if intervals:
        found = numbers_in(text)
        assert [row for row in rows if f"{row.ci_low:.4f}" not in found] == []


@given(name=st.text("ab _-/[]中ß", min_size=1, max_size=90), width=st.integers(50, 90))
@settings(max_examples=25, deadline=None)
def test_names_of_any_length_leave_the_numbers_whole(name: str, width: int) -> None:
    rows = rows_of(["a_measure_of_very_long_name"], DIRECTIONS, metrics=[name])
    found = numbers_in(printed(rows, width))
    assert [row for row in rows if f"{row.value:.4f}" not in found] == []


def test_a_table_is_cut_by_measure_then_facet_then_split() -> None:
    rows = rows_of(["accuracy", "mean_margin"], DIRECTIONS, bare=True)
    paper, measures = ("variant paper",), ("accuracy", "mean_margin")
    assert titles(rows, 1000) == [paper]
    assert titles(rows, 400) == [(*paper, measure) for measure in measures]
    by_facet = [(*paper, measure, direction) for measure in measures for direction in DIRECTIONS]
    assert titles(rows, 80) == by_facet
    by_split = titles(rows, 50)
    assert len(by_split) == 2 * len(by_facet) and list(dict.fromkeys(by_split)) == by_facet
    beside = rows_of(["a", "b", "c", "d"], splits=[None], bare=True)
    assert titles(beside, 50) == [paper]


def test_where_nothing_fits_each_value_has_a_line() -> None:
    rows = rows_of(["rank"], splits=["all", "nat"], metrics=["m" * 60])
    text = printed(rows, 60)
    for said in (f"  all: {rows[0].value:.4f} [", "n 28733", "missing 1"):
        assert said in text


# Intervals and counts ------------------------------------------------------------------------


def test_intervals_stand_beside_values_where_there_is_room_and_can_be_had_elsewhere() -> None:
    row = Row("wide", "1", "m", "rank", 0.5, ci_low=0.41234, ci_high=0.6, n_items=7)
    assert "0.5000 [0.4123, 0.6000]" in printed([row], 80)
    assert "[" not in printed([row], 80, intervals=False).replace("[low, high]", "")
    low = f"{GECKO[0].ci_low:.4f}"
    without, having = printed(GECKO, 80), printed(GECKO, 80, intervals=True)
    assert "--intervals" in without and low not in without
    assert "--intervals" not in having and low in having


def test_counts_of_metrics_have_columns_only_where_they_differ() -> None:
    full = Row("wide", "1", "full", "rank", 0.5, split="all", n_items=10)
    half = replace(full, metric="half", n_items=4, n_missing=6)
    text = printed([full, half], 80)
    assert re.search(r"full +0\.5000 +10 +0\b", text) and "n ≤ 10" in text
    assert re.search(r"half +0\.5000 +4 +6\b", text)
    alone = printed([full], 80)
    assert re.search(r"metric +n 10 *\n", alone) and "missing" not in alone
    parts = [
        replace(half, split="nat", n_items=2, n_missing=1),
        replace(full, split="nat", n_items=3),
    ]
    text = printed([full, half, *parts], 80)
    assert re.search(r"half +0\.5000 +0\.5000 +2–4 +1–6\b", text)
    assert re.search(r"full +0\.5000 +0\.5000 +3–10 +0\b", text)


# Reasons -------------------------------------------------------------------------------------


def test_every_dash_has_its_reason_and_what_is_not_measured_is_blank() -> None:
    good = Row("wide", "1", "good", "rank", 0.5, split="all")
    rows = [
        good,
        replace(good, split="nat"),
        replace(good, metric="one", value=math.nan, note="few"),
        replace(good, metric="one", split="nat", note="tied"),
        replace(good, metric="none", value=math.nan, note="few"),
        replace(good, metric="none", split="nat", value=math.nan),
    ]
    lines = {line.strip() for line in printed(rows, 100).splitlines()}
    assert lines >= {"one, none (all): few", "one (nat): tied", f"none (nat): {NO_REASON}"}
    noted = [replace(row, note="as printed") for row in rows_of(["rank"], metrics=METRICS)]
    text = printed(noted, 200)
    assert text.count("as printed") == 1 and "every metric: as" in text
    other = Row("wide", "1", "b", "sep", 0.5)
    assert "–" not in printed([Row("wide", "1", "a", "rank", 0.5), other], 80)


# The command ---------------------------------------------------------------------------------


class Wide(Toy):
    """The toy, but with rows of its own."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)

    def evaluate(self, scores: ScoreTable, answers: Any, n_resamples: int = 1) -> Measured:
        return Measured(self.rows, np.full((len(self.rows), n_resamples), np.nan))


Meta = Callable[..., Ended]


@pytest.fixture
def meta(tmp_path: Path, run: Run, registry: dict[str, Any]) -> Meta:
    """Run `meta` on a benchmark with the given rows at the given width."""
    file = tmp_path / "scores.csv"
    file.write_text("pair_id,score\na,1\nb,2\nc,3\n")

    def called(rows: Sequence[Row], *words: str, width: int = 100) -> Ended:
        registry["wide"] = Wide(rows)
        return run("meta", "wide", "--scores", file, *words, width=width)

    return called


@pytest.mark.parametrize(("rows", "width"), [(CROC_SYN, 60), (GECKO, 120)])
def test_the_command_prints_numbers_and_names_whole(
    meta: Meta, rows: list[Row], width: int
) -> None:
    end = meta(rows, width=width)
    assert end.code == 0 and "…" not in end.out
    assert lost(rows, end.out) == []
    assert max(map(len, end.out.splitlines())) <= width
    names = {part for r in rows for part in (r.metric, r.measure, r.facet, r.split) if part}
    assert [n for n in names if not re.search(rf"(?<!\w){re.escape(n)}(?!\w)", end.out)] == []
    assert f"{rows[0].ci_low:.4f}" in meta(rows, "--intervals", width=width).out


@pytest.mark.parametrize("more", [(), ("--json",), ("--variant", "paper")])
def test_an_unknown_variant_lists_the_known(meta: Meta, more: tuple[str, ...]) -> None:
    end = meta([GECKO[0], replace(GECKO[0], variant="assay")], "--variant", "papr", *more)
    assert (end.code, end.out) == (1, "")
    assert all(said in end.err for said in ("unknown_variant", "'papr'", "paper, assay"))


def test_a_known_variant_is_shown_alone_and_one_of_skills_is_named(meta: Meta) -> None:
    rows = [GECKO[0], replace(GECKO[0], variant="assay")]
    out = meta(rows, "--variant", "assay").out
    assert "variant assay" in out and "variant paper" not in out
    rows[1] = replace(rows[1], skill="counting")
    end = meta(rows, "--variant", "assay")
    assert end.code == 0 and "--skills" in end.out
    assert "counting" in meta(rows, "--variant", "assay", "--skills").out


def test_json_holds_every_field_of_every_row(meta: Meta) -> None:
    rows = [GECKO[0], replace(GECKO[0], skill="counting", value=math.nan, note="why")]
    assert meta(rows, "--json").json == [row.to_json() for row in rows]
