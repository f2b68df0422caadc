"""Protocol of Gecko2K: agreement with four kinds of human annotation, skill by skill."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.by_generator import named_generators
from benchmarks.cases import image_cases
from benchmarks.gecko.load import (
    IMAGES,
    PROMPTS,
    RATINGS,
    Aligned,
    Gecko2kAnswers,
    GeckoAnswers,
    align,
    load_answers,
    load_prompts,
    load_questions,
    preferences,
    template_scores,
)
from benchmarks.gecko.measures import (
    MEASURES,
    Estimate,
    Part,
    add_model_order,
    add_pairwise,
    add_word_rows,
    facts,
    mean_of_templates,
    parts_of,
    pointwise,
    word_labels,
)
from benchmarks.rated_images import RatedImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import BY_GENERATOR, Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined


def _add_pointwise(builder: MeasuredBuilder, row: Row, part: Part, data: Aligned) -> None:
    estimates = {template: pointwise(data, part, template) for template in data.human}
    for template, found in estimates.items():
        for name, estimate in found.items():
            _add(builder, replace(row, measure=name, facet=template), estimate, data)
    if estimates and not part.is_sub_skill:
        summary = mean_of_templates({t: found["srcc"] for t, found in estimates.items()})
        _add(builder, replace(row, measure="srcc", variant="assay"), summary, data)


def _add(builder: MeasuredBuilder, row: Row, estimate: Estimate, data: Aligned) -> None:
    members = np.unique(data.prompts[estimate.rated])
    for column, metric in enumerate(data.metrics):
        used = estimate.used[:, column]
        value = float(estimate.values[0, column])
        filled = replace(
            row,
            metric=metric,
            value=value,
            n_items=int(used.sum()),
            n_clusters=np.unique(data.prompts[used]).size,
            n_missing=int(estimate.missing[:, column].sum()),
            note=estimate.note(column),
        )
        resamples = None if math.isnan(value) else estimate.values[1:, column]
        builder.add(filled, resamples, members=members)


# Cases of Gecko: a prompt with its images, ordered by the ratings of one annotation template.
#
# A template asks in its own way, so only ratings of one are compared within a case. Of each prompt it
# is the first of `PREFERRED` by which two of its images are rated: Likert rates the whole image,
# DSG(H) and WL count what is right in it. Where there is none, images are ordered by how often they
# win side by side.


PREFERRED: tuple[str, ...] = ("Likert", "DSGH", "WL")
_SIDE_BY_SIDE = "SxS"
_SAID: dict[str, Callable[[float], str]] = {
    "Likert": lambda score: f"{5 * score:.1f} of 5",
    "DSGH": lambda score: f"{score:.0%} of questions answered yes",
    "WL": lambda score: f"{score:.0%} of words aligned",
    _SIDE_BY_SIDE: lambda balance: f"side by side: {balance:+.0f}",
}


def _expected(answers: GeckoAnswers) -> pd.DataFrame:
    """Template and value of each image, in the order of the pairs; NaN where it has none."""
    item = ["prompt_id", "model"]
    order = pd.MultiIndex.from_frame(answers.pairs[item])
    scores = template_scores(answers.ratings)
    found = pd.DataFrame({"template": _SIDE_BY_SIDE, "value": np.nan}, index=order)
    prompts = order.get_level_values("prompt_id")
    undecided = np.ones(len(order), bool)
    for template in (*PREFERRED, _SIDE_BY_SIDE):
        if template == _SIDE_BY_SIDE:
            values = _balance(answers.ratings)
        else:
            values = scores[scores["template"] == template].set_index(item)["score"]
        given = values.reindex(order).to_numpy(np.float64)
        rated = pd.Series(np.isfinite(given)).groupby(np.asarray(prompts)).transform("sum")
        chosen = undecided & (rated >= 2).to_numpy()
        found.loc[chosen, "template"] = template
        found.loc[chosen, "value"] = given[chosen]
        undecided &= ~chosen
    return found


def _balance(ratings: pd.DataFrame) -> pd.Series:
    """Comparisons that an image wins, less those it loses, by majority vote."""
    votes = preferences(ratings)
    first = votes.rename(columns={"preference": "value"})[["prompt_id", "model", "value"]]
    second = pd.DataFrame(
        {
            "prompt_id": votes["prompt_id"],
            "model": votes["model_b"],
            "value": -votes["preference"],
        }
    )
    return pd.concat([first, second]).groupby(["prompt_id", "model"])["value"].sum()


def _splits(prompts: pd.DataFrame) -> dict[str, str]:
    """As in `parts.parts_of`: `s` or `r`, and the reliable parts of both; none without splits."""
    if "split" not in prompts:
        return {}
    return {
        str(prompt): f"{split};rel;{split}_rel" if reliable else str(split)
        for prompt, split, reliable in zip(
            prompts.index, prompts["split"], prompts["reliable"], strict=True
        )
    }


CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class Gecko(Benchmark):
    """Gecko2K: released prompts, ratings and images of an operator."""

    card = CARD
    asked_from = (PROMPTS, RATINGS, IMAGES)

    def answers(self, data: Path | None) -> Gecko2kAnswers:
        """Read the prompts and the supplied ratings; see `load_answers` and FORMAT.md."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the supplied images `<data>/gecko/images/<prompt_id>/<model>.png` or `.jpg`."""
        return load_questions(self.folder(data))

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """All released prompts, rated or not; two ids share one text. See `Benchmark.prompts`."""
        table = load_prompts(self.folder(data))
        finer = (table["skill"] + ":" + table["sub_skill"]).where(table["skill"] != "", "")
        skills = (table["skill"] + ";" + finer).where(table["skill"] != "", "")
        return table[["prompt_id", "prompt", "split"]].assign(skills=skills)

    def facts(self, answers: Gecko2kAnswers) -> Mapping[str, pd.DataFrame]:
        """Facts of the ratings alone; see `benchmarks.gecko.measures`."""
        return facts(answers)

    def cases(self, answers: GeckoAnswers, data: Path | None) -> pd.DataFrame:
        """The images of each prompt with the ratings of its template."""
        del data
        expected = _expected(answers)
        prompts = answers.prompts.set_index("prompt_id")
        said = [
            _SAID[template](value) if np.isfinite(value) else "not rated"
            for template, value in zip(expected["template"], expected["value"], strict=True)
        ]
        return image_cases(
            answers.pairs["pair_id"].tolist(),
            answers.pairs["prompt_id"].tolist(),
            expected["value"].to_numpy(np.float64),
            said,
            texts=prompts["prompt"].to_dict(),
            skills={
                str(prompt): [skill, f"{skill}:{finer}"] if finer else [skill]
                for prompt, skill, finer in zip(
                    prompts.index, prompts["skill"], prompts["sub_skill"], strict=True
                )
                if skill
            },
            splits=_splits(prompts),
        )

    def rated_images(self, answers: GeckoAnswers) -> RatedImages | None:
        """The images of each prompt with their Likert ratings, 1 to 5; None without such ratings."""
        likert = answers.ratings[answers.ratings["template"] == "Likert"]
        points = pd.to_numeric(likert["value"], errors="coerce")
        if not points.notna().any():
            return None
        item = ["prompt_id", "model"]
        by_rater = likert.assign(points=points).groupby([*item, "rater_id"], sort=True)["points"]
        order = pd.MultiIndex.from_frame(answers.pairs[item])
        ratings = by_rater.mean().unstack("rater_id").reindex(order).to_numpy(np.float64)
        prompts = answers.pairs["prompt_id"].astype(str).tolist()
        pair_ids = answers.pairs["pair_id"].astype(str).tolist()
        return RatedImages(prompts, prompts, pair_ids, mean_of_defined(ratings, axis=1), ratings)

    @property
    def compares_images(self) -> bool:
        """Rows of SxS do."""
        return True

    def within_text(self, row: Row) -> bool:
        """Side by side, people compared two images of a prompt."""
        return (row.measure, row.facet) == ("pairwise_accuracy", "SxS")

    def measure(self, scores: ScoreTable, answers: GeckoAnswers, plan: ResamplingPlan) -> Measured:
        """All Gecko measures of every metric in the table.

        Rows, for the parts of `parts_of`: `srcc` and `pearson` per template that was rated,
        `pairwise_accuracy` for SxS (variant `paper`). Except for sub-skills: `srcc` without facet
        (variant `assay`), the mean over templates. For each split: `model_pairs_right`. For `all`,
        `s` and `r`: `word_accuracy` and `error_consistency` of metrics with word labels.
        """
        data = align(scores, answers, plan)
        labelled = {name: word_labels(scores, name, answers) for name in scores.elements}
        builder = MeasuredBuilder(plan.n_resamples)
        row = Row(self.name, self.card.revision, "", "", math.nan, variant="paper")
        for part in parts_of(answers):
            of_part = replace(row, split=part.split, skill=part.skill)
            _add_pointwise(builder, of_part, part, data)
            if data.comparisons.preference.any():
                accuracy = replace(of_part, measure="pairwise_accuracy", facet="SxS")
                add_pairwise(builder, accuracy, part, data)
            if part.orders_models:
                add_model_order(builder, replace(of_part, measure="model_pairs_right"), part, data)
            if part.has_words:
                for name, words in labelled.items():
                    add_word_rows(builder, replace(of_part, metric=name), part, words, data)
        return builder.build()

    def by_generator(
        self, scores: ScoreTable, answers: GeckoAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The headline, which is a mean over models, on the images of each."""
        data = align(scores, answers, plan)
        builder = MeasuredBuilder(plan.n_resamples)
        whole = next(iter(parts_of(answers))).chosen
        models = answers.pairs["model"].to_numpy(object)
        row = Row(self.name, self.card.revision, "", BY_GENERATOR, math.nan, variant="assay")
        for name in named_generators(models) if data.human else ():
            part = Part(None, None, whole & (models == name))
            found = {one: pointwise(data, part, one)["srcc"] for one in data.human}
            _add(builder, replace(row, facet=name), mean_of_templates(found), data)
        return builder.build()


BENCHMARKS = (Gecko(),)
