"""Plan of a run: its images, their order and batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.prompt_sets.prompt_set import image_file
from evaluator.generation.prompts import Prompt
from evaluator.generation.rows import SeedMode


@dataclass(frozen=True, slots=True)
class Job:
    """One image.

    Attributes:
        position: of the prompt among the prompts: in a stream of noise, how many images of this
            seed come before.
    """

    prompt: Prompt
    seed: int
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

    Args:
        jobs: all of them.
        finished: keys of the images that are there.
        kept: seed to the position its kept noise belongs to.
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
