"""A checkpoint of Phi-4-multimodal's own code becomes the library's model with its LoRA merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.vlm_reading import Reading
from tests.evaluator.scorers.common import hf, later, refusal, safetensors, torch
from tests.evaluator.scorers.tiny_dual import SMALL, here, picture, row, saved
from tests.evaluator.scorers.tiny_qwen import qwen_tokenizer, text_settings

phi4 = later("evaluator.scorers.models.phi4")
loading = later("evaluator.scorers.models.vlm_loading")

IMAGE = "model.embed_tokens_extend.image_embed."
THEIRS = {
    f"{IMAGE}img_projection_up": f"{IMAGE}img_projection.0",
    f"{IMAGE}img_projection_down": f"{IMAGE}img_projection.2",
    f"{IMAGE}global_img_feature_extensor": f"{IMAGE}glb_GN",
    f"{IMAGE}sub_img_feature_extensor": f"{IMAGE}sub_GN",
}
RANK, ALPHA = 4, 8
FORMAT = "<|user|>{image}{prompt}<|end|><|assistant|>"
State = dict[str, Any]


def tokenizer() -> Any:
    return qwen_tokenizer(
        phi4.IMAGE_TOKEN, phi4.AUDIO_TOKEN, "<|user|>", "<|end|>", "<|assistant|>"
    )


def saved_config() -> State:
    text = tokenizer()
    lora = {"r": RANK, "lora_alpha": ALPHA, "layer": "unused"}
    image = text.convert_tokens_to_ids(phi4.IMAGE_TOKEN)
    tower = {**SMALL, "num_hidden_layers": 3, "image_size": 448, "image_token_id": image}
    return {
        **text_settings(text, max_position_embeddings=2048),
        "model_type": "phi4mm",
        "original_max_position_embeddings": 1024,
        "pad_token_id": text.pad_token_id,
        "tie_word_embeddings": True,
        "partial_rotary_factor": 0.75,
        "rope_theta": 1e4,
        "rope_scaling": {
            "type": "longrope", "short_factor": [1.0] * 3, "long_factor": [2.0] * 3
        },
        "embd_layer": {"image_embd_layer": {"crop_size": 448}},
        "vision_config": tower,
        "vision_lora": lora,
        "speech_lora": lora,
    }  # fmt: skip


def as_theirs(native: State) -> tuple[State, State]:
    """A checkpoint as their code saves it, and by hand what it stands for."""
    generator = torch.Generator().manual_seed(1)
    theirs: State = {}
    sums: State = {}
    for name, values in native.items():
        if ".audio_embed." in name:
            theirs[name] = torch.ones(3)
            continue
        kept = next((name.replace(a, b) for a, b in THEIRS.items() if a in name), name)
        sums[name] = values
        if ".layers." not in name or "_proj.weight" not in name or IMAGE in name:
            theirs[kept] = values.clone()
            continue
        layer = name.removesuffix(".weight")
        theirs[f"{layer}.base_layer.weight"] = values.clone()
        for adapter in ("vision", "speech"):
            down = 0.3 * torch.randn(RANK, values.shape[1], generator=generator)
            up = 0.3 * torch.randn(values.shape[0], RANK, generator=generator)
            theirs[f"{layer}.lora_A.{adapter}.weight"] = down
            theirs[f"{layer}.lora_B.{adapter}.weight"] = up
            if adapter == "vision":
                sums[name] = values + ALPHA / RANK * up @ down
    return theirs, sums


@pytest.fixture(scope="module")
def native() -> State:
    torch.manual_seed(0)
    model = hf.Phi4MultimodalForCausalLM(phi4.native_config(saved_config()))
    for values in model.parameters():
        torch.nn.init.normal_(values, std=0.2)
    state = {name: values.detach().clone() for name, values in model.state_dict().items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state


@pytest.fixture(scope="module")
def folder(native: State, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("phi4mm")
    theirs, _ = as_theirs(native)
    theirs.pop("lm_head.weight")
    state = {name: v.contiguous() for name, v in theirs.items()}
    safetensors.save_file(state, place / "model.safetensors")
    (place / "config.json").write_text(json.dumps(saved_config()))
    return saved(place, tokenizer(), hf.Phi4MultimodalImageProcessor())


def test_the_vision_lora_is_added_and_all_else_is_as_it_was(native: State) -> None:
    theirs, sums = as_theirs(native)
    found = phi4.merged(theirs, ALPHA / RANK)
    assert set(found) == set(sums)
    for name, values in sums.items():
        torch.testing.assert_close(found[name], values, atol=1e-6, rtol=0)
    assert sum(not torch.equal(found[name], native[name]) for name in sums) == 2 * 4
    base = phi4.merged(theirs, 0.0)
    assert all(torch.equal(values, native[name]) for name, values in base.items())


def test_sums_keep_the_precision_of_their_layer_and_half_a_lora_is_refused() -> None:
    half = {
        "a.base_layer.weight": torch.ones(2, 2, dtype=torch.bfloat16),
        "a.lora_A.vision.weight": torch.ones(1, 2, dtype=torch.bfloat16),
    }
    whole = {**half, "a.lora_B.vision.weight": torch.ones(2, 1, dtype=torch.bfloat16)}
    found = phi4.merged(whole, 2.0)["a.weight"]
    assert (found.dtype, found.tolist()) == (torch.bfloat16, [[3.0, 3.0], [3.0, 3.0]])
    with refusal("checkpoint_wrong_class"):
        phi4.merged(half, 1.0)


def test_a_loaded_checkpoint_answers_as_the_merged_weights_do(folder: Path, native: State) -> None:
    reading = Reading(text_format=FORMAT, square="squash", side=448)
    vlm = loading.load_answer_model(row(), here(folder), reading=reading)
    prompts = ["Is it red?", "Does it show two dogs?"]
    answers = [Candidate("Yes"), Candidate("No")]
    seen = vlm.prepare(picture(1, 90, 60))
    found = vlm.answer_logprobs([seen], [prompts], [[answers, answers]])[0]
    model = hf.Phi4MultimodalForCausalLM(phi4.native_config(saved_config())).eval()
    model.load_state_dict(as_theirs(native)[1], strict=False)
    assert vlm.environment["shared_by_prompts"].startswith("image and text")
    for prompt, values in zip(prompts, found, strict=True):
        asked = vlm._text.asked(seen, prompt)
        ids = [vlm._text.answer(one)[0] for one in answers]
        with torch.no_grad():
            logits = model(input_ids=asked.ids[None], **asked.pixels).logits[0, -1]
        assert_allclose(np.concatenate(values), torch.log_softmax(logits, -1)[ids], atol=1e-4)


def test_a_checkpoint_without_lora_settings_is_refused(tmp_path: Path) -> None:
    config = saved_config()
    config.pop("vision_lora")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(SubmitterError, match="vision_lora"):
        loading.load_answer_model(row(), here(tmp_path))
