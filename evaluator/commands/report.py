"""`report`: everything published about a submission, and the same computed again from its scores."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.console import RenderableType
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.rows import Row
from benchmarks.schema import Benchmark
from benchmarks.scores import parse_scores
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console
from evaluator.commands.meta import report as measures
from evaluator.commands.status import (
    status_table,
    visible_old_results,
    visible_results,
    visible_status,
)
from evaluator.worker.handoff import stored_margins
from leaderboard.ledger.editions import Edition, is_current
from leaderboard.ledger.private_records import results_folder
from leaderboard.publication.entries import RankCount, count_ranked
from leaderboard.publication.results import DECIMALS
from leaderboard.publication.snapshot import Board, Snapshot, read_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.records import Kind, RunResult, Status, Submission
from leaderboard.store.interface import NotFoundError, Store
from leaderboard.text import duration, usd


def report(
    submission_id: Annotated[str, typer.Argument(help="Submission.")],
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Only this benchmark; repeatable.")
    ] = None,
    skills: Annotated[bool, typer.Option(help="Show skills too, not only the whole.")] = False,
    recompute: Annotated[
        bool,
        typer.Option("--recompute", help="Compute every row again from the published scores."),
    ] = False,
    revision: Annotated[
        str, typer.Option(help="Its old results of this revision of a benchmark, or tag.")
    ] = "",
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print all results of a submission: measures, ranks, trust checks, cost, what it ran in.

    With `--recompute`, rows that do not come out as published end the command with exit code 3.

    Example: python -m evaluator report my-metric-0123456789 --recompute
    """
    if revision and recompute:
        raise typer.BadParameter("old results are not computed again: leave --revision out")
    opened = store.existing()
    status = visible_status(opened, submission_id)
    found = (
        visible_old_results(opened, submission_id, revision)
        if revision
        else visible_results(opened, submission_id)
    )
    results = _chosen(found, benchmark or [], status)
    again = [recomputed(opened, status, one, load_registry(), data) for one in results if recompute]
    if as_json:
        typer.echo(json.dumps(_record(status, results, again), indent=1))
    else:
        _print(opened, status, results, skills=skills)
        for each in again:
            console().print(Text(each.sentence))
    if not all(each.same for each in again):
        raise typer.Exit(3)


def _chosen(
    results: Sequence[RunResult], wanted: Sequence[str], status: Status
) -> tuple[RunResult, ...]:
    """Those that were asked for."""
    submission_id = status.submission.submission_id
    if not results:
        raise SubmitterError(
            "no_results",
            f"{submission_id} has no results; it is {status.state}.",
            f"Follow it with: python -m evaluator status {submission_id} --follow",
        )
    known = [result.benchmark for result in results]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SubmitterError(
            "unknown_benchmark",
            f"{submission_id} was not run on {', '.join(unknown)}.",
            f"It was run on: {', '.join(known)}.",
        )
    return tuple(result for result in results if not wanted or result.benchmark in wanted)


def _record(
    status: Status, results: Sequence[RunResult], again: Sequence[Recomputed]
) -> dict[str, Any]:
    """All of it, for programs."""
    return {
        "status": status.model_dump(mode="json"),
        "results": [result.model_dump(mode="json") for result in results],
        "recomputed": [each.to_json() for each in again],
    }


def _print(opened: Store, status: Status, results: Sequence[RunResult], *, skills: bool) -> None:
    out = console()
    out.print(status_table([status], opened.clock()))
    # Set in, so that no line of a stranger's can pass for one of ours.
    for line in status.submission.description.splitlines():
        out.print(Text(f"    {line}"))
    for block in _blocks(opened, status, results, out.width, skills=skills):
        out.print(block)


