"""Metadata of pages: the title, summary and first rows of a view, for links that are shared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import AssayError
from leaderboard.api.source import Source
from leaderboard.api.tables import comparisons
from leaderboard.models.people import rated_sets
from leaderboard.publication.entries import origin
from leaderboard.publication.index import leading_cells, nobody, nobody_leads
from leaderboard.publication.measure_names import info, skill_title
from leaderboard.publication.metric_facts import metric_label, metric_name
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell, beats_chance
from leaderboard.records import Kind
from leaderboard.text import clean, count, one_line
from leaderboard.views.benchmark_board import title_of
from leaderboard.views.boards import BoardQuery, Choice, resolve
from leaderboard.views.changes import VIEWS, ChangesQuery
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.comparison import opponents
from leaderboard.views.figures import estimate, in_words, rank_range
from leaderboard.views.index import INDEX
from leaderboard.views.metric import MetricOnBoards, MetricQuery, OnBoard, on_boards
from leaderboard.views.metric import resolve as resolve_metric
from leaderboard.views.metrics import BENCHMARK, SKILL, MetricsQuery
from leaderboard.views.model_verdict import verdict_of_board, verdict_of_votes
from leaderboard.views.models import PlaceQuery as ModelsPlaceQuery
from leaderboard.views.models import judges_of, lead_mean, place_title, plain_name, with_votes
from leaderboard.views.models import resolve as resolve_models
from leaderboard.views.skills import SkillsQuery
from leaderboard.views.skills import resolve as resolve_skills
from leaderboard.votes.revisions import read_results
from leaderboard.web.guides import guides
from leaderboard.web.page import Page

log = logging.getLogger(__name__)
SITE = "Assay"
MOST_LINES = 5
LONGEST_TITLE = 110
_LONGEST_NAME = 60
_SIMULATED_MODELS = "The models are simulated."


@dataclass(frozen=True)
class Line:
    """One of the first rows of a view."""

    name: str  # of a metric or a benchmark; it may come from a stranger
    value: float | None = None  # None where there is none
    low: float | None = None  # lower end of its 95 % interval
    high: float | None = None  # upper end
    rank_low: int | None = None  # best rank that is open; None where there is no rank
    rank_high: int | None = None  # worst

    @property
    def ranks(self) -> str:
        """`1–3`, `2`, or empty."""
        return "" if self.rank_low is None else rank_range(self)


@dataclass(frozen=True)
class PageMetadata:
    """What a view says of itself. Nothing in it is escaped yet."""

    title: str  # without the name of the site
    description: str  # a few sentences
    lines: tuple[Line, ...] = ()  # its first rows
    axis: str = ""  # what the values are; empty where they are not on one scale
    note: str = ""  # what must be known of the rows, and when they were made


def document_title(title: str) -> str:
    """With the name of the site; one line of harmless text."""
    return f"{one_line(title, LONGEST_TITLE)} · {SITE}"


DESCRIPTIONS = {
    "": "Metrics for text-to-image models, tested against human ratings and known errors: one table "
    "over benchmarks and skills with intervals, rank ranges, tiers and cost.",
    "models": "Text-to-image models compared on the same prompts by qualified metrics and by human "
    "ratings: skills, images, seeds, tests between any two, and where metrics disagree.",
    "model": "One text-to-image model: mean scores by skill and metric with intervals, its images, "
    "its variation over seeds, and how to generate them again.",
    "compare": "Two to four metrics on one benchmark: by how much they differ, how sure that is, "
    "and images where they differ or fail.",
    "metric": "Everything about one metric: its results on all benchmarks, trust checks, cost, "
    "history and citation.",
    "submit": "Submit a metric, its scores, or the images of a model; what is waiting, in work and done.",
    "operators": "Everybody’s submissions, bans and the policy, for the operators of this site.",
    "status": "How the service is doing: its workers, its queue and its store.",
    "ledger": "The public record of everything that was done, chained by hashes.",
    "docs": "Guides for metric authors, model developers and operators; the benchmarks, the methods "
    "and the API.",
    "guide": "A guide to Assay: submit, read the boards, run your own, extend.",
    "benchmark": "A benchmark of text-to-image metrics: its measures, protocol, data and citation.",
    "about": "How metrics are tested here: benchmarks, measures, intervals, ranks and tiers.",
    "errata": "What is wrong in the papers and their data, and how it is dealt with here.",
}
"""Path of a page to a sentence."""


def own_metadata(page: Page) -> PageMetadata:
    """What a page says where there is nothing more to be said."""
    return PageMetadata(
        page.title, DESCRIPTIONS.get(page.path, "Assay tests text-to-image metrics.")
    )


# Metrics: a tab, a comparison, examples, a metric


def _metrics(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of the tab that is asked for: a skill, a benchmark, or all metrics."""
    query = MetricsQuery.from_params(params)
    if query.kind == SKILL:
        return _skills(query, source)
    if query.kind == BENCHMARK:
        describe = _changes if params.get("view") in VIEWS else _board
        return describe(params, source)
    return _index(query, source)


