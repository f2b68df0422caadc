"""BLIP-2's contrast: the largest of the query tokens' cosines, as the library computes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evaluator.scorers.tiny_dual import PROMPTS, here, pictures, row, save_blip2

IMAGES = pictures(3)


@pytest.fixture(scope="module")
def blip2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_blip2(tmp_path_factory.mktemp("blip2"))


@pytest.fixture(scope="module")
def scorer(blip2: Path) -> Any:
    from evaluator.scorers.families.blip2_itc import FAMILY

    tiny = row("blip2_itc")
    return FAMILY.load(tiny, FAMILY.check(tiny), here(blip2)).scorer


def test_a_score_is_the_librarys_largest_query_cosine(blip2: Path, scorer: Any) -> None:
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, Blip2ForImageTextRetrieval

    model = Blip2ForImageTextRetrieval.from_pretrained(blip2).eval()
    pixels = AutoImageProcessor.from_pretrained(blip2, backend="pil")(IMAGES, return_tensors="pt")
    tokenizer = AutoTokenizer.from_pretrained(blip2)
    expected = np.zeros((len(IMAGES), len(PROMPTS)))
    for j, text in enumerate(PROMPTS):
        ids = tokenizer([text] * len(IMAGES), truncation=True, max_length=32, return_tensors="pt")
        ids = {name: ids[name] for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            out = model(**ids, **pixels, use_image_text_matching_head=False)
        expected[:, j] = out.logits_per_image[:, 0]
    prepared = [scorer.prepare(image) for image in IMAGES]
    grid = [(i, j) for i in range(len(IMAGES)) for j in range(len(PROMPTS))]
    found = scorer.score([prepared[i] for i, _ in grid], [PROMPTS[j] for _, j in grid])
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, atol=1e-6)
    assert np.ptp(expected) > 0.01


def test_an_image_is_one_row_of_all_its_vectors(scorer: Any) -> None:
    prepared = [scorer.prepare(image) for image in IMAGES]
    seen, said = scorer.encode_images(prepared), scorer.encode_texts(PROMPTS)
    assert seen.shape == (3, 4 * 16)
    np.testing.assert_allclose(np.linalg.norm(seen.reshape(12, 16), axis=1), 1, atol=1e-6)
    every = np.einsum("nqd,nd->nq", seen.reshape(3, 4, 16), said)
    np.testing.assert_allclose(scorer.similarity(seen, said), every.max(axis=1), atol=1e-6)
    assert not (every.argmax(axis=1) == 0).all() or np.ptp(every, axis=1).min() > 0


def test_a_score_does_not_depend_on_its_batch(scorer: Any) -> None:
    prepared = [scorer.prepare(image) for image in IMAGES]
    together = scorer.score(prepared, PROMPTS)
    alone = [
        scorer.score([image], [text])[0] for image, text in zip(prepared, PROMPTS, strict=True)
    ]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_over_long_prompts_are_said_to_be_cut(scorer: Any) -> None:
    assert scorer.truncated(["a" * 30, "a" * 31]) == [False, True]
    assert scorer.truncated([PROMPTS[1]]) == [False]
