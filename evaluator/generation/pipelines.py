"""Pipelines: loaded so that they draw the same image from the same seed each time."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from diffusers import AutoPipelineForText2Image, DiffusionPipeline
from diffusers.pipelines.auto_pipeline import AUTO_TEXT2IMAGE_PIPELINES_MAPPING
from diffusers.utils import logging as diffusers_logging
from PIL import Image
from transformers.utils import logging as transformers_logging

from benchmarks.errors import SubmitterError
from evaluator.generation.checkpoint import Checkpoint, pipeline_class
from evaluator.generation.manifest import Dtype, SafetyChecker
from evaluator.generation.prompts import Job
from evaluator.scoring.asking import OutOfMemoryError


@dataclass(frozen=True)
class LoadedPipeline:
    """A pipeline on its device, in evaluation mode."""

    pipe: Any  # of diffusers
    checkpoint: Checkpoint  # what it was loaded from, with its revision
    dtype: Dtype  # precision of the weights
    decoder_dtype: str  # precision of the VAE; empty where there is none, or it is `dtype`
    device: str  # as torch names it
    safety_checker: SafetyChecker  # whether images are looked at


def choose_device(name: str) -> str:
    """The device of a name; `auto` is a GPU where there is one."""
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
    """Load a pipeline."""
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


_NO_LIMIT = 10**6  # Tokenizers without a limit of their own say a number of thirty digits


@dataclass(frozen=True)
class Reader:
    """A tokenizer of a pipeline, and how many tokens of a prompt are read, its own marks included."""

    name: str
    tokenizer: Any
    limit: int

    def cuts(self, prompt: str) -> bool:
        """Whether the end of a prompt is left out."""
        tokens = self.tokenizer(prompt, truncation=False, verbose=False)["input_ids"]
        return len(tokens) > self.limit

    def __str__(self) -> str:
        return f"{self.name} ({self.limit} tokens)"


def readers(pipe: Any, arguments: Mapping[str, object]) -> Iterator[Reader]:
    """The tokenizers of a pipeline whose limit is known."""
    for name, component in pipe.components.items():
        if not name.startswith("tokenizer") or not hasattr(component, "model_max_length"):
            continue
        own = int(component.model_max_length)
        asked = arguments.get("max_sequence_length")
        is_clip = type(component).__name__.startswith("CLIP")
        limit = asked if isinstance(asked, int) and not is_clip else own
        if limit < _NO_LIMIT:
            yield Reader(name, component, limit)


# What allocators say that do not raise torch.OutOfMemoryError.
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")


@dataclass(frozen=True)
class Drawn:
    """What became of one job."""

    image: Image.Image | None  # None where it is withheld
    # why: `nsfw` (the safety checker blackened it) or `black` (every pixel is 0, as when a decoder
    # overflows); None where it is not
    problem: str | None
    nsfw: bool | None  # the safety checker's verdict; None where none ran
    noise_after: bytes  # state of its generator, for the image that continues the stream
    seconds: float  # its share of the batch's time


def draw(
    pipe: Any,
    jobs: Sequence[Job],
    arguments: Mapping[str, object],
    noise: Mapping[int, bytes] | None = None,
) -> list[Drawn]:
    """Draw a batch.

    Each image has a generator of its own, on the CPU: its noise depends neither on the batch nor
    on the device.
    """
    generators = [_generator(job.seed, (noise or {}).get(job.seed)) for job in jobs]
    started = time.perf_counter()
    output = _call(pipe, [job.prompt.text for job in jobs], generators, arguments)
    images = _images(output, len(jobs))
    seconds = (time.perf_counter() - started) / len(jobs)
    flags = getattr(output, "nsfw_content_detected", None) or [None] * len(jobs)
    return [
        _drawn(image, flag, generator, seconds)
        for image, flag, generator in zip(images, flags, generators, strict=True)
    ]


def _generator(seed: int, state: bytes | None) -> torch.Generator:
    generator = torch.Generator("cpu").manual_seed(seed)
    if state is not None:
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator


def _call(
    pipe: Any,
    prompts: list[str],
    generators: list[torch.Generator],
    arguments: Mapping[str, object],
) -> Any:
    given = dict(arguments)
    negative = given.get("negative_prompt")
    if isinstance(negative, str):
        # Some pipelines want as many negative prompts as prompts.
        given["negative_prompt"] = [negative] * len(prompts)
    try:
        with torch.inference_mode():
            return pipe(prompt=prompts, generator=generators, output_type="pil", **given)
    except torch.OutOfMemoryError as error:
        raise OutOfMemoryError(str(error)) from error
    except RuntimeError as error:
        if any(words in str(error).lower() for words in _OUT_OF_MEMORY):
            raise OutOfMemoryError(str(error)) from error
        raise
    except (ValueError, TypeError) as error:
        raise SubmitterError(
            "pipeline_refused",
            f"{type(pipe).__name__} refuses these settings: {error}",
            "Change them with --width, --height, --steps, --guidance or --set.",
        ) from error


def _images(output: Any, wanted: int) -> list[Image.Image]:
    images = getattr(output, "images", None)
    if (
        not isinstance(images, list)
        or len(images) != wanted
        or not all(isinstance(image, Image.Image) for image in images)
    ):
        raise SubmitterError(
            "not_text_to_image",
            f"The pipeline did not give one image for each of {wanted} prompts.",
            "Name a text-to-image model.",
        )
    return images


def _drawn(
    image: Image.Image, flag: bool | None, generator: torch.Generator, seconds: float
) -> Drawn:
    nsfw = None if flag is None else bool(flag)
    rgb = image.convert("RGB")
    is_black = rgb.getbbox() is None  # the box of what is not 0
    problem = "nsfw" if nsfw else "black" if is_black else None
    state = generator.get_state().numpy().tobytes()
    return Drawn(None if problem else rgb, problem, nsfw, state, seconds)
