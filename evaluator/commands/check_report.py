"""Report of `check`: for people, problems by place, then the findings of the dry run; for programs.

File names, messages and logs are those of an untrusted user: all of them are plain `Text` without
control characters, never markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import shortened
from benchmarks.errors import SubmitterError
from benchmarks.pooled import MAX_MISSING
from benchmarks.problems import ProblemKind
from benchmarks.rows import Row
from evaluator.commands.common import table
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import MIB, Limits
from evaluator.isolation.session import one_line
from evaluator.submission.costs import LARGE_SIDE, MEDIUM_SIDE, Costs, Projection
from evaluator.submission.dry_run import BenchmarkRun, DryRun, Expectation
from leaderboard.records import Receipt
from leaderboard.submission_service import ValidationReport
from leaderboard.text import duration
from leaderboard.trust import TITLES, TrustReport
from leaderboard.views.controls import (
    CHANGE_WORDS,
    change_rows,
    content_sentence,
    prompt_figures,
    prompt_sentence,
)


@dataclass(frozen=True)
class Verdict:
    """What a dry run comes to."""

    good: bool  # it ran to its end and may rank on all that it was asked
    said: str  # in a sentence
    remarks: tuple[str, ...] = ()  # what is to be known of scores that do not stand in the way


ENDS = 3
"""Pairs that are shown from either end."""
LOG_LINES = 20
_PROMPT = 60
_LOG_LINE = 500


def safe(text: str) -> Text:
    """A stranger's words on one line."""
    return Text(shortened(one_line(text.encode(errors="replace"))))


def problem_lines(kinds: Sequence[ProblemKind]) -> Iterator[Text]:
    """Each kind as compilers print it, with its first example; what to do below it."""
    for kind in kinds:
        yield safe(f"{kind.sentence} [{kind.code}]")
        if kind.hint:
            yield Text("    ").append_text(safe(kind.hint))


def verdict_line(seen: ValidationReport) -> Text:
    """How much is wrong in all."""
    n, kinds = seen.n_problems, len(seen.kinds)
    of = f" of {kinds} kinds" if 1 < kinds < n else ""
    return Text(f"{n:,} problem{'s' if n > 1 else ''}{of}.", style="bold red")


def plan_lines(seen: ValidationReport) -> Iterator[Text]:
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


def examined_lines(seen: ValidationReport) -> Iterator[Text]:
    """What was looked at, and what its author should read of it."""
    size = f"{seen.n_bytes / 1e6:.1f} MB" if seen.n_bytes >= 1e5 else f"{seen.n_bytes} bytes"
    yield safe(
        f"{seen.name} {seen.version}: {seen.files} files, {size}, "
        f"content {seen.content_sha256[:12]}."
    )
    for note in seen.notes:
        yield safe(note)


def found_blocks(found: DryRun, expected: Expectation, limits: Limits) -> Iterator[RenderableType]:
    """Everything a dry run found, in the order in which its author reads it."""
    yield Text(f"Isolated by: {', '.join(found.layers)}.")
    if found.runs:
        yield _scores_table(found.runs)
        yield from _findings(found.runs)
        yield _measures_table(found.runs)
        for metric in found.reports:
            yield _ends_table(found.runs, metric, _of(metric, found))
    for metric, report in found.reports.items():
        yield from trust_blocks(report, _of(metric, found))
    if found.start_s is not None:
        yield from resources(found, limits)
    if found.costs is not None:
        yield costs_table(found.costs, found.capabilities)
        yield from projection_blocks(expected, limits)


def _of(metric: str, found: DryRun) -> str:
    """What a heading says of whose figures follow; nothing where there is one metric."""
    return f" of {metric}" if len(found.reports) > 1 else ""


def _columns(runs: Sequence[BenchmarkRun]) -> list[tuple[str, BenchmarkRun, str]]:
    """Every metric on every benchmark: both in words, the run and the metric."""
    return [(_on(run, metric), run, metric) for run in runs for metric in run.scores]


