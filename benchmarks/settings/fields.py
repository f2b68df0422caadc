"""The settings one by one, found by their variable or by their key in the settings file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from benchmarks.settings.about import About
from benchmarks.settings.model import Settings

PREFIX = "ASSAY_"
OF_TESTS = frozenset({"ASSAY_TEST_ALL", "ASSAY_ENDURANCE"})
"""Variables that only the tests of Assay read."""
OF_DEPLOYMENT = frozenset(
    {
        "ASSAY_APP_IMAGE",
        "ASSAY_KEYS",
        "ASSAY_LISTEN",
        "ASSAY_QUESTIONS",
        "ASSAY_SECRETS",
        "ASSAY_WORKER_IMAGE",
        "ASSAY_WORKER_MEMORY",
    }
)
"""Variables that only compose.yaml and what lies in deploy/ take."""
OWN = frozenset({"ASSAY_SETTINGS_TAKEN"})
"""Variables by which one process of Assay tells another something."""
_OF_KUBERNETES = re.compile(r"ASSAY(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)")
"""What Kubernetes tells every container of a service named `assay`."""


@dataclass(frozen=True)
class Field:
    """A setting.

    Attributes:
        name: in the model.
        about: where it is given, and who reads it.
        info: its type, bounds, default and description.
    """

    name: str
    about: About
    info: FieldInfo

    @property
    def text(self) -> str:
        """What it is, in a sentence or two."""
        return self.info.description or ""

    @property
    def default(self) -> Any:
        """The value where nobody gave one."""
        return self.info.default

    @property
    def kind(self) -> str:
        """What a value is, for people: `text`, `number`, `yes or no`, `list`."""
        if self.name in _NUMBERS:
            return "number"
        if isinstance(self.default, bool):
            return "yes or no"
        return "list" if isinstance(self.default, tuple) else "text"

    def checked(self, given: object) -> Any:
        """The value that is meant.

        Raises:
            ValueError: why it is none, in words that do not repeat it.
        """
        if isinstance(given, bool) and self.kind != "yes or no":
            raise ValueError(f"a {self.kind} is needed, not {str(given).lower()}")
        if _has_controls(given):
            raise ValueError("it holds control characters")
        try:
            return getattr(Settings.model_validate({self.name: given}), self.name)
        except ValidationError as error:
            raise ValueError(_in_words(error)) from None

    def as_text(self, value: object) -> str:
        """A checked value as its variable has it."""
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        if isinstance(value, bool):
            return "1" if value else "0"
        return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def fields() -> tuple[Field, ...]:
    """All settings, in the order of the model."""
    return tuple(
        Field(name, next(each for each in info.metadata if isinstance(each, About)), info)
        for name, info in Settings.model_fields.items()
    )


@cache
def by_variable() -> dict[str, Field]:
    """Variable to setting."""
    return {field.about.variable: field for field in fields()}


@cache
def by_key() -> dict[str, Field]:
    """Key in the settings file to setting; those of files with secrets are not among them."""
    return {field.about.key: field for field in fields() if field.about.key}


@cache
def by_file_key() -> dict[str, Field]:
    """Key that names a file with a secret to the secret."""
    return {field.about.file_key: field for field in fields() if field.about.file_key}


def known_variables() -> frozenset[str]:
    """Every variable that means something to Assay, its tests left out."""
    files = (field.about.file_variable for field in fields())
    return frozenset({*by_variable(), *(name for name in files if name)})


def unknown_variables(names: Iterable[str]) -> tuple[str, ...]:
    """Those that look like settings of Assay and are none."""
    known = known_variables() | OF_TESTS | OF_DEPLOYMENT | OWN
    return tuple(
        sorted(
            name
            for name in names
            if name.startswith(PREFIX) and name not in known and not _OF_KUBERNETES.fullmatch(name)
        )
    )


def meant(name: str, known: Iterable[str]) -> str:
    """` Did you mean ...?`, where one of the known names is near."""
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""


_NUMBERS = frozenset(
    name
    for name, info in Settings.model_fields.items()
    if isinstance(info.default, int | float) and not isinstance(info.default, bool)
)


def _has_controls(given: object) -> bool:
    parts = given if isinstance(given, list | tuple) else (given,)
    return any(
        isinstance(part, str) and any(ord(c) < 32 or ord(c) == 127 for c in part) for part in parts
    )


def _in_words(error: ValidationError) -> str:
    told = error.errors(include_url=False, include_input=False)[0]
    said = str(told["msg"])
    return said[:1].lower() + said[1:]
