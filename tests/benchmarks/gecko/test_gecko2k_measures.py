"""Splits, model ordering, word level, facts and poor input on a small copy of Gecko2K."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.gecko.load import (
    COLUMNS,
    MODELS,
    Gecko2kAnswers,
    GeckoAnswers,
    preferences,
    template_scores,
)
from benchmarks.gecko.measures import (
    FACETS,
    MEASURES,
    agreed_words,
    model_relations,
    rater_agreement,
    template_means,
    template_pairwise_accuracy,
)
from benchmarks.gecko.protocol import measure
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.ordering import direction, majority_relation, relation
from benchmarks.statistics.raters import krippendorff_alpha
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.gecko.gecko_tree import gecko, prompts_table, ratings_table, write_tree

NAN = float("nan")
SPLITS = {"all", "s", "r", "rel", "s_rel", "r_rel"}
LIKERT = {"Imagen": "1", "Muse": "5", "SDXL": "3"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Gecko2kAnswers:
    """SD1.5 is rated at random, the other models so that relations exist."""
    ratings = ratings_table(40)
    for model, value in LIKERT.items():
        ratings.loc[(ratings["template"] == "Likert") & (ratings["model"] == model), "value"] = (
            value
        )
    root = write_tree(tmp_path_factory.mktemp("data"), prompts_table(40), ratings)
    return gecko(40).answers(root)


def score_table(answers: GeckoAnswers, **columns: Any) -> ScoreTable:
    n = len(answers.pair_ids)
    columns = {"fine": np.random.default_rng(1).normal(size=n)} | columns
    return ScoreTable(pd.DataFrame(columns, index=pd.Index(answers.pair_ids, name="pair_id")))


def run(scores: ScoreTable, answers: GeckoAnswers, n_resamples: int = 20) -> Measured:
    plan = ResamplingPlan(answers.clusters, 3, n_resamples)
    return measure(scores, answers, plan, "gecko", "r")


def rows_of(measured: Measured, **wanted: Any) -> list[Row]:
    return [r for r in measured.rows if all(getattr(r, k) == v for k, v in wanted.items())]


def part(answers: GeckoAnswers, kept: pd.Series) -> GeckoAnswers:
    """The same with some prompts only, and without splits."""
    ids = set(answers.prompts.loc[kept, "prompt_id"])
    pairs = answers.pairs[answers.pairs["prompt_id"].isin(ids)]
    return GeckoAnswers(
        tuple(pairs["pair_id"]),
        tuple(c for c in answers.clusters if c in ids),
        answers.prompts[kept].drop(columns=["split", "source", "reliable"]),
        pairs,
        answers.ratings[answers.ratings["prompt_id"].isin(ids)],
    )


@pytest.mark.parametrize("split", sorted(SPLITS))
def test_a_split_is_measured_as_if_there_were_nothing_else(
    answers: Gecko2kAnswers, split: str
) -> None:
    scores = score_table(answers)
    prompts = answers.prompts
    kept = prompts["reliable"] | (not split.endswith("rel"))
    if split[0] in "sr" and split != "rel":
        kept &= prompts["split"] == split[0]
    alone = part(answers, kept)
    few = ScoreTable(scores.overall.loc[list(alone.pair_ids)])
    expected = {
        (r.measure, r.variant, r.facet): (r.value, r.n_items, r.n_clusters, r.n_missing, r.note)
        for r in run(few, alone).rows
        if r.skill is None and (split.endswith("rel") or r.measure != "model_pairs_right")
    }
    found = {
        (r.measure, r.variant, r.facet): (r.value, r.n_items, r.n_clusters, r.n_missing, r.note)
        for r in run(scores, answers).rows
        if r.skill is None and r.split == split
    }
    assert found.keys() == expected.keys()
    for key, row in found.items():
        assert row[0] == pytest.approx(expected[key][0])
        assert row[1:] == expected[key][1:]


def test_skills_stand_below_the_two_whole_sets_and_only_for_prompts_that_have_them(
    answers: Gecko2kAnswers,
) -> None:
    measured = run(score_table(answers), answers)
    assert {row.split for row in measured.rows} == SPLITS
    skills = {split: {r.skill for r in rows_of(measured, split=split)} for split in SPLITS}
    of_s = {None, "color", "action", "named_entity"}
    assert skills["rel"] == of_s
    assert skills["all"] == of_s | {"color:stroop", "action:action_rev/2", "named_entity:landmarks"}
    assert skills["s"] == skills["r"] == skills["s_rel"] == skills["r_rel"] == {None}
    for row in measured.rows:
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in FACETS


def matrix(frame: pd.DataFrame, value: str, prompts: list[str]) -> dict[str, np.ndarray]:
    table = frame.pivot_table(index="prompt_id", columns="model", values=value, dropna=False)
    return {str(model): table[model].reindex(prompts).to_numpy() for model in table}


def slow_votes(
    answers: GeckoAnswers, prompts: list[str], templates: list[str], test: Any
) -> dict[Any, int]:
    found: dict[tuple[str, str], list[int]] = {p: [] for p in combinations(sorted(MODELS), 2)}
    scores = template_scores(answers.ratings)
    for template in templates:
        if template == "SxS":
            voted = preferences(answers.ratings)
            voted = voted[voted["prompt_id"].isin(prompts)]
            for (a, b), rows in voted.groupby(["model", "model_b"]):
                values = rows["preference"].to_numpy(float)
                found[str(a), str(b)].append(test(values, 0 * values))
            continue
        columns = matrix(scores[scores["template"] == template], "score", prompts)
        for (a, b), votes in found.items():
            votes.append(test(np.round(columns[a] - columns[b], 9), np.zeros(len(prompts))))
    return {pair: majority_relation(votes) for pair, votes in found.items()}


@pytest.mark.parametrize(
    ("variant", "templates", "test"),
    [
        ("paper", ["WL", "Likert", "DSGH"], relation),
        ("paper_v2", ["WL", "Likert", "DSGH", "SxS"], relation),
        ("direction_only", ["WL", "Likert", "DSGH"], direction),
    ],
)
def test_model_pairs_right_counts_pairs_with_the_relation_of_the_majority(
    answers: Gecko2kAnswers, variant: str, templates: list[str], test: Any
) -> None:
    oracle = answers.pairs["model"].map({"Imagen": 0, "Muse": 9, "SDXL": 5, "SD1.5": 4}).to_numpy()
    scores = score_table(answers, oracle=oracle + np.linspace(0, 0.5, len(oracle)))
    prompts = answers.prompts.loc[answers.prompts["reliable"], "prompt_id"].tolist()
    truth = slow_votes(answers, prompts, templates, test)
    measured = run(scores, answers)
    for metric in scores.metrics:
        long = answers.pairs.assign(value=scores.overall[metric].to_numpy())
        columns = matrix(long, "value", prompts)
        expected = sum(test(columns[a], columns[b]) == sign for (a, b), sign in truth.items())
        (row,) = rows_of(
            measured, measure="model_pairs_right", variant=variant, split="rel", metric=metric
        )
        assert row.value == expected
        assert (row.n_items, row.n_clusters) == (6, len(prompts))
        assert row.note == "of 6 pairs of models"
        assert np.isfinite(measured.resamples[measured.rows.index(row)]).all()


def test_a_constant_metric_finds_no_model_better(answers: Gecko2kAnswers) -> None:
    measured = run(score_table(answers, flat=np.ones(len(answers.pair_ids))), answers)
    prompts = answers.prompts.loc[answers.prompts["reliable"], "prompt_id"].tolist()
    truth = slow_votes(answers, prompts, ["WL", "Likert", "DSGH"], relation)
    (row,) = rows_of(
        measured, measure="model_pairs_right", variant="paper", split="rel", metric="flat"
    )
    assert row.value == sum(sign == 0 for sign in truth.values())
    (row,) = rows_of(measured, measure="srcc", split="all", facet="WL", skill=None, metric="flat")
    assert np.isnan(row.value)
    assert "all scores or all ratings are equal" in row.note


def wl(prompt: str, *by_rater: str) -> pd.DataFrame:
    """One image of Muse: each rater's words as letters A, N, U."""
    names = {"A": "aligned", "N": "not_aligned", "U": "unsure"}
    rows = [
        ("WL", prompt, "Muse", "", f"r{r}", i, "", names[letter])
        for r, word in enumerate(by_rater)
        for i, letter in enumerate(word)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def word_answers(ratings: pd.DataFrame) -> GeckoAnswers:
    ids = sorted(set(ratings["prompt_id"]))
    prompts = pd.DataFrame({"prompt_id": ids, "prompt": "t", "skill": "x", "sub_skill": "y"})
    pairs = pd.DataFrame({"pair_id": [f"{p}/Muse" for p in ids], "prompt_id": ids, "model": "Muse"})
    return GeckoAnswers(tuple(pairs["pair_id"]), tuple(ids), prompts, pairs, ratings)


def word_scores(answers: GeckoAnswers, labels: dict[str, list[float]], sign: int = 1) -> ScoreTable:
    rows = [(f"{p}/Muse", str(i), x) for p, values in labels.items() for i, x in enumerate(values)]
    elements = pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])
    overall = score_table(answers).overall
    return ScoreTable(overall, {"fine": elements}, {"fine": 1 if sign > 0 else -1})


