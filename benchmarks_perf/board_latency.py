"""What looking at a large board costs: 500 metrics with 60 columns, and loading 1,000 results.

    python -m benchmarks_perf.board_latency [--metrics 500] [--columns 60] [--results 1000]
        [--rounds 5]

The board is published as real ones are, with 1,000 resamples and 250 blocks behind each value and
with the tests between each two entries of its headline. The first filters of a view that has read
nothing are timed by themselves, for few entries and for many. Then the
page is asked for filters nobody asked for before, for sorting by a column and for the next rows,
once with the ranked measure alone and once with all columns beside it. The yardstick is a pandas
Styler of the same frame, made in the same rounds. What a page sends is a hundred rows; the ranks
in it, the search and the sorting are of all.

Loading compares the compacted table of a snapshot of 1,000 results with 1,000 JSON files of the
same rows, read with the standard library, and with orjson where that is installed: bytes on disk to
the cells of the headline, and to a frame.

CPU time of the process on one thread, medians of ratios. The gates: an interaction within a quarter
of the Styler; the table loaded in at most a fifth of the time that the JSON files take.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from benchmarks_perf.board_interaction import (
    NOW,
    Site,
    board_card,
    publish,
    run_of,
    styled,
)
from leaderboard.pages.boards.arrangement import Arrangement
from leaderboard.pages.boards.columns import every_key
from leaderboard.pages.boards.filters import Filters
from leaderboard.pages.boards.query import BoardQuery, resolve
from leaderboard.pages.boards.view import board_body
from leaderboard.pages.reading import View
from leaderboard.publication.snapshot import build_snapshot, parse_snapshot, snapshot_bytes
from leaderboard.ranking.pairs import Pairs, pairs_file, pairs_path

INTERACTION, LOADING = 0.25, 5.0
_SKILLS_OF_RESULTS = 59
"""With the value over all items, sixty rows a result, as in `store_load`."""


def publish_tests(site: Site) -> None:
    """Put the tests of the headline beside the snapshot, as publication does."""
    card, view = site.card, site.fresh()
    whole = view.orders.ranked(card, [view.boards[card.name].cells(card.headline, None)])
    if whole.ordering.tests is None:
        raise SystemExit("The made-up board has no tests.")
    ids = tuple(cell.entry_id for cell in whole.cells)
    content = pairs_file(card.name, Pairs(card.revision, ids, whole.ordering.tests))
    public = site.store.public
    public.commit({pairs_path(card.name): content}, parent=public.head(), message="tests")


def look(view: View, arranged: Arrangement, filters: Filters) -> str:
    """What the page answers to a change of filter, columns, sorting or rows."""
    query = BoardQuery(arranged=arranged, filters=filters)
    return board_body(resolve(query, view.boards), view)


def interactions(site: Site, view: View) -> dict[str, Callable[[], str]]:
    """What is timed in each round."""
    board = view.boards[site.card.name]
    columns = tuple(every_key(board))[1:60]
    plain, wide = Arrangement(), Arrangement(columns)
    new = count(1)

    def fresh() -> Filters:
        # Another choice of most metrics each time, so that nothing of it is remembered.
        return Filters(f"-{next(new)},group 1,group 2,group 3,group 4,group 5")

    metrics = Filters(kind="metric")
    return {
        "new filter": lambda: look(view, plain, fresh()),
        "search for one name": lambda: look(view, plain, Filters(f"metric-{next(new)}")),
        "all columns, new filter": lambda: look(view, wide, fresh()),
        "all columns, same filter": lambda: look(view, wide, metrics),
        "sorted by a column": lambda: look(view, Arrangement(columns, sort=columns[7]), metrics),
        "next rows": lambda: look(view, Arrangement(columns, page=2), metrics),
        "opened, no filter": lambda: look(view, plain, Filters()),
    }


def compare_interactions(site: Site, rounds: int) -> bool:
    """Print the table of interactions; whether the gate is met."""
    cells = site.snapshot.boards[site.card.name].cells
    frame = pd.DataFrame(
        [{"metric": c.entry_id, "skill": c.skill or "all", "value": c.value} for c in cells]
    ).pivot(index="metric", columns="skill", values="value")
    view = site.fresh()
    first = _worked(lambda: look(view, Arrangement(), Filters()))
    prepared = _worked(lambda: look(view, Arrangement(), Filters(kind="metric")))
    small = site.fresh()
    few = _worked(lambda: look(small, Arrangement(), Filters("metric-1,metric-2")))
    for run in interactions(site, view).values():
        run()  # The cells of all columns are read once for a version of the store.
    actions = interactions(site, view)
    ratios: dict[str, list[float]] = {name: [] for name in actions}
    times: dict[str, list[float]] = {name: [] for name in (*actions, "Styler")}
    sizes: dict[str, int] = {}
    for _ in range(rounds):
        yardstick = _worked(lambda: styled(frame))
        times["Styler"].append(yardstick)
        for name, run in actions.items():
            made: list[str] = []
            worked = _worked(lambda run=run, made=made: made.append(run()))  # type: ignore[misc]
            times[name].append(worked)
            ratios[name].append(worked / yardstick)
            sizes[name] = len(made[0].encode())
    print(f"{frame.shape[0]} metrics x {frame.shape[1]} columns; CPU, median of {rounds}")
    print(f"{'Styler of the frame':28}{1000 * median(times['Styler']):9.1f} ms")
    for name, of in ratios.items():
        print(
            f"{name:28}{1000 * median(times[name]):9.1f} ms{median(of):8.3f} of the Styler"
            f"{sizes[name] / 1e3:9.0f} KB sent"
        )
    print(f"first look at the board, nothing read yet: {1000 * first:.0f} ms")
    print(f"first filter of another view, by two words: {1000 * few:.0f} ms")
    print(f"first filter, which keeps most: {1000 * prepared:.0f} ms")
    print(f"remembered of draws, rankings and tests: {view.orders.nbytes / 1e6:.0f} MB")
    worst = max(median(of) for of in ratios.values())
    met = worst <= INTERACTION
    print(f"every one within {INTERACTION} of the Styler: {'yes' if met else 'NO'} ({worst:.3f})")
    return met


def compare_loading(folder: Path, results: int, rounds: int) -> bool:
    """Print what loading costs; whether the gate is met."""
    card = board_card(_SKILLS_OF_RESULTS)
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(1 + _SKILLS_OF_RESULTS, 250))
    quality = np.linspace(0.7, 0.3, results)
    runs = [
        run_of(m, quality[m] + 0.03 * rng.normal(size=1 + _SKILLS_OF_RESULTS), shared, card)
        for m in range(results)
    ]
    for run in runs:
        path = folder / f"{run.submission.submission_id}.json"
        path.write_text(run.result.model_dump_json())
    # Ranks are left out on purpose: what is compared is how the rows are kept.
    bare = [type(run)(run.submission, run.result) for run in runs]
    table = folder / "snapshot.parquet"
    table.write_bytes(snapshot_bytes(build_snapshot(bare, {card.name: card}, NOW)))
    files = sorted(folder.glob("*.json"))

    def of_table() -> int:
        board = parse_snapshot(table.read_bytes()).boards[card.name]
        headline = board.slice(card.headline, None)
        return len(board.columns.table.to_pandas()) if len(headline) == results else 0

    def of_files(loads: Callable[[bytes], dict[str, object]]) -> int:
        rows: list[object] = []
        for path in files:
            found = loads(path.read_bytes())["rows"]
            rows += found if isinstance(found, list) else []
        return len(pd.DataFrame(rows))

    readers: dict[str, Callable[[bytes], dict[str, object]]] = {"json": json.loads}
    if importlib.util.find_spec("orjson") is not None:
        readers["orjson"] = __import__("orjson").loads
    assert of_table() == of_files(json.loads) == results * (1 + _SKILLS_OF_RESULTS)
    ratios: dict[str, list[float]] = {name: [] for name in readers}
    own: list[float] = []
    for _ in range(rounds):
        own.append(_worked(of_table))
        for name, loads in readers.items():
            ratios[name].append(_worked(lambda loads=loads: of_files(loads)) / own[-1])  # type: ignore[misc]
    print(
        f"\n{results} results with {1 + _SKILLS_OF_RESULTS} rows each; table {1000 * median(own):.1f} ms"
    )
    for name, of in ratios.items():
        print(f"{results} files with {name}: {median(of):.1f} times as long")
    least = min(median(of) for of in ratios.values())
    met = least >= LOADING
    print(f"at least {LOADING} times: {'yes' if met else 'NO'} ({least:.1f})")
    return met


def _worked(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", "benchmarks_perf.board_latency", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the tables; 0 where the gates are met."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="A large board against a pandas Styler")
    parser.add_argument("--metrics", type=int, default=500)
    parser.add_argument("--columns", type=int, default=60)
    parser.add_argument("--results", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        site = publish(Path(scratch), options.metrics, options.columns - 1)
        publish_tests(site)
        fast = compare_interactions(site, options.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        small = compare_loading(Path(scratch), options.results, options.rounds)
    return 0 if fast and small else 1


if __name__ == "__main__":
    sys.exit(main())
