"""`assay.toml`, the manifest of a scoring module."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import ValidationInfo, field_validator

from benchmarks.schema import Method
from evaluator.manifest import NamedManifest, read_manifest

_ENTRY_POINT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*")
_BENCHMARK = re.compile(r"[a-z0-9_]+")
_MODEL = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95})@[0-9a-f]{40}"
)
_NOT_IN_REPOSITORIES = ("--", "..")
MAX_MODELS = 8
LEAST_FLOPS, MOST_FLOPS = 1.0, 1e21
"""Of one pair. No scorer lies outside, and a number that does would flatten everybody's chart."""


class Manifest(NamedManifest):
    """What a scoring module says about itself.

    Weights come bundled (`weights`), or as public models of the Hub that are fetched before the
    box starts, since it has no network:

        models = ["openai/clip-vit-base-patch32@3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"]

    The constructor is given their folders as `models`, a dictionary by `owner/name`; libraries
    that load by `owner/name` find them as well.
    """

    entry_point: str = "scorer:Scorer"
    """`module:Class` inside the archive."""
    method: Method = "score"
    """Method that is asked: `score`, a number for an image and a prompt; or `compare`, a margin for
    two images of a prompt, in both orders."""
    weights: str = ""
    """Bundled safetensors file, given to the constructor as `weights`."""
    direction: Literal["higher_is_better", "lower_is_better"] = "higher_is_better"
    range: tuple[float, float] | None = None
    """Smallest and largest score the module can give, where it has bounds."""
    trained_on: tuple[str, ...] = ()
    """Benchmarks whose data the scorer was trained or tuned on; they need not be known here."""
    flops_per_pair: float | None = None
    """Floating-point operations of scoring one pair, such as 9.9e10, counted by its author (a
    multiplication with its addition is two; where it depends on the prompt, one of 20 tokens). It is
    shown as declared, not measured."""
    models: tuple[str, ...] = ()
    """Public models of the Hub that it loads, each as `owner/name@commit` with the forty digits of
    the commit; at most eight."""
    environment: str = ""
    """One of the operator's environments, in place of Assay's own packages; a metric may bring a
    `requirements.lock` instead."""
    benchmarks: tuple[str, ...] = ()
    """Benchmarks to be run on; empty means all whose images are at hand."""

    @field_validator("entry_point")
    @classmethod
    def _entry_point(cls, value: str) -> str:
        if not _ENTRY_POINT.fullmatch(value):
            raise ValueError("must be module:Class, for example scorer:Scorer")
        return value

    @field_validator("weights")
    @classmethod
    def _weights(cls, value: str) -> str:
        if value and not value.endswith(".safetensors"):
            raise ValueError("must be a .safetensors file inside the archive")
        return value

    @field_validator("range", mode="before")
    @classmethod
    def _range(cls, value: object) -> object:
        # As written, since pydantic speaks of tuples and of missing items.
        if value is None or (isinstance(value, list | tuple) and _is_range(value)):
            return value
        raise ValueError("must be two finite numbers in a list, the smaller one first")

    @field_validator("direction", "range")
    @classmethod
    def _of_scores(cls, value: object, found: ValidationInfo) -> object:
        if found.data.get("method") == "compare":
            raise ValueError(
                'is of scores; with method = "compare" a positive number says that the first image '
                "is better"
            )
        return value

    @field_validator("trained_on")
    @classmethod
    def _trained_on(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _BENCHMARK.fullmatch(name):
                raise ValueError(
                    f"{name[:80]!r} is not a benchmark's name (small letters, digits and _)"
                )
        return value

    @field_validator("flops_per_pair", mode="before")
    @classmethod
    def _flops(cls, value: object) -> object:
        # As written, since pydantic would take true for 1 and read numbers in strings.
        if value is None:
            return value
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        if LEAST_FLOPS <= number <= MOST_FLOPS:
            return number
        raise ValueError(
            f"must be a number from {LEAST_FLOPS:g} to {MOST_FLOPS:g}: the floating-point "
            "operations of scoring one pair"
        )

    @field_validator("benchmarks")
    @classmethod
    def _benchmarks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if value.count(name) > 1:
                raise ValueError(f"{name[:80]!r} is named more than once")
        return value

    @field_validator("models")
    @classmethod
    def _models(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > MAX_MODELS:
            raise ValueError(f"names {len(value)} models; {MAX_MODELS} are fetched at most")
        repositories = [_repository(model) for model in value]
        for repository in repositories:
            if repositories.count(repository) > 1:
                raise ValueError(f"{repository!r} is named more than once")
        return value

    @property
    def flops_of_metrics(self) -> dict[str, float]:
        """What it declares of its one metric, as records keep it; empty where it does not."""
        return {} if self.flops_per_pair is None else {self.name: self.flops_per_pair}

    @property
    def module_file(self) -> str:
        """The file the entry point is imported from."""
        return f"{self.entry_point.partition(':')[0]}.py"


def _is_range(value: Sequence[object]) -> bool:
    numbers = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(value) != 2 or len(numbers) != 2:
        return False
    return all(math.isfinite(v) for v in numbers) and numbers[0] < numbers[1]


def _repository(model: str) -> str:
    found = _MODEL.fullmatch(model)
    if found is None or any(part in found[1] for part in _NOT_IN_REPOSITORIES):
        raise ValueError(
            f"{model[:200]!r} is not owner/name@commit, with all forty digits of the commit (the "
            "page of a model's files on the Hub shows it under History)"
        )
    return found[1]


def parse_manifest(content: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        SubmitterError: `bad_manifest`, listing every problem with its key.
    """
    return read_manifest(content, Manifest)
