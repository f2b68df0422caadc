"""What is known of models from elsewhere: printed tables with the ranks that follow from them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from benchmarks.errata.entries import errata
from benchmarks.evalmuse.load import SKILLS
from benchmarks.prompt_sets.reference import (
    ReferenceRow,
    ReferenceTable,
    other_references,
    ranked,
    reference_frames,
    references_of,
)
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.rethinking.measures import MetricScores, model_scores
from benchmarks.statistics.resampling import ResamplingPlan

RETHINKING = ("vqascore", "clipscore", "dsgscore")


def table_10() -> ReferenceTable:
    [table] = references_of("evalmuse_ranking")
    return table


def rethinking() -> ReferenceTable:
    [table] = other_references()
    return table


def strictly_greater(row: ReferenceRow, rows: tuple[ReferenceRow, ...]) -> int:
    """Counted by the printed decimals, without floating point."""
    same = [one for one in rows if one.place == row.place]
    return sum(Decimal(one.printed) > Decimal(row.printed) for one in same)


def test_table_10_has_22_models_with_an_overall_score_and_eleven_skills() -> None:
    table = table_10()
    assert len(table.models) == 22
    assert len(table.rows) == 22 * 12 == 264
    assert {row.skill for row in table.rows} == {None, *SKILLS}
    assert {row.metric for row in table.rows} == {"fga-blip2"}
    assert table.source == "EvalMuse-40K, Table 10"


def test_all_264_ranks_of_table_10_are_competition_ranks_of_the_printed_figures() -> None:
    rows = table_10().rows
    assert all(row.rank == 1 + strictly_greater(row, rows) for row in rows)
    printed = {row.model: row.printed_rank for row in rows if row.skill is None}
    assert len(printed) == 22
    assert printed == {row.model: row.rank for row in rows if row.skill is None}
    assert printed["HunyuanDiT"] == printed["Kandinsky3"] == 8
    assert [printed[m] for m in ("Kolors", "SDXL-Lightning", "SSD1B")] == [12, 12, 12]
    assert printed["SD v1.5"] == printed["SD v1.2"] == 21


def test_what_prints_alike_shares_a_rank_in_the_skills_too() -> None:
    food = {r.model: r.rank for r in table_10().rows if r.skill == "food"}
    assert (food["Midjourney v6.1"], food["SD 3"], food["Playground v2.5"]) == (1, 2, 3)
    assert food["Dreamina v2.0Pro"] == food["DALLE 3"] == 4
    assert 5 not in food.values()
    assert food["FLUX 1.1"] == 11


def test_the_two_cells_of_the_readme_that_differ_are_pointed_at() -> None:
    table = table_10()
    [entry] = [one for one in errata() if one.id in table.errata]
    printed = {cell.label: Decimal(cell.printed) for cell in entry.cells}
    ours = {f"{r.model}, {r.skill}": Decimal(r.printed) for r in table.rows}
    assert {label: str(ours[label]) for label in printed} == {
        "DALLE 3, object": "0.732",
        "FLUX 1.1, object": "0.694",
    }
    assert printed != {label: ours[label] for label in printed}
    with_readme = ranked(
        ReferenceRow(
            r.model, r.metric, r.value, str(printed.get(f"{r.model}, {r.skill}", r.printed))
        )
        for r in table.rows
        if r.skill == "object"
    )
    # So the README's ranks of these two cannot be the paper's.
    assert {r.model: r.rank for r in with_readme if r.model in ("DALLE 3", "FLUX 1.1")} == {
        "DALLE 3": 9,
        "FLUX 1.1": 8,
    }


@pytest.mark.parametrize("metric", RETHINKING)
def test_ranks_of_re_thinking_follow_from_its_means(metric: str) -> None:
    rows = [row for row in rethinking().rows if row.metric == metric]
    assert len(rows) == 4 * 3
    assert [row.rank for row in rows] == [row.printed_rank for row in rows]
    assert {row.seed for row in rows} == {42, 3407, 5096}
    assert all(row.facet is None for row in rows)


@pytest.mark.parametrize("metric", RETHINKING)
def test_the_command_of_re_thinking_ranks_its_printed_means_alike(metric: str) -> None:
    """Through `benchmarks.rethinking`, with one prompt whose score is the mean."""
    table = rethinking()
    value = {(r.seed, r.model): r for r in table.rows if r.metric == metric}
    seeds, models = (42, 3407, 5096), table.models
    means = np.array([[[value[seed, model].value] for model in models] for seed in seeds])
    named = tuple(map(str, seeds))
    scores = MetricScores(metric, models, named, ("all",), means, np.full_like(means, np.nan))
    plan = ResamplingPlan.for_revision("rethinking", "1", ("all",), 2)
    found = {(int(one.seed), one.model): one.rank for one in model_scores(scores, plan)}
    assert found == {key: row.printed_rank for key, row in value.items()}


def test_of_re_thinking_only_vqascore_is_stable_over_seeds() -> None:
    found = {metric: rethinking().stability(metric) for metric in RETHINKING}
    assert {metric: one.stable for metric, one in found.items()} == {
        "vqascore": True,
        "clipscore": False,
        "dsgscore": False,
    }
    assert {metric: one.swapped for metric, one in found.items()} == {
        "vqascore": 0,
        "clipscore": 1,
        "dsgscore": 1,
    }


def test_stability_needs_every_model_with_every_seed() -> None:
    with pytest.raises(ValueError, match="EvalMuse-40K, Table 10 does not print 'fga-blip2'"):
        table_10().stability("fga-blip2")


def test_gecko_has_human_means_by_template_and_dsg_1k_one_model_by_source() -> None:
    for name in ("gecko_s", "gecko_r"):
        [table] = references_of(name)
        assert {row.facet for row in table.rows} == {"WL", "Likert", "DSGH"}
        assert len(table.rows) == 4 * 3
        assert {row.split for row in table.rows} == {None}
    likert = {r.model: r.rank for r in references_of("gecko_s")[0].rows if r.facet == "Likert"}
    assert likert == {"Muse": 1, "SDXL": 2, "Imagen": 3, "SD1.5": 4}
    [table] = references_of("dsg_1k")
    assert {row.split for row in table.rows} - {None} == set(
        load_prompt_sets()["dsg_1k"].card.splits
    )
    assert {row.skill for row in table.rows} == {None}


@pytest.mark.parametrize("name", load_prompt_sets())
def test_rows_speak_of_skills_and_parts_of_their_set(name: str) -> None:
    card = load_prompt_sets()[name].card
    for table in references_of(name):
        assert {row.skill for row in table.rows} <= {None, *card.skills}
        assert {row.split for row in table.rows} <= {None, *card.splits}
        assert all(row.rank >= 1 for row in table.rows)
        assert len({(row.model, row.place) for row in table.rows}) == len(table.rows)


@pytest.mark.parametrize("name", ["croc_hum_prompts", "gecko_s_rel", "genai_prompts", "nothing"])
def test_a_set_nobody_printed_anything_about_has_no_table(name: str) -> None:
    assert references_of(name) == ()
    assert reference_frames(name) == {}


def test_a_table_is_shown_with_a_line_for_each_model() -> None:
    [(title, frame)] = reference_frames("evalmuse_ranking").items()
    assert title.startswith("EvalMuse-40K, Table 10: ")
    assert frame.shape == (22, 13)
    assert frame.iloc[0]["fga-blip2 all"] == "3.74 (1)"
    assert frame.iloc[1]["fga-blip2 object"] == ".732 (2)"
