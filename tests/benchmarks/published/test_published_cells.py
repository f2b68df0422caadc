"""The printed tables: complete, consistent in themselves, and found by the names of our rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks.croc_syn import measures as croc_syn
from benchmarks.errors import PlatformError
from benchmarks.evalmuse import measures as evalmuse
from benchmarks.evalmuse_structure import measures as structure
from benchmarks.evalmuse_track2 import measures as track2
from benchmarks.gecko import measures as gecko
from benchmarks.genai_bench import measures as genai_bench
from benchmarks.published import PublishedCell, papers, published
from benchmarks.published.cells import read_cells
from benchmarks.statistics.raters import error_consistency
from benchmarks.statistics.seeds import competition_ranks
from benchmarks.tifa160 import protocol as tifa160
from benchmarks.tifa160.load import GOLDS

COUNTS = {
    ("croc", "Table 1"): 4 * 3 * 6,
    ("croc", "Table 2"): 2 * 3 * 3,
    ("croc", "Table 3"): 4 * 4,
    ("croc", "Human check"): 3,
    ("croc", "Text"): 7,
    ("dsg", "TIFA160 correlations"): 3 * 4 * 2,
    ("dsg", "DSG-1k scores"): 9,
    ("evalmuse", "Table 2"): 10 * 4 * 2,
    ("evalmuse", "Table 3"): 10 * 3 * 2 + 3,
    ("evalmuse", "Table 4"): 4 * 3,
    ("evalmuse", "Table 6"): 10 * 12 + 11,
    ("evalmuse", "Table 8"): 3 * 4,
    ("evalmuse", "Table 9"): 3,
    ("evalmuse", "Table 10"): 22 * 13,
    ("gecko", "Table 3"): 2 * 4 * 2 * 3,
    ("gecko", "Table 4"): 4 * 6 * 4,
    ("gecko", "Table 4 (later version)"): 2 * 2 * 4,
    ("gecko", "Table 4, Pearson"): 4 * 6 * 3,
    ("gecko", "Table 5"): 2 * 4 * 3 * 2,
    ("gecko", "Table 6"): 3 * 2,
    ("gecko", "Table 18"): 4 * 2 * 3,
    ("gecko", "Unsure ratings"): 4 * 3 * 2,
    ("gecko", "Template correlations"): 2 * 4 * 3 * 2,
    ("gecko", "SxS accuracy of templates"): 2 * 6 * 3,
    ("gecko", "SxS accuracy of templates (later version)"): 7 * 3,
    ("gecko", "SxS agreement"): 4 + 12,
    ("gecko", "Model relations"): 6 * (5 * 4 + 1 + 6),
    ("genai_bench", "Text"): 1,
    ("ntire2025", "Track 2 baseline"): 6,
    ("rethinking", "Table 1"): 4 * 3 * 3 * 2,
    ("rethinking", "Table 2"): 3 * 2,
    ("rethinking", "Text"): 1,
    ("tifa", "TIFA160 correlations"): 10 * 2,
    ("ts2", "Table 2"): 12 * 4 * 3,
}
SPOTS = {
    ("croc", "Table 1", "vqascore", "entity_variation", "forward_text"): 0.503,
    ("croc", "Table 1", "pickscore", "subject_property", "inverse_text"): -0.028,
    ("croc", "Table 3", "human", "human_check", "inverse_image"): 0.727,
    ("evalmuse", "Table 2", "fga-blip2_os", "all", None): 0.7742,
    ("gecko", "Table 4", "vnli", "s_rel", "Likert"): 0.61,
    ("gecko", "Table 4, Pearson", "tifa", "r_rel", "Likert"): 0.35,
    ("ts2", "Table 2", "alignscore", "real", None): 0.62556722,
}

GECKO_PAIRS = (
    "Imagen-Muse",
    "Imagen-SDXL",
    "Imagen-SD1.5",
    "Muse-SDXL",
    "Muse-SD1.5",
    "SDXL-SD1.5",
)


def cells(paper: str, table: str, **fields: str | None) -> list[PublishedCell]:
    return [
        cell
        for cell in published()
        if (cell.paper, cell.table) == (paper, table)
        and all(getattr(cell, name) == value for name, value in fields.items())
    ]


def value(paper: str, table: str, **fields: str | None) -> float:
    [cell] = cells(paper, table, **fields)
    return cell.value


def test_every_table_has_as_many_cells_as_were_printed() -> None:
    assert Counter((cell.paper, cell.table) for cell in published()) == COUNTS


def test_every_table_is_described_and_every_description_has_cells() -> None:
    described = {(key, table) for key, paper in papers().items() for table in paper.tables}
    assert described == set(COUNTS)


def test_no_cell_stands_twice() -> None:
    keys = Counter(
        tuple(cell.model_dump(exclude={"value", "printed"}).values()) for cell in published()
    )
    assert max(keys.values()) == 1


@pytest.mark.parametrize("spot", SPOTS, ids=lambda spot: f"{spot[1]}-{spot[2]}")
def test_single_cells_are_where_the_paper_has_them(spot: tuple) -> None:
    paper, table, metric, split, facet = spot
    found = cells(paper, table, metric=metric, split=split, facet=facet)
    assert found[0].value == pytest.approx(SPOTS[spot])


def test_percentages_are_shares_and_keep_their_printed_digits() -> None:
    [cell] = cells(
        "evalmuse", "Table 3", metric="vq2_qwen2-vl", split="all", measure="element_accuracy"
    )
    assert (cell.printed, cell.value, cell.in_percent) == ("67.9", 0.679, True)
    [rank] = cells("ts2", "Table 2", metric="clipscore", split="all", measure="rank")
    assert rank.in_percent is False


def test_a_board_finds_its_counterparts_by_the_fields_of_a_row() -> None:
    found = [c for c in published("ts2") if c.matches("rank", split="nat", variant="paper")]
    assert len(found) == 12
    found = [c for c in published("evalmuse") if c.matches("srcc", "all", None, "paper")]
    assert {c.table for c in found} == {"Table 2", "Table 3", "Table 4"}
    assert not [c for c in published("evalmuse") if c.matches("model_score", variant="paper")]
    assert published("no_such_board") == ()


def test_a_computed_value_agrees_when_it_rounds_to_the_printed_digits() -> None:
    [cell] = cells("tifa", "TIFA160 correlations", metric="meteor", measure="pearson")
    assert cell.agrees_with(0.3397)
    assert not cell.agrees_with(0.3723)
    [share] = cells("croc", "Text", metric="clipscore")
    assert share.agrees_with(26 / 32)


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
    "genai_1600": (set(genai_bench.MEASURES), {None}, {None}, {"paper"}),
    "tifa160": (set(tifa160.MEASURES), {"all"}, {None, *GOLDS}, {"paper"}),
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


class TestConsistency:
    """Facts that hold within and between the printed tables."""

    def test_evalmuse_ranks_of_22_models_are_competition_ranks_of_the_printed_scores(self) -> None:
        score = {c.model: c.value for c in cells("evalmuse", "Table 10", measure="model_score", skill=None)}  # fmt: skip
        rank = {c.model: c.value for c in cells("evalmuse", "Table 10", measure="model_rank")}
        assert len(score) == 22
        found = competition_ranks(list(score.values()))
        assert dict(zip(score, found.tolist(), strict=True)) == rank

    def test_evalmuse_tables_3_and_6_print_the_same_overall_accuracy(self) -> None:
        in_3 = {c.metric: c.value for c in cells("evalmuse", "Table 3", split="all", measure="element_accuracy")}  # fmt: skip
        in_6 = {c.metric: c.value for c in cells("evalmuse", "Table 6", skill=None)}
        assert in_3 == in_6

    def test_evalmuse_tables_3_and_4_print_the_same_pn_vqa(self) -> None:
        both = [value("evalmuse", table, metric="pn-vqa_qwen2-vl", measure="srcc", split="all") for table in ("Table 3", "Table 4")]  # fmt: skip
        assert both[0] == both[1]

    def test_evalmuse_accuracies_lie_between_real_and_synthetic_but_for_one(self) -> None:
        found: dict[str, dict[str | None, float]] = {}
        for cell in cells("evalmuse", "Table 3", measure="element_accuracy"):
            found.setdefault(cell.metric, {})[cell.split] = cell.value
        outside = {
            metric
            for metric, a in found.items()
            if not min(a["real"], a["synth"]) <= a["all"] <= max(a["real"], a["synth"])
        }
        assert outside == {"vq2_qwen2-vl"}

    def test_structure_baseline_is_the_stated_weighted_sum(self) -> None:
        base = {c.measure: c.value for c in cells("ntire2025", "Track 2 baseline")}
        final = 0.7 * base["f1"] + 0.3 * (base["plcc"] + base["srcc"]) / 2
        assert round(final, 4) == base["final"]
        harmonic = 2 / (1 / base["precision"] + 1 / base["recall"])
        assert round(harmonic, 4) == base["f1"]

    @pytest.mark.parametrize("split", ["r", "s"])
    def test_the_last_step_of_geckos_ablation_is_gecko_and_the_first_is_tifa(
        self, split: str
    ) -> None:
        for metric in ("gecko", "tifa"):
            for measure, table in (("srcc", "Table 4"), ("pearson", "Table 4, Pearson")):
                fields = {"metric": metric, "measure": measure, "split": split}
                of_step = {c.facet: c.value for c in cells("gecko", "Table 5", **fields)}
                of_table = {c.facet: c.value for c in cells("gecko", table, **fields)}
                assert of_step == of_table

    def test_averages_over_geckos_model_pairs_agree(self) -> None:
        table = "SxS accuracy of templates (later version)"
        for template in ("human_WL", "human_Likert", "human_DSGH"):
            found = {c.model: c.value for c in cells("gecko", table, metric=template)}
            mean = np.mean([found[pair] for pair in GECKO_PAIRS])
            assert round(mean, 3) == found["average"]

    def test_the_relation_of_two_models_is_that_of_two_of_three_templates(self) -> None:
        for pair in GECKO_PAIRS:
            in_pair = cells("gecko", "Model relations", metric="human", split="rel", model=pair)
            by_facet = {c.facet: c.value for c in in_pair}
            votes = Counter(by_facet[t] for t in ("WL", "Likert", "DSGH"))
            assert votes[by_facet["majority"]] >= 2

    def test_metrics_find_as_many_relations_as_the_paper_counts(self) -> None:
        truth = {c.model: c.value for c in cells("gecko", "Model relations", facet="majority")}
        found = Counter(
            cell.metric
            for cell in cells("gecko", "Model relations", facet=None)
            if cell.value == truth[cell.model]
        )
        assert found == {"gecko": 5, "dsg": 4, "tifa": 5, "clip": 3, "vnli": 5, "vqascore": 4}

    def test_croc_scaled_values_are_the_stated_accuracies(self) -> None:
        def accuracy(scaled: float) -> float:  # the inverse of the piecewise scale, chance 5/6
            return 5 / 6 * (1 + scaled) if scaled <= 0 else 5 / 6 + scaled / 6

        fields = {"split": "entity_variation", "facet": "forward_text"}
        found = [
            round(accuracy(value("croc", "Table 1", metric=metric, **fields)), 4)
            for metric in ("alignscore", "vqascore", "clipscore")
        ]
        assert found == [0.8418, 0.9172, 0.5792]
        placement = value("croc", "Table 1", metric="vqascore", split="entity_placement", facet="forward_text")  # fmt: skip
        assert round(accuracy(placement), 4) == 0.9942

    def test_gecko_repeats_the_dsg_table(self) -> None:
        for metric in ("dsg_pali-17b", "tifa_pali-17b"):
            for cell in cells("gecko", "Table 6", metric=metric):
                fields = {"metric": metric, "measure": cell.measure}
                assert cell.agrees_with(value("dsg", "TIFA160 correlations", **fields))

    def test_word_level_kappa_is_possible_at_the_printed_accuracy(self) -> None:
        # kappa = (a - e) / (1 - e) with e in 0..1, so that it is never above the accuracy.
        for cell in cells("gecko", "Table 18", measure="error_consistency"):
            fields = {"measure": "word_accuracy", "split": cell.split, "model": cell.model}
            assert cell.value <= value("gecko", "Table 18", **fields)
        assert error_consistency([1] * 8 + [0] * 2, [1] * 7 + [0, 1, 0]) == pytest.approx(0.375)


class TestReader:
    HEADER = "paper,table,benchmark,metric,measure,split,skill,variant,facet,model,value,printed\n"

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("tifa,TIFA160 correlations,,m,pearson,,,,,,0.35,0.34", "neither 0.34 nor 0.34 %"),
            ("tifa,TIFA160 correlations,,m,pearson,,,,,,0.35,about", "no printed figure"),
            ("tifa,Table 99,,m,pearson,,,,,,0.34,0.34", "no 'tifa, Table 99'"),
            ("tifa,TIFA160 correlations,,,pearson,,,,,,0.34,0.34", "at least 1 character"),
        ],
    )
    def test_a_wrong_line_is_named(self, tmp_path: Path, line: str, reason: str) -> None:
        path = tmp_path / "tifa.csv"
        path.write_text(self.HEADER + line + "\n", encoding="utf-8")
        with pytest.raises(PlatformError) as caught:
            list(read_cells(path, papers()))
        assert reason in caught.value.message
        assert caught.value.message.startswith("tifa.csv, line 2")

    def test_cells_cannot_be_changed(self) -> None:
        with pytest.raises(ValidationError):
            published()[0].value = 1.0
