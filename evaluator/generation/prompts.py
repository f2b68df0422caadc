"""Prompts and seeds of a run, and its images in their order and batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import Drawing, PromptSet, image_file
from benchmarks.schema import Benchmark
from benchmarks.tables import read_table
from evaluator.generation.manifest import SeedMode


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and its stable id."""

    prompt_id: str
    text: str
    skills: tuple[str, ...] = ()  # keys; none where the table has none


@dataclass(frozen=True)
class ChosenPrompts:
    """Prompts in their order, and where they come from."""

    prompts: tuple[Prompt, ...]  # each prompt_id once
    benchmark: str = ""  # name of the benchmark or prompt set; empty for a file of the user's own
    revision: str = ""  # of its data
    drawing: Drawing | None = None  # how a prompt set wants them drawn; None for other prompts


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the prompts are wanted; empty or None: all."""

    skills: tuple[str, ...] = ()  # prompts with at least one of these skills
    splits: tuple[str, ...] = ()  # prompts of these splits
    limit: int | None = None  # the first so many of what the others leave


def benchmark_prompts(benchmark: Benchmark, data: Path | None, choice: Choice) -> ChosenPrompts:
    """The prompts of a benchmark, or of a prompt set."""
    prompts = _prompts(benchmark.prompts(data), benchmark.name, choice)
    drawing = benchmark.drawing if isinstance(benchmark, PromptSet) else None
    return ChosenPrompts(prompts, benchmark.name, benchmark.card.revision, drawing)


def file_prompts(path: Path, choice: Choice) -> ChosenPrompts:
    """Prompts of a CSV file with the columns `prompt_id` and `prompt`; `split`, `skills` may be."""
    table = read_table(path, ("prompt_id", "prompt"))
    return ChosenPrompts(_prompts(table, str(path), choice))


def _prompts(table: pd.DataFrame, source: str, choice: Choice) -> tuple[Prompt, ...]:
    _check(table, source)
    chosen = _with_skills(table, choice.skills, source)
    if choice.splits:
        _check_known(choice.splits, _column(table, "split"), "split", source)
        chosen = chosen[_column(chosen, "split").isin(choice.splits)]
    rows = chosen.iloc[: choice.limit]
    if rows.empty:
        raise SubmitterError("unknown_choice", f"No prompt of {source} is left by this choice.")
    return tuple(
        Prompt(str(prompt_id), str(text), found)
        for prompt_id, text, found in zip(
            rows["prompt_id"], rows["prompt"], _tags(rows), strict=True
        )
    )


def _check(table: pd.DataFrame, source: str) -> None:
    ids, texts = table["prompt_id"].astype(str), table["prompt"].astype(str)
    pairs = list(zip(ids, texts, strict=True))
    problems: dict[str, list[str]] = {
        "prompt ids that are there twice": list(ids[ids.duplicated()]),
        "rows without a prompt_id": [text for name, text in pairs if not name.strip()],
        "prompts without a word": [name for name, text in pairs if not text.strip()],
        # JSON and TOML could not hold them, and no text encoder reads them.
        "prompts or ids that are not valid text": [
            name for name, text in pairs if not (_is_text(name) and _is_text(text))
        ],
    }
    for what, where in problems.items():
        if where:
            names = ", ".join(repr(name[:60]) for name in where[:8])
            raise SubmitterError("bad_prompts", f"{source} has {what}: {names}.")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _with_skills(table: pd.DataFrame, skills: Sequence[str], source: str) -> pd.DataFrame:
    if not skills:
        return table
    tags = _tags(table)
    _check_known(skills, (tag for found in tags for tag in found), "skill", source)
    wanted = frozenset(skills)
    return table[[not wanted.isdisjoint(found) for found in tags]]


def _tags(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Skills of each row."""
    cells = _column(table, "skills").astype(str)
    return [tuple(tag.strip() for tag in cell.split(";") if tag.strip()) for cell in cells]


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    return table[name] if name in table else pd.Series("", index=table.index)


def _check_known(names: Sequence[str], column: Iterable[str], what: str, source: str) -> None:
    known = sorted({str(name) for name in column if name})
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]}? " if close else ""
            raise SubmitterError(
                "unknown_choice",
                f"{source} has no {what} {name!r}.",
                f"{hint}It has: {', '.join(known[:40]) or 'none'}.",
            )


@dataclass(frozen=True, slots=True)
class Job:
    """One image."""

    prompt: Prompt
    seed: int
    # of the prompt among the prompts: in a stream of noise, how many images of this seed come
    # before
    position: int

    @property
    def key(self) -> tuple[str, int]:
        """What makes it unique."""
        return self.prompt.prompt_id, self.seed

    @property
    def file(self) -> str:
        """Path inside the folder."""
        return image_file(self.prompt.prompt_id, self.seed)


def all_jobs(prompts: Sequence[Prompt], seeds: Sequence[int]) -> tuple[Job, ...]:
    """Every image, all seeds of a prompt together: a run that is cut off has whole prompts."""
    return tuple(
        Job(prompt, seed, position) for position, prompt in enumerate(prompts) for seed in seeds
    )


def stream_jobs(
    jobs: Sequence[Job], finished: frozenset[tuple[str, int]], kept: Mapping[int, int]
) -> tuple[Job, ...]:
    """What must be drawn where an image continues the noise of the one before.

    Each seed goes on from its first image that is missing; if the noise was kept from further on
    than that, it begins anew, which gives the same images.
    """
    first: dict[int, int] = {}
    for job in jobs:
        if job.key not in finished:
            first.setdefault(job.seed, job.position)
    start = {
        seed: kept.get(seed, 0) if kept.get(seed, 0) <= missing else 0
        for seed, missing in first.items()
    }
    return tuple(job for job in jobs if job.seed in start and job.position >= start[job.seed])


class Batches:
    """Hands out jobs in batches of at most a size that can shrink on the way.

    In a stream, a batch holds no two images of a seed: the second needs the first.
    """

    def __init__(self, jobs: Sequence[Job], size: int, seed_mode: SeedMode) -> None:
        self._jobs = jobs
        self._at = 0
        self._distinct = seed_mode == "stream"
        self.size = size

    def __iter__(self) -> Iterator[tuple[Job, ...]]:
        while self._at < len(self._jobs):
            batch = self._next()
            self._at += len(batch)
            yield batch

    def retry_smaller(self, batch: Sequence[Job]) -> None:
        """Hand out the jobs of the last batch again, in batches of half its length."""
        self._at -= len(batch)
        self.size = max(1, len(batch) // 2)

    def _next(self) -> tuple[Job, ...]:
        batch: list[Job] = []
        for job in self._jobs[self._at : self._at + self.size]:
            if self._distinct and any(job.seed == other.seed for other in batch):
                break
            batch.append(job)
        return tuple(batch)
