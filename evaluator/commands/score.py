"""`score`: a metric on images and prompts of one's own, and how far it may be trusted."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import JsonOption, errors
from benchmarks.errors import SubmitterError
from benchmarks.problems import one_error, problem_kinds
from benchmarks.settings.model import value_of
from benchmarks.sources.output import check_output, write_whole
from evaluator.commands.common import (
    IsolationOption,
    OutputNameOption,
    console,
    stopped_in_words,
    table,
)
from evaluator.commands.progress import progress_bar, run_bars
from evaluator.commands.scorer_options import RuntimeOf, range_of
from evaluator.image_folder import (
    ImagePair,
    MatchedImages,
    PromptRow,
    crossed,
    images_below,
    matched,
    read_prompts,
    readable,
)
from evaluator.isolation.availability import IsolationChoice
from evaluator.metric import MetricSource, metric_source
from evaluator.scoring.asking import ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder, run_fingerprint
from evaluator.scoring.contract import Answer
from evaluator.scoring.engine import run_plan
from evaluator.skill_trust import SkillTrust, boards_at, no_figures, trust_of
from evaluator.worker.liveness import RunProgress
from leaderboard.store.opening import StoreName
from leaderboard.submission_service import CheckProgress
from leaderboard.text import clean

_ENDINGS = (".csv", ".jsonl")
_REMARKS = 20
MetricArgument = Annotated[
    str,
    typer.Argument(
        help="Built-in or bundled metric, for example clipscore-hessel, or the folder of a scoring "
        "module."
    ),
]


@dataclass(frozen=True)
class ScoredPair:
    """One pair, scored."""

    pair: ImagePair  # image and prompt as they were given
    score: float  # NaN where there is none
    problem: str = ""  # why there is none
    truncated: bool = False  # whether the prompt's end was not read
    image_remarks: tuple[str, ...] = ()  # what was done to the image
    prompt_remarks: tuple[str, ...] = ()  # what there is to say of the prompt, and of the pair
    # score of each named part; NaN where there is none
    elements: dict[str, float] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()  # what was asked on the way

    def to_json(self) -> dict[str, Any]:
        """For programs; what is no number is null."""
        return {
            "image": self.pair.image,
            "prompt_id": self.pair.prompt_id,
            "prompt": self.pair.prompt,
            "score": _finite(self.score),
            "problem": self.problem,
            "truncated": self.truncated,
            "remarks": [*self.image_remarks, *self.prompt_remarks],
            "elements": {name: _finite(value) for name, value in self.elements.items()},
            "answers": [
                {
                    "question_id": answer.question_id,
                    "question": answer.question,
                    "expected": answer.expected,
                    "raw": answer.raw,
                    "value": _finite(answer.value),
                    "valid": answer.valid,
                }
                for answer in self.answers
            ],
        }


def score(
    metric: MetricArgument,
    images: Annotated[
        list[Path], typer.Argument(metavar="FOLDER|IMAGE...", help="A folder of images, or images.")
    ],
    prompts: Annotated[
        str,
        typer.Option(
            help="Table of prompts: CSV, JSON Lines or a data set of the Hub (OWNER/NAME:SPLIT), with "
            "`prompt`, and `file` or `prompt_id` that says which images."
        ),
    ] = "",
    prompt: Annotated[
        list[str] | None, typer.Option(help="A prompt for every image; repeatable with --cross.")
    ] = None,
    element: Annotated[
        list[str] | None,
        typer.Option(help="A part of the prompts to score on its own; repeatable."),
    ] = None,
    cross: Annotated[
        bool, typer.Option("--cross", help="Score every image with every prompt.")
    ] = False,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Score what fits, where images or prompts are left over."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write: .csv or .jsonl; without it, the terminal."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    *,
    runtime_of: RuntimeOf,
    isolation: IsolationOption = IsolationChoice.AUTO,
    output_name: OutputNameOption = "",
    store: Annotated[
        StoreName | None,
        typer.Option(
            "--store",
            envvar="ASSAY_STORE",
            help="Store whose boards say how far the metric may be trusted, beside the figures that "
            "ship.",
            parser=StoreName.parse,
            metavar="STORE",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score images with their prompts, and say skill by skill how far the metric may be trusted.

    The table says which image goes with which prompt: `file` (or `image`) is its path in the folder;
    else `prompt_id` (or `id`) is its name without ending, or the folder that it lies in. Nothing is
    scored while anything is missing or left over, unless --partial says so. With --out, what is done
    is kept: a run that was stopped goes on where it was.

    Example: python -m evaluator score clipscore-hessel images --prompts prompts.csv --out scores.csv
    """
    _check_usage(prompts, prompt or (), out, cross=cross, as_json=as_json)
    if out is not None:
        check_output(out, force=force, inputs=[Path(prompts)] if prompts else ())
    rows = (
        read_prompts(prompts) if prompts else [PromptRow("--prompt", one) for one in prompt or ()]
    )
    found = _looked_at(_places(images), rows, crossing=cross or bool(prompt))
    _refuse(found, partial=partial)
    with metric_source(metric, runtime_of, isolation, output_name) as known:
        whole = known.row is not None and "elements" not in known.row.granularity
        if element and (whole or known.outputs):
            raise SubmitterError("no_elements", f"{known.name} scores whole prompts, not elements.")
        trust = trust_of(known.name, store, built_in=known.row is not None)
        with _kept_in(out) as work:
            column = _column(known, found, element or (), work)
            pairs = scored_pairs(found, column, element or ())
            if out is not None:
                content = _as_csv(pairs) if out.suffix == ".csv" else _as_jsonl(pairs)
                write_whole(out, lambda place: place.write_text(content, encoding="utf-8"))
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "metric": known.name,
                    "low": known.low,
                    "high": known.high,
                    "higher_is_better": known.higher_is_better,
                    "pairs": [pair.to_json() for pair in pairs],
                    "environment": dict(column.environment),
                    "own_weights": known.own_weights,
                    "trust": [one.to_json() for one in trust],
                },
                ensure_ascii=False,
            )
        )
    else:
        _report(known, pairs, column, trust, out)
    if not column.verdict.scored:
        raise SubmitterError(
            "nothing_scored",
            f"{known.name} gave none of the {column.verdict.pairs} pairs a score: {pairs[0].problem}",
        )


