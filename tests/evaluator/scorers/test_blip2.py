"""BLIP-2 as matcher and as contrast: the library's own numbers, each image once, in any batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.scorers.registry import find_row, load_rows, load_scorer
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.tiny_blip import (
    blip2_matching,
    check_cut_after,
    square,
    wide_pictures,
    word_tokenizer,
)
from tests.evaluator.scorers.tiny_dual import here, row, saved

matching = later("evaluator.scorers.models.blip2_matching")
itc = later("evaluator.scorers.families.blip2_itc")

PROMPTS = ["a red cat on the mat", "two dogs", "a woman in a big blue hat and a man", ""]
IMAGES = wide_pictures(4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = word_tokenizer()
    return saved(tmp_path_factory.mktemp("blip2"), blip2_matching(tokenizer), tokenizer, square())


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return hf.Blip2ForImageTextRetrieval.from_pretrained(folder).eval()


def load(folder: Path, **more: Any) -> Any:
    return load_scorer(find_row("blip2-itm", load_rows()), here(folder, **more)).scorer


@pytest.fixture(scope="module")
def scorer(folder: Path) -> Any:
    return load(folder)


@pytest.fixture(scope="module")
def contrast(folder: Path) -> Any:
    tiny = row("blip2_itc")
    return itc.FAMILY.load(tiny, itc.FAMILY.check(tiny), here(folder)).scorer


def by_library(model: Any, image: Any, prompt: str, length: int, head: bool) -> Any:
    """The library's own forward pass of one pair."""
    text = word_tokenizer()([prompt], truncation=True, max_length=length, return_tensors="pt")
    text.pop("token_type_ids", None)
    pixels = square()(images=image, return_tensors="pt")
    with torch.no_grad():
        return model(**pixels, **text, use_image_text_matching_head=head).logits_per_image


def test_matching_is_softmax_of_the_mean_of_logits(scorer: Any, model: Any) -> None:
    found = scorer.score([scorer.prepare(image) for image in IMAGES], PROMPTS)
    wanted = [
        float(by_library(model, image, prompt, 35, head=True).softmax(dim=1)[0, 1])
        for image, prompt in zip(IMAGES, PROMPTS, strict=True)
    ]
    assert found == pytest.approx(wanted, abs=1e-6)
    assert max(wanted) - min(wanted) > 0.02


def test_softmax_of_the_mean_is_not_the_mean_of_softmaxes() -> None:
    logits = torch.tensor([[0.0, 6.0], [0.0, -2.0]])
    odds = torch.sigmoid(torch.tensor([6.0, -2.0, 2.0], dtype=torch.float64))
    assert matching.softmax_of_mean(logits) == pytest.approx(float(odds[2]), abs=1e-12)
    assert matching.mean_of_softmax(logits) == pytest.approx(float(odds[:2].mean()), abs=1e-12)


def test_order_and_batch_do_not_matter(folder: Path, scorer: Any) -> None:
    images = [scorer.prepare(image) for image in IMAGES]
    forwards = scorer.score(images, PROMPTS)
    assert scorer.score(images, PROMPTS) == forwards
    backwards = scorer.score(images[::-1], PROMPTS[::-1])
    assert backwards[::-1] == pytest.approx(forwards, abs=1e-6)
    asked = [PROMPTS, [], PROMPTS[1:3]]
    together = scorer.score_texts(images[:3], asked)
    small = load(folder, batch_texts=3).score_texts(images[:3], asked)
    for image, texts, ours, batched in zip(images, asked, together, small, strict=False):
        alone = [scorer.score([image], [text])[0] for text in texts]
        assert ours == pytest.approx(alone, abs=1e-6)
        assert batched == pytest.approx(alone, abs=1e-6)


def test_vision_tower_and_cross_attention_keys_run_once_per_image(folder: Path) -> None:
    scorer = load(folder)
    parts = scorer._matcher._model
    rows = {"vision": 0, "keys": 0}

    def count(name: str) -> Any:
        def hook(_: Any, __: Any, out: Any) -> None:
            rows[name] += len(getattr(out, "last_hidden_state", out))

        return hook

    parts.vision_model.register_forward_hook(count("vision"))
    cross = parts.qformer.encoder.layer[0].crossattention.attention
    cross.key.register_forward_hook(count("keys"))
    scorer.score_texts([scorer.prepare(image) for image in IMAGES[:2]], [PROMPTS, PROMPTS])
    assert rows == {"vision": 2, "keys": 2}


def test_half_precision_stays_close(folder: Path, scorer: Any) -> None:
    images = [scorer.prepare(image) for image in IMAGES]
    half = load(folder, dtype="bfloat16").score(images, PROMPTS)
    assert half == pytest.approx(scorer.score(images, PROMPTS), abs=0.03)


def test_words_are_kept_where_the_configuration_names_an_image_token(
    scorer: Any, tmp_path: Path
) -> None:
    """The library then takes the first tokens for places of the image and drops them."""
    tokenizer = word_tokenizer()
    named = saved(tmp_path, blip2_matching(tokenizer, image_token_index=5), tokenizer, square())
    image = [scorer.prepare(IMAGES[0])]
    assert load(named).score(image, PROMPTS[:1]) == scorer.score(image, PROMPTS[:1])


def test_long_prompts_are_cut_and_said_to_be(scorer: Any, contrast: Any) -> None:
    check_cut_after(scorer, 33)
    assert contrast.truncated(["cat " * 30, "cat " * 31]) == [False, True]


def test_images_are_squeezed_to_a_square_without_a_crop(scorer: Any) -> None:
    image, edge = IMAGES[0], IMAGES[0].copy()
    assert scorer.prepare(image).shape == (3, 32, 32)
    edge.paste((255, 0, 0), (0, 0, 8, 40))
    assert not torch.equal(scorer.prepare(image)[:, :, :2], scorer.prepare(edge)[:, :, :2])


def test_a_checkpoint_of_another_class_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "clip"}')
    with refusal("checkpoint_wrong_class"):
        load(tmp_path)


def test_contrast_is_the_librarys_largest_query_cosine_in_any_batch(
    model: Any, contrast: Any
) -> None:
    grid = [(image, text) for image in IMAGES[:3] for text in PROMPTS[:3]]
    wanted = [float(by_library(model, *pair, 32, head=False)[0, 0]) for pair in grid]
    prepared = [contrast.prepare(image) for image, _ in grid]
    texts = [text for _, text in grid]
    found = contrast.score(prepared, texts)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert np.ptp(wanted) > 0.01
    alone = [contrast.score([one], [text])[0] for one, text in zip(prepared, texts, strict=True)]
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_an_image_is_one_row_of_all_its_vectors(contrast: Any) -> None:
    seen = contrast.encode_images([contrast.prepare(image) for image in IMAGES])
    said = contrast.encode_texts(PROMPTS)
    assert seen.shape == (4, 4 * 16)
    np.testing.assert_allclose(np.linalg.norm(seen.reshape(16, 16), axis=1), 1, atol=1e-6)
    every = np.einsum("nqd,nd->nq", seen.reshape(4, 4, 16), said)
    np.testing.assert_allclose(contrast.similarity(seen, said), every.max(axis=1), atol=1e-6)
    assert np.ptp(every, axis=1).min() > 0
