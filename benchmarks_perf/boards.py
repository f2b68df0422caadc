"""What boards compute when somebody looks: interactions, loading, the index, models."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.parquet import write_stored
from benchmarks.prompt_sets.prompt_set import MEASURE, MEASURES, PromptSet, SetPrompt, pair_id
from benchmarks.schema import Card, MeasureInfo, Scale, ScoreTable, Selector
from benchmarks_perf.made_up_store import NOW, Size, cards_of_size, fill, plan_of, runs_of
from benchmarks_perf.measuring import Figure, interleaved, seconds
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery as ModelQuery
from leaderboard.models.reading import ModelReader, scores_path
from leaderboard.publication.entries import Entry
from leaderboard.publication.model_entries import PATH, ModelEntry, ModelTrack, track_bytes
from leaderboard.publication.publisher import Publisher, build_snapshot
from leaderboard.publication.reader import View, view_of
from leaderboard.publication.snapshot import (
    Board,
    Snapshot,
    parse_snapshot,
    read_snapshot,
    snapshot_bytes,
)
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.index import Comparison, Headlines
from leaderboard.ranking.orders import Orders
from leaderboard.records import ImagesSeen, JudgeRun, Kind
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from leaderboard.views.boards import Arrangement, BoardQuery, Filters, every_key, resolve
from leaderboard.web.benchmark_tab import board_html
from tests.kit.store import memory_store

N_MODELS, N_SKILLS = 50, 12
JUDGES = ("vqa/vqa", "clip/clip", "dsg/dsg")
SKILLS = {f"s{i}": f"Skill {i}" for i in range(N_SKILLS)}
FILTERS = ("red", "cat", "red cat", "dog", "blue dog")
_WORDS = ("red", "blue", "cat", "dog", "two", "three")


def interaction(metrics: int = 500, columns: int = 60, rounds: int = 3) -> Iterator[Figure]:
    """Filters, sorting and rows of a board with all its columns, and with the ranked one alone.

    The yardstick is a Styler with two decimals, coloured cells and the best of a column bold. What
    a page sends is a hundred rows; ranks in it, search and sorting are of all.
    """
    size = Size(-(-metrics * 10 // 6), boards=1, slices=columns)
    cards = cards_of_size(size)
    card = next(iter(cards.values()))
    with tempfile.TemporaryDirectory() as folder:
        store = folder_store(Path(folder))
        fill(store, size)
        Publisher(store, cards).publish_cards(NOW)
        snapshot = read_snapshot(store.public)
        assert snapshot is not None
        view = view_of(snapshot, cards, Orders(store))
        cells = snapshot.boards[card.name].cells
        frame = pd.DataFrame(
            {"metric": c.entry_id, "of": (c.measure, c.split, c.skill), "value": c.value}
            for c in cells
        ).pivot(index="metric", columns="of", values="value")
        keys = tuple(every_key(view.boards[card.name]))[1:columns]
        plain, wide, new = Arrangement(), Arrangement(keys), count(1)

        def look(arranged: Arrangement, filters: Filters) -> str:
            query = BoardQuery(arranged=arranged, filters=filters)
            return board_html(resolve(query, view.boards), view)

        def fresh() -> Filters:
            # Another choice of most metrics each time, so that nothing of it is remembered.
            return Filters(f"-{next(new)},group 1,group 2,group 3,group 4,group 5")

        metric = Filters(kind="metric")
        actions: dict[str, Callable[[], str]] = {
            "Styler": lambda: _styled(frame),
            "new filter": lambda: look(plain, fresh()),
            "search for one name": lambda: look(plain, Filters(f"metric-{next(new)}")),
            "all columns, new filter": lambda: look(wide, fresh()),
            "all columns, same filter": lambda: look(wide, metric),
            "sorted by a column": lambda: look(Arrangement(keys, sort=keys[7]), metric),
            "next rows": lambda: look(Arrangement(keys, page=2), metric),
            "no filter": lambda: look(plain, Filters()),
        }
        # The first of them reads the cells of all columns, once for a version of the store.
        sent = {name: len(run().encode()) for name, run in actions.items()}
        times = interleaved(actions, rounds)
    for name in list(actions)[1:]:
        ratio = times.ratio(name, "Styler")
        details = f"{1e3 * times.of(name):.1f} ms, {sent[name] / 1e3:.0f} kB sent"
        yield Figure(f"{name}, of a Styler", ratio, "x", at_most=0.25, details=details)


def _styled(frame: pd.DataFrame) -> str:
    """The frame as a leaderboard built on pandas sends it."""
    return (
        frame.style.format(precision=2)
        .map(lambda value: f"background: rgba(80, 130, 200, {value:.2f})")
        .highlight_max(props="font-weight: bold")
        .to_html()
    )


def loading(results: int = 1000, rounds: int = 3) -> Iterator[Figure]:
    """From bytes on disk to the cells of the headline and a frame of all rows.

    Ranks are left out on purpose: what is compared is how the rows are kept.
    """
    size = Size(-(-results * 10 // 6), boards=1)
    cards = cards_of_size(size)
    card = next(iter(cards.values()))
    with tempfile.TemporaryDirectory() as scratch:
        folder, bare = Path(scratch), []
        for run in runs_of(size, range(size.submissions), plan_of()):
            path = folder / f"{run.submission.submission_id}.json"
            path.write_text(run.result.model_dump_json())
            bare.append(type(run)(run.submission, run.result))
        table = folder / "snapshot.parquet"
        table.write_bytes(snapshot_bytes(build_snapshot(bare, cards, NOW)))
        files = sorted(folder.glob("*.json"))

        def of_table() -> int:
            board = parse_snapshot(table.read_bytes()).boards[card.name]
            assert len(board.slice(card.headline, None)) == len(files)
            return len(board.columns.table.to_pandas())

        def of_files(loads: Callable[[bytes], Any]) -> int:
            return len(
                pd.DataFrame([row for path in files for row in loads(path.read_bytes())["rows"]])
            )

        sides = {"table": of_table, "json": lambda: of_files(json.loads)}
        if importlib.util.find_spec("orjson") is not None:
            orjson = importlib.import_module("orjson")
            sides["orjson"] = lambda: of_files(orjson.loads)
        assert {run() for run in sides.values()} == {len(files) * size.slices}
        times = interleaved(sides, rounds)
    for name in list(sides)[1:]:
        yield times.compared(f"{len(files)} files with {name}", name, "table", at_least=5)


def index_weights(metrics: int = 200, benchmarks: int = 16, rounds: int = 3) -> Iterator[Figure]:
    """Index, intervals, ranks and Borda's count of 1,000 resamples, as a visitor moves a weight.

    A tenth of the metrics lack some benchmarks. The plain form averages each metric's resamples
    with pandas, benchmark by benchmark, and ranks those with full coverage.
    """
    rng = np.random.default_rng(0)
    worth, patchy = rng.random(metrics), rng.random(metrics) < 0.1
    scale = Scale(chance=0.2, ceiling=0.8, ceiling_is="made up", source="made up")
    boards = []
    for k in range(benchmarks):
        has = np.flatnonzero(~patchy | (rng.random(metrics) < 2 / 3))
        values = worth[has] + 0.1 * rng.normal(size=has.size)
        resamples = values[:, None] + 0.05 * rng.normal(size=(has.size, 1000))
        names = tuple(f"metric {i:03}" for i in has)
        boards.append(Headlines(f"benchmark {k:02}", scale, names, values, resamples))
    made: list[Comparison] = []
    once = seconds(lambda: made.append(Comparison(boards)))
    tables = {
        board.benchmark: (
            (pd.Series(board.values, list(board.metrics)) - 0.2) / (0.8 - 0.2),
            (pd.DataFrame(board.resamples, list(board.metrics)) - 0.2) / (0.8 - 0.2),
        )
        for board in boards
    }
    draws = (
        {board.benchmark: float(drawn) for board, drawn in zip(boards, row, strict=True)}
        for row in rng.random((3 * rounds + 2, benchmarks))
    )

    def ours(weights: dict[str, float]) -> pd.DataFrame:
        columns = ["value", "low", "high", "rank", "best", "worst"]
        standings = made[0].index_ranks(weights)
        rows = {s.metric: [*s.index, *(s.rank or [np.nan] * 3)] for s in standings}
        return pd.DataFrame(rows, index=columns).T.sort_index()

    weights = next(draws)
    apart = float((_plain_index(tables, weights) - ours(weights)).abs().max().max())
    yield Figure("values, intervals and ranks, largest difference", apart, at_most=1e-9)
    sides = {
        "pandas": lambda: _plain_index(tables, next(draws)),
        "ours": lambda: ours(next(draws)),
    }
    times = interleaved(sides, rounds)
    yield times.compared("a new weight", "pandas", "ours")
    yield Figure("a new weight", times.of("ours"), "s", at_most=0.1)
    yield Figure("once for a page", once, "s")


def _plain_index(
    tables: dict[str, tuple[pd.Series, pd.DataFrame]], weights: dict[str, float]
) -> pd.DataFrame:
    """Value, interval, rank and range of each metric, as the definition reads."""
    rows, draws = {}, {}
    for metric in sorted({name for values, _ in tables.values() for name in values.index}):
        there = [name for name, (values, _) in tables.items() if metric in values.index]
        total = sum(weights[name] for name in there)
        value = sum(weights[name] * tables[name][0][metric] for name in there) / total
        drawn = sum(weights[name] * tables[name][1].loc[metric] for name in there) / total
        rows[metric] = [value, *drawn.quantile([0.025, 0.975])]
        if len(there) == len(tables):
            draws[metric] = drawn
    table = pd.DataFrame(rows, index=["value", "low", "high"]).T
    ranks = pd.DataFrame(draws).rank(axis=1, method="min", ascending=False)
    table["rank"] = table.loc[list(draws), "value"].rank(method="min", ascending=False)
    table["best"] = ranks.quantile(0.025, interpolation="nearest")
    table["worst"] = ranks.quantile(0.975, interpolation="nearest")
    return table


def model_filter(prompts: int = 1600, seeds: int = 1) -> Iterator[Figure]:
    """Fifty models with the scores of three metrics on twelve skills; the filter is new."""
    made = _models(prompts, seeds)

    def board(words: str = "") -> None:
        model_board(made.reader, made.view, ModelQuery("drawn", words=words))

    yield Figure("first board, with reading", seconds(board), "s")
    taken = [seconds(lambda w=words: board(w)) for words in FILTERS]  # type: ignore[misc]
    worst = f"at most {max(taken):.3f} s"
    yield Figure("a new filter", float(np.median(taken)), "s", at_most=0.5, details=worst)
    yield Figure("the same again", seconds(lambda: board(FILTERS[0])), "s")


@dataclass(frozen=True)
class _Models:
    """Models in a store, the boards of their judges, prompts, and judge to scores (M, S, P)."""

    reader: ModelReader
    view: View
    prompts: tuple[SetPrompt, ...]
    scores: dict[str, np.ndarray]


def _models(n_prompts: int, n_seeds: int) -> _Models:
    """Each model is a little better than the one before, with the noise of its prompts."""
    rng = np.random.default_rng(5)
    prompts = tuple(
        SetPrompt(
            f"p{i}",
            " ".join(rng.permutation(_WORDS)[:4]),
            skills=tuple(f"s{k}" for k in rng.permutation(N_SKILLS)[:3]),
        )
        for i in range(n_prompts)
    )
    quality = np.linspace(0.4, 0.6, N_MODELS)
    hard = 0.1 * rng.standard_normal(n_prompts)
    shape = (N_MODELS, n_seeds, n_prompts)
    scores = {
        judge: quality[:, None, None] + hard + 0.15 * rng.standard_normal(shape) for judge in JUDGES
    }
    ids = [pair_id(p.prompt_id, seed) for seed in range(n_seeds) for p in prompts]
    images = ImagesSeen(
        prompt_set="drawn",
        revision="1",
        seeds=tuple(range(n_seeds)),
        wanted=len(ids),
        present=len(ids),
    )
    files: dict[str, bytes] = {}
    entries: dict[str, ModelEntry] = {}
    for m in range(N_MODELS):
        name = f"model-{m:02d}-0123456789"
        table = pd.DataFrame({k: of[m].ravel() for k, of in scores.items()}, index=ids)
        kept = ScoreTable(table.rename_axis("pair_id"))
        files[scores_path(name, "drawn")] = write_stored(
            kept, submission_id=name, benchmark="drawn", revision="1"
        )
        runs = {
            judge: JudgeRun(submission_id=judge.partition("/")[0], metric=judge, scored_at=NOW)
            for judge in JUDGES
        }
        entries[name] = ModelEntry(
            submission_id=name, model=name, submitter="ada", images=images, judges=runs,
            received_at=NOW, published_at=NOW, since=NOW,
        )  # fmt: skip
    files[PATH] = track_bytes(ModelTrack(entries))
    store = memory_store()
    transact(store.public, lambda: files, "made up")
    known = PromptSet(_card("drawn", MEASURE, MEASURES), lambda _: prompts)
    reader = ModelReader(store, {"drawn": known}, None)
    return _Models(reader, _judges_view(Orders(store)), prompts, scores)


def _card(name: str, measure: str, measures: Mapping[str, MeasureInfo]) -> Card:
    return Card(
        name=name, title=name, family="made_up", summary="s", description="d", revision="1",
        cluster="prompt", headline=Selector(measure=measure), skills=SKILLS, measures=dict(measures),
    )  # fmt: skip


def _judges_view(orders: Orders) -> View:
    srcc = {"srcc": MeasureInfo(title="Spearman", meaning="m", chance=0.0)}
    card = _card("rated", "srcc", srcc)
    cells = [
        Cell(
            entry_id=judge, measure="srcc", variant=None, split=None, facet=None, skill=skill,
            value=0.5, ci_low=0.4, ci_high=0.6, n_items=100, n_clusters=50, n_missing=0, note="",
            rank=1, rank_low=1, rank_high=3, tier=1,
        )
        for judge in JUDGES
        for skill in (None, *SKILLS)
    ]  # fmt: skip
    entries = {
        judge: Entry(
            entry_id=judge, submission_id=judge.partition("/")[0], metric=judge,
            kind=Kind.METRIC, submitter="ada", received_at=NOW, published_at=NOW,
        )
        for judge in JUDGES
    }  # fmt: skip
    snapshot = Snapshot(NOW, entries, {card.name: Board(card, cells)})
    return view_of(snapshot, {card.name: card}, orders, "1")
