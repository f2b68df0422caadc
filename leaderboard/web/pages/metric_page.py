"""Page of one metric; which one is in the link."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import gradio as gr
from starlette.datastructures import QueryParams

from benchmarks.statistics.content_effect import LIMIT
from leaderboard.ledger.versions import standing_over, superseded_versions
from leaderboard.publication.entries import BLIND, MEANINGS, MOVED, shown_account
from leaderboard.publication.reader import View
from leaderboard.publication.results import read_results
from leaderboard.records import Status
from leaderboard.rendering import render
from leaderboard.service.address import root_of
from leaderboard.states import LEGEND, State
from leaderboard.submission_service import UNNAMED
from leaderboard.text import clean
from leaderboard.views.addresses import metric_address, with_state
from leaderboard.views.changes import moved_address
from leaderboard.views.citation import CitedAt
from leaderboard.views.controls import (
    CHANGE_WORDS,
    ChangeRow,
    change_rows,
    content_sentence,
    prompt_figures,
    prompt_sentence,
)
from leaderboard.views.examples import lower_is_better
from leaderboard.views.metric import (
    AgainstPeople,
    MetricOnBoards,
    MetricQuery,
    OffBoard,
    OnBoard,
    Unknown,
    VersionHistory,
    against_people,
    check_title,
    metric_page,
    on_boards,
    one_pixel_of,
    resolve,
    share_of_spread,
)
from leaderboard.views.submissions import KINDS
from leaderboard.web.best_of_n import best_of_n_html
from leaderboard.web.components import Point, Scale, ScatterChart, Tick
from leaderboard.web.drift import drift_html
from leaderboard.web.live import LiveContent as Part
from leaderboard.web.live import live_view
from leaderboard.web.page import Context, Page

_NAMELESS = frozenset({State.HIDDEN})
"""States in which an operator took it away: nothing its author wrote is shown."""


def metric_html(context: Context, query: MetricQuery, root: str = "") -> str:
    """The page for a query."""
    view, statuses = context.reader.view(), context.reader.statuses()
    found = resolve(query, view, statuses)
    if not isinstance(found, MetricOnBoards):
        return _missing(found, statuses)
    page = metric_page(
        found, view, statuses, changes=_changes(context, found),
        results_of=lambda submission: read_results(context.store, submission),
        at=CitedAt(context.reader.revision(), root),
    )  # fmt: skip
    status, entry = found.status, found.entry
    return render(
        "metric/page.html",
        page=page,
        own=status.submission if status else None,
        by={"name": entry.submitter, "account": shown_account(entry.account)},
        kind=KINDS[entry.kind],
        scales={one["card"].name: _scale(one) for one in page["results"]},
        unit=_unit([row.own for row in page["profile"]]),
        finite=lambda value: value if math.isfinite(value) else None,
        histories=[(one, _over_versions(one)) for one in page["history"]],
        meanings=MEANINGS,
        unnamed=UNNAMED,
        legend=LEGEND,
        share=share_of_spread,
        one_pixel=one_pixel_of,
        blind_label=BLIND,
        prompt_sentence=prompt_sentence,
        prompt_figures=prompt_figures,
        moved_label=MOVED,
        content_sentence=content_sentence,
        change_rows=change_rows,
        change_words=CHANGE_WORDS,
        change_scale=_change_scale,
        change_limit=f"{LIMIT:g}",
        check_title=check_title,
    )


def below_html(context: Context, query: MetricQuery, benchmark: str = "") -> str:
    """What takes longer; `benchmark`: the one to show first. Empty where there is no metric."""
    view = context.reader.view()
    found = resolve(query, view, context.reader.statuses())
    if not isinstance(found, MetricOnBoards):
        return ""
    boards = on_boards(found, view)
    people, newer = people_html(context, found, boards, benchmark), drift_html(view, found.entry)
    return people + newer + best_of_n_html(context, found, boards, benchmark)


def people_html(
    context: Context, found: MetricOnBoards, boards: Sequence[OnBoard], benchmark: str
) -> str:
    """The chart of a metric's scores against what people say."""
    view = context.reader.view()
    boards = [one for one in boards if one.card.answers_public]
    boards.sort(key=lambda one: (one.card.name != benchmark, one.card.simulated))
    chosen = next(filter(None, (_scored(context, view, one) for one in boards)), None)
    here = metric_address(found.entry.entry_id)
    options = [
        (one.card.title, with_state(here, on=one.card.name),
         chosen is not None and one.card.name == chosen.card.name)
        for one in sorted(boards, key=lambda one: one.card.name)
    ]  # fmt: skip
    return render(
        "metric/people.html",
        options=options,
        chart=_against(chosen) if chosen else None,
        scope=f"{chosen.card.title}, {chosen.n_prompts:,} prompts" if chosen else "",
        note=_thinned(chosen) if chosen else "",
        why="No benchmark with public answers has values by people for its images.",
    )


