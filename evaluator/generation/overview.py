"""Overview of a run before, during and after it, for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from evaluator.generation.check import GenerationsReport
from evaluator.generation.checkpoint import Checkpoint, own_size, pipeline_class
from evaluator.generation.folder import RunFolder, image_bytes
from evaluator.generation.grid import GridResult
from evaluator.generation.manifest import Dtype, ImageRow
from evaluator.generation.prompts import ChosenPrompts, all_jobs
from evaluator.generation.recipes import (
    CallArguments,
    Overrides,
    Recipe,
    call_arguments,
    find_recipe,
    load_recipes,
)
from leaderboard.text import size_words

if TYPE_CHECKING:
    from evaluator.generation.endpoint_run import EndpointRequest, EndpointSummary
    from evaluator.generation.run import Summary


@dataclass(frozen=True)
class Outline:
    """A run before its model is loaded."""

    checkpoint: Checkpoint
    pipeline: type[Any]  # class of diffusers
    recipe: Recipe | None  # None: the pipeline's own defaults
    overrides: Overrides
    prompts: ChosenPrompts
    seeds: tuple[int, ...]
    folder: RunFolder

    @classmethod
    def of(
        cls,
        checkpoint: Checkpoint,
        *,
        recipe: str | None,
        overrides: Overrides,
        prompts: ChosenPrompts,
        seeds: tuple[int, ...],
        folder: RunFolder,
    ) -> Outline:
        """Look up class and recipe."""
        found = pipeline_class(checkpoint)
        chosen = find_recipe(
            load_recipes(), model=checkpoint.name, pipeline=found.__name__, name=recipe
        )
        return cls(checkpoint, found, chosen, overrides, prompts, seeds, folder)

    def arguments(self, pipe: Any = None) -> CallArguments:
        """Of the pipeline's call."""
        size = own_size(self.checkpoint, pipe)
        return call_arguments(self.pipeline.__call__, self.recipe, self.overrides, size)

    def facts(self) -> Mapping[str, Any]:
        """For people and programs: what would be drawn, what is there, and the room it takes."""
        rows, arguments = self.folder.rows(), self.arguments()
        wanted = _wanted_facts(self.prompts, self.seeds, rows)
        each = image_bytes(self.folder, rows, arguments)
        return {
            "model": self.checkpoint.name,
            "revision": self.checkpoint.revision,
            "pipeline": self.pipeline.__name__,
            "recipe": self.recipe.name if self.recipe else None,
            "source": self.recipe.source if self.recipe else "the pipeline's own defaults",
            **wanted,
            "bytes": None if each is None else round(each * wanted["images"]),
            "arguments": arguments,
        }


@dataclass(frozen=True)
class EndpointOutline:
    """A run at an endpoint before anything is asked."""

    request: EndpointRequest
    folder: RunFolder

    def facts(self) -> Mapping[str, Any]:
        """For people and programs: what would be asked for, what is there, and what is to be paid."""
        settings = self.request.settings
        wanted = _wanted_facts(self.request.prompts, self.request.seeds, self.folder.rows())
        left = wanted["images"] - wanted["finished"]
        return {
            "model": settings.model,
            "endpoint": settings.endpoint,
            "size": settings.size or None,
            "quality": settings.quality or None,
            "reproducible": settings.reproducible,
            **wanted,
            "image_usd": settings.image_usd,
            "usd": settings.image_usd * left,
            "arguments": settings.call,
        }


def _wanted_facts(
    prompts: ChosenPrompts, seeds: Sequence[int], rows: Sequence[ImageRow]
) -> dict[str, Any]:
    wanted = {job.key for job in all_jobs(prompts.prompts, seeds)}
    return {
        "benchmark": prompts.benchmark or None,
        "benchmark_revision": prompts.revision or None,
        "prompts": len(prompts.prompts),
        "seeds": list(seeds),
        "images": len(wanted),
        "finished": sum(row.key in wanted for row in rows),
    }


MOST_PROBLEMS = 20
_NAMED = 6


