"""`assay.toml`: what the manifests of scoring modules and of generations have in common."""

from __future__ import annotations

import tomllib
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from benchmarks.errors import SubmitterError
from benchmarks.score_cells import check_metric_name

FILE = "assay.toml"
MAX_BYTES = 64 * 1024
_ALLOWED_LINKS = ("https://", "http://")


class NamedManifest(BaseModel):
    """What is named, and by whom. Unknown keys are errors: they are mostly typos."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    name: str
    """Name on the boards: letters, digits and . _ + -, at most 64."""
    version: str = Field(default="1", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,31}$")
    authors: tuple[str, ...] = Field(default=(), max_length=200)
    licence: str = Field(default="", max_length=200)
    """As its authors name it; empty where that is not known."""
    description: str = Field(default="", max_length=4000)
    links: dict[str, str] = Field(default_factory=dict)
    """Title to web address."""

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
            if not link.startswith(_ALLOWED_LINKS):
                raise ValueError(f"the link {title!r} must begin with https:// or http://")
        return value


M = TypeVar("M", bound=NamedManifest)


def read_manifest(content: bytes, kind: type[M]) -> M:
    """Read a manifest.

    Raises:
        SubmitterError: `bad_manifest`, listing every problem with its key.
    """
    if len(content) > MAX_BYTES:
        raise SubmitterError(
            "bad_manifest", f"{FILE} has more than {MAX_BYTES // 1024} kB.", "Shorten it."
        )
    values = _toml(content)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in p['loc'])}: {_plain(p['msg'])}"
            for p in error.errors()
        )
        raise SubmitterError(
            "bad_manifest",
            f"{FILE}: {problems}.",
            f"Known keys: {', '.join(kind.model_fields)}.",
        ) from error


def _toml(content: bytes) -> dict[str, Any]:
    try:
        # Windows editors put a byte order mark in front, which TOML does not know.
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # Besides syntax errors: bad UTF-8, numbers of thousands of digits, brackets too deep.
        raise SubmitterError(
            "bad_manifest", f"{FILE} is not TOML: {error}.", "Correct that line and send it again."
        ) from error


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").rstrip(".")
