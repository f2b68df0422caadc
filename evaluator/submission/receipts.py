"""The receipt of an author's own dry run: written by `check`, read by whoever takes submissions.

Anyone can write one by hand. It proves nothing; it explains why scores differ between machines.
"""

from __future__ import annotations

import platform
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import ValidationError

from benchmarks.errors import SubmitterError
from evaluator.environments.naming import NamedLock
from evaluator.isolation.session import one_line
from leaderboard.records import Receipt

SUFFIX = ".receipt.json"
MAX_BYTES = 64 * 1024
SCORES_DEPEND_ON = (
    "numpy",
    "open_clip_torch",
    "opencv-python-headless",
    "pandas",
    "pillow",
    "safetensors",
    "scipy",
    "sentencepiece",
    "tokenizers",
    "torch",
    "torchvision",
    "transformers",
)
"""Packages of the environment that scorers use."""

_MOST_VERSIONS = 200
_MOST_LAYERS = 50
_MOST_SHOWN = 12
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+!-]{0,79}")
_BENCHMARKS = re.compile(r"[a-z0-9_]+(\+[a-z0-9_]+){0,49}")
_LAYER = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_PROJECT_FILE = Path(__file__).resolve().parents[2] / "pyproject.toml"


def environment_versions(environment: NamedLock | None = None) -> dict[str, str]:
    """Versions of what scores depend on, Python and Assay included; imports none of it."""
    found = {"python": platform.python_version(), "assay": assay_version()}
    if environment is not None:
        pinned = {name: environment.lock.version(name) for name in SCORES_DEPEND_ON}
        return found | {name: version for name, version in pinned.items() if version is not None}
    for name in SCORES_DEPEND_ON:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # not installed here, so no score depends on it
    return found


def written(receipt: Receipt) -> bytes:
    """A receipt as the file that `read_receipt` reads."""
    return receipt.model_dump_json(indent=1).encode() + b"\n"


def read_receipt(content: bytes) -> Receipt:
    """Read a receipt that somebody sent."""
    if len(content) > MAX_BYTES:
        raise _bad(f"it has {len(content)} bytes, and none has more than {MAX_BYTES}")
    try:
        receipt = Receipt.model_validate_json(content, strict=True)
    except (ValidationError, RecursionError) as error:
        raise _bad(_first(error)) from error
    if len(receipt.versions) > _MOST_VERSIONS or len(receipt.isolation) > _MOST_LAYERS:
        raise _bad("it lists more packages or layers than there are")
    words = (*receipt.versions, *receipt.versions.values())
    if odd := next((w for w in words if not _WORD.fullmatch(w)), None):
        raise _bad(f"{one_line(odd[:80].encode(errors='replace'))!r} is no name or version")
    if not all(_is_plain(layer) for layer in receipt.isolation) or receipt.pairs < 0:
        raise _bad("its layers or its number of pairs cannot be")
    if not _BENCHMARKS.fullmatch(receipt.benchmark):
        raise _bad("it does not name the benchmarks that were asked")
    return receipt


def differences(
    receipt: Receipt, content_sha256: str, versions: Mapping[str, str]
) -> tuple[str, ...]:
    """What was other when the author ran the dry run, in words; empty where nothing was."""
    if receipt.content_sha256 != content_sha256:
        raise SubmitterError(
            "receipt_mismatch",
            f"The receipt is of other files: it names the content {receipt.content_sha256[:12]}, "
            f"and what is submitted is {content_sha256[:12]}.",
            "Run `python -m evaluator check` again on exactly what you submit, or send no receipt.",
        )
    found = tuple(_compared(receipt.versions, versions))
    if len(found) <= _MOST_SHOWN:
        return found
    return (*found[:_MOST_SHOWN], f"and {len(found) - _MOST_SHOWN} more packages differ")


def _compared(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    said = []
    for name in sorted({*theirs, *ours}):
        there, here = theirs.get(name), ours.get(name)
        if there == here:
            continue
        if there is None:
            said.append(f"{name} {here} is here and was not where the dry run was made")
        elif here is None:
            said.append(f"the dry run had {name} {there}, which is not here")
        else:
            said.append(f"the dry run had {name} {there}, here it is {here}")
    return said


def _first(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    problem = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "the file"
    return one_line(f"{where[:80]}: {problem['msg'][:200]}".encode(errors="replace"))


def _is_plain(layer: str) -> bool:
    """Whether a name of a layer can be shown as it is."""
    encoded = layer.encode(errors="replace")
    return bool(_LAYER.fullmatch(layer)) and one_line(encoded) == layer


def _bad(what: str) -> SubmitterError:
    return SubmitterError(
        "bad_receipt",
        f"This is not a receipt of a dry run: {what}.",
        "Send the .receipt.json that `python -m evaluator check` wrote, unchanged, or none.",
    )


@cache
def assay_version() -> str:
    """Version of Assay: as installed, else as its own project file says."""
    try:
        return version("assay")
    except PackageNotFoundError:
        project = tomllib.loads(_PROJECT_FILE.read_text(encoding="utf-8"))
        return str(project["project"]["version"])
