"""Report of `check` for people: problems by place, then the findings of the dry run.

File names, messages and logs are a stranger's: all of them are plain `Text` without control
characters, never markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.errors import SubmitterError
from benchmarks.problems import ProblemKind
from benchmarks.rows import Row
from evaluator.commands.check_times import costs_table, projection_blocks, resources
from evaluator.commands.check_verdict import Verdict
from evaluator.commands.shown import duration
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.text import one_line
from evaluator.submission.checking.dry_run import BenchmarkRun, DryRun
from evaluator.submission.checking.expected import Expectation
from leaderboard.desk import Examination
from leaderboard.trust import TITLES, TrustReport

ENDS = 3
"""Pairs that are shown from either end."""
LOG_LINES = 20
_PROMPT = 60
_LOG_LINE = 500


def safe(text: str) -> Text:
    """A stranger's words on one line."""
    return Text(one_line(text.encode(errors="replace")))


def problem_lines(kinds: Sequence[ProblemKind]) -> Iterator[Text]:
    """Each kind as compilers print it, with its first example; what to do below it."""
    for kind in kinds:
        yield safe(f"{kind.sentence} [{kind.code}]")
        if kind.hint:
            yield Text("    ").append_text(safe(kind.hint))


def verdict_line(seen: Examination) -> Text:
    """How much is wrong in all."""
    n, kinds = seen.n_problems, len(seen.kinds)
    of = f" of {kinds} kinds" if 1 < kinds < n else ""
    return Text(f"{n:,} problem{'s' if n > 1 else ''}{of}.", style="bold red")


def plan_lines(seen: Examination) -> Iterator[Text]:
    """What a worker would do with it."""
    if seen.plan is None:
        return
    for name in seen.benchmarks:
        pairs = seen.plan.pairs.get(name)
        yield safe(f"Enters {name}{f' with {pairs:,} pairs' if pairs else ''}.")
    for name, why in seen.plan.left_out.items():
        yield safe(f"Does not enter {name}: {why}.")
    if seen.plan.marks:
        yield safe(f"Marked: {'; '.join(seen.plan.marks)}.")


def examined_lines(seen: Examination) -> Iterator[Text]:
    """What was looked at, and what its author should read of it."""
    size = f"{seen.n_bytes / 1e6:.1f} MB" if seen.n_bytes >= 1e5 else f"{seen.n_bytes} bytes"
    yield safe(
        f"{seen.name} {seen.version}: {seen.files} files, {size}, "
        f"content {seen.content_sha256[:12]}."
    )
    for note in seen.notes:
        yield safe(note)


def found_blocks(found: DryRun, expected: Expectation, limits: Limits) -> Iterator[RenderableType]:
    """Everything a dry run found, in the order in which its author reads it.

    Args:
        found: by the dry run.
        expected: the time on every benchmark.
        limits: of a worker.
    """
    yield Text(f"Isolated by: {', '.join(found.layers)}.")
    if found.runs:
        yield _scores_table(found.runs)
        yield from _findings(found.runs)
        yield _measures_table(found.runs)
        yield _ends_table(found.runs)
    if found.trust is not None:
        yield from trust_blocks(found.trust)
    if found.start_s is not None:
        yield from resources(found, limits)
    if found.costs is not None:
        yield costs_table(found.costs, found.capabilities)
        yield from projection_blocks(expected, limits)


def closing_lines(found: DryRun, verdict: Verdict) -> Iterator[Text]:
    """What ended a dry run that failed, the end of what the module printed, and the verdict."""
    if found.failure is not None:
        yield from _failure_lines(found.failure)
    yield from log_lines(found.log)
    for remark in verdict.remarks:
        yield Text(remark)
    yield Text(verdict.said, style="green" if verdict.good else "bold red")


def _failure_lines(failure: SubmitterError) -> Iterator[Text]:
    yield Text("It failed: ", style="bold red").append_text(
        safe(f"{failure.message} [{failure.code}]")
    )
    if failure.hint:
        yield Text("    ").append_text(safe(failure.hint))


def log_lines(log: str) -> Iterator[Text]:
    """The end of what a module printed."""
    lines = log.splitlines()
    if not lines:
        return
    yield Text(f"The last of {len(lines)} lines it printed:" if lines[1:] else "It printed:")
    for line in lines[-LOG_LINES:]:
        yield Text(f"    | {_cut(line, _LOG_LINE)}")


