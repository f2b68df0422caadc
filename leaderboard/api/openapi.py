"""The OpenAPI document, made from the operations that are served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaderboard.api.operations import FORMAT, Operation, Parameter

VERSION = "1.0.0"
"""The last number moves with what is added; names and meanings change with the first, and its
address."""
_ERRORS = {
    "400": "The query asks for what is not there.",
    "404": "There is nothing at this address.",
    "414": "The query is too long.",
    "422": "That would be too much work for a request.",
    "500": "A defect of the service.",
    "503": "The store cannot be read, or too much is asked for at once: see Retry-After.",
}
_PROBLEM = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {
                "code": {"type": "string", "description": "Stable, for programs."},
                "message": {"type": "string"},
                "hint": {"type": "string"},
            },
        }
    },
}
_TABLE = {
    "type": "object",
    "required": ["name", "about", "columns", "rows"],
    "properties": {
        "name": {"type": "string"},
        "about": {
            "type": "object",
            "description": "What the table is of; `as_of` is when that was made.",
            "properties": {"as_of": {"type": ["string", "null"], "format": "date-time"}},
        },
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type", "meaning"],
                "properties": {
                    "name": {"type": "string"},
                    "type": {"enum": ["text", "number", "integer", "boolean"]},
                    "meaning": {"type": "string"},
                },
            },
        },
        "rows": {"type": "array", "items": {"type": "object"}},
    },
}


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document.

    Args:
        operations: all that are served.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Assay",
            "version": VERSION,
            "description": "What the pages of this leaderboard show, with raw values. Read only.",
        },
        "servers": [{"url": "."}],
        "paths": {operation.path: {"get": _operation(operation)} for operation in operations},
        "components": {"schemas": {"Table": _TABLE, "Problem": _PROBLEM}},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            *(_parameter(place, "path") for place in operation.places),
            *(_parameter(one, "query") for one in (*operation.parameters, FORMAT)),
        ],
        "responses": {
            "200": {
                "description": operation.summary,
                "headers": {
                    "ETag": {"schema": {"type": "string"}},
                    "Assay-As-Of": {
                        "description": "When the store last confirmed what is said.",
                        "schema": {"type": "string", "format": "date-time"},
                    },
                },
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Table"}},
                    "text/csv": {"schema": {"type": "string"}},
                    "application/vnd.apache.parquet": {
                        "schema": {"type": "string", "format": "binary"}
                    },
                },
            },
            "304": {"description": "What the client has is still right."},
            **{status: _error(said) for status, said in _ERRORS.items()},
        },
    }


def _parameter(parameter: Parameter, where: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if parameter.options:
        schema["enum"] = list(parameter.options)
    found = {
        "name": parameter.name,
        "in": where,
        "required": where == "path",
        "description": parameter.meaning,
        "schema": schema,
    }
    return found | ({"example": parameter.example} if parameter.example else {})


def _error(said: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": said, "content": {"application/json": {"schema": schema}}}
