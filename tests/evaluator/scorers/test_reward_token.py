"""HPSv3: the head's first output at the reward token, positions counted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluator.scorers.registry import Runtime, ScorerRow, find_row, load_rows, load_scorer
from tests.evaluator.scorers import tiny_rewards as rewards
from tests.evaluator.scorers.common import later, refusal, safetensors, torch
from tests.evaluator.scorers.tiny_models import picture, qwen2_vl

hpsv3 = later("evaluator.scorers.families.hpsv3")
image_processing = later("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")

PROMPTS = [
    "a red ball",
    'two dogs "beside" a {tree}, at night',
    "",
    f"Yes {rewards.REWARD_TOKEN} No",
]
IMAGES = [picture(1, 90, 60), picture(2, 56, 112)]
PIXELS = 4 * 28**2


@pytest.fixture(scope="module")
def model() -> Any:
    return rewards.hpsv3_model()


@pytest.fixture(scope="module")
def folders(model: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return rewards.hpsv3_folders(tmp_path_factory.mktemp("hpsv3"), model)


def row() -> ScorerRow:
    found = find_row("hpsv3", load_rows())
    options = {**found.options, "pixels": PIXELS}
    return found.model_copy(update={"dtype": "float32", "options": options})


def load(folders: dict[str, Path]) -> Any:
    return load_scorer(row(), Runtime(folders=folders)).scorer


@pytest.fixture(scope="module")
def scorer(folders: dict[str, Path]) -> Any:
    return load(folders)


def inputs_of(image: Image.Image, prompt: str) -> tuple[Any, int]:
    """What the library's processor makes of the row's text, and the place of the last token."""
    processor = qwen2_vl()[1]
    processor.tokenizer.add_tokens([rewards.REWARD_TOKEN], special_tokens=True)
    processor.image_processor = image_processing.Qwen2VLImageProcessorPil(
        min_pixels=PIXELS, max_pixels=PIXELS
    )
    text = row().options["reading"]["text_format"]
    text = text.replace("{image}", "<|image_pad|>").replace("{prompt}", prompt)
    inputs = processor(text=[text], images=[image], return_tensors="pt")
    token = processor.tokenizer.convert_tokens_to_ids(rewards.REWARD_TOKEN)
    return inputs, int((inputs["input_ids"][0] == token).nonzero()[-1])


def rated(model: Any, states: Any, place: int) -> float:
    return float(model.rm_head(states[0, place])[0])


def by_positions(model: Any, image: Image.Image, prompt: str) -> float:
    """By the library's whole forward pass, told to count every token."""
    inputs, place = inputs_of(image, prompt)
    length = inputs["input_ids"].shape[1]
    with torch.no_grad():
        out = model.model(**inputs, position_ids=torch.arange(length).expand(3, 1, -1))
        return rated(model, out.last_hidden_state, place)


def by_embeddings(model: Any, image: Image.Image, prompt: str) -> float:
    """By the authors' way: embeddings alone are handed on."""
    inputs, place = inputs_of(image, prompt)
    body, ids = model.model, inputs["input_ids"]
    body.rope_deltas = None
    with torch.no_grad():
        seen = body.visual(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"]).pooler_output
        embedded = body.language_model.embed_tokens(ids)
        embedded[ids == model.config.image_token_id] = seen
        return rated(model, body(inputs_embeds=embedded).last_hidden_state, place)


def by_mrope(model: Any, image: Image.Image, prompt: str) -> float:
    """By a normal call."""
    inputs, place = inputs_of(image, prompt)
    with torch.no_grad():
        return rated(model, model.model(**inputs).last_hidden_state, place)


@pytest.mark.first_quick
@pytest.mark.parametrize("image", IMAGES)
def test_a_score_is_that_of_plain_positions_and_of_embeddings_alone_not_of_mrope(
    scorer: Any, model: Any, image: Image.Image
) -> None:
    (found,) = scorer.score_texts([scorer.prepare(image)], [PROMPTS])
    for way in (by_positions, by_embeddings):
        wanted = [way(model, image, prompt) for prompt in PROMPTS]
        assert found == pytest.approx(wanted, abs=1e-6), way.__name__
    assert np.ptp(found) > 1e-3
    other = [by_mrope(model, image, prompt) for prompt in PROMPTS]
    assert min(abs(a - b) for a, b in zip(found, other, strict=True)) > 1e-4


@pytest.mark.parametrize(
    "side", [(768, 768, 420, 420), (1024, 1536, 364, 532), (256, 256, 448, 448)]
)
def test_images_get_the_size_of_the_released_package(side: tuple[int, int, int, int]) -> None:
    pixels = hpsv3.FAMILY.check(find_row("hpsv3", load_rows())).pixels
    width, height, wide, high = side
    found = image_processing.smart_resize(height, width, 28, pixels, pixels)
    assert found == (high, wide)


def test_prompts_beyond_the_context_are_said_to_be(scorer: Any) -> None:
    scorer.prepare(IMAGES[0])
    assert scorer.truncated(["a", "a" * 5000]) == [False, True]


def test_the_newer_layout_of_names_scores_the_same(
    scorer: Any, model: Any, folders: dict[str, Path], tmp_path: Path
) -> None:
    state = {name: value.clone() for name, value in model.state_dict().items()}
    safetensors.save_file(state, tmp_path / "new.safetensors")
    other = load({**folders, "model": tmp_path / "new.safetensors"})
    image = [scorer.prepare(IMAGES[0])]
    score = scorer.score(image, PROMPTS[:1])
    assert other.score(image, PROMPTS[:1]) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"rm_head.5.bias": None}, "checkpoint_incomplete"),
        ({"rm_head.7.bias": 2}, "checkpoint_wrong_class"),
        ({"visual.merger.ln_q.bias": None}, "checkpoint_incomplete"),
        ({"model.embed_tokens.weight": "cut"}, "checkpoint_wrong_class"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    model: Any, folders: dict[str, Path], tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    state = rewards.hpsv3_state(model)
    for name, what in change.items():
        if what is None:
            del state[name]
        else:
            state[name] = state[name][:-1].clone() if what == "cut" else torch.ones(what)
    safetensors.save_file(state, tmp_path / "HPSv3.safetensors")
    with refusal(code):
        load({**folders, "model": tmp_path / "HPSv3.safetensors"})
