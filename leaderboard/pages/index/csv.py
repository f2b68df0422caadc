"""The index as a table: for each metric a row for the index, then one for each benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leaderboard.pages.index.base import IndexBase, Ranked
from leaderboard.pages.index.query import IndexChoice
from leaderboard.pages.index.table import in_order
from leaderboard.pages.shown.recommending import is_recommended
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.index import Interval
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.tables import Table, Type, Value, columns_of, to_csv

INDEX = "index"
"""In the column `benchmark`: the line of the index itself."""
COLUMNS = (
    "metric", "version", "submitter", "kind", "benchmark", "revision", "measure", "weight",
    "chance", "ceiling", "value", "ci_low", "ci_high", "rescaled", "rescaled_low", "rescaled_high",
    "rank_low", "rank", "rank_high", "tier", "p_best", "borda", "borda_low", "borda_high",
    "borda_rank_low", "borda_rank", "borda_rank_high", "common", "common_low", "common_high",
    "n_present", "n_missing_benchmarks", "note", "seed", "n_resamples", "plan", "versions",
    "submission_id", "account", "recommended", "released_with",
)  # fmt: skip


_TYPES = {
    Type.NUMBER: "weight chance ceiling value ci_low ci_high rescaled rescaled_low rescaled_high "
    "p_best borda borda_low borda_high common common_low common_high",
    Type.COUNT: "rank_low rank rank_high tier borda_rank_low borda_rank borda_rank_high n_present "
    "n_missing_benchmarks seed n_resamples",
    Type.FLAG: "recommended",
}
_MEANINGS = {
    "benchmark": "index: the row of the index itself.",
    "rescaled": "(value - chance) / (ceiling - chance); of the index: their weighted mean.",
    "rank": "Of the index: among metrics on every benchmark with a weight.",
    "tier": "1 is the best; within one no two differ significantly. Empty: not tested.",
    "p_best": "Share of the resamples in which it is the best, from 0 to 1.",
    "borda": "Share of the weighted comparisons that it wins.",
    "common": "Over the benchmarks that all have.",
    "recommended": "Of the index: whether it may be: ranked, its interval, corrected for the "
    "number of metrics, wholly above 0, and no unchanged template.",
    "n_missing_benchmarks": "With a weight, and without a result of this metric.",
}


def index_table(
    base: IndexBase,
    choice: IndexChoice,
    entries: Mapping[str, Entry],
    about: Mapping[str, Any] | None = None,
) -> Table:
    """Every metric under the chosen weights, in the order of the page.

    Args:
        base: the benchmarks and metrics.
        choice: weights and order.
        entries: all entries by id, for what each figure is computed again from.
        about: what the table is of.
    """
    ordered = in_order(base.standings(choice.weights), choice, base)
    among = sum(row.standing.rank is not None for row in ordered)
    rows = [
        record
        for row in ordered
        for record in (_index_line(row, among), *_board_lines(row, choice, base, entries))
    ]
    return Table(INDEX, columns_of(COLUMNS, _TYPES, _MEANINGS), rows, about or {})


def index_csv(base: IndexBase, choice: IndexChoice, entries: Mapping[str, Entry]) -> str:
    """The same as CSV; empty fields where there is no value."""
    return to_csv(index_table(base, choice, entries))


def _index_line(row: Ranked, among: int) -> dict[str, Value]:
    standing = row.standing
    return {
        **_who(row),
        "benchmark": INDEX,
        **_span("rescaled", standing.index),
        **_ranks("rank", standing.rank),
        "tier": standing.tier,
        "p_best": standing.p_best,
        **_span("borda", standing.borda),
        **_ranks("borda_rank", standing.borda_rank),
        **_span("common", standing.common),
        "n_present": len(standing.present),
        "n_missing_benchmarks": len(standing.missing),
        "note": standing.note,
        "recommended": is_recommended(row.entry, standing, among),
    }


def _board_lines(
    row: Ranked, choice: IndexChoice, base: IndexBase, entries: Mapping[str, Entry]
) -> Sequence[dict[str, Value]]:
    lines = []
    for name, weight in choice.weights.items():
        board = base.boards[name]
        line: dict[str, Value] = {
            **_who(row),
            "benchmark": name,
            "revision": board.card.revision,
            "measure": board.card.headline.measure,
            "weight": weight,
            "chance": board.scale.chance,
            "ceiling": board.scale.ceiling,
        }
        cell = board.cells.get(row.who)
        if cell is None:
            line["note"] = board.unfit.get(row.who) or "not run on this benchmark"
        else:
            line |= _span("rescaled", base.values[name][row.who])
            line |= {"value": cell.value, "ci_low": cell.ci_low, "ci_high": cell.ci_high}
            line |= {"rank_low": cell.rank_low, "rank": cell.rank, "rank_high": cell.rank_high}
            line |= {"tier": cell.tier, "p_best": cell.p_best, "note": cell.note}
            line |= _provenance(entries[cell.entry_id], name)
        lines.append(line)
    return lines


def _who(row: Ranked) -> dict[str, Value]:
    who = row.who
    return {
        "metric": who.metric,
        "version": who.version,
        "submitter": who.submitter,
        "account": row.entry.account,
        "kind": who.kind.value,
        "released_with": row.entry.released_with,
    }


def _provenance(entry: Entry, benchmark: str) -> dict[str, Value]:
    """What the figure is computed again from; empty for results older than the statements."""
    known = entry.provenance.get(benchmark)
    found: dict[str, Value] = {"submission_id": entry.submission_id}
    return found if known is None else {**found, **known.model_dump()}


def _span(name: str, value: Interval) -> dict[str, Value]:
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}


def _ranks(name: str, rank: RankRange | None) -> dict[str, Value]:
    if rank is None:
        return {}
    return {f"{name}_low": rank.low, name: rank.rank, f"{name}_high": rank.high}
