"""Hashes of all that the demo benchmarks are made of, beside those of the pinned revision.

Two machines have the same demo exactly when these hashes agree. Pictures are hashed as files.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.schema import Answers, Questions

PINNED = Path(__file__).with_name("pinned.toml")
_ABOUT_FILES = frozenset({"sources", "labelled"})
"""Of answers: which files of a data folder they are from; the demo needs none."""


def fingerprint(questions: Questions, answers: Answers) -> Mapping[str, str]:
    """SHA-256 of each part of a benchmark, in hexadecimal digits."""
    return {
        "pictures": _of_pictures(questions),
        "texts": _of(dict(questions.texts)),
        "pairs": _of([repr(pair) for pair in questions.pairs]),
        "elements": _of({text: repr(parts) for text, parts in questions.elements.items()}),
        "answers": _of(_tables(answers)),
    }


@cache
def pinned() -> Mapping[str, Mapping[str, str]]:
    """Benchmark to part to the hash it has at the revision that `pinned.toml` names."""
    found: dict[str, Any] = tomllib.loads(PINNED.read_text(encoding="utf-8"))
    return found["benchmark"]  # type: ignore[no-any-return]


def pinned_revision() -> str:
    """The revision the hashes belong to."""
    return str(tomllib.loads(PINNED.read_text(encoding="utf-8"))["revision"])


def fingerprint_table(name: str, questions: Questions, answers: Answers) -> pd.DataFrame:
    """The hashes found here, and whether they are the pinned ones: `part`, `sha256`, `as pinned`."""
    known = pinned()[name]
    found = fingerprint(questions, answers)
    return pd.DataFrame(
        [(part, digest, digest == known[part]) for part, digest in found.items()],
        columns=["part", "sha256", "as pinned"],
    )


def _of_pictures(questions: Questions) -> str:
    digest = hashlib.sha256()
    for image_id, encode in questions.images.items():
        digest.update(image_id.encode())
        digest.update(encode())
    return digest.hexdigest()


def _tables(answers: Answers) -> Mapping[str, object]:
    return {
        name: value.to_dict("records") if isinstance(value, pd.DataFrame) else repr(value)
        for name, value in vars(answers).items()
        if name not in _ABOUT_FILES
    }


def _of(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
