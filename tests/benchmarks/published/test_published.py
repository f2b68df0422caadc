"""The printed tables: complete, consistent in themselves, found by the names of our rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.croc_syn import measures as croc_syn
from benchmarks.evalmuse import measures as evalmuse
from benchmarks.evalmuse_structure import protocol as structure
from benchmarks.evalmuse_track2 import protocol as track2
from benchmarks.gecko import measures as gecko
from benchmarks.genai_bench.protocol import GENAI_1600
from benchmarks.published import PublishedCell, papers, published, read_cells
from benchmarks.scores import read_scores
from benchmarks.statistics import correlation
from benchmarks.statistics.raters import error_consistency
from benchmarks.tifa160.protocol import TIFA160
from benchmarks.ts2.protocol import Ts2
from tests.kit.refusals import refused

COUNTS = {
    ("croc", "Table 1"): 4 * 3 * 6, ("croc", "Table 2"): 2 * 3 * 3, ("croc", "Table 3"): 4 * 4,
    ("croc", "Human check"): 3, ("croc", "Text"): 7, ("dsg", "TIFA160 correlations"): 3 * 4 * 2,
    ("dsg", "DSG-1k scores"): 9, ("evalmuse", "Table 2"): 10 * 4 * 2,
    ("evalmuse", "Table 3"): 10 * 3 * 2 + 3, ("evalmuse", "Table 4"): 4 * 3,
    ("evalmuse", "Table 6"): 10 * 12 + 11, ("evalmuse", "Table 8"): 3 * 4,
    ("evalmuse", "Table 9"): 3, ("evalmuse", "Table 10"): 22 * 13,
    ("gecko", "Table 3"): 2 * 4 * 2 * 3, ("gecko", "Table 4"): 4 * 6 * 4,
    ("gecko", "Table 4 (later version)"): 2 * 2 * 4, ("gecko", "Table 4, Pearson"): 4 * 6 * 3,
    ("gecko", "Table 5"): 2 * 4 * 3 * 2, ("gecko", "Table 6"): 3 * 2,
    ("gecko", "Table 18"): 4 * 2 * 3, ("gecko", "Unsure ratings"): 4 * 3 * 2,
    ("gecko", "Template correlations"): 2 * 4 * 3 * 2,
    ("gecko", "SxS accuracy of templates"): 2 * 6 * 3,
    ("gecko", "SxS accuracy of templates (later version)"): 7 * 3,
    ("gecko", "SxS agreement"): 4 + 12, ("gecko", "Model relations"): 6 * (5 * 4 + 1 + 6),
    ("genai_arena", "Leaderboard"): 5, ("genai_bench", "Text"): 1, ("ntire2025", "Track 2 baseline"): 6,
    ("rethinking", "Table 1"): 4 * 3 * 3 * 2, ("rethinking", "Table 2"): 3 * 2,
    ("rethinking", "Text"): 1, ("tifa", "TIFA160 correlations"): 10 * 2,
    ("ts2", "Table 2"): 12 * 4 * 3,
}  # fmt: skip


def cells(paper: str, table: str, **fields: str | None) -> list[PublishedCell]:
    return [
        cell
        for cell in published()
        if (cell.paper, cell.table) == (paper, table)
        and all(getattr(cell, name) == value for name, value in fields.items())
    ]


def values(paper: str, table: str, by: str, **fields: str | None) -> dict[str | None, float]:
    """The figures of a table by one field of its cells."""
    return {getattr(cell, by): cell.value for cell in cells(paper, table, **fields)}


def value(paper: str, table: str, **fields: str | None) -> float:
    [cell] = cells(paper, table, **fields)
    return cell.value


def test_every_table_is_described_and_has_each_cell_that_was_printed_once() -> None:
    assert Counter((cell.paper, cell.table) for cell in published()) == COUNTS
    described = {(key, table) for key, paper in papers().items() for table in paper.tables}
    assert described == set(COUNTS)
    keys = Counter(
        tuple(cell.model_dump(exclude={"value", "printed"}).values()) for cell in published()
    )
    assert max(keys.values()) == 1


@pytest.mark.parametrize(
    ("paper", "table", "metric", "split", "facet", "printed"),
    [
        ("croc", "Table 1", "vqascore", "entity_variation", "forward_text", 0.503),
        ("croc", "Table 1", "pickscore", "subject_property", "inverse_text", -0.028),
        ("croc", "Table 3", "human", "human_check", "inverse_image", 0.727),
        ("evalmuse", "Table 2", "fga-blip2_os", "all", None, 0.7742),
        ("gecko", "Table 4", "vnli", "s_rel", "Likert", 0.61),
        ("gecko", "Table 4, Pearson", "tifa", "r_rel", "Likert", 0.35),
        ("ts2", "Table 2", "alignscore", "real", None, 0.62556722),
    ],
)
def test_single_cells_are_where_the_paper_has_them(
    paper: str, table: str, metric: str, split: str, *, facet: str | None, printed: float
) -> None:
    first, *_ = cells(paper, table, metric=metric, split=split, facet=facet)
    assert first.value == pytest.approx(printed)


def test_percentages_are_shares_and_a_value_agrees_when_it_rounds_to_the_printed_digits() -> None:
    fields = {"metric": "vq2_qwen2-vl", "split": "all", "measure": "element_accuracy"}
    [cell] = cells("evalmuse", "Table 3", **fields)
    assert (cell.printed, cell.value, cell.in_percent) == ("67.9", 0.679, True)
    [rank] = cells("ts2", "Table 2", metric="clipscore", split="all", measure="rank")
    assert rank.in_percent is False
    [cell] = cells("tifa", "TIFA160 correlations", metric="meteor", measure="pearson")
    assert cell.agrees_with(0.3397)
    assert not cell.agrees_with(0.3723)
    [share] = cells("croc", "Text", metric="clipscore")
    assert share.agrees_with(26 / 32)


def test_a_board_finds_its_counterparts_by_the_fields_of_a_row() -> None:
    found = [c for c in published("ts2") if c.matches("rank", split="nat", variant="paper")]
    assert len(found) == 12
    found = [c for c in published("evalmuse") if c.matches("srcc", "all", None, "paper")]
    assert {c.table for c in found} == {"Table 2", "Table 3", "Table 4"}
    assert not [c for c in published("evalmuse") if c.matches("model_score", variant="paper")]
    assert published("no_such_board") == ()


NAMES: dict[str, tuple[set[str], set[str | None], set[str | None], set[str | None]]] = {
    "croc_syn": (
        set(croc_syn.MEASURES),
        {"entity_variation", "entity_placement", "subject_property"},
        {"forward_text", "inverse_text", "forward_image", "inverse_image"},
        {"paper"},
    ),
    "evalmuse": (set(evalmuse.MEASURES), {"all", "real", "synth"}, {None}, {"paper"}),
    "evalmuse_structure": (set(structure.MEASURES), {None}, {None}, {"paper"}),
    "evalmuse_track2": (set(track2.MEASURES), {None}, {None}, {"code"}),
    "gecko": (
        set(gecko.MEASURES),
        {"s", "r", "s_rel", "r_rel"},
        {"WL", "Likert", "DSGH", "SxS"},
        {"paper"},
    ),
    "genai_1600": (set(GENAI_1600.card.measures), {None}, {None}, {"paper"}),
    "tifa160": (set(TIFA160.card.measures), {"all"}, {None, *TIFA160.card.gold}, {"paper"}),
}


@pytest.mark.parametrize("benchmark", NAMES)
def test_names_are_those_of_the_protocols(benchmark: str) -> None:
    measures, splits, facets, variants = NAMES[benchmark]
    found = [
        c
        for c in published(benchmark)
        if c.measure in measures and c.model is None and c.split != "human_check"
    ]
    assert found
    assert {c.split for c in found} <= splits
    assert {c.facet for c in found} <= facets
    assert {c.variant for c in found} == variants


# Facts that hold within and between the printed tables. Ranks: see the tests of prompt sets.

GECKO_PAIRS = (
    "Imagen-Muse", "Imagen-SDXL", "Imagen-SD1.5", "Muse-SDXL", "Muse-SD1.5", "SDXL-SD1.5",
)  # fmt: skip


def test_tables_of_evalmuse_repeat_and_enclose_each_other() -> None:
    in_3 = values("evalmuse", "Table 3", "metric", split="all", measure="element_accuracy")
    assert in_3 == values("evalmuse", "Table 6", "metric", skill=None)
    fields = {"metric": "pn-vqa_qwen2-vl", "measure": "srcc", "split": "all"}
    assert value("evalmuse", "Table 3", **fields) == value("evalmuse", "Table 4", **fields)
    # Overall accuracies lie between real and synthetic but for one, which is an erratum.
    outside = set()
    for metric in in_3:
        a = values("evalmuse", "Table 3", "split", metric=metric, measure="element_accuracy")
        if not min(a["real"], a["synth"]) <= a["all"] <= max(a["real"], a["synth"]):
            outside.add(metric)
    assert outside == {"vq2_qwen2-vl"}


def test_the_baseline_of_track_2_is_the_stated_weighted_sum() -> None:
    base = values("ntire2025", "Track 2 baseline", "measure")
    assert round(0.7 * base["f1"] + 0.3 * (base["plcc"] + base["srcc"]) / 2, 4) == base["final"]
    assert round(2 / (1 / base["precision"] + 1 / base["recall"]), 4) == base["f1"]


@pytest.mark.parametrize("split", ["r", "s"])
@pytest.mark.parametrize("metric", ["gecko", "tifa"])
def test_the_last_step_of_geckos_ablation_is_gecko_and_the_first_is_tifa(
    metric: str, split: str
) -> None:
    for measure, table in (("srcc", "Table 4"), ("pearson", "Table 4, Pearson")):
        fields = {"metric": metric, "measure": measure, "split": split}
        of_step = values("gecko", "Table 5", "facet", **fields)
        assert of_step == values("gecko", table, "facet", **fields)


def test_averages_over_geckos_model_pairs_agree() -> None:
    table = "SxS accuracy of templates (later version)"
    for template in ("human_WL", "human_Likert", "human_DSGH"):
        found = values("gecko", table, "model", metric=template)
        assert round(np.mean([found[pair] for pair in GECKO_PAIRS]), 3) == found["average"]


def test_relations_of_geckos_models_are_those_of_two_templates_and_found_as_often_as_said() -> None:
    table = "Model relations"
    for pair in GECKO_PAIRS:
        fields = {"metric": "human", "split": "rel", "model": pair}
        by_facet = values("gecko", table, "facet", **fields)
        votes = Counter(by_facet[t] for t in ("WL", "Likert", "DSGH"))
        assert votes[by_facet["majority"]] >= 2
    truth = values("gecko", table, "model", facet="majority")
    right = (c for c in cells("gecko", table, facet=None) if c.value == truth[c.model])
    counts = {"gecko": 5, "dsg": 4, "tifa": 5, "clip": 3, "vnli": 5, "vqascore": 4}
    assert Counter(cell.metric for cell in right) == counts


def test_croc_scaled_values_are_the_stated_accuracies() -> None:
    def accuracy(metric: str, split: str) -> float:
        """The inverse of the piecewise scale, chance 5/6."""
        fields = {"metric": metric, "split": split, "facet": "forward_text"}
        scaled = value("croc", "Table 1", **fields)
        return round(5 / 6 * (1 + scaled) if scaled <= 0 else 5 / 6 + scaled / 6, 4)

    metrics = ("alignscore", "vqascore", "clipscore")
    assert [accuracy(m, "entity_variation") for m in metrics] == [0.8418, 0.9172, 0.5792]
    assert accuracy("vqascore", "entity_placement") == 0.9942


def test_gecko_repeats_the_dsg_table_and_prints_possible_kappas() -> None:
    for metric in ("dsg_pali-17b", "tifa_pali-17b"):
        for cell in cells("gecko", "Table 6", metric=metric):
            fields = {"metric": metric, "measure": cell.measure}
            assert cell.agrees_with(value("dsg", "TIFA160 correlations", **fields))
    # kappa = (a - e) / (1 - e) with e in 0..1, so that it is never above the accuracy.
    for cell in cells("gecko", "Table 18", measure="error_consistency"):
        accuracy = value(
            "gecko", "Table 18", measure="word_accuracy", split=cell.split, model=cell.model
        )
        assert cell.value <= accuracy
    assert error_consistency([1] * 8 + [0] * 2, [1] * 7 + [0, 1, 0]) == pytest.approx(0.375)


HEADER = "paper,table,benchmark,metric,measure,split,skill,variant,facet,model,value,printed\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("tifa,TIFA160 correlations,,m,pearson,,,,,,0.35,0.34", "nor 0.34 %"),
        ("tifa,TIFA160 correlations,,m,pearson,,,,,,0.35,about", "no printed"),
        ("tifa,Table 99,,m,pearson,,,,,,0.34,0.34", "Table 99"),
        ("tifa,TIFA160 correlations,,,pearson,,,,,,0.34,0.34", "at least 1"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "tifa.csv"
    path.write_text(HEADER + line + "\n", encoding="utf-8")
    with refused("malformed_published", match=rf"^tifa\.csv, line 2.*{reason}"):
        list(read_cells(path, papers()))


# Tables whose data are public: what is computed here rounds to what was printed.


@pytest.mark.paper
@pytest.mark.slow
def test_ts2_table_2(assay_data: Path) -> None:
    """Saxon et al. 2024, Table 2, from the released scores: all 144 cells to eight digits."""
    answers = Ts2().answers(assay_data)
    scores = read_scores(assay_data / "ts2" / "scores.csv", Ts2(), answers)
    rows = Ts2().evaluate(scores, answers, 10).rows
    for cell in published("ts2"):
        [row] = [
            row
            for row in rows
            if row.metric == cell.metric
            and cell.matches(row.measure, row.split, row.skill, row.variant, row.facet)
        ]
        assert row.value == pytest.approx(cell.value, rel=0, abs=1e-8), cell


@pytest.mark.paper
@pytest.mark.slow
def test_tifa160_correlations(assay_data: Path) -> None:
    """Hu et al. 2023, TIFA160: every cell but rouge's, which was rounded twice (see errata)."""
    file = assay_data / "tifa160" / "human_annotations_with_scores.json"
    items = list(json.loads(file.read_text(encoding="utf-8")).values())
    gold = np.array([item["human_avg"] for item in items], np.float64)

    def agrees(cell: PublishedCell) -> bool:
        scores = np.array([item[cell.metric] for item in items], np.float64)
        compute = {"pearson": correlation.pearson, "krcc": correlation.kendall}[cell.measure]
        return cell.agrees_with(compute(scores, gold))

    cells = [cell for cell in published("tifa160") if cell.paper == "tifa"]
    assert len(cells) == 20
    assert [(c.metric, c.measure) for c in cells if not agrees(c)] == [("rouge", "krcc")]
