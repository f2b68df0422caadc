"""Metrics against each other: two to four on a board, over benchmarks, and then against now."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from benchmarks.statistics.resampling import seed_of
from leaderboard.api.operations import RATINGS, Asked, Operation, Parameter
from leaderboard.api.problems import bad_query, not_found
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import SLICE, as_of, bounded, refuse
from leaderboard.publication.entries import Entry
from leaderboard.publication.reader import View
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.boards import Choice
from leaderboard.views.changes import MovedQuery, comparison, moved_table
from leaderboard.views.comparison import COLUMNS, CompareQuery, Shown, opponents, shown
from leaderboard.views.index import IndexQuery, index_table, resolve_index

_FURTHER = ("c", "d")
_TYPES = {
    Type.NUMBER: "value_a value_b difference ci_low ci_high percentile_low percentile_high p_value "
    "p_corrected t t_p wilcoxon_w wilcoxon_p effect effect_low effect_high",
    Type.COUNT: "n_tests n_patterns n_differing n_units n_better_a n_tied n_better_b seed "
    "n_resamples",
    Type.FLAG: "higher_is_better exact",
}
_MEANINGS = {
    "shown_as": "chosen: by measure and skill of the query; skill, measure: the page's two tables.",
    "difference": "Value of a less that of b.",
    "p_value": "Paired permutation test, two-sided, before correction.",
    "p_corrected": "See correction and n_tests.",
    "kind_a": "metric: run by Assay; scores: as submitted or released, not re-run.",
    "kind_b": "Likewise.",
    "effect": "d_z: mean over standard deviation of the units' differences.",
}


def compare(source: Source, asked: Asked) -> Table:
    """Two to four metrics of a board, each two as the page that compares them shows them.

    Raises:
        RefusedError: `unknown_benchmark`, `bad_query`.
    """
    view = source.reader.view()
    pair = opponents(CompareQuery.from_params(asked.params), view)
    refuse(pair.remarks)
    if pair.choice.selector is None or pair.a is None or pair.b is None:
        raise bad_query("There are no two metrics to compare by this.", "See /v1/entries.")
    further = [asked.params[name] for name in _FURTHER if asked.params.get(name)]
    named = [pair.a, pair.b, *further]
    absent = [one for one in further if one not in pair.options]
    if absent or len(set(named)) < len(named):
        why = "has no result by this measure" if absent else "is named more than once"
        raise bad_query(f"One of the metrics {why}.", "Give entry ids, as /v1/entries lists them.")
    bounded(len(pair.options))
    rows: list[Mapping[str, Value]] = []
    with source.turn():
        for a, b in combinations(named, 2):
            rows += _rows(shown(pair.choice, a, b, view), pair.choice, (view.entries[a],
                          view.entries[b]))  # fmt: skip
    about = {
        "as_of": as_of(view), "benchmark": pair.choice.board.card.name,
        "revision": pair.choice.board.card.revision,
        "simulated": pair.choice.board.card.simulated, "entries": named,
    }  # fmt: skip
    name = f"{pair.choice.board.card.name}-compare"
    return Table(name, columns_of(COLUMNS, _TYPES, _MEANINGS), rows, about)


def _rows(found: Shown, choice: Choice, entries: tuple[Entry, Entry]) -> list[Mapping[str, Value]]:
    card = choice.board.card
    facts: dict[str, Value] = {
        "entry_a": entries[0].entry_id, "entry_b": entries[1].entry_id,
        "kind_a": entries[0].kind.value, "kind_b": entries[1].kind.value, "benchmark": card.name,
        "revision": card.revision, "seed": seed_of(card.name, card.revision),
        "n_resamples": found.n_resamples,
    }  # fmt: skip
    parts = (("chosen", (found.chosen,)), ("skill", found.skills), ("measure", found.measures))
    return [{"shown_as": part, **facts, **row.to_json()} for part, of in parts for row in of]


def index(source: Source, asked: Asked) -> Table:
    """The index over benchmarks under the weights of the query.

    Raises:
        RefusedError: `bad_query`.
    """
    query = IndexQuery.from_params(asked.params)
    view = source.reader.view().group(simulated=query.simulated)
    with source.turn():
        base = source.prepared.of(view)
        choice = resolve_index(query, base.boards, base.left_out)
        refuse(choice.remarks)
        about = _about_index(view, choice.weights, base.left_out)
        return index_table(base, choice, view.entries, about)


def _about_index(
    view: View, weights: Mapping[str, float], left_out: Mapping[str, str]
) -> dict[str, Any]:
    return {"as_of": as_of(view), "weights": dict(weights), "left_out": dict(left_out)}


def moved(source: Source, asked: Asked) -> Table:
    """What moved between two editions of a benchmark.

    Raises:
        RefusedError: `no_earlier_board`, `bad_query`.
    """
    query = MovedQuery.from_params(asked.params)
    found = comparison(source, query)
    if found is None:
        raise not_found(
            "no_earlier_board", "No board of an earlier revision of it is kept.",
            "One is kept as soon as a new revision takes its place.",
        )  # fmt: skip
    exact = found.query
    for name in ("since", "until", "skill", "measure"):
        wanted = getattr(query, name)
        if wanted and wanted != getattr(exact, name):
            raise bad_query(f"What the query gives to compare by ({name}) is not there.")
    about = {
        "as_of": as_of(source.reader.view()), "benchmark": exact.benchmark,
        "from": found.then.tag, "to": found.now.tag, "skill": exact.skill,
        "measure": exact.measure, "earlier": list(found.tags),
    }  # fmt: skip
    return moved_table(found, about)


OPERATIONS = (
    Operation(
        "/compare", "compare",
        "Two to four metrics of a board against each other: overall, by skill, by other measures.",
        compare,
        (
            Parameter("benchmark", "Whose board; without: the first with results.", "demo_croc"), *SLICE,
            Parameter("a", "Entry id; without: the best that is not b."),
            Parameter("b", "Entry id; without: the best that is not a."),
            Parameter("c", "Entry id of a third."), Parameter("d", "Entry id of a fourth."),
        ),
    ),
    Operation(
        "/index", "index", "The index over benchmarks: its row of every metric, then one for each.",
        index,
        (
            Parameter("w", "Weights, as `croc:1,ts2:2`; without: those to begin with."),
            Parameter("order", "`index`, `borda`, `name` or a benchmark.", "index"), RATINGS,
        ),
    ),
    Operation(
        "/moved", "moved", "What moved between two revisions of a benchmark.", moved,
        (
            Parameter("benchmark", "Without: the first with an earlier board.", "demo_croc"),
            Parameter("from", "Edition; without: the latest that is kept."),
            Parameter("to", "Edition; without: the one of now."), *SLICE,
        ),
        of_snapshot=False,
    ),
)  # fmt: skip
