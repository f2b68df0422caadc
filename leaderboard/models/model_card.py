"""Model card of a submission of generations, and the findings in its images."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Selection = Literal["first", "best_of"]
"""How the image of a prompt and seed came about: the first one drawn, or the best of several."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelCard(_Frozen):
    """How the images were made, as the model's developer declares it; None and empty: not said."""

    model: str = ""
    """Hub id of the model."""
    revision: str = ""
    """Its commit."""
    parameters: int | None = Field(default=None, ge=1)
    """Number of weights."""
    steps: int | None = Field(default=None, ge=1)
    """Denoising steps."""
    guidance: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Guidance scale."""
    drawn_on: str = Field(default="", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    """Date, as YYYY-MM-DD: a service behind an address changes under one name."""
    selection: Selection = "first"
    best_of: int | None = Field(default=None, ge=2)
    """Of how many images the best was taken, where `selection` is `best_of`."""
    selected_by: str = Field(default="", max_length=200)
    """What took the best: a person, or the metric by its name."""


class SharedImages(_Frozen):
    """Images that are, to the eye, those of another submission: a flag, not a verdict."""

    submission_id: str
    n_images: int = Field(ge=1)
    examples: tuple[tuple[str, int], ...] = ()
    """Prompt id and seed of a few, here."""


class ImagesSeen(_Frozen):
    """What the images of a submission are.

    Counts are of (prompt, seed) combinations of its prompt set.
    """

    prompt_set: str
    revision: str
    """Of the prompt set."""
    seeds: tuple[int, ...]
    wanted: int
    present: int
    withheld: dict[str, int] = Field(default_factory=dict)
    """Reason to the number of images its maker withheld, e.g. `nsfw`."""
    n_bytes: int = 0
    sizes: dict[str, int] = Field(default_factory=dict)
    """`512x512` to the number of images of that size."""
    shared: tuple[SharedImages, ...] = ()
