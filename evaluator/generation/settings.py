"""Settings of a run: all that makes two images of the same prompt and seed the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluator.generation.rows import SeedMode

Dtype = Literal["float32", "bfloat16", "float16"]
"""Precision of weights and arithmetic."""
Scalar = bool | int | float | str
SafetyChecker = Literal["on", "off", "none"]
"""`none`: the checkpoint has none, so nothing is known about its images."""


class Settings(BaseModel):
    """The settings of one folder; the whole of it is kept in its manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    """Hub id, or the name of the operator's own folder."""
    revision: str
    """Commit on the Hub; `sha256:...` over the files of a folder of the operator's own."""
    variant: str = ""
    """Which of several files of the same weights, e.g. `fp16`."""
    pipeline: str
    """Class of diffusers."""
    scheduler: str
    """Its class; what it is configured with belongs to the checkpoint."""
    recipe: str = ""
    """Name in the table of recipes; empty: the pipeline's own defaults."""
    seed_mode: SeedMode = "per_image"
    dtype: str
    """Precision of the weights."""
    decoder_dtype: str = ""
    """Precision of the VAE, where it differs."""
    device: str
    """`cpu`, `cuda`, `mps`: arithmetic differs between them."""
    safety_checker: SafetyChecker
    call: dict[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """Every argument of the pipeline's call that is a plain value, defaults spelt out."""


def differences(there: Settings, now: Settings) -> Iterator[str]:
    """What differs, in words: `num_inference_steps: 28 there, 20 now`."""
    before, after = _flat(there), _flat(now)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'unset')} there, {after.get(name, 'unset')} now"


def _flat(settings: Settings) -> dict[str, object]:
    # Which recipe the values came from changes no image.
    values = settings.model_dump(exclude={"call", "recipe"})
    return {**values, **settings.call}
