"""Renames weights that LAVIS or BLIP code wrote to the names of `transformers`' modules.

Rules match whole names. A name that no rule knows is refused: a weight left out unseen would give
scores that look like scores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime

_SHOWN = 3


@dataclass(frozen=True)
class Renaming:
    r"""What becomes of each weight.

    Attributes:
        rules: (pattern, replacement) of whole names; the first that matches counts. `\1` stands
            for a group of the pattern.
        unused: patterns of weights that take no part in a score.
    """

    rules: tuple[tuple[str, str], ...]
    unused: tuple[str, ...] = ()

    def new_name(self, name: str) -> str | None:
        """The name of a weight here; None where it is unknown."""
        for pattern, replacement in self.rules:
            if found := re.fullmatch(pattern, name):
                return found.expand(replacement)
        return None

    def is_unused(self, name: str) -> bool:
        """Whether a weight takes no part in a score."""
        return any(re.fullmatch(pattern, name) for pattern in self.unused)

    def used(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights that take part, under their old names."""
        return {name: value for name, value in state.items() if not self.is_unused(name)}

    def renamed(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights that take part, under their new names.

        Raises:
            SubmitterError: `checkpoint_wrong_class`, naming weights that no rule knows.
        """
        names = {name: self.new_name(name) for name in self.used(state)}
        unknown = [name for name, new in names.items() if new is None]
        if unknown:
            raise SubmitterError(
                "checkpoint_wrong_class",
                f"The checkpoint holds weights that this metric has no place for: {_some(unknown)}.",
                "Is it the checkpoint of another model?",
            )
        return {new: state[name] for name, new in names.items() if new is not None}


def fuse_biases(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """EVA's query and value biases as one of queries, keys and values: [q, 0, v].

    Args:
        state: with `....qkv.q_bias` and `....qkv.v_bias` of shape (d,).

    Returns:
        The state with `....qkv.bias` of shape (3 d,) in their place.

    Raises:
        SubmitterError: `checkpoint_incomplete`, one of the two is missing.
    """
    fused = {
        name: value for name, value in state.items() if not name.endswith(("q_bias", "v_bias"))
    }
    for name in state:
        if not name.endswith(("q_bias", "v_bias")):
            continue
        layer = name[: -len("q_bias")]
        query, value = (weight(state, f"{layer}{which}_bias") for which in "qv")
        fused[f"{layer}bias"] = torch.cat([query, torch.zeros_like(query), value])
    return fused


def authors_file(row: ScorerRow, runtime: Runtime, role: str = "model") -> Source:
    """The file the authors published, or one that `models.convert` made of it.

    Raises:
        SubmitterError: `checkpoint_unsafe`, `checkpoint_missing`, ... as `resolve`.
    """
    own = runtime.folders.get(role)
    if own is None or own.is_dir():
        return resolve(row, runtime, role)
    by_path = row.checkpoints[role].model_copy(update={"file": ""})
    checkpoints = {**row.checkpoints, role: by_path}
    return resolve(row.model_copy(update={"checkpoints": checkpoints}), runtime, role)


def weight(state: Mapping[str, Tensor], name: str) -> Tensor:
    """One weight.

    Raises:
        SubmitterError: `checkpoint_incomplete`.
    """
    if name not in state:
        raise SubmitterError(
            "checkpoint_incomplete", f"The checkpoint lacks weights of the model: {name}."
        )
    return state[name]


def count_layers(state: Mapping[str, Tensor], pattern: str) -> int:
    """How many layers there are: one more than the greatest number that a pattern finds."""
    found = [int(match[1]) for name in state if (match := re.match(pattern, name))]
    return max(found, default=-1) + 1


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
