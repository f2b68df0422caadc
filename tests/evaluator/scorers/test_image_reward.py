"""ImageReward: the written formula, the authors' weights, and each image once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaluator.scorers.checkpoints import Source
from evaluator.scorers.registry import find_row, load_rows, load_scorer
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.scorers.tiny_blip import (
    check_cut_after,
    reward_model,
    reward_state,
    wide_pictures,
    word_tokenizer,
)
from tests.evaluator.scorers.tiny_dual import picture, saved

transforms = later("torchvision.transforms")
converting = later("evaluator.scorers.models.convert")
building = later("evaluator.scorers.models.image_reward")

PROMPTS = ["a red cat on the mat", "two dogs", "a woman in a big blue hat and a man"]
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
Folders = dict[str, Path]


@pytest.fixture(scope="module")
def model() -> Any:
    return reward_model(len(word_tokenizer()) + 2)


@pytest.fixture(scope="module")
def folders(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    place = tmp_path_factory.mktemp("imagereward")
    torch.save(reward_state(model), place / "ImageReward.pt")
    return {"model": place / "ImageReward.pt", "tokenizer": saved(place / "w", word_tokenizer())}


def load(folders: Folders, **more: Any) -> Any:
    row = find_row("imagereward", load_rows())
    row = row.model_copy(update={"options": {"vision_heads": 4, "text_heads": 4}})
    return load_scorer(row, Runtime(folders=folders, **{"allow_pickle": True, **more})).scorer


@pytest.fixture(scope="module")
def scorer(folders: Folders) -> Any:
    return load(folders)


def look(image: Image.Image) -> Any:
    """The authors' transform."""
    steps = [
        transforms.Resize(32, interpolation=transforms.InterpolationMode.BICUBIC),
        transforms.CenterCrop(32),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    return transforms.Compose(steps)(image)


def formula(model: Any, image: Image.Image, prompt: str) -> float:
    """The authors' steps with the library's modules: padded to 35 tokens, one pair at a time."""
    cut = {"padding": "max_length", "truncation": True, "max_length": 35}
    text = word_tokenizer()(prompt, return_tensors="pt", **cut)
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


def test_score_is_the_standardised_reward_of_the_first_token_in_any_precision(
    scorer: Any, folders: Folders, model: Any
) -> None:
    images = wide_pictures(3)
    prepared = [scorer.prepare(image) for image in images]
    found = scorer.score(prepared, PROMPTS)
    wanted = [formula(model, *pair) for pair in zip(images, PROMPTS, strict=True)]
    assert found == pytest.approx(wanted, abs=2e-6)
    assert max(wanted) - min(wanted) > 0.02
    half = load(folders, dtype="bfloat16")
    assert half.score(prepared, PROMPTS) == pytest.approx(found, abs=0.05)


def test_texts_share_their_image_and_order_and_batch_do_not_matter(
    folders: Folders, scorer: Any
) -> None:
    images = [scorer.prepare(image) for image in wide_pictures(2)]
    apart = [scorer.score([image], [prompt])[0] for image in images for prompt in PROMPTS]
    assert abs(apart[0] - apart[3]) > 1e-3
    together = scorer.score_texts(images, [PROMPTS, PROMPTS])
    assert together[0] + together[1] == pytest.approx(apart, abs=1e-6)
    small = load(folders, batch_texts=2)
    backwards = small.score_texts(images[::-1], [PROMPTS[::-1], PROMPTS[::-1]])
    assert (backwards[0] + backwards[1])[::-1] == pytest.approx(apart, abs=1e-6)
    assert scorer.score_texts(images, [[], PROMPTS[:1]])[0] == []


def test_long_prompts_are_cut_at_35_tokens_and_said_to_be(scorer: Any) -> None:
    check_cut_after(scorer, 33)


@pytest.mark.parametrize(
    ("name", "named", "code"),
    [
        ("blip.text_decoder.weight", "blip.text_decoder.weight", "checkpoint_wrong_class"),
        ("mlp.layers.6.bias", "head.6.bias", "checkpoint_incomplete"),
    ],
)
def test_unknown_and_missing_weights_are_refused_by_name(
    model: Any, name: str, named: str, code: str
) -> None:
    state = reward_state(model)
    if state.pop(name, None) is None:
        state[name] = torch.ones(1)
    heads = building.Heads(4, 4)
    with refusal(code, named):
        building.build_image_reward(state, Source(Path(), "x", ""), heads, torch.float32)


def test_a_pickle_is_refused_and_a_converted_file_scores_the_same(
    folders: Folders, scorer: Any, tmp_path: Path
) -> None:
    with refusal("checkpoint_unsafe"):
        load(folders, allow_pickle=False)
    target = tmp_path / "ImageReward.safetensors"
    left_out = converting.convert("imagereward", folders["model"], target)
    assert "blip.vision_proj.weight" in left_out
    other = load({**folders, "model": target}, allow_pickle=False)
    image = [scorer.prepare(picture(0))]
    assert other.score(image, PROMPTS[:1]) == scorer.score(image, PROMPTS[:1])


def test_images_are_cut_as_the_authors_cut_them_where_an_odd_rest_is_left(scorer: Any) -> None:
    image = picture(5, 64, 43)
    torch.testing.assert_close(scorer.prepare(image), look(image), rtol=0, atol=1e-6)
    assert (transforms.Resize(32)(image).width - 32) % 2 == 1
