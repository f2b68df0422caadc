"""`ab`: yesterday's images against today's, skill by skill, without a store."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption, errors
from benchmarks.errors import SubmitterError
from benchmarks.problems import one_error
from benchmarks.prompt_sets.prompt_set import load_prompt_sets, with_prompt_sets
from benchmarks.registry import find, load_registry
from benchmarks.sources.output import check_output, write_whole
from evaluator.bundled import bundled_hashes
from evaluator.commands.common import IsolationOption, console, now, stopped_in_words, table
from evaluator.commands.judges import in_role, judging_of
from evaluator.commands.progress import run_bars
from evaluator.commands.scorer_options import RuntimeOf
from evaluator.generation.prompts import Choice, Prompt, benchmark_prompts, file_prompts
from evaluator.isolation.availability import IsolationChoice
from evaluator.scorers.registry import Runtime, ScorerRow
from evaluator.worker.liveness import RunProgress
from leaderboard.ledger.ledger import Ledger
from leaderboard.store.opening import StoreName
from leaderboard.text import clean

if TYPE_CHECKING:
    from evaluator.ab.images import DrawnImages
    from evaluator.ab.report import AbReport
    from evaluator.metric import MetricSource

DEFAULT_CACHE = Path(".assay/scores")
FAILED = 4
"""Exit code where --fail-on applies."""
Judges = Mapping[str, frozenset[str | None] | None]
"""Metric by its name to the skills that it judges; None: all."""


class FailOn(StrEnum):
    """What a comparison fails on, for programs that go by exit codes."""

    NOTHING = "nothing"
    WORSE = "worse"
    NOT_BETTER = "not-better"


def ab(
    first: Annotated[Path, typer.Argument(metavar="BASELINE", help="Folder of images.")],
    second: Annotated[
        Path, typer.Argument(metavar="CANDIDATE", help="Folder of images that is judged.")
    ],
    prompts: Annotated[
        str,
        typer.Option(
            help="CSV of prompts (prompt_id, prompt[, skills]), or a prompt set or benchmark by name."
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Metric that judges: built in, bundled, or a folder, of several outputs METRIC:OUTPUT; "
            "repeatable."
        ),
    ] = None,
    store: Annotated[
        StoreName | None,
        typer.Option(
            "--store",
            help="Store whose qualified metrics judge, each its skills, in place of --metric; the "
            "prompts are a prompt set's then.",
            parser=StoreName.parse,
            metavar="STORE",
        ),
    ] = None,
    skill: Annotated[
        list[str] | None, typer.Option(help="Only prompts with this skill; repeatable.")
    ] = None,
    sub_skills: Annotated[
        bool, typer.Option("--sub-skills", help="Compare skills of skills too, as color:simple.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many prompts.")] = None,
    margin: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=10.0,
            help="Share of the spread of scores over prompts below which models are tied.",
        ),
    ] = 0.1,
    partial: Annotated[
        bool, typer.Option("--partial", help="Compare the prompts of which both have images.")
    ] = False,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="File that counts looks at this baseline: half of the prompts screens, the other "
            "half confirms at a level that is spent over all looks."
        ),
    ] = None,
    batches: Annotated[
        bool,
        typer.Option(
            "--batches",
            help="Ask the held-out half of --journal in batches, in a random order that is fixed, and stop "
            "where it is decided; the candidate's images of it may still be drawn.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Page to write, with pictures: report.html.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="Folder that keeps scores.")] = DEFAULT_CACHE,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on", help="End with exit code 4 if a skill is worse, or none is better."
        ),
    ] = FailOn.NOTHING,
    data: DataOption = None,
    *,
    runtime_of: RuntimeOf,
    isolation: IsolationOption = IsolationChoice.AUTO,
    as_json: JsonOption = False,
) -> None:
    """Compare two folders of images of the same prompts: better, tied, worse or undecided, by skill.

    Images go by the tables of `generate`, or by name: PROMPT_ID.png, or several in PROMPT_ID/. Scores
    are kept by the content of an image, so the baseline is scored once.

    Example: python -m evaluator ab runs/1000 runs/2000 --prompts prompts.csv --metric clipscore-hessel
    """
    from evaluator.ab.batches import look_by_batches, prompts_to_draw  # noqa: PLC0415 (with SciPy)
    from evaluator.ab.journal import look  # noqa: PLC0415 (as above)
    from evaluator.ab.report import AbReport  # noqa: PLC0415 (as above)
    from evaluator.ab.scoring import FolderScorer, judging_metrics  # noqa: PLC0415 (as above)

    if batches and (journal is None or partial):
        raise typer.BadParameter("it needs --journal, and no --partial", param_hint="--batches")
    if out is not None:
        check_output(out, force=True)
        if not out.absolute().parent.is_dir():
            raise SubmitterError("cannot_write", f"There is no folder {out.absolute().parent}.")
    names = _names(first, second)
    chosen = prompts_of(prompts, data, Choice(tuple(skill or ()), (), limit))
    judges = _judges(metric or (), store, prompts, data)
    drawn = _drawn(first, second, chosen, partial=partial, growing=batches)
    with (
        ExitStack() as until,
        run_bars() as bars,
        stopped_in_words("The same command goes on where it was."),
    ):
        scorer = FolderScorer(
            judging_metrics(judges, lambda named: opened(named, runtime_of, isolation), until),
            cache,
            margin,
            sub_skills,
            lambda name: lambda done: bars(RunProgress(name, name, "your images", done)),
        )
        if journal is None:
            report = AbReport(scorer.compared(names, drawn))
        else:
            found, made = (look_by_batches if batches else look)(
                journal,
                lambda part, only: scorer.compared(names, part, only),
                drawn,
                metrics=scorer.identities,
                name=names[1],
                at=now(),
            )
            report = AbReport(found, made, prompts_to_draw(drawn, made), drawn)
    _check(report, partial=partial)
    if out is not None:
        page = report.html
        write_whole(out, lambda place: place.write_text(page, encoding="utf-8"))
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=1, ensure_ascii=False))
    else:
        _print(report, out)
    if _fails(report, fail_on):
        raise typer.Exit(FAILED)


def prompts_of(named: str, data: Path | None, choice: Choice) -> tuple[Prompt, ...]:
    """Prompts of a CSV file, or of a prompt set or benchmark by its name."""
    suffix = Path(named).suffix.lower()
    if suffix == ".csv":
        return file_prompts(Path(named), choice).prompts
    known = with_prompt_sets(load_registry(), load_prompt_sets())
    if named not in known and (suffix or Path(named).is_file()):
        raise SubmitterError(
            "bad_prompts",
            f"{named} is neither CSV nor the name of a prompt set or benchmark.",
            "A table is CSV, and its name ends in .csv.",
        )
    return benchmark_prompts(find(known, named), data, choice).prompts


def _drawn(
    first: Path, second: Path, prompts: Sequence[Prompt], *, partial: bool, growing: bool
) -> DrawnImages:
    """Images of both folders; `growing`: of the second those at least that screen."""
    from evaluator.ab.images import (  # noqa: PLC0415 (with SciPy)
        WITHHELD,
        drawn_images,
        growing_model,
        model_images,
        single_model,
    )
    from evaluator.ab.journal import halves  # noqa: PLC0415 (as above)

    baseline = model_images(first, prompts)
    if growing:
        screening, _ = halves(single_model(baseline, prompts).prompts)
        texts = {one.text for one in screening}
        candidate = growing_model(
            second,
            baseline,
            [one for one in prompts if one.text in texts],
            [one for one in prompts if one.text not in texts],
        )
    else:
        candidate = model_images(second, prompts)
    problems = [*baseline.problems, *candidate.problems]
    drawn = drawn_images(baseline, candidate, prompts, growing=growing)
    refused = [one for one in problems if not growing or one.code != WITHHELD]
    if refused and not partial:
        raise one_error(refused)
    if not drawn.prompts:
        raise SubmitterError(
            "prompt_unmatched",
            f"{first} and {second} have images of no prompt in common.",
            "Name the table of prompts that both were drawn from.",
        )
    for told in (
        *(f"left out: {one.sentence}" for one in problems),
        *(one.sentence for one in candidate.notes),
    ):
        errors().print(told, markup=False, highlight=False)
    return drawn


def _names(first: Path, second: Path) -> tuple[str, str]:
    """Names of the two folders that differ."""
    one, other = (folder.resolve() for folder in (first, second))
    if one == other:
        raise SubmitterError("same_folder", f"{first} is compared with itself.", "Name two.")
    a, b = one.parts, other.parts
    shared = 0
    while shared < min(len(a), len(b)) - 1 and a[-1 - shared] == b[-1 - shared]:
        shared += 1
    one_name, other_name = ("/".join(parts[-1 - shared :]) for parts in (a, b))
    return clean(one_name), clean(other_name)


def _judges(
    metrics: Sequence[str], store: StoreName | None, prompts: str, data: Path | None
) -> Judges:
    """Those that were named, for all skills, or those that qualified, each for its skills."""
    if bool(metrics) == (store is not None):
        raise SubmitterError(
            "no_metrics",
            "Metrics come from one place, and from one are needed.",
            "Name some with --metric, or a --store whose qualified metrics judge.",
        )
    if store is None:
        return dict.fromkeys(dict.fromkeys(metrics))
    found = qualified(prompts, store, data)
    if not found:
        raise SubmitterError(
            "no_metrics",
            f"No built-in or bundled metric of {store} is qualified on a skill of {prompts}.",
            "See `python -m evaluator judges`, or name metrics with --metric.",
        )
    return found


def qualified(
    prompt_set: str, store: StoreName, data: Path | None
) -> dict[str, frozenset[str | None]]:
    """Metrics that judge models on a prompt set and run here, with their skills."""
    judging, reader = judging_of(prompt_set, store, data)
    own = {}
    for status in Ledger(store.existing()).statuses():
        sent = status.submission
        if sent.builtin or sent.content_sha256 in bundled_hashes():
            own[sent.submission_id] = sent.builtin or sent.name
    able = [one for one in judging.view.entries if one.partition("/")[0] in own]
    found: dict[str, set[str | None]] = {}
    for skill in (None, *judging.card.skills):
        for judge in in_role(judging, reader, skill, able):
            if judge.trusted:
                found.setdefault(own[judge.entry_id.partition("/")[0]], set()).add(skill)
    return {name: frozenset(skills) for name, skills in found.items()}


def runtime_for(runtime_of: RuntimeOf) -> RuntimeOf:
    """What a built-in metric is run with; a scoring module takes the device alone."""

    def runtime(row: ScorerRow | None) -> Runtime:
        chosen = runtime_of(row)
        return chosen if row is not None else Runtime(device=chosen.device)

    return runtime


def opened(
    named: str, runtime_of: RuntimeOf, isolation: IsolationChoice
) -> AbstractContextManager[MetricSource]:
    """Find a metric; of one with several outputs, `METRIC:OUTPUT` is one."""
    from evaluator.metric import metric_source  # noqa: PLC0415 (with SciPy)

    name, _, output = (named, "", "") if Path(named).exists() else named.partition(":")
    return metric_source(name, runtime_for(runtime_of), isolation, output)


def _check(report: AbReport, *, partial: bool) -> None:
    """Refuse what says nothing, and without `partial` what leaves images out; scores are kept."""
    found = report.comparison
    if not found.skills:
        raise SubmitterError(
            "no_metrics", "No metric judges a skill of these prompts.", "Name others with --metric."
        )
    lacking = [
        f"{one.name} gave {a} images of {found.first} and {b} of {found.second} none"
        for one in found.metrics
        for a, b in [one.unscored]
        if a or b
    ]
    if lacking and not partial:
        raise SubmitterError(
            "image_unscored",
            f"Some images have no score: {'; '.join(lacking)}.",
            "Draw them anew, or leave them out with --partial.",
        )
    for told in lacking:
        errors().print(f"left out: {told}", markup=False, highlight=False)


def _fails(report: AbReport, fail_on: FailOn) -> bool:
    said = set(report.outcomes.values())
    if fail_on is FailOn.WORSE:
        return "worse" in said
    return fail_on is FailOn.NOT_BETTER and ("worse" in said or "better" not in said)


_STYLES = {"better": "green", "worse": "red", "tied": "blue"}


def _print(report: AbReport, out: Path | None) -> None:
    from benchmarks.statistics.better_or_tied import MIN_PROMPTS  # noqa: PLC0415 (with SciPy)

    shown, few = console(), [one for one in report.comparison.skills if one.too_few]
    for one in report.comparison.skills:
        if one not in few:
            outcome = report.outcome(one)
            head = (f"{outcome:10}", _STYLES.get(outcome, "dim"))
            shown.print(Text.assemble(head, report.sentence(one)))
    withheld = report.comparison.drawn.withheld
    if any(withheld):
        sides = zip((report.comparison.first, report.comparison.second), withheld, strict=True)
        told = " and ".join(f"{n} of {model}" for model, n in sides)
        shown.print(Text(f"Left out, as their own tables withhold them: {told} images."))
    if few:
        named = ", ".join(f"{one.skill or 'all prompts'} ({one.n_prompts})" for one in few)
        shown.print(Text(f"Too few prompts to compare, below {MIN_PROMPTS}: {named}."))
    says = "says" if report.look is None else "screens"
    heads = ("skill", "metric", says, "difference", "95 % interval", "p", "p, tied", "prompts")
    rows = [
        (
            one.skill or "all prompts",
            name,
            str(of.outcome),
            _number(of.difference, "+.4g"),
            f"{_number(of.ci_low, '+.4g')} to {_number(of.ci_high, '+.4g')}",
            _number(of.p_corrected, ".3g"),
            _number(of.p_tied_corrected, ".3g"),
            f"{of.n}" + (f" ({of.n_missing} left out)" if of.n_missing else ""),
        )
        for one in report.comparison.skills
        for name, of in one.by_metric.items()
        if one not in few
    ]
    shown.print(table(heads, rows))
    if report.look is not None and report.look.confirmation is not None:
        held = sum(hit.confirmed for hit in report.look.hits)
        asked = report.look.asked
        of_them = "" if asked is None else f", of which {asked} prompts were asked"
        shown.print(
            f"Confirmation {report.look.confirmation} at the level {report.look.level:.4f}: {held} of "
            f"{len(report.look.hits)} differences hold on the other half of the prompts{of_them}."
        )
    if report.to_draw:
        ids = ", ".join(one.prompt_id for one in report.to_draw)
        shown.print(f"Draw these, and look again: {ids}.", markup=False, highlight=False)
    if out is not None:
        shown.print(f"With pictures: {out}", markup=False, highlight=False)


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else format(value, form)
