"""Options that say where and how metrics are run, shared by the commands that score."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.errors import SubmitterError
from evaluator.scorers.registry import Runtime, ScorerRow
from evaluator.scoring.asking import Engine
from evaluator.scoring.engine import LocalEngine

if TYPE_CHECKING:
    from evaluator.metric import MetricSource


class Precision(StrEnum):
    """Of weights and forward pass."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


NameArgument = Annotated[str, typer.Argument(help="Built-in metric, for example clipscore-hessel.")]

CacheOption = Annotated[
    Path | None, typer.Option(help="Folder that keeps embeddings for later runs.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only so many pairs, to try it out.")]

RuntimeOf = Callable[[ScorerRow | None], Runtime]
"""How a metric is run, as the options of a command say; None stands for a scoring module."""


def range_of(known: ScorerRow | MetricSource) -> str:
    """Smallest and largest possible score, and which way is better."""
    low = "-∞" if known.low is None else f"{known.low:g}"
    high = "∞" if known.high is None else f"{known.high:g}"
    return f"{low}..{high}" + ("" if known.higher_is_better else ", lower is better")


def runtime_options(
    device: Annotated[str, typer.Option(help="As torch names it: cpu, cuda, cuda:1.")] = "cpu",
    dtype: Annotated[
        Precision | None, typer.Option(help="Precision; by default the metric's own.")
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=FOLDER", help="Folder in place of the Hub's; repeatable."),
    ] = None,
    revision: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=COMMIT", help="Commit in place of the kept one; repeatable."),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Question file, for metrics that ask.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")] = False,
    allow_pickle: Annotated[
        bool,
        typer.Option("--allow-pickle", help="Read weights that are pickles; they can run code."),
    ] = False,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Run code of the checkpoint's repository."),
    ] = False,
) -> RuntimeOf:
    """What the options ask for; paths become absolute, for an actor works elsewhere."""

    def runtime_of(row: ScorerRow | None) -> Runtime:
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

    return runtime_of


def with_runtime_options(
    command: Callable[..., None], *, without: Collection[str] = ()
) -> Callable[..., None]:
    """The command with `runtime_options` in the place of its parameter `runtime_of`."""
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(runtime_options, eval_str=True).parameters
    options = [one for name, one in shared.items() if name not in without]

    @wraps(command)
    def called(**given: Any) -> None:
        chosen = {one.name: given.pop(one.name) for one in options}
        command(**given, runtime_of=runtime_options(**chosen))

    every = [
        one
        for name, parameter in own.parameters.items()
        for one in (options if name == "runtime_of" else [parameter])
    ]
    called.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in every]
    )
    return called


def by_role(row: ScorerRow | None, given: Sequence[str], option: str) -> dict[str, str]:
    """ROLE=VALUE by role; a value alone is of the role `model`."""
    found = {}
    name, known = (row.name, row.checkpoints) if row else ("a scoring module", {})
    for text in given:
        head, equals, tail = text.partition("=")
        role, value = (head, tail) if equals else ("model", text)
        if role not in known:
            raise SubmitterError(
                "unknown_role",
                f"{option} {text}: {name} has no checkpoint {role!r}.",
                f"It has: {', '.join(known) or 'none'}.",
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
