"""All HTML of the page that shows what moved between two editions of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.pages.boards.table import board_table, direction
from leaderboard.pages.moved.marks import dumbbell, moved_axis
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.marks import Axis, axis_header
from leaderboard.pages.shown.markup import badge, notice, page, section, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.publication.changes import Moved, Standing
from leaderboard.publication.earlier_boards import Progress
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import info, skill_title, title
from leaderboard.ranking.tiers import Basis, kept_in_tiers
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.changes import Comparison, board_of_query, moved_address, moved_data

_LEAD = (
    "When a benchmark gets a new revision, every metric on its board is evaluated again, and the "
    "board of the earlier revision stays here. Values of two revisions are never on one board."
)
_MOST_NAMED = 40


def moved_view(found: Comparison | None, progress: Progress | None) -> str:
    """The page below its choosers.

    Args:
        found: what is compared; None where nothing can be.
        progress: of the re-evaluation, where the later board is the one of now.
    """
    if found is None:
        return page(["<h1>What moved</h1>", _nothing()])
    card = found.card
    parts = [
        f"<h1>What moved: {text(card.title)}</h1>",
        f'<p class="as-intro">{_LEAD}</p>',
    ]
    if progress is not None:
        parts += [notice(said, "info", role="status") for said in progress_words(progress)]
    if found.movement is None or found.selector is None:
        return page([*parts, _nothing()])
    parts.append(_movement(found))
    parts += [_earlier(found)]
    return page(parts)


def progress_words(progress: Progress) -> list[str]:
    """How far the re-evaluation is, as HTML; nothing where all that was there is there again."""
    if progress.done >= progress.of:
        return []
    said = f"<b>{progress.done:,} of {progress.of:,} re-evaluated.</b>"
    if progress.waiting:
        said += f" {count(progress.waiting, 'metric')} in the queue."
    if progress.others_must:
        said += (
            f" For {count(progress.others_must, 'metric')} only scores were sent, for the earlier "
            "revision: their authors have been told what to send."
        )
    return [said]


def earlier_banner(title_of: str, benchmark: str, tag: str, progress: Progress) -> str:
    """On a board: that there was an earlier revision, and how far the re-evaluation is.

    Args:
        title_of: of the benchmark.
        benchmark: its name.
        tag: of the earlier edition.
        progress: of the re-evaluation.
    """
    address = text(moved_address(benchmark, tag))
    link = (
        f'<a href="{address}">What moved since {text(tag, limit=40)}</a> · '
        f'<a href="{address}#earlier">the complete earlier board</a>'
    )
    words = progress_words(progress)
    if not words:
        return f'<p class="as-intro">{link}</p>'
    return notice(f"{words[0]} {text(title_of)} has a new revision. {link}", "info", role="status")


def _movement(found: Comparison) -> str:
    card, moved, selector = found.card, found.movement, found.selector
    if moved is None or selector is None:
        return ""
    measure = info(card, selector.measure)
    name = title(card, selector, found.options)
    words = f'<p class="as-lead">{text(moved.words(found.then.tag, found.now.tag))}</p>'
    body = words
    if moved.moved:
        axis = moved_axis(moved.moved, measure.chance)
        head = f"{text(measure.title)} {direction(measure)}"
        body += _table(moved.moved, axis, head, f"{card.title}: {name}") + _legend(found)
    body += _named("Came", "Not on the earlier board", moved.came)
    body += _named("Not here yet", "Not evaluated again so far", moved.waiting)
    body += _named("Left", "Off the boards since", moved.left)
    links = download_links(moved_data(found.query))
    now = f'<a href="{text(board_of_query(found.query))}">Board of now</a>'
    return section(
        f"{name} — {skill_title(card, found.query.skill or None)}", body, aside=f"{now}{links}"
    )


def _table(rows: Sequence[Moved], axis: Axis, head: str, caption: str) -> str:
    heads = (
        ("Metric", "as-c-metric"),
        (f'<span class="as-sr">Then and now</span>{axis_header(axis)}', "as-c-axis"),
        (f"Then {head}", "as-c-value"),
        ("Now", "as-c-value"),
        ("Difference", "as-c-diff"),
        ("Rank range", "as-c-rank"),
    )
    cells = "".join(
        f'<th scope="col" role="columnheader" class="{kind}">{what}</th>' for what, kind in heads
    )
    lines = "".join(_line(row, axis) for row in rows)
    return (
        '<div class="as-scroll" tabindex="0" role="region" aria-label="What moved">'
        '<table class="as-table as-moved" role="table">'
        f'<caption class="as-sr">{text(caption)}: values and ranks of two revisions</caption>'
        f'<thead role="rowgroup"><tr role="row">{cells}</tr></thead>'
        f'<tbody role="rowgroup">{lines}</tbody></table></div>'
    )


def _line(row: Moved, axis: Axis) -> str:
    version = ""
    if row.before.version != row.after.version:
        earlier = row.before.version or "without version"
        version = f" {badge(f'was {earlier}')}"
    return (
        '<tr role="row">'
        f'<th scope="row" role="rowheader" class="as-c-metric">{metric_name(row.after)}{version}</th>'
        f'<td role="cell" class="as-c-axis">{dumbbell(row, axis)}</td>'
        f'<td role="cell" class="as-c-value" data-label="then">{_value(row.then)}</td>'
        f'<td role="cell" class="as-c-value" data-label="now">{_value(row.now)}</td>'
        f'<td role="cell" class="as-c-diff">{_difference(row)}</td>'
        f'<td role="cell" class="as-c-rank">{_ranks(row)}</td></tr>'
    )


def _value(side: Standing) -> str:
    ends = interval(side.low, side.high)
    return f'<b>{number(side.value)}</b> <span class="as-ci">{ends}</span>'


def _difference(row: Moved) -> str:
    found = row.difference
    if found is None:
        return MISSING
    sign = "+" if found > 0 else ""
    word = {True: "better", False: "worse", None: "as before"}[row.better]
    arrow = "▲ " if found > 0 else "▼ " if found < 0 else ""
    return f'<b>{arrow}{sign}{number(found)}</b> <span class="as-ci">{word}</span>'


def _ranks(row: Moved) -> str:
    shown = f"{_range(row.then)} → {_range(row.now)}"
    if row.ranks_overlap is None:
        return f'<span class="as-range">{shown}</span>'
    mark = (
        badge("overlap", "plain", "The two rank ranges have a rank in common")
        if row.ranks_overlap
        else badge("apart", "warn", "The two rank ranges have no rank in common")
    )
    return f'<span class="as-range">{shown}</span> {mark}'


def _range(side: Standing) -> str:
    if side.rank_low is None or side.rank_high is None:
        return "–"
    if side.rank_low == side.rank_high:
        return str(side.rank_low)
    return f"{side.rank_low}–{side.rank_high}"


def _named(heading: str, what: str, entries: Sequence[Entry]) -> str:
    if not entries:
        return ""
    names = ", ".join(metric_name(entry) for entry in entries[:_MOST_NAMED])
    rest = len(entries) - _MOST_NAMED
    more = f" and {count(rest, 'more', 'more')}" if rest > 0 else ""
    return f'<p class="as-legend"><b>{heading}</b> ({what}): {names}{more}.</p>'


def _legend(found: Comparison) -> str:
    return (
        f'<p class="as-legend"><b>Ring:</b> then ({text(found.then.tag, limit=40)}). <b>Dot:</b> now '
        f"({text(found.now.tag, limit=40)}). Thick lines: 95 % intervals; thin line: from one to "
        "the other. ▲ ▼: the value rose or fell. Data or protocol are not the same, so a "
        "difference is no test: compare the intervals, and the rank ranges (95 % of the resampled "
        "ranks), which say whether the order moved. Ranks are among all metrics of each board.</p>"
    )


def _earlier(found: Comparison) -> str:
    """The whole earlier board, by the same measure."""
    then, selector = found.then, found.selector
    if selector is None:
        return ""
    cells = then.board.cells(selector, found.query.skill or None)
    if not cells:
        said = "<p>The earlier board has no values by this measure.</p>"
        return section(f"The board of {then.tag}", said, ident="earlier")
    card = then.board.card
    stated = [then.entries[cell.entry_id].provenance.get(card.name) for cell in cells]
    n_resamples = max((one.n_resamples for one in stated if one), default=0)
    table = board_table(
        kept_in_tiers(cells),
        then.entries,
        card,
        info(card, selector.measure),
        f"{card.title}, {then.tag}",
        basis=Basis.of_kept(cells, n_resamples),
    )
    tags = "".join(
        f' <a href="{text(moved_address(card.name, tag))}#earlier">{text(tag, limit=40)}</a>'
        for tag in found.tags
        if tag != then.tag
    )
    others = f'<p class="as-legend">Other boards that are kept:{tags}</p>' if tags else ""
    said = (
        '<p class="as-lead">As it last was. Its results stay in the store: '
        f"<code>python -m evaluator report SUBMISSION --revision {text(then.tag)}</code></p>"
    )
    return section(
        f"The board of {then.tag}",
        said + table + others,
        aside=f"<span>{count(len(cells), 'metric')}</span>",
        ident="earlier",
    )


def _nothing() -> str:
    return (
        '<div class="as-empty"><h2>Nothing to compare</h2><p>No board of an earlier revision of '
        "this benchmark is kept. One is kept as soon as a new revision takes its place.</p>"
        '<p><a class="as-button as-strong" href="./boards">Boards</a></p></div>'
    )
