"""Cases of CROC: a contrast pair of prompts with its images, each of which belongs to one."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.cases import SCHEMA
from benchmarks.croc.load import TEXTS, CrocAnswers, PromptPair, pair_id
from benchmarks.croc.measures import LONG, length_split

SAID = {True: "image of this prompt", False: "image of the contrast"}


def cases(answers: CrocAnswers) -> pd.DataFrame:
    """Every image with both prompts of its pair: 1 is expected where they belong together, else 0.

    The image of a pair is named by the stem of its file, also where several prompt pairs list it.
    """
    # As in the protocol: where no prompt is long, there are no splits by length.
    lengths = {pair.id: length_split(pair.prompt) for pair in answers.prompt_pairs}
    told = LONG in lengths.values()
    rows = [
        row
        for pair in answers.prompt_pairs
        for row in _rows(pair, lengths[pair.id] if told else "")
    ]
    return pd.DataFrame(rows, columns=SCHEMA.names)


def _rows(pair: PromptPair, split: str) -> Iterator[tuple[str | float, ...]]:
    texts = dict(zip(TEXTS, (pair.prompt, pair.contrast), strict=True))
    sides = zip(TEXTS, (pair.original_images, pair.contrast_images), strict=True)
    of = (pair.id, pair.id, split, pair.category)
    for side, stems in sides:
        for stem in stems:
            image = stem.removesuffix(f"@{pair.id}")  # See `load.shared_name`.
            for text, prompt in texts.items():
                own = text == side
                yield (*of, pair_id(stem, text), image, prompt, float(own), SAID[own])
