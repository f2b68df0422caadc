"""`scorers run`: a built-in metric on a benchmark, to a scores file."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from importlib.metadata import version
from operator import methodcaller
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.errors import SubmitterError
from benchmarks.parquet import write_margins
from benchmarks.registry import find, load_registry
from benchmarks.schema import Benchmark, Questions, ScoreTable
from benchmarks.scores import score_rows, write_scores
from benchmarks.settings.model import value_of
from benchmarks.sources.output import write_whole
from evaluator.commands.common import console, now, stopped_in_words, table
from evaluator.commands.progress import run_bars
from evaluator.commands.scorer_options import (
    ActorsOption,
    CacheOption,
    EngineChoice,
    EngineOption,
    LimitOption,
    NameArgument,
    RayAddressOption,
    RuntimeOf,
    make_engine,
)
from evaluator.scorers.device import check_device, versions
from evaluator.scorers.embeddings import trim
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import Runtime, ScorerRow, find_row, load_rows
from evaluator.scoring.asking import Engine, ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder, run_fingerprint
from evaluator.scoring.comparing import Comparisons
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.progress import Listener
from evaluator.submission.runs import findings_record
from evaluator.worker.liveness import RunProgress
from leaderboard.text import usd


def run(
    name: NameArgument,
    benchmark: Annotated[str, typer.Option(help="Benchmark, for example ts2.")],
    out: Annotated[Path, typer.Option(help="Scores file to write: .parquet or .csv.")],
    data: DataOption = None,
    engine: EngineOption = EngineChoice.LOCAL,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    *,
    runtime_of: RuntimeOf,
    cache: CacheOption = None,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps what is done; by default beside --out."),
    ] = None,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a benchmark with a built-in metric; a run that was stopped goes on where it was.

    Example: python -m evaluator scorers run clipscore-hessel --benchmark ts2 --data data
    --out scores.parquet
    """
    row = find_row(name, load_rows())
    target = find(load_registry(), benchmark)
    check_out(out)
    runtime = runtime_of(row)
    refuse_numbered(runtime.device, engine)
    if engine is EngineChoice.LOCAL:
        check_device(runtime.device)
    asked = first_pairs(target.questions(data), limit)
    comparisons = None
    if row.method == "compare":  # by the schedule of a worker's run
        comparisons = Comparisons.of(asked, f"{target.name} {target.card.revision}".encode())
    asked = comparisons.questions if comparisons else asked
    started = MetricRun(
        row, target, asked, runtime, cache and cache.resolve(), work or out.with_suffix(".work")
    )
    began, clock = now(), time.monotonic()
    column = started.column(engine, ray_address, actors)
    column = comparisons.column(column) if comparisons else column
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
class MetricRun:
    """A built-in metric on a benchmark, whichever engine carries it."""

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
        """Opens the metric."""
        return ModelSource(self.row, self.runtime, self.cache)

    @property
    def fingerprint(self) -> str:
        """Of what is equal for all scores: code, checkpoints, settings, data."""
        return run_fingerprint(
            submission=self.source.fingerprint,
            benchmark=self.benchmark.name,
            revision=self.benchmark.card.revision,
        )

    def column(
        self, engine: EngineChoice, ray_address: str | None, actors: int | None
    ) -> ScoreColumn:
        """Score all pairs but those that an earlier start did, with bars on the terminal."""
        most_kept = round(value_of("embeddings_gib", os.environ) * 2**30)
        gpus = 1.0 if self.runtime.device.startswith("cuda") else 0.0
        with (
            stopped_in_words("The same command goes on where it was."),
            run_bars() as bars,
            make_engine(engine, ray_address, actors, self.work, gpus=gpus) as carrier,
        ):
            column = self._scored(carrier, bars)
        if self.cache is not None:
            trim(self.cache, most_kept)
        return column

    def _scored(self, engine: Engine, bars: Callable[[RunProgress], None]) -> ScoreColumn:
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


def first_pairs(questions: Questions, limit: int | None) -> Questions:
    """The first pairs of a benchmark."""
    return questions if limit is None else replace(questions, pairs=questions.pairs[:limit])


def refuse_numbered(device: str, engine: EngineChoice) -> None:
    """Refuse a GPU by number where Ray chooses one."""
    if engine is EngineChoice.RAY and ":" in device:
        raise typer.BadParameter(
            "Ray gives each actor a GPU of its own: say cuda.", param_hint="--device"
        )


_FORMATS = (".parquet", ".csv")


@dataclass(frozen=True)
class Facts:
    """What a run was made of."""

    row: ScorerRow  # the metric
    benchmark: Benchmark  # what was scored
    runtime: Runtime  # device, precision, checkpoints
    fingerprint: str  # what was equal for all scores: code, checkpoints, settings, data
    seed: str  # of the order of the plan, in hex
    options: EngineOptions  # how batches were cut
    limit: int | None  # pairs that were asked for at most; None: all
    actors: int | None  # that were asked for; None: as many as there was room for
    began: datetime  # when this start began
    seconds: float  # it took, all in all