def _on(run: BenchmarkRun, metric: str) -> str:
    """The benchmark, and the metric where the module has several."""
    return f"{run.drawn.name}: {metric}" if run.scored.outputs else run.drawn.name


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


def trust_blocks(report: TrustReport, of: str = "") -> Iterator[RenderableType]:
    """The checks that a metric must pass before it may rank."""
    rows = []
    for one in report.checks:
        share = _share(100 * one.largest / report.spread) if report.spread else "–"
        lost = f", {one.n_lost} scores come or go" if one.n_lost else ""
        rows.append((TITLES[one.name], one.verdict + lost, f"{one.largest:.3g}", share))
    yield table(
        ("the same asked again", "verdict", "largest change", "of the spread"), rows, f"Trust{of}"
    )
    yield from control_blocks(report, of)


def control_blocks(report: TrustReport, of: str = "") -> Iterator[RenderableType]:
    """What the score is about; nothing in reports that are older than the controls."""
    if report.prompt is not None:
        figures = prompt_figures(report.prompt)
        if figures:
            yield table(("is it about the prompt?", "found"), figures, f"Prompt{of}")
        yield Text(prompt_sentence(report.prompt))
    if report.content is not None:
        rows = [(one.done, one.effect, one.interval, CHANGE_WORDS[one.verdict], one.scored)
                for one in change_rows(report.content)]  # fmt: skip
        if rows:
            heads = ("is it about something else?", "effect", "interval", "verdict", "images")
            yield table(heads, rows, f"Changes that leave the content{of}")
        yield Text(content_sentence(report.content))


def _scores_table(runs: Sequence[BenchmarkRun]) -> Table:
    heads = ("benchmark", "pairs", "of", "lowest", "median", "highest", "missing", "time")
    rows = [
        (
            name,
            str(run.drawn.n_pairs),
            str(run.drawn.n_pairs_whole),
            *map(_number, (scores.min(), _median(scores), scores.max())),
            str(int(scores.isna().sum())),
            duration(run.seconds),
        )
        for name, run, metric in _columns(runs)
        for scores in (run.scores[metric],)
    ]
    return table(heads, rows, "Scores")


def _median(scores: pd.Series) -> float:
    """Of the two middle scores each is halved, since their sum may be no double."""
    return float(2.0 * (scores / 2.0).median())


def _findings(runs: Sequence[BenchmarkRun]) -> Iterator[Text]:
    for whose, run, metric in _columns(runs):
        found = run.scored.findings_of(metric)
        if found is None or not found.counts:
            continue
        counts = ", ".join(f"{n} {code}" for code, n in found.counts.items())
        example = found.examples[0] if found.examples else None
        said = (
            f" For example {example.item} {example.item_id}: {example.message}" if example else ""
        )
        yield safe(f"{whose}: {counts}.{said}")


def _measures_table(runs: Sequence[BenchmarkRun]) -> Table:
    rows = []
    for run in runs:
        card = run.drawn.card
        for row in headline_rows(run):
            info = card.measures.get(row.measure)
            chance = "–" if info is None or info.chance is None else f"{info.chance:g}"
            names = (info.title if info else row.measure, row.split, row.facet)
            measure = " · ".join(name for name in names if name)
            rows.append((_on(run, row.metric), measure, _number(row.value), _interval(row), chance))
    return table(("benchmark", "measure", "value", "95 % interval", "chance"), rows, "Measures")


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


def _ends_table(runs: Sequence[BenchmarkRun], metric: str, of: str) -> Table:
    """The pairs with the highest and lowest scores of all that was asked."""
    shown = table(("score", "benchmark", "pair", "prompt"), (), f"Highest and lowest scores{of}")
    own = {run.drawn.name: run.scores[metric] for run in runs if metric in run.scores}
    scores = pd.concat(own).dropna().sort_values()
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
            shown.add_row(
                _number(value), Text(benchmark), Text(pair), Text(_cut(prompts[benchmark, pair]))
            )
        if place == 0:
            shown.add_section()
    return shown


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


_FITS = {"yes": "fits", "perhaps": "may be too slow", "no": "too slow", None: "not known"}


