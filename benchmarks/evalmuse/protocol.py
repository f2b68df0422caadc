"""Protocol of EvalMuse-40K: agreement with ratings of whole images and of prompt elements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.by_generator import GeneratedImages, named_generators
from benchmarks.cases import image_cases, of_five
from benchmarks.errors import SubmitterError
from benchmarks.evalmuse import load
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.measures import (
    MEASURES,
    Drawn,
    Estimate,
    ScoredElements,
    element_estimates,
    facts,
    overall_estimates,
    skills_of_prompts,
    tables_of,
    undefined,
)
from benchmarks.pooled import ManyPools
from benchmarks.rated_images import RatedImages
from benchmarks.rows import Measured, MeasuredBuilder, Row, notes
from benchmarks.schema import (
    BY_GENERATOR,
    Benchmark,
    Card,
    Questions,
    ScoreTable,
    scores_of_elements,
)
from benchmarks.statistics.resampling import ResamplingPlan

TRACK1_WEIGHTS: dict[str, float] = {"srcc": 0.25, "plcc": 0.25, "element_accuracy": 0.5}
"""Parts of the final score of NTIRE 2025, track 1."""
_TRACK1_PARTS: dict[str, dict[str, str]] = {
    "code": {"srcc": "paper", "plcc": "ntire_code", "element_accuracy": "ntire"},
    "paper": {"srcc": "paper", "plcc": "paper", "element_accuracy": "ntire"},
}
"""Variants of the final score to the variants of its parts."""


def estimates(
    scores: ScoreTable,
    answers: EvalMuseAnswers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Iterator[Estimate]:
    """The rows of `measure` without intervals, whose resamples are computed when asked for."""
    overall = scores.oriented().loc[answers.images["pair_id"]]
    images, elements = tables_of(answers, plan)
    pools = ManyPools(overall.to_numpy(np.float64), images.labels, images.clusters, plan)
    for column, metric in enumerate(scores.metrics):
        row = Row(benchmark, revision, metric, measure="", value=math.nan, variant="paper")
        found = list(overall_estimates(row, column, pools, images))
        if metric in scores.elements:
            given = scores.oriented_elements(metric)
            of_elements, n_unlabelled = scores_of_elements(given, elements.keys)
            sign = scores.directions.get(metric, 1)
            scored = ScoredElements(of_elements, elements, n_unlabelled, plan, sign)
            found += element_estimates(row, scored)
        else:
            without = replace(row, measure="element_accuracy", split="all")
            found.append(undefined(without, "gives no element scores"))
        yield from found
        for split, _ in images.splits:
            yield from _track1(replace(row, measure="ntire_track1", split=split), found)


def _track1(row: Row, parts: Iterable[Estimate]) -> Iterator[Estimate]:
    """The final score of the challenge on a split from its parts, in both variants."""
    of_split = {
        (part.row.measure, part.row.variant): part
        for part in parts
        if part.row.split == row.split and part.row.skill is None
    }
    overall = of_split["srcc", "paper"].row
    row = replace(
        row,
        n_items=overall.n_items,
        n_clusters=overall.n_clusters,
        n_missing=overall.n_missing,
    )
    for variant, keys in _TRACK1_PARTS.items():
        chosen = {name: of_split[name, of] for name, of in keys.items() if (name, of) in of_split}
        yield _final(replace(row, variant=variant), chosen)


def _final(row: Row, parts: dict[str, Estimate]) -> Estimate:
    """The weighted sum of the parts; a part may be absent (no element scores) or undefined."""
    defined = {name: part for name, part in parts.items() if not math.isnan(part.row.value)}
    lacking = [name for name in TRACK1_WEIGHTS if name not in defined]
    if lacking:
        reasons = [parts[name].row.note for name in lacking if name in parts]
        return undefined(row, f"no {', '.join(lacking)}", *dict.fromkeys(reasons))
    value = sum(TRACK1_WEIGHTS[name] * part.row.value for name, part in defined.items())
    said = dict.fromkeys(part.row.note for part in defined.values())
    row = replace(row, value=value, note=notes(*said))
    return Estimate(row, lambda: _final_drawn(defined), defined["srcc"].members)


def _final_drawn(parts: dict[str, Estimate]) -> Drawn:
    weighted: list[FloatArray] = []
    for name, part in parts.items():
        if part.drawn.values is None:
            return Drawn(note=part.drawn.note)
        weighted.append(TRACK1_WEIGHTS[name] * part.drawn.values)
    return Drawn(np.sum(weighted, axis=0))


_FOLDER = Path(__file__).parent
CARD = Card.read(_FOLDER / "card.toml", MEASURES)
NTIRE_CARD = Card.read(_FOLDER / "card_ntire.toml", MEASURES)


class _EvalMuseProtocol(Benchmark):
    """What both sets of labels are measured by."""

    def facts(self, answers: EvalMuseAnswers) -> Mapping[str, pd.DataFrame]:
        """Facts of the human labels alone; see `benchmarks.evalmuse.measures`."""
        return facts(answers)

    def measure(
        self, scores: ScoreTable, answers: EvalMuseAnswers, plan: ResamplingPlan
    ) -> Measured:
        """All EvalMuse measures of every metric in the table.

        Rows: `srcc`, `krcc`, `plcc`, `rmse` and `pearson` for the splits `all`, `real` and `synth`
        that have images (variant `paper`), `plcc` also as `ntire_code` and `ntire_page`; `srcc` per
        skill (`assay`, split `all`); `element_accuracy` as `paper`, `held_out` and `ntire` for the
        splits and, in each, for each type of element, `other` too; `ntire_track1` as `code` and
        `paper` for the splits.
        """
        builder = MeasuredBuilder(plan.n_resamples)
        for estimate in estimates(scores, answers, plan, self.name, self.card.revision):
            drawn = estimate.drawn
            row = replace(estimate.row, note=notes(estimate.row.note, drawn.note))
            builder.add(row, drawn.values, members=estimate.members, pool=estimate.pool)
        return builder.build()

    def by_generator(
        self, scores: ScoreTable, answers: EvalMuseAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The headline on the images of each model, which is the folder of an image."""
        builder = MeasuredBuilder(plan.n_resamples)
        images = answers.images
        table = scores.oriented().loc[images["pair_id"].tolist()]
        generated = GeneratedImages(
            images["label"].to_numpy(np.float64),
            plan.positions(images["prompt_id"]),
            [pair.rpartition("/")[0] for pair in images["pair_id"].astype(str)],
            plan,
        )
        for metric in scores.metrics:
            row = Row(self.name, self.card.revision, metric, "", math.nan, variant="assay")
            values = table[metric].to_numpy(np.float64)
            generated.add_rows(builder, row, values, self.card.headline.measure)
        return builder.build()


