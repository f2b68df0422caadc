"""Cases of CROC_syn: some of its contrast pairs of prompts, with the images of either side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pandas as pd

from benchmarks.cases import SCHEMA
from benchmarks.croc.cases import SAID
from benchmarks.croc.load import TEXTS
from benchmarks.croc_syn.load import SIDES, CrocSynAnswers, PromptPair, skill_of

MOST_CASES = 1000
"""So many are looked at: the whole set has a million images and more."""


def cases(answers: CrocSynAnswers, pairs: Iterable[PromptPair]) -> pd.DataFrame:
    """Evenly many out of the whole set: 1 is expected where image and prompt belong together."""
    step = max(1, -(-len(answers.prompts) // MOST_CASES))
    clusters = answers.prompts["cluster"].to_numpy()[::step]
    rows = [
        row
        for pair, cluster in zip(islice(pairs, 0, None, step), clusters, strict=True)
        for row in _rows(pair, answers.clusters[cluster], answers.images_per_prompt)
    ]
    return pd.DataFrame(rows, columns=SCHEMA.names)


def _rows(pair: PromptPair, cluster: str, n_images: int) -> Iterator[tuple[str | float, ...]]:
    mode = pair.parts[0]
    name = pair.text_id("").removesuffix("|")
    of = (name, cluster, f"{mode};{mode}:{pair.text_model}", skill_of(pair))
    for side in range(len(SIDES)):
        for image in pair.image_ids(side, n_images):
            for text, prompt in zip(TEXTS, (pair.prompt, pair.contrast), strict=True):
                own = text == TEXTS[side]
                yield (*of, f"{image}|{text}", image, prompt, float(own), SAID[own])