def resources(found: DryRun, limits: Limits) -> Iterator[Text]:
    """What it needs until it is ready, and of memory."""
    memory = f"{found.peak_memory_bytes / MIB:,.0f} MiB"
    yield Text(
        f"Ready after {found.start_s:.1f} s (a worker waits {limits.start_s:g} s); held "
        f"{memory} at most (a worker gives {limits.memory_bytes / MIB:,.0f} MiB)."
    )


def costs_table(costs: Costs, can: Capability) -> Table:
    """Milliseconds of each kind of work."""
    sides = (costs.small_side, MEDIUM_SIDE, LARGE_SIDE)
    names = {"image": "image"}
    if Capability.ENCODE in can:
        names["text"] = "text"
    names["pair"] = "pair"
    if Capability.SCORE_ELEMENTS in can:
        names["elements"] = "elements of a pair"
    rates = (costs.small[0], costs.medium, costs.large)
    rows = [
        (name, *(_milliseconds(getattr(one, field)) for one in rates))
        for field, name in names.items()
    ]
    heads = ("one more", *(f"{side} px" for side in sides))
    return table(heads, rows, f"Time on this machine, asked by {way(can)}")


def way(can: Capability) -> str:
    """How a scorer is asked, by what it can do."""
    if Capability.ENCODE in can:
        return "encode_images, encode_texts and similarity"
    return "score_texts" if Capability.SCORE_TEXTS in can else "score"


def projection_blocks(expected: Expectation, limits: Limits) -> Iterator[RenderableType]:
    """The time that every benchmark would take on a machine like this."""
    rows = []
    for one in expected.later:
        name = f"{one.benchmark} *" if one.wanted else one.benchmark
        if one.size is None or one.low_s is None or one.high_s is None:
            why = "neither data here nor counts in its card"
            rows.append((name, "–", "–", "unknown", "–", why))
            continue
        source = "from the card" if one.size.from_card else "of the data"
        images, pairs = _span(one.size.images), _span(one.size.pairs)
        time = time_span(one.low_s, one.high_s)
        rows.append((name, images, pairs, time, _FITS[one.fits], source))
    heads = ("benchmark", "images", "pairs", "time", "limit", "counts")
    yield table(heads, rows, "Time on each benchmark")
    yield Text(
        "* it would be run on these as it stands. Times are for a machine like this one, as busy as "
        f"now, and pictures of {MEDIUM_SIDE} to {LARGE_SIDE} px, those of the demo for their own "
        "size: from the scorer alone to scorer, reading and measures one after the other."
    )
    here = [one for one in expected.later if one.wanted and one.low_s is not None]
    low = expected.once_s[0] + sum(one.low_s or 0.0 for one in here)
    high = expected.once_s[1] + sum(one.high_s or 0.0 for one in here)
    yield Text(
        f"All of these, with start and trust checks: {time_span(low, high)}; a worker gives a submission "
        f"{duration(limits.job_s)}."
    )


def time_span(low: float, high: float) -> str:
    """Two durations, or one where they read the same."""
    ends = duration(low), duration(high)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} – {ends[1]}"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"


