"""A row of the table of metrics, as its file holds it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluator.scorers.runtime import Dtype

Granularity = Literal["overall", "elements", "questions"]


class Frozen(BaseModel):
    """Base of rows and of families' options: unknown keys are mostly typos, so they are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Checkpoint(Frozen):
    """Weights on the Hub."""

    id: str
    """Repository, `owner/name`; a path of a folder stands for itself."""
    revision: str = ""
    """Commit. Empty: the one found when it is first fetched here, which is then kept to."""
    file: str = ""
    """One file of the repository, where it is not laid out as a `transformers` checkpoint."""
    weights: bool = True
    """False where only its configuration, vocabulary or image processor is used."""
    pattern: str = ""
    """Names of its weight files, where a repository holds several layouts of the same weights."""
    licence: str = ""
    """Of the weights; empty: not verified."""


class ScorerRow(Frozen):
    """One metric."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=64)
    """On boards and on the command line."""
    family: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """File in `families/`."""
    title: str
    summary: str
    """One sentence: what it asks and what its number is."""
    formula: str
    """The score, exactly."""
    source: str
    """Paper, section or table, or the code it follows."""
    checkpoints: dict[str, Checkpoint] = Field(default_factory=dict)
    """By role; most families read only `model`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What the family's `Options` says."""
    low: float | None = None
    """Smallest possible score; None where unbounded."""
    high: float | None = None
    higher_is_better: bool = True
    granularity: tuple[Granularity, ...] = ("overall",)
    dtype: Dtype = "float32"
    """Precision of the authors' figures, and the default here."""
    trained_on: tuple[str, ...] = ()
    """Benchmarks whose data it was trained or tuned on."""
    parameters: float | None = None
    """Weights that take part, in units."""
    flops_per_pair: float | None = None
    """Of one forward pass; where its cost depends on the prompt, of a prompt of 20 tokens."""
    notes: tuple[str, ...] = ()
    """What changes the number and is easily overlooked."""
