"""The demo benchmarks are data: they do not change unless their revision does.

If a test here fails after a deliberate change, give `REVISION` (benchmarks/demo/shots.py) and the
`revision` of the four cards a new number and pin the new hashes; published rows name the revision
they were computed on.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pandas as pd
import pytest

from benchmarks.demo import croc_split, evalmuse_split, gecko_split, ts2_split
from benchmarks.demo.shots import REVISION
from benchmarks.schema import Answers, Questions

PINNED: dict[str, tuple[Any, str, str]] = {
    "croc": (croc_split, "9c9c3697fbd3e567", "f1ee24e185f8d35f"),
    "ts2": (ts2_split, "a6d9c0a6932698ca", "43c9013346f400be"),
    "evalmuse": (evalmuse_split, "4fa693ee4e49ea22", "e3a10e7a273f46bb"),
    "gecko": (gecko_split, "80fa0c727ba5f00d", "45a06afe44b8ca50"),
}


def digest_of_images(questions: Questions) -> str:
    digest = hashlib.sha256()
    for image_id, encode in questions.images.items():
        digest.update(image_id.encode())
        digest.update(encode())
    return digest.hexdigest()[:16]


def digest_of_tables(answers: Answers, questions: Questions) -> str:
    tables = {
        name: value.to_dict("records") if isinstance(value, pd.DataFrame) else repr(value)
        for name, value in vars(answers).items()
        if name not in {"sources", "labelled"}  # about files, which the demo is not read from
    }
    assert not answers.sources
    texts = [dict(questions.texts), [repr(pair) for pair in questions.pairs]]
    texts.append({text: repr(parts) for text, parts in questions.elements.items()})
    return hashlib.sha256(json.dumps([tables, texts]).encode()).hexdigest()[:16]


def test_the_pinned_hashes_belong_to_this_revision() -> None:
    assert REVISION == "demo-1"


@pytest.mark.parametrize("name", PINNED)
def test_pictures_are_the_pinned_bytes(name: str) -> None:
    split, images, _ = PINNED[name]
    assert digest_of_images(split.questions()) == images


@pytest.mark.parametrize("name", PINNED)
def test_prompts_and_labels_are_the_pinned_ones(name: str) -> None:
    split, _, tables = PINNED[name]
    assert digest_of_tables(split.answers(), split.questions()) == tables
