"""The images of one text-to-image model as questions to a metric."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PIL import Image

from benchmarks.prompt_sets.prompt_set import SetPrompt, pair_id
from benchmarks.rethinking.measures import plus_one
from benchmarks.schema import Element, Pair, Questions
from benchmarks.statistics.resampling import seed_of
from evaluator.generation.rows import ImageRow
from evaluator.scoring.images import decode
from evaluator.submission.generations_archive import GenerationsArchive
from leaderboard.models.grid import PERTURBED


@dataclass(frozen=True)
class AskedImage:
    """One image of a prompt of the set.

    Attributes:
        pair: of the prompt and the image.
        prompt_id: of the prompt.
        row: of the archive.
        perturbed: whether it is asked about after the one-pixel change.
    """

    pair: str
    prompt_id: str
    row: ImageRow
    perturbed: bool


def asked_images(
    archive: GenerationsArchive, prompts: Sequence[SetPrompt], of: tuple[str, str]
) -> tuple[AskedImage, ...]:
    """Every image of the set's prompts; then those of a sample of prompts, changed by one pixel.

    The sample, at most 200 prompts with the first seed they have, is drawn from the seed of the
    prompt set, so that it is the same for every model and every metric (Re-Thinking, robustness).

    Args:
        archive: the images.
        prompts: of the set.
        of: name and revision of the prompt set.
    """
    known = {one.prompt_id for one in prompts}
    rows = [row for row in archive.images if row.prompt_id in known]
    plain = [
        AskedImage(pair_id(row.prompt_id, row.seed), row.prompt_id, row, perturbed=False)
        for row in rows
    ]
    first: dict[str, ImageRow] = {}
    for row in sorted(rows, key=lambda row: row.seed):
        first.setdefault(row.prompt_id, row)
    drawn = np.random.default_rng(seed_of(*of)).permutation(len(prompts))[:PERTURBED]
    sample = [prompts[place].prompt_id for place in sorted(drawn)]
    changed = [
        AskedImage(
            pair_id(name, first[name].seed, perturbed=True), name, first[name], perturbed=True
        )
        for name in sample
        if name in first
    ]
    return (*plain, *changed)


def questions_of(
    asked: Sequence[AskedImage], archive: GenerationsArchive, prompts: Sequence[SetPrompt]
) -> Questions:
    """What a metric is asked; images are read when they are wanted."""
    images: dict[str, Callable[[], bytes]] = {}
    for one in asked:
        read = partial(archive.read, one.row)
        images[one.pair] = partial(_changed, read) if one.perturbed else read
    wanted = {one.prompt_id for one in asked}
    return Questions(
        images,
        {p.prompt_id: p.text for p in prompts if p.prompt_id in wanted},
        tuple(Pair(one.pair, one.pair, one.prompt_id) for one in asked),
        {
            p.prompt_id: tuple(Element(e.element_id, e.text) for e in p.elements)
            for p in prompts
            if p.elements and p.prompt_id in wanted
        },
    )


def _changed(read: Callable[[], bytes]) -> bytes:
    """The image with every channel value below 255 raised by one, without loss.

    It is changed as metrics see it, upright and flattened: else more than one step would differ.
    """
    pixels = np.asarray(decode(read()).image)
    made = io.BytesIO()
    Image.fromarray(plus_one(pixels)).save(made, "PNG", compress_level=1)
    return made.getvalue()
