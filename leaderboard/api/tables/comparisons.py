"""Metrics against each other: on a board, over benchmarks, for a skill, and then against now."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from benchmarks.statistics.resampling import seed_of
from leaderboard.api.replies import bad_query, not_found
from leaderboard.api.schemas import Parameters, model_of
from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import as_of, bounded, refuse
from leaderboard.publication.entries import Entry
from leaderboard.publication.reader import GROUPS
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.boards import Choice
from leaderboard.views.changes import ChangesQuery, comparison, moved_table
from leaderboard.views.compare_query import SIDES, CompareQuery
from leaderboard.views.comparison import COLUMNS, ComparisonPage, comparison_page, opponents
from leaderboard.views.index import index_table, resolve_index
from leaderboard.views.parameters import parameters, text
from leaderboard.views.skills import RATINGS, SkillsQuery, found_for, skills_table
from leaderboard.views.skills import resolve as resolve_skills

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


router = TableRouter()


class IndexParameters(Parameters):
    """Parameters of the index."""

    ratings: str = text(RATINGS, options=GROUPS[1:])
    w: str = text("Weights, as `croc:1,ts2:2`; without: those to begin with.")
    order: str = text("`index`, `borda`, `name` or a benchmark.", "index")


@router.table("/compare", takes=model_of(CompareQuery, "skill", "measure", "benchmark", *SIDES))
def compare(source: Source, query: CompareQuery) -> Table:
    """Two to four metrics of a board against each other: overall, by skill, by other measures."""
    view = source.reader.view()
    pair = opponents(query, view)
    refuse(pair.remarks)
    if pair.choice.selector is None or pair.a is None or pair.b is None:
        raise bad_query("There are no two metrics to compare by this.", "See /v1/entries.")
    named = [pair.a, pair.b, *query.named]
    absent = [one for one in query.named if one not in pair.options]
    if absent or len(set(named)) < len(named):
        why = "has no result by this measure" if absent else "is named more than once"
        raise bad_query(f"One of the metrics {why}.", "Give entry ids, as /v1/entries lists them.")
    bounded(len(pair.options))
    rows: list[Mapping[str, Value]] = []
    with source.turn():
        for a, b in combinations(named, 2):
            rows += _rows(comparison_page(pair.choice, a, b, view), pair.choice, (view.entries[a],
                          view.entries[b]))  # fmt: skip
    about = {
        "as_of": as_of(view), "benchmark": pair.choice.board.card.name,
        "revision": pair.choice.board.card.revision,
        "simulated": pair.choice.board.card.simulated, "entries": named,
    }  # fmt: skip
    name = f"{pair.choice.board.card.name}-compare"
    return Table(name, columns_of(COLUMNS, _TYPES, _MEANINGS), rows, about)


def _rows(
    found: ComparisonPage, choice: Choice, entries: tuple[Entry, Entry]
) -> list[Mapping[str, Value]]:
    card = choice.board.card
    facts: dict[str, Value] = {
        "entry_a": entries[0].entry_id, "entry_b": entries[1].entry_id,
        "kind_a": entries[0].kind.value, "kind_b": entries[1].kind.value, "benchmark": card.name,
        "revision": card.revision, "seed": seed_of(card.name, card.revision),
        "n_resamples": found.n_resamples,
    }  # fmt: skip
    parts = (("chosen", (found.chosen,)), ("skill", found.skills), ("measure", found.measures))
    return [{"shown_as": part, **facts, **row.to_json()} for part, of in parts for row in of]


@router.table("/index")
def index(source: Source, query: IndexParameters) -> Table:
    """The index over benchmarks: its row of every metric, then one for each."""
    if query.ratings not in GROUPS:
        raise bad_query("There is no such group of ratings.", f"Known: {', '.join(GROUPS[1:])}.")
    view = source.reader.view().group(query.ratings)
    with source.turn():
        base = source.prepared.of(view)
        choice = resolve_index(query.w, base.boards, base.left_out, query.order)
        refuse(choice.remarks)
        about = {
            "as_of": as_of(view),
            "weights": dict(choice.weights),
            "left_out": dict(base.left_out),
        }
        return index_table(base, choice, view.entries, about)


@router.table(
    "/moved", name="moved", of_snapshot=False,
    takes=model_of(ChangesQuery, *parameters(ChangesQuery)),
)  # fmt: skip
def board_changes(source: Source, query: ChangesQuery) -> Table:
    """What moved between two revisions of a benchmark."""
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


@router.table("/skills", takes=model_of(SkillsQuery, "ratings", "skill", "w", "cost", "budget"))
def skills(source: Source, query: SkillsQuery) -> Table:
    """Metrics for one skill or several, best first, and whether each may be recommended.

    Without a skill, which there are.
    """
    view = source.reader.view()
    choice = resolve_skills(query, view.boards)
    refuse(choice.remarks)
    about = {"as_of": as_of(view), "known": {key: one.title for key, one in choice.known.items()}}
    if not choice.skills:
        return skills_table(choice, None, about)
    with source.turn():
        found = found_for(choice, source.skills.of(view, choice.parts))
    return skills_table(choice, found, about)