def test_words_count_where_all_raters_agree() -> None:
    found = agreed_words(pd.concat([wl("p", "AANUA", "ANNUU", "AANUA"), wl("q", "N")]))
    assert found.to_numpy().tolist() == [
        ["p", "Muse", 0, True], ["p", "Muse", 2, False], ["q", "Muse", 0, False],
    ]  # fmt: skip


@pytest.mark.parametrize("sign", [1, -1])
def test_word_level_of_the_worked_example(sign: int) -> None:
    """Specification of the protocols, 4.5: c_obs 0.8, c_exp 0.68, kappa 0.375."""
    answers = word_answers(wl("p", "AAAAAAANANU", "AAAAAAANANA"))
    labels = [0.5, 0.9, 1, 1, 1, 1, 1, 1, 0.49, 0, 1]
    if sign < 0:
        labels = [1 - x for x in labels]
    measured = run(word_scores(answers, {"p": labels}, sign), answers)
    for facet in ("WL", "WL:Muse"):
        (accuracy,) = rows_of(measured, measure="word_accuracy", facet=facet)
        (kappa,) = rows_of(measured, measure="error_consistency", facet=facet)
        assert accuracy.value == pytest.approx(0.8)
        assert kappa.value == pytest.approx(0.375)
        assert accuracy.n_items == kappa.n_items == 10
        assert kappa.note.startswith("10 of 10 words on which the raters agree")