def check_out(out: Path) -> None:
    """Refuse now what could not be written after hours."""
    if out.suffix not in _FORMATS:
        raise typer.BadParameter(
            f"{out.name} must end in {' or '.join(_FORMATS)}.", param_hint="--out"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error


def write_files(out: Path, column: ScoreColumn, facts: Facts) -> dict[str, Any]:
    """Write the scores file and its companions; gives what the record holds.

    The scores file holds element scores as further rows, as `benchmarks.scores` reads them.
    """
    table = _table(column, facts.row)
    margins = out.with_name(f"{out.stem}.margins.parquet")
    files = {out: _scores(table, out.suffix)}
    for kind, frame in _companions(column).items():
        files[out.with_name(f"{out.stem}.{kind}.parquet")] = _parquet(frame)
    if table.margins:
        files[margins] = write_margins(table)
    else:
        margins.unlink(missing_ok=True)  # of other scores, which end here
    hashes = {path.name: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    record = _record(column, facts, hashes)
    files[out.with_name(f"{out.stem}.record.json")] = (json.dumps(record, indent=1) + "\n").encode()
    # Scores come last: without their margins they would say more than they may.
    for path, data in reversed(files.items()):
        write_whole(path, methodcaller("write_bytes", data))
    return record


def _table(column: ScoreColumn, row: ScorerRow) -> ScoreTable:
    return ScoreTable(
        column.overall.to_frame(row.name),
        elements={} if column.elements is None else {row.name: column.elements},
        directions={} if row.higher_is_better else {row.name: -1},
        margins={} if column.margins is None else {row.name: column.margins},
    )


def _scores(table: ScoreTable, suffix: str) -> bytes:
    if suffix == ".parquet":
        return write_scores(table)
    return score_rows(table).to_csv(index=False).encode()


def _companions(column: ScoreColumn) -> Mapping[str, pd.DataFrame]:
    frames = {}
    if column.elements is not None:
        frames["elements"] = column.elements
    if column.answers is not None:
        frames["answers"] = column.answers
    if column.findings:
        frames["findings"] = pd.DataFrame([asdict(finding) for finding in column.findings])
    return frames


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _record(column: ScoreColumn, facts: Facts, hashes: Mapping[str, str]) -> dict[str, Any]:
    card = facts.benchmark.card
    return {
        "scorer": facts.row.model_dump(mode="json"),
        "benchmark": facts.benchmark.name,
        "revision": card.revision,
        "limit": facts.limit,
        "fingerprint": facts.fingerprint,
        "seed": facts.seed,
        "runtime": asdict(facts.runtime)
        | {
            "folders": {role: str(place) for role, place in facts.runtime.folders.items()},
            "questions": str(facts.runtime.questions or ""),
        },
        "engine": {
            "name": column.environment["engine"],
            "actors": facts.actors,
            **asdict(facts.options),
        },
        "environment": dict(column.environment),
        "versions": {"python": platform.python_version(), **versions(), **_ours(column)},
        "findings": findings_record(column).model_dump(mode="json"),
        "cost": column.cost.model_dump(mode="json"),
        "resumed_pairs": column.resumed_pairs,
        "began": facts.began.isoformat(timespec="seconds"),
        "seconds": round(facts.seconds, 3),
        "files": dict(hashes),
    }


def _ours(column: ScoreColumn) -> dict[str, str]:
    names = ["pandas", "pyarrow"] + (["ray"] if column.environment["engine"] == "ray" else [])
    return {name: version(name) for name in names}


_MOST_EXAMPLES = 3
_MIB = 1024 * 1024


def report(out: Path, record: dict[str, Any], column: ScoreColumn, *, as_json: bool) -> None:
    """Print the record for programs, or its essence for people."""
    if as_json:
        typer.echo(json.dumps(record, indent=1))
        return
    shown = console()
    shown.print(Text(column.verdict.sentence))
    if column.findings:
        shown.print(_findings(column))
    shown.print(_cost(column, record["seconds"]))
    shown.print(Text(f"Files in {out.parent}: {', '.join(record['files'])}"))
    shown.print(Text(_next_step(out, record), style="dim"))


def _findings(column: ScoreColumn) -> Table:
    """Each code with how often it was found, and a few of the places."""
    rows = []
    by_code: dict[tuple[str, str, bool], list[tuple[str, str]]] = {}
    for finding in column.findings:
        key = (finding.code, finding.item, finding.scored)
        by_code.setdefault(key, []).append((finding.item_id, finding.message))
    for (code, item, scored), found in by_code.items():
        named = ", ".join(item_id for item_id, _ in found[:_MOST_EXAMPLES])
        shown = Text(code, style="" if scored else "bold red")
        of = f"{item}s" + ("" if scored else ", not scored")
        rows.append((shown, of, str(len(found)), f"{named}: {found[0][1]}"))
    return table(("finding", "of", "number", "for example"), rows)


def _cost(column: ScoreColumn, seconds: float) -> Table:
    cost = column.cost
    table = Table("cost", "", show_header=False)
    rows = [
        ("pairs", f"{cost.pairs:,}, {column.resumed_pairs:,} of them kept from an earlier start"),
        ("calls of the scorer", f"{cost.calls:,}"),
        ("images asked about", f"{cost.images:,}"),
        ("images decoded / encoded", f"{cost.images_decoded:,} / {cost.images_encoded:,}"),
        ("texts encoded", f"{cost.texts_encoded:,}"),
        ("seconds in the scorer", f"{cost.seconds:,.1f} ({cost.pairs_per_s:,.1f} pairs/s)"),
        ("seconds of this start", f"{seconds:,.1f}"),
        ("peak memory", f"{cost.peak_memory_bytes / _MIB:,.0f} MiB"),
    ]
    if (price := cost.usd_per_1000_pairs) is not None:
        rows.append(("price", f"{usd(cost.usd)} USD, {usd(price)} for 1,000 pairs"))
    for name, value in rows:
        table.add_row(name, value)
    return table


def _next_step(out: Path, record: dict[str, Any]) -> str:
    if record["limit"] is not None:
        return "Only a part of the benchmark: leave --limit out for a file that `meta` takes."
    lower = "" if record["scorer"]["higher_is_better"] else " --lower-is-better "
    lower += record["scorer"]["name"] if lower else ""
    return f"Measure it: python -m evaluator meta {record['benchmark']} --scores {out}{lower}"
