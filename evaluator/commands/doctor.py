"""`doctor`: what an installation can do, what it lacks, and whether its boards are right."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.errors import AssayError, PlatformError
from benchmarks.registry import load_registry
from evaluator.commands.common import (
    DEFAULT_STORE,
    DataOption,
    JsonOption,
    StoreOption,
    console,
    models_folder,
)
from evaluator.commands.health import check_there
from evaluator.commands.person import os_user
from evaluator.commands.worker_making import scratch_of
from evaluator.doctoring.boards import boards_rows
from evaluator.doctoring.hub_parts import hub_rows
from evaluator.doctoring.kept_rows import kept_rows
from evaluator.doctoring.machine import (
    benchmark_rows,
    disk_rows,
    isolation_rows,
    released_rows,
    shelf_rows,
)
from evaluator.doctoring.queue import broken_record_rows, health_rows
from evaluator.doctoring.rows import Row
from evaluator.doctoring.settings_rows import settings_rows
from evaluator.hub.model_shelf import ModelShelf
from evaluator.isolation.gate import machine_isolation
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import cards_of
from leaderboard.service.looking import HealthWatch
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
        console().print(_table(rows))
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
    yield from shelf_rows(ModelShelf(models))
    given = os.environ.get("ASSAY_SCRATCH", "").strip()
    scratch = scratch_of(store, Path(given) if given else None)
    yield from kept_rows(store.folder.resolve(), scratch, os.environ, on_hub=store.on_hub)


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

    yield from hub_rows(HubParts(store.hub_name, store.folder))


def _boards_rows(opened: Store, *, repair: bool) -> Iterator[Row]:
    try:
        yield from boards_rows(opened, cards_of(load_registry()), opened.clock(), repair=repair)
    except AssayError as error:
        yield Row("boards", f"cannot be built: {error.message}", error.hint, broken=True)


def _table(rows: Sequence[Row]) -> Table:
    table = Table("part", "state", "what to do")
    for row in rows:
        style = "bold red" if row.broken else ""
        table.add_row(*(Text(cell, style) for cell in row[:3]))
    return table
