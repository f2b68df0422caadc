"""Heads of views: of boards, metrics, models, comparisons and documents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from benchmarks.errors import AssayError
from benchmarks.schema import Card
from leaderboard.api.source import Source
from leaderboard.api.tables import comparisons
from leaderboard.publication.flags import origin
from leaderboard.publication.measure_names import info, skill_title
from leaderboard.publication.metric_facts import metric_label, metric_name
from leaderboard.publication.reader import View
from leaderboard.publication.recommending import leading_cells, nobody, nobody_leads
from leaderboard.ranking.cells import Cell, beats_chance
from leaderboard.ranking.slices import kept_in_tiers
from leaderboard.records import Kind
from leaderboard.text import clean, count, interval, number
from leaderboard.views.benchmark_board import title_of
from leaderboard.views.boards import BoardQuery, Choice, resolve
from leaderboard.views.changes import VIEWS, ChangesQuery
from leaderboard.views.compare import PlaceQuery
from leaderboard.views.comparison import CompareQuery, opponents
from leaderboard.views.examples import ItemsQuery
from leaderboard.views.figures import estimate
from leaderboard.views.index import INDEX
from leaderboard.views.metric import MetricOnBoards, MetricQuery, OnBoard, on_boards
from leaderboard.views.metric import resolve as resolve_metric
from leaderboard.views.metrics import BENCHMARK, SKILL, MetricsQuery
from leaderboard.views.skills import SkillsQuery
from leaderboard.views.skills import resolve as resolve_skills
from leaderboard.web.guides import guides
from leaderboard.web.heads.head import MOST_LINES, Line, PageMetadata, own_head
from leaderboard.web.heads.of_models import model_head, models_head
from leaderboard.web.page import Page

_LONGEST_NAME = 60


def board_head(params: Mapping[str, str], view: View) -> PageMetadata | None:
    """Of the ranking that a query asks for; None where it is not there."""
    choice = resolve(BoardQuery.from_params(params), view.boards)
    if choice.remarks or choice.selector is None:
        return None
    card = choice.board.card
    everyone = choice.entry_ids()
    kept = choice.filters.kept(everyone, view.entries, card)
    cells, whole = _rows(choice, view)
    lines = tuple(_line(cell.entry_id, cell, view, ranked=whole) for cell in cells[:MOST_LINES])
    shown = "" if kept is None else f"{len(kept):,} of "
    better = "higher" if card.higher_is_better(choice.selector.measure) else "lower"
    said = [
        f"{shown}{count(len(everyone), 'metric')} by {choice.measure_title} "
        f"({better} is better), {choice.title}.",
        _said_of(cells, card, view, ranked=whole),
        note_of(choice, view),
    ]
    return PageMetadata(title_of(choice), " ".join(filter(None, said)), lines, choice.measure_title,
                note_of(choice, view))  # fmt: skip


def compare_head(params: Mapping[str, str], view: View) -> PageMetadata | None:
    """Of the comparison that a query asks for; None where it is not there."""
    pair = opponents(CompareQuery.from_params(params), view)
    choice, chosen = pair.choice, pair.chosen
    if pair.remarks or choice.selector is None or len(chosen) < 2:
        return None
    lines = tuple(
        _line(entry, _cell(choice, entry), view, ranked=False) for entry in chosen
    )  # fmt: skip
    names = [clean(metric_name(view.entries[entry])) for entry in chosen]
    heading = f"{', '.join(names[:-1])} and {names[-1]} on {choice.board.card.title}"
    values = "; ".join(_value(line) for line in lines)
    said = [f"{choice.measure_title}, {choice.title}: {values}.", note_of(choice, view)]
    return PageMetadata(heading, " ".join(said), lines, choice.measure_title,
                note_of(choice, view))  # fmt: skip


def name_of(entry_id: str, view: View) -> str:
    """A metric by its name and version, as a line of harmless text."""
    return " ".join(clean(metric_label(view.entries[entry_id])).split())[:_LONGEST_NAME]


def as_of(view: View) -> str:
    """When what is shown was made, as a sentence."""
    return f"As of {view.built_at:%Y-%m-%d %H:%M} UTC." if view.built_at else ""


def _rows(choice: Choice, view: View) -> tuple[tuple[Cell, ...], bool]:
    """The cells that are shown, best first, and whether their ranks are."""
    # A mean over skills has no values before it is computed.
    slices = choice.slices()
    if len(slices) != 1:
        return (), True
    kept = choice.filters.kept(choice.entry_ids(), view.entries, choice.board.card)
    cells: Sequence[Cell] = kept_in_tiers(slices[0])
    # Ranks are the whole board's; those among some entries only are not stored.
    shown = tuple(one for one in cells if kept is None or one.entry_id in kept)
    return shown, not choice.filters.within


def _cell(choice: Choice, entry_id: str) -> Cell | None:
    slices = choice.slices()
    if len(slices) != 1:
        return None
    return next((cell for cell in slices[0] if cell.entry_id == entry_id), None)


def _line(entry_id: str, cell: Cell | None, view: View, *, ranked: bool) -> Line:
    name = name_of(entry_id, view)
    entry = view.entries[entry_id]
    if entry.kind is Kind.SCORES:
        name = f"{name} ({'as released' if entry.released_with else 'as submitted'})"
    if cell is None:
        return Line(name)
    ranks = (cell.rank_low, cell.rank_high) if ranked else (None, None)
    return Line(name, cell.value, cell.ci_low, cell.ci_high, *ranks)


def _said_of(cells: Sequence[Cell], card: Card, view: View, *, ranked: bool) -> str:
    """Who is first and who follows, of those that may be named as leading."""
    leading = leading_cells(card, cells, view.entries)
    if not leading:
        return nobody_leads(card, cells)
    first, *others = (_line(one.entry_id, one, view, ranked=ranked) for one in leading[:3])
    rank = f", rank {first.ranks}" if first.ranks else ""
    then = f"; then {', '.join(line.name for line in others)}" if others else ""
    return f"First: {_value(first)}{rank}{then}."


def _value(line: Line) -> str:
    if line.value is None:
        return line.name
    return f"{line.name} {number(line.value)} {interval(line.low, line.high)}".strip()


def note_of(choice: Choice, view: View) -> str:
    """What must be known of a board, and when it was made."""
    simulated = "Ratings are simulated." if choice.board.card.simulated else ""
    return " ".join(filter(None, (simulated, as_of(view))))


def benchmark_head(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of a benchmark; None where there is none of that name."""
    card = source.cards.get(params.get("name", ""))
    return PageMetadata(card.title, card.summary) if card else None


