"""What changing a filter of a board costs, against a pandas Styler of the same figures.

    python -m benchmarks_perf.board_interaction [--metrics 30] [--skills 40] [--rounds 7]

A store in a folder holds made-up results as they are published: 30 metrics, each measured over all
items and for 40 skills, with 1,000 resamples and 250 blocks. The boards page is then asked for a
ranking, for filters, for means of skills and for the heatmap, each for the first time and again.
CPU time of the process on one thread; payload is the HTML that is sent.

The yardstick is a Styler (two decimals, cells coloured, best of a column bold) of the frame of the
same metrics and skills, made in the same rounds. The gate: a new filter, its ranks, ranges, P(best)
and tiers with the HTML of ranking and pair matrix, takes at most a quarter of it once the slice
has been looked at. The heatmap comes in a second step; its time is printed beside the limit above
which it has to.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.rows import Row
from benchmarks.schema import Card, MeasureInfo, Selector
from leaderboard.pages.boards.filters import Filters
from leaderboard.pages.boards.query import BoardQuery, resolve
from leaderboard.pages.boards.view import board_view, skills_view
from leaderboard.pages.reading import View, view_of
from leaderboard.publication.snapshot import Published, Snapshot, build_snapshot
from leaderboard.ranking.draws import Draws, draws_files
from leaderboard.ranking.orders import Orders
from leaderboard.records import Kind, RunResult, Submission
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store

N_RESAMPLES, N_BLOCKS, N_CLUSTERS = 1000, 250, 1000
GATE = 0.25
SECOND_STEP_MS = 300
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Site:
    """A filled store and what was published."""

    store: Store
    snapshot: Snapshot
    card: Card

    def fresh(self) -> View:
        """A view that remembers nothing."""
        return view_of(self.snapshot, {self.card.name: self.card}, Orders(self.store))


def board_card(skills: int) -> Card:
    """A benchmark with one measure and so many skills."""
    return Card(
        name="made_up",
        title="Made up",
        family="made_up",
        summary="Figures of no meaning, to take times.",
        description="Figures of no meaning, to take times.",
        revision="1",
        simulated=True,
        cluster="prompt",
        headline=Selector(measure="srcc"),
        measures={"srcc": MeasureInfo(title="Spearman ρ", meaning="Agreement.", chance=0.0)},
        skills={f"skill-{i}": f"Skill {i}" for i in range(skills)},
        licence="",
        links={},
    )


def run_of(place: int, centres: FloatArray, shared: FloatArray, card: Card) -> Published:
    """One metric: a value for all items and each skill, with draws that add up as real ones do."""
    rng = np.random.default_rng([place, 1])
    noise = 0.7 * shared + 0.7 * rng.normal(size=shared.shape)
    parts = (centres[:, None] + 0.6 * (noise - noise.mean(axis=1, keepdims=True))) / N_BLOCKS
    counts = np.random.default_rng(3).multinomial(
        N_BLOCKS, np.full(N_BLOCKS, 1 / N_BLOCKS), N_RESAMPLES
    )
    resamples = parts @ counts.T
    low, high = np.quantile(resamples, [0.025, 0.975], axis=1)
    rows = [
        Row(
            benchmark=card.name, revision=card.revision, metric=f"metric-{place}", measure="srcc",
            skill=skill, value=float(centres[i]), n_items=4 * N_CLUSTERS, n_clusters=N_CLUSTERS,
            ci_low=float(low[i]), ci_high=float(high[i]), ci_method="bca",
        )
        for i, skill in enumerate((None, *card.skills))
    ]  # fmt: skip
    own = Submission(
        submission_id=f"made-up-{place:04d}",
        kind=Kind.SCORES if place % 3 == 0 else Kind.METRIC,
        name=f"metric-{place}",
        metrics=(f"metric-{place}",),
        benchmarks=(card.name,),
        submitter=f"Group {place % 7}",
        trained_on=(card.name,) if place % 5 == 4 else (),
        content_sha256="0" * 64,
        archive="uploads/none.zip",
        received_at=NOW,
    )
    result = RunResult(
        submission_id=own.submission_id,
        benchmark=card.name,
        revision=card.revision,
        rows=tuple(row.to_json() for row in rows),
        resampling_seed=1,
        n_resamples=N_RESAMPLES,
        isolation=("scores as submitted",),
        versions={},
        judged_at=NOW,
    )
    return Published(own, result, Draws(resamples, parts))


def publish(folder: Path, metrics: int, skills: int) -> Site:
    """Fill a store in a folder as publication does."""
    card = board_card(skills)
    store = folder_store(folder)
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(1 + skills, N_BLOCKS))
    quality = np.linspace(0.7, 0.3, metrics)
    runs = [
        run_of(m, quality[m] + 0.03 * rng.normal(size=1 + skills), shared, card)
        for m in range(metrics)
    ]
    for run in runs:
        if run.draws is None:
            continue
        stem = f"results/{run.submission.submission_id}/{card.name}"
        files = draws_files(stem, run.draws.resamples, run.draws.contributions)
        for repository in (store.public, store.private):
            repository.commit(files, parent=repository.head(), message="publish")
    return Site(store, build_snapshot(runs, {card.name: card}, NOW), card)


def look(view: View, skill: str = "", filters: Filters | None = None) -> str:
    """The first step of an interaction: ranking and pair matrix."""
    query = BoardQuery(skill=skill, filters=filters or Filters())
    return board_view(resolve(query, view.boards), view)


def by_skill(view: View, filters: Filters | None = None) -> str:
    """The second step: the heatmap."""
    return skills_view(resolve(BoardQuery(filters=filters or Filters()), view.boards), view)


def styled(frame: pd.DataFrame) -> str:
    """The yardstick: the frame as a leaderboard built on pandas sends it."""
    return (
        frame.style.format(precision=2)
        .map(lambda value: f"background: rgba(80, 130, 200, {value:.2f})")
        .highlight_max(props="font-weight: bold")
        .to_html()
    )


def _milliseconds(run: Callable[[], str]) -> tuple[float, int]:
    start = time.process_time()
    html = run()
    return 1000 * (time.process_time() - start), len(html.encode())


def _actions(site: Site, frame: pd.DataFrame) -> dict[str, Callable[[], str]]:
    """What is timed in each round, in this order; each needs what stands before it."""
    views: dict[str, View] = {}
    new = count()

    def opened() -> str:
        views["now"] = site.fresh()
        return look(views["now"])

    def filtered() -> str:
        # Another filter each time, so that nothing of it is remembered from earlier rounds.
        left_out = next(new) % len(frame)
        terms = [f"metric-{m}" for m in range(len(frame)) if m != left_out]
        return look(views["now"], filters=Filters(",".join(terms)))

    scores = Filters(kind="scores")
    three = "skill-0,skill-1,skill-2"
    return {
        "Styler of the frame": lambda: styled(frame),
        "board opened, nothing read yet": opened,
        "the same again": lambda: look(views["now"]),
        "new filter: all but one metric": filtered,
        "new filter: scores only": lambda: look(views["now"], filters=scores),
        "the same filter again": lambda: look(views["now"], filters=scores),
        "one skill, first time": lambda: look(views["now"], "skill-1"),
        "mean of three skills, first time": lambda: look(views["now"], three),
        "mean of three skills, new filter": lambda: look(views["now"], three, scores),
        "heatmap, first time": lambda: by_skill(views["now"]),
        "heatmap again": lambda: by_skill(views["now"]),
        "heatmap, new filter": lambda: by_skill(views["now"], scores),
    }


def compare(site: Site, rounds: int) -> bool:
    """Print the table; whether the gate is met."""
    cells = site.snapshot.boards[site.card.name].cells
    frame = pd.DataFrame(
        [{"metric": c.entry_id, "skill": c.skill or "all", "value": c.value} for c in cells]
    ).pivot(index="metric", columns="skill", values="value")
    actions = _actions(site, frame)
    measured = [{name: _milliseconds(run) for name, run in actions.items()} for _ in range(rounds)]
    print(f"{frame.shape[0]} metrics x {frame.shape[1]} columns; CPU, median of {rounds} rounds")
    print(f"{'':36}{'ms':>9}{'of Styler':>11}{'KB sent':>9}")
    ratios: dict[str, float] = {}
    for name in actions:
        times = [one[name][0] for one in measured]
        ratios[name] = median(one[name][0] / one["Styler of the frame"][0] for one in measured)
        print(
            f"{name:36}{median(times):9.1f}{ratios[name]:11.2f}{measured[-1][name][1] / 1e3:9.0f}"
        )
    gated = max(ratios["new filter: all but one metric"], ratios["new filter: scores only"])
    met = gated <= GATE
    print(f"new filter within {GATE} of the Styler: {'yes' if met else 'NO'} ({gated:.2f})")
    first = median(one["heatmap, first time"][0] for one in measured)
    print(f"heatmap within {SECOND_STEP_MS} ms, else it needs a second step: {first:.0f} ms")
    return met


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", "benchmarks_perf.board_interaction", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the table; 0 where the gate is met."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="The boards page against a pandas Styler")
    parser.add_argument("--metrics", type=int, default=30)
    parser.add_argument("--skills", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = publish(Path(folder), options.metrics, options.skills)
        return 0 if compare(site, options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
