"""The boards as one page that needs no service: HTML without a script, as of its snapshot.

It is for the time when nobody answers. Equal snapshots make equal bytes.
"""

from __future__ import annotations

from benchmarks.schema import Card
from leaderboard.pages.overview.still_index import still_index
from leaderboard.pages.shown.markup import paragraphs, submitted, text
from leaderboard.publication.boards import Board, Snapshot
from leaderboard.publication.entries import Entry
from leaderboard.publication.flags import origin
from leaderboard.publication.index import IndexBase
from leaderboard.publication.measure_names import info
from leaderboard.publication.recommending import leading_cells
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.tiers import kept_in_tiers
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.boards import KINDS

STILL_PATH = "index.html"
"""Where the page is, beside the snapshot it is made from."""
MOST_ROWS = 50
"""Of each board; the page is to stay small."""
_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;"
    "margin:0 auto;padding:1rem}.box{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "caption{text-align:left;padding:.3rem 0}th,td{text-align:left;padding:.3rem .6rem;"
    "border-bottom:1px solid #8884;vertical-align:top}td.n{font-variant-numeric:tabular-nums;"
    "white-space:nowrap}small{opacity:.75}"
)


def still_page(snapshot: Snapshot, base: IndexBase | None = None) -> bytes:
    """The page of a snapshot.

    Args:
        snapshot: what is published.
        base: its index with all draws; None: the index is shown without what is made from them.
    """
    at = snapshot.built_at
    boards = [board for _, board in sorted(snapshot.boards.items(), key=_order)]
    shown = [(board, _headline(board)) for board in boards]
    overview = "".join(_line(board, cells, snapshot) for board, cells in shown)
    body = "".join(_board(board, cells, snapshot) for board, cells in shown if cells)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Assay, as of {at:%Y-%m-%d %H:%M} UTC</title><style>{_STYLE}</style></head><body>"
        f"<h1>Assay</h1><p>Metrics for text-to-image models, tested. As of "
        f'<time datetime="{at.isoformat()}">{at:%Y-%m-%d %H:%M} UTC</time>; '
        f"{count(len(snapshot.entries), 'metric')}. This page is kept for when the service does not "
        "answer; the service has every measure, skill and test.</p>"
        f"{still_index(snapshot, base)}"
        '<div class="box" tabindex="0" role="region" aria-label="Benchmarks"><table>'
        "<caption>Benchmarks by their headline</caption><thead><tr>"
        '<th scope="col">Benchmark</th><th scope="col">Headline</th><th scope="col">Metrics</th>'
        '<th scope="col">May be the best</th></tr></thead>'
        f"<tbody>{overview}</tbody></table></div>{body}</body></html>\n"
    ).encode()


def _order(named: tuple[str, Board]) -> tuple[bool, str]:
    return named[1].card.simulated, named[0]


def _headline(board: Board) -> tuple[Cell, ...]:
    return kept_in_tiers(board.slice(board.card.headline, None))


def _line(board: Board, cells: tuple[Cell, ...], snapshot: Snapshot) -> str:
    card = board.card
    leading = leading_cells(card, cells, snapshot.entries)
    first = [snapshot.entries[cell.entry_id] for cell in leading if cell.rank_low == 1]
    names = ", ".join(submitted(entry.metric) for entry in first[:8])
    more = f" and {len(first) - 8} more" if len(first) > 8 else ""
    simulated = " <small>(simulated ratings)</small>" if card.simulated else ""
    link = f'<a href="#{text(card.name)}">{text(card.title)}</a>' if cells else text(card.title)
    return (
        f'<tr><th scope="row">{link}{simulated}</th>'
        f"<td>{text(info(card, card.headline.measure).title)}</td>"
        f'<td class="n">{len(cells):,}</td><td>{names or MISSING}{more}</td></tr>'
    )


def _board(board: Board, cells: tuple[Cell, ...], snapshot: Snapshot) -> str:
    card = board.card
    rows = "".join(_row(cell, snapshot.entries[cell.entry_id]) for cell in cells[:MOST_ROWS])
    title = text(info(card, card.headline.measure).title)
    better = "higher" if card.higher_is_better(card.headline.measure) else "lower"
    cut = f"<p>The first {MOST_ROWS} of {len(cells):,}.</p>" if len(cells) > MOST_ROWS else ""
    return (
        f'<section id="{text(card.name)}"><h2>{text(card.title)}</h2>{_about(card)}'
        f'<div class="box" tabindex="0" role="region" aria-label="{text(card.title)}"><table>'
        f"<caption>{title}, {better} is better; 95 % intervals</caption><thead><tr>"
        '<th scope="col">Ranks</th><th scope="col">Tier</th><th scope="col">Metric</th>'
        f'<th scope="col">{title}</th><th scope="col">{text(card.cluster.capitalize())}s</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{cut}</section>"
    )


def _about(card: Card) -> str:
    simulated = "<p><b>Ratings on this board are simulated.</b></p>" if card.simulated else ""
    revision = f"<p><small>Revision {text(card.revision, limit=40)}</small></p>"
    return f"{simulated}{paragraphs(card.summary)}{revision}"


def _row(cell: Cell, entry: Entry) -> str:
    ranks = MISSING
    if cell.rank_low is not None and cell.rank_high is not None:
        same = cell.rank_low == cell.rank_high
        ranks = str(cell.rank_low) if same else f"{cell.rank_low}–{cell.rank_high}"
    why = f"<br><small>{text(cell.why_unranked)}</small>" if cell.rank is None else ""
    by = f" by {submitted(entry.submitter)}" if entry.submitter and not entry.released_with else ""
    return (
        f'<tr><td class="n">{ranks}</td><td class="n">{cell.tier or MISSING}</td>'
        f'<th scope="row">{submitted(entry.metric)} {submitted(entry.version, limit=20)}'
        f"<br><small>{origin(entry) or KINDS[entry.kind.value]}{by}</small>{why}</th>"
        f'<td class="n">{number(cell.value)} <small>{interval(cell.ci_low, cell.ci_high)}</small>'
        f'</td><td class="n">{cell.n_clusters:,}</td></tr>'
    )
