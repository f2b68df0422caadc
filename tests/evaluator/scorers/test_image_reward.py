"""ImageReward: the written formula, the authors' weights, and each image once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.registry import find_row, load_rows, load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_blip2 import (
    bert_tokenizer,
    check_cut_after,
    check_image_matters,
    made_up_images,
)

if TYPE_CHECKING:
    from transformers import BertTokenizer

    from tests.evaluator.scorers.tiny_image_reward import TinyReward

PROMPTS = ["a red cat on the mat", "two dogs", "a woman in a big blue hat and a man"]
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizer:
    return bert_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer: BertTokenizer) -> TinyReward:
    from tests.evaluator.scorers.tiny_image_reward import TinyReward

    return TinyReward(len(tokenizer) + 2)


@pytest.fixture(scope="module")
def folders(
    model: TinyReward, tokenizer: BertTokenizer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    import torch

    place = tmp_path_factory.mktemp("imagereward")
    torch.save(model.authors_state(), place / "ImageReward.pt")
    tokenizer.save_pretrained(place / "words")
    return {"model": place / "ImageReward.pt", "tokenizer": place / "words"}


@pytest.fixture(scope="module")
def row() -> ScorerRow:
    found = find_row("imagereward", load_rows())
    return found.model_copy(update={"options": {"vision_heads": 4, "text_heads": 4}})


@pytest.fixture(scope="module")
def scorer(row: ScorerRow, folders: dict[str, Path]) -> Any:
    return load_scorer(row, Runtime(folders=folders, allow_pickle=True)).scorer


def formula(model: TinyReward, tokenizer: BertTokenizer, image: Image.Image, prompt: str) -> float:
    """The authors' steps with the library's modules: padded to 35 tokens, one pair at a time."""
    import torch
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode

    look = transforms.Compose(
        [
            transforms.Resize(32, interpolation=InterpolationMode.BICUBIC),
            transforms.CenterCrop(32),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    text = tokenizer(
        prompt, padding="max_length", truncation=True, max_length=35, return_tensors="pt"
    )
    with torch.no_grad():
        states = model.vision(look(image)[None]).last_hidden_state
        hidden = model.text(
            text["input_ids"],
            attention_mask=text["attention_mask"],
            encoder_hidden_states=states,
            encoder_attention_mask=torch.ones(states.shape[:2], dtype=torch.long),
        ).last_hidden_state
        reward = model.layers(hidden[:, 0])
    return (float(reward) - 0.16717362830052426) / 1.0333394966054072


def test_score_is_the_standardised_reward_of_the_first_token(
    scorer: Any, model: TinyReward, tokenizer: BertTokenizer
) -> None:
    images = made_up_images(3)
    found = scorer.score([scorer.prepare(image) for image in images], PROMPTS)
    wanted = [
        formula(model, tokenizer, image, prompt)
        for image, prompt in zip(images, PROMPTS, strict=True)
    ]
    assert found == pytest.approx(wanted, abs=2e-6)
    assert max(wanted) - min(wanted) > 0.02


def test_texts_share_their_image_and_order_and_batch_do_not_matter(
    row: ScorerRow, folders: dict[str, Path], scorer: Any
) -> None:
    images = [scorer.prepare(image) for image in made_up_images(2)]
    apart = [scorer.score([image], [prompt])[0] for image in images for prompt in PROMPTS]
    together = scorer.score_texts(images, [PROMPTS, PROMPTS])
    assert together[0] + together[1] == pytest.approx(apart, abs=1e-6)
    runtime = Runtime(folders=folders, allow_pickle=True, batch_texts=2)
    small: Any = load_scorer(row, runtime).scorer
    backwards = small.score_texts(images[::-1], [PROMPTS[::-1], PROMPTS[::-1]])
    assert (backwards[0] + backwards[1])[::-1] == pytest.approx(apart, abs=1e-6)
    assert scorer.score_texts(images, [[], PROMPTS[:1]])[0] == []


def test_half_precision_stays_close(row: ScorerRow, folders: dict[str, Path], scorer: Any) -> None:
    runtime = Runtime(folders=folders, allow_pickle=True, dtype="bfloat16")
    half: Any = load_scorer(row, runtime).scorer
    images = [scorer.prepare(image) for image in made_up_images(3)]
    exact = scorer.score(images, PROMPTS)
    assert half.score(images, PROMPTS) == pytest.approx(exact, abs=0.05)


def test_the_image_matters(scorer: Any) -> None:
    check_image_matters(scorer, PROMPTS[0])


def test_long_prompts_are_cut_at_35_tokens_and_said_to_be(scorer: Any) -> None:
    check_cut_after(scorer, 33)


def test_weights_survive_the_way_through_the_authors_names(model: TinyReward) -> None:
    import torch

    from evaluator.scorers.models.image_reward import from_authors

    wanted = {
        name.replace("layers.", "head.", 1) if name.startswith("layers.") else name: value
        for name, value in model.state_dict().items()
    }
    back = from_authors(model.authors_state())
    assert back.keys() == wanted.keys()
    assert all(torch.equal(back[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize(
    ("name", "code"),
    [("blip.text_decoder.weight", "checkpoint_wrong_class"), ("", "checkpoint_incomplete")],
)
def test_unknown_and_missing_weights_are_refused_by_name(
    model: TinyReward, name: str, code: str
) -> None:
    import torch

    from evaluator.scorers.models.image_reward import Heads, build_image_reward

    state = model.authors_state()
    if name:
        state[name] = torch.ones(1)
    else:
        name = "head.6.bias"
        del state["mlp.layers.6.bias"]
    with pytest.raises(SubmitterError) as refusal:
        build_image_reward(state, Source(Path(), "x", ""), Heads(4, 4), torch.float32)
    assert refusal.value.code == code
    assert name in refusal.value.message


def test_a_pickle_is_refused_and_a_converted_file_scores_the_same(
    row: ScorerRow, folders: dict[str, Path], scorer: Any, tmp_path: Path
) -> None:
    from evaluator.scorers.models.convert import convert

    with pytest.raises(SubmitterError) as refusal:
        load_scorer(row, Runtime(folders=folders))
    assert refusal.value.code == "checkpoint_unsafe"
    target = tmp_path / "ImageReward.safetensors"
    assert "blip.vision_proj.weight" in convert("imagereward", folders["model"], target)
    other: Any = load_scorer(row, Runtime(folders={**folders, "model": target})).scorer
    image = [scorer.prepare(made_up_images(1)[0])]
    assert other.score(image, PROMPTS[:1]) == scorer.score(image, PROMPTS[:1])


def test_images_are_cut_as_the_authors_cut_them_where_an_odd_rest_is_left(scorer: Any) -> None:
    import torch
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode

    rng = np.random.default_rng(5)
    image = Image.fromarray(rng.integers(0, 256, (43, 64, 3), dtype=np.uint8))
    authors: Any = transforms.Compose(
        [
            transforms.Resize(32, interpolation=InterpolationMode.BICUBIC),
            transforms.CenterCrop(32),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    torch.testing.assert_close(scorer.prepare(image), authors(image), rtol=0, atol=1e-6)
    assert (transforms.Resize(32)(image).width - 32) % 2 == 1
