"""`scorers run`: a built-in metric on a benchmark, to a scores file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.schema import Benchmark, Questions
from benchmarks.settings.sources import value_of
from evaluator.commands.bars import run_bars
from evaluator.commands.common import DataOption, JsonOption, now, stopped_in_words
from evaluator.commands.engine_choice import (
    ActorsOption,
    EngineChoice,
    EngineOption,
    RayAddressOption,
    make_engine,
)
from evaluator.commands.scorer_options import (
    AllowPickleOption,
    CheckpointOption,
    DeviceOption,
    DtypeOption,
    Given,
    NameArgument,
    OfflineOption,
    QuestionsOption,
    RevisionOption,
    TrustRemoteCodeOption,
)
from evaluator.commands.scorers_run_files import Facts, check_out, write_files
from evaluator.commands.scorers_run_report import report
from evaluator.scorers.embeddings import trim
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import Runtime, ScorerRow, find_row, load_rows
from evaluator.scoring.asking import Engine
from evaluator.scoring.column import ScoreColumn
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.progress import Listener
from evaluator.scoring.shards import ShardFolder, run_fingerprint
from evaluator.worker.claims.heartbeat import RunProgress


def run(
    name: NameArgument,
    benchmark: Annotated[str, typer.Option(help="Benchmark, for example ts2.")],
    out: Annotated[Path, typer.Option(help="Scores file to write: .parquet or .csv.")],
    data: DataOption = None,
    engine: EngineOption = EngineChoice.LOCAL,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = None,
    checkpoint: CheckpointOption = None,
    revision: RevisionOption = None,
    questions: QuestionsOption = None,
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
    offline: OfflineOption = False,
    allow_pickle: AllowPickleOption = False,
    trust_remote_code: TrustRemoteCodeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score a benchmark with a built-in metric; a run that was stopped goes on where it was.

    Example: python -m evaluator scorers run clipscore-hessel --benchmark ts2 --data data
    --out scores.parquet
    """
    row = find_row(name, load_rows())
    target = find(load_registry(), benchmark)
    check_out(out)
    most_kept = round(value_of("embeddings_gib", os.environ) * 2**30)
    _refuse_numbered(device, engine)
    given = Given(
        device,
        dtype,
        checkpoint,
        revision,
        questions,
        offline=offline,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
    )
    runtime = given.runtime(row)
    asked = _first(target.questions(data), limit)
    started = _Run(
        row, target, asked, runtime, cache and cache.resolve(), work or out.with_suffix(".work")
    )
    gpus = 1.0 if runtime.device.startswith("cuda") else 0.0
    began, clock = now(), time.monotonic()
    with (
        stopped_in_words("The same command goes on where it was."),
        run_bars() as bars,
        make_engine(engine, ray_address, actors, started.work, gpus=gpus) as carrier,
    ):
        column = started.column(carrier, bars)
    if cache is not None:
        trim(cache, most_kept)
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
    _finish(out, column, facts, as_json=as_json)


def _finish(out: Path, column: ScoreColumn, facts: Facts, *, as_json: bool) -> None:
    """Write the files, say what is in them, and fail where no pair has a score."""
    record = write_files(out, column, facts)
    report(out, record, column, as_json=as_json)
    if not column.verdict.scored:
        raise SubmitterError(
            "nothing_scored",
            f"{facts.row.name} gave none of the {column.verdict.pairs} pairs of "
            f"{facts.benchmark.name} a score.",
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


def _refuse_numbered(device: str, engine: EngineChoice) -> None:
    if engine is EngineChoice.RAY and ":" in device:
        raise typer.BadParameter(
            "Ray gives each actor a GPU of its own: say cuda.", param_hint="--device"
        )
