"""`check` of a folder of generations: every image that is missing or wrong, at once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import typer
from rich.text import Text

from benchmarks.errors import SubmitterError
from benchmarks.registry import find
from benchmarks.schema import Benchmark
from evaluator.commands.check_report import safe
from evaluator.commands.common import console
from evaluator.generation.check import FolderReport, check_folder
from evaluator.generation.manifest import GenerationsManifest, parse_generations
from evaluator.generation.prompts import Choice, Prompt, benchmark_prompts
from evaluator.generation.rows import parse_rows
from evaluator.manifest import FILE, MAX_BYTES

SHOWN = 40
MAX_TABLE_BYTES = 256 << 20


def is_generations(path: Path) -> bool:
    """Whether a folder says that it holds generations."""
    file = path / FILE
    if not file.is_file() or file.stat().st_size > MAX_BYTES:
        return False
    try:
        values = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError):  # `check` says what is wrong with it
        return False
    return values.get("kind") == "generations"


def check_generations(
    path: Path, registry: Mapping[str, Benchmark], data: Path | None, *, as_json: bool
) -> bool:
    """Say what is missing or wrong; True where nothing is.

    Raises:
        SubmitterError: `bad_manifest`, `unknown_benchmark`, `data_missing`, `no_seeds`,
            `no_images`.
    """
    manifest = parse_generations((path / FILE).read_bytes())
    if not manifest.seeds:
        raise SubmitterError(
            "no_seeds", f"{FILE} names no seeds.", "Write seeds = [42], or those that were used."
        )
    prompts = _prompts(path, manifest, registry, data)
    if not prompts:
        raise SubmitterError(
            "no_images",
            f"{manifest.images} names no image, and {FILE} no benchmark whose prompts are drawn.",
            "Write a line of prompt_id, seed and file for each image.",
        )
    report = check_folder(path, prompts, manifest.seeds, manifest.images)
    if as_json:
        typer.echo(json.dumps(_record(manifest, report), indent=1))
    else:
        _print(manifest, report)
    return report.complete


def _prompts(
    path: Path, manifest: GenerationsManifest, registry: Mapping[str, Benchmark], data: Path | None
) -> tuple[Prompt, ...]:
    """Of the benchmark; for prompts of one's own those that the table itself names."""
    if manifest.benchmark:
        return benchmark_prompts(find(registry, manifest.benchmark), data, Choice()).prompts
    table = (path / manifest.images).resolve()
    inside = table.is_relative_to(path.resolve()) and table.is_file()
    if not inside or table.stat().st_size > MAX_TABLE_BYTES:
        return ()
    rows, _ = parse_rows(table.read_bytes())
    return tuple({row.prompt_id: Prompt(row.prompt_id, row.prompt or "") for row in rows}.values())


def _print(manifest: GenerationsManifest, report: FolderReport) -> None:
    out = console()
    out.print(
        safe(
            f"{manifest.name} {manifest.version}: {report.usable} of {report.wanted} images are "
            f"there and right, {len(report.withheld)} are withheld."
        )
    )
    for problem in report.problems[:SHOWN]:
        out.print(safe(f"{problem.where}: {problem.message} [{problem.kind}]"), soft_wrap=True)
    left = len(report.problems) - SHOWN
    if left > 0:
        counts = ", ".join(f"{n} {kind}" for kind, n in report.counts().items())
        out.print(Text(f"and {left} more problems; in all {counts}"))
    if report.complete:
        out.print(Text("Nothing is wrong.", style="green"))


def _record(manifest: GenerationsManifest, report: FolderReport) -> dict[str, object]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "wanted": report.wanted,
        "usable": report.usable,
        "withheld": len(report.withheld),
        "problems": [asdict(problem) for problem in report.problems],
    }
