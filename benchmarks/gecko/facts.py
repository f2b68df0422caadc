"""What the ratings alone say, for the about page: agreement, means, unsure answers, templates.

Each function gives a table with one row per split (None where the benchmark has none), template
and model or pair of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.gecko.aggregate import ABSOLUTE_TEMPLATES, VALUES, template_scores
from benchmarks.gecko.aligned import Aligned, align
from benchmarks.gecko.answers import TEMPLATES, GeckoAnswers
from benchmarks.gecko.model_order import template_relations
from benchmarks.gecko.pairwise import right
from benchmarks.gecko.parts import Part, parts_of
from benchmarks.schema import ScoreTable
from benchmarks.statistics.ordering import majority_relation
from benchmarks.statistics.raters import krippendorff_alpha
from benchmarks.statistics.resampling import ResamplingPlan

_SIGNS = {-1: "<", 0: "=", 1: ">"}


def facts(answers: GeckoAnswers) -> dict[str, pd.DataFrame]:
    """The tables below by title; see `Benchmark.facts`."""
    return {
        "Krippendorff's alpha by template and model": rater_agreement(answers),
        "Mean human score and unsure answers": template_means(answers),
        "Accuracy of templates on side-by-side comparisons": template_pairwise_accuracy(answers),
        "Order of the models": model_relations(answers),
    }


def rater_agreement(answers: GeckoAnswers) -> pd.DataFrame:
    """Krippendorff's alpha with Unsure kept, as one more value (hence nominal).

    The paper does not name the level of measurement; Unsure is a value at the nominal one alone.
    A unit is a word, a question, an image (Likert) or a comparison (SxS).

    Returns:
        Columns `split`, `template`, `model` (SxS: `first-second`), `alpha` (at most 1; NaN where
        all answers are equal or no unit has two), `units` (with two answers or more).
    """
    rows = []
    for split, template, model, ratings in _by_model(answers):
        table = _units_by_rater(ratings, template)
        units = int((np.isfinite(table).sum(axis=1) >= 2).sum())
        rows.append((split, template, model, krippendorff_alpha(table, "nominal"), units))
    return pd.DataFrame(rows, columns=["split", "template", "model", "alpha", "units"])


def template_means(answers: GeckoAnswers) -> pd.DataFrame:
    """Mean human score and share of Unsure answers by model in the absolute templates.

    Returns:
        Columns `split`, `template`, `model`, `mean_score` (over images, 0..1; NaN where all are
        unsure), `images` (behind it), `unsure_share` (of all answers, 0..1), `answers`.
    """
    rows = []
    for split, template, model, ratings in _by_model(answers):
        if template in ABSOLUTE_TEMPLATES:
            scores = template_scores(ratings)["score"]
            unsure = float((ratings["value"] == "unsure").mean())
            images = int(scores.notna().sum())
            rows.append((split, template, model, scores.mean(), images, unsure, len(ratings)))
    columns = ["split", "template", "model", "mean_score", "images", "unsure_share", "answers"]
    return pd.DataFrame(rows, columns=columns)


def template_pairwise_accuracy(answers: GeckoAnswers) -> pd.DataFrame:
    """How often an absolute template orders two images as the side-by-side comparison does.

    The template's score stands in for a metric: a tie is wrong, and so is an image without a
    score. The paper reports it on the reliable prompts.

    Returns:
        Columns `split`, `template`, `model`, `model_b` (both empty: all pairs of models),
        `accuracy` (0..1), `comparisons` (with a preference).
    """
    data = _aligned(answers)
    winner, loser = data.comparisons.decided()
    rows = []
    for part in _splits(answers):
        kept = part.chosen[winner]
        pairs = np.sort(np.stack([data.models[winner], data.models[loser]]).astype(str), axis=0)
        for template, scores in data.human.items():
            correct = right(scores, winner, loser)
            for a, b in [("", ""), *combinations(sorted(set(data.models)), 2)]:
                of_pair = kept if not a else kept & (pairs[0] == a) & (pairs[1] == b)
                if of_pair.any():
                    value = float(correct[of_pair].mean())
                    rows.append((part.split, template, a, b, value, int(of_pair.sum())))
    columns = ["split", "template", "model", "model_b", "accuracy", "comparisons"]
    return pd.DataFrame(rows, columns=columns)


def model_relations(answers: GeckoAnswers) -> pd.DataFrame:
    """Relation of each pair of models in each template, and what the majority says.

    Returns:
        Columns `split`, `model`, `model_b` (by name), one per rated template (`<`, `=` or `>`:
        Wilcoxon, p < 0.001), `majority` of the absolute ones and `majority_v2` of all.
    """
    data = _aligned(answers)
    rows = []
    for part in _splits(answers):
        found = template_relations(data, part.chosen)
        for a, b in combinations(sorted(set(data.models)), 2):
            votes = {template: of[a, b] for template, of in found.items()}
            absolute = [vote for template, vote in votes.items() if template != "SxS"]
            signs = {template: _SIGNS[vote] for template, vote in votes.items()}
            rows.append(
                {"split": part.split, "model": a, "model_b": b, **signs}
                | {"majority": _SIGNS[majority_relation(absolute)]}
                | {"majority_v2": _SIGNS[majority_relation(list(votes.values()))]}
            )
    return pd.DataFrame(rows)


def _splits(answers: GeckoAnswers) -> list[Part]:
    return [part for part in parts_of(answers) if part.skill is None]


def _aligned(answers: GeckoAnswers) -> Aligned:
    """The human side, with no metric and no resamples."""
    nothing = ScoreTable(pd.DataFrame(index=pd.Index(answers.pair_ids)))
    return align(nothing, answers, ResamplingPlan(answers.clusters, seed=0, n_resamples=0))


def _by_model(
    answers: GeckoAnswers,
) -> Iterator[tuple[str | None, str, str, pd.DataFrame]]:
    """Split, template, model or pair of models, and the ratings there."""
    first = answers.ratings[["model", "model_b"]].min(axis=1)
    second = answers.ratings[["model", "model_b"]].max(axis=1)
    sides = (first + "-" + second).where(answers.ratings["template"] == "SxS")
    named = answers.ratings.assign(of=sides.fillna(answers.ratings["model"]))
    for part in _splits(answers):
        prompts = set(answers.pairs.loc[part.chosen, "prompt_id"])
        ratings = named[named["prompt_id"].isin(prompts)]
        for template in TEMPLATES:
            for model, rows in ratings[ratings["template"] == template].groupby("of", sort=True):
                yield part.split, template, str(model), rows


def _units_by_rater(ratings: pd.DataFrame, template: str) -> np.ndarray:
    """Codes of the answers, shape (units, most raters of a unit); NaN fills up."""
    value = ratings["value"]
    if template == "SxS":  # the same models may have been shown in either order
        swapped = ratings["model"] > ratings["model_b"]
        value = value.where(~swapped, value.map({"a": "b", "b": "a", "unsure": "unsure"}))
    codes = value.map({name: float(i) for i, name in enumerate(VALUES[template])})
    unit = ratings.groupby(["prompt_id", "unit_index"], sort=True)
    table = np.full((unit.ngroups, int(unit.size().max())), np.nan)
    table[unit.ngroup().to_numpy(), unit.cumcount().to_numpy()] = codes.to_numpy(np.float64)
    return table