def _blocks(
    opened: Store, status: Status, results: Sequence[RunResult], width: int, *, skills: bool
) -> Iterator[RenderableType]:
    snapshot = read_snapshot(opened.public)
    for result in results:
        yield Text(f"\n{result.benchmark} (revision {result.revision})", style="bold")
        rows = [row for row in result.as_rows() if skills or row.skill is None]
        yield from measures(rows, width)
        board = snapshot.boards.get(result.benchmark) if snapshot is not None else None
        shown = board is not None and is_current(result, board.card)
        if snapshot is not None and shown and status.on_boards:
            yield from map(Text, standing_lines(snapshot, status.submission, result.benchmark))
        yield from map(Text, about_run(result))


_MIB = 1024 * 1024


def standing_lines(snapshot: Snapshot, submission: Submission, benchmark: str) -> Iterator[str]:
    """Rank and rank range by headline measure, as the board shows them."""
    board = snapshot.boards.get(benchmark)
    if board is None:
        return
    for metric in submission.metrics:
        entry_id = f"{submission.submission_id}/{metric}"
        for cell in _headlines(board, entry_id):
            among = count_ranked(board.slice(cell.selector, None), snapshot.entries)
            yield f"{metric}, {_of_what(cell)}: {_rank(cell, among)}"


def about_run(result: RunResult) -> Iterator[str]:
    """Isolation, trust checks, cost and findings of a run."""
    yield f"Ran in: {', '.join(result.isolation)}."
    for name, report in _each(result, result.trust_of):
        yield f"{name}Trust checks: {report.why_not or 'nothing keeps it from ranking'}."
    if result.same_scores_as:
        yield f"Exactly the scores of {', '.join(result.same_scores_as)}."
    if (cost := result.cost) is not None:
        memory = (
            f", peak {cost.peak_memory_bytes / _MIB:,.0f} MiB" if cost.peak_memory_bytes else ""
        )
        paid = cost.usd_per_1000_pairs
        price = "" if paid is None else f"; {usd(paid)} USD per 1,000 pairs"
        yield (
            f"Cost: {duration(cost.seconds)} in the scorer for {cost.pairs:,} pairs of "
            f"{cost.images:,} images ({cost.pairs_per_s:,.1f} pairs/s{memory}{price})."
        )
    for name, findings in _each(result, result.findings_of):
        why = ", ".join(f"{n} {code}" for code, n in sorted(findings.unscored.items()))
        scored = f"{findings.scored:,} of {findings.pairs:,} pairs"
        yield f"{name}Scored {scored}{f' ({why})' if why else ''}."
    versions = ", ".join(f"{name} {number}" for name, number in sorted(result.versions.items()))
    yield f"Seed {result.resampling_seed}, {result.n_resamples} resamples; {versions}."


T = TypeVar("T")


def _each(result: RunResult, of: Callable[[str], T | None]) -> Iterator[tuple[str, T]]:
    """Of each output, with its name before it; without a name where there is one."""
    for metric in result.outputs or ("",):
        if (found := of(metric)) is not None:
            yield f"{metric}: " if metric else "", found


def _headlines(board: Board, entry_id: str) -> Iterator[Cell]:
    for cell in board.cells:
        of_entry = cell.entry_id == entry_id and cell.skill is None
        if of_entry and cell.selector == board.card.headline:
            yield cell


def _of_what(cell: Cell) -> str:
    parts = (cell.measure, cell.variant, cell.split, cell.facet)
    return " ".join(part for part in parts if part)


def _rank(cell: Cell, among: RankCount) -> str:
    if cell.rank is None:
        return "no rank"
    where = f"rank {cell.rank} of {among}"
    if cell.rank_low is None or cell.rank_high is None:
        return where
    return f"{where}, rank range {cell.rank_low} to {cell.rank_high}"


TOLERANCE = 1e-9
"""Relative; of sums of floats in another order on another machine."""
_VALUES = ("value", "ci_low", "ci_high", "n_items", "n_clusters", "n_missing")
_IDENTITY = ("metric", "measure", "variant", "split", "facet", "skill")


