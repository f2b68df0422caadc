"""Heads of rankings and comparisons, from stored results; nothing is tested anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.schema import Card
from leaderboard.publication.reader import View
from leaderboard.publication.recommending import leading_cells, nobody_leads
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.slices import kept_in_tiers
from leaderboard.records import Kind
from leaderboard.text import clean, count, interval, number
from leaderboard.views.benchmark_board import title_of
from leaderboard.views.boards import BoardQuery, Choice, resolve
from leaderboard.views.comparison import CompareQuery, opponents
from leaderboard.web.heads.head import Head, Line

MOST_LINES = 5
_LONGEST_NAME = 60


def board_head(params: Mapping[str, str], view: View) -> Head | None:
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
    return Head(title_of(choice), " ".join(filter(None, said)), lines, choice.measure_title,
                note_of(choice, view))  # fmt: skip


def compare_head(params: Mapping[str, str], view: View) -> Head | None:
    """Of the comparison that a query asks for; None where it is not there."""
    pair = opponents(CompareQuery.from_params(params), view)
    choice, chosen = pair.choice, pair.chosen
    if pair.remarks or choice.selector is None or len(chosen) < 2:
        return None
    lines = tuple(
        _line(entry, _cell(choice, entry), view, ranked=False) for entry in chosen
    )  # fmt: skip
    names = [clean(view.entries[entry].metric) for entry in chosen]
    heading = f"{', '.join(names[:-1])} and {names[-1]} on {choice.board.card.title}"
    values = "; ".join(_value(line) for line in lines)
    said = [f"{choice.measure_title}, {choice.title}: {values}.", note_of(choice, view)]
    return Head(heading, " ".join(said), lines, choice.measure_title,
                note_of(choice, view))  # fmt: skip


def name_of(entry_id: str, view: View) -> str:
    """A metric by its name and version, as a line of harmless text."""
    entry = view.entries[entry_id]
    return " ".join(clean(f"{entry.metric} {entry.version}").split())[:_LONGEST_NAME]


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
