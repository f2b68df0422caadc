"""Changes of a benchmark between two revisions, and the earlier board as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from leaderboard.publication.earlier_boards import Progress
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.ranking.slices import Basis, kept_in_tiers
from leaderboard.rendering import render
from leaderboard.text import count
from leaderboard.views.addresses import metric_address, query_string
from leaderboard.views.boards import TAB
from leaderboard.views.changes import (
    CHANGES,
    EARLIER,
    VIEWS,
    ChangesQuery,
    Comparison,
    board_of_query,
    changes_address,
    comparison,
    moved_address,
    moved_data,
    progress_of,
    with_earlier,
)
from leaderboard.web.board_table import (
    BoardTable,
    Line,
    board_table,
    direction,
    legend,
)
from leaderboard.web.components import Link, Option, Scale, Tab
from leaderboard.web.live import LiveContent
from leaderboard.web.metric_parts import metric_tabs
from leaderboard.web.page import Context

_MOST_NAMED = 40


def changes(context: Context, params: Mapping[str, str]) -> LiveContent:
    """The changes of a benchmark, or its earlier board."""
    shown = params.get("view", CHANGES)
    shown = shown if shown in VIEWS else CHANGES
    asked = ChangesQuery.from_params(params)
    found = comparison(context, asked)
    if found is None or found.movement is None or found.selector is None:
        card = context.cards.get(asked.benchmark)
        name = card.title if card else "this benchmark"
        html = render("metrics/changes_empty.html", name=name, board=board_of_query(asked))
        title_of = f"Changes of {name}" if card else "Metrics"
        return LiveContent(html, query_string(changes_address(asked)), title_of)
    progress = None if found.query.until else progress_of(context, found.card.name, found.then.tag)
    names = with_earlier(context.reader.view(), context.cards, context.earlier.tags)
    places = metric_tabs(
        context.reader.view(), f"{TAB}{found.card.name}", simulated=found.card.simulated
    )
    titles = [(name, context.cards[name].title) for name in names]
    html = changes_html(found, progress, shown, titles, places)
    address = changes_address(found.query, shown)
    return LiveContent(html, query_string(address), f"Changes of {found.card.title}")


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
    sides = (side for row in moved.moved for side in (row.then, row.now))
    ends = (end for one in sides for end in (one.value, one.low, one.high))
    scale = Scale.around(ends, measure.chance, places=(3.0, 157.0))
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
        words=moved.summary(found.then.tag, found.now.tag),
        progress=progress_words(progress) if progress else [],
        rows=moved.moved, scale=scale, metric_address=metric_address, most_named=_MOST_NAMED,
        lists=[
            ("Came", "not on the earlier board", moved.came),
            ("Not here yet", "not evaluated again so far", moved.waiting),
            ("Left", "off the boards since", moved.left),
        ],
        board=board_of_query(query), data=moved_data(query),
        earlier=table, legend=lines, n_then=n_then,
        others=[
            Link(tag, changes_address(ChangesQuery(card.name, tag), EARLIER), f"board {tag}")
            for tag in found.tags if tag != found.then.tag
        ],
        hidden=parse_qsl(query_string(changes_address(ChangesQuery(card.name), shown))[1:]),
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
