"""`assay.toml`, the manifest of a scoring module."""

from __future__ import annotations

import math
import re
import tomllib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from benchmarks.errors import SubmitterError
from benchmarks.score_cells import check_metric_name

FILE = "assay.toml"
MAX_BYTES = 64 * 1024
_ENTRY_POINT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*")
_BENCHMARK = re.compile(r"[a-z0-9_]+")
_ALLOWED_LINKS = ("https://", "http://")


class Manifest(BaseModel):
    """What a scoring module says about itself. Unknown keys are errors: they are mostly typos."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    name: str
    """Name on the boards: letters, digits and . _ + -, at most 64."""
    version: str = Field(default="1", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,31}$")
    authors: tuple[str, ...] = Field(default=(), max_length=200)
    licence: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=4000)
    links: dict[str, str] = Field(default_factory=dict)
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

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        try:
            return check_metric_name(value)
        except SubmitterError as error:
            raise ValueError(str(error)) from error

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

    @field_validator("links")
    @classmethod
    def _links(cls, value: dict[str, str]) -> dict[str, str]:
        for title, link in value.items():
            if not link.startswith(_ALLOWED_LINKS):
                raise ValueError(f"the link {title!r} must begin with https:// or http://")
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
    if len(content) > MAX_BYTES:
        raise SubmitterError(
            "bad_manifest", f"{FILE} has more than {MAX_BYTES // 1024} kB.", "Shorten it."
        )
    try:
        # Windows editors put a byte order mark in front, which TOML does not know.
        values: dict[str, Any] = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # Besides syntax errors: bad UTF-8, numbers of thousands of digits, brackets too deep.
        raise SubmitterError(
            "bad_manifest", f"{FILE} is not TOML: {error}.", "Correct that line and send it again."
        ) from error
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in p['loc'])}: {_plain(p['msg'])}"
            for p in error.errors()
        )
        raise SubmitterError(
            "bad_manifest",
            f"{FILE}: {problems}.",
            f"Known keys: {', '.join(Manifest.model_fields)}.",
        ) from error


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").rstrip(".")