def _scored(context: Context, view: View, one: OnBoard) -> AgainstPeople | None:
    """The scatter of one benchmark; None where it cannot be drawn."""
    cases = context.items.cases(one.card)
    if cases is None:
        return None
    entry = view.entries[one.entry_id]
    turned = entry.metric in lower_is_better(context.reader.statuses()).get(entry.submission_id, ())
    return against_people(one.card, cases, context.items.standing(entry, cases, turned))


def _missing(found: OffBoard | Unknown, statuses: Sequence[Status]) -> str:
    if isinstance(found, Unknown):
        return render(
            "metric/missing.html", gone=None, unknown=found, search=found.search,
            address_of=metric_address,
        )  # fmt: skip
    status = found.status
    named = status.state not in _NAMELESS
    over = standing_over(status.submission, statuses)
    before = superseded_versions(status.submission, statuses) if status.scored_at else ()
    versions = (
        ("Superseded by", (over,) if over else ()),
        ("Supersedes", before),
    )
    return render(
        "metric/missing.html", gone=found, unknown=None, search="", named=named,
        meaning=LEGEND[status.state], versions=versions if named else (),
    )  # fmt: skip


def _changes(context: Context, found: MetricOnBoards) -> dict[str, str]:
    """Title of a benchmark to its changes, where an earlier board is kept."""
    names = dict.fromkeys(name for entry in found.entries for name in entry.provenance)
    return {
        context.cards[name].title: moved_address(name)
        for name in names
        if name in context.cards and context.earlier.tags(context.cards[name])
    }


def _scale(one: dict[str, Any]) -> Scale:
    """One axis for all rows of a benchmark, so that they can be compared by eye."""
    cells = [row["cell"] for row in one["every"]]
    ends = (end for cell in cells for end in (cell.value, cell.ci_low, cell.ci_high))
    return Scale.around(ends, one["shown"][0]["chance"] if one["shown"] else None, margin=0.0)


def _change_scale(rows: Sequence[ChangeRow]) -> Scale:
    """One axis for all changes of a metric, on which the limits and 0 lie."""
    figures = [row.figures for row in rows]
    ends = (end for one in figures for end in (one.value, one.low, one.high))
    return Scale.around((-LIMIT, LIMIT, *ends), 0.0, margin=0.0)


def _unit(values: Iterable[Iterable[float]]) -> Scale:
    """The axis of rescaled values: chance at 0."""
    ends = (end for value in values for end in value)
    return Scale.around((0.0, 1.0, *ends), 0.0, margin=0.0)


def _ticks(scale: Scale, digits: int = 2) -> tuple[Tick, ...]:
    return tuple(Tick(value, f"{value:.{digits}f}".replace("-", "−")) for value in scale.ticks())


def _over_versions(history: VersionHistory) -> ScatterChart:
    values = history.values
    ends = [end for _, *figures in values for end in figures if end is not None]
    upward = Scale(min(ends), max(ends))
    points = tuple(
        Point(version, value, float(place), low, high, labelled=True)
        for place, (version, value, low, high) in enumerate(values)
    )
    (last, newest, *_), (first, oldest, *_) = values[-1], values[0]
    return ScatterChart(
        f"{history.measure} on {history.card.title} over versions",
        f"{oldest:.3f} in {clean(first)}, {newest:.3f} in {clean(last)}",
        points,
        Scale(-0.5, len(values) - 0.5),
        upward,
        "version, earliest first",
        history.measure,
        y_ticks=_ticks(upward),
    )


def _against(found: AgainstPeople) -> ScatterChart:
    prompts, scores, people = zip(*found.points, strict=True)
    across, upward = Scale(min(scores), max(scores)), Scale(min(people), max(people))
    return ScatterChart(
        f"Scores against people on {found.card.title}",
        f"{len(prompts)} prompts",
        tuple(Point(clean(prompt)[:120], said, score) for prompt, score, said in found.points),
        across,
        upward,
        "score of the metric, higher is a better match",
        "what people say, higher is a better match",
        x_ticks=_ticks(across),
        y_ticks=_ticks(upward),
    )


def _thinned(found: AgainstPeople) -> str:
    parts = []
    if len(found.points) < found.n_prompts - found.n_missing:
        parts.append(f"{len(found.points):,} of {found.n_prompts:,} prompts are drawn.")
    if found.n_missing:
        parts.append(f"{found.n_missing:,} prompts have no score.")
    return " ".join(parts)


def _build(context: Context) -> None:
    def opened(params: QueryParams, request: gr.Request) -> Part:
        query = MetricQuery.from_params(params)
        return Part(metric_html(context, query, root_of(request.headers)), _query_of(params))

    def below(params: QueryParams, _: gr.Request) -> Part:
        return Part(below_html(context, MetricQuery.from_params(params), params.get("on", "")))

    live_view(opened, below=below)


def _query_of(params: QueryParams) -> str:
    return f"?{params}" if str(params) else ""


PAGE = Page("Metric", "metric", 16, _build, in_navigation=False)
"""The page."""
