"""A checkpoint of Phi-4-multimodal's own code becomes the library's model with its LoRA merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.vlm_reading import Reading
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_qwen import qwen_tokenizer
from tests.evaluator.scorers.tiny_vlm import picture, row_of

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import Qwen2Tokenizer

IMAGE = "model.embed_tokens_extend.image_embed."
THEIRS = {
    f"{IMAGE}img_projection_up": f"{IMAGE}img_projection.0",
    f"{IMAGE}img_projection_down": f"{IMAGE}img_projection.2",
    f"{IMAGE}global_img_feature_extensor": f"{IMAGE}glb_GN",
    f"{IMAGE}sub_img_feature_extensor": f"{IMAGE}sub_GN",
}
RANK, ALPHA = 4, 8
FORMAT = "<|user|>{image}{prompt}<|end|><|assistant|>"


def tokenizer() -> Qwen2Tokenizer:
    from evaluator.scorers.models.phi4 import AUDIO_TOKEN, IMAGE_TOKEN

    made = qwen_tokenizer()
    special = [IMAGE_TOKEN, AUDIO_TOKEN, "<|user|>", "<|end|>", "<|assistant|>"]
    made.add_special_tokens({"additional_special_tokens": special})
    return made


def saved_config(text: Qwen2Tokenizer) -> dict[str, Any]:
    from evaluator.scorers.models.phi4 import IMAGE_TOKEN

    return {
        "model_type": "phi4mm",
        "hidden_size": 32,
        "intermediate_size": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": len(text),
        "max_position_embeddings": 2048,
        "original_max_position_embeddings": 1024,
        "pad_token_id": text.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": text.eos_token_id,
        "tie_word_embeddings": True,
        "partial_rotary_factor": 0.75,
        "rope_theta": 1e4,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0] * 3,
            "long_factor": [2.0] * 3,
        },
        "embd_layer": {"image_embd_layer": {"crop_size": 448}},
        "vision_config": {
            "hidden_size": 32,
            "intermediate_size": 37,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "image_size": 448,
            "image_token_id": text.convert_tokens_to_ids(IMAGE_TOKEN),
        },
        "vision_lora": {"r": RANK, "lora_alpha": ALPHA, "layer": "unused"},
        "speech_lora": {"r": RANK, "lora_alpha": ALPHA, "layer": "unused"},
    }


def as_theirs(native: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """A checkpoint as their code saves it, and by hand what it stands for."""
    import torch

    generator = torch.Generator().manual_seed(1)
    theirs: dict[str, Tensor] = {}
    sums: dict[str, Tensor] = {}
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
def native() -> dict[str, Tensor]:
    import torch
    from transformers import Phi4MultimodalForCausalLM

    from evaluator.scorers.models.phi4 import native_config

    torch.manual_seed(0)
    model = Phi4MultimodalForCausalLM(native_config(saved_config(tokenizer())))
    for values in model.parameters():
        torch.nn.init.normal_(values, std=0.2)
    state = {name: values.detach().clone() for name, values in model.state_dict().items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state


@pytest.fixture(scope="module")
def folder(native: dict[str, Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from safetensors.torch import save_file
    from transformers import Phi4MultimodalImageProcessor

    place = tmp_path_factory.mktemp("phi4mm")
    theirs, _ = as_theirs(native)
    theirs.pop("lm_head.weight")
    save_file({name: v.contiguous() for name, v in theirs.items()}, place / "model.safetensors")
    text = tokenizer()
    (place / "config.json").write_text(json.dumps(saved_config(text)))
    text.save_pretrained(place)
    Phi4MultimodalImageProcessor().save_pretrained(place)
    return place


def test_the_vision_lora_is_added_and_all_else_is_as_it_was(native: dict[str, Tensor]) -> None:
    import torch

    from evaluator.scorers.models.phi4 import merged

    theirs, sums = as_theirs(native)

    found = merged(theirs, ALPHA / RANK)

    assert set(found) == set(sums)
    for name, values in sums.items():
        torch.testing.assert_close(found[name], values, atol=1e-6, rtol=0)
    changed = [name for name in sums if not torch.equal(found[name], native[name])]
    assert len(changed) == 2 * 4


def test_a_scale_of_nothing_gives_the_base_back(native: dict[str, Tensor]) -> None:
    import torch

    from evaluator.scorers.models.phi4 import merged

    theirs, _ = as_theirs(native)

    for name, values in merged(theirs, 0.0).items():
        assert torch.equal(values, native[name])


def test_sums_keep_the_precision_of_their_layer() -> None:
    import torch

    from evaluator.scorers.models.phi4 import merged

    layer = "model.layers.0.mlp.down_proj"
    found = merged(
        {
            f"{layer}.base_layer.weight": torch.ones(2, 2, dtype=torch.bfloat16),
            f"{layer}.lora_A.vision.weight": torch.ones(1, 2, dtype=torch.bfloat16),
            f"{layer}.lora_B.vision.weight": torch.ones(2, 1, dtype=torch.bfloat16),
        },
        scale=2.0,
    )

    assert found[f"{layer}.weight"].dtype == torch.bfloat16
    assert found[f"{layer}.weight"].tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_half_a_lora_is_refused() -> None:
    import torch

    from evaluator.scorers.models.phi4 import merged

    weights = {"a.base_layer.weight": torch.ones(2, 2), "a.lora_A.vision.weight": torch.ones(1, 2)}
    with pytest.raises(SubmitterError) as failure:
        merged(weights, 1.0)
    assert failure.value.code == "checkpoint_wrong_class"


def test_names_of_the_image_part_are_the_librarys() -> None:
    from evaluator.scorers.models.phi4 import native_name

    for ours, theirs in THEIRS.items():
        assert native_name(f"{theirs}.bias" if "img_" in theirs else theirs).startswith(ours)


def test_a_loaded_checkpoint_answers_as_the_merged_weights_do(
    folder: Path, native: dict[str, Tensor]
) -> None:
    import torch
    from transformers import Phi4MultimodalForCausalLM

    from evaluator.scorers.models.phi4 import native_config
    from evaluator.scorers.models.vlm_loading import load_answer_model

    reading = Reading(text_format=FORMAT, square="squash", side=448)
    vlm: Any = load_answer_model(row_of(), Runtime(folders={"model": folder}), reading=reading)
    prompts = ["Is it red?", "Does it show two dogs?"]
    answers = [Candidate("Yes"), Candidate("No")]

    seen = vlm.prepare(picture(1, 90, 60))
    found = vlm.answer_logprobs([seen], [prompts], [[answers, answers]])[0]

    model = Phi4MultimodalForCausalLM(native_config(saved_config(tokenizer()))).eval()
    model.load_state_dict(as_theirs(native)[1], strict=False)
    assert vlm.environment["shared_by_prompts"] == "image and text before it"
    for prompt, values in zip(prompts, found, strict=True):
        asked = vlm._text.asked(seen, prompt)
        ids = [vlm._text.answer(one)[0] for one in answers]
        with torch.no_grad():
            logits = model(input_ids=asked.ids[None], **asked.pixels).logits[0, -1]
        assert_allclose(np.concatenate(values), torch.log_softmax(logits, -1)[ids], atol=1e-4)


def test_a_checkpoint_without_lora_settings_is_refused(folder: Path, tmp_path: Path) -> None:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    config = json.loads((folder / "config.json").read_text())
    config.pop("vision_lora")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(SubmitterError, match="vision_lora"):
        load_answer_model(row_of(), Runtime(folders={"model": tmp_path}))
