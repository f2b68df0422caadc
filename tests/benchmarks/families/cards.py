"""Small cards for tests, and benchmarks made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import tomlkit

from benchmarks.families import load_card
from benchmarks.families.benchmark import CardBenchmark
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark

Board = TypeVar("Board", bound=CardBenchmark)
BoardAnswers = TypeVar("BoardAnswers")

RATED: Mapping[str, Any] = {
    "name": "mine",
    "title": "Mine",
    "family": "rating",
    "kind": "alignment",
    "summary": "Mine.",
    "description": "Mine.",
    "revision": "1",
    "cluster": "prompt",
    "citation": "Nobody.",
    "headline": {"measure": "srcc", "variant": "assay", "facet": "mean"},
    "tables": [
        {
            "name": "t",
            "path": "labels.csv",
            "columns": {
                "image": "image",
                "prompt": "prompt",
                "text": "prompt",
                "mean": {"from": "mean", "type": "float"},
            },
        }
    ],
    "items": {"pair": "image"},
    "gold": {"mean": {"mean": "mean", "scale": [1, 5]}},
    "files": [
        {"path": "labels.csv", "role": "answers", "beside": True, "supplied": "See FORMAT.md."}
    ],
}
"""A card of mean ratings in a CSV file beside it."""
LABELS = "image,prompt,mean\na.png,a cat,1\nb.png,a cat,2.5\nc.png,a dog,5\n"


def with_keys(card: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """A card with further keys: those of inner tables are put in, None takes a key away."""
    found = dict(card)
    for key, value in keys.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(found.get(key), Mapping):
            found[key] = with_keys(found[key], value)
        else:
            found[key] = value
    return found


def write_card(folder: Path, card: Mapping[str, Any], **files: str | bytes | list[Any]) -> Path:
    """Write a card and the files beside it (`labels_csv="..."` is `labels.csv`; lists are JSON)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = json.dumps(content) if isinstance(content, list | dict) else content
        (folder / ".".join(name.rsplit("_", 1))).write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
    path = folder / "card.toml"
    path.write_text(tomlkit.dumps(dict(card)))
    return path


def benchmark_of(
    folder: Path, card: Mapping[str, Any], **files: str | bytes | list[Any]
) -> CardBenchmark:
    """The benchmark of a card and the files beside it."""
    return load_card(write_card(folder, card, **files))


def card_of_rows(columns: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """A card whose only table `t` is `labels.json` beside it."""
    table = {"name": "t", "path": "labels.json", "columns": columns}
    file = {**RATED["files"][0], "path": "labels.json"}
    return with_keys(RATED, {"tables": [table], "files": [file], **keys})


def board_of_rows(
    folder: Path,
    kind: type[Board],
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, Any],
    keys: Mapping[str, Any],
) -> Board:
    """The benchmark of such a card with these rows."""
    board = benchmark_of(folder, card_of_rows(columns, keys), labels_json=list(rows))
    assert isinstance(board, kind)
    return board


def answers_as(
    kind: type[BoardAnswers], board: CardBenchmark, data: Path | None = None
) -> BoardAnswers:
    """The answers of a benchmark, as its family has them."""
    answers = board.answers(data)
    assert isinstance(answers, kind)
    return answers


@cache
def registry() -> Mapping[str, Benchmark]:
    """All benchmarks, loaded once."""
    return load_registry(cards=())


def built_in(
    kind: type[Board], answers: type[BoardAnswers], name: str, data: Path | None = None
) -> tuple[Board, BoardAnswers]:
    """A benchmark of the registry and its answers."""
    board = registry()[name]
    assert isinstance(board, kind)
    return board, answers_as(answers, board, data)
