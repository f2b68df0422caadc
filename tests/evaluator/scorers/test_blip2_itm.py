"""BLIP2-ITM: the written formula, each image once, and no dependence on the batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.registry import find_row, load_rows, load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_blip2 import (
    bert_tokenizer,
    check_cut_after,
    check_image_matters,
    made_up_images,
    save_blip2,
    square_processor,
    tiny_blip2,
)

if TYPE_CHECKING:
    from transformers import BertTokenizer

PROMPTS = ["a red cat on the mat", "two dogs", "a woman in a big blue hat and a man", ""]


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizer:
    return bert_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer: BertTokenizer) -> Any:
    return tiny_blip2(tokenizer)


@pytest.fixture(scope="module")
def folder(model: Any, tokenizer: BertTokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_blip2(tmp_path_factory.mktemp("blip2"), model, tokenizer)


@pytest.fixture(scope="module")
def row() -> ScorerRow:
    return find_row("blip2-itm", load_rows())


def load(row: ScorerRow, folder: Path, **more: Any) -> Any:
    return load_scorer(row, Runtime(folders={"model": folder}, **more)).scorer


@pytest.fixture(scope="module")
def scorer(row: ScorerRow, folder: Path) -> Any:
    return load(row, folder)


def library_score(model: Any, tokenizer: BertTokenizer, image: Any, prompt: str) -> float:
    """The library's own forward pass of one pair."""
    import torch

    text = tokenizer([prompt], truncation=True, max_length=35, return_tensors="pt")
    text.pop("token_type_ids", None)
    pixels = square_processor(32)(images=image, return_tensors="pt")
    with torch.no_grad():
        out = model(**pixels, **text, use_image_text_matching_head=True)
    return float(out.logits_per_image.softmax(dim=1)[0, 1])


def test_score_is_softmax_of_the_mean_of_logits(
    scorer: Any, model: Any, tokenizer: BertTokenizer
) -> None:
    images = made_up_images(4)
    found = scorer.score([scorer.prepare(image) for image in images], PROMPTS)
    wanted = [
        library_score(model, tokenizer, image, prompt)
        for image, prompt in zip(images, PROMPTS, strict=True)
    ]
    assert found == pytest.approx(wanted, abs=1e-6)
    assert max(wanted) - min(wanted) > 0.02


def test_softmax_of_the_mean_is_not_the_mean_of_softmaxes() -> None:
    import torch

    from evaluator.scorers.models.blip2_matching import mean_of_softmax, softmax_of_mean

    logits = torch.tensor([[0.0, 6.0], [0.0, -2.0]])
    odds = torch.sigmoid(torch.tensor([6.0, -2.0, 2.0], dtype=torch.float64))
    assert softmax_of_mean(logits) == pytest.approx(float(odds[2]), abs=1e-12)
    assert mean_of_softmax(logits) == pytest.approx(float(odds[:2].mean()), abs=1e-12)


def test_texts_of_one_image_share_its_encoding_and_score_the_same(scorer: Any) -> None:
    first, second, third = (scorer.prepare(image) for image in made_up_images(3))
    together = scorer.score_texts([first, second, third], [PROMPTS, [], PROMPTS[1:3]])
    assert [len(of_image) for of_image in together] == [4, 0, 2]
    apart = [scorer.score([first], [prompt])[0] for prompt in PROMPTS]
    apart += [scorer.score([third], [prompt])[0] for prompt in PROMPTS[1:3]]
    assert together[0] + together[2] == pytest.approx(apart, abs=1e-6)


def test_vision_tower_and_cross_attention_keys_run_once_per_image(
    row: ScorerRow, folder: Path
) -> None:
    scorer = load(row, folder)
    parts = scorer._matcher._model
    rows: dict[str, int] = {"vision": 0, "keys": 0}

    def count(name: str) -> Any:
        def hook(_: Any, __: Any, out: Any) -> None:
            rows[name] += len(getattr(out, "last_hidden_state", out))

        return hook

    parts.vision_model.register_forward_hook(count("vision"))
    cross = parts.qformer.encoder.layer[0].crossattention.attention
    cross.key.register_forward_hook(count("keys"))
    scorer.score_texts([scorer.prepare(image) for image in made_up_images(2)], [PROMPTS, PROMPTS])
    assert rows == {"vision": 2, "keys": 2}


def test_order_and_batch_do_not_matter(row: ScorerRow, folder: Path, scorer: Any) -> None:
    images = [scorer.prepare(image) for image in made_up_images(4)]
    forwards = scorer.score(images, PROMPTS)
    assert scorer.score(images, PROMPTS) == forwards
    backwards = scorer.score(images[::-1], PROMPTS[::-1])
    assert backwards[::-1] == pytest.approx(forwards, abs=1e-6)
    small = load(row, folder, batch_texts=3).score_texts(images[:2], [PROMPTS, PROMPTS])
    large = scorer.score_texts(images[:2], [PROMPTS, PROMPTS])
    assert small[0] == pytest.approx(large[0], abs=1e-6)
    assert small[1] == pytest.approx(large[1], abs=1e-6)


def test_half_precision_stays_close(row: ScorerRow, folder: Path, scorer: Any) -> None:
    images = [scorer.prepare(image) for image in made_up_images(4)]
    half = load(row, folder, dtype="bfloat16").score(images, PROMPTS)
    assert half == pytest.approx(scorer.score(images, PROMPTS), abs=0.03)


def test_the_image_matters(scorer: Any) -> None:
    check_image_matters(scorer, PROMPTS[0])


def test_words_are_kept_where_the_configuration_names_an_image_token(
    row: ScorerRow, tokenizer: BertTokenizer, scorer: Any, tmp_path: Path
) -> None:
    """The library then takes the first tokens for places of the image and drops them."""
    folder = save_blip2(tmp_path, tiny_blip2(tokenizer, image_token_index=5), tokenizer)
    images = [scorer.prepare(image) for image in made_up_images(1)]
    assert load(row, folder).score(images, PROMPTS[:1]) == scorer.score(images, PROMPTS[:1])


def test_a_long_prompt_is_cut_and_said_to_be(scorer: Any) -> None:
    check_cut_after(scorer, 33)


def test_images_are_squeezed_to_a_square_without_a_crop(scorer: Any) -> None:
    import torch

    image = made_up_images(1)[0]
    assert scorer.prepare(image).shape == (3, 32, 32)
    edge = image.copy()
    edge.paste((255, 0, 0), (0, 0, 8, 40))
    assert not torch.equal(scorer.prepare(image)[:, :, :2], scorer.prepare(edge)[:, :, :2])


def test_a_checkpoint_of_another_class_is_refused(row: ScorerRow, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "clip"}')
    with pytest.raises(SubmitterError) as refusal:
        load(row, tmp_path)
    assert refusal.value.code == "checkpoint_wrong_class"
