"""Options that say where and how metrics are run, shared by the commands that score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import SubmitterError
from evaluator.scorers.registry import Runtime, ScorerRow
from evaluator.scoring.asking import Engine
from evaluator.scoring.local import LocalEngine


class Precision(StrEnum):
    """Of weights and forward pass."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


NameArgument = Annotated[str, typer.Argument(help="Built-in metric, for example clipscore-hessel.")]
DeviceOption = Annotated[
    str, typer.Option("--device", help="As torch names it: cpu, cuda, cuda:1.")
]
DtypeOption = Annotated[
    Precision | None, typer.Option("--dtype", help="Precision; by default the metric's own.")
]
CheckpointOption = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint", metavar="ROLE=FOLDER", help="Folder in place of the Hub's; repeatable."
    ),
]
RevisionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--revision", metavar="ROLE=COMMIT", help="Commit in place of the kept one; repeatable."
    ),
]
QuestionsOption = Annotated[
    Path | None, typer.Option("--questions", help="Question file, for metrics that ask.")
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")]
AllowPickleOption = Annotated[
    bool, typer.Option("--allow-pickle", help="Read weights that are pickles; they can run code.")
]
TrustRemoteCodeOption = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code of the checkpoint's repository.")
]


def runtime_of(
    row: ScorerRow,
    device: str,
    dtype: Precision | None,
    checkpoint: Sequence[str] | None,
    revision: Sequence[str] | None,
    questions: Path | None,
    offline: bool,
    allow_pickle: bool,
    trust_remote_code: bool,
) -> Runtime:
    """What the options ask for; paths become absolute, for an actor works elsewhere."""
    folders = by_role(row, checkpoint or (), "--checkpoint")
    return Runtime(
        device=device,
        dtype=dtype.value if dtype else None,
        folders={role: Path(folder).resolve() for role, folder in folders.items()},
        revisions=by_role(row, revision or (), "--revision"),
        offline=offline,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
        questions=questions.resolve() if questions else None,
    )


def by_role(row: ScorerRow, given: Sequence[str], option: str) -> dict[str, str]:
    """ROLE=VALUE by role; a value alone is of the role `model`."""
    found = {}
    for text in given:
        head, equals, tail = text.partition("=")
        role, value = (head, tail) if equals else ("model", text)
        if role not in row.checkpoints:
            raise SubmitterError(
                "unknown_role",
                f"{option} {text}: {row.name} has no checkpoint {role!r}.",
                f"It has: {', '.join(row.checkpoints) or 'none'}.",
            )
        found[role] = value
    return found


class EngineChoice(StrEnum):
    """What carries batches to scorers."""

    LOCAL = "local"
    RAY = "ray"


EngineOption = Annotated[
    EngineChoice,
    typer.Option(
        "--engine", help="This process, or Ray: one actor per GPU, or per slot of CPU cores."
    ),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        help="Running Ray cluster: auto or HOST:PORT; without it Ray is started here.",
    ),
]
ActorsOption = Annotated[
    int | None,
    typer.Option("--actors", min=1, help="Ray actors; by default as many as there is room for."),
]


@contextmanager
def make_engine(
    choice: EngineChoice,
    address: str | None,
    actors: int | None,
    scratch: Path,
    *,
    gpus: float | None = None,
) -> Iterator[Engine]:
    """An engine that serves any number of runs; what it started is ended with the context."""
    if choice is EngineChoice.LOCAL:
        for name, value in (("--ray-address", address), ("--actors", actors)):
            if value is not None:
                raise typer.BadParameter("only with --engine ray", param_hint=name)
        yield LocalEngine()
        return
    # Only where it is wanted: to import Ray takes more than a second.
    from evaluator.scoring.ray_cluster import RayCluster, RayOptions  # noqa: PLC0415
    from evaluator.scoring.ray_engine import RayEngine  # noqa: PLC0415

    with RayCluster(address, scratch) as cluster:
        yield RayEngine(cluster, RayOptions(actors=actors, gpus=gpus))
