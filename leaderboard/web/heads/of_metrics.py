"""Heads of the pages of one metric, of all metrics and of examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from leaderboard.api.source import Source
from leaderboard.api.tables import comparisons
from leaderboard.publication.flags import origin
from leaderboard.publication.measure_names import info, skill_title
from leaderboard.publication.reader import View
from leaderboard.publication.recommending import nobody
from leaderboard.ranking.cells import beats_chance
from leaderboard.records import Kind
from leaderboard.text import clean, count, interval, number
from leaderboard.views.changes import MovedQuery
from leaderboard.views.examples import ItemsQuery
from leaderboard.views.index import INDEX
from leaderboard.views.metric import MetricQuery, OnBoard, Shown, on_boards, resolve
from leaderboard.views.skills import SkillsQuery
from leaderboard.views.skills import resolve as resolve_skills
from leaderboard.web.heads.head import Head, Line
from leaderboard.web.heads.of_boards import MOST_LINES, as_of, name_of

_LONGEST = 60
_ENDS = {"mean": ("ci_low", "ci_high"), "rescaled": ("rescaled_low", "rescaled_high")}
"""Column of a value to those of its interval."""
_SHOWS = {"": "fails", "failures": "fails"}
"""Which examples are shown to what a metric does there."""


def metric_head(params: Mapping[str, str], source: Source) -> Head | None:
    """Of a metric on the boards; None for any other."""
    view = source.reader.view()
    found = resolve(MetricQuery.from_params(params), view, source.reader.statuses())
    if not isinstance(found, Shown):
        return None
    entry = found.entry
    boards = [one for one in on_boards(found, view) if one.headline is not None]
    lines = tuple(_on_board(one) for one in boards)
    results = "; ".join(_result(one, line) for one, line in zip(boards, lines, strict=True))
    kind = origin(entry) or "run by Assay"
    by = clean(entry.submitter)[:_LONGEST]
    by = "" if entry.released_with else by
    said = [f"By {by}; {kind}." if by else f"{kind.capitalize()}.",
            f"{results}." if results else "", as_of(view)]  # fmt: skip
    title = name_of(entry.entry_id, view)
    return Head(title, " ".join(filter(None, said)), lines[:MOST_LINES],
                note=as_of(view))  # fmt: skip


def index_head(params: Mapping[str, str], source: Source) -> Head | None:
    """Of the index under the weights of a query."""
    query = comparisons.IndexParameters(**_given(params, "w", "order", "ratings"))
    table = comparisons.index(source, query)
    rows = [row for row in table.rows if row["benchmark"] == INDEX]
    lines = tuple(_row(row, "rescaled") for row in rows[:MOST_LINES])
    boards = count(len(cast("Mapping[str, Any]", table.about["weights"])), "benchmark")
    own = " under weights of its own" if query.w else ""
    said = f"{count(len(rows), 'metric')} over {boards}{own}."
    view = source.reader.view()
    if not rows:
        return None
    note = _note(cast("Mapping[str, Any]", table.about["weights"]), view)
    return Head("Index", _sentences(said, rows, "rescaled", note), lines, "Index", note)


def skills_head(params: Mapping[str, str], source: Source) -> Head | None:
    """Of the metrics for the skills of a query; None where it names none."""
    view = source.reader.view()
    choice = resolve_skills(SkillsQuery.from_params(params), view.boards)
    if choice.remarks or not choice.skills:
        return None
    given = _given(params, "skill", "w", "cost", "budget", "ratings")
    table = comparisons.skills(source, comparisons.SkillsParameters(**given))
    lines = tuple(_row(row, "mean") for row in table.rows[:MOST_LINES])
    said = f"{count(len(table.rows), 'metric')} for {choice.title}, by rescaled values."
    note = _note(choice.of_benchmarks or (), view)
    return Head(f"Metrics for {choice.title}", _sentences(said, table.rows, "mean", note), lines,
                choice.title, note)  # fmt: skip


def examples_head(params: Mapping[str, str], view: View) -> Head | None:
    """Of the examples of a benchmark; None where the query names none that is there."""
    query = ItemsQuery.from_params(params)
    board = view.boards.get(query.benchmark)
    named = [entry for entry in (query.a, query.b) if entry]
    if board is None or any(entry not in view.entries for entry in named):
        return None
    if query.skill and query.skill not in board.skills():
        return None
    skill = f", {skill_title(board.card, query.skill)}" if query.skill else ""
    names = " and ".join(name_of(entry, view) for entry in named)
    what = "Prompts and images"
    if query.case:
        what = f"Case {clean(query.case)}"
    elif len(named) == 1 and query.show in _SHOWS:
        what = f"Images where {names} {_SHOWS[query.show]}"
    elif len(named) == 2 and query.show != "all":
        what = f"Images where {names} differ"
    said = "Prompts, images and scores, and what people said of them."
    return Head(f"{what}: {board.card.title}{skill}", " ".join(filter(None, (said, as_of(view)))))


def moved_head(params: Mapping[str, str], view: View) -> Head | None:
    """Of the changes of a benchmark; None where the query names none that is there."""
    board = view.boards.get(MovedQuery.from_params(params).benchmark)
    if board is None:
        return None
    said = "Which metrics rose and fell between two revisions, and which values changed."
    return Head(f"Changes of {board.card.title}", " ".join((said, as_of(view))))


def _given(params: Mapping[str, str], *names: str) -> dict[str, Any]:
    return {name: params[name] for name in names if params.get(name)}


def _note(benchmarks: Iterable[str], view: View) -> str:
    """That ratings are simulated, where they are, and when the boards were made."""
    simulated = any(view.boards[name].card.simulated for name in benchmarks)
    return " ".join(filter(None, ("Ratings are simulated." if simulated else "", as_of(view))))


def _sentences(said: str, rows: Sequence[Mapping[str, Any]], value: str, note: str) -> str:
    """What is shown, and who is first of those that may be recommended."""
    ranked = [row for row in rows if row.get("rank") is not None]
    recommended = [row for row in ranked if row.get("recommended")]
    first = ""
    if recommended:
        one = _row(recommended[0], value)
        rank = f", rank {one.ranks}" if one.ranks else ""
        figure = f"{number(one.value)} {interval(one.low, one.high)}".strip()
        first = f"First: {one.name} {figure}{rank}."
    elif ranked:
        templates = any(_is_above_chance(row, value, len(ranked)) for row in ranked)
        first = f"{nobody(but_templates=templates)}."
    return " ".join(filter(None, (said, first, note)))


def _is_above_chance(row: Mapping[str, Any], value: str, among: int) -> bool:
    low, high = (row.get(name) for name in _ENDS[value])
    return beats_chance(low, high, value=row.get(value), among=among)


def _row(row: Mapping[str, Any], value: str) -> Line:
    name = " ".join(clean(f"{row['metric']} {row['version'] or ''}").split())[:_LONGEST]
    if row["kind"] == Kind.SCORES.value:
        name = f"{name} ({'as released' if row.get('released_with') else 'as submitted'})"
    low, high = (row.get(end) for end in _ENDS[value])
    return Line(name, row.get(value), low, high, row.get("rank_low"), row.get("rank_high"))


def _on_board(one: OnBoard) -> Line:
    cell = one.headline
    if cell is None:
        return Line(one.card.title)
    ends = (cell.ci_low, cell.ci_high)
    return Line(one.card.title, cell.value, *ends, cell.rank_low, cell.rank_high)


def _result(one: OnBoard, line: Line) -> str:
    measure = info(one.card, one.card.headline.measure).title
    rank = f", rank {line.ranks} of {one.ranked}" if line.ranks else ""
    simulated = " (simulated ratings)" if one.card.simulated else ""
    value = f"{number(line.value)} {interval(line.low, line.high)}".strip()
    return f"{line.name}{simulated}: {measure} {value}{rank}"
