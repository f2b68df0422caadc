"""Queries and answers of the API: the models from which FastAPI reads and documents them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from leaderboard.tables import Type, Value
from leaderboard.views.parameters import parameters

LONGEST_QUERY = 8192  # Characters; a page with all the columns it can have stays below
MOST_PER_PAGE = 1000
_MOST_PAGES = 10**6
_Row = TypeVar("_Row")


class Format(StrEnum):
    """Format of an answer."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    LATEX = "latex"


class Parameters(BaseModel):
    """Parameters of every table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Format = Field(
        default=Format.JSON, description="In which the table comes.", examples=["csv"]
    )
    only: str = Field(
        default="",
        description="Names of columns, joined by commas, in this order; without it, all.",
        examples=["metric,value,ci_low,ci_high"],
    )

    @classmethod
    def names(cls) -> list[str]:
        """All that a query may say."""
        return list(cls.model_fields)

    def to_params(self) -> dict[str, str]:
        """The same as a page's address has it: a name that came several times is joined once."""
        given = self.model_dump(exclude={"format", "only"})
        return {
            name: ",".join(filter(None, value)) if isinstance(value, tuple) else str(value)
            for name, value in given.items()
        }


def model_of(query: type, *names: str, **own: Any) -> type[Parameters]:
    """The parameters of a route: those named of a page's query; `own` are fields of the route's own."""
    known = parameters(query) | {name: (str, field) for name, field in own.items()}
    taken: dict[str, Any] = {name: known[name] for name in names}
    return create_model(query.__name__, __base__=Parameters, **taken)


class Paged(Parameters):
    """Parameters of tables that come in pages."""

    page: int = Field(default=1, ge=1, le=_MOST_PAGES, description="From 1.", examples=[1])
    per_page: int = Field(
        default=100, ge=1, le=MOST_PER_PAGE, examples=[50],
        description=f"Rows of a page, at most {MOST_PER_PAGE}.",
    )  # fmt: skip

    @field_validator("page", "per_page", mode="before")
    @classmethod
    def _read(cls, given: object, info: ValidationInfo) -> object:
        """Digits and nothing else that Python takes for a number; the default for an empty text."""
        if given == "" and info.field_name:
            return cls.model_fields[info.field_name].default
        if isinstance(given, str) and not (given.isascii() and given.isdecimal()):
            raise PydanticCustomError("no_number", "this is no number")
        return given

    def of(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        """The rows of the page."""
        return rows[(self.page - 1) * self.per_page : self.page * self.per_page]

    def about(self, found: int) -> dict[str, int]:
        """What a table says of its pages."""
        return {"found": found, "page": self.page, "per_page": self.per_page}


class About(BaseModel):
    """What the table is of; `as_of` is when that was made."""

    model_config = ConfigDict(extra="allow")

    as_of: AwareDatetime | None = None


class Column(BaseModel):
    """A column of a table."""

    name: str
    type: Type
    meaning: str


class Table(BaseModel):
    """A table as JSON."""

    name: str
    about: About
    columns: list[Column]
    rows: list[dict[str, Value]]


class Error(BaseModel):
    """What is wrong, and what to do."""

    code: str = Field(description="Stable, for programs.")
    message: str
    hint: str


class Problem(BaseModel):
    """Body of every answer that is none."""

    error: Error
