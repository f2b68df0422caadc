"""The index as CSV: for each metric a line for the index, then one for each benchmark."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

from leaderboard.pages.index.base import IndexBase, Ranked
from leaderboard.pages.index.query import IndexChoice
from leaderboard.pages.index.table import in_order
from leaderboard.pages.shown.csv_export import harmless
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.index import Interval
from leaderboard.ranking.rank_ranges import RankRange

INDEX = "index"
"""In the column `benchmark`: the line of the index itself."""
COLUMNS = (
    "metric", "version", "submitter", "kind", "benchmark", "revision", "measure", "weight",
    "chance", "ceiling", "value", "ci_low", "ci_high", "rescaled", "rescaled_low", "rescaled_high",
    "rank_low", "rank", "rank_high", "p_best", "borda", "borda_low", "borda_high",
    "borda_rank_low", "borda_rank", "borda_rank_high", "common", "common_low", "common_high",
    "n_present", "n_missing_benchmarks", "note", "seed", "n_resamples", "plan", "versions",
    "submission_id", "account",
)  # fmt: skip


def index_csv(base: IndexBase, choice: IndexChoice, entries: Mapping[str, Entry]) -> str:
    """Every metric under the chosen weights; empty fields where there is no value.

    Args:
        base: the benchmarks and metrics.
        choice: weights and order.
        entries: all entries by id, for what each figure is computed again from.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in in_order(base.standings(choice.weights), choice, base):
        for record in (_index_line(row), *_board_lines(row, choice, base, entries)):
            writer.writerow({key: harmless(_empty_if_nan(value)) for key, value in record.items()})
    return out.getvalue()


def _index_line(row: Ranked) -> dict[str, object]:
    standing = row.standing
    return {
        **_who(row),
        "benchmark": INDEX,
        **_span("rescaled", standing.index),
        **_ranks("rank", standing.rank),
        "p_best": standing.p_best,
        **_span("borda", standing.borda),
        **_ranks("borda_rank", standing.borda_rank),
        **_span("common", standing.common),
        "n_present": len(standing.present),
        "n_missing_benchmarks": len(standing.missing),
        "note": standing.note,
    }


def _board_lines(
    row: Ranked, choice: IndexChoice, base: IndexBase, entries: Mapping[str, Entry]
) -> Sequence[dict[str, object]]:
    lines = []
    for name, weight in choice.weights.items():
        board = base.boards[name]
        line: dict[str, object] = {
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
            line |= {"p_best": cell.p_best, "note": cell.note}
            line |= _provenance(entries[cell.entry_id], name)
        lines.append(line)
    return lines


def _who(row: Ranked) -> dict[str, object]:
    who = row.who
    return {
        "metric": who.metric,
        "version": who.version,
        "submitter": who.submitter,
        "account": row.entry.account,
        "kind": who.kind.value,
    }


def _provenance(entry: Entry, benchmark: str) -> dict[str, object]:
    """What the figure is computed again from; empty for results older than the statements."""
    known = entry.provenance.get(benchmark)
    found: dict[str, object] = {"submission_id": entry.submission_id}
    return found if known is None else {**found, **known.model_dump()}


def _span(name: str, value: Interval) -> dict[str, object]:
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}


def _ranks(name: str, rank: RankRange | None) -> dict[str, object]:
    if rank is None:
        return {}
    return {f"{name}_low": rank.low, name: rank.rank, f"{name}_high": rank.high}


def _empty_if_nan(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value
