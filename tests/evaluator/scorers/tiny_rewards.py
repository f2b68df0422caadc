"""Small random weights of MPS and HPSv3, under the names of the released files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.evaluator.scorers.common import hf, safetensors, torch
from tests.evaluator.scorers.tiny_models import qwen2_vl, qwen_tokenizer, saved, spread

# MPS: blocks of cross-attention and attention over a CLIP of `save_clip`
MPS_WIDTH, MPS_HEADS, MPS_HEAD, MPS_INNER, MPS_BLOCKS = 24, 4, 8, 96, 2


def mps_state(base: Path) -> dict[str, Any]:
    """Weights of MPS over the CLIP in a folder."""
    generator = torch.Generator().manual_seed(3)

    def drawn(*shape: int) -> Any:
        return 0.3 * torch.randn(shape, generator=generator)

    width, heads, inner = MPS_WIDTH, MPS_HEADS * MPS_HEAD, MPS_INNER
    clip = hf.CLIPModel.from_pretrained(base).state_dict()
    state = {f"model.{name}": value.clone() for name, value in clip.items()}
    state["model.text_model.embeddings.position_ids"] = torch.arange(77)[None]
    for n in range(MPS_BLOCKS):
        cross, own = f"cross_model.layers.{n}.0.fn.", f"cross_model.layers.{n}.1.fn."
        for block in (cross, own):
            state[f"{block}norm.weight"] = 1 + drawn(width)
            state[f"{block}norm.bias"] = torch.zeros(width)
        state[f"{cross}to_q.weight"] = drawn(heads, width)
        state[f"{cross}to_kv.weight"] = drawn(2 * MPS_HEAD, width)
        state[f"{cross}to_out.weight"] = drawn(width, heads)
        state[f"{cross}ff.0.weight"] = drawn(2 * inner, width)
        state[f"{cross}ff.2.weight"] = drawn(width, inner)
        state[f"{own}rotary_emb.inv_freq"] = 10000 ** (-torch.arange(0, MPS_HEAD, 2) / MPS_HEAD)
        state[f"{own}fused_attn_ff_proj.weight"] = drawn(heads + 2 * MPS_HEAD + 2 * inner, width)
        state[f"{own}attn_out.weight"] = drawn(width, heads)
        state[f"{own}ff_out.1.weight"] = drawn(width, inner)
    return state


def mps_folders(folder: Path, base: Path, state: dict[str, Any]) -> dict[str, Path]:
    """The released file, and the CLIP it was made from."""
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.save_file(state, folder / "model.safetensors")
    return {"model": folder / "model.safetensors", "base": base}


# HPSv3: a Qwen2-VL with a reward token and a head
REWARD_TOKEN = "<|Reward|>"


def hpsv3_model() -> Any:
    """The library's model with one token more than its tokenizer, and a head; weights are spread."""
    nn, tiny = torch.nn, qwen2_vl()[0]
    tiny.resize_token_embeddings(len(qwen_tokenizer()) + 1)
    tiny.rm_head = nn.Sequential(
        nn.Linear(32, 16), nn.ReLU(), nn.Dropout(0.05), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2)
    )
    return spread(tiny)


def hpsv3_state(model: Any) -> dict[str, Any]:
    """The weights under the names of the released file."""
    state = {}
    for name, value in model.state_dict().items():
        old = name.replace("model.visual.", "visual.").replace("model.language_model.", "model.")
        state[old] = value.clone()
    return state


def hpsv3_folders(folder: Path, model: Any) -> dict[str, Path]:
    """The released file, and the settings of the model it was made from."""
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.save_file(hpsv3_state(model), folder / "HPSv3.safetensors")
    tiny, processor = qwen2_vl()
    tiny.config.text_config.max_position_embeddings = 4096  # the row's text is long in bytes
    return {"model": folder / "HPSv3.safetensors", "base": saved(folder / "base", tiny, processor)}
