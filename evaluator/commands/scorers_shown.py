"""Tables of metrics and of their scores, for people and for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evaluator.scorers.checkpoints import cached, commit_of
from evaluator.scorers.registry import Checkpoint, ScorerRow
from evaluator.scorers.trying import Tried

_PICKLES = (".pt", ".pth", ".bin", ".ckpt")


def range_of(row: ScorerRow) -> str:
    """Smallest and largest possible score, and which way is better."""
    low = "-∞" if row.low is None else f"{row.low:g}"
    high = "∞" if row.high is None else f"{row.high:g}"
    return f"{low}..{high}" + ("" if row.higher_is_better else ", lower is better")


def needs(row: ScorerRow) -> list[str]:
    """What has to be given or allowed to run a row, besides its checkpoints."""
    found = []
    if any(checkpoint.file.endswith(_PICKLES) for checkpoint in row.checkpoints.values()):
        found.append("--allow-pickle")
    if "questions" in row.granularity:
        found.append("--questions")
    return found


def rows_table(rows: Sequence[ScorerRow]) -> RenderableType:
    """The rows, one a line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("metric", "title", "family", "checkpoint", "range", "needs"):
        table.add_column(name, overflow="fold", no_wrap=name == "metric")
    for row in rows:
        ids = ", ".join(checkpoint.id for checkpoint in row.checkpoints.values())
        cells = (row.name, row.title, row.family, ids, range_of(row), " ".join(needs(row)))
        table.add_row(*map(Text, cells))
    return table


def row_json(row: ScorerRow) -> dict[str, Any]:
    """A row for programs."""
    return {**row.model_dump(mode="json"), "needs": needs(row)}


def checkpoints_json(row: ScorerRow) -> dict[str, dict[str, Any]]:
    """By role: where each checkpoint is; the commit that the next run takes; None: the newest."""
    found = {}
    for role, checkpoint in row.checkpoints.items():
        place = cached(row, role)
        found[role] = {
            **checkpoint.model_dump(mode="json"),
            "revision": commit_of(row, role) or None,
            "place": str(place) if place else None,
        }
    return found


def description(row: ScorerRow, options: Mapping[str, Any], family: str) -> RenderableType:
    """Everything there is to know of a row."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _facts(row, options, family):
        table.add_row(name, Text(value))
    return table


def _facts(row: ScorerRow, options: Mapping[str, Any], family: str) -> Iterator[tuple[str, str]]:
    yield "metric", f"{row.name}: {row.title}"
    yield "", row.summary
    yield "formula", row.formula
    yield "source", row.source
    yield "family", f"{family} ({row.family})"
    for role, checkpoint in row.checkpoints.items():
        yield f"checkpoint {role}", _checkpoint(row, role, checkpoint)
    yield "options", ", ".join(f"{name}={value!r}" for name, value in options.items()) or "none"
    yield "precision", row.dtype
    yield "range", range_of(row)
    yield "scores", ", ".join(row.granularity)
    yield "cost", _cost(row)
    yield "needs", ", ".join(needs(row)) or "nothing else"
    yield "trained on", ", ".join(row.trained_on) or "no benchmark that is known"
    for note in row.notes:
        yield "note", note


def _checkpoint(row: ScorerRow, role: str, checkpoint: Checkpoint) -> str:
    if checkpoint.id.startswith("./"):
        return f"a file of yours: --checkpoint {role}=FILE"
    commit = commit_of(row, role) or "newest commit, then kept to"
    place: Path | None = cached(row, role)
    return "\n".join(
        (
            " ".join(filter(None, (checkpoint.id, checkpoint.file))) + f" ({commit})",
            f"licence: {checkpoint.licence or 'not verified'}",
            f"in the cache: {place}" if place else "not in the cache",
        )
    )


def _cost(row: ScorerRow) -> str:
    size = "not counted" if row.parameters is None else f"{row.parameters / 1e6:,.0f} M parameters"
    if row.flops_per_pair is None:
        return size
    return f"{size}, {row.flops_per_pair / 1e9:,.0f} GFLOPs per pair"


def scores_table(row: ScorerRow, tried: Sequence[Tried]) -> RenderableType:
    """Scores, one pair a line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("image", overflow="fold")
    table.add_column("prompt", overflow="fold")
    table.add_column(f"{row.name} ({range_of(row)})", justify="right")
    for one in tried:
        score = "no score" if math.isnan(one.score) else f"{one.score:.6g}"
        table.add_row(Text(one.image), Text(one.prompt), score)
    return table


def remarks(tried: Sequence[Tried]) -> Iterator[str]:
    """What there is to say of pairs: no score, cut prompts, elements, answers; each once."""
    said: dict[str, None] = {}
    for one in tried:
        where = f"{one.image}, {one.prompt!r}"
        if one.problem:
            said[f"{where}: {one.problem}"] = None
        for remark in one.image_remarks:
            said[f"{one.image}: {remark}"] = None
        for remark in one.prompt_remarks:
            said[f"{one.prompt!r}: {remark}"] = None
        for name, value in one.elements.items():
            said[f"{where}: element {name!r}: {_number(value)}"] = None
        for answer in one.answers:
            valid = "" if answer.valid else ", does not count"
            said[
                f"{where}: {answer.question} {answer.raw!r} "
                f"(expected {answer.expected!r}): {_number(answer.value)}{valid}"
            ] = None
    yield from said


def _number(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.6g}"
