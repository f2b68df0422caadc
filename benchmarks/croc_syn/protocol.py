"""Protocol of CROC_syn: accuracy of the best matching image, by text and by image.

A group is a prompt with its images by one image model. The accuracy of a cell (direction, mode,
text model) is the mean over its groups, both image models pooled; the published figure is the mean
of the two text models, scaled piecewise (CROC, CROC_syn section, Table 1). The per-property view
(Figures 4, 8 and 9) takes property variation, image-based, forward and inverse averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.arrays import IntArray
from benchmarks.cases import SCHEMA
from benchmarks.croc.load import TEXTS
from benchmarks.croc.measures import DIRECTIONS, LENGTHS
from benchmarks.croc.protocol import HERE, SAID, CrocBenchmark, own_card
from benchmarks.croc_syn.load import (
    MODES,
    PROPERTIES,
    CrocSynAnswers,
    Layout,
    load_answers,
    load_prompts,
    load_questions,
    whole_pairs,
)
from benchmarks.croc_syn.measures import (
    MEASURES,
    PAPER_CHANCE,
    Estimate,
    Part,
    Stratum,
    mean,
    strata_of,
)
from benchmarks.rows import Measured, MeasuredBuilder, Row, notes
from benchmarks.schema import Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan


@dataclass(frozen=True)
class _Line:
    """A row of every metric, and the estimate that fills it."""

    row: Row
    estimate: Estimate
    per_cluster: bool = False

    def add_to(
        self,
        builder: MeasuredBuilder,
        metric: str,
        column: int,
        strata: tuple[Stratum, ...],
        answers: CrocSynAnswers,
        *,
        in_plan: IntArray,
    ) -> None:
        behind = sorted(self.estimate.behind)
        m = min(column, len(self.estimate.value) - 1)  # an absent mode has one NaN for all metrics
        seen = np.zeros(len(answers.clusters), bool)
        for i, d in behind:
            seen[strata[i].members] |= strata[i].used[:, d, column] > 0
        row = replace(
            self.row,
            metric=metric,
            value=float(self.estimate.value[m]),
            n_items=int(sum(strata[i].used[:, d, column].sum() for i, d in behind)),
            n_clusters=int(seen.sum()),
            n_missing=_n_missing(behind, column, strata),
        )
        n_groups = sum(strata[i].n_groups for i, _ in behind)
        row = replace(row, note=notes(*self.estimate.notes, *_notes(row, n_groups)))
        resamples = self.estimate.resamples[:, m]
        members = in_plan[sorted({p for i, _ in behind for p in strata[i].members})]
        if self.per_cluster and row.n_clusters:
            positions, values = _values_of_clusters(behind, column, strata, answers)
            ids = [answers.clusters[p] for p in positions]
            builder.add(row, resamples, ids, values, members=members)
        else:
            builder.add(row, resamples if len(resamples) > 1 else None, members=members)


def _n_missing(behind: list[tuple[int, int]], column: int, strata: tuple[Stratum, ...]) -> int:
    """Score cells without a score, each counted once.

    The two text-based directions read each cell once, and so do the two image-based ones; where a
    stratum is compared in all four, the text-based ones stand for all.
    """
    by_text = {i for i, d in behind if DIRECTIONS[d].endswith("text")}
    return int(
        sum(
            strata[i].missing[d, column]
            for i, d in behind
            if DIRECTIONS[d].endswith("text") or i not in by_text
        )
    )


def _notes(row: Row, n_groups: int) -> Iterator[str]:
    if n_groups == 0:
        yield "no such prompts in this set"
    elif np.isnan(row.value):
        yield "undefined: no matching image of some cell behind it has a score"
    if row.n_missing:
        yield f"missing scores: {row.n_missing}"
    if row.n_items < n_groups:
        yield f"comparisons left out, since no matching image has a score: {n_groups - row.n_items}"


def _values_of_clusters(
    behind: list[tuple[int, int]],
    column: int,
    strata: tuple[Stratum, ...],
    answers: CrocSynAnswers,
) -> tuple[np.ndarray, np.ndarray]:
    right = np.zeros(len(answers.clusters))
    used = np.zeros(len(answers.clusters))
    for i, d in behind:
        right[strata[i].members] += strata[i].right[:, d, column]
        used[strata[i].members] += strata[i].used[:, d, column]
    positions = np.flatnonzero(used)
    return positions, right[positions] / used[positions]


def _lines(part: Part, template: Row, skills: Sequence[str]) -> Iterator[_Line]:
    scaled = replace(template, measure="scaled_accuracy")
    modes = {m: part.where(lambda s, m=m: s.mode == m) for m in MODES}  # type: ignore[misc]
    for mode, of_mode in modes.items():
        yield from _mode(mode, of_mode, template)
    yield from _summaries({m: p for m, p in modes.items() if p.chosen}, scaled)
    varied = modes[PROPERTIES]
    yield from _properties(varied, replace(scaled, split=PROPERTIES), skills)
    for length in LENGTHS:
        chosen = varied.where(lambda s, length=length: s.length == length)  # type: ignore[misc]
        yield from _properties(chosen, replace(scaled, split=f"{PROPERTIES}:{length}"), skills)


def _mode(mode: str, part: Part, template: Row) -> Iterator[_Line]:
    """The cells of Table 1 and what they are made of."""
    for direction in DIRECTIONS:
        row = replace(template, split=mode, facet=direction)
        accuracy, scaled = (replace(row, measure=m) for m in ("accuracy", "scaled_accuracy"))
        yield _Line(accuracy, part.accuracy(direction))
        yield _Line(scaled, part.scaled(direction))
        if direction.endswith("text"):
            exact = part.scaled_by_exact_chance(direction)
            yield _Line(replace(scaled, variant="exact_chance"), exact)
        for name in part.text_models:
            of_model = part.of_text_model(name)
            if of_model.chosen:
                found = of_model.accuracy_of_one(direction)
                yield _Line(replace(accuracy, split=f"{mode}:{name}"), found, per_cluster=True)


def _summaries(modes: dict[str, Part], scaled: Row) -> Iterator[_Line]:
    row = replace(scaled, variant="assay")
    cells = {(m, d): part.scaled(d) for m, part in modes.items() for d in DIRECTIONS}
    yield _Line(row, mean(list(cells.values())))
    for mode in modes:
        yield _Line(replace(row, split=mode), mean([cells[mode, d] for d in DIRECTIONS]))
    for direction in DIRECTIONS:
        yield _Line(replace(row, facet=direction), mean([cells[mode, direction] for mode in modes]))


def _properties(part: Part, row: Row, skills: Sequence[str]) -> Iterator[_Line]:
    """All properties together, then each skill that has prompts."""
    image, text = replace(row, facet="image"), replace(row, facet="text", variant="assay")
    if part.chosen:
        yield _Line(image, part.both_ways("image"))
        yield _Line(text, part.both_ways("text"))
    for node in skills:
        of_node = part.where(lambda stratum, node=node: stratum.skill == node)  # type: ignore[misc]
        if of_node.chosen:
            yield _Line(replace(image, skill=node), of_node.both_ways("image"))
            yield _Line(replace(text, skill=node), of_node.both_ways("text"))


MOST_CASES = 1000
"""So many are looked at: the whole set has a million images and more."""


CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)
IMAGES_PER_PROMPT = 5


class CrocSyn(CrocBenchmark):
    """CROC_syn: contrast pairs written by language models; the operator supplies the files.

    With another card and its folder: somebody's own data in that layout.
    """

    card = CARD

    def __init__(self, card: Card = CARD, home: Path | None = None) -> None:
        super().__init__(card, home)
        self._layout = Layout.of(card)
        self._n_images = card.counts.get("images per prompt", IMAGES_PER_PROMPT)
        self.asked_from = (*self._layout.files, self._layout.images)

    def answers(self, data: Path | None) -> CrocSynAnswers:
        """Read the prompt files; see `load_answers`."""
        return load_answers(self.folder(data), self._n_images, self._layout)

    def questions(self, data: Path | None) -> Questions:
        """Find the images; see `load_questions`."""
        return load_questions(self.folder(data), self._n_images, self._layout)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """Originals and contrasts, each text once; see `load_prompts`."""
        return load_prompts(self.folder(data), self._layout)

    def cases(self, answers: CrocSynAnswers, data: Path | None) -> pd.DataFrame:
        """Evenly many out of the whole set: 1 is expected where image and prompt belong together."""
        step = max(1, -(-len(answers.prompts) // MOST_CASES))
        clusters = answers.prompts["cluster"].to_numpy()[::step]
        pairs = whole_pairs(self.folder(data), self._layout)
        rows = [
            (pair.text_id("").removesuffix("|"), answers.clusters[cluster],
             f"{pair.parts[0]};{pair.parts[0]}:{pair.text_model}", pair.skill,
             f"{image}|{text}", image, prompt, float(text == own), SAID[text == own])
            for pair, cluster in zip(islice(pairs, 0, None, step), clusters, strict=True)
            for side, own in enumerate(TEXTS)
            for image in pair.image_ids(side, answers.images_per_prompt)
            for text, prompt in zip(TEXTS, (pair.prompt, pair.contrast), strict=True)
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=SCHEMA.names)

    def measure(
        self, scores: ScoreTable, answers: CrocSynAnswers, plan: ResamplingPlan
    ) -> Measured:
        """All CROC_syn measures of every metric in the table.

        Rows, where a split is a mode or `<mode>:<text model or length>`:

        - per mode and direction `accuracy` and `scaled_accuracy` (variant `paper`; text-based also
          `exact_chance`), and `accuracy` per text model (split `<mode>:ds`, `<mode>:qwen`, ...);
        - summaries that the paper does not print (`scaled_accuracy`, variant `assay`): over the
          directions of a mode, over the modes of a direction, and over all of these cells;
        - per property (skill) on property variation, in all and by prompt length: `scaled_accuracy`
          with facet `image` (variant `paper`) and `text` (variant `assay`).

        Only accuracies per text model have values per cluster; where a cluster has as many groups as
        every other, the accuracy is their mean.
        """
        strata, layout = strata_of(scores, answers, plan), answers.layout
        n_images = answers.images_per_prompt
        # The paper's level holds for its own set; in another one it follows from the images.
        chance = PAPER_CHANCE if self.home is None else n_images / (n_images + 1)
        part = Part(strata, tuple(range(len(strata))), layout.text_models, chance)
        template = Row(self.name, self.card.revision, "", "", np.nan, variant="paper")
        lines = list(_lines(part, template, layout.skills))
        builder = MeasuredBuilder(plan.n_resamples)
        in_plan = plan.positions(answers.clusters)
        for column, metric in enumerate(scores.metrics):
            for line in lines:
                line.add_to(builder, metric, column, strata, answers, in_plan=in_plan)
        return builder.build()


IMAGES = "images"


def prompt_file(image_model: str, text_model: str) -> str:
    """Name of the file of what a language model wrote for an image model."""
    return f"3_extracted_prompts_{image_model}_{text_model}.jsonl"


def card_text(
    name: str,
    title: str,
    models: Sequence[tuple[str, str]],
    skills: Sequence[str],
    n_images: int,
    **said: str,
) -> str:
    """The card as TOML; measures, facets and headline are those of CROC_syn.

    `name`: lower-case letters, digits and underscores; `models`: image model and text model of each
    prompt file, in small letters, digits and `-`; `skills`: of properties; `n_images`: of each prompt;
    `said`: summary, description and revision.
    """
    writers = dict.fromkeys(text for _, text in models)
    splits = {
        key: title
        for mode, what in MODES.items()
        for key, title in (
            (mode, what),
            *((f"{mode}:{writer}", f"{what}, prompts by {writer}") for writer in writers),
        )
    }
    lengths = (key for key in CARD.splits if key.endswith(("up_to_280", "over_280")))
    here = {"beside": True, "supplied": HERE}
    files = [{"path": f"{name}/{prompt_file(*one)}", "role": "answers", **here} for one in models]
    images = {"path": f"{name}/{IMAGES}", "role": "images", "folder": True, **here}
    return own_card(
        CARD,
        name,
        title,
        **said,
        splits=splits | {key: CARD.splits[key] for key in lengths},
        skills=dict(zip(skills, skills, strict=True)),
        counts={"images per prompt": n_images, "prompt files with prompt pairs": len(models)},
        files=[*files, images],
    )


BENCHMARKS = (CrocSyn(),)
FAMILY = CrocSyn