def _check_usage(
    prompts: str, prompt: Sequence[str], out: Path | None, *, cross: bool, as_json: bool
) -> None:
    if bool(prompts) == bool(prompt):
        raise SubmitterError(
            "prompt_missing",
            "Prompts come from one place, and from one is needed.",
            'Give --prompts FILE, or --prompt "a prompt".',
        )
    if len(prompt) > 1 and not cross:
        raise SubmitterError(
            "prompts_crossed",
            f"Nothing says which of the {len(prompt)} prompts an image goes with.",
            "Say --cross for every image with every prompt, or give a table with --prompts.",
        )
    if out is not None and out.suffix not in _ENDINGS:
        raise typer.BadParameter(
            f"{out.name} must end in {' or '.join(_ENDINGS)}.", param_hint="--out"
        )
    if out is not None and as_json:
        raise typer.BadParameter("--json goes to standard output", param_hint="--out")


def _places(images: Sequence[Path]) -> dict[str, Path]:
    """The images that are meant, by path in the one folder, or as they were given."""
    if len(images) == 1 and images[0].is_dir():
        found = images_below(images[0])
        if not found:
            raise SubmitterError("image_missing", f"There is no image in {images[0]}.")
        return found
    missing = [str(path) for path in images if not path.exists()]
    if missing:
        raise SubmitterError("image_missing", f"There is no image {', '.join(missing)}.")
    return {str(path): path for path in images}


def _looked_at(
    places: Mapping[str, Path], rows: Sequence[PromptRow], *, crossing: bool
) -> MatchedImages:
    found = crossed(places, rows) if crossing else matched(places, rows)
    with progress_bar("looking at images", transient=True) as tell:
        return readable(found, lambda done, total: tell(CheckProgress(done, total)))


def _refuse(found: MatchedImages, *, partial: bool) -> None:
    """Everything that is wrong at once; with `partial` it is only said, unless nothing is left."""
    if found.problems and (not partial or not found.pairs):
        raise one_error(found.problems)
    for kind in problem_kinds(found.problems):
        errors().print(f"left out: {kind.sentence}", markup=False, highlight=False)


def _column(
    known: MetricSource, found: MatchedImages, elements: Sequence[str], work: Path
) -> ScoreColumn:
    asked = found.questions(elements)
    fingerprint = run_fingerprint(
        submission=known.source.fingerprint,
        benchmark=json.dumps(list(elements)),
        revision=found.fingerprint,
    )
    with run_bars() as bars:
        return run_plan(
            ScoringPlan.of(asked, bytes.fromhex(fingerprint)),
            asked,
            known.source,
            ShardFolder(work, fingerprint),
            lambda progress: bars(RunProgress(known.name, known.name, "your images", progress)),
            outputs=len(known.outputs) or 1,
        ).outputs[known.place]


@contextmanager
def _kept_in(out: Path | None) -> Iterator[Path]:
    """The folder that keeps what is done: beside the file, and gone once the file is written."""
    if out is None:
        with (
            tempfile.TemporaryDirectory(prefix="assay-score-") as folder,
            stopped_in_words("Nothing was kept."),
        ):
            yield Path(folder)
        return
    work = out.with_name(f"{out.name}.work")
    with stopped_in_words("The same command goes on where it was."):
        yield work
    if work.is_dir():
        shutil.rmtree(work)


