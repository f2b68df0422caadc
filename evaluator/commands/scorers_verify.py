"""`scorers verify`: a built-in metric's own scores against released ones, pair by pair."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pyarrow as pa
import typer
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.errors import SubmitterError
from benchmarks.parquet import parquet_frame
from benchmarks.registry import find, load_registry
from benchmarks.released import verification
from benchmarks.released.bundle import released_table
from benchmarks.released.verification import (
    Agreement,
    PairDifference,
    Reference,
    Verification,
    Weights,
    compare,
    share_text,
)
from benchmarks.schema import Benchmark
from benchmarks.tables import read_table
from evaluator.commands.common import console, now, table
from evaluator.commands.scorer_options import (
    ActorsOption,
    CacheOption,
    EngineChoice,
    EngineOption,
    LimitOption,
    NameArgument,
    RayAddressOption,
    RuntimeOf,
)
from evaluator.commands.scorers_run import MetricRun, first_pairs, refuse_numbered
from evaluator.scorers.checkpoints import cached
from evaluator.scorers.device import check_device, versions
from evaluator.scorers.family_code import code_digest
from evaluator.scorers.registry import Runtime, ScorerRow, find_row, load_rows
from evaluator.scoring.column import ScoreColumn

FAILED = 1
DEFAULT_WORK = Path(".assay/verify")
_LEFT_OUT = frozenset({"pillow", "numpy", "tokenizers"})


def verify(
    name: NameArgument,
    data: DataOption = None,
    engine: EngineOption = EngineChoice.LOCAL,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = None,
    *,
    runtime_of: RuntimeOf,
    released: Annotated[
        Path | None,
        typer.Option(
            help="Scores in place of those that ship: .csv or .parquet with pair_id and the column."
        ),
    ] = None,
    cache: CacheOption = None,
    work: Annotated[Path, typer.Option(help="Folder that keeps what is done.")] = DEFAULT_WORK,
    limit: LimitOption = None,
    show: Annotated[int, typer.Option(min=0, help="Pairs that differ to show.")] = 10,
    record: Annotated[
        bool,
        typer.Option("--record", help="Keep what is found in benchmarks/released/verified.toml."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare a metric with released scores of it, pair by pair, on the images of the release.

    Exits with 1 where fewer pairs than the reference wants are within its tolerance. What is
    missing is told at once, before anything is scored; a run that was stopped goes on where it was.

    Example: python -m evaluator scorers verify clipscore-hessel --data data --record
    """
    row = find_row(name, load_rows())
    reference = _reference_of(row)
    target = find(load_registry(), reference.benchmark)
    runtime = runtime_of(row)
    refuse_numbered(runtime.device, engine)
    if record:
        _refuse_part(runtime, limit, released)
    theirs = _released(reference, released)
    _refuse_missing(row, runtime, reference, target, data, engine)
    asked = first_pairs(target.questions(data), limit)
    started = MetricRun(row, target, asked, runtime, cache and cache.resolve(), work / row.name)
    column = started.column(engine, ray_address, actors)
    agreement, outside = compare(column.overall, theirs, reference)
    if record:
        verification.record(_verification(row, target, reference, column, agreement))
    if as_json:
        typer.echo(
            json.dumps(_as_json(row, reference, column, agreement, outside[:show]), indent=1)
        )
    else:
        _print(row, reference, agreement, outside, show)
        if record:
            console().print(Text(f"Recorded in {verification.RECORDS}: commit it."))
    if not agreement.agrees:
        raise typer.Exit(FAILED)


def _reference_of(row: ScorerRow) -> Reference:
    known = verification.references()
    if row.name not in known:
        raise SubmitterError(
            "no_released_scores",
            f"No released per-image scores of {row.name} are known.",
            f"There are some of {', '.join(sorted(known))}.",
        )
    return known[row.name]


def _refuse_part(runtime: Runtime, limit: int | None, released: Path | None) -> None:
    """Refuse to record what nobody could repeat: a part, other scores, weights without a commit."""
    given = [
        *(["--limit"] if limit is not None else []),
        *(["--released"] if released is not None else []),
        *(["--checkpoint"] if runtime.folders else []),
    ]
    if given:
        raise SubmitterError(
            "verification_not_recordable",
            f"With {' and '.join(given)} nothing is recorded.",
            "A record is of all pairs, the released scores and weights of the Hub at a commit: "
            "leave out --record, or what stands against it.",
        )


def _released(reference: Reference, given: Path | None) -> pd.Series:
    """The released scores by pair id."""
    frame = released_table(reference.table) if given is None else _table_of(given)
    place = given or f"benchmarks/released/{reference.table}"
    lacking = [name for name in ("pair_id", reference.column) if name not in frame]
    if lacking:
        raise SubmitterError(
            "released_malformed",
            f"{place} has no column {' and no column '.join(lacking)}.",
            f"It holds a row a pair: pair_id and {reference.column}.",
        )
    scores = pd.to_numeric(frame[reference.column], errors="coerce")
    found = pd.Series(scores.to_numpy(float), index=frame["pair_id"].astype(str))
    if found.index.has_duplicates:
        twice = found.index[found.index.duplicated()][0]
        raise SubmitterError("released_malformed", f"{place} has pair {twice!r} twice.")
    return found


