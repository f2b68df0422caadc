"""`assay.toml` of a folder of generations; its name is the model's, its licence the weights'."""

from __future__ import annotations

from typing import Literal

import tomlkit
from pydantic import Field

from evaluator.generation.rows import TABLE
from evaluator.generation.settings import Settings
from evaluator.manifest import NamedManifest, read_manifest


class GenerationsManifest(NamedManifest):
    """What a folder of generations says about itself."""

    kind: Literal["generations"] = "generations"
    model: str = ""
    """Hub id of the model, where there is one."""
    revision: str = ""
    """Its commit; `sha256:...` over the files of a folder of the operator's own."""
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


def manifest_text(manifest: GenerationsManifest) -> bytes:
    """The manifest as TOML, its kind first; keys that say nothing are left out."""
    values = {"kind": manifest.kind, **manifest.model_dump(mode="json", exclude_none=True)}
    return tomlkit.dumps({k: v for k, v in values.items() if v not in ("", [], {})}).encode()


def parse_generations(content: bytes) -> GenerationsManifest:
    """Read a manifest.

    Raises:
        SubmitterError: `bad_manifest`, listing every problem with its key.
    """
    return read_manifest(content, GenerationsManifest)
