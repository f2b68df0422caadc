"""`assay.toml`, the manifest of a scoring module."""

from __future__ import annotations

import math
import re
from typing import Literal

from pydantic import field_validator

from evaluator.manifest import NamedManifest, read_manifest

_ENTRY_POINT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*")
_BENCHMARK = re.compile(r"[a-z0-9_]+")


class Manifest(NamedManifest):
    """What a scoring module says about itself."""

    entry_point: str = "scorer:Scorer"
    """`module:Class` inside the archive."""
    weights: str = ""
    """Bundled safetensors file, given to the constructor as `weights`."""
    direction: Literal["higher_is_better", "lower_is_better"] = "higher_is_better"
    range: tuple[float, float] | None = None
    """Smallest and largest score the module can give, where it has bounds."""
    trained_on: tuple[str, ...] = ()
    """Benchmarks whose data the scorer was trained or tuned on; they need not be known here."""
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

    @field_validator("range")
    @classmethod
    def _range(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value and not (all(math.isfinite(v) for v in value) and value[0] < value[1]):
            raise ValueError("must be two finite numbers, the smaller one first")
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

    @field_validator("benchmarks")
    @classmethod
    def _benchmarks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if value.count(name) > 1:
                raise ValueError(f"{name[:80]!r} is named more than once")
        return value

    @property
    def module_file(self) -> str:
        """The file the entry point is imported from."""
        return f"{self.entry_point.partition(':')[0]}.py"


def parse_manifest(content: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        SubmitterError: `bad_manifest`, listing every problem with its key.
    """
    return read_manifest(content, Manifest)
