"""What the source says of each field of a model: the text below it, or in its class's docstring."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from itertools import pairwise, takewhile

from pydantic import BaseModel

_ENTRY = re.compile(r"^(\w+): (.*)$")


def field_words(model: type) -> Mapping[str, str]:
    """Name of each field to its words; fields without words are not there.

    Args:
        model: a pydantic model or a dataclass; what it inherits from others of ours counts.
    """
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls not in (object, BaseModel) and cls.__module__.split(".")[0] != "pydantic":
            found |= _own(cls)
    return found


def _own(cls: type) -> Mapping[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    if not isinstance(tree, ast.ClassDef):
        return {}
    return {**_of_docstring(ast.get_docstring(tree) or ""), **_below(tree.body)}


def _below(body: list[ast.stmt]) -> Mapping[str, str]:
    """A text that stands alone after a field is about that field."""
    return {
        field.target.id: " ".join(said.value.value.split())
        for field, said in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
        and isinstance(said.value.value, str)
    }


def _of_docstring(docstring: str) -> Mapping[str, str]:
    """The entries of `Attributes:`."""
    _, _, after = docstring.partition("Attributes:\n")
    listed = takewhile(lambda line: not line or line[0] == " ", after.splitlines())
    found: dict[str, str] = {}
    name = ""
    for line in textwrap.dedent("\n".join(listed)).splitlines():
        if entry := _ENTRY.match(line):
            name, said = entry.groups()
            found[name] = said
        elif name and line.startswith(" "):
            found[name] += f" {line.strip()}"
    return found
