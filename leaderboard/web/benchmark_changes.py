"""Changes of a benchmark between two revisions, and the earlier board as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from leaderboard.publication.changes import Moved, Standing
from leaderboard.publication.earlier_boards import Progress
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.ranking.slices import Basis, kept_in_tiers
from leaderboard.rendering import render
from leaderboard.text import count, interval, number
from leaderboard.views.addresses import metric_address, query_string
from leaderboard.views.boards import TAB
from leaderboard.views.changes import (
    CHANGES,
    EARLIER,
    VIEWS,
    Comparison,
    MovedQuery,
    board_of_query,
    changes_address,
    comparison,
    moved_address,
    moved_data,
    progress_of,
    with_earlier,
)
from leaderboard.web.board_legend import Line, legend
from leaderboard.web.board_table import SCALE_MARGIN, BoardTable, board_table, direction
from leaderboard.web.components import Link, Option, Scale, Tab
from leaderboard.web.live import Shown
from leaderboard.web.metric_tabs import metric_tabs
from leaderboard.web.page import Context

_MOST_NAMED = 40


@dataclass(frozen=True)
class Name:
    """A metric that is named in a list."""

    name: str
    href: str


@dataclass(frozen=True)
class Change:
    """A metric on both boards."""

    name: str  # of the metric
    href: str  # of its page
    was: str  # its version then, where that was another; else empty
    then: str  # its value then
    now: str  # its value now
    then_ci: str  # interval then
    now_ci: str  # interval now
    difference: str  # now less then, with its sign; a dash where one is missing
    better: str  # `better`, `worse` or `as before`; empty where there is no difference
    ranks: str  # rank range then and now
    apart: bool | None  # whether the two ranges have no rank in common; None where one is missing
    mark: Dumbbell  # what the drawing shows


@dataclass(frozen=True)
class Dumbbell:
    """A value then (a ring) and now (a dot) on one scale, each with its interval."""

    then: Standing
    now: Standing
    scale: Scale
    label: str


def changes(context: Context, params: Mapping[str, str]) -> Shown:
    """The changes of a benchmark, or its earlier board."""
    shown = params.get("view", CHANGES)
    shown = shown if shown in VIEWS else CHANGES
    asked = MovedQuery.from_params(params)
    found = comparison(context, asked)
    if found is None or found.movement is None or found.selector is None:
        card = context.cards.get(asked.benchmark)
        name = card.title if card else "this benchmark"
        html = render("metrics/changes_empty.html", name=name, board=board_of_query(asked))
        title_of = f"Changes of {name}" if card else "Metrics"
        return Shown(html, query_string(changes_address(asked)), title_of)
    progress = None if found.query.until else progress_of(context, found.card.name, found.then.tag)
    names = with_earlier(context.reader.view(), context.cards, context.earlier.tags)
    places = metric_tabs(
        context.reader.view(), f"{TAB}{found.card.name}", simulated=found.card.simulated
    )
    titles = [(name, context.cards[name].title) for name in names]
    html = changes_html(found, progress, shown, titles, places)
    address = changes_address(found.query, shown)
    return Shown(html, query_string(address), f"Changes of {found.card.title}")


def changes_html(
    found: Comparison,
    progress: Progress | None,
    shown: str = CHANGES,
    benchmarks: Sequence[tuple[str, str]] = (),
    places: Sequence[Tab] = (),
) -> str:
    """The changes between two revisions, or the earlier board."""
    card, moved, selector, query = found.card, found.movement, found.selector, found.query
    if moved is None or selector is None:
        raise ValueError("there is nothing to compare")
    measure = info(card, selector.measure)
    scale = changes_scale(moved.moved, measure.chance)
    tabs = [
        Tab(label, changes_address(query, view), view == shown, go=view)
        for view, label in ((CHANGES, "Changes"), (EARLIER, f"Board of {found.then.tag}"))
    ]
    table, lines, n_then = _earlier(found)
    return render(
        "metrics/changes.html", card=card, found=found, shown=shown, tabs=tabs, places=places,
        name=title(card, selector, found.options), measure=measure,
        higher=direction(measure.higher_is_better),
        skill=skill_title(card, query.skill or None),
        words=moved.words(found.then.tag, found.now.tag),
        progress=progress_words(progress) if progress else [],
        rows=[_change(row, scale) for row in moved.moved],
        lists=[
            ("Came", "not on the earlier board", *_names(moved.came)),
            ("Not here yet", "not evaluated again so far", *_names(moved.waiting)),
            ("Left", "off the boards since", *_names(moved.left)),
        ],
        board=board_of_query(query), data=moved_data(query),
        earlier=table, legend=lines, n_then=n_then,
        others=[
            Link(tag, changes_address(MovedQuery(card.name, tag), EARLIER), f"board {tag}")
            for tag in found.tags if tag != found.then.tag
        ],
        hidden=parse_qsl(query_string(changes_address(MovedQuery(card.name), shown))[1:]),
        benchmarks=[Link(label, moved_address(name), f"benchmark {name}")
                    for name, label in benchmarks if name != card.name],
        since=[Option(tag, tag, tag == query.since) for tag in found.tags],
        until=[Option("", "Now", not query.until),
               *(Option(tag, tag, tag == query.until) for tag in found.tags)],
        skills=[Option("", "All skills", not query.skill),
                *(Option(one, skill_title(card, one), one == query.skill) for one in found.skills)],
        measures=[Option(token(one), title(card, one, found.options), one == selector)
                  for one in found.options],
    )  # fmt: skip


def progress_words(progress: Progress) -> list[Line]:
    """How far the re-evaluation is; nothing where all that was there is there again."""
    if progress.done >= progress.of:
        return []
    said = []
    if progress.waiting:
        said.append(f"{count(progress.waiting, 'metric')} in the queue.")
    if progress.others_must:
        said.append(
            f"For {count(progress.others_must, 'metric')} only scores were sent, for the earlier "
            "revision: their submitters have been told what to send."
        )
    return [(f"{progress.done:,} of {progress.of:,} re-evaluated.", " ".join(said))]


def changes_scale(rows: Sequence[Moved], chance: float | None) -> Scale:
    """A scale that holds all values and intervals of both boards, and chance."""
    sides = [side for row in rows for side in (row.then, row.now)]
    found = [n for side in sides for n in (side.value, side.low, side.high) if n is not None]
    numbers = [*found, *(() if chance is None else (chance,))] or [0.0, 1.0]
    margin = SCALE_MARGIN * (max(numbers) - min(numbers)) or 0.5
    return Scale(min(numbers) - margin, max(numbers) + margin, 3.0, 157.0, chance=chance)


def _change(row: Moved, scale: Scale) -> Change:
    earlier = row.before.version or "without version"
    difference = row.difference
    words = {True: "better", False: "worse", None: "as before"}
    sign = "+" if difference is not None and difference > 0 else ""
    then, now = _said(row.then), _said(row.now)
    return Change(
        row.after.metric, metric_address(row.after.entry_id),
        f"was {earlier}" if row.before.version != row.after.version else "",
        number(row.then.value), number(row.now.value),
        interval(row.then.low, row.then.high), interval(row.now.low, row.now.high),
        "–" if difference is None else f"{sign}{number(difference)}",
        "" if difference is None else words[row.better],
        f"{_range(row.then)} → {_range(row.now)}",
        None if row.ranks_overlap is None else not row.ranks_overlap,
        Dumbbell(row.then, row.now, scale, f"then {then}, now {now}"),
    )  # fmt: skip


def _said(side: Standing) -> str:
    if side.value is None:
        return "no value"
    return f"{number(side.value)} {interval(side.low, side.high)}".strip()


def _range(side: Standing) -> str:
    if side.rank_low is None or side.rank_high is None:
        return "–"
    if side.rank_low == side.rank_high:
        return str(side.rank_low)
    return f"{side.rank_low}–{side.rank_high}"


def _names(entries: Sequence[Entry]) -> tuple[list[Name], int]:
    """The first of some metrics, and how many are left."""
    named = [Name(one.metric, metric_address(one.entry_id)) for one in entries[:_MOST_NAMED]]
    return named, len(entries) - len(named)


def _earlier(found: Comparison) -> tuple[BoardTable | None, list[Line], int]:
    """The whole earlier board by the same measure; None where it has no values by it."""
    then, selector = found.then, found.selector
    cells = then.board.cells(selector, found.query.skill or None) if selector else ()
    if selector is None or not cells:
        return None, [], 0
    card = then.board.card
    stated = [then.entries[cell.entry_id].provenance.get(card.name) for cell in cells]
    n_resamples = max((one.n_resamples for one in stated if one), default=0)
    ranked = kept_in_tiers(cells)
    table = board_table(
        ranked, then.entries, card, info(card, selector.measure), f"{card.title}, {then.tag}"
    )
    return table, legend(ranked, card, Basis.of_kept(cells, n_resamples)), len(cells)
