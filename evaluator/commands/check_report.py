"""What `check` tells people: problems by place, then what the dry run found.

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

from benchmarks.rows import Row
from evaluator.commands.shown import duration
from evaluator.isolation.frames import Capability
from evaluator.isolation.limits import MIB, Limits
from evaluator.isolation.text import one_line
from evaluator.submission.costs import LARGE_SIDE, MEDIUM_SIDE, Costs
from evaluator.submission.dry_run import BenchmarkRun, DryRun
from evaluator.submission.projection import Projection
from leaderboard.desk import Examination, Problem
from leaderboard.trust import TITLES, TrustReport

ENDS = 3
"""Pairs that are shown from either end."""
LOG_LINES = 20
_FITS = {"yes": "fits", "perhaps": "may be too slow", "no": "too slow", None: "not known"}
_PROMPT = 60


def safe(text: str) -> Text:
    """A stranger's words on one line."""
    return Text(one_line(text.encode(errors="replace")))


def problem_lines(problems: Sequence[Problem]) -> Iterator[Text]:
    """Each as compilers print it, its hint below."""
    for problem in problems:
        place = f"{problem.place}: " if problem.place else ""
        yield safe(f"{place}{problem.message} [{problem.code}]")
        if problem.hint:
            yield Text("    ").append_text(safe(problem.hint))


def examined_line(seen: Examination) -> Text:
    """What was looked at."""
    size = f"{seen.n_bytes / 1e6:.1f} MB" if seen.n_bytes >= 1e5 else f"{seen.n_bytes} bytes"
    return safe(
        f"{seen.name} {seen.version}: {seen.files} files, {size}, "
        f"content {seen.content_sha256[:12]}."
    )


def found_blocks(
    found: DryRun, later: Sequence[Projection], limits: Limits
) -> Iterator[RenderableType]:
    """Everything a dry run found, in the order in which its author reads it."""
    yield Text(f"Isolated by: {', '.join(found.layers)}.")
    if found.runs:
        yield _scores_table(found.runs)
        yield from _findings(found.runs)
        yield _measures_table(found.runs)
        yield _ends_table(found.runs)
    if found.trust is not None:
        yield from trust_blocks(found.trust)
    if found.start_s is not None:
        yield from _resources(found, limits)
    if found.costs is not None:
        yield costs_table(found.costs, found.capabilities)
        yield from projection_blocks(later, limits, found.start_s or 0.0)


def failure_lines(found: DryRun) -> Iterator[Text]:
    """What ended a dry run, and the end of what the module printed before."""
    if found.failure is None:
        return
    yield safe(f"{found.failure.message} [{found.failure.code}]").append("", style="red")
    if found.failure.hint:
        yield Text("    ").append_text(safe(found.failure.hint))
    yield from log_lines(found.log)


def log_lines(log: str) -> Iterator[Text]:
    """The end of what a module printed."""
    lines = log.splitlines()
    if not lines:
        return
    yield Text(f"The last of {len(lines)} lines it printed:" if lines[1:] else "It printed:")
    for line in lines[-LOG_LINES:]:
        yield Text(f"    | {line}")


def trust_blocks(report: TrustReport) -> Iterator[RenderableType]:
    """The checks that a metric must pass before it may rank."""
    table = Table(
        "the same asked again", "verdict", "largest change", "of the spread", title="Trust"
    )
    for one in report.checks:
        said = {True: "same", False: "differs", None: "measured"}[one.passed]
        share = f"{100 * one.largest / report.spread:.2g} %" if report.spread else "–"
        lost = f", {one.n_lost} scores come or go" if one.n_lost else ""
        table.add_row(TITLES[one.name], said + lost, f"{one.largest:.3g}", share)
    yield table
    if report.failed:
        yield Text(f"Would not rank: {report.why_not}.", style="bold red")
    else:
        yield Text("Passed every trust check: it may rank.", style="green")
    if report.spread == 0:
        yield Text("Every score it was tested on is the same: it tells no image from another.")


def costs_table(costs: Costs, can: Capability) -> Table:
    """Milliseconds of each kind of work."""
    table = Table(
        "one more",
        *(f"{side} px" for side in (costs.small_side, MEDIUM_SIDE, LARGE_SIDE)),
        title=f"Time on this machine, asked by {way(can)}",
    )
    names = {"image": "image"}
    if Capability.ENCODE in can:
        names["text"] = "text"
    names["pair"] = "pair"
    if Capability.SCORE_ELEMENTS in can:
        names["elements"] = "elements of a pair"
    for field, name in names.items():
        rates = (costs.small[0], costs.medium, costs.large)
        table.add_row(name, *(_milliseconds(getattr(one, field)) for one in rates))
    return table


def way(can: Capability) -> str:
    """How a scorer is asked, by what it can do."""
    if Capability.ENCODE in can:
        return "encode_images, encode_texts and similarity"
    return "score_texts" if Capability.SCORE_TEXTS in can else "score"


def projection_blocks(
    later: Sequence[Projection], limits: Limits, start_s: float
) -> Iterator[RenderableType]:
    """The time that every benchmark would take on a machine like this."""
    table = Table(
        "benchmark", "images", "pairs", "time", "limit", "counts", title="Time on each benchmark"
    )
    for one in later:
        name = f"{one.benchmark} *" if one.wanted else one.benchmark
        if one.size is None or one.low_s is None or one.high_s is None:
            table.add_row(
                name, "–", "–", "unknown", "–", "neither data here nor counts in its card"
            )
            continue
        source = "from the card" if one.size.from_card else "of the data"
        table.add_row(
            name,
            _span(one.size.images),
            _span(one.size.pairs),
            time_span(one.low_s, one.high_s),
            _FITS[one.fits],
            source,
        )
    yield table
    yield Text(
        "* it would be run on these as it stands. Times are for a machine like this one and "
        f"pictures of {MEDIUM_SIDE} to {LARGE_SIDE} px, those of the demo for their own size."
    )
    here = [one for one in later if one.wanted and one.low_s is not None]
    low = start_s + sum(one.low_s or 0.0 for one in here)
    high = start_s + sum(one.high_s or 0.0 for one in here)
    yield Text(
        f"All of these, with the start: {time_span(low, high)}; a worker gives a submission "
        f"{duration(limits.job_s)}."
    )


def time_span(low: float, high: float) -> str:
    """Two durations, or one where they read the same."""
    ends = duration(low), duration(high)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} – {ends[1]}"


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


def _resources(found: DryRun, limits: Limits) -> Iterator[Text]:
    memory = f"{found.peak_memory_bytes / MIB:,.0f} MiB"
    yield Text(
        f"Ready after {found.start_s:.1f} s (a worker waits {limits.start_s:g} s); held "
        f"{memory} at most (a worker gives {limits.memory_bytes / MIB:,.0f} MiB)."
    )


def _interval(row: Row) -> str:
    if not np.isfinite([row.ci_low, row.ci_high]).all():
        return "–"
    return f"{row.ci_low:.3f} – {row.ci_high:.3f}"


def _number(value: object) -> str:
    number = float(value)  # type: ignore[arg-type]
    return "–" if np.isnan(number) else f"{number:.4g}"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"


def _span(ends: tuple[int, int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} – {ends[1]:,}"


def _cut(text: str) -> str:
    return text if len(text) <= _PROMPT else f"{text[: _PROMPT - 1]}…"
