"""`scorers run`: a built-in metric on a benchmark, to a scores file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import errors
from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.schema import Benchmark, Questions
from evaluator.commands.bars import run_bars
from evaluator.commands.common import DataOption, JsonOption, now
from evaluator.commands.engine_choice import (
    ActorsOption,
    EngineChoice,
    EngineOption,
    RayAddressOption,
    make_engine,
)
from evaluator.commands.roles import by_role
from evaluator.commands.scorers_run_files import Facts, check_out, write_files
from evaluator.commands.scorers_run_report import report
from evaluator.heartbeat import RunProgress
from evaluator.scorers.registry import find_row, load_rows
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.column import ScoreColumn
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.engines import Engine
from evaluator.scoring.model_asker import ModelSource
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.progress import Listener
from evaluator.scoring.shards import ShardFolder, run_fingerprint

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""


class Dtype(StrEnum):
    """Precision of weights and forward pass."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


def run(
    name: Annotated[str, typer.Argument(help="Built-in metric, for example pickscore.")],
    benchmark: Annotated[str, typer.Option(help="Benchmark, for example ts2.")],
    out: Annotated[Path, typer.Option(help="Scores file to write: .parquet or .csv.")],
    data: DataOption = None,
    engine: EngineOption = EngineChoice.LOCAL,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    device: Annotated[str, typer.Option(help="As torch names it: cpu, cuda, cuda:1.")] = "cpu",
    dtype: Annotated[Dtype | None, typer.Option(help="In place of the metric's own.")] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=FOLDER", help="Folder in place of the Hub's; repeatable."),
    ] = None,
    revision: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=COMMIT", help="Commit in place of the kept one; repeatable."),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Question file, for metrics that ask questions.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps embeddings for later runs.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps what is done; by default beside --out."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many pairs, to try it out.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")] = False,
    allow_pickle: Annotated[
        bool,
        typer.Option("--allow-pickle", help="Read weights that could run code when read."),
    ] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code of the checkpoint's repository.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Score a benchmark with a built-in metric; a run that was stopped goes on where it was.

    Example: python -m evaluator scorers run clipscore --benchmark ts2 --data data
    --out scores.parquet
    """
    row = find_row(name, load_rows())
    target = find(load_registry(), benchmark)
    check_out(out)
    runtime = Runtime(
        device=_device(device, engine),
        dtype=None if dtype is None else dtype.value,
        folders=_absolute(by_role(row, checkpoint or (), "--checkpoint")),
        revisions=by_role(row, revision or (), "--revision"),
        offline=offline,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
        questions=_resolved(questions),
    )
    asked = _first(target.questions(data), limit)
    started = _Run(row, target, asked, runtime, _resolved(cache), work or out.with_suffix(".work"))
    gpus = 1.0 if runtime.device.startswith("cuda") else 0.0
    began, clock = now(), time.monotonic()
    with (
        _stopped_in_words(),
        run_bars() as bars,
        make_engine(engine, ray_address, actors, started.work, gpus=gpus) as carrier,
    ):
        column = started.column(carrier, bars)
    facts = Facts(
        row=row,
        benchmark=target,
        runtime=runtime,
        fingerprint=started.fingerprint,
        seed=started.seed.hex(),
        options=started.options,
        limit=limit,
        actors=actors,
        began=began,
        seconds=time.monotonic() - clock,
    )
    record = write_files(out, column, facts)
    report(out, record, column, as_json=as_json)
    if not column.verdict.scored:
        raise SubmitterError(
            "nothing_scored",
            f"{row.name} gave none of the {column.verdict.pairs} pairs of {target.name} a score.",
            "The findings say why.",
        )


@dataclass(frozen=True)
class _Run:
    """What is run, whichever engine carries it."""

    row: ScorerRow
    benchmark: Benchmark
    questions: Questions
    runtime: Runtime
    cache: Path | None
    work: Path
    options: EngineOptions = field(default_factory=EngineOptions)

    @property
    def seed(self) -> bytes:
        """Gives the order of the plan: the same for each run of a metric on a benchmark.

        Strangers' code gets a secret one, which a built-in metric has no use for.
        """
        named = f"{self.row.name} {self.benchmark.name} {self.benchmark.card.revision}"
        return hashlib.sha256(named.encode()).digest()

    @property
    def source(self) -> ModelSource:
        return ModelSource(self.row, self.runtime, self.cache)

    @property
    def fingerprint(self) -> str:
        return run_fingerprint(
            submission=self.source.fingerprint,
            benchmark=self.benchmark.name,
            revision=self.benchmark.card.revision,
        )

    def column(self, engine: Engine, bars: Callable[[RunProgress], None]) -> ScoreColumn:
        # Another setting or another number of pairs is another run, which spoils none before it.
        place = f"{self.fingerprint[:16]}-{len(self.questions.pairs)}"
        return run_plan(
            ScoringPlan.of(self.questions, self.seed),
            self.questions,
            self.source,
            ShardFolder(self.work / place, self.fingerprint),
            self._listener(bars),
            engine=engine,
            options=self.options,
        )

    def _listener(self, bars: Callable[[RunProgress], None]) -> Listener:
        return lambda progress: bars(
            RunProgress(self.row.name, self.row.name, self.benchmark.name, progress)
        )


def _first(questions: Questions, limit: int | None) -> Questions:
    """The first pairs of a benchmark."""
    return questions if limit is None else replace(questions, pairs=questions.pairs[:limit])


def _device(device: str, engine: EngineChoice) -> str:
    if engine is EngineChoice.RAY and ":" in device:
        raise typer.BadParameter(
            "Ray gives each actor a GPU of its own: say cuda.", param_hint="--device"
        )
    return device


def _resolved(path: Path | None) -> Path | None:
    return path.resolve() if path else None


def _absolute(folders: Mapping[str, str]) -> dict[str, Path]:
    """An actor may work in another folder."""
    return {role: Path(folder).resolve() for role, folder in folders.items()}


@contextmanager
def _stopped_in_words() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        errors().print("Stopped. The same command goes on where it was.")
        raise typer.Exit(INTERRUPTED) from stop
