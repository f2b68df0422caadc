"""Choice of the engine: options of the commands that score."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from evaluator.scoring.asking import Engine
from evaluator.scoring.local import LocalEngine


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
    """An engine that serves any number of runs; what it started is ended with the context.

    Args:
        choice: which.
        address: of a Ray cluster; None starts Ray on this machine when it is first needed.
        actors: of Ray; None: as many as the cluster has room for.
        scratch: folder for the logs of a Ray that is started here.
        gpus: of an actor; None: one where the cluster has any.

    Raises:
        typer.BadParameter: an option of Ray for another engine.
    """
    if choice is EngineChoice.LOCAL:
        for name, value in (("--ray-address", address), ("--actors", actors)):
            if value is not None:
                raise typer.BadParameter("only with --engine ray", param_hint=name)
        yield LocalEngine()
        return
    # Only where it is wanted: to import Ray takes more than a second.
    ray_cluster = import_module("evaluator.scoring.ray_cluster")
    ray_engine = import_module("evaluator.scoring.ray_engine")
    ray_slots = import_module("evaluator.scoring.ray_cluster")
    with ray_cluster.RayCluster(address, scratch) as cluster:
        yield ray_engine.RayEngine(cluster, ray_slots.RayOptions(actors=actors, gpus=gpus))
