"""From published scores alone, `compare` gives the board's differences and p-values, bit for bit."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leaderboard.publication.reader import Reader
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.store.folder import folder_store
from leaderboard.views.boards import BoardQuery, resolve
from leaderboard.views.comparison import comparison_page
from tests.end_to_end.commands import evaluator

pytestmark = pytest.mark.slow

PAIR = ("two-tower", "colour-reader")
COMPARED = (
    "value_a", "value_b", "difference", "ci_low", "ci_high", "ci_method", "percentile_low",
    "percentile_high", "p_value", "n_patterns", "exact", "n_differing", "unit", "n_units",
    "n_better_a", "n_tied", "n_better_b", "t", "t_p", "wilcoxon_w", "wilcoxon_p", "effect",
    "effect_low", "effect_high",
)  # fmt: skip


def downloaded(store: Path, board: str, folder: Path) -> list[Path]:
    """The published scores of both metrics, as a visitor has them."""
    found: list[Path] = []
    for metric in PAIR:
        of_metric = next((store / "public" / "results").glob(f"{metric}-*/{board}.scores.parquet"))
        found.append(Path(shutil.copy(of_metric, folder / f"{metric}.parquet")))
    return found


def compared(board: str, files: list[Path], *more: str) -> list[dict[str, Any]]:
    done = evaluator("compare", board, "--scores", *files, "--json", *more)
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = json.loads(done.stdout)
    return records


@pytest.mark.parametrize("board", ["demo_croc", "demo_ts2", "demo_gecko"])
def test_compare_gives_the_numbers_of_the_board(demo: Path, tmp_path: Path, board: str) -> None:
    store = folder_store(demo)
    snapshot = read_snapshot(store.public)
    assert snapshot is not None
    view = Reader(store, {name: b.card for name, b in snapshot.boards.items()}).view()
    choice = resolve(BoardQuery(benchmark=board), view.boards)
    ranked = view.orders.ranked(choice.board.card, choice.slices())
    names = [view.entries[cell.entry_id].metric for cell in ranked.cells]
    a, b = (names.index(metric) for metric in PAIR)
    tests = ranked.ordering.tests
    assert tests is not None

    files = downloaded(demo, board, tmp_path)
    first, *others = compared(board, files, "--skills", "--all")
    assert first["n_differing"] == tests.n_units[a, b]
    values = [ranked.cells[place].value for place in (a, b)]
    assert None not in values
    assert first["difference"] == (values[0] or 0.0) - (values[1] or 0.0)
    assert first["difference"] == pytest.approx(tests.difference[a, b], abs=1e-9)

    entries = [ranked.cells[place].entry_id for place in (a, b)]
    page = comparison_page(choice, entries[0], entries[1], view)
    on_page = {_place(row.to_json()): row.to_json() for row in page.skills + page.measures}
    on_page[_place(first)] = page.chosen.to_json()
    both = [record for record in (first, *others) if _place(record) in on_page]
    assert len(both) == len(on_page)
    for record in both:
        theirs = on_page[_place(record)]
        assert {k: record[k] for k in COMPARED} == {k: theirs[k] for k in COMPARED}


def test_the_interval_is_that_of_the_published_draws(demo: Path, tmp_path: Path) -> None:
    store = folder_store(demo)
    snapshot = read_snapshot(store.public)
    assert snapshot is not None
    board = snapshot.boards["demo_croc"]
    view = Reader(store, {"demo_croc": board.card}).view()
    cells = view.boards["demo_croc"].cells(board.card.headline, None)
    found = view.orders.slice(board.card, cells)
    at = {view.entries[cell.entry_id].metric: i for i, cell in enumerate(found.cells)}
    resamples = found.draws.resamples.astype(float)
    drawn = resamples[at[PAIR[0]]] - resamples[at[PAIR[1]]]
    first = compared("demo_croc", downloaded(demo, "demo_croc", tmp_path))[0]
    assert first["n_resamples"] == drawn.size == 1000
    assert [first["percentile_low"], first["percentile_high"]] == pytest.approx(
        np.quantile(drawn, [0.025, 0.975]).tolist(), abs=1e-9
    )
    assert first["ci_low"] <= first["difference"] <= first["ci_high"]
    assert first["seed"] == board.seed
    assert math.isfinite(first["effect"])


def _place(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("measure", "variant", "split", "facet", "skill"))
