"""Protocol of CROC_hum: how often a metric prefers the matching side of a contrast pair.

Every prompt pair (T_O, T_C) has images I_O of the original and I_C of the contrast prompt. Four
directions ask whether M(text, image) is strictly larger for the matching combination; a tie or a
missing score is a failure (CROC, CROC_hum section; the released code agrees).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import tomlkit
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.cases import SCHEMA
from benchmarks.croc.load import (
    METADATA,
    TEXTS,
    CrocAnswers,
    CrocHumAnswers,
    Layout,
    PromptPair,
    has_images,
    load_answers,
    load_prompts,
    load_questions,
    pair_id,
)
from benchmarks.croc.measures import (
    DIRECTIONS,
    IMAGE_BASED,
    LENGTHS,
    LONG,
    Contrasts,
    compare,
    length_split,
    scale,
)
from benchmarks.rows import Measured, MeasuredBuilder, Row, notes
from benchmarks.schema import Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean

CELLS: dict[str, tuple[str, str]] = {
    "text": ("forward_text", "inverse_text"),
    "image": ("forward_image", "inverse_image"),
}
"""The published cells: the mean of a forward and an inverse direction."""

_CHANCE = 0.5

MEASURES: dict[str, MeasureInfo] = {
    "accuracy": MeasureInfo.share(
        title="Accuracy",
        meaning="Share of comparisons in which the metric scores the matching combination of "
        "prompt and image strictly higher than the contrast; ties and missing scores are "
        "failures. Mean over prompt pairs within a category, then over categories.",
        chance=0.5,
        source="CROC, CROC_hum evaluation",
    ),
    "scaled_accuracy": MeasureInfo.correlation(
        title="Scaled accuracy",
        meaning="Accuracy a as 2a - 1: 1 is always right, 0 is a coin toss, -1 is never strictly "
        "right: ties count as wrong. "
        "The text-based and image-based cells are means of the forward and inverse directions; "
        "the summary without a direction is the mean of both cells.",
        source="CROC, CROC_hum evaluation, Figure 5",
    ),
}


@dataclass(frozen=True)
class _Slice:
    """A category, or all of them: their names, and the positions of the prompt pairs of each."""

    split: str | None
    skill: str | None
    names: tuple[str, ...]
    categories: tuple[IntArray, ...]

    @property
    def members(self) -> IntArray:
        return np.concatenate(self.categories)


@dataclass(frozen=True)
class _Means:
    """Category means of one direction: `values` (K, M) and `resamples` (K, B, M)."""

    values: FloatArray
    resamples: FloatArray


def _slices(pairs: tuple[PromptPair, ...]) -> Iterator[_Slice]:
    """All prompt pairs; then, where some prompt is long, the short and the long ones."""
    yield from _slices_of(None, pairs, range(len(pairs)))
    lengths = [length_split(pair.prompt) for pair in pairs]
    if LONG in lengths:
        for split in LENGTHS:
            chosen = [i for i, length in enumerate(lengths) if length == split]
            yield from _slices_of(split, pairs, chosen)


def _slices_of(
    split: str | None, pairs: tuple[PromptPair, ...], chosen: Iterable[int]
) -> Iterator[_Slice]:
    """All categories together, then each one, in the order of their first prompt pair."""
    members: dict[str, list[int]] = {}
    for i in chosen:
        members.setdefault(pairs[i].category, []).append(i)
    if not members:
        return
    positions = {category: np.array(found, np.intp) for category, found in members.items()}
    yield _Slice(split, None, tuple(positions), tuple(positions.values()))
    for category, found in positions.items():
        yield _Slice(split, category, (category,), (found,))


@dataclass(frozen=True)
class _Estimate:
    """Measure on one slice for all metrics.

    `value` (M,), `resamples` (B, M), `per_pair` (p, M) for the prompt pairs `members` (p,);
    `left_out` names the categories that lack the images compared and so have no mean.
    """

    measure: str
    facet: str | None
    variant: str
    value: FloatArray
    resamples: FloatArray
    per_pair: FloatArray
    members: IntArray
    n_items: int
    n_missing: IntArray
    left_out: tuple[str, ...]

    def scaled(self) -> _Estimate:
        return replace(
            self,
            measure="scaled_accuracy",
            value=scale(self.value, _CHANCE),
            resamples=scale(self.resamples, _CHANCE),
            per_pair=scale(self.per_pair, _CHANCE),
        )

    def add_to(
        self,
        builder: MeasuredBuilder,
        row: Row,
        column: int,
        pair_ids: NDArray[np.object_],
        in_plan: IntArray,
    ) -> None:
        values = self.per_pair[:, column]
        defined = np.isfinite(values)
        row = replace(
            row,
            measure=self.measure,
            facet=self.facet,
            variant=self.variant,
            value=float(self.value[column]),
            n_items=self.n_items,
            n_clusters=int(defined.sum()),
            n_missing=int(self.n_missing[column]),
            note=self._note(column),
        )
        clusters = pair_ids[self.members[defined]]
        builder.add(
            row,
            self.resamples[:, column],
            clusters.tolist(),
            values[defined],
            members=in_plan[self.members],
        )

    def _note(self, column: int) -> str:
        if self.n_items == 0:
            return "no prompt pair has the images this direction compares"
        if np.isnan(self.value[column]):
            return "undefined: no category has the images that all its directions compare"
        missing = int(self.n_missing[column])
        return notes(
            f"missing scores, whose comparisons count as failures: {missing}" if missing else "",
            f"categories left out for want of images to compare: {', '.join(self.left_out)}"
            if self.left_out
            else "",
        )


def _estimates(
    part: _Slice, outcomes: dict[str, Contrasts], counts: FloatArray
) -> tuple[_Estimate, ...]:
    """Every measure of one slice, in the order of the rows."""
    means = {name: _category_means(part, outcomes[name].accuracy, counts) for name in DIRECTIONS}
    directions = {name: _direction(part, name, outcomes[name], means[name]) for name in DIRECTIONS}
    scaled = [estimate.scaled() for estimate in directions.values()]
    text, image = (_cell(part, facet, directions, means) for facet in CELLS)
    # Both cells read the same score cells, so missing ones are counted once.
    summary = replace(_mean_of(text, image), facet=None, variant="assay", n_missing=text.n_missing)
    return (*directions.values(), *scaled, text, image, summary)


def _direction(part: _Slice, name: str, outcome: Contrasts, means: _Means) -> _Estimate:
    return _Estimate(
        measure="accuracy",
        facet=name,
        variant="paper",
        value=mean_of_defined(means.values),
        resamples=mean_of_defined(means.resamples),
        per_pair=outcome.accuracy[part.members],
        members=part.members,
        n_items=int(outcome.comparisons[part.members].sum()),
        n_missing=outcome.missing[part.members].sum(axis=0),
        left_out=_without_a_mean(part, means.values),
    )


def _cell(
    part: _Slice, facet: str, directions: dict[str, _Estimate], means: dict[str, _Means]
) -> _Estimate:
    """A published cell: per category the mean of two directions, then over categories."""
    forward, inverse = CELLS[facet]
    values = (means[forward].values + means[inverse].values) / 2.0
    accuracy = replace(
        _mean_of(directions[forward], directions[inverse]),
        facet=facet,
        value=mean_of_defined(values),
        resamples=mean_of_defined((means[forward].resamples + means[inverse].resamples) / 2.0),
        left_out=_without_a_mean(part, values),
    )
    return accuracy.scaled()


def _without_a_mean(part: _Slice, means: FloatArray) -> tuple[str, ...]:
    """Categories whose mean is undefined for every metric; means has shape (K, M)."""
    absent: NDArray[np.bool_] = np.asarray(np.isnan(means).all(axis=1))
    return tuple(name for name, is_absent in zip(part.names, absent, strict=True) if is_absent)


def _category_means(part: _Slice, accuracy: FloatArray, counts: FloatArray) -> _Means:
    """Mean over the prompt pairs of each category; NaN where a category has none (drawn)."""
    once = np.ones((1, accuracy.shape[0]))
    values = [resampled_mean(accuracy[c], once[:, c])[0] for c in part.categories]
    resamples = [resampled_mean(accuracy[c], counts[:, c]) for c in part.categories]
    return _Means(np.stack(values), np.stack(resamples))


def _mean_of(first: _Estimate, second: _Estimate) -> _Estimate:
    """Mean of two estimates on one slice; items and missing scores add up."""
    return replace(
        first,
        value=(first.value + second.value) / 2.0,
        resamples=(first.resamples + second.resamples) / 2.0,
        per_pair=mean_of_defined(np.stack([first.per_pair, second.per_pair])),
        n_items=first.n_items + second.n_items,
        n_missing=first.n_missing + second.n_missing,
        left_out=tuple(dict.fromkeys((*first.left_out, *second.left_out))),
    )


SAID = {True: "image of this prompt", False: "image of the contrast"}


CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class CrocBenchmark(Benchmark):
    """Contrasting prompt pairs with images of both prompts."""

    @property
    def compares_images(self) -> bool:
        """Image-based rows do."""
        return True

    def within_text(self, row: Row) -> bool:
        """Image-based rows compare images of one prompt; text-based ones prompts of one image."""
        return row.facet in IMAGE_BASED


class CrocHum(CrocBenchmark):
    """CROC_hum: 280 contrasting prompt pairs, 28,733 images that people checked.

    With another card and its folder: somebody's own data in that layout.
    """

    card = CARD

    def __init__(self, card: Card = CARD, home: Path | None = None) -> None:
        super().__init__(card, home)
        if card.files or home is not None:
            self._layout = Layout.of(card)
            self.asked_from = (self._layout.metadata,)

    def answers(self, data: Path | None) -> CrocHumAnswers:
        """Read the prompt pairs; see `load_answers`."""
        return load_answers(self.folder(data), self._layout)

    def questions(self, data: Path | None) -> Questions:
        """Read the unpacked images; see `load_questions`."""
        return load_questions(self.folder(data), self._layout)

    def has_images(self, data: Path | None) -> bool:
        """Whether the archive was unpacked; that each image is there, `questions` checks."""
        return has_images(self.folder(data), self._layout)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """Originals and contrasts, each text once; see `load_prompts`."""
        return load_prompts(self.folder(data), self._layout)

    def cases(self, answers: CrocAnswers, data: Path | None) -> pd.DataFrame:
        """Every image with both prompts of its pair: 1 is expected where they belong together.

        The image of a pair is named by the stem of its file, also where several pairs list it.
        """
        del data
        # As in the protocol: where no prompt is long, there are no splits by length.
        lengths = {pair.id: length_split(pair.prompt) for pair in answers.prompt_pairs}
        told = LONG in lengths.values()
        rows = [
            (pair.id, pair.id, lengths[pair.id] if told else "", pair.category,
             pair_id(stem, text), stem.removesuffix(f"@{pair.id}"),  # see `load.shared_name`
             prompt, float(text == side), SAID[text == side])
            for pair in answers.prompt_pairs
            for side, stems in zip(TEXTS, (pair.original_images, pair.contrast_images), strict=True)
            for stem in stems
            for text, prompt in zip(TEXTS, (pair.prompt, pair.contrast), strict=True)
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=SCHEMA.names)

    def measure(self, scores: ScoreTable, answers: CrocAnswers, plan: ResamplingPlan) -> Measured:
        """All CROC measures of every metric in the table.

        Rows: `accuracy` and `scaled_accuracy` per direction and `scaled_accuracy` per published cell
        (variant `paper`); `scaled_accuracy` without facet (variant `assay`), the mean of both cells.
        Each for all categories (skill None: unweighted mean of category means) and each category; and,
        where an original prompt has more than 280 characters, again for the short and the long prompts
        (splits `up_to_280` and `over_280`).
        """
        outcomes = compare(scores, answers)
        counts = plan.counts_of([pair.id for pair in answers.prompt_pairs])
        template = Row(self.name, self.card.revision, "", "", np.nan, variant="paper")
        builder = MeasuredBuilder(plan.n_resamples)
        pair_ids = np.array([pair.id for pair in answers.prompt_pairs], dtype=object)
        in_plan = plan.positions(pair_ids)
        for part in _slices(answers.prompt_pairs):
            estimates = _estimates(part, outcomes, counts)
            for column, metric in enumerate(scores.metrics):
                for estimate in estimates:
                    row = replace(template, metric=metric, split=part.split, skill=part.skill)
                    estimate.add_to(builder, row, column, pair_ids, in_plan)
        return builder.build()


HERE = "It lies beside the card."


def own_card(like: Card, name: str, title: str, **more: object) -> str:
    """A card of somebody's own data as TOML; family, cluster, facets and headline are another's."""
    shared = {
        "name": name,
        "title": title,
        "family": like.family,
        "cluster": like.cluster,
        "headline": like.headline.model_dump(exclude_none=True),
        "facets": like.facets,
    }
    return tomlkit.dumps(shared | more)


def card_text(name: str, title: str, skills: Mapping[str, str], **said: str) -> str:
    """The card as TOML; measures, facets and headline are those of CROC_hum.

    `name`: lower-case letters, digits and underscores; `skills`: category, as ids of prompt pairs
    begin, to what it is called; `said`: summary, description and revision.
    """
    return own_card(
        CARD,
        name,
        title,
        **said,
        splits={key: CARD.splits[key] for key in ("up_to_280", "over_280")},
        skills=dict(skills),
        files=[
            {
                "path": f"{name}/{PurePosixPath(METADATA).name}",
                "role": "answers",
                "beside": True,
                "supplied": HERE,
            }
        ],
    )


BENCHMARKS = (CrocHum(),)
FAMILY = CrocHum