def _table_of(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            return parquet_frame(path.read_bytes())
        return read_table(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SubmitterError(
            "released_malformed",
            f"{path} cannot be read: {str(error).splitlines()[0]}.",
            "Name a .csv or .parquet file with pair_id and the released scores.",
        ) from error


def _refuse_missing(
    row: ScorerRow,
    runtime: Runtime,
    reference: Reference,
    target: Benchmark,
    data: Path | None,
    engine: EngineChoice,
) -> None:
    """Refuse to begin while something is missing, and tell all of it."""
    missing = list(_missing(row, runtime, reference, target, data))
    if engine is EngineChoice.LOCAL:  # else it is the device of an actor
        missing += _missing_device(runtime.device)
    if missing:
        raise SubmitterError(
            "verification_inputs_missing",
            f"{row.name} cannot be verified yet: {' '.join(missing)}",
            "docs/verify.md says where everything comes from.",
        )


def _missing(
    row: ScorerRow, runtime: Runtime, reference: Reference, target: Benchmark, data: Path | None
) -> Iterator[str]:
    folder = target.folder(data)
    absent = [path for path in reference.needs if not folder.has(path)]
    root = data or Path("a folder of data (--data)")
    for path in absent:
        yield f"There is no {path} in {root}: {folder.remedy(path)}"
    if not absent:
        try:
            target.questions(data)
        except SubmitterError as error:
            yield str(error)
    if reference.questions and runtime.questions is None:
        yield f"It asks questions: name {reference.questions}, imported, with --questions."
    elif runtime.questions is not None and not runtime.questions.is_file():
        yield f"There is no question file {runtime.questions}."
    for role, place in runtime.folders.items():
        if not place.exists():
            yield f"There is no {place} for checkpoint {role}."
    if runtime.offline:
        for role, one in row.checkpoints.items():
            if role not in runtime.folders and cached(row, role) is None:
                yield f"{one.id} ({role}) is not on this machine, and --offline forbids to fetch it."


def _missing_device(device: str) -> Iterator[str]:
    try:
        check_device(device)
    except SubmitterError as error:
        yield str(error)


def _verification(
    row: ScorerRow,
    target: Benchmark,
    reference: Reference,
    column: ScoreColumn,
    agreement: Agreement,
) -> Verification:
    if agreement.largest is None:
        raise SubmitterError(
            "nothing_scored", f"{row.name} gave none of the released pairs a score.", ""
        )
    environment = column.environment
    return Verification(
        scorer=row.name,
        row_sha256=row.digest,
        code_sha256=code_digest(row.family),
        benchmark=target.name,
        revision=target.card.revision,
        table=reference.table,
        column=reference.column,
        on=now().date(),
        device=environment["device"],
        dtype=environment["dtype"],
        questions_sha256=environment.get("questions", "").rpartition("sha256:")[2],
        tolerance=reference.tolerance,
        wanted_share=reference.share,
        **agreement.model_dump(exclude={"unreleased", "within"}),
        weights=dict(_weights(row, column)),
        packages={name: one for name, one in versions().items() if name not in _LEFT_OUT},
    )


def _weights(row: ScorerRow, column: ScoreColumn) -> Iterator[tuple[str, Weights]]:
    """Role to repository and commit of what was run."""
    for role in row.checkpoints:
        name, _, commit = column.environment.get(f"checkpoint_{role}", "").rpartition("@")
        if name:
            yield role, Weights(id=name, commit=commit)


def _as_json(
    row: ScorerRow,
    reference: Reference,
    column: ScoreColumn,
    agreement: Agreement,
    outside: Sequence[PairDifference],
) -> dict[str, Any]:
    """What was found, for programs."""
    file = reference.file
    source = {"source": file.source, "commit": file.commit, "licence": file.licence}
    return {
        "metric": row.name,
        "row_sha256": row.digest,
        "benchmark": reference.benchmark,
        "reference": {**reference.model_dump(mode="json"), **source},
        **agreement.model_dump(mode="json"),
        "differing": [one.model_dump(mode="json") for one in outside],
        "environment": dict(column.environment),
        "versions": versions(),
    }


def _print(
    row: ScorerRow,
    reference: Reference,
    agreement: Agreement,
    outside: Sequence[PairDifference],
    most: int,
) -> None:
    file, shown = reference.file, console()
    shown.print(
        Text(
            f"{row.name} on {reference.benchmark} against {reference.column} of {file.source} at "
            f"{file.commit} ({file.licence})."
        )
    )
    shown.print(_figures(agreement, reference))
    if outside and most:
        heads = ("pair", "score", "on the released scale", "released", "difference")
        rows = [_line(one) for one in outside[:most]]
        shown.print(table(heads, rows, f"The first of {len(outside):,} pairs that differ"))
    verdict = "Agrees" if agreement.agrees else "Differs"
    shown.print(
        Text(
            f"{verdict}: {share_text(agreement.share)} of pairs within {reference.tolerance:g}, "
            f"{share_text(reference.share)} wanted. {reference.why}",
            style="green" if agreement.agrees else "bold red",
        )
    )


def _figures(agreement: Agreement, reference: Reference) -> Table:
    made = Table("agreement", "", show_header=False)
    for name, value in (
        ("pairs compared", f"{agreement.pairs:,}"),
        ("released, but not scored here", f"{agreement.unscored:,}"),
        ("scored here, but not released", f"{agreement.unreleased:,}"),
        ("PLCC", _number(agreement.plcc)),
        ("SRCC", _number(agreement.srcc)),
        ("largest difference", _number(agreement.largest)),
        (f"within {reference.tolerance:g}", f"{agreement.within:,}"),
    ):
        made.add_row(name, value)
    return made


def _line(one: PairDifference) -> tuple[str, ...]:
    return (one.pair_id, *map(_number, (one.score, one.ours, one.released, one.difference)))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"