def test_words_without_a_label_are_left_out_and_counted() -> None:
    answers = word_answers(pd.concat([wl("p", "AAN"), wl("q", "AN")]))
    measured = run(word_scores(answers, {"p": [1.0, NAN, 1.0]}), answers, 50)
    (row,) = rows_of(measured, measure="word_accuracy", facet="WL")
    assert (row.value, row.n_items, row.n_clusters, row.n_missing) == (0.5, 2, 1, 1)
    assert row.note.startswith("2 of 5 words on which the raters agree")
    nothing = run(word_scores(answers, {"p": [NAN]}), answers)
    for measure_name in ("word_accuracy", "error_consistency"):
        (row,) = rows_of(nothing, measure=measure_name, facet="WL")
        assert np.isnan(row.value)
        assert row.note.endswith("no word to compare")


def test_kappa_of_constant_labels_is_undefined() -> None:
    answers = word_answers(wl("p", "AA"))
    measured = run(word_scores(answers, {"p": [1, 1]}), answers)
    (row,) = rows_of(measured, measure="error_consistency", facet="WL")
    assert np.isnan(row.value)
    assert "all labels are equal" in row.note


def test_without_word_labels_there_are_no_word_rows(answers: Gecko2kAnswers) -> None:
    assert not rows_of(run(score_table(answers), answers), measure="word_accuracy")


def test_rater_agreement_keeps_unsure_as_a_value(answers: Gecko2kAnswers) -> None:
    table: Any = rater_agreement(answers).set_index(["split", "template", "model"]).sort_index()
    ratings = answers.ratings
    mine = ratings[(ratings["template"] == "WL") & (ratings["model"] == "Muse")]
    wide = mine.pivot(index=["prompt_id", "unit_index"], columns="rater_id", values="value")
    codes = wide.replace({"aligned": 0.0, "not_aligned": 1.0, "unsure": 2.0}).astype(float)
    found = table.loc[("all", "WL", "Muse")]
    assert found["alpha"] == pytest.approx(krippendorff_alpha(codes.to_numpy(), "nominal"))
    assert found["units"] == 80
    assert len(table.loc[("r_rel", "SxS")]) == 6
    assert np.isnan(table.loc[("all", "Likert", "Muse"), "alpha"])  # all say 5


def test_agreement_on_comparisons_does_not_depend_on_the_order_shown() -> None:
    rows = [
        ("SxS", p, a, b, r, 0, "", v)
        for p, a, b, r, v in [
            ("p", "A", "B", "1", "a"), ("p", "B", "A", "2", "b"),
            ("q", "A", "B", "1", "unsure"), ("q", "B", "A", "2", "unsure"),
        ]
    ]  # fmt: skip
    ratings = pd.DataFrame(rows, columns=list(COLUMNS))
    found = rater_agreement(word_answers(ratings.assign(model="Muse", model_b="SDXL")))
    assert found["alpha"].iloc[0] < 1  # the votes as such differ
    pairs = pd.DataFrame(
        [(f"{p}/{m}", p, m) for p in "pq" for m in "AB"], columns=["pair_id", "prompt_id", "model"]
    )
    base = word_answers(ratings)
    both = GeckoAnswers(tuple(pairs["pair_id"]), ("p", "q"), base.prompts, pairs, ratings)
    assert rater_agreement(both)[["model", "alpha", "units"]].to_numpy().tolist() == [
        ["A-B", 1.0, 2]
    ]