@dataclass(frozen=True)
class Recomputed:
    """What came out of computing the rows of a run again."""

    benchmark: str  # of the run
    rows: int  # how many were published
    different: tuple[str, ...] = ()  # those that came out otherwise, in words
    why_not: str = ""  # why they could not be computed again; empty where they could

    @property
    def same(self) -> bool:
        """Whether nothing contradicts what is published."""
        return not self.different

    @property
    def sentence(self) -> str:
        """A sentence for the reader."""
        if self.why_not:
            return f"{self.benchmark}: not computed again: {self.why_not}"
        if self.same:
            return f"{self.benchmark}: all {self.rows} rows come out as published."
        shown = "; ".join(self.different[:5])
        return (
            f"{self.benchmark}: {len(self.different)} of {self.rows} rows come out otherwise: "
            f"{shown}."
        )

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "benchmark": self.benchmark,
            "rows": self.rows,
            "same": self.same and not self.why_not,
            "different": list(self.different),
            "why_not": self.why_not,
        }


def recomputed(
    store: Store,
    status: Status,
    result: RunResult,
    registry: Mapping[str, Benchmark],
    data: Path | None,
) -> Recomputed:
    """Compute the rows of a run again from the scores that are stored with it."""
    n_rows = len(result.rows)

    def not_done(why: str) -> Recomputed:
        return Recomputed(result.benchmark, n_rows, why_not=why)

    benchmark = registry.get(result.benchmark)
    if benchmark is None:
        return not_done("this installation does not know the benchmark.")
    made, here = Edition.of_result(result), Edition.of_card(benchmark.card)
    if (made.revision, made.protocol) != (here.revision, here.protocol):
        return not_done(f"it was judged on {made.label}, and {here.label} is here.")
    if not benchmark.has_answers(data):
        return not_done("the benchmark's data is not here; name its folder with --data.")
    found = _scores(store, status.submission, result, benchmark)
    if found is None:
        return not_done("its scores are not in this store.")
    answers = benchmark.answers(data)
    table = parse_scores(
        found.content,
        found.name,
        benchmark,
        answers,
        metric=status.submission.name,
        lower_is_better=status.submission.lower_is_better,
    )
    table = replace(table, margins=stored_margins(store, status.submission, benchmark))
    tolerance = TOLERANCE if benchmark.card.answers_public else 10.0**-DECIMALS
    return compared(result, benchmark.evaluate(table, answers).rows, tolerance)


def compared(result: RunResult, again: Sequence[Row], tolerance: float = TOLERANCE) -> Recomputed:
    """What is published against what came out."""
    found = {_key(row.to_json()): row.to_json() for row in again}
    different = []
    for row in result.rows:
        other = found.pop(_key(row), None)
        if other is None:
            different.append(f"{_name(row)} does not come out at all")
            continue
        for field in _VALUES:
            if not _equal(row.get(field), other.get(field), tolerance):
                different.append(f"{_name(row)}: {field} {row.get(field)} is {other.get(field)}")
                break
    different += [f"{_name(row)} is not published" for row in found.values()]
    return Recomputed(result.benchmark, len(result.rows), tuple(different))


class _Scores(NamedTuple):
    content: bytes
    name: str
    """Tells its format."""


def _scores(
    store: Store, submission: Submission, result: RunResult, benchmark: Benchmark
) -> _Scores | None:
    name = f"{result.benchmark}.scores.parquet"
    places = [
        (store.public, f"results/{result.submission_id}/{name}"),
        (store.private, f"results/{result.submission_id}/{name}"),
        (store.private, f"{results_folder(result.submission_id)}{name}"),
    ]
    own_formats = type(benchmark).parse_special is not Benchmark.parse_special
    if own_formats and submission.kind is Kind.SCORES:
        # The upload may hold more than scores, for example masks, which no table has.
        places = [(store.private, submission.archive)]
    for repository, path in places:
        try:
            return _Scores(repository.read(path), PurePosixPath(path).name)
        except NotFoundError:
            continue
    return None


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(field) for field in _IDENTITY)


def _name(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[field]) for field in _IDENTITY if row.get(field))


def _equal(one: float | None, other: float | None, tolerance: float) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=tolerance)
