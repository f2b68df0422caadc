"""A recipe that learns how bright an image is, in a network with dropout, batch norm and a frozen part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.training.loop import Prepared
from evaluator.training.recipe import (
    Example,
    Examples,
    ExportedModule,
    Recipe,
    TrainingSettings,
)


class ToySettings(TrainingSettings):
    batch: int = 3
    accumulate: int = 2
    epochs: int = 3
    rate: float = 0.05
    warmup_steps: int = 2
    dropout: float = 0.3


class ToyRecipe(Recipe):
    name = "toy"
    summary = "Learns a line."
    settings_class = ToySettings

    def __init__(self, settings: TrainingSettings | None = None) -> None:
        super().__init__(settings)
        self.seen: list[str] = []

    def examples(self, data: Any) -> Examples:
        raise NotImplementedError

    def build(self, device: str) -> Any:
        from torch import nn

        model = nn.Sequential(
            nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(self.settings.dropout), nn.Linear(4, 1)
        )
        model[0].requires_grad_(False)
        return model.to(device)

    def collate(self, examples: Sequence[Example], rng: np.random.Generator) -> Any:
        import torch

        self.seen += [one.example_id for one in examples]
        values = np.array([one.content for one in examples], np.float32)
        return torch.from_numpy(values + 0.1 * rng.standard_normal(values.shape, np.float32))

    def losses(self, model: Any, batch: Any) -> dict[str, Any]:
        off = model(batch)[:, 0] - batch.sum(1)
        return {"squared": (off**2).mean(), "total": (off**2).mean() + 0.1 * off.abs().mean()}

    def score(self, model: Any, images: Any, prompts: Any) -> Sequence[float]:
        raise NotImplementedError

    def export(self, model: Any, folder: Path) -> ExportedModule:
        raise NotImplementedError


def toy_run(n: int = 20, **settings: Any) -> tuple[ToyRecipe, Prepared]:
    """The recipe and n examples, (0, 1), (1, 2), and so on, in steps of a tenth."""
    examples = tuple(
        Example(f"e{i}", (f"prompt {i}",), {}, content=(i / 10, (i + 1) / 10)) for i in range(n)
    )
    return ToyRecipe(ToySettings(**settings)), Prepared(examples, None, f"toy {n}")


def same_weights(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether all weights are equal, bit by bit."""
    import torch

    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class Killed(BaseException):
    """What no handler may catch, like a signal."""


def killed_at(call: int, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which is killed at its nth call from now on."""
    calls = iter(range(1, call))

    def run(*words: Any, **named: Any) -> Any:
        if next(calls, None) is None:
            raise Killed
        return method(*words, **named)

    return run