def test_means_and_unsure_shares_by_model(answers: Gecko2kAnswers) -> None:
    table: Any = template_means(answers).set_index(["split", "template", "model"]).sort_index()
    found = table.loc[("all", "Likert", "Muse")]
    assert found.tolist() == [1.0, 40, 0.0, 120]
    ratings = answers.ratings
    mine = ratings[(ratings["template"] == "DSGH") & (ratings["model"] == "SDXL")]
    share = table.loc[("all", "DSGH", "SDXL"), "unsure_share"]
    assert share == pytest.approx((mine["value"] == "unsure").mean())


@pytest.mark.slow
def test_templates_are_held_against_side_by_side_like_metrics(answers: Gecko2kAnswers) -> None:
    table: Any = (
        template_pairwise_accuracy(answers)
        .set_index(["split", "template", "model", "model_b"])
        .sort_index()
    )
    scored = template_scores(answers.ratings)
    for template in ("WL", "Likert", "DSGH"):
        human = scored[scored["template"] == template].set_index(["prompt_id", "model"])["score"]
        column = human.reindex(pd.MultiIndex.from_frame(answers.pairs[["prompt_id", "model"]]))
        scores = score_table(answers, human=column.to_numpy())
        for split in SPLITS:
            (row,) = rows_of(
                run(scores, answers, 2),
                measure="pairwise_accuracy", metric="human", split=split, skill=None,
            )  # fmt: skip
            found = table.loc[(split, template, "", "")]
            assert found["accuracy"] == pytest.approx(row.value)
            assert found["comparisons"] == row.n_items
    of_pairs = table.loc[("all", "WL")].drop(("", ""))
    assert len(of_pairs) == 6
    assert of_pairs["comparisons"].sum() == table.loc[("all", "WL", "", ""), "comparisons"]


def test_model_relations_show_each_template_and_both_majorities(answers: Gecko2kAnswers) -> None:
    table: Any = model_relations(answers).set_index(["split", "model", "model_b"])
    assert table.loc[("all", "Imagen", "Muse"), "Likert"] == "<"
    assert table.loc[("all", "Muse", "SDXL"), "Likert"] == ">"
    assert set(table.columns) == {"WL", "Likert", "DSGH", "SxS", "majority", "majority_v2"}


def test_half_of_the_scores_may_be_missing(answers: Gecko2kAnswers) -> None:
    values = np.random.default_rng(2).normal(size=len(answers.pair_ids))
    values[answers.pairs["model"].isin(["Imagen", "SDXL"]).to_numpy()] = NAN
    measured = run(score_table(answers, half=values), answers)
    (order,) = rows_of(
        measured, measure="model_pairs_right", variant="paper", split="rel", metric="half"
    )
    assert "counted as wrong for want of scores: Imagen–Muse, Imagen–SD1.5" in order.note
    assert order.n_missing == 60
    for row in rows_of(measured, metric="half"):
        assert row.n_missing > 0
        assert row.note
    nothing = run(score_table(answers, none=np.full(len(values), NAN)), answers)
    for row in rows_of(nothing, metric="none"):
        assert row.note
        assert np.isnan(row.value) or row.measure == "pairwise_accuracy"


def test_one_model_or_one_prompt_only_has_rows_with_reasons(tmp_path: Path) -> None:
    ratings = ratings_table()
    one_model = ratings[(ratings["model"] == "Muse") & (ratings["template"] != "SxS")]
    one_prompt = ratings[ratings["prompt_id"] == "0"]
    for table in (one_model, one_prompt):
        found = gecko().answers(write_tree(tmp_path, ratings=table))
        for row in run(score_table(found), found).rows:
            assert np.isfinite(row.value) or row.note
    (row,) = rows_of(run(score_table(found), found), measure="model_pairs_right",
                     variant="paper", split="rel")  # fmt: skip
    assert row.n_clusters == 1


@pytest.mark.slow
@pytest.mark.parametrize("template", ["WL", "Likert", "DSGH", "SxS"])
def test_a_template_may_be_absent_or_alone(tmp_path: Path, template: str) -> None:
    ratings = ratings_table()
    of_template = ratings["template"] == template
    for table in (ratings[~of_template], ratings[of_template]):
        found = gecko().answers(write_tree(tmp_path, ratings=table))
        measured = run(score_table(found), found)
        assert {r.facet for r in measured.rows} - {None} == set(table["template"])
        assert all(np.isfinite(row.value) or row.note for row in measured.rows)
        for facts in (rater_agreement, template_means, template_pairwise_accuracy, model_relations):
            facts(found)
