"""Recipe: what a metric is trained on, how, and what becomes of it; the loop does the rest.

A recipe is a file of `recipes/` that defines `RECIPE`, a subclass of `Recipe`. Of its methods only those
that have a model may import torch, and they do so inside.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.errors import SubmitterError
from evaluator.training import recipes
from evaluator.training.data import TrainingData

if TYPE_CHECKING:
    from PIL import Image
    from torch import Tensor, nn


# Types carry the bounds, so that a recipe's own default keeps them.
Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


class TrainingSettings(BaseModel):
    """Hyperparameters that every recipe has; a recipe's own class sets its paper's values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: Count = 16
    """Examples that go through the model together."""
    accumulate: Count = 1
    """Batches whose gradients make a step."""
    epochs: Count = 1
    steps: Count | None = None
    """Steps in place of epochs."""
    rate: Positive = 1e-4
    """Highest learning rate."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    eps: Positive = 1e-8
    weight_decay: NotNegative = 0.01
    clip: Positive | None = 1.0
    """Norm that gradients are scaled down to; None: they are not."""
    warmup_steps: CountOrNone = 0
    held_out: Share = 0.1
    """Share of the clusters that is held out."""
    held_out_most: Count | None = None
    """Most clusters that are held out, since a large part takes long to measure; None: no bound."""
    keep: Literal["last", "best"] = "last"
    """Weights that are kept: the last, or the best by the headline on the held-out part, whose figure
    is then too high."""


@dataclass(frozen=True)
class Example:
    """A training example; `prompts` and `images` are all that the model is shown of it."""

    example_id: str
    prompts: tuple[str, ...]
    images: Mapping[str, Callable[[], bytes]]  # image id to what reads the encoded image
    # what the recipe's `collate` needs beside them: JSON values, arrays, and dataclasses of these
    content: Any = None
    made_of: tuple[str, ...] = ()  # texts that its images were made of, beside `prompts`


@dataclass(frozen=True)
class Examples:
    """The examples that a recipe makes of data, and how many it could not use, by the reason."""

    examples: tuple[Example, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Schedule:
    """Where a run is, for the learning rate."""

    step: int  # steps that are done
    steps: int  # of the whole run
    steps_per_epoch: int


@dataclass(frozen=True)
class ExportedModule:
    """What `Recipe.export` has to say for the manifest (`assay.toml`) of the files it wrote."""

    weights: str = "weights.safetensors"
    entry_point: str = "scorer:Scorer"
    range: tuple[float, float] | None = None
    licence: str = ""
    description: str = ""  # what the metric is, in a sentence or two
    models: tuple[str, ...] = ()  # public models of the Hub that it loads, as `owner/name@commit`
    card: str = ""  # more for the README, in Markdown


class Recipe(ABC):
    """How a kind of metric is trained."""

    name: ClassVar[str]
    """As it is called on the command line: small letters, digits and `-`."""
    summary: ClassVar[str]
    """One sentence: what is trained, on what, by which paper."""
    settings_class: ClassVar[type[TrainingSettings]] = TrainingSettings

    def __init__(self, settings: TrainingSettings | None = None) -> None:
        self.settings: Any = self.settings_class() if settings is None else settings

    @abstractmethod
    def examples(self, data: TrainingData) -> Examples:
        """The examples of the training part of data, in a fixed order.

        Raises:
            SubmitterError: `unfit_data`: the recipe cannot learn from data of this kind.
        """

    @abstractmethod
    def build(self, device: str) -> nn.Module:
        """The network, on the device; what is trained has `requires_grad`, all else is frozen.

        The generators of torch are seeded before.
        """

    def base(self) -> str:
        """What the network starts from: a commit, or a hash of weights; empty where from nothing."""
        return ""

    def base_trained_on(self) -> tuple[str, ...]:
        """Benchmarks that what the network starts from was trained on."""
        return ()

    @abstractmethod
    def collate(self, examples: Sequence[Example], rng: np.random.Generator) -> Any:
        """A batch for `losses`, on the CPU. All chance comes from `rng`."""

    @abstractmethod
    def losses(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        """Terms of the loss by name, scalars, means over the batch; `total` is minimised."""

    @abstractmethod
    def score(
        self, model: nn.Module, images: Sequence[Image.Image], prompts: Sequence[str]
    ) -> Sequence[float]:
        """A score for each pair, as the exported module gives it; called without gradients."""

    @abstractmethod
    def export(self, model: nn.Module, folder: Path) -> ExportedModule:
        """Write `scorer.py` and weights (safetensors) into a folder that is there."""

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Groups of parameters for AdamW, which may have settings of their own; all as a rule."""
        return [{"params": [one for one in model.parameters() if one.requires_grad]}]

    def rate(self, at: Schedule) -> float:
        """Learning rate of the next step as a share of each group's own; linear to 0 as a rule."""
        return linear(at, self.settings.warmup_steps)


def linear(at: Schedule, warmup: int = 0) -> float:
    """Rises to 1 in `warmup` steps, then falls to 0 in a line."""
    if at.step < warmup:
        return at.step / warmup
    return max(0.0, (at.steps - at.step) / max(1, at.steps - warmup))


def cosine(at: Schedule, warmup: int = 0) -> float:
    """Rises to 1 in `warmup` steps, then falls to 0 in half a cosine."""
    if at.step < warmup:
        return at.step / warmup
    return 0.5 * (1 + math.cos(math.pi * (at.step - warmup) / max(1, at.steps - warmup)))


@cache
def load_recipes() -> Mapping[str, type[Recipe]]:
    """Every recipe, by name: each module of `recipes/` defines `RECIPE`."""
    found = {recipe.name: recipe for recipe in _recipes()}
    return MappingProxyType(dict(sorted(found.items())))


def find_recipe(name: str) -> type[Recipe]:
    """Look a recipe up.

    Raises:
        SubmitterError: `unknown_recipe`.
    """
    known = load_recipes()
    if name not in known:
        raise SubmitterError(
            "unknown_recipe", f"There is no recipe {name!r}.", f"Known recipes: {', '.join(known)}."
        )
    return known[name]


def _recipes() -> Iterator[type[Recipe]]:
    for module in pkgutil.iter_modules(recipes.__path__, f"{recipes.__name__}."):
        recipe: type[Recipe] = importlib.import_module(module.name).RECIPE
        yield recipe
