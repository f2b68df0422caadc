"""`check`: the author's dry run, with the validator, the box and the checks of the worker."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption, errors
from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import load_prompt_sets
from benchmarks.registry import find, load_registry
from benchmarks.schema import Benchmark, Method
from evaluator.commands.check_report import (
    Verdict,
    closing_lines,
    examined_lines,
    found_blocks,
    found_record,
    plan_lines,
    problem_lines,
    safe,
    verdict_line,
    verdict_of,
)
from evaluator.commands.common import DEFAULT_MODELS, console, now, stopped_in_words
from evaluator.commands.progress import local_source, progress_bar, run_bars
from evaluator.generation.check import GenerationsReport
from evaluator.generation.manifest import GenerationsManifest
from evaluator.hub.source import PREFIX
from evaluator.isolation.availability import IsolationChoice
from evaluator.isolation.job import Limits, scorer_limits
from evaluator.metric import module_machine
from evaluator.scoring.progress import Progress
from evaluator.submission.dry_run import (
    USUAL_PAIRS,
    Drawn,
    DryRun,
    Expectation,
    dry_run,
    expectation,
    receipt_of,
)
from evaluator.submission.generations.extraction import AcceptedImages, AnyPrompts, PromptSets, take
from evaluator.submission.generations.intake import examination, listening
from evaluator.submission.generations.sources import opened_source as opened_images
from evaluator.submission.generations.sources import says_generations
from evaluator.submission.receipts import SUFFIX, written
from evaluator.submission.scores_file import examine_scores_file
from evaluator.submission.validate import ScoringModule, opened_source
from evaluator.worker.liveness import RunProgress
from leaderboard.records import Kind, Receipt
from leaderboard.submission_service import ManifestOverrides, ScoresForm, ValidationReport

FAILED = 1
MODELS = DEFAULT_MODELS
"""Where the worker of the same folder keeps them."""


@dataclass(frozen=True)
class CheckRequest:
    """What is to be checked."""

    named: str  # as it was named on the command line
    source: Path  # folder or archive on this machine
    registry: Mapping[str, Benchmark]  # all benchmarks
    data: Path | None  # folder of data files
    benchmarks: tuple[str, ...]  # to be asked; empty: the demo
    pairs: int | None  # about so many of all of them together; None: all
    isolation: IsolationChoice  # what must isolate the code
    models: Path  # folder of models of the Hub


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    found: DryRun  # by the dry run
    verdict: Verdict  # on it
    expected: Expectation  # the time on every benchmark
    receipt: Receipt | None  # of the dry run; None where it failed
    limits: Limits  # in force


def check(
    path: Annotated[
        str,
        typer.Argument(
            help="Folder, archive (.zip, .tar, .tar.gz), Parquet file of images, or "
            "hub:owner/name@revision."
        ),
    ],
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            help="Benchmark to ask; repeatable. The demo benchmarks if not given. Of Parquet files "
            "without assay.toml: the prompt set."
        ),
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option(help="What it is; found out from the path if not given.")
    ] = None,
    name: Annotated[
        str, typer.Option(help="Of a scores file; of the model: of Parquet without assay.toml.")
    ] = "",
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(help="Metric of a scores file for which lower is better; repeatable."),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=8, help="About how many pairs, drawn evenly.")
    ] = USUAL_PAIRS,
    every: Annotated[bool, typer.Option("--all", help="Ask every pair.")] = False,
    receipt: Annotated[
        Path | None,
        typer.Option(
            help="Where the receipt goes; NAME.receipt.json beside the path if not given."
        ),
    ] = None,
    isolation: Annotated[
        IsolationChoice,
        typer.Option(help="What isolates the code; none is for code of your own only."),
    ] = IsolationChoice.AUTO,
    models: Annotated[
        Path, typer.Option(envvar="ASSAY_MODELS", help="Folder of models of the Hub.")
    ] = MODELS,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every problem of a submission, then run it as a worker would, on the demo.

    Says whether it may rank, what it scores, what it costs and how long it would take on every
    benchmark, and writes a receipt that can be sent along. Of generations it says which images are
    missing or wrong; of a scores file (--benchmark names its benchmark), which rows.

    Exits with 1 where something is wrong with the submission.

    Example: python -m evaluator check my-metric
    """
    registry = load_registry()
    with stopped_in_words("Nothing was kept; check it again."), local_source(path) as source:
        of = kind or kind_of(source)
        if of is Kind.SCORES:
            form = _scores_form(benchmark, name, lower_is_better)
            good = check_scores(source, form, registry, data, as_json=as_json)
            raise typer.Exit(0 if good else FAILED)
        if lower_is_better:
            raise typer.BadParameter("it is said of scores", param_hint="--lower-is-better")
        if of is Kind.GENERATIONS:
            said = ManifestOverrides(name=name, prompt_set=",".join(benchmark or ()))
            good = check_generations(source, registry, data, said=said, as_json=as_json)
            raise typer.Exit(0 if good else FAILED)
        if name:
            raise typer.BadParameter("a module says it in assay.toml", param_hint="--name")
        names, n = tuple(benchmark or ()), None if every else pairs
        wanted = CheckRequest(path, source, registry, data, names, n, isolation, models)
        _check(wanted, receipt, as_json=as_json)


