"""`assay.toml` of a folder of generations."""

from __future__ import annotations

import tomllib
from typing import Literal

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from benchmarks.errors import SubmitterError
from benchmarks.score_cells import check_metric_name
from evaluator.generation.rows import TABLE
from evaluator.generation.settings import Settings

FILE = "assay.toml"
MAX_BYTES = 64 * 1024


class GenerationsManifest(BaseModel):
    """What a folder of generations says about itself. Unknown keys are errors: mostly typos."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    kind: Literal["generations"] = "generations"
    name: str
    """Name of the model on the boards: letters, digits and . _ + -, at most 64."""
    version: str = Field(default="1", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,31}$")
    authors: tuple[str, ...] = Field(default=(), max_length=200)
    licence: str = Field(default="", max_length=200)
    """Of the weights, as their card names it; empty where that is not known."""
    description: str = Field(default="", max_length=4000)
    links: dict[str, str] = Field(default_factory=dict)
    model: str = ""
    """Hub id of the model, where there is one."""
    revision: str = ""
    benchmark: str = Field(default="", pattern=r"^[a-z0-9_]*$")
    """Whose prompts were drawn; empty for prompts of one's own."""
    benchmark_revision: str = ""
    seeds: tuple[int, ...] = ()
    images: str = TABLE
    """The table of images."""
    settings: Settings | None = None
    """How they were made, where `generate` made them."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Of the libraries, when the run last went on; each row has its own."""

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        try:
            return check_metric_name(value)
        except SubmitterError as error:
            raise ValueError(str(error)) from error

    @field_validator("links")
    @classmethod
    def _links(cls, value: dict[str, str]) -> dict[str, str]:
        for title, link in value.items():
            if not link.startswith(("https://", "http://")):
                raise ValueError(f"the link {title!r} must begin with https:// or http://")
        return value


def manifest_text(manifest: GenerationsManifest) -> bytes:
    """The manifest as TOML; keys that say nothing are left out."""
    values = manifest.model_dump(mode="json", exclude_none=True)
    return tomlkit.dumps({k: v for k, v in values.items() if v not in ("", [], {})}).encode()


def parse_generations(content: bytes) -> GenerationsManifest:
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
        values = tomllib.loads(content.decode("utf-8-sig"))
        return GenerationsManifest.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, p['loc']))}: {p['msg'].removeprefix('Value error, ')}"
            for p in error.errors()
        )
        raise SubmitterError(
            "bad_manifest",
            f"{FILE}: {problems}.",
            f"Known keys: {', '.join(GenerationsManifest.model_fields)}.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise SubmitterError(
            "bad_manifest", f"{FILE} is not TOML: {error}.", "Correct that line."
        ) from error
