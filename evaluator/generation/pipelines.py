"""Loads a pipeline so that it draws the same image from the same seed each time."""

from __future__ import annotations

import gc
import logging
from dataclasses import dataclass
from typing import Any

import torch
from diffusers import AutoPipelineForText2Image, DiffusionPipeline, ModelMixin
from diffusers.pipelines.auto_pipeline import AUTO_TEXT2IMAGE_PIPELINES_MAPPING
from diffusers.utils import logging as diffusers_logging
from transformers.utils import logging as transformers_logging

from benchmarks.errors import SubmitterError
from evaluator.generation.checkpoint import Checkpoint
from evaluator.generation.pipeline_class import pipeline_class
from evaluator.generation.settings import Dtype, SafetyChecker


@dataclass(frozen=True)
class LoadedPipeline:
    """A pipeline on its device, in evaluation mode.

    Attributes:
        pipe: of diffusers.
        checkpoint: what it was loaded from, with its revision.
        dtype: precision of the weights.
        decoder_dtype: precision of the VAE; empty where there is none, or it is `dtype`.
        device: as torch names it.
        safety_checker: whether images are looked at.
    """

    pipe: Any
    checkpoint: Checkpoint
    dtype: Dtype
    decoder_dtype: str
    device: str
    safety_checker: SafetyChecker


def choose_device(name: str) -> str:
    """The device of a name; `auto` is a GPU where there is one.

    Raises:
        SubmitterError: `no_device`.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SubmitterError(
            "no_device",
            f"The device {name!r} cannot be used: {str(error).splitlines()[0]}",
            "Use --device auto, cpu or cuda.",
        ) from error
    return name


def load_pipeline(
    checkpoint: Checkpoint,
    *,
    device: str,
    dtype: Dtype,
    variant: str = "",
    allow_pickle: bool = False,
    safety_checker: bool = True,
) -> LoadedPipeline:
    """Load a pipeline.

    Args:
        checkpoint: from `locate`.
        device: from `choose_device`.
        dtype: precision of the weights and of the arithmetic.
        variant: which of several files of the same weights.
        allow_pickle: whether weights that are not safetensors may be used.
        safety_checker: False takes away the one the checkpoint has.

    Raises:
        SubmitterError: `not_text_to_image`, `checkpoint_malformed`.
    """
    found = pipeline_class(checkpoint)
    automatic = found in AUTO_TEXT2IMAGE_PIPELINES_MAPPING.values()
    loader = AutoPipelineForText2Image if automatic else DiffusionPipeline
    try:
        pipe = loader.from_pretrained(
            str(checkpoint.folder),
            dtype=getattr(torch, dtype),
            variant=variant or None,
            use_safetensors=None if allow_pickle else True,
            local_files_only=True,
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SubmitterError(
            "checkpoint_malformed",
            f"{checkpoint.name} cannot be loaded as a {found.__name__}: {error}",
            "Check its files and --variant; weights must be safetensors unless --allow-pickle "
            "is given.",
        ) from error
    _set_dtype(pipe, getattr(torch, dtype))
    pipe.to(device)
    checker = _set_checker(pipe, wanted=safety_checker)
    prepare(pipe)
    return LoadedPipeline(
        pipe, checkpoint.identified(), dtype, _decoder_dtype(pipe, dtype), device, checker
    )


def prepare(pipe: Any) -> None:
    """Make a pipeline repeatable and quiet, and its decoder exact enough.

    Pipelines that were put together in memory are in training mode, in which text encoders drop
    units at random.
    """
    for component in pipe.components.values():
        if isinstance(component, torch.nn.Module):
            component.eval()
    pipe.set_progress_bar_config(disable=True)
    _raise_decoder(pipe)


def quieten() -> None:
    """Stop the libraries' own bars and warnings on this process's terminal.

    What matters of them, such as prompts that are cut off, is said in the table.
    """
    diffusers_logging.set_verbosity_error()
    diffusers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)


def free_memory() -> None:
    """Give back what a call that ran out of memory left behind."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _set_dtype(pipe: Any, dtype: torch.dtype) -> None:
    """Bring every model to the precision that was asked for.

    Without accelerate, diffusers leaves some in float32 (the transformer of SD3, for one), which
    then cannot take the others' output. Text encoders see to it themselves: some of their layers
    stay in float32 on purpose.
    """
    for component in pipe.components.values():
        is_own: bool = isinstance(component, ModelMixin)  # of diffusers
        if is_own and not component._keep_in_fp32_modules:
            component.to(dtype)


def _set_checker(pipe: Any, *, wanted: bool) -> SafetyChecker:
    if getattr(pipe, "safety_checker", None) is None:
        return "none"
    if wanted:
        return "on"
    pipe.safety_checker = None
    pipe.register_to_config(requires_safety_checker=False)
    return "off"


def _raise_decoder(pipe: Any) -> None:
    """Run a VAE that overflows in half precision (`force_upcast`) in single precision.

    Pipelines with an `upcast_vae` do so themselves, around each decoding.
    """
    vae: Any = getattr(pipe, "vae", None)
    if not _overflows(vae) or hasattr(pipe, "upcast_vae"):
        return
    vae.to(torch.float32)
    decode = vae.decode

    def decode_exactly(z: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return decode(z.to(torch.float32), *args, **kwargs)

    vae.decode = decode_exactly


def _decoder_dtype(pipe: Any, dtype: Dtype) -> str:
    vae = getattr(pipe, "vae", None)
    if vae is None:
        return ""
    own = "float32" if _overflows(vae) else str(vae.dtype).removeprefix("torch.")
    return "" if own == dtype else own


def _overflows(vae: Any) -> bool:
    return (
        vae is not None
        and vae.dtype == torch.float16
        and bool(getattr(vae.config, "force_upcast", False))
    )
