"""`health`: how an installation is doing, for scripts, probes of containers and people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from benchmarks.errors import PlatformError
from evaluator.commands.common import DEFAULT_STORE, JsonOption, StoreOption, console
from evaluator.doctoring.queue import health_rows
from leaderboard.service.health import Health, Level
from leaderboard.service.looking import HealthWatch
from leaderboard.store.opening import StoreName


def health(
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    strict: Annotated[
        bool, typer.Option(help="Exit with 3 where it is degraded as well, not only where down.")
    ] = False,
) -> None:
    """Say how the installation is doing; exit 0, or 3 where it is down.

    Example: python -m evaluator health --store hub:my-org/assay --json
    """
    found = health_now(store)
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        console().print(Text(f"{found.status}: store {store}"))
        for row in health_rows(found, str(store)):
            told = f"{row.part}: {row.state}" + (f" {row.advice}" if row.advice else "")
            console().print(Text(told), soft_wrap=True)
    if found.status is Level.DOWN or (strict and found.status is not Level.OK):
        raise typer.Exit(PlatformError.exit_code)


def health_now(store: StoreName) -> Health:
    """The health of the installation that has this store.

    Raises:
        PlatformError: `no_store`, or what opening it raises.
    """
    check_there(store)
    return HealthWatch(store.open(), store.folder).health()


def check_there(store: StoreName) -> None:
    """Refuse the name of a folder in which there is no store, rather than make an empty one.

    Raises:
        PlatformError: `no_store`.
    """
    if not store.on_hub and not Path(store.folder, "public").is_dir():
        raise PlatformError(
            "no_store",
            f"There is no store in {store}.",
            "Name another with --store or ASSAY_STORE; the site and the first submission make one.",
        )
