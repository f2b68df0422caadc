"""Text-to-image pipelines of a few thousand random weights, 16 x 16 pixels, made without files."""

from __future__ import annotations

from typing import Any

from tests.evaluator.scorers.common import hf, later, torch

diffusers = later("diffusers")

CLIP_TOKENS = 77
SIDE = 16
_ENCODER: dict[str, Any] = {
    "intermediate_size": 37, "num_attention_heads": 4, "num_hidden_layers": 2,
}  # fmt: skip
_UNET: dict[str, Any] = {
    "sample_size": SIDE, "block_out_channels": (8, 16), "layers_per_block": 1,
    "norm_num_groups": 2, "attention_head_dim": 4, "in_channels": 4, "out_channels": 4,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
}  # fmt: skip


def sd15(*, with_checker: bool = False) -> Any:
    """Stable Diffusion 1.5 in small."""
    torch.manual_seed(0)
    crop = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
    return diffusers.StableDiffusionPipeline(
        vae=_vae(),
        text_encoder=_clip("CLIPTextModel"),
        tokenizer=clip_tokenizer(),
        unet=diffusers.UNet2DConditionModel(**_UNET, cross_attention_dim=16),
        scheduler=diffusers.PNDMScheduler(skip_prk_steps=True, steps_offset=1),
        safety_checker=_checker() if with_checker else None,
        feature_extractor=hf.CLIPImageProcessor(**crop) if with_checker else None,
        requires_safety_checker=with_checker,
    )


def _checker() -> Any:
    """A safety checker that finds nothing; `flag_all` turns it."""
    safety = later("diffusers.pipelines.stable_diffusion.safety_checker")
    vision = {**_ENCODER, "hidden_size": 16, "image_size": 32, "patch_size": 16}
    text = {**_ENCODER, "hidden_size": 16}
    config = hf.CLIPConfig(vision_config=vision, text_config=text, projection_dim=16)
    made = safety.StableDiffusionSafetyChecker(config)
    made.concept_embeds_weights.data.fill_(10.0)  # a similarity is never above it
    made.special_care_embeds_weights.data.fill_(10.0)
    return made


def flag_all(pipe: Any) -> None:
    """Let the safety checker flag every image."""
    pipe.safety_checker.concept_embeds_weights.data.fill_(-10.0)


def sdxl() -> Any:
    """SDXL in small: two CLIP text encoders."""
    torch.manual_seed(0)
    times = {"addition_embed_type": "text_time", "addition_time_embed_dim": 8}
    projected = {"projection_class_embeddings_input_dim": 64, "cross_attention_dim": 32}
    return diffusers.StableDiffusionXLPipeline(
        vae=_vae(),
        text_encoder=_clip("CLIPTextModel"),
        text_encoder_2=_clip("CLIPTextModelWithProjection"),
        tokenizer=clip_tokenizer(),
        tokenizer_2=clip_tokenizer(),
        unet=diffusers.UNet2DConditionModel(**_UNET, **times, **projected),
        scheduler=diffusers.EulerDiscreteScheduler(),
    )


def sd3() -> Any:
    """Stable Diffusion 3 in small: two CLIP text encoders and a T5."""
    torch.manual_seed(0)
    return diffusers.StableDiffusion3Pipeline(
        transformer=diffusers.SD3Transformer2DModel(
            sample_size=SIDE, patch_size=1, in_channels=4, out_channels=4, num_layers=1,
            attention_head_dim=8, num_attention_heads=4, joint_attention_dim=32,
            caption_projection_dim=32, pooled_projection_dim=32, pos_embed_max_size=32,
        ),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=_vae(),
        text_encoder=_clip("CLIPTextModelWithProjection"),
        tokenizer=clip_tokenizer(),
        text_encoder_2=_clip("CLIPTextModelWithProjection"),
        tokenizer_2=clip_tokenizer(),
        text_encoder_3=_t5(),
        tokenizer_3=t5_tokenizer(),
    )  # fmt: skip


def pixart() -> Any:
    """PixArt-Sigma in small: a T5 text encoder."""
    torch.manual_seed(0)
    return diffusers.PixArtSigmaPipeline(
        tokenizer=t5_tokenizer(),
        text_encoder=_t5(),
        vae=_vae(),
        transformer=diffusers.PixArtTransformer2DModel(
            sample_size=SIDE, num_layers=1, patch_size=2, in_channels=4, out_channels=8,
            num_attention_heads=2, attention_head_dim=8, cross_attention_dim=16,
            caption_channels=32, use_additional_conditions=False,
        ),
        scheduler=diffusers.DPMSolverMultistepScheduler(),
    )  # fmt: skip


def clip_tokenizer() -> Any:
    """Letters as tokens."""
    letters = list(later("transformers.convert_slow_tokenizer").bytes_to_unicode().values())
    ends = ["<|startoftext|>", "<|endoftext|>"]
    pieces = [*letters, *(f"{letter}</w>" for letter in letters), *ends]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    return hf.CLIPTokenizer(vocab=vocab, merges=[], model_max_length=CLIP_TOKENS)


def t5_tokenizer() -> Any:
    """Letters as tokens."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(letter, -1.0) for letter in "▁abcdefghijklmnopqrstuvwxyz0123456789,.-'"]
    return hf.T5Tokenizer(vocab=pieces, extra_ids=0)


def _vae() -> Any:
    return diffusers.AutoencoderKL(
        block_out_channels=(8,), in_channels=3, out_channels=3,
        down_block_types=("DownEncoderBlock2D",), up_block_types=("UpDecoderBlock2D",),
        latent_channels=4, norm_num_groups=2, shift_factor=0.0,
    )  # fmt: skip


def _clip(kind: str) -> Any:
    tokenizer = clip_tokenizer()
    config = hf.CLIPTextConfig(
        **_ENCODER, hidden_size=16, projection_dim=16, vocab_size=len(tokenizer),
        max_position_embeddings=CLIP_TOKENS, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return getattr(hf, kind)(config)


def _t5() -> Any:
    size = {"vocab_size": len(t5_tokenizer()), "d_model": 32, "d_kv": 8, "d_ff": 37}
    return hf.T5EncoderModel(hf.T5Config(**size, num_layers=1, num_heads=4))