def trust_blocks(report: TrustReport) -> Iterator[RenderableType]:
    """The checks that a metric must pass before it may rank."""
    table = Table(
        "the same asked again", "verdict", "largest change", "of the spread", title="Trust"
    )
    for one in report.checks:
        said = {True: "same", False: "differs", None: "measured"}[one.passed]
        share = _share(100 * one.largest / report.spread) if report.spread else "–"
        lost = f", {one.n_lost} scores come or go" if one.n_lost else ""
        table.add_row(TITLES[one.name], said + lost, f"{one.largest:.3g}", share)
    yield table


def _scores_table(runs: Sequence[BenchmarkRun]) -> Table:
    table = Table(
        "benchmark", "pairs", "of", "lowest", "median", "highest", "missing", "time", title="Scores"
    )
    for run in runs:
        scores = run.scores
        table.add_row(
            run.drawn.name,
            str(run.drawn.n_pairs),
            str(run.drawn.n_pairs_whole),
            *(_number(value) for value in (scores.min(), scores.median(), scores.max())),
            str(int(scores.isna().sum())),
            duration(run.seconds),
        )
    return table


def _findings(runs: Sequence[BenchmarkRun]) -> Iterator[Text]:
    for run in runs:
        found = run.scored.findings
        if found is None or not found.counts:
            continue
        counts = ", ".join(f"{n} {code}" for code, n in found.counts.items())
        example = found.examples[0] if found.examples else None
        said = (
            f" For example {example.item} {example.item_id}: {example.message}" if example else ""
        )
        yield safe(f"{run.drawn.name}: {counts}.{said}")


def _measures_table(runs: Sequence[BenchmarkRun]) -> Table:
    table = Table("benchmark", "measure", "value", "95 % interval", "a guess", title="Measures")
    for run in runs:
        card = run.drawn.card
        for row in headline_rows(run):
            info = card.measures.get(row.measure)
            chance = "–" if info is None or info.chance is None else f"{info.chance:g}"
            names = (info.title if info else row.measure, row.split, row.facet)
            table.add_row(
                run.drawn.name,
                " · ".join(name for name in names if name),
                _number(row.value),
                _interval(row),
                chance,
            )
    return table


def headline_rows(run: BenchmarkRun) -> list[Row]:
    """The rows that a board of this benchmark is ordered by, and their like that have a value."""
    variant = run.drawn.card.headline.variant
    return [
        row
        for row in run.rows
        if row.skill is None
        and row.variant == variant
        and (np.isfinite(row.value) or run.drawn.card.headline.matches(row))
    ]


def _ends_table(runs: Sequence[BenchmarkRun]) -> Table:
    """The pairs with the highest and lowest scores of all that was asked."""
    table = Table("score", "benchmark", "pair", "prompt", title="Highest and lowest scores")
    scores = pd.concat({run.drawn.name: run.scores for run in runs}).dropna().sort_values()
    prompts = {
        (run.drawn.name, pair.pair_id): run.drawn.questions(None).texts[pair.text_id]
        for run in runs
        for pair in run.drawn.questions(None).pairs
    }
    few = min(ENDS, len(scores) // 2)
    highest, lowest = scores.iloc[::-1].iloc[:few], scores.iloc[:few].iloc[::-1]
    for place, part in enumerate((highest, lowest)):
        for key, value in part.items():
            benchmark, pair = str(key[0]), str(key[1])  # type: ignore[index]
            table.add_row(_number(value), benchmark, pair, _cut(prompts[benchmark, pair]))
        if place == 0:
            table.add_section()
    return table


def _share(percent: float) -> str:
    return f"{percent:,.0f} %" if percent >= 10 else f"{percent:.2g} %"


def _interval(row: Row) -> str:
    if not np.isfinite([row.ci_low, row.ci_high]).all():
        return "–"
    return f"{row.ci_low:.3f} – {row.ci_high:.3f}"


def _number(value: object) -> str:
    number = float(value)  # type: ignore[arg-type]
    return "–" if np.isnan(number) else f"{number:.4g}"


def _cut(text: str, most: int = _PROMPT) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
