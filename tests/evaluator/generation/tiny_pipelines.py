"""Text-to-image pipelines of a few thousand random weights, 16 x 16 pixels, made without files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diffusers import AutoencoderKL
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPTextConfig, CLIPTokenizer, T5EncoderModel, T5Tokenizer

CLIP_TOKENS = 77
SIDE = 16


def sd15(*, with_checker: bool = False) -> Any:
    """Stable Diffusion 1.5 in small."""
    import torch
    from diffusers import PNDMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPImageProcessor, CLIPTextModel

    torch.manual_seed(0)
    tokenizer = clip_tokenizer()
    return StableDiffusionPipeline(
        vae=_vae(4),
        text_encoder=CLIPTextModel(_text_config(tokenizer, 16)),
        tokenizer=tokenizer,
        unet=UNet2DConditionModel(
            **_UNET,
            in_channels=4,
            out_channels=4,
            cross_attention_dim=16,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        ),
        scheduler=PNDMScheduler(skip_prk_steps=True, steps_offset=1),
        safety_checker=checker() if with_checker else None,
        feature_extractor=CLIPImageProcessor(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
        )
        if with_checker
        else None,
        requires_safety_checker=with_checker,
    )


def checker() -> StableDiffusionSafetyChecker:
    """A safety checker that finds nothing; `flag_all` turns it."""
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig

    config = CLIPConfig(
        vision_config={**_ENCODER, "hidden_size": 16, "image_size": 32, "patch_size": 16},
        text_config={**_ENCODER, "hidden_size": 16},
        projection_dim=16,
    )
    made = StableDiffusionSafetyChecker(config)
    made.concept_embeds_weights.data.fill_(10.0)  # a similarity is never above it
    made.special_care_embeds_weights.data.fill_(10.0)
    return made


def flag_all(pipe: Any) -> None:
    """Let the safety checker flag every image."""
    pipe.safety_checker.concept_embeds_weights.data.fill_(-10.0)


def sdxl() -> Any:
    """SDXL in small: two CLIP text encoders."""
    import torch
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    torch.manual_seed(0)
    tokenizer = clip_tokenizer()
    return StableDiffusionXLPipeline(
        vae=_vae(4),
        text_encoder=CLIPTextModel(_text_config(tokenizer, 16)),
        text_encoder_2=CLIPTextModelWithProjection(_text_config(tokenizer, 16)),
        tokenizer=tokenizer,
        tokenizer_2=clip_tokenizer(),
        unet=UNet2DConditionModel(
            **_UNET,
            in_channels=4,
            out_channels=4,
            cross_attention_dim=32,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=64,
        ),
        scheduler=EulerDiscreteScheduler(),
    )


def sd3() -> Any:
    """Stable Diffusion 3 in small: two CLIP text encoders and a T5."""
    import torch
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
    )
    from transformers import CLIPTextModelWithProjection

    torch.manual_seed(0)
    tokenizer = clip_tokenizer()
    return StableDiffusion3Pipeline(
        transformer=SD3Transformer2DModel(
            sample_size=SIDE,
            patch_size=1,
            in_channels=4,
            out_channels=4,
            num_layers=1,
            attention_head_dim=8,
            num_attention_heads=4,
            joint_attention_dim=32,
            caption_projection_dim=32,
            pooled_projection_dim=32,
            pos_embed_max_size=32,
        ),
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_vae(4),
        text_encoder=CLIPTextModelWithProjection(_text_config(tokenizer, 16)),
        tokenizer=tokenizer,
        text_encoder_2=CLIPTextModelWithProjection(_text_config(tokenizer, 16)),
        tokenizer_2=clip_tokenizer(),
        text_encoder_3=_t5(),
        tokenizer_3=t5_tokenizer(),
    )


def pixart() -> Any:
    """PixArt-Sigma in small: a T5 text encoder."""
    import torch
    from diffusers import DPMSolverMultistepScheduler, PixArtSigmaPipeline, PixArtTransformer2DModel

    torch.manual_seed(0)
    return PixArtSigmaPipeline(
        tokenizer=t5_tokenizer(),
        text_encoder=_t5(),
        vae=_vae(4),
        transformer=PixArtTransformer2DModel(
            sample_size=SIDE,
            num_layers=1,
            patch_size=2,
            in_channels=4,
            out_channels=8,
            num_attention_heads=2,
            attention_head_dim=8,
            cross_attention_dim=16,
            caption_channels=32,
            use_additional_conditions=False,
        ),
        scheduler=DPMSolverMultistepScheduler(),
    )


def clip_tokenizer() -> CLIPTokenizer:
    """Letters as tokens."""
    from transformers import CLIPTokenizer
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = list(bytes_to_unicode().values())
    pieces = [*letters, *(f"{letter}</w>" for letter in letters)]
    pieces += ["<|startoftext|>", "<|endoftext|>"]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    return CLIPTokenizer(vocab=vocab, merges=[], model_max_length=CLIP_TOKENS)


def t5_tokenizer() -> T5Tokenizer:
    """Letters as tokens."""
    from transformers import T5Tokenizer

    letters = "▁abcdefghijklmnopqrstuvwxyz0123456789,.-'"
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(letter, -1.0) for letter in letters]
    return T5Tokenizer(vocab=pieces, extra_ids=0)


_ENCODER: dict[str, Any] = {
    "intermediate_size": 37,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
}
_UNET: dict[str, Any] = {
    "sample_size": SIDE,
    "block_out_channels": (8, 16),
    "layers_per_block": 1,
    "norm_num_groups": 2,
    "attention_head_dim": 4,
}


def _vae(channels: int) -> AutoencoderKL:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8,),
        in_channels=3,
        out_channels=3,
        down_block_types=("DownEncoderBlock2D",),
        up_block_types=("UpDecoderBlock2D",),
        latent_channels=channels,
        norm_num_groups=2,
        shift_factor=0.0,
    )


def _text_config(tokenizer: CLIPTokenizer, width: int) -> CLIPTextConfig:
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        **_ENCODER,
        hidden_size=width,
        projection_dim=width,
        vocab_size=len(tokenizer),
        max_position_embeddings=CLIP_TOKENS,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def _t5() -> T5EncoderModel:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        vocab_size=len(t5_tokenizer()), d_model=32, d_kv=8, d_ff=37, num_layers=1, num_heads=4
    )
    return T5EncoderModel(config)
