"""Accuracies of metrics by cell, of a board in the layout of CROC_hum or CROC_syn.

A cell is a direction with a category (CROC_hum) or a mode (CROC_syn). Every value has its bootstrap
resamples, drawn by the plan of its board.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.croc.load import CrocAnswers
from benchmarks.croc.measures import DIRECTIONS, SHORT
from benchmarks.croc_syn.load import MODES, CrocSynAnswers
from benchmarks.croc_syn.measures import PAPER_CHANCE, Estimate, Part, Stratum, strata_of
from benchmarks.errors import SubmitterError
from benchmarks.schema import Answers, Benchmark, ScoreTable
from evaluator.croc.review_set import categories_of

WAYS: tuple[str, str] = ("text", "image")
"""What is exchanged: the text of an image, or the image of a text."""
PROPERTY_GROUPS: Mapping[str, tuple[str, ...]] = {
    "action": (
        "pointing", "waving", "facial_expression", "nodding", "running", "dancing", "jumping",
        "swimming",
    ),
    "spacial_relation": ("left_of", "right_of", "above", "below", "inside"),
    "size_relation": ("giant_figures", "miniature_objects"),
    "shapes": ("geometric", "organic"),
    "negation": ("negation",),
}  # fmt: skip
"""Category of CROC_hum to the properties of CROC_syn that are compared with it (CROC, Figure 5)."""


@dataclass(frozen=True)
class Values:
    """Values of M metrics, with B resamples."""

    value: FloatArray  # shape (..., M)
    resamples: FloatArray  # shape (B, ..., M)

    @classmethod
    def stacked(cls, parts: Sequence[Values]) -> Values:
        """Several of shape (M,) as one of shape (n, M)."""
        return cls(
            np.stack([part.value for part in parts]),
            np.stack([part.resamples for part in parts], axis=1),
        )

    def of_metrics(self, columns: Sequence[int]) -> Values:
        """Some of the metrics."""
        return Values(self.value[..., list(columns)], self.resamples[..., list(columns)])


_Cells = Mapping[tuple[str, str], Values]
_Models = Mapping[str, Mapping[str, Values]]
_Made = tuple[_Cells, _Cells, frozenset[str], _Models, tuple[str, ...]]


@dataclass(frozen=True)
class CrocBoard:
    """What metrics reach on a board of either layout."""

    name: str
    title: str
    metrics: tuple[str, ...]
    n_missing: Mapping[str, int]  # metric to its pairs without a score
    n_clusters: int  # prompt pairs that are resampled
    synthetic: bool  # whether it is laid out as CROC_syn, whose images nobody looked at
    # category or mode, and direction, to accuracies (M,)
    cells: Mapping[tuple[str, str], Values]
    # property and way to scaled accuracies (M,), forward and inverse averaged
    properties: Mapping[tuple[str, str], Values]
    groups: frozenset[str]  # keys of `PROPERTY_GROUPS` that are no properties of the board itself
    # by text model, image model, or both: name to accuracies (modes x directions, M); none where there
    # is one model
    models: Mapping[str, Mapping[str, Values]]
    incomplete: tuple[str, ...]  # models that lack prompts of a mode, and are in none of them

    def of_metrics(self, names: Sequence[str]) -> CrocBoard:
        """The board with some of the metrics, in this order."""
        columns = [self.metrics.index(name) for name in names]

        def some(values: Mapping[Any, Values]) -> dict[Any, Values]:
            return {key: one.of_metrics(columns) for key, one in values.items()}

        return replace(
            self,
            metrics=tuple(names),
            cells=some(self.cells),
            properties=some(self.properties),
            models={kind: some(of_kind) for kind, of_kind in self.models.items()},
        )


def board_of(benchmark: Benchmark, scores: ScoreTable, answers: Answers) -> CrocBoard:
    """Measure metrics on a board.

    Raises:
        SubmitterError: `no_croc_board`: the benchmark is of another protocol; `compares_images`: a
            metric has no scores that tell between texts.
    """
    if scores.margins:
        raise SubmitterError(
            "compares_images",
            f"{', '.join(scores.margins)} compares images of one text; CROC also compares texts.",
            "Leave it out.",
        )
    made: _Made
    if isinstance(answers, CrocSynAnswers):
        made = _of_syn(benchmark, scores, answers)
    elif isinstance(answers, CrocAnswers):
        made = (*_of_hum(benchmark, scores, answers), frozenset(), {}, ())
    else:
        raise SubmitterError(
            "no_croc_board",
            f"{benchmark.name} is no benchmark of CROC.",
            "Name croc_hum, croc_syn, or boards of your own of these families.",
        )
    missing = scores.overall.isna().sum()
    return CrocBoard(
        benchmark.name,
        benchmark.card.title,
        scores.metrics,
        {name: int(missing[name]) for name in scores.metrics},
        len(answers.clusters),
        isinstance(answers, CrocSynAnswers),
        *made,
    )


def _of_hum(
    benchmark: Benchmark, scores: ScoreTable, answers: CrocAnswers
) -> tuple[_Cells, _Cells]:
    """Cells and properties, from the rows of the protocol."""
    measured = benchmark.measure(scores, answers, benchmark.plan(answers))
    places: dict[tuple[str, str, str], list[int]] = {}
    for n, row in enumerate(measured.rows):
        if row.split is None and row.skill is not None and row.facet is not None:
            places.setdefault((row.measure, row.skill, row.facet), []).append(n)
    categories = dict.fromkeys(pair.category for pair in answers.prompt_pairs)

    def values(measure: str, category: str, facet: str) -> Values:
        rows = places[measure, category, facet]  # of the metrics, in their order
        return Values(
            np.array([measured.rows[n].value for n in rows]),
            np.stack([np.asarray(measured.resamples[n], np.float64) for n in rows], axis=1),
        )

    cells = {(c, d): values("accuracy", c, d) for c in categories for d in DIRECTIONS}
    ways = {(c, way): values("scaled_accuracy", c, way) for c in categories for way in WAYS}
    return _defined(cells), _defined(ways)


def _of_syn(benchmark: Benchmark, scores: ScoreTable, answers: CrocSynAnswers) -> _Made:
    """Cells, properties and models: strata are made by image model, then by property."""
    n_images = answers.images_per_prompt
    chance = PAPER_CHANCE if benchmark.home is None else n_images / (n_images + 1)
    plan = benchmark.plan(answers)

    def part_by(column: Iterable[str]) -> Part:
        """Strata by some other column in the place of skills."""
        prompts = answers.prompts.assign(skill=list(column), length=SHORT)
        strata = strata_of(scores, replace(answers, prompts=prompts), plan)
        return Part(strata, tuple(range(len(strata))), answers.layout.text_models, chance)

    by_image = part_by(answers.prompts["image_model"])
    modes = {mode: by_image.where(_of_mode(mode)) for mode in MODES}
    modes = {mode: part for mode, part in modes.items() if part.chosen}
    cells = {
        (m, d): _values(part.accuracy(d)) for (m, part), d in product(modes.items(), DIRECTIONS)
    }
    tested = list(zip(answers.prompts["mode"], answers.prompts["property"], strict=True))
    categories = categories_of(tested)
    keys = [categories[one] for one in tested]
    by_key = part_by(keys)
    wanted = {key: (key,) for key in dict.fromkeys(keys)}
    groups = {key: leaves for key, leaves in PROPERTY_GROUPS.items() if key not in wanted}
    properties = {
        (key, way): _values(part.both_ways(way))
        for key, leaves in (groups | wanted).items()
        if (part := by_key.where(_of_skills(leaves))).chosen
        for way in WAYS
    }
    return _defined(cells), _defined(properties), frozenset(groups), *_models(modes)


def _models(modes: Mapping[str, Part]) -> tuple[dict[str, dict[str, Values]], tuple[str, ...]]:
    """Accuracies by who wrote the prompts, who made the images, and by both; and who lacks a mode."""
    strata = next(iter(modes.values())).strata
    made = dict.fromkeys((stratum.skill, stratum.text_model) for stratum in strata)
    wanted: dict[str, dict[str, Callable[[Stratum], bool]]] = {
        "text model": {text: _made_by(text, None) for _, text in made},
        "image model": {image: _made_by(None, image) for image, _ in made},
        "image and text model": {f"{i} and {text}": _made_by(text, i) for i, text in made},
    }
    found: dict[str, dict[str, Values]] = {}
    incomplete: list[str] = []
    for kind, of_kind in wanted.items():
        for name, is_wanted in of_kind.items():
            parts = [part.where(is_wanted) for part in modes.values()]
            if all(part.chosen for part in parts):
                rows = [_values(part.accuracy(d)) for part in parts for d in DIRECTIONS]
                found.setdefault(kind, {})[name] = Values.stacked(rows)
            else:
                incomplete.append(name)
    return {kind: of for kind, of in found.items() if len(of) > 1}, tuple(incomplete)


def _of_mode(mode: str) -> Callable[[Stratum], bool]:
    return lambda stratum: stratum.mode == mode


def _of_skills(skills: Sequence[str]) -> Callable[[Stratum], bool]:
    return lambda stratum: stratum.skill in skills


def _made_by(text_model: str | None, image_model: str | None) -> Callable[[Stratum], bool]:
    return lambda stratum: (
        text_model in (None, stratum.text_model) and image_model in (None, stratum.skill)
    )


def _values(estimate: Estimate) -> Values:
    return Values(estimate.value, estimate.resamples)


def _defined(cells: dict[tuple[str, str], Values]) -> dict[tuple[str, str], Values]:
    """Those that some metric has a value in: not those whose images are lacking."""
    return {key: one for key, one in cells.items() if np.isfinite(one.value).any()}
