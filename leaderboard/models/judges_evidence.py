"""Evidence on judges: results of every metric on one skill, from the boards of metrics."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.schema import Card
from leaderboard.models.board_types import Evidence
from leaderboard.publication.measure_names import nearest
from leaderboard.publication.reader import BoardIndex, View, headline_cells
from leaderboard.publication.skill_names import Part, common_key
from leaderboard.ranking.cells import Cell, too_few
from leaderboard.ranking.chance import beats_chance, chance_of, is_at_or_below_chance
from leaderboard.ranking.tiers import in_tiers

FOR, AGAINST, UNDECIDED = "for", "against", "undecided"


def parts_for(view: View, card: Card, skill: str | None) -> tuple[Part, ...]:
    """The boards of metrics that count for a skill of a prompt set; the headline's key is empty.

    A skill of another family counts where both go by one common name. Over all prompts the boards
    of the prompt set's family count, or all boards where the family has none that orders metrics.
    Simulated ratings say nothing of the metrics that judge real models, nor the reverse.
    """
    boards = {
        name: board
        for name, board in view.boards.items()
        if not board.empty and board.card.simulated == card.simulated
    }
    if skill is None:
        able = [name for name, board in boards.items() if headline_cells(board)]
        # A board that cannot order metrics keeps no other from being asked.
        ordering = [name for name in able if not _too_few(boards[name])]
        own = [name for name in ordering if boards[name].card.family == card.family]
        return tuple(Part(name, "") for name in own or ordering or able)
    return tuple(
        Part(name, key)
        for name, board in boards.items()
        for key in board.skills()
        if _same(card, skill, board.card, key)
    )


def evidence_of(view: View, part: Part) -> Mapping[str, tuple[Evidence, str]]:
    """Entry id to what a board says of it, and why it is kept from ranking there (else empty)."""
    board = view.boards[part.benchmark]
    skill = part.key or None
    if skill is None:
        cells = headline_cells(board)
    else:
        cells = board.cells(nearest(board.card.headline, board.selectors(skill), board.card), skill)
    if all(cell.tier is None for cell in cells) and any(cell.rank is not None for cell in cells):
        cells = in_tiers(view.orders.ranked(board.card, [cells])).cells
    return {cell.entry_id: (_evidence(board.card, cell), cell.distrust) for cell in cells}


def _same(card: Card, skill: str, other: Card, key: str) -> bool:
    if card.family == other.family and skill == key:
        return True
    common = common_key(card, skill)
    return common is not None and common == common_key(other, key)


def _too_few(board: BoardIndex) -> str:
    return too_few(headline_cells(board), board.card.cluster)


def _evidence(card: Card, cell: Cell) -> Evidence:
    chance = chance_of(card, cell.measure)
    return Evidence(
        benchmark=card.name,
        skill=cell.skill,
        measure=cell.measure,
        value=cell.value,
        ci_low=cell.ci_low,
        ci_high=cell.ci_high,
        tier=cell.tier if _ordered(cell) else None,
        chance=chance,
        speaks=_speaks(cell, chance, rises=card.higher_is_better(cell.measure)),
        too_few=too_few([cell], card.cluster),
    )


def _speaks(cell: Cell, chance: float | None, *, rises: bool) -> str:
    if chance is None or not cell.orderable:
        return UNDECIDED
    ends = cell.ci_low, cell.ci_high
    if is_at_or_below_chance(*ends, chance, higher_is_better=rises):
        return AGAINST
    above = beats_chance(*ends, chance, higher_is_better=rises)
    if above and cell.tier == 1 and _ordered(cell):
        return FOR
    return UNDECIDED


def _ordered(cell: Cell) -> bool:
    return cell.rank is not None and cell.orderable
