"""A made-up store as large as a year of submissions, for taking times. Seeded: always the same.

Six in ten submissions are published, each on two of the boards; the others were refused. A
published one has seven events and a refused one two: 2,000 submissions have 10,000.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import TypeVar

import numpy as np

from benchmarks.rows import Row
from benchmarks.schema import Card, MeasureInfo, Selector
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.ledger.private_records import submission_file
from leaderboard.publication.results import Published
from leaderboard.ranking.draws import Draws, draws_files
from leaderboard.records import (
    Cost,
    Event,
    FindingExample,
    Findings,
    Kind,
    RunResult,
    Submission,
)
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.trust import TITLES, Check, TrustReport

_T = TypeVar("_T")
N_RESAMPLES, N_BLOCKS = 1000, 250
PUBLISHED_OF_TEN = 6
BOARDS_EACH = 2
AT_A_TIME = 200
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_MEASURES = ("srcc", "plcc", "krcc", "accuracy")
_SPLITS = ("all", "real", "synth")
_SKILLS = (None, "counting", "spatial", "text", "colour")
_PUBLISHED = (
    State.RECEIVED,
    State.QUEUED,
    State.CLAIMED,
    State.SCORING,
    State.SCORED,
    State.JUDGING,
    State.PUBLISHED,
)
_REFUSED = (State.RECEIVED, State.REJECTED)


@dataclass(frozen=True)
class Size:
    """How large a made-up store is."""

    submissions: int = 2000
    boards: int = 8
    slices: int = 60

    def published(self, place: int) -> bool:
        """Whether the submission of this number is on the boards."""
        return place % 10 < PUBLISHED_OF_TEN

    def boards_of(self, place: int) -> tuple[str, ...]:
        """The benchmarks it is run on."""
        first = BOARDS_EACH * place
        return tuple(sorted({f"made_up_{(first + i) % self.boards}" for i in range(BOARDS_EACH)}))


def cards_of_size(size: Size) -> dict[str, Card]:
    """The benchmarks, with the measures, splits and skills that make so many slices."""
    return {card.name: card for card in (_card(place) for place in range(size.boards))}


def _card(place: int) -> Card:
    return Card(
        name=f"made_up_{place}",
        title=f"Made up {place}",
        family="made_up",
        summary="Figures of no meaning, to take times.",
        description="Figures of no meaning, to take times.\n\n" * 5,
        revision="2026-01-01",
        simulated=True,
        cluster="prompt",
        headline=Selector(measure="srcc", split="all", variant="paper"),
        measures={
            name: MeasureInfo(title=name, meaning="How far two rankings agree.", chance=0.0)
            for name in _MEASURES
        },
        skills={skill: skill.title() for skill in _SKILLS if skill},
        licence="CC BY 4.0",
    )


def slices_of(size: Size) -> list[tuple[Selector, str | None]]:
    """What each board measures; the headline is the first."""
    every = product(_MEASURES, _SPLITS, _SKILLS)
    found = [(Selector(measure=m, split=s, variant="paper"), skill) for m, s, skill in every]
    return found[: size.slices]


def submission_of(size: Size, place: int) -> Submission:
    """The record of one submission."""
    digest = hashlib.sha256(f"{place}".encode()).hexdigest()
    return Submission(
        submission_id=f"made-up-{place:05d}",
        kind=Kind.METRIC,
        name=f"metric-{place}",
        version="1.0",
        metrics=(f"metric-{place}",),
        benchmarks=size.boards_of(place),
        submitter=f"Group {place % 97}",
        account=f"hub:group-{place % 97}",
        description="A made-up metric that looks at an image and a prompt and says a number.",
        content_sha256=digest,
        archive=f"uploads/{digest}.zip",
        received_at=NOW + timedelta(minutes=place),
    )


def run_of(size: Size, place: int, benchmark: str, plan: np.ndarray) -> Published:
    """One run, with draws that add up to its values as real ones do.

    `plan` (B, G): how often each block is in each resample, shared by all.
    """
    rng = np.random.default_rng([place, int(benchmark.rpartition("_")[2])])
    slices = slices_of(size)
    centres = 0.5 + 0.15 * rng.normal() + 0.05 * rng.normal(size=len(slices))
    noise = rng.normal(size=(len(slices), N_BLOCKS))
    parts = (centres[:, None] + 0.6 * (noise - noise.mean(axis=1, keepdims=True))) / N_BLOCKS
    resamples = (parts @ plan.T).astype(np.float32)
    low, high = np.quantile(resamples, [0.025, 0.975], axis=1)
    own = submission_of(size, place)
    rows = tuple(
        Row(
            benchmark=benchmark,
            revision="2026-01-01",
            metric=own.name,
            measure=selector.measure,
            split=selector.split,
            variant=selector.variant,
            skill=skill,
            value=float(centres[i]),
            n_items=4000,
            n_clusters=1000,
            ci_low=float(low[i]),
            ci_high=float(high[i]),
            ci_method="bca",
            percentile_low=float(low[i]),
            percentile_high=float(high[i]),
            seed=1,
            n_resamples=N_RESAMPLES,
            plan="0" * 16,
            versions="numpy 2.4.6, scipy 1.17.1",
        ).to_json()
        for i, (selector, skill) in enumerate(slices)
    )
    return Published(own, _result(own, benchmark, rows), Draws(resamples, parts))


def plan_of() -> np.ndarray:
    """How often each block is in each resample."""
    even = np.full(N_BLOCKS, 1 / N_BLOCKS)
    return np.random.default_rng(3).multinomial(N_BLOCKS, even, N_RESAMPLES)


def _result(own: Submission, benchmark: str, rows: tuple[dict[str, object], ...]) -> RunResult:
    versions = dict.fromkeys(("python", "numpy", "pandas", "scipy", "torch"), "1.2.3")
    checks = tuple(
        Check(name=name, n_pairs=24, mean=0.001, largest=0.004, passed=True) for name in TITLES
    )
    return RunResult(
        submission_id=own.submission_id,
        benchmark=benchmark,
        revision="2026-01-01",
        rows=rows,
        resampling_seed=1,
        n_resamples=N_RESAMPLES,
        isolation=("own namespaces", "read-only root", "no network", "system calls filtered"),
        versions=versions,
        cost=Cost(pairs=4000, images=4000, seconds=812.5, pairs_per_s=4.92),
        findings=Findings(
            pairs=4000,
            scored=3999,
            unscored={"not_finite": 1},
            counts={"prompt_cut": 12},
            examples=tuple(
                FindingExample(
                    code="prompt_cut",
                    item="text",
                    item_id=f"prompt-{i}",
                    message="The prompt is longer than the text encoder reads.",
                    scored=True,
                )
                for i in range(5)
            ),
            environment=versions,
        ),
        trust=TrustReport(
            benchmark=benchmark,
            n_pairs=24,
            n_images=12,
            spread=0.13,
            limit=0.01,
            environment=versions,
            checks=checks,
        ),
        scores_sha256={own.name: own.content_sha256},
        judged_at=own.received_at + timedelta(hours=1),
    )


def run_files(run: Published) -> dict[str, bytes]:
    """The files of a run that boards are made from."""
    if run.draws is None:
        raise ValueError(f"the run of {run.submission.submission_id} has no draws")
    stem = f"results/{run.submission.submission_id}/{run.result.benchmark}"
    return {
        f"{stem}.json": run.result.model_dump_json(indent=1).encode(),
        **draws_files(stem, run.draws.resamples, run.draws.contributions),
    }


def fill(store: Store, size: Size) -> int:
    """Put all submissions, events and results into a store, without boards; number of events."""
    ledger, plan, n_events = Ledger(store), plan_of(), 0
    for start in range(0, size.submissions, AT_A_TIME):
        places = range(start, min(start + AT_A_TIME, size.submissions))
        records = {one.submission_id: one for one in (submission_of(size, n) for n in places)}
        events = {submission_of(size, n).submission_id: events_of(size, n) for n in places}
        files: dict[str, bytes] = {}
        for record in records.values():
            files |= submission_file(record)
        for run in runs_of(size, places, plan):
            files |= run_files(run)
        batch = Batch(events=events, records=records, files=partial(_given, files))
        ledger.write(partial(_given, batch), f"made-up submissions from {start}")
        n_events += sum(map(len, events.values()))
    return n_events


def _given(it: _T, *_: object) -> _T:
    return it


def runs_of(size: Size, places: Sequence[int], plan: np.ndarray) -> Iterator[Published]:
    """The runs of the published ones among these submissions."""
    for place in places:
        if size.published(place):
            for benchmark in size.boards_of(place):
                yield run_of(size, place, benchmark, plan)


def events_of(size: Size, place: int) -> list[Event]:
    """What happened to one submission."""
    received = submission_of(size, place).received_at
    states = _PUBLISHED if size.published(place) else _REFUSED
    return [
        Event(
            at=received + timedelta(minutes=10 * step),
            state=state,
            by="worker-1",
            reason="The archive holds no assay.toml." if state is State.REJECTED else "",
            code="no_manifest" if state is State.REJECTED else "",
        )
        for step, state in enumerate(states)
    ]
