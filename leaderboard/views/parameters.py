"""Parameters of queries: declared by a page's query, taken and documented by the API as well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

from pydantic import Field, WithJsonSchema

_SEVERAL = Annotated[tuple[str, ...], WithJsonSchema({"type": "string"})]


def text(meaning: str, *examples: str, options: Iterable[str] = (), several: bool = False) -> Any:
    """A field of a model for a text, or for all that an address gives; empty where it gives none.

    Options are documented here and checked where a page's query is resolved: once for both.
    """
    return Field(
        default_factory=tuple if several else str,
        description=meaning,
        examples=list(examples) or None,
        json_schema_extra={"enum": list(options)} if options else None,
    )


def parameter(
    meaning: str,
    *examples: str,
    options: Iterable[str] = (),
    several: bool = False,
    name: str = "",
    default: object = "",
) -> Any:
    """A field of a page's query that the API takes as well, called `name` where that differs."""
    said = text(meaning, *examples, options=options, several=several)
    taken = _SEVERAL if several else str, said
    return field(default=default, metadata={"name": name, "taken": taken})


def parameters(query: type) -> dict[str, tuple[Any, Any]]:
    """All that a page's query and its parts declare, by name: types and fields of a model."""
    found, types = dict[str, tuple[Any, Any]](), get_type_hints(query)
    for one in fields(query):
        if one.metadata:
            found[one.metadata["name"] or one.name] = one.metadata["taken"]
        elif is_dataclass(types[one.name]):
            found |= parameters(types[one.name])
    return found