class EvalMuse(_EvalMuseProtocol):
    """A held-out quarter of the prompts of the public labelled list."""

    card = CARD
    asked_from = (load.LABELS,)

    def answers(self, data: Path | None) -> EvalMuseAnswers:
        """Read the labels from `<data>/evalmuse/train_list.json`; see `load.load_answers`."""
        return load.load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from the archive's parts or the unpacked folder `evalmuse/images`."""
        return load.load_questions(self.folder(data))

    def training(self, data: Path | None) -> tuple[Questions, EvalMuseAnswers]:
        """The three quarters of the released training list that the board leaves."""
        folder = self.folder(data)
        return load.load_questions(folder, training=True), load.load_answers(folder, training=True)

    def has_images(self, data: Path | None) -> bool:
        """Whether the unpacked folder or every part of the archive is there."""
        return load.has_images(self.folder(data))

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The 199 released prompts for ranking text-to-image models; see `Benchmark.prompts`."""
        return load.load_prompts(self.folder(data))

    def cases(self, answers: EvalMuseAnswers, data: Path | None) -> pd.DataFrame:
        """The images of each prompt; its skills are those of the elements of any of them."""
        del data
        images = answers.images
        prompts = images.drop_duplicates("prompt_id").set_index("prompt_id")
        labels = images["label"].to_numpy(np.float64)
        return image_cases(
            images["pair_id"].tolist(),
            images["prompt_id"].tolist(),
            labels,
            of_five(labels),
            texts=prompts["prompt"].to_dict(),
            skills=skills_of_prompts(answers),
            # The type of a text listed with both is real, as it is where prompts are drawn.
            splits=images.groupby("prompt_id")["split"].min().to_dict(),
        )

    def rated_images(self, answers: EvalMuseAnswers) -> RatedImages:
        """The images of each prompt; with single ratings where the list has them."""
        images = answers.images
        prompts = images["prompt_id"].tolist()
        single = images["ratings"].tolist() if "ratings" in images else [()] * len(images)
        ratings = np.full((len(single), max(map(len, single), default=0)), np.nan)
        for row, of_image in zip(ratings, single, strict=True):
            row[: len(of_image)] = of_image
        means = images["label"].to_numpy(np.float64)
        return RatedImages(prompts, prompts, images["pair_id"].tolist(), means, ratings)


class EvalMuseNtire(_EvalMuseProtocol):
    """Track 1 of NTIRE 2025, with a label file that an operator supplies."""

    card = NTIRE_CARD
    asked_from = (load.NTIRE_IMAGES,)

    def answers(self, data: Path | None) -> EvalMuseAnswers:
        """Read the labels from `<data>/evalmuse/eval.json`; see FORMAT.md."""
        return load.load_ntire_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from `<data>/evalmuse/ntire_images`, where the operator has them."""
        return load.load_ntire_questions(self.folder(data))

    def by_generator(
        self, scores: ScoreTable, answers: EvalMuseAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The final score on the images of each model, which is the folder of an image."""
        builder = MeasuredBuilder(plan.n_resamples)
        folders = answers.images["pair_id"].astype(str).str.rpartition("/")[0]
        for model in named_generators(folders):
            images = answers.images[folders == model]
            elements = answers.elements[answers.elements["pair_id"].isin(images["pair_id"])]
            of_model = replace(answers, images=images, elements=elements)
            prompts = np.unique(plan.positions(images["prompt_id"]))
            given = replace(
                scores,
                elements={
                    metric: of_elements[of_elements["pair_id"].isin(images["pair_id"])]
                    for metric, of_elements in scores.elements.items()
                },
            )
            for estimate in estimates(given, of_model, plan, self.name, self.card.revision):
                if self.card.headline.matches(estimate.row):
                    drawn = estimate.drawn
                    row = replace(
                        estimate.row,
                        measure=BY_GENERATOR,
                        variant="assay",
                        split=None,
                        facet=model,
                        note=notes(estimate.row.note, drawn.note),
                    )
                    builder.add(row, drawn.values, members=prompts)
        return builder.build()

    def has_images(self, data: Path | None) -> bool:
        """Whether the images and the prompts of all of them are there."""
        try:
            load.load_ntire_questions(self.folder(data))
        except SubmitterError:
            return False
        return True


BENCHMARKS = (EvalMuse(), EvalMuseNtire())