def guide_head(params: Mapping[str, str], _: Source) -> PageMetadata | None:
    """Of a guide; None where there is none of that name."""
    guide = guides().get(params.get("name", ""))
    return PageMetadata(guide.title, guide.lead) if guide else None


_LONGEST = 60
_ENDS = {"mean": ("ci_low", "ci_high"), "rescaled": ("rescaled_low", "rescaled_high")}
"""Column of a value to those of its interval."""
_SHOWS = {"": "fails", "failures": "fails"}
"""Which examples are shown to what a metric does there."""


def metric_head(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of a metric on the boards; None for any other."""
    view = source.reader.view()
    found = resolve_metric(MetricQuery.from_params(params), view, source.reader.statuses())
    if not isinstance(found, MetricOnBoards):
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
    return PageMetadata(title, " ".join(filter(None, said)), lines[:MOST_LINES],
                note=as_of(view))  # fmt: skip


def index_head(params: Mapping[str, str], source: Source) -> PageMetadata | None:
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
    return PageMetadata("Index", _sentences(said, rows, "rescaled", note), lines, "Index", note)


def skills_head(params: Mapping[str, str], source: Source) -> PageMetadata | None:
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
    return PageMetadata(f"Metrics for {choice.title}", _sentences(said, table.rows, "mean", note), lines,
                choice.title, note)  # fmt: skip


def examples_head(params: Mapping[str, str], view: View) -> PageMetadata | None:
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
    return PageMetadata(
        f"{what}: {board.card.title}{skill}", " ".join(filter(None, (said, as_of(view))))
    )


def moved_head(params: Mapping[str, str], view: View) -> PageMetadata | None:
    """Of the changes of a benchmark; None where the query names none that is there."""
    board = view.boards.get(ChangesQuery.from_params(params).benchmark)
    if board is None:
        return None
    said = "Which metrics rose and fell between two revisions, and which values changed."
    return PageMetadata(f"Changes of {board.card.title}", " ".join((said, as_of(view))))


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
        figure = estimate(one.value, one.low, one.high)
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
    value = estimate(line.value, line.low, line.high)
    return f"{line.name}{simulated}: {measure} {value}{rank}"


log = logging.getLogger(__name__)
_Of = Callable[[Mapping[str, str], Source], PageMetadata | None]


def _metrics(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of the tab that is asked for: a skill, a benchmark, or all metrics."""
    query = MetricsQuery.from_params(params)
    if query.kind == SKILL:
        return skills_head(_of_skill(query), source)
    if query.kind == BENCHMARK:
        describe = moved_head if params.get("view") in VIEWS else board_head
        return describe(params, source.reader.view())
    found = index_head({"w": query.weights, "ratings": query.ratings}, source)
    return found and replace(found, title="Metrics")


def _of_skill(query: MetricsQuery) -> dict[str, str]:
    return {"skill": query.named, "w": query.weights, "ratings": query.ratings, "cost": query.by}


def _compare(params: Mapping[str, str], view: View) -> PageMetadata | None:
    of_examples = PlaceQuery.from_params(params).view == "examples"
    return (examples_head if of_examples else compare_head)(params, view)


OF_VIEW: Mapping[str, _Of] = {
    "": _metrics,
    "compare": lambda params, source: _compare(params, source.reader.view()),
    "metric": metric_head,
    "benchmark": benchmark_head,
    "guide": guide_head,
    "models": models_head,
    "model": model_head,
}
"""Path of a page to what says something of a view of it; other pages have one view."""


def head_of(page: Page, params: Mapping[str, str], source: Source | None) -> PageMetadata:
    """What a view says of itself; what its page says, where there is no such view."""
    describe = OF_VIEW.get(page.path)
    if source is None or describe is None:
        return own_head(page)
    try:
        return describe(params, source) or own_head(page)
    except AssayError as error:
        # The page itself says what is wrong.
        log.info("No summary of /%s: %s", page.path, error.code)
        return own_head(page)
