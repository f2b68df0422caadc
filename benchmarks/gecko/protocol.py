"""Protocol of Gecko2K: agreement with four kinds of human annotation, skill by skill."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.gecko.cases import cases
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
)
from benchmarks.gecko.measures import (
    FACETS,
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
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan


def measure(
    scores: ScoreTable,
    answers: GeckoAnswers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Measured:
    """All Gecko measures of every metric in the table.

    Rows, for the parts of `parts_of`: `srcc` and `pearson` per template that was rated,
    `pairwise_accuracy` for SxS (variant `paper`). Except for sub-skills: `srcc` without facet
    (variant `assay`), the mean over templates. For each reliable set: `model_pairs_right`. For
    `all`, `s` and `r`: `word_accuracy` and `error_consistency` of metrics with word labels.
    """
    data = align(scores, answers, plan)
    labelled = {name: word_labels(scores, name, answers) for name in scores.elements}
    builder = MeasuredBuilder(plan.n_resamples)
    row = Row(benchmark, revision, metric="", measure="", value=math.nan, variant="paper")
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


_READ = Card.read(Path(__file__).parent / "card.toml", MEASURES)
CARD = _READ.model_copy(update={"facets": {**FACETS, **_READ.facets}})


class Gecko(Benchmark):
    """Gecko2K: released prompts, ratings and images of an operator."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> Gecko2kAnswers:
        """Read the prompts and the supplied ratings; see `load_answers` and FORMAT.md."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the supplied images `<data>/gecko/images/<prompt_id>/<model>.png` or `.jpg`."""
        return load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """True where the files are there; `questions` checks each image."""
        return all(map(self.folder(data).has, (PROMPTS, RATINGS, IMAGES)))

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """All released prompts, rated or not; two ids share one text. See `Benchmark.prompts`."""
        table = load_prompts(self.folder(data))
        finer = (table["skill"] + ":" + table["sub_skill"]).where(table["skill"] != "", "")
        skills = (table["skill"] + ";" + finer).where(table["skill"] != "", "")
        return table[["prompt_id", "prompt", "split"]].assign(skills=skills)

    def facts(self, answers: Gecko2kAnswers) -> Mapping[str, pd.DataFrame]:
        """Facts of the ratings alone; see `benchmarks.gecko.measures`."""
        return facts(answers)

    def cases(self, answers: Gecko2kAnswers, data: Path | None) -> pd.DataFrame:
        """Prompts to look at; see `benchmarks.gecko.cases`."""
        del data
        return cases(answers)

    def measure(
        self, scores: ScoreTable, answers: Gecko2kAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (Gecko(),)
