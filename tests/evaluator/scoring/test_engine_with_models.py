"""The engine over a model of this process: rows counted in the towers themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.schema import Questions
from evaluator.scoring.embeddings.cache import EmbeddingCache
from evaluator.scoring.embeddings.packs import About
from evaluator.scoring.engine import EngineOptions, ScoreColumn, run_plan
from evaluator.scoring.images.decoding import decode
from evaluator.scoring.in_process.asker import ModelAsker
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.shards import ShardFolder
from tests.evaluator.scoring.asking import questions_of
from tests.evaluator.scoring.in_process.tiny_towers import (
    LONGEST,
    DualTiny,
    PairTiny,
    SharedTiny,
    asker_of,
    photo,
)

N_IMAGES, N_TEXTS = 12, 3
SMALL = EngineOptions(batch_pairs=7, keep_every_s=0.0, window=5)


@dataclass
class Source:
    """Opens a tiny model, with the embeddings of earlier runs."""

    tiny: PairTiny
    kept: Path | None = None
    fingerprint: str = "tiny"

    def open(self) -> AbstractContextManager[ModelAsker]:
        return self._opened()

    @contextmanager
    def _opened(self) -> Iterator[ModelAsker]:
        if self.kept is None:
            yield asker_of(self.tiny)
            return
        with EmbeddingCache(self.kept, About("d" * 64, "8 pixels", "tiny")) as cache:
            yield asker_of(self.tiny, cache=cache)


@pytest.fixture(scope="module")
def questions() -> Questions:
    asked = questions_of([(i, t) for i in range(N_IMAGES) for t in range(N_TEXTS)])
    images = {f"image-{i}": (lambda i=i: photo(i)) for i in range(N_IMAGES)}
    return replace(asked, images=images)


@pytest.fixture(scope="module")
def plain(questions: Questions) -> list[float]:
    """The formula, pair by pair, with nothing of the engine."""
    import torch

    tiny = DualTiny()
    with torch.inference_mode():
        return [
            tiny.score(
                [tiny.prepare(decode(questions.images[pair.image_id]()).image)],
                [questions.texts[pair.text_id]],
            )[0]
            for pair in questions.pairs
        ]


def run(questions: Questions, source: Source, folder: Path, seed: bytes = b"seed") -> ScoreColumn:
    plan = ScoringPlan.of(questions, seed)
    return run_plan(plan, questions, source, ShardFolder(folder, "tiny"), options=SMALL)


@pytest.mark.parametrize("kind", [PairTiny, SharedTiny, DualTiny])
def test_every_path_of_a_model_gives_the_scores_of_single_pairs(
    tmp_path: Path, questions: Questions, plain: list[float], kind: type[PairTiny]
) -> None:
    for seed in (b"one", b"two"):
        column = run(questions, Source(kind()), tmp_path / seed.decode(), seed)
        np.testing.assert_allclose(column.overall, plain, atol=1e-6)


def test_rows_of_the_towers_are_distinct_images_and_texts_and_none_in_a_second_run(
    tmp_path: Path, questions: Questions
) -> None:
    first = Source(DualTiny(), tmp_path / "kept")
    column = run(questions, first, tmp_path / "first")
    tiny, cost = first.tiny, column.cost
    assert tiny.prepared == tiny.image_rows == N_IMAGES
    assert tiny.text_rows == N_TEXTS
    assert cost.images_decoded == cost.images_encoded == N_IMAGES
    assert cost.texts_encoded == N_TEXTS

    second = Source(DualTiny(), tmp_path / "kept")
    again = run(questions, second, tmp_path / "second")
    assert again.overall.equals(column.overall)
    assert second.tiny.prepared == second.tiny.image_rows == second.tiny.text_rows == 0
    assert (again.cost.images_decoded, again.cost.images_encoded, again.cost.texts_encoded) == (
        0,
        0,
        0,
    )

    resumed = Source(DualTiny())
    assert run(questions, resumed, tmp_path / "first").overall.equals(column.overall)
    assert resumed.tiny.prepared == 0


def test_a_model_without_the_memory_for_a_batch_scores_it_in_parts(
    tmp_path: Path, questions: Questions, plain: list[float]
) -> None:
    import torch

    class Small(PairTiny):
        def score(self, images, prompts):  # type: ignore[no-untyped-def]
            if len(prompts) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().score(images, prompts)

    column = run(questions, Source(Small()), tmp_path)
    np.testing.assert_allclose(column.overall, plain, atol=1e-6)
    assert column.findings == ()


def test_findings_of_a_model_reach_the_result(tmp_path: Path, questions: Questions) -> None:
    images = {**questions.images, "image-4": lambda: photo(4)[:60]}
    texts = {**questions.texts, "text-0": "", "text-1": "very long " * LONGEST}
    column = run(replace(questions, images=images, texts=texts), Source(DualTiny()), tmp_path)
    assert {(f.code, f.item_id) for f in column.findings} == {
        ("text_empty", "text-0"),
        ("text_truncated", "text-1"),
        ("image_unreadable", "image-4"),
    }
    assert len(column.findings) == 3
    assert column.verdict.unscored == {"image_unreadable": N_TEXTS}
    assert column.verdict.scored == (N_IMAGES - 1) * N_TEXTS
