"""A made-up store whose benchmarks have chance and ceiling, for tests of the index page.

Run it to look at the page: `python -m tests.leaderboard.pages.index.index_fixture [PORT]`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.rows import Row
from benchmarks.schema import Card, MeasureInfo, Scale, Selector
from leaderboard.pages.reading import View, view_of
from leaderboard.publication.snapshot import PATH, Published, build_snapshot, snapshot_bytes
from leaderboard.ranking.draws import Draws, draws_files
from leaderboard.ranking.orders import Orders
from leaderboard.records import Kind, RunResult, Submission
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NASTY = "<img src=x onerror=alert(1)>'\"${alert(2)}{{7*7}}\u202egnp.exe"
DRAWS, BLOCKS, CLUSTERS = 200, 40, 120

SCALES: dict[str, tuple[str, float, float] | None] = {
    "graphs": ("Error graphs", 0.0, 0.993902),
    "ratings": ("Ratings of prompts", 0.0, 0.6375),
    "errors": ("Squared errors", 1.2, 0.1),
    "genai_527": ("GenAI-Bench (527 prompts)", 0.4524, 0.696412),
    "genai_1600": ("GenAI-Bench (1,600 prompts)", 0.4524, 0.70),
    "accuracy": ("Contrast pairs", 0.5, 0.91),
    "demo": ("Demo · simulated", 0.0, 1.0),
    "unscaled": None,
    "unused": ("Unused", 0.0, 1.0),
}
"""Benchmark to title, chance and ceiling; None: it states neither."""
REAL = ("graphs", "ratings", "errors", "genai_527", "genai_1600", "accuracy")
METRICS: dict[str, tuple[str, ...]] = {
    "VQAScore": (*REAL, "demo", "unscaled"),
    "BLIP2-ITM": (*REAL, "demo"),
    "CLIPScore": (*REAL, "demo"),
    "PickScore": (*REAL, "demo"),
    "ImageReward": (*REAL, "demo"),
    "SigLIP-2": (*REAL, "demo"),
    "prompt-length": (*REAL, "demo"),
    NASTY: (*REAL, "demo"),
    "HPSv2": ("graphs", "ratings", "errors", "genai_1600"),
    "TIFA": ("ratings", "genai_527"),
    "always-half": REAL,
    "only simulated": ("demo",),
}
"""Metric to the benchmarks it was run on, the best first."""
UNDEFINED = ("always-half", "ratings")


def cards() -> dict[str, Card]:
    """Nine benchmarks: one simulated, one without a scale, one without results."""
    return {name: _card(name, scale) for name, scale in SCALES.items()}


def _card(name: str, scale: tuple[str, float, float] | None) -> Card:
    title, chance, ceiling = scale or ("Without a scale", 0.0, 1.0)
    info = MeasureInfo(
        title="Squared error" if chance > ceiling else "Spearman ρ",
        meaning="How far the scores agree with people.",
        higher_is_better=ceiling > chance,
        chance=chance,
    )
    stated = Scale(
        chance=chance,
        ceiling=ceiling,
        ceiling_is="Agreement of one rater with the mean of the others.",
        source="Paper, Table 3. Chance: independent scores have no correlation.",
    )
    return Card(
        name=name,
        title=title,
        family=name,
        summary="How far a metric agrees with people on generated images.",
        description="What the data are.",
        revision="2024-12-01",
        simulated=name == "demo",
        cluster="prompt",
        headline=Selector(measure="headline"),
        headline_scale=stated if scale else None,
        measures={"headline": info},
    )


def runs_of(metrics: dict[str, tuple[str, ...]] | None = None) -> list[Published]:
    """A run for every metric on each of its benchmarks."""
    rng = np.random.default_rng(5)
    found = []
    for place, (name, boards) in enumerate((metrics or METRICS).items()):
        own = _submission(place, name, boards)
        found += [_run(own, board, 0.85 - 0.09 * place, rng) for board in boards]
    return found


def _submission(place: int, name: str, boards: Sequence[str]) -> Submission:
    digest = hashlib.sha256(f"{place}".encode()).hexdigest()
    return Submission(
        submission_id=f"made-up-{place:04d}",
        kind=Kind.SCORES if place % 4 == 1 else Kind.METRIC,
        name=name,
        version="" if place % 4 == 1 else f"1.{place}",
        metrics=(name,),
        benchmarks=tuple(boards),
        submitter="A group",
        trained_on=("ratings", "demo") if name == "PickScore" else (),
        content_sha256=digest,
        archive=f"uploads/{digest}.zip",
        received_at=NOW - timedelta(hours=place + 1),
    )


def _run(own: Submission, board: str, worth: float, rng: np.random.Generator) -> Published:
    """Values around the worth of the metric, on the scale of the benchmark."""
    _, chance, ceiling = SCALES[board] or ("", 0.0, 1.0)
    length = ceiling - chance
    value = chance + length * (worth + 0.05 * rng.standard_normal())
    sample = value + 0.06 * length * rng.standard_normal(DRAWS)
    undefined = (own.name, board) == UNDEFINED
    nan = float("nan")
    low, high = (float(end) for end in np.quantile(sample, [0.025, 0.975]))
    row = Row(
        benchmark=board,
        revision="2024-12-01",
        metric=own.name,
        measure="headline",
        value=nan if undefined else float(value),
        n_items=4 * CLUSTERS,
        n_clusters=CLUSTERS,
        ci_low=nan if undefined else low,
        ci_high=nan if undefined else high,
        note="All scores are equal, so no correlation is defined." if undefined else "",
        plan="0123abcd",
        versions="assay 1; numpy 2",
    )
    noise = 0.06 * length * rng.standard_normal(BLOCKS) / np.sqrt(BLOCKS)
    shares = value / BLOCKS + noise - noise.mean()
    return Published(
        own,
        RunResult(
            submission_id=own.submission_id,
            benchmark=board,
            revision="2024-12-01",
            rows=(row.to_json(),),
            resampling_seed=7,
            n_resamples=DRAWS,
            isolation=("own network namespace",),
            versions={},
            judged_at=NOW - timedelta(minutes=5),
        ),
        Draws(
            np.full((1, DRAWS), nan) if undefined else sample[None],
            np.full((1, BLOCKS), nan) if undefined else shares[None],
        ),
    )


def fill(store: Store, metrics: dict[str, tuple[str, ...]] | None = None) -> Store:
    """Publish everything."""
    runs = runs_of(metrics)
    files = {PATH: snapshot_bytes(build_snapshot(runs, cards(), NOW))}
    for run in runs:
        assert run.draws is not None
        stem = f"results/{run.submission.submission_id}/{run.result.benchmark}"
        files |= draws_files(stem, run.draws.resamples, run.draws.contributions)
    store.public.commit(files, parent=store.public.head(), message="publish")
    return store


def index_view_of(metrics: dict[str, tuple[str, ...]] | None = None) -> View:
    """What the pages see of it."""
    store = fill(memory_store(), metrics)
    return view_of(build_snapshot(runs_of(metrics), cards(), NOW), cards(), Orders(store))


def main() -> None:
    """Serve the made-up store."""
    from leaderboard.pages.site import create_app, launch_options
    from tests.leaderboard.pages.synthetic import StubDesk

    port = int(sys.argv[1]) if len(sys.argv) > 1 else 7862
    app = create_app(fill(memory_store()), StubDesk(), cards(), clock=lambda: NOW)
    app.launch(server_name="127.0.0.1", server_port=port, **launch_options())


if __name__ == "__main__":
    main()