def _board(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of the ranking that a query asks for; None where it is not there."""
    view = source.reader.view()
    choice = resolve(BoardQuery.from_params(params), view.boards)
    if choice.remarks or choice.selector is None:
        return None
    card = choice.board.card
    everyone = choice.entry_ids()
    kept = choice.filters.kept(everyone, view.entries, card)
    cells = [one for one in _cells(choice) if kept is None or one.entry_id in kept]
    # Ranks are the whole board's; those among some entries only are not stored.
    ranked = not choice.filters.within
    lines = {cell.entry_id: _line(cell.entry_id, cell, view, ranked=ranked) for cell in cells}
    leading = [lines[cell.entry_id] for cell in leading_cells(card, cells, view.entries)[:3]]
    shown = "" if kept is None else f"{len(kept):,} of "
    better = "higher" if card.higher_is_better(choice.selector.measure) else "lower"
    note = _note([card.name], view)
    said = _sentences(
        f"{shown}{count(len(everyone), 'metric')} by {choice.measure_title} ({better} is better), "
        f"{choice.title}.",
        _first_and_next(leading) or nobody_leads(card, cells),
        note,
    )
    first = tuple(lines.values())[:MOST_LINES]
    return PageMetadata(title_of(choice), said, first, choice.measure_title, note)


def _compare(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of the comparison or the examples that a query asks for; None where they are not there."""
    view = source.reader.view()
    query = CompareQuery.from_params(params)
    if query.view == "examples":
        return _examples(query, view)
    pair = opponents(query, view)
    choice, chosen = pair.choice, pair.chosen
    if pair.remarks or choice.selector is None or len(chosen) < 2:
        return None
    cells = {cell.entry_id: cell for cell in _cells(choice)}
    lines = tuple(_line(one, cells.get(one), view, ranked=False) for one in chosen)
    names = in_words([clean(metric_name(view.entries[entry])) for entry in chosen])
    values = "; ".join(_value(line) for line in lines)
    note = _note([choice.board.card.name], view)
    said = _sentences(f"{choice.measure_title}, {choice.title}: {values}.", note)
    title = f"{names} on {choice.board.card.title}"
    return PageMetadata(title, said, lines, choice.measure_title, note)


def _examples(query: CompareQuery, view: View) -> PageMetadata | None:
    board = view.boards.get(query.benchmark)
    named = [entry for entry in (query.a, query.b) if entry]
    if board is None or any(entry not in view.entries for entry in named):
        return None
    if query.skill and query.skill not in board.skills():
        return None
    skill = f", {skill_title(board.card, query.skill)}" if query.skill else ""
    names = " and ".join(_named(entry, view) for entry in named)
    what = "Prompts and images"
    if query.case:
        what = f"Case {clean(query.case)}"
    elif len(named) == 1 and query.show in {"", "failures"}:
        what = f"Images where {names} fails"
    elif len(named) == 2 and query.show != "all":
        what = f"Images where {names} differ"
    said = "Prompts, images and scores, and what people said of them."
    return PageMetadata(f"{what}: {board.card.title}{skill}", _sentences(said, _note([], view)))


def _changes(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of the changes of a benchmark; None where the query names none that is there."""
    view = source.reader.view()
    board = view.boards.get(ChangesQuery.from_params(params).benchmark)
    if board is None:
        return None
    said = "Which metrics rose and fell between two revisions, and which values changed."
    return PageMetadata(f"Changes of {board.card.title}", _sentences(said, _note([], view)))


def _index(query: MetricsQuery, source: Source) -> PageMetadata | None:
    """Of the index under the weights of a query."""
    asked = comparisons.IndexParameters(w=query.weights, ratings=query.ratings)
    table = comparisons.index(source, asked)
    rows = [row for row in table.rows if row["benchmark"] == INDEX]
    if not rows:
        return None
    weights = table.about["weights"]
    own = " under weights of its own" if query.weights else ""
    said = f"{count(len(rows), 'metric')} over {count(len(weights), 'benchmark')}{own}."
    note = _note(weights, source.reader.view())
    lines = tuple(_of_row(row, "rescaled") for row in rows[:MOST_LINES])
    said = _sentences(said, _first_of(rows, "rescaled"), note)
    return PageMetadata("Metrics", said, lines, "Index", note)


def _skills(query: MetricsQuery, source: Source) -> PageMetadata | None:
    """Of the metrics for the skills of a query; None where it names none."""
    view = source.reader.view()
    params = {
        "skill": query.named, "w": query.weights, "ratings": query.ratings, "cost": query.by
    }  # fmt: skip
    asked = SkillsQuery.from_params(params)
    choice = resolve_skills(asked, view.boards)
    if choice.remarks or not choice.skills:
        return None
    table = comparisons.skills(source, asked)
    lines = tuple(_of_row(row, "mean") for row in table.rows[:MOST_LINES])
    note = _note(choice.of_benchmarks or (), view)
    said = _sentences(
        f"{count(len(table.rows), 'metric')} for {choice.title}, by rescaled values.",
        _first_of(table.rows, "mean"), note,
    )  # fmt: skip
    return PageMetadata(f"Metrics for {choice.title}", said, lines, choice.title, note)


def _metric(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of a metric on the boards; None for any other."""
    view = source.reader.view()
    found = resolve_metric(MetricQuery.from_params(params), view, source.reader.statuses())
    if not isinstance(found, MetricOnBoards):
        return None
    entry = found.entry
    results = [_on_board(one) for one in on_boards(found, view) if one.headline is not None]
    kind = origin(entry) or "run by Assay"
    by = "" if entry.released_with else clean(entry.submitter)[:_LONGEST_NAME]
    note = _note([], view)
    said = _sentences(
        f"By {by}; {kind}." if by else f"{kind.capitalize()}.",
        f"{'; '.join(said for _, said in results)}." if results else "", note,
    )  # fmt: skip
    lines = tuple(line for line, _ in results[:MOST_LINES])
    return PageMetadata(_named(entry.entry_id, view), said, lines, note=note)


# Models


def _models_place(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of the place of models: of its board, or of two models or a prompt that are named."""
    reader = source.model_reader
    query = with_votes(ModelsPlaceQuery.from_params(params), reader)
    choice = resolve_models(query.of, reader, source.reader.view(), rated_sets(reader))
    if choice is None:
        return None
    title = place_title(query, choice)
    if query.view == "two" and choice.entry(query.a) and choice.entry(query.b):
        said = "Paired tests of the two on the same prompts, and the prompts that decide."
        return PageMetadata(title, said)
    if query.view == "prompt" and any(one.prompt_id == query.prompt for one in choice.prompts):
        models = count(len(choice.entries), "model")
        return PageMetadata(title, f"Images by {models} for a prompt of {choice.card.title}.")
    note = _SIMULATED_MODELS if choice.card.simulated else ""
    if query.view == "votes":
        results = read_results(reader.public, choice.card.name)
        said = verdict_of_votes(results, choice.card.title).sentence
        return PageMetadata(title, _sentences(said, note), note=note)
    skill = choice.query.skill or None
    board = choice.board(skill)
    if board is None:
        return PageMetadata(title, _sentences(clean(choice.card.summary), note), note=note)
    of = board.skills[skill]
    lead = next((judge.title for judge in of.judges if judge.entry_id == of.lead), "")
    lines = []
    for submission_id, standing in list(of.standings.items())[:MOST_LINES]:
        mean = lead_mean(of, standing)
        figures = (mean.value, mean.ci_low, mean.ci_high) if mean else (None, None, None)
        name = plain_name(board.entries[submission_id])
        lines.append(Line(name, *figures, standing.rank_low, standing.rank_high))
    said = _sentences(verdict_of_board(board, choice.card.title).sentence, note)
    return PageMetadata(title, said, tuple(lines), clean(lead), note)


def _model(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of one model; None where it is not on the boards."""
    reader = source.model_reader
    entry = reader.track().entries.get(str(params.get("id", "")))
    if entry is None or entry.prompt_set not in reader.prompt_sets:
        return None
    card = reader.prompt_sets[entry.prompt_set].card
    runs = len(judges_of([entry], source.reader.view()))
    note = _SIMULATED_MODELS if card.simulated else ""
    said = _sentences(
        f"{count(entry.images.present, 'image')} of the prompts of {card.title} with "
        f"{count(len(entry.images.seeds), 'seed')}, scored by {count(runs, 'metric')}.",
        note,
    )
    return PageMetadata(plain_name(entry, 80), said, note=note)


# Docs


def _benchmark(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    card = source.cards.get(params.get("name", ""))
    return PageMetadata(card.title, card.summary) if card else None


def _guide(params: Mapping[str, str], _: Source) -> PageMetadata | None:
    guide = guides().get(params.get("name", ""))
    return PageMetadata(guide.title, guide.lead) if guide else None


OF_VIEW: Mapping[str, Callable[[Mapping[str, str], Source], PageMetadata | None]] = {
    "": _metrics,
    "compare": _compare,
    "metric": _metric,
    "benchmark": _benchmark,
    "guide": _guide,
    "models": _models_place,
    "model": _model,
}
"""Path of a page to what says something of a view of it; other pages have one view."""


def metadata_of(page: Page, params: Mapping[str, str], source: Source | None) -> PageMetadata:
    """What a view says of itself; what its page says, where there is no such view."""
    describe = OF_VIEW.get(page.path)
    if source is None or describe is None:
        return own_metadata(page)
    try:
        return describe(params, source) or own_metadata(page)
    except AssayError as error:
        # The page itself says what is wrong.
        log.info("No summary of /%s: %s", page.path, error.code)
        return own_metadata(page)


# Rows and sentences


def _sentences(*said: str) -> str:
    return " ".join(filter(None, said))


def _note(benchmarks: Iterable[str], view: View) -> str:
    """That ratings are simulated, where they are, and when the boards were made."""
    simulated = any(view.boards[name].card.simulated for name in benchmarks)
    as_of = f"As of {view.built_at:%Y-%m-%d %H:%M} UTC." if view.built_at else ""
    return _sentences("Ratings are simulated." if simulated else "", as_of)


def _cells(choice: Choice) -> tuple[Cell, ...]:
    """The cells of a choice; a mean over skills has none before it is computed."""
    slices = choice.slices()
    return tuple(slices[0]) if len(slices) == 1 else ()


def _named(entry_id: str, view: View) -> str:
    """A metric by its name and version, as a line of harmless text."""
    return one_line(metric_label(view.entries[entry_id]), _LONGEST_NAME)


def _as_sent(name: str, *, scores: bool, released: object) -> str:
    """A name, with where its scores are from if they were not computed here."""
    return f"{name} ({'as released' if released else 'as submitted'})" if scores else name


def _line(entry_id: str, cell: Cell | None, view: View, *, ranked: bool) -> Line:
    entry = view.entries[entry_id]
    scores = entry.kind is Kind.SCORES
    name = _as_sent(_named(entry_id, view), scores=scores, released=entry.released_with)
    if cell is None:
        return Line(name)
    ranks = (cell.rank_low, cell.rank_high) if ranked else (None, None)
    return Line(name, cell.value, cell.ci_low, cell.ci_high, *ranks)


_ENDS = {"mean": ("ci_low", "ci_high"), "rescaled": ("rescaled_low", "rescaled_high")}
"""Column of a value to those of its interval."""


def _of_row(row: Mapping[str, Any], value: str) -> Line:
    """A row of a table of the API."""
    name = one_line(f"{row['metric']} {row['version'] or ''}", _LONGEST_NAME)
    scores = row["kind"] == Kind.SCORES.value
    name = _as_sent(name, scores=scores, released=row.get("released_with"))
    low, high = (row.get(end) for end in _ENDS[value])
    return Line(name, row.get(value), low, high, row.get("rank_low"), row.get("rank_high"))


def _value(line: Line) -> str:
    if line.value is None:
        return line.name
    return f"{line.name} {estimate(line.value, line.low, line.high)}".strip()


def _first_and_next(leading: Sequence[Line]) -> str:
    """Who is first and who follows; empty where nobody may be named as leading."""
    if not leading:
        return ""
    first, *others = leading
    rank = f", rank {first.ranks}" if first.ranks else ""
    then = f"; then {', '.join(line.name for line in others)}" if others else ""
    return f"First: {_value(first)}{rank}{then}."


def _first_of(rows: Sequence[Mapping[str, Any]], value: str) -> str:
    """Who is first of those that may be recommended."""
    ranked = [row for row in rows if row.get("rank") is not None]
    recommended = [_of_row(row, value) for row in ranked if row.get("recommended")]
    if recommended or not ranked:
        return _first_and_next(recommended[:1])
    low, high = _ENDS[value]
    templates = any(
        beats_chance(row.get(low), row.get(high), value=row.get(value), among=len(ranked))
        for row in ranked
    )
    return f"{nobody(but_templates=templates)}."


def _on_board(one: OnBoard) -> tuple[Line, str]:
    """The headline of a metric on a benchmark, as a row and in words."""
    cell = one.headline
    assert cell is not None
    figures = (cell.value, cell.ci_low, cell.ci_high)
    line = Line(one.card.title, *figures, cell.rank_low, cell.rank_high)
    measure = info(one.card, one.card.headline.measure).title
    rank = f", rank {line.ranks} of {one.ranked}" if line.ranks else ""
    simulated = " (simulated ratings)" if one.card.simulated else ""
    return line, f"{line.name}{simulated}: {measure} {estimate(*figures)}{rank}"