def rate_words(per_second: float) -> str:
    """How fast images are drawn."""
    if not per_second:
        return "first batch"
    if per_second >= 1:
        return f"{per_second:.1f} images/s"
    return f"{1 / per_second:.1f} s/image"


def facts_table(facts: Mapping[str, Any]) -> Table:
    """What an outline's facts say, as a table."""
    source = f"{facts['benchmark']} {facts['benchmark_revision'] or ''}".strip()
    how, cost = _endpoint_lines(facts) if "endpoint" in facts else _pipeline_lines(facts)
    lines = {
        **how,
        "prompts": f"{facts['prompts']} of {source if facts['benchmark'] else 'a file'}",
        "seeds": ", ".join(map(str, facts["seeds"])),
        "images": f"{facts['images']}, of which {facts['finished']} are there",
        **cost,
        **{name: str(value) for name, value in facts["arguments"].items()},
    }
    table = Table("what", "value", show_header=False, title="Generation")
    for name, value in lines.items():
        table.add_row(Text(name), Text(value))
    return table


_Lines = dict[str, str]


def _pipeline_lines(facts: Mapping[str, Any]) -> tuple[_Lines, _Lines]:
    room = facts["bytes"]
    how = {
        "model": f"{facts['model']} {facts['revision']}".strip(),
        "pipeline": str(facts["pipeline"]),
        "recipe": f"{facts['recipe'] or 'none'} ({facts['source']})",
    }
    return how, {"room": "not known" if room is None else f"about {size_words(round(room))}"}


def _endpoint_lines(facts: Mapping[str, Any]) -> tuple[_Lines, _Lines]:
    how = {
        "model": f"{facts['model']} at {facts['endpoint']}",
        "size": str(facts["size"] or "the endpoint's own"),
        "quality": str(facts["quality"] or "the endpoint's own"),
        "reproducible": "by seed" if facts["reproducible"] else "no: each image is one draw",
    }
    price = f"{facts['usd']:.4f} USD for what is missing, {facts['image_usd']:g} an image"
    return how, {"price": price}


def summary_lines(summary: Summary, dtype: Dtype) -> Iterator[str]:
    """What a run did; `dtype` is the precision it drew with."""
    yield from _drawn_lines(summary, summary.wanted - summary.drawn)
    if summary.shrunk:
        yield f"Memory allowed {summary.batch_size} images at a time."
    if summary.truncated:
        yield truncation_line(summary.truncated)
    if summary.withheld:
        yield withheld_line(summary.withheld, dtype)
    if summary.mixed_versions:
        yield "Some images were drawn with other versions of the libraries; rows name them."


def endpoint_lines(summary: EndpointSummary) -> Iterator[str]:
    """What a run at an endpoint did."""
    failed = sum(summary.failed.values())
    yield from _drawn_lines(summary, summary.wanted - summary.drawn - failed)
    for reason, count in sorted(summary.failed.items(), key=lambda one: -one[1])[:_NAMED]:
        yield f"No image for {count} requests: {reason}."
    if failed:
        yield "The same command asks for these again."
    if summary.withheld:
        yield withheld_line(summary.withheld, "float32")
    yield f"The images here have cost {summary.usd:.4f} USD, by the file of endpoints."
    if not summary.reproducible:
        yield "The endpoint takes no seed: each image is one draw, and cannot be had again."


def _drawn_lines(summary: Summary | EndpointSummary, kept: int) -> Iterator[str]:
    yield f"Drew {summary.drawn} images" + (f"; {kept} were there." if kept else ".")
    if summary.damaged:
        yield f"{summary.damaged} files were missing or damaged and were drawn again."


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
        "refused": "refused by the endpoint; the column refusal says why",
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


def grid_table(results: Sequence[GridResult]) -> Table:
    """How the models of a grid went."""
    table = Table("model", "images", "withheld", "seconds", "USD", "problem", title="Grid")
    for one in results:
        cells = (
            one.model,
            f"{one.images} of {one.wanted}",
            str(sum(one.withheld.values())),
            f"{one.seconds:.1f}",
            "" if one.usd is None else f"{one.usd:.4f}",
            one.problem,
        )
        table.add_row(*map(Text, cells))
    return table
