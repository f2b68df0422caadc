"""Overview of a run before, during and after it, for people at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from evaluator.generation.check import GenerationsReport
from evaluator.generation.estimate import readable
from evaluator.generation.settings import Dtype
from evaluator.scoring.progress import Progress as Moment

if TYPE_CHECKING:
    from evaluator.generation.request import Summary

MOST_PROBLEMS = 20
_NAMED = 6


@contextmanager
def bar(title: str, console: Console) -> Iterator[Callable[[Moment], None]]:
    """Show a bar while inside; gives its listener."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(title, total=None, rate="")

        def listen(now: Moment) -> None:
            bars.update(task, completed=now.done, total=now.total, rate=_rate(now.rate))

        yield listen


def _rate(per_second: float) -> str:
    if not per_second:
        return "first batch"
    if per_second >= 1:
        return f"{per_second:.1f} images/s"
    return f"{1 / per_second:.1f} s/image"


def facts_table(facts: Mapping[str, Any]) -> Table:
    """What `Outline.facts` says, as a table."""
    source = f"{facts['benchmark']} {facts['benchmark_revision'] or ''}".strip()
    room = facts["bytes"]
    lines = {
        "model": f"{facts['model']} {facts['revision']}".strip(),
        "pipeline": facts["pipeline"],
        "recipe": f"{facts['recipe'] or 'none'} ({facts['source']})",
        "prompts": f"{facts['prompts']} of {source if facts['benchmark'] else 'a file'}",
        "seeds": ", ".join(map(str, facts["seeds"])),
        "images": f"{facts['images']}, of which {facts['finished']} are there",
        "room": "not known" if room is None else f"about {readable(room)}",
        **{name: str(value) for name, value in facts["arguments"].items()},
    }
    table = Table("what", "value", show_header=False, title="Generation")
    for name, value in lines.items():
        table.add_row(Text(name), Text(value))
    return table


def summary_lines(summary: Summary, dtype: Dtype) -> Iterator[str]:
    """What a run did; `dtype` is the precision it drew with."""
    kept = summary.wanted - summary.drawn
    yield f"Drew {summary.drawn} images" + (f"; {kept} were there." if kept else ".")
    if summary.damaged:
        yield f"{summary.damaged} files were missing or damaged and were drawn again."
    if summary.shrunk:
        yield f"Memory allowed {summary.batch_size} images at a time."
    if summary.truncated:
        yield truncation_line(summary.truncated)
    if summary.withheld:
        yield withheld_line(summary.withheld, dtype)
    if summary.mixed_versions:
        yield "Some images were drawn with other versions of the libraries; rows name them."


def truncation_line(prompt_ids: Sequence[str]) -> str:
    """Which prompts were not read to their end."""
    named = ", ".join(prompt_ids[:_NAMED])
    more = f" and {len(prompt_ids) - _NAMED} more" if len(prompt_ids) > _NAMED else ""
    return (
        f"Prompts longer than a text encoder reads: {len(prompt_ids)} ({named}{more}); the column "
        "cut_by says which encoder."
    )


def withheld_line(withheld: Mapping[str, int], dtype: Dtype) -> str:
    """Which images are not there, and what can be done."""
    reasons = {
        "nsfw": "blackened by the model's safety checker (--safety-checker off takes it away)",
        "black": "black in every pixel"
        + (", as when half precision overflows (--dtype float32)" if dtype == "float16" else ""),
    }
    parts = [f"{count} {reasons.get(problem, problem)}" for problem, count in withheld.items()]
    return f"Images withheld: {'; '.join(parts)}. Their rows say so; they count as not given."


def report_lines(report: GenerationsReport) -> Iterator[str]:
    """What a check found."""
    if report.complete:
        withheld = f", {report.n_withheld} withheld" if report.withheld else ""
        yield f"Checked: {report.usable} of {report.wanted} images are right{withheld}."
        return
    counts = ", ".join(f"{count} {kind}" for kind, count in report.counts.items())
    yield f"Checked: {report.usable} of {report.wanted} images are right; {counts}:"
    for problem in report.problems[:MOST_PROBLEMS]:
        yield f"  {problem.kind}: {problem.where}: {problem.message}"
    left = sum(report.counts.values()) - MOST_PROBLEMS
    if left > 0:
        yield f"  and {left} more."