def scored_pairs(
    found: MatchedImages, column: ScoreColumn, elements: Sequence[str] = ()
) -> list[ScoredPair]:
    """The pairs in their order, with all that was found out about them."""
    about: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for finding in column.findings:
        about[finding.item, finding.item_id].append(finding)
    parts: dict[str, dict[str, float]] = defaultdict(dict)
    if column.elements is not None:
        for pair_id, number, value in column.elements.itertuples(index=False, name=None):
            parts[pair_id][elements[int(number)]] = value
    answers: dict[str, list[Answer]] = defaultdict(list)
    if column.answers is not None:
        for pair_id, *answer in column.answers.itertuples(index=False, name=None):
            answers[pair_id].append(Answer(*answer))
    scored = []
    for pair, (pair_id, value) in zip(found.pairs, column.overall.items(), strict=True):
        of_image, of_text = about["image", pair.image], about["text", pair.prompt]
        of_pair = about["pair", str(pair_id)]
        unscored = [one.message for one in (*of_pair, *of_image, *of_text) if not one.scored]
        scored.append(
            ScoredPair(
                pair,
                float(value),
                unscored[0] if isnan(value) and unscored else "",
                any(one.code == "text_truncated" for one in of_text),
                tuple(one.message for one in of_image if one.scored),
                tuple(one.message for one in (*of_text, *of_pair) if one.scored),
                parts[str(pair_id)],
                tuple(answers[str(pair_id)]),
            )
        )
    return scored


_COLUMNS = ("image", "prompt_id", "prompt", "score", "problem")


def _as_csv(pairs: Sequence[ScoredPair]) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in pairs:
        value = "" if isnan(one.score) else repr(one.score)
        writer.writerow((one.pair.image, one.pair.prompt_id, one.pair.prompt, value, one.problem))
    return buffer.getvalue()


def _as_jsonl(pairs: Sequence[ScoredPair]) -> str:
    return "".join(json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in pairs)


def _report(
    known: MetricSource,
    pairs: Sequence[ScoredPair],
    column: ScoreColumn,
    trust: Sequence[SkillTrust],
    out: Path | None,
) -> None:
    """For people: the scores, or where they are, what there is to say of them, and the trust."""
    shown = console()
    if out is None:
        shown.print(scores_table(known, pairs))
    told = list(remarks(pairs))
    for line in told[:_REMARKS]:
        shown.print(clean(line), markup=False, highlight=False)
    if len(told) > _REMARKS:
        shown.print(f"and {len(told) - _REMARKS:,} remarks more")
    shown.print(Text(column.verdict.sentence))
    if out is not None:
        shown.print(Text(f"{len(pairs):,} pairs in {out}"))
    shown.print(*_trust_lines(known, trust), sep="\n")


def _trust_lines(known: MetricSource, trust: Sequence[SkillTrust]) -> Iterator[RenderableType]:
    if not trust:
        yield Text(no_figures(known.name, built_in=known.row is not None))
        return
    heads = ("skill", "benchmark", "measure", "value", "place", "from")
    yield table(
        heads, [one.cells for one in trust], f"How far {known.name} may be trusted, by skill"
    )
    if known.own_weights:
        yield Text(
            f"These are figures of {known.name} with its authors' weights. Whether yours are the "
            "same ones is not known.",
            style="yellow",
        )
    benchmarks = dict.fromkeys(one.benchmark for one in trust)
    where = "Boards" if value_of("live", os.environ) else "Boards of `python -m evaluator demo`"
    yield Text(f"{where}: {', '.join(boards_at(name) for name in benchmarks)}", style="dim")


def scores_table(known: MetricSource, pairs: Sequence[ScoredPair]) -> RenderableType:
    """Scores, one pair a line."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("image", overflow="fold")
    made.add_column("prompt", overflow="fold")
    made.add_column(f"{known.name} ({range_of(known)})", justify="right")
    for one in pairs:
        value = "no score" if isnan(one.score) else f"{one.score:.6g}"
        made.add_row(Text(clean(one.pair.image)), Text(clean(one.pair.prompt, lines=True)), value)
    return made


def remarks(pairs: Sequence[ScoredPair]) -> Iterator[str]:
    """What there is to say of pairs: no score, cut prompts, elements, answers; each once."""
    said: dict[str, None] = {}
    for one in pairs:
        image, prompt = one.pair.image, one.pair.prompt
        where = f"{image}, {prompt!r}"
        if one.problem:
            said[f"{where}: {one.problem}"] = None
        for remark in one.image_remarks:
            said[f"{image}: {remark}"] = None
        for remark in one.prompt_remarks:
            said[f"{prompt!r}: {remark}"] = None
        for name, value in one.elements.items():
            said[f"{where}: element {name!r}: {_number(value)}"] = None
        for answer in one.answers:
            valid = "" if answer.valid else ", does not count"
            said[
                f"{where}: {answer.question} {answer.raw!r} "
                f"(expected {answer.expected!r}): {_number(answer.value)}{valid}"
            ] = None
    yield from said


def _number(value: float) -> str:
    return "none" if isnan(value) else f"{value:.6g}"


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
