"""`doctor` and `health`: what an installation can do, what it lacks, and how it is doing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.errors import AssayError, PlatformError
from benchmarks.registry import load_registry
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, models_folder, table
from evaluator.commands.worker_loop import scratch_of
from evaluator.doctoring import (
    Row,
    benchmark_rows,
    boards_rows,
    broken_record_rows,
    cache_rows,
    disk_rows,
    environment_rows,
    health_rows,
    hub_rows,
    isolation_rows,
    model_rows,
    released_rows,
    settings_rows,
)
from evaluator.environments.cache import EnvironmentCache
from evaluator.hub.model_cache import ModelCache
from evaluator.isolation.availability import machine_isolation
from leaderboard.governance.authentication import os_user
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import cards_of
from leaderboard.service.health import Health, Level
from leaderboard.service.polling import HealthWatch
from leaderboard.store.interface import Store
from leaderboard.store.opening import StoreName


def doctor(
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    rebuild: Annotated[
        bool,
        typer.Option(help="Build the boards anew from events and results, and compare them."),
    ] = False,
    repair: Annotated[
        bool, typer.Option(help="The same, and write them where they differ.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what this installation can do and what it lacks; exit 3 where something is broken.

    Example: python -m evaluator doctor --rebuild
    """
    rows = [*_here(store, data), *_store_rows(store, rebuild=rebuild or repair, repair=repair)]
    if as_json:
        typer.echo(json.dumps([row._asdict() for row in rows], indent=1))
    else:
        styled = [
            [Text(cell, "bold red" if row.broken else "") for cell in row[:3]] for row in rows
        ]
        console().print(table(("part", "state", "what to do"), styled))
    if any(row.broken for row in rows):
        raise typer.Exit(PlatformError.exit_code)


def _here(store: StoreName, data: Path | None) -> Iterator[Row]:
    """Of this machine."""
    models = models_folder()
    yield from settings_rows(os.environ, os_user())
    yield from isolation_rows(machine_isolation(store.folder.resolve()))
    yield from released_rows()
    yield from benchmark_rows(load_registry(), data)
    yield from disk_rows({"the store": store.folder.resolve(), "models": models})
    yield from model_rows(ModelCache(models))
    yield from environment_rows(EnvironmentCache.of_settings(os.environ))
    given = os.environ.get("ASSAY_SCRATCH", "").strip()
    scratch = scratch_of(store, Path(given) if given else None)
    yield from cache_rows(store.folder.resolve(), scratch, os.environ, on_hub=store.on_hub)


def _store_rows(store: StoreName, *, rebuild: bool, repair: bool) -> Iterator[Row]:
    try:
        check_there(store)
        opened = store.open()
        yield from _parts_rows(store)
        if rebuild:  # Before health is judged: what is repaired is no problem any more.
            yield from _boards_rows(opened, repair=repair)
        yield from health_rows(HealthWatch(opened, store.folder).health(), str(store))
        yield from broken_record_rows(Ledger(opened))
    except AssayError as error:
        yield Row(f"store {store}", error.message, error.hint, broken=error.code != "no_store")


def _parts_rows(store: StoreName) -> Iterator[Row]:
    if not store.on_hub:
        return
    # Only here: the command line starts without the Hub's client.
    from leaderboard.store.hub.hub_store import HubParts  # noqa: PLC0415

    yield from hub_rows(HubParts(store.hub_name, store.folder), cards_of(load_registry()))


def _boards_rows(opened: Store, *, repair: bool) -> Iterator[Row]:
    try:
        yield from boards_rows(opened, cards_of(load_registry()), opened.clock(), repair=repair)
    except AssayError as error:
        yield Row("boards", f"cannot be built: {error.message}", error.hint, broken=True)


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
    """The health of the installation that has this store."""
    check_there(store)
    return HealthWatch(store.open(), store.folder).health()


def check_there(store: StoreName) -> None:
    """Refuse the name of a folder in which there is no store, rather than make an empty one."""
    if not store.on_hub and not Path(store.folder, "public").is_dir():
        raise PlatformError(
            "no_store",
            f"There is no store in {store}.",
            "Name another with --store or ASSAY_STORE; the site and the first submission make one.",
        )
