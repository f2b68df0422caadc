"""The engine over a real box: each image decoded once, and a killed box leaves its shards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.schema import Element, Pair, Questions
from evaluator.isolation.backend import Backend
from evaluator.isolation.job import Job
from evaluator.scoring.asking import ScoringPlan
from evaluator.scoring.column import ShardFolder
from evaluator.scoring.engine import EngineOptions, ScoreColumn, run_plan
from evaluator.scoring.sandbox import SandboxSource
from tests.evaluator.isolation.boxes import SHORT, Submit, png

pytestmark = pytest.mark.isolation

SEED = b"a secret"
EVERY_BATCH = EngineOptions(batch_pairs=6, keep_every_s=0.0)

COUNTING = """
import PIL.Image
decoded = calls = 0
original = PIL.Image.open
def counting(*args):
    global decoded
    decoded += 1
    return original(*args)
PIL.Image.open = counting
class Scorer:
    def score(self, images, prompts):
        return [decoded + i.getpixel((0, 0))[0] / 1000 for i in images]
    def score_elements(self, images, prompts, elements):
        return [[decoded + len(e) / 1000 for e in row] for row in elements]
"""


def questions(n_images: int = 10, n_texts: int = 3) -> Questions:
    """Every image with every text, each image of its own shade of red."""
    texts = {f"t{i}": f"prompt {i}" for i in range(n_texts)}

    def shade(i: int) -> Callable[[], bytes]:
        return lambda: png(f"#{i:02x}0000")

    return Questions(
        images={f"i{i}": shade(i) for i in range(n_images)},
        texts=texts,
        pairs=tuple(Pair(f"i{i}|{text}", f"i{i}", text) for i in range(n_images) for text in texts),
        elements={"t0": (Element("e0", "x"), Element("e1", "yy"))},
    )


def run(backend: Backend, folder: Path, shards: Path, options: EngineOptions) -> ScoreColumn:
    asked = questions()
    return run_plan(
        ScoringPlan.of(asked, SEED),
        asked,
        SandboxSource(backend.start(Job(folder, limits=SHORT)), "fingerprint"),
        ShardFolder(shards, "fingerprint"),
        options=options,
    )


def test_each_distinct_image_is_decoded_exactly_once_in_the_whole_run(
    backend: Backend, submit: Submit, tmp_path: Path
) -> None:
    column = run(backend, submit(COUNTING), tmp_path / "shards", EVERY_BATCH)
    assert list(column.overall.index) == [pair.pair_id for pair in questions().pairs]
    assert int(column.overall.max()) == 10
    assert column.elements is not None
    assert len(column.elements) == 20
    assert int(column.elements["score"].max()) == 10
    assert column.cost.images == 10
    assert column.cost.pairs == 30
    assert column.cost.pairs_per_s > 0
    assert column.cost.peak_memory_bytes > 0


def test_a_run_whose_box_was_killed_goes_on_where_it_was(
    bubblewrap: Backend, submit: Submit, tmp_path: Path
) -> None:
    dies = COUNTING.replace(
        "        return [decoded +",
        "        if decoded >= 6:\n            import os; os._exit(9)\n        return [decoded +",
    )
    with pytest.raises(SubmitterError) as caught:
        run(bubblewrap, submit(dies), tmp_path / "shards", EVERY_BATCH)
    assert caught.value.code == "crashed"
    assert len(list((tmp_path / "shards").iterdir())) == 2

    column = run(bubblewrap, submit(COUNTING), tmp_path / "shards", EVERY_BATCH)
    assert column.resumed_pairs == 12
    # Four images were decoded by the first box; only the other six by the second.
    assert int(column.overall.max()) == 6
    assert column.cost.images == 10
    assert column.overall.notna().all()


PAIR_BY_PAIR = """
class Scorer:
    def score(self, images, prompts):
        return [i.getpixel((0, 0))[0] * int(p[-1]) for i, p in zip(images, prompts)]
    def score_elements(self, images, prompts, elements):
        return [[0, 0] for _ in prompts]
"""

DUAL = """
import numpy as np
class Scorer:
    prepared = encoded = texts = 0
    def prepare(self, image):
        self.prepared += 1
        return image.getpixel((0, 0))[0]
    def encode_images(self, images):
        self.encoded += len(images)
        return np.array([[i, 1.0] for i in images])
    def encode_texts(self, prompts):
        self.texts += len(prompts)
        return np.array([[int(p[-1]), 0.0] for p in prompts])
    def similarity(self, images, texts):
        return (images * texts).sum(axis=1)
    def score(self, images, prompts):
        raise AssertionError("there is a cheaper way")
    def score_elements(self, images, prompts, elements):
        assert self.prepared == self.encoded
        return [[self.encoded, self.texts] for _ in prompts]
"""


def test_an_encoder_in_a_box_gives_the_scores_of_one_asked_pair_by_pair(
    backend: Backend, submit: Submit, tmp_path: Path
) -> None:
    plain = run(backend, submit(PAIR_BY_PAIR), tmp_path / "a", EVERY_BATCH)
    dual = run(backend, submit(DUAL), tmp_path / "b", EVERY_BATCH)
    assert dual.overall.equals(plain.overall)
    assert dual.elements is not None
    counted = dual.elements.groupby("element_id")["score"].max()
    assert (counted["e0"], counted["e1"]) == (10, 3)
    assert (dual.cost.images_encoded, dual.cost.texts_encoded) == (10, 3)
    assert (plain.cost.images_encoded, plain.cost.texts_encoded) == (0, 0)
    assert dual.environment["asked"] == "encode_images, encode_texts, similarity"
