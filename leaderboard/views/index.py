"""Index over benchmarks under chosen weights, and its table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.publication.entries import Entry
from leaderboard.publication.index import IndexBase, IndexBoard, Ranked, is_recommended
from leaderboard.ranking.index import Interval
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.figures import by_value

HEAVIEST = 5.0  # Only ratios of weights matter, so a small range says everything
BY_INDEX, BY_BORDA, BY_NAME = "index", "borda", "name"
ORDERS = {BY_INDEX: "Index", BY_BORDA: "Borda", BY_NAME: "Name"}
WEIGHT = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)
_MOST_PARTS = 200
_MOST_REMARKS = 6


@dataclass(frozen=True)
class IndexChoice:
    """What is shown: weights and an order, resolved against what exists."""

    weights: Mapping[str, float]  # every benchmark of the index to its weight, in their order
    order: str  # one of `ORDERS`, or a benchmark of the index
    remarks: tuple[str, ...] = ()  # what was asked for and could not be done, in sentences

    def changed_weights(self, boards: Mapping[str, IndexBoard]) -> str:
        """The weights as in a link; empty where they are those to begin with.

        All are named as soon as one differs: what those to begin with are may change with the next
        publication, and the link is to show the same.
        """
        if all(weight == boards[name].weight for name, weight in self.weights.items()):
            return ""
        return ",".join(f"{name}:{plain(weight)}" for name, weight in self.weights.items())


def resolve_index(
    asked: str, boards: Mapping[str, IndexBoard], left_out: Mapping[str, str], order: str = ""
) -> IndexChoice:
    """Find what a link asks for, as `ts2:1,gecko:2`, saying so wherever that could not be done.

    Nothing asks for the weights to begin with, and for the order of the index.
    """
    weights = {name: board.weight for name, board in boards.items()}
    remarks: list[str] = []
    named: set[str] = set()
    parts = [part for part in asked.split(",") if part.strip()]
    for part in parts[:_MOST_PARTS]:
        name, _, given = part.strip().partition(":")
        if name in named:
            remarks.append(f"“{name}” has several weights; the first one counts.")
        elif name in left_out:
            remarks.append(f"{name} is not in the index: {left_out[name]}.")
        elif name not in boards:
            remarks.append(f"There is no benchmark “{name}” here, so it has no weight.")
        else:
            named.add(name)
            weights[name], remark = _weight(given, weights[name], boards[name].card.title)
            remarks += remark
    if len(parts) > _MOST_PARTS:
        remarks.append(f"Only the first {_MOST_PARTS} weights were read.")
    order = order or BY_INDEX
    if order not in ORDERS and order not in boards:
        remarks.append(f"There is no order by “{order}”.")
        order = BY_INDEX
    return IndexChoice(weights, order, few(remarks))


def plain(weight: float) -> str:
    """The weight without needless zeros, as `WEIGHT` reads it: never `1e-06`."""
    return f"{weight:.6f}".rstrip("0").rstrip(".")


def _weight(given: str, before: float, title: str) -> tuple[float, tuple[str, ...]]:
    if not WEIGHT.fullmatch(given):
        shown = f"“{given}” is no weight for {title}"
        return before, (f"{shown}: it takes a number from 0 to {HEAVIEST:g}.",)
    weight = float(given)
    if weight > HEAVIEST:
        return HEAVIEST, (f"Weights go up to {HEAVIEST:g}, so {title} has that.",)
    return weight, ()


def few(remarks: list[str]) -> tuple[str, ...]:
    """Not more than anybody reads: a link may hold hundreds of mistakes."""
    if len(remarks) <= _MOST_REMARKS:
        return tuple(remarks)
    more = len(remarks) - _MOST_REMARKS + 1
    return (*remarks[: _MOST_REMARKS - 1], f"{more} more parts of the link could not be used.")


def in_order(found: Sequence[Ranked], choice: IndexChoice, base: IndexBase) -> tuple[Ranked, ...]:
    """The metrics by what was chosen; those without a value there come last."""
    if choice.order == BY_INDEX:
        return tuple(found)
    if choice.order == BY_NAME:
        return tuple(sorted(found, key=lambda one: one.standing.metric))
    of_board = base.values.get(choice.order, {})

    def value(one: Ranked) -> float | None:
        if choice.order == BY_BORDA:
            found = one.standing.borda.value
        else:
            found = of_board[one.who].value if one.who in of_board else math.nan
        return None if math.isnan(found) else found

    return by_value(found, value, down=True)


INDEX = "index"  # In the column `benchmark`: the line of the index itself
COLUMNS = (
    "metric", "version", "submitter", "kind", "benchmark", "revision", "measure", "weight",
    "chance", "ceiling", "value", "ci_low", "ci_high", "rescaled", "rescaled_low", "rescaled_high",
    "rank_low", "rank", "rank_high", "tier", "best_share", "borda", "borda_low", "borda_high",
    "borda_rank", "common", "common_low", "common_high",
    "n_present", "n_missing_benchmarks", "note", "seed", "n_resamples", "plan", "versions",
    "submission_id", "account", "recommended", "released_with",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "weight chance ceiling value ci_low ci_high rescaled rescaled_low rescaled_high "
    "best_share borda borda_low borda_high common common_low common_high",
    Type.COUNT: "rank_low rank rank_high tier borda_rank n_present "
    "n_missing_benchmarks seed n_resamples",
    Type.FLAG: "recommended",
}
_MEANINGS = {
    "benchmark": "index: the row of the index itself.",
    "rescaled": "(value - chance) / (ceiling - chance); of the index: their weighted mean.",
    "rank": "Of the index: among metrics on every benchmark with a weight.",
    "tier": "1 is the best; within one no two differ significantly. Empty: not tested.",
    "best_share": "Share of the resamples in which it is the best, from 0 to 1.",
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
    """Every metric under the chosen weights, in the order of the page."""
    ordered = in_order(base.index_ranks(choice.weights), choice, base)
    among = sum(row.standing.rank is not None for row in ordered)
    rows = [
        record
        for row in ordered
        for record in (_index_line(row, among), *_board_lines(row, choice, base, entries))
    ]
    return Table(INDEX, columns_of(COLUMNS, _TYPES, _MEANINGS), rows, about or {})


def _index_line(row: Ranked, among: int) -> dict[str, Value]:
    standing = row.standing
    return {
        **_who(row),
        "benchmark": INDEX,
        **_span("rescaled", standing.index),
        **_ranks("rank", standing.rank),
        "tier": standing.tier,
        "best_share": standing.best_share,
        **_span("borda", standing.borda),
        "borda_rank": standing.borda_rank,
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
            line |= {"tier": cell.tier, "best_share": cell.best_share, "note": cell.note}
            # What the figure is computed again from; older results do not state it.
            entry = entries[cell.entry_id]
            stated = entry.provenance.get(name)
            line |= {
                "submission_id": entry.submission_id,
                **(stated.model_dump() if stated else {}),
            }
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


def _span(name: str, value: Interval) -> dict[str, Value]:
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}


def _ranks(name: str, rank: RankRange | None) -> dict[str, Value]:
    if rank is None:
        return {}
    return {f"{name}_low": rank.low, name: rank.rank, f"{name}_high": rank.high}
