"""`assay.toml`: what the manifests of scoring modules and of generations have in common."""

from __future__ import annotations

import difflib
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from benchmarks.errors import SubmitterError
from benchmarks.parsing import Key, key_lines, line_of, syntax_fault
from benchmarks.problems import Problem
from benchmarks.scores import check_metric_name

FILE = "assay.toml"
MAX_BYTES = 64 * 1024
_LINK = re.compile(r"https?://[^\s\"<>\\^`{|}\x00-\x1f\x7f]{1,1990}")
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LINE_OF_TOML = re.compile(r"at line (\d+)")
_UNNAMED = "unnamed"
_SHORTEST = 'The shortest one is: name = "my-metric"'
_IN_WORDS_OF_TOML = {
    "string_type": "must be text, in quotes",
    "string_pattern_mismatch": "must be 1 to 32 letters, digits and . _ + -, beginning with a letter or digit",
    "tuple_type": "must be a list, in square brackets",
    "dict_type": "must be a table of names and texts",
}


def _readable(text: str) -> str:
    """The text, without characters that a terminal obeys or that make it read as other text."""
    for character in text:
        controls = unicodedata.category(character) == "Cc" and character not in "\n\r\t"
        if controls or character in _TURNING:
            raise ValueError(
                f"holds the invisible character U+{ord(character):04X}, which changes how text "
                "is shown"
            )
    return text


def _web_address(link: str) -> str:
    if not link.startswith(("https://", "http://")):
        raise ValueError("must begin with https:// or http://")
    if not _LINK.fullmatch(link):
        raise ValueError("is too long or holds characters that no web address has")
    return link


Text = Annotated[str, AfterValidator(_readable)]
Link = Annotated[str, AfterValidator(_web_address)]


class NamedManifest(BaseModel):
    """What is named, and by whom. Unknown keys are errors: they are mostly typos."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    name: str
    """Name on the boards: letters, digits and . _ + -, at most 64."""
    version: str = Field(default="1", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,31}$")
    authors: tuple[Text, ...] = Field(default=(), max_length=200)
    licence: Text = Field(default="", max_length=200)
    """As its authors name it; empty where that is not known."""
    description: Text = Field(default="", max_length=4000)
    links: dict[Text, Link] = Field(default_factory=dict)
    """Title to web address."""

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        try:
            return check_metric_name(value)
        except SubmitterError as error:
            raise ValueError(str(error)) from error


M = TypeVar("M", bound=NamedManifest)


@dataclass(frozen=True)
class ManifestReading(Generic[M]):
    """What could be made of a manifest.

    Attributes:
        manifest: without the keys that are wrong, which have their defaults; None where nothing
            could be read.
        problems: everything that is wrong, in the order of the lines.
        lines: where each key stands.
        wrong: the keys that are wrong.
    """

    manifest: M | None
    problems: tuple[Problem, ...]
    lines: Mapping[Key, int]
    wrong: frozenset[str] = frozenset()


def read_manifest(content: bytes, kind: type[M]) -> M:
    """Read a manifest.

    Raises:
        SubmitterError: `bad_manifest`, listing every problem with its line and key.
    """
    reading = manifest_reading(content, kind)
    if reading.manifest is None or reading.problems:
        said = "; ".join(
            f"line {p.line}: {p.message}" if p.line else p.message for p in reading.problems
        )
        hints = " ".join(dict.fromkeys(p.hint for p in reading.problems))
        raise SubmitterError("bad_manifest", f"{FILE}: {said}", hints)
    return reading.manifest


def manifest_reading(content: bytes, kind: type[M]) -> ManifestReading[M]:
    """Read as much of a manifest as can be read, and note everything that cannot."""
    if len(content) > MAX_BYTES:
        return _unread(f"It has more than {MAX_BYTES // 1024} kB.", "Shorten it.")
    try:
        # Windows editors put a byte order mark in front, which TOML does not know.
        text = content.decode("utf-8-sig")
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Besides syntax errors: bad UTF-8, numbers of thousands of digits, brackets too deep.
        line = _LINE_OF_TOML.search(str(error))
        return _unread(
            f"It is not TOML: {syntax_fault(error)}.",
            "Correct that line.",
            int(line[1]) if line else None,
        )
    return _reading(values, kind, key_lines(text))


def _reading(
    values: Mapping[str, Any], kind: type[M], lines: Mapping[Key, int]
) -> ManifestReading[M]:
    """Read again without what is wrong: what keys say of each other is looked at only then."""
    problems: list[Problem] = []
    wrong: frozenset[str] = frozenset()
    left = dict(values)
    while True:
        try:
            made = kind.model_validate(left)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
        else:
            problems.sort(key=lambda problem: problem.line or 0)
            return ManifestReading(made, tuple(problems), lines, wrong)
        problems += [_problem(detail, kind, lines) for detail in found]
        wrong |= {str(detail["loc"][0]) for detail in found}
        left = _without(values, wrong)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was most likely meant, as a beginning of a hint; empty if none is near."""
    found = difflib.get_close_matches(name[:100], list(known), n=1, cutoff=0.6)
    return f"Did you mean {found[0]!r}? " if found else ""


def _unread(message: str, hint: str, line: int | None = None) -> ManifestReading[Any]:
    return ManifestReading(None, (Problem("bad_manifest", message, hint, FILE, line),), {})


def _without(values: Mapping[str, Any], wrong: frozenset[str]) -> dict[str, Any]:
    """The rest of a manifest, so that its other keys can be checked against the files."""
    rest = {key: value for key, value in values.items() if key not in wrong}
    return {"name": _UNNAMED, **rest}


def _problem(detail: ErrorDetails, kind: type[BaseModel], lines: Mapping[Key, int]) -> Problem:
    place = detail["loc"]
    key = ".".join(str(part) for part in place)[:200]
    if not key.isprintable():  # a stranger's, on its way to somebody's terminal
        key = repr(key)[1:-1]
    line = line_of(lines, place)
    known = kind.model_fields
    if detail["type"] == "extra_forbidden" and len(place) > 1:
        return Problem(
            "bad_manifest", f"{key!r} is no key of a manifest.", "Leave it out.", FILE, line
        )
    if detail["type"] == "extra_forbidden":
        hint = f"{nearest(key, known)}Known keys: {', '.join(known)}."
        return Problem("bad_manifest", f"{key!r} is no key of a manifest.", hint, FILE, line)
    if detail["type"] == "missing":
        return Problem("bad_manifest", f"The key {key!r} is missing.", _SHORTEST, FILE, line)
    said = _IN_WORDS_OF_TOML.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    message = f"{key}: {said.rstrip('.')}."
    return Problem("bad_manifest", message, "Correct that key.", FILE, line)