def _span(ends: tuple[int, int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} – {ends[1]:,}"


def found_record(
    seen: ValidationReport,
    found: DryRun,
    verdict: Verdict,
    later: Sequence[Projection],
    receipt: Receipt | None,
) -> dict[str, Any]:
    """All that a dry run found."""
    failure = found.failure
    return {
        **asdict(seen),
        "may_rank": verdict.good,
        "verdict": verdict.said,
        "remarks": list(verdict.remarks),
        "isolation": list(found.layers),
        "error": failure
        and {"code": failure.code, "message": failure.message, "hint": failure.hint},
        "log": found.log.splitlines()[-LOG_LINES:],
        "start_s": found.start_s,
        "can": [one.name.lower() for one in found.capabilities if one.name],
        "peak_memory_bytes": found.peak_memory_bytes,
        "runs": [_run(run, metric) for run in found.runs for metric in run.scores],
        "trust": found.trust.model_dump(mode="json") if found.trust else None,
        "trust_of_outputs": {
            metric: report.model_dump(mode="json")
            for metric, report in found.reports.items()
            if found.trust is None
        },
        "costs": asdict(found.costs) if found.costs else None,
        "projections": [asdict(one) for one in later],
        "receipt": receipt.model_dump(mode="json") if receipt else None,
    }


def _run(run: BenchmarkRun, metric: str) -> dict[str, Any]:
    scores, findings = run.scores[metric], run.scored.findings_of(metric)
    known = scores.dropna()
    return {
        "benchmark": run.drawn.name,
        "metric": metric,
        "pairs": run.drawn.n_pairs,
        "of": run.drawn.n_pairs_whole,
        "missing": int(scores.isna().sum()),
        "lowest": float(known.min()) if len(known) else None,
        "median": _median(known) if len(known) else None,
        "highest": float(known.max()) if len(known) else None,
        "findings": findings.model_dump(mode="json") if findings else None,
        "seconds": run.seconds,
        "testing_s": run.testing_s,
        "asking_s": run.asking_s,
        "measuring_s": run.measuring_s,
        "headline": [row.to_json() for row in headline_rows(run) if row.metric == metric],
        "rows": [row.to_json() for row in run.rows if row.metric == metric],
    }


BLIND_REMARK = "It would be marked as blind to the prompt, and judge no model."
MOVED_REMARK = "It would be marked as moved by changes that leave the content."

Bounds = Mapping[str, tuple[float, float] | None]
"""Metric to the range that its manifest states; None where it states none."""


def verdict_of(found: DryRun, bounds: Bounds | None = None) -> Verdict:
    """The verdict on a dry run; of several outputs each has its own remarks and reasons."""
    if found.failure is not None or not found.reports:
        return Verdict(False, "It failed, and would fail in a worker: nothing would be scored.")
    remarks: list[str] = []
    against: list[str] = []
    for metric, report in found.reports.items():
        name = f"{metric}: " if len(found.reports) > 1 else ""
        scores = {run.drawn.name: run.scores[metric] for run in found.runs if metric in run.scores}
        own = (
            *_all_the_same(scores),
            *_out_of_bounds(scores, (bounds or {}).get(metric)),
            *((BLIND_REMARK,) if report.blind else ()),
            *((MOVED_REMARK,) if report.moved_by_changes else ()),
        )
        remarks += [f"{name}{remark}" for remark in own]
        reasons = [report.why_not] if report.why_not else []
        reasons += [said for one in scores.items() if (said := _missing(*one))]
        against += [f"{name}{reason}" for reason in reasons]
    if against:
        return Verdict(False, f"Would not rank: {'; '.join(against)}.", tuple(remarks))
    return Verdict(True, "Passed every trust check: it may rank.", tuple(remarks))


def _missing(benchmark: str, scores: pd.Series[float]) -> str:
    """Why too few pairs of a benchmark have scores; empty where they are enough."""
    missing = float(scores.isna().mean())
    if missing <= MAX_MISSING:
        return ""
    return (
        f"{100 * missing:.0f} % of the scores on {benchmark} are missing, and a ranking "
        f"takes at most {100 * MAX_MISSING:g} %"
    )


def _all_the_same(scores: Mapping[str, pd.Series[float]]) -> tuple[str, ...]:
    same = [name for name, column in scores.items() if column.nunique() == 1]
    if not same:
        return ()
    return (f"Every score on {', '.join(same)} is the same: it tells no image from another.",)


def _out_of_bounds(
    scores: Mapping[str, pd.Series[float]], bounds: tuple[float, float] | None
) -> tuple[str, ...]:
    if bounds is None:
        return ()
    low, high = bounds
    outside = sum(int(((one < low) | (one > high)).sum()) for one in scores.values())
    if not outside:
        return ()
    asked = sum(map(len, scores.values()))
    return (
        f"{outside} of {asked} scores lie outside the range {low:g} to {high:g} that assay.toml "
        "states: correct it, or leave it out.",
    )
