"""Boards shown whole on the first page: which, in which order, and what stands beside their headline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.released.bundle import FOLDER
from benchmarks.schema import Benchmark
from benchmarks.scores import read_scores
from benchmarks.tifa160.protocol import Tifa160
from benchmarks.ts2.protocol import Ts2
from leaderboard.pages.overview.boards_first import MOST_BOARDS, board_section, boards_first
from leaderboard.pages.reading import View, view_of
from leaderboard.publication.snapshot import Published, build_snapshot
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.orders import Orders
from leaderboard.records import RunResult
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.index.index_fixture import NOW, index_view_of
from tests.leaderboard.pages.synthetic import submission


def released(benchmark: Benchmark, path: Path) -> View:
    """The board of a released scores file."""
    answers = benchmark.answers(None)
    table = read_scores(path, benchmark, answers)
    measured = benchmark.evaluate(table, answers, n_resamples=60)
    own = submission(0, "released", (benchmark.name,)).model_copy(update={"metrics": table.metrics})
    result = RunResult(
        submission_id=own.submission_id, benchmark=benchmark.name,
        revision=benchmark.card.revision, rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=1, n_resamples=60, isolation=("scores as submitted",), versions={},
        judged_at=NOW,
    )  # fmt: skip
    run = Published(own, result, Draws(measured.resamples, measured.contributions))
    snapshot = build_snapshot([run], {benchmark.name: benchmark.card}, NOW)
    return view_of(snapshot, {benchmark.name: benchmark.card}, Orders(memory_store()))


def test_the_boards_with_the_most_metrics_come_first() -> None:
    view = index_view_of().group()
    names = boards_first(view)
    assert len(names) == MOST_BOARDS
    ranked = {
        name: sum(cell.rank is not None for cell in board.cells(board.card.headline, None))
        for name, board in view.boards.items()
    }
    assert sorted((ranked[name] for name in names), reverse=True) == [ranked[n] for n in names]
    assert min(ranked[name] for name in names) >= max(
        n for name, n in ranked.items() if name not in names
    )


def test_a_board_with_one_metric_is_no_ranking() -> None:
    assert boards_first(index_view_of({"a": ("graphs",)})) == ()


@pytest.mark.parametrize(
    ("benchmark", "path", "metrics", "beside"),
    [
        (Ts2(), "ts2/scores.parquet", 19, ["Synth", "Nat", "Real"]),
        (Tifa160(), "tifa160/scores.parquet", 10, ["mean of 2 TIFA ratings"]),
    ],
    ids=["ts2", "tifa160"],
)
def test_a_released_board_is_shown_in_tiers_with_its_other_splits_or_golds(
    benchmark: Benchmark, path: str, metrics: int, beside: list[str]
) -> None:
    html = board_section(released(benchmark, FOLDER / path), benchmark.name)
    heads = re.findall(r'class="as-c-more"[^>]*>([^<]+?) <', html)
    assert heads == beside
    assert html.count('class="as-c-metric"') == metrics + 1
    tiers = re.findall(r">Tier (\d+)<", html)
    assert tiers == [str(k) for k in range(1, len(tiers) + 1)] and len(tiers) > 1
    assert f'href="./boards?benchmark={benchmark.name}"' in html
