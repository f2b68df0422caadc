"""The values of settings in this process, after files were adopted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.errors import SubmitterError
from benchmarks.settings.fields import Field, fields
from benchmarks.settings.model import Settings
from benchmarks.settings.taken import Taken

SECRET_SHOWN = "set"  # noqa: S105 (what is shown instead of one)


class Origin(StrEnum):
    """Where a value came from; what is first here is looked at first."""

    OPTION = "option"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True)
class Value:
    """A setting as it is now.

    Attributes:
        field: the setting.
        shown: its value for people: of a secret only that there is one.
        origin: where it came from.
        where: the file it came from; empty for others.
        problem: why it is no value; empty where it is one.
    """

    field: Field
    shown: str
    origin: Origin
    where: str = ""
    problem: str = ""


def read(environment: Mapping[str, str]) -> Settings:
    """All settings.

    Args:
        environment: of the process; what is blank there is as good as not given.

    Raises:
        SubmitterError: `bad_setting`; names the variable.
    """
    return Settings(**{field.name: _value(field, environment) for field in fields()})


def value_of(name: str, environment: Mapping[str, str]) -> Any:
    """One setting.

    Args:
        name: in the model.
        environment: of the process.

    Raises:
        SubmitterError: `bad_setting`; names the variable.
    """
    return _value(next(field for field in fields() if field.name == name), environment)


def values(environment: Mapping[str, str], options: Mapping[str, str]) -> tuple[Value, ...]:
    """Every setting with where it came from.

    Args:
        environment: of the process.
        options: names in the model to what a command's option said.
    """
    taken = Taken.told(environment) or Taken()
    return tuple(_shown(field, environment, options, taken) for field in fields())


def with_absolute_paths(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment that means the same in another folder.

    Args:
        environment: of a process in this folder; the name of a store is left as it is.
    """
    moved = dict(environment)
    for field in fields():
        text = moved.get(field.about.variable, "").strip()
        if field.about.path and text and not field.about.at_import:
            moved[field.about.variable] = str(Path(text).absolute())
    return moved


def _shown(
    field: Field, environment: Mapping[str, str], options: Mapping[str, str], taken: Taken
) -> Value:
    if field.name in options:
        return Value(field, options[field.name], Origin.OPTION)
    variable = field.about.variable
    text = environment.get(variable, "").strip()
    if not text:
        default = "" if field.default is None else field.as_text(field.default)
        return Value(field, default, Origin.DEFAULT)
    source = taken.source(environment, variable)
    origin = Origin.FILE if source else Origin.ENVIRONMENT
    problem = ""
    try:
        shown = field.as_text(_value(field, environment))
    except SubmitterError as error:
        shown, problem = text, error.message
    if field.about.secret:
        shown = SECRET_SHOWN
    return Value(field, shown, origin, source.where if source else "", problem)


def _value(field: Field, environment: Mapping[str, str]) -> Any:
    text = environment.get(field.about.variable, "").strip()
    if not text:
        return field.default
    try:
        return field.checked(text)
    except ValueError as error:
        given = "" if field.about.secret else f" {text[:80]!r}"
        raise SubmitterError(
            "bad_setting",
            f"{field.about.variable}{given}: {error}.",
            "See what it may be: python -m evaluator settings --example",
        ) from None
