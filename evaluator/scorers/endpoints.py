"""Endpoints of models: which the operator names, what they cost, and what may be spent there.

The file is TOML, named by the setting `endpoints`:

    [[endpoint]]
    name = "openai"
    address = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    budget_usd = 25.0

    [endpoint.models."gpt-4o-2024-11-20"]
    input_usd = 2.5
    output_usd = 10.0

    [endpoint.image_models."gpt-image-1"]
    image_usd = { "low 1024x1024" = 0.011, "medium 1024x1024" = 0.042 }

Keys never stand in it: they are read from the environment, and only where they are used.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from benchmarks.errors import SubmitterError
from benchmarks.settings.model import value_of

EXAMPLE = "docs/built-in-metrics.md shows one."
_LONGEST_KEY = 10_000

_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EndpointModel(_Strict):
    """A chat model of an endpoint."""

    input_usd: _Usd
    """Price of a million tokens that it reads, images included."""
    output_usd: _Usd
    """Price of a million tokens that it writes."""
    answers_as: tuple[str, ...] = ()
    """Names that its replies may carry beside its own; any other means that it was exchanged."""

    def usd(self, read: int, written: int) -> float:
        """Price of a request by its tokens."""
        return (read * self.input_usd + written * self.output_usd) / 1e6


class EndpointImageModel(_Strict):
    """An image model of an endpoint."""

    image_usd: _Usd | dict[str, _Usd]
    """Price of an image; or prices by quality and size as they are asked for: `low 1024x1024`."""
    takes_seed: bool = False
    """Whether it takes a `seed`; where not, an image is one draw and cannot be had again."""
    response_format: Literal["b64_json", "url", ""] = "b64_json"
    """In what form images are asked for; empty: the parameter is not sent."""

    def usd(self, quality: str, size: str) -> float:
        """Price of an image.

        Raises:
            SubmitterError: `image_price_missing`.
        """
        if isinstance(self.image_usd, float):
            return self.image_usd
        asked = f"{quality} {size}".strip()
        if asked not in self.image_usd:
            raise SubmitterError(
                "image_price_missing",
                f"The file of endpoints has no price for {asked or 'no quality and no size'!r}, "
                f"but for {', '.join(map(repr, self.image_usd)) or 'nothing'}.",
                "Add it to image_usd of the model, or ask for another quality or size.",
            )
        return self.image_usd[asked]

    @property
    def free(self) -> bool:
        """Whether no image costs anything."""
        prices = self.image_usd.values() if isinstance(self.image_usd, dict) else [self.image_usd]
        return not any(prices)


class Endpoint(_Strict):
    """A server that speaks OpenAI's protocol of chat completions, or of images."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=64)
    """As rows of metrics call it."""
    address: str = Field(pattern=r"^https?://[^\s?#@]+$")
    """What `/chat/completions` and `/images/generations` are added to, as in `https://host/v1`."""
    key_variable: str = Field(default="", pattern=r"^[A-Z][A-Z0-9_]*$|^$")
    """Variable of the environment that holds the key; empty for a server that asks for none."""
    budget_usd: float = Field(ge=0, allow_inf_nan=False)
    """What all requests together may cost, those of earlier runs included."""
    models: dict[str, EndpointModel] = Field(default_factory=dict)
    """Chat models by their ids."""
    image_models: dict[str, EndpointImageModel] = Field(default_factory=dict)
    """Image models by their ids."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """Requests under way at the same time."""
    requests_per_minute: float = Field(default=600.0, gt=0)
    timeout_s: float = Field(default=120.0, gt=0, le=3600)
    """Of one request."""
    attempts: int = Field(default=6, ge=1, le=20)
    """Of one request, where the endpoint is busy or away; an unreadable answer is asked for twice."""
    replies: Path = Path("replies.sqlite")
    """File in which every reply is kept; beside the file of endpoints where it is relative."""

    @field_validator("address")
    @classmethod
    def _without_end(cls, address: str) -> str:
        return address.rstrip("/")

    @model_validator(mode="after")
    def _has_models(self) -> Self:
        if not self.models and not self.image_models:
            raise ValueError("it has neither models nor image_models")
        return self

    @property
    def free(self) -> bool:
        """Whether nothing costs anything there."""
        return all(one.usd(1, 1) == 0 for one in self.models.values()) and all(
            one.free for one in self.image_models.values()
        )

    def model(self, name: str) -> EndpointModel:
        """What is said of one of its chat models."""
        if name not in self.models:
            raise self._unknown(name, "models")
        return self.models[name]

    def image_model(self, name: str) -> EndpointImageModel:
        """What is said of one of its image models."""
        if name not in self.image_models:
            raise self._unknown(name, "image_models")
        return self.image_models[name]

    def _unknown(self, name: str, kind: str) -> SubmitterError:
        return SubmitterError(
            "unknown_endpoint_model",
            f"The file of endpoints says nothing of {name!r} among the {kind} of {self.name}.",
            f'Add [endpoint.{kind}."{name}"] with its prices. {EXAMPLE}',
        )

    def key(self) -> str:
        """The key; empty where none is asked for."""
        if not self.key_variable:
            return ""
        key = os.environ.get(self.key_variable, "").strip()
        if not 0 < len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
            raise SubmitterError(
                "endpoint_key_missing",
                f"{self.key_variable}, which holds the key of {self.name}, is not set, or is no key.",
                "Set it where the endpoint is asked; keys never stand in a file of Assay.",
            )
        return key


class _Endpoints(_Strict):
    endpoint: tuple[Endpoint, ...] = Field(min_length=1)


def find_endpoint(name: str) -> Endpoint:
    """An endpoint of the operator's file, its file of replies as an absolute path."""
    named = value_of("endpoints", os.environ)
    if named is None:
        raise SubmitterError(
            "endpoints_missing",
            f"The endpoint {name!r} is asked for, and no file of endpoints is set.",
            f"Name one with ASSAY_ENDPOINTS. {EXAMPLE}",
        )
    path = Path(named).absolute()
    found = {one.name: one for one in read_endpoints(path)}
    if name not in found:
        raise SubmitterError(
            "unknown_endpoint",
            f"{path.name} has no endpoint {name!r}, but {', '.join(found)}.",
            f"Add one of that name. {EXAMPLE}",
        )
    endpoint = found[name]
    return endpoint.model_copy(update={"replies": path.parent / endpoint.replies})


def read_endpoints(path: Path) -> tuple[Endpoint, ...]:
    """All endpoints of a file.

    Raises:
        SubmitterError: `bad_endpoints`, with everything that is wrong; `endpoints_unreadable`.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        endpoints = _Endpoints.model_validate(values).endpoint
    except OSError as error:
        raise SubmitterError(
            "endpoints_unreadable", f"{path.name} cannot be read: {error.strerror}.", EXAMPLE
        ) from error
    except ValidationError as error:
        told = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise _bad(path, "; ".join(told)) from None  # Its text would repeat what stands there.
    except ValueError as error:
        raise _bad(path, str(error)) from error
    names = [one.name for one in endpoints]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _bad(path, f"{', '.join(twice)} stands there twice")
    return endpoints


def _bad(path: Path, problem: str) -> SubmitterError:
    return SubmitterError("bad_endpoints", f"{path.name}: {problem}.", EXAMPLE)