def _scores_form(
    benchmark: list[str] | None, name: str, lower_is_better: list[str] | None
) -> ScoresForm:
    if len(benchmark or ()) != 1:
        raise typer.BadParameter("a scores file needs one --benchmark", param_hint="--benchmark")
    return ScoresForm((benchmark or [""])[0], name, lower_is_better=tuple(lower_is_better or ()))


def _check(wanted: CheckRequest, place: Path | None, *, as_json: bool) -> None:
    with opened_source(wanted.source, wanted.registry) as (seen, module):
        if module is None:
            _tell_problems(seen, as_json=as_json)
            raise typer.Exit(FAILED)
        if not as_json:
            for line in examined_lines(seen):
                console().print(line, soft_wrap=True)
        outcome = _run(wanted, module, _drawn(wanted, module.manifest.method))
    _tell(seen, outcome, as_json=as_json)
    if outcome.receipt is not None:
        target = place or _beside(wanted, seen.name)
        _write(target, written(outcome.receipt))
        errors().print(safe(f"Receipt: {target}"), soft_wrap=True)
        if outcome.verdict.good:
            command = shlex.join(["submit", wanted.named, "--receipt", str(target)])
            errors().print(safe(f"Submit it with: python -m evaluator {command}"), soft_wrap=True)
    if not outcome.verdict.good:
        raise typer.Exit(FAILED)


def _run(wanted: CheckRequest, module: ScoringModule, drawn: Sequence[Drawn]) -> Outcome:
    limits = scorer_limits(os.environ)
    with (
        module_machine(module, wanted.isolation, wanted.models, _fetching) as machine,
        _listener(module, drawn) as tell,
    ):
        found = dry_run(module, drawn, machine, tell, now())
    names = _runs_on(wanted, module)
    expected = expectation(found, wanted.registry, wanted.data, limits, names)
    receipt = None if found.failure else receipt_of(module, found, now())
    verdict = verdict_of(found, module.manifest.bounds)
    return Outcome(found, verdict, expected, receipt, limits)


def _fetching(model: str, done: int, total: int) -> None:
    errors().print(safe(f"fetching {model}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB"))


@contextmanager
def _listener(module: ScoringModule, drawn: Sequence[Drawn]) -> Iterator[Any]:
    total = sum(one.n_pairs for one in drawn)
    counted = (
        drawn[1:] and module.manifest.method == "score"
    )  # of comparisons, before they are known
    with run_bars(total if counted else None) as show:

        def tell(benchmark: str, progress: Progress) -> None:
            show(RunProgress("", module.manifest.name, benchmark, progress))

        yield tell


def _drawn(wanted: CheckRequest, method: Method) -> list[Drawn]:
    """The benchmarks to be asked, each with its share of the pairs."""
    chosen = [find(wanted.registry, name) for name in dict.fromkeys(wanted.benchmarks)] or [
        one
        for _, one in sorted(wanted.registry.items())
        if one.card.simulated and one.has_questions(wanted.data) and _fits(one, method)
    ]
    share = None if wanted.pairs is None else max(1, wanted.pairs // len(chosen))
    return [Drawn(one, wanted.data, share) for one in chosen]


def _runs_on(wanted: CheckRequest, module: ScoringModule) -> tuple[str, ...]:
    """Benchmarks it would be run on if it were submitted here."""
    manifest = module.manifest
    named = manifest.benchmarks or tuple(
        name
        for name, one in wanted.registry.items()
        if one.has_questions(wanted.data) and _fits(one, manifest.method)
    )
    metrics = manifest.of_metrics.values()
    kinds = {name: wanted.registry[name].card.kind for name in named}
    return tuple(n for n, kind in kinds.items() if any(one.is_on(n, kind) for one in metrics))


def _fits(benchmark: Benchmark, method: Method) -> bool:
    return method == "score" or benchmark.compares_images


def _tell_problems(seen: ValidationReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(seen), indent=1))
        return
    out = console()
    for line in problem_lines(seen.kinds):
        out.print(line, soft_wrap=True)
    out.print(verdict_line(seen).append(" Nothing was run."))


