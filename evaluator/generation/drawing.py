"""Draws a batch of images, each from noise of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.generation.plan import Job
from evaluator.scoring.asking import OutOfMemoryError

# What allocators say that do not raise torch.OutOfMemoryError.
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")


@dataclass(frozen=True)
class Drawn:
    """What became of one job.

    Attributes:
        image: None where it is withheld.
        problem: why: `nsfw` (the safety checker blackened it) or `black` (every pixel is 0, as
            when a decoder overflows); None where it is not.
        nsfw: the safety checker's verdict; None where none ran.
        noise_after: state of its generator, for the image that continues the stream.
        seconds: its share of the batch's time.
    """

    image: Image.Image | None
    problem: str | None
    nsfw: bool | None
    noise_after: bytes
    seconds: float


def draw(
    pipe: Any,
    jobs: Sequence[Job],
    arguments: Mapping[str, object],
    noise: Mapping[int, bytes] | None = None,
) -> list[Drawn]:
    """Draw a batch.

    Each image has a generator of its own, on the CPU: its noise depends neither on the batch nor
    on the device.

    Args:
        pipe: of diffusers.
        jobs: of the batch.
        arguments: of the pipeline's call.
        noise: seed to the state of a generator to go on from; other seeds begin anew.

    Raises:
        OutOfMemoryError: the batch does not fit.
        SubmitterError: `pipeline_refused` (arguments it cannot take), `not_text_to_image`.
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
    problem = "nsfw" if nsfw else "black" if _is_black(rgb) else None
    state = generator.get_state().numpy().tobytes()
    return Drawn(None if problem else rgb, problem, nsfw, state, seconds)


def _is_black(image: Image.Image) -> bool:
    return image.getbbox() is None  # the box of what is not 0
