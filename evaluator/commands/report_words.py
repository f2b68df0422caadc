"""Texts of a report beside the measures: the submission's state, and its run."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.commands.shown import duration
from leaderboard.publication.snapshot import Board, Snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.records import RunResult, Submission

_MIB = 1024 * 1024


def standing_lines(snapshot: Snapshot, submission: Submission, benchmark: str) -> Iterator[str]:
    """Rank and rank range by headline measure, as the board shows them."""
    board = snapshot.boards.get(benchmark)
    if board is None:
        return
    for metric in submission.metrics:
        entry_id = f"{submission.submission_id}/{metric}"
        for cell in _headlines(board, entry_id):
            yield f"{metric}, {_of_what(cell)}: {_rank(cell, len(board.slice(cell.selector, None)))}"


def about_run(result: RunResult) -> Iterator[str]:
    """Isolation, trust checks, cost and findings of a run."""
    yield f"Ran in: {', '.join(result.isolation)}."
    if result.trust is not None:
        yield f"Trust checks: {result.trust.why_not or 'nothing keeps it from ranking'}."
    if result.same_scores_as:
        yield f"Exactly the scores of {', '.join(result.same_scores_as)}."
    if (cost := result.cost) is not None:
        memory = (
            f", peak {cost.peak_memory_bytes / _MIB:,.0f} MiB" if cost.peak_memory_bytes else ""
        )
        yield (
            f"Cost: {duration(cost.seconds)} in the scorer for {cost.pairs:,} pairs of "
            f"{cost.images:,} images ({cost.pairs_per_s:,.1f} pairs/s{memory})."
        )
    if (findings := result.findings) is not None:
        why = ", ".join(f"{n} {code}" for code, n in sorted(findings.unscored.items()))
        yield f"Scored {findings.scored:,} of {findings.pairs:,} pairs{f' ({why})' if why else ''}."
    versions = ", ".join(f"{name} {number}" for name, number in sorted(result.versions.items()))
    yield f"Seed {result.resampling_seed}, {result.n_resamples} resamples; {versions}."


def _headlines(board: Board, entry_id: str) -> Iterator[Cell]:
    for cell in board.cells:
        of_entry = cell.entry_id == entry_id and cell.skill is None
        if of_entry and cell.selector == board.card.headline:
            yield cell


def _of_what(cell: Cell) -> str:
    parts = (cell.measure, cell.variant, cell.split, cell.facet)
    return " ".join(part for part in parts if part)


def _rank(cell: Cell, n_entries: int) -> str:
    if cell.rank is None:
        return "no rank"
    where = f"rank {cell.rank} of {n_entries}"
    if cell.rank_low is None or cell.rank_high is None:
        return where
    return f"{where}, rank range {cell.rank_low} to {cell.rank_high}"
