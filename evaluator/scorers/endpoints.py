"""Endpoints of chat models: which the operator names, what they cost, and what may be spent there.

The file is TOML, named by the setting `endpoints`:

    [[endpoint]]
    name = "openai"
    address = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    budget_usd = 25.0

    [endpoint.models."gpt-4o-2024-11-20"]
    input_usd = 2.5
    output_usd = 10.0

Keys never stand in it: they are read from the environment, and only where a metric is loaded.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from benchmarks.errors import SubmitterError
from benchmarks.settings.model import value_of

EXAMPLE = "docs/built-in-metrics.md shows one."
_LONGEST_KEY = 10_000


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EndpointModel(_Strict):
    """A model of an endpoint."""

    input_usd: float = Field(ge=0, allow_inf_nan=False)
    """Price of a million tokens that it reads, images included."""
    output_usd: float = Field(ge=0, allow_inf_nan=False)
    """Price of a million tokens that it writes."""
    answers_as: tuple[str, ...] = ()
    """Names that its replies may carry beside its own; any other means that it was exchanged."""

    def usd(self, read: int, written: int) -> float:
        """Price of a request by its tokens."""
        return (read * self.input_usd + written * self.output_usd) / 1e6


class Endpoint(_Strict):
    """A server that speaks OpenAI's protocol of chat completions."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=64)
    """As rows of metrics call it."""
    address: str = Field(pattern=r"^https?://[^\s?#@]+$")
    """What `/chat/completions` is added to, as in `https://host/v1`."""
    key_variable: str = Field(default="", pattern=r"^[A-Z][A-Z0-9_]*$|^$")
    """Variable of the environment that holds the key; empty for a server that asks for none."""
    budget_usd: float = Field(ge=0, allow_inf_nan=False)
    """What all requests together may cost, those of earlier runs included."""
    models: dict[str, EndpointModel] = Field(min_length=1)
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

    def model(self, name: str) -> EndpointModel:
        """What is said of one of its models."""
        if name not in self.models:
            raise SubmitterError(
                "unknown_endpoint_model",
                f"The file of endpoints says nothing of {name!r} at {self.name}.",
                f'Add [endpoint.models."{name}"] with its prices. {EXAMPLE}',
            )
        return self.models[name]

    def key(self) -> str:
        """The key; empty where none is asked for."""
        if not self.key_variable:
            return ""
        key = os.environ.get(self.key_variable, "").strip()
        if not 0 < len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
            raise SubmitterError(
                "endpoint_key_missing",
                f"{self.key_variable}, which holds the key of {self.name}, is not set, or is no key.",
                "Set it where metrics are run; keys never stand in a file of Assay.",
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
            f"This metric asks the endpoint {name!r}, and no file of endpoints is set.",
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
