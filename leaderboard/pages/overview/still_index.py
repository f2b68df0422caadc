"""The index on the page that needs no service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.pages.index.tiers_said import about_tiers
from leaderboard.pages.shown.markup import submitted, text
from leaderboard.publication.boards import Snapshot
from leaderboard.publication.entries import Entry
from leaderboard.publication.identities import latest_entries
from leaderboard.publication.index import IndexBase, IndexBoard, Ranked, index_boards, plain_index
from leaderboard.publication.reader import BoardIndex, comparable
from leaderboard.text import MISSING, count, interval, number

MOST_ROWS = 20
_MEANS = (
    "The mean of each benchmark’s headline, 0 for a guess and 1 for its ceiling, of metrics that have "
    "every benchmark of the index: {titles}."
)
_PLAIN = (
    "<b>Without intervals, rank ranges and tiers:</b> they are made from the resamples and "
    "contributions of all benchmarks, which lie beside this page and were not read for it."
)
_DRAWN = (
    "Rank ranges and intervals hold 95 % of the resamples; metrics whose ranges overlap are not told "
    "apart by the data."
)


@dataclass(frozen=True)
class _Published:
    """What of a snapshot the index looks at."""

    boards: Mapping[str, BoardIndex]
    entries: dict[str, Entry]


def still_index(snapshot: Snapshot, base: IndexBase | None = None) -> str:
    """The index as a section; empty where no metric has every benchmark of it.

    Args:
        snapshot: what is published.
        base: its index with all draws; None: they were not read.
    """
    if base is not None:
        return _drawn(base)
    entries = dict(snapshot.entries)
    boards = comparable({name: BoardIndex(board) for name, board in snapshot.boards.items()})
    indexed, _ = index_boards(_Published(boards, entries))
    weighty = {name: board for name, board in indexed.items() if board.weight}
    whole = {
        who: index.value
        for who, index in plain_index(indexed).items()
        if len(index.boards) == len(weighty)
    }
    latest = latest_entries(entries.values())
    best = sorted(whole, key=lambda who: (-whole[who], who.metric.casefold(), who.version))
    rows = [(MISSING, MISSING, latest[who], number(whole[who])) for who in best]
    return _section(rows, weighty, _PLAIN)


def _drawn(base: IndexBase) -> str:
    weights = {name: board.weight for name, board in base.boards.items()}
    ranked = [one for one in base.standings(weights) if one.standing.rank is not None]
    rows = [_row(one) for one in ranked]
    weighty = {name: board for name, board in base.boards.items() if board.weight}
    return _section(rows, weighty, f"{_DRAWN} {about_tiers(ranked)}")


def _row(one: Ranked) -> tuple[str, str, Entry, str]:
    standing, rank = one.standing, one.standing.rank
    ranks = MISSING
    if rank is not None:
        ranks = str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"
    low, high = standing.index.low, standing.index.high
    value = f"{number(standing.index.value)} <small>{interval(low, high)}</small>"
    return ranks, str(standing.tier or MISSING), one.entry, value


def _section(
    rows: Sequence[tuple[str, str, Entry, str]], boards: dict[str, IndexBoard], said: str
) -> str:
    if not rows:
        return ""
    body = "".join(
        f'<tr><td class="n">{ranks}</td><td class="n">{tier}</td><th scope="row">'
        f"{submitted(entry.metric)} {submitted(entry.version, limit=20)}</th>"
        f'<td class="n">{value}</td></tr>'
        for ranks, tier, entry, value in rows[:MOST_ROWS]
    )
    titles = ", ".join(text(board.card.title) for board in boards.values())
    more = f" The first {MOST_ROWS} of {len(rows):,}." if len(rows) > MOST_ROWS else ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Ranks", "Tier", "Metric", "Index"))
    return (
        f'<section id="index"><h2>Index over {count(len(boards), "benchmark")}</h2>'
        f"<p>{_MEANS.format(titles=titles)}</p>"
        '<div class="box" tabindex="0" role="region" aria-label="Index"><table>'
        f"<caption>Best of the index</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div><p><small>{said}{more}</small></p></section>"
    )
