"""Work of a built-in metric on a benchmark, computed from its plan: never a guess.

The plan says how often everything is done: each distinct image and each distinct text is encoded
once, a joint model goes once over each pair and may keep what it made of the image. A row says what
one pair costs (`flops_per_pair`, counted on models without weights). Where it is not counted how
that divides into image and text, the work has two ends.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.scorers.row import ScorerRow

if TYPE_CHECKING:
    from evaluator.submission.checking.projection import Size

Span = tuple[float, float]
"""The least and the most."""
_TOWERS = Path(__file__).with_name("cost_towers.toml")

DUAL = frozenset({"dual_encoder", "blip2_itc"})
"""Families that encode images and texts apart."""
JOINT = frozenset({"cross_encoder", "fga_blip2", "image_reward", "vlm_likelihood"})
"""Families with one pass for each pair, which may keep what was made of the image."""
ASKING = {"tifa": 7.6, "dsg": 6.0}
"""Questions for an image, by who writes them: the means over TS2's released questions."""
JUDGES = {"text_judge": 256, "caption_judge": 384}
"""Families whose model writes, with the most tokens it may write for one answer."""
_QUESTIONS = "question_answering"
_IMAGE_SHARE = 0.5
"""At least this share of a dual encoder's work is its image tower's: 0.59 in CLIP B/32, 0.9 in
CLIP L/14, more in larger ones."""
COUNTED = {"Salesforce/blip-vqa-capfilt-large": 2.12e11}
"""Floating-point operations of one short question by checkpoint, where no row asks only one: at
480 px, counted on a model without weights."""
_ANSWER_TOKENS = 16
"""Most tokens of a short answer, as the family's options have it."""
_LEAST_JUDGED = 50
"""Tokens that TS2 charges a judge for one pair."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a metric has to do on a benchmark.

    Attributes:
        flops: of forward passes.
        tokens: that a model writes, one after the other.
        images: that are read and decoded.
        how: what the ends of the range mean, in a sentence.
    """

    flops: Span
    tokens: Span
    images: Span
    how: str


def work_of(row: ScorerRow, size: Size, rows: Mapping[str, ScorerRow]) -> Work | None:
    """The work; None where nobody counted what a pair costs.

    Args:
        row: the metric.
        size: of the benchmark.
        rows: all rows: one whose own cost depends on its questions is costed by another of the
            same checkpoint.
    """
    if row.family == "dual_encoder" and row.checkpoints["model"].id in towers():
        return _counted(towers()[row.checkpoints["model"].id], size)
    if (flops := _for_one(row, rows)) is None:
        return None
    if row.family in DUAL:
        return _apart(flops, size)
    if row.family in JOINT:
        return _joint(flops, size)
    if row.family in JUDGES:
        return _judged(flops, size, JUDGES[row.family])
    return _asked(flops, size, ASKING[_writer(row)]) if row.family == _QUESTIONS else None


def _joint(flops: float, size: Size) -> Work:
    return Work(
        (size.images[0] * flops, size.pairs[1] * flops),
        (0.0, 0.0),
        _floats(size.images),
        "from one pass for each image, whose texts cost nothing, to one for each pair",
    )


def _judged(flops: float, size: Size, most: int) -> Work:
    return Work(
        (size.pairs[0] * flops, size.pairs[1] * flops),
        (size.pairs[0] * _LEAST_JUDGED, size.pairs[1] * most),
        _floats(size.images),
        f"from {_LEAST_JUDGED} written tokens for each pair, as TS2 counts, to {most}",
    )


@dataclass(frozen=True, slots=True)
class Towers:
    """Floating-point operations of a dual encoder, for one image and for one text."""

    image: float
    text: float


@cache
def towers() -> dict[str, Towers]:
    """By checkpoint, those that were counted."""
    found = tomllib.loads(_TOWERS.read_text())["towers"]
    return {name: Towers(one["image"], one["text"]) for one in found for name in one["checkpoints"]}


def _counted(known: Towers, size: Size) -> Work:
    low, high = (known.image * size.images[end] + known.text * size.texts[end] for end in (0, 1))
    how = "each image and each text once, both towers counted"
    return Work((low, high), (0.0, 0.0), _floats(size.images), how)


def _apart(flops: float, size: Size) -> Work:
    """Linear in the image tower's share, so that the ends are those of the share."""

    def total(share: float, end: int) -> float:
        return flops * (share * size.images[end] + (1.0 - share) * size.texts[end])

    ends = [total(share, end) for share in (_IMAGE_SHARE, 1.0) for end in (0, 1)]
    return Work(
        (min(ends), max(ends)),
        (0.0, 0.0),
        _floats(size.images),
        "from half of the work in the image tower to all of it",
    )


def _asked(flops: float, size: Size, questions: float) -> Work:
    return Work(
        (size.images[0] * flops, size.pairs[1] * questions * flops),
        (size.pairs[0] * questions, size.pairs[1] * questions * _ANSWER_TOKENS),
        _floats(size.images),
        f"{questions:g} questions for each pair; from one pass for each image, whose questions "
        f"cost nothing, to one for each question; from 1 to {_ANSWER_TOKENS} tokens an answer",
    )


def _for_one(row: ScorerRow, rows: Mapping[str, ScorerRow]) -> float | None:
    """Of one pass: the row's own, or that of a row that asks the same checkpoint once."""
    if row.flops_per_pair is not None:
        return row.flops_per_pair
    model = row.checkpoints.get("model")
    if model is None or row.family != _QUESTIONS or _writer(row) not in ASKING:
        return None
    same = (
        other.flops_per_pair
        for other in rows.values()
        if other.family in JOINT
        and other.flops_per_pair is not None
        and other.checkpoints["model"].id == model.id
    )
    return next(same, COUNTED.get(model.id))


def _writer(row: ScorerRow) -> str:
    return str(row.options.get("writer", "tifa"))


def _floats(span: tuple[int, int]) -> Span:
    return float(span[0]), float(span[1])