def _tell(seen: ValidationReport, outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        found = found_record(
            seen, outcome.found, outcome.verdict, outcome.expected.later, outcome.receipt
        )
        typer.echo(json.dumps(found, indent=1))
        return
    out = console()
    for block in found_blocks(outcome.found, outcome.expected, outcome.limits):
        out.print(block)
    for line in closing_lines(outcome.found, outcome.verdict):
        out.print(line, soft_wrap=True)


def _beside(wanted: CheckRequest, name: str) -> Path:
    """`<name>.receipt.json` beside a folder or archive, never in it: it would change the content.

    Of a repository of the Hub it comes where the command is run.
    """
    fetched = wanted.named.startswith(PREFIX)
    folder = Path.cwd() if fetched else wanted.source.resolve().parent
    return folder / f"{name}{SUFFIX}"


def _write(target: Path, content: bytes) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except OSError as error:
        raise SubmitterError(
            "cannot_write", f"The receipt cannot be written: {error}.", "Choose another --receipt."
        ) from error


_TABLES = frozenset({".csv", ".npz"})
"""Suffixes that only scores files have."""


def kind_of(path: Path) -> Kind:
    """What a path holds, as far as that can be told: Parquet may be scores too, and says it."""
    if path.suffix.lower() in _TABLES:
        return Kind.SCORES
    return Kind.GENERATIONS if says_generations(path) else Kind.METRIC


def check_scores(
    path: Path,
    form: ScoresForm,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    *,
    as_json: bool,
) -> bool:
    """Say what is wrong; True where nothing is."""
    seen, _ = examine_scores_file(path, form, registry, data)
    if as_json:
        typer.echo(json.dumps(asdict(seen), indent=1))
        return not seen.problems
    out = console()
    for line in problem_lines(seen.kinds):
        out.print(line, soft_wrap=True)
    for line in plan_lines(seen):
        out.print(line, soft_wrap=True)
    for note in seen.notes:
        out.print(safe(note), soft_wrap=True)
    out.print(verdict_line(seen) if seen.problems else Text("Nothing is wrong.", style="green"))
    return not seen.problems


def check_generations(
    path: Path,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    *,
    said: ManifestOverrides | None = None,
    as_json: bool,
) -> bool:
    """Say what is missing or wrong; True where nothing is."""
    resolve = AnyPrompts(PromptSets(load_prompt_sets(), data), registry)
    with progress_bar("looking at images", transient=True) as tell, opened_images(path) as source:
        taken = take(source, resolve, said=said, listener=listening(tell))
    if as_json:
        typer.echo(json.dumps(_record(taken), indent=1))
    else:
        _print(taken)
    return not taken.problems


def _print(taken: AcceptedImages) -> None:
    out = console()
    if taken.manifest and taken.report:
        out.print(safe(_summary(taken.manifest, taken.report)))
    seen = examination(taken)
    for line in problem_lines(seen.kinds):
        out.print(line, soft_wrap=True)
    if seen.problems:
        out.print(verdict_line(seen))
    if not taken.problems:
        out.print(Text("Nothing is wrong.", style="green"))


def _summary(manifest: GenerationsManifest, report: GenerationsReport) -> str:
    reasons = ", ".join(f"{n} {reason}" for reason, n in report.withheld.items())
    withheld = f"{report.n_withheld} are withheld{f' ({reasons})' if reasons else ''}"
    return (
        f"{manifest.name} {manifest.version}: {report.usable} of {report.wanted} images are there "
        f"and right, {withheld}."
    )


def _record(taken: AcceptedImages) -> dict[str, object]:
    manifest, report = taken.manifest, taken.report
    return {
        "name": manifest.name if manifest else "",
        "version": manifest.version if manifest else "",
        "prompt_set": taken.images.prompt_set if taken.images else "",
        "wanted": report.wanted if report else 0,
        "usable": report.usable if report else 0,
        "withheld": dict(report.withheld) if report else {},
        "sizes": taken.images.sizes if taken.images else {},
        "n_bytes": taken.images.n_bytes if taken.images else 0,
        "content_sha256": taken.content_sha256,
        "model_card": manifest.model_card().model_dump(mode="json") if manifest else None,
        "counts": dict(taken.counts),
        "problems": [
            {"kind": p.code, "where": p.place, "message": p.message, "hint": p.hint}
            for p in taken.problems
        ],
    }
