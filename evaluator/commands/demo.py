"""`demo`: released results and the main job end to end on the demo split, then the app."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table

from benchmarks.command_line import DataOption
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.released.bundle import read_manifest
from benchmarks.schema import Benchmark
from benchmarks.settings.model import SETTINGS
from benchmarks.settings.model import read as read_settings
from evaluator.bundled import bundled_modules
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, stopped_in_words, table
from evaluator.commands.progress import run_bars
from evaluator.commands.worker_loop import make_worker
from evaluator.demo.simulated_models import DESCRIPTIONS, write_generations
from evaluator.isolation.availability import isolation_gate
from evaluator.reevaluating import reevaluate_at_start
from evaluator.submission.service import SubmissionService
from leaderboard.accounts import ASSAY
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.ledger.ledger import Ledger
from leaderboard.models.grid import images_to_score
from leaderboard.publication.index import leading_cells, nobody_leads
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.publication.snapshot import Board, Snapshot, read_snapshot
from leaderboard.records import Kind
from leaderboard.service.address import listens_at
from leaderboard.states import IN_WORK, WAITING, State
from leaderboard.store.interface import Store
from leaderboard.store.opening import StoreName

APP = Path(__file__).resolve().parents[2] / "app.py"
POLL_S = 0.5
FLOOR = "random-floor"  # Bundled metric whose scores are a hash of the picture
RESTART_AFTER_S = 3.0
STOPPED_WITHIN_S = 45.0  # A worker hands back what it holds before it ends
_GOES_ON = "What is published is kept: the same command goes on with the rest."


def demo(
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    serve: Annotated[bool, typer.Option(help="Serve the app afterwards.")] = True,
) -> None:
    """Publish released results, evaluate the bundled scorers on the demo split, serve the app.

    The boards of TS2, TIFA160 and GenAI Arena are made from scores that authors released; those of
    the demo split show how a submission is run. Needs no network, GPU or token. What is published
    already is not computed again.

    Example: python -m evaluator demo --no-serve
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    started = time.monotonic()
    if serve:
        _check_port(os.environ)
    opened, registry = store.open(), load_registry()
    _queue_metrics(opened, registry, data)
    _work_off(opened, store, registry, data)
    _clear_the_floor(opened, registry)
    _queue_models(opened, registry, data)
    _work_off(opened, store, registry, data)
    Publisher(opened, cards_of(registry)).publish_cards(opened.clock())
    _summarise(read_snapshot(opened.public))
    # Only here: it brings SciPy along, and every command would wait for that.
    from evaluator.commands.model_table import model_tables  # noqa: PLC0415

    for models in model_tables(opened, cards_of(registry)):
        console().print(models)
    console().print(f"Ready after {time.monotonic() - started:.1f} s.", highlight=False)
    failed = [
        s
        for s in Ledger(opened).statuses()
        if s.submission.account == ASSAY.key and s.state is State.FAILED
    ]
    for status in failed:
        console().print(f"{status.submission.name} failed: {status.reason} {status.hint}")
    if failed:
        raise typer.Exit(3)
    if serve:
        _serve(store, data)


def _check_port(environment: Mapping[str, str]) -> None:
    """Refuse a port that is taken now, and not when the boards are published."""
    settings = read_settings(environment)
    host, port = listens_at(settings), settings.port
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            raise SubmitterError(
                "port_unavailable",
                f"Cannot listen at {host}:{port}: {error.strerror}.",
                "Choose another port with PORT, or leave serving out with --no-serve.",
            ) from error


def _queue_metrics(opened: Store, registry: Mapping[str, Benchmark], data: Path | None) -> None:
    desk = SubmissionService(opened, registry, data, isolation_gate, opened.clock)
    for released in read_manifest().scores:
        desk.submit_released(released)
    for folder in bundled_modules():
        desk.submit_metric(folder, account=ASSAY)
    reevaluate_at_start(opened, registry, data)


def _queue_models(opened: Store, registry: Mapping[str, Benchmark], data: Path | None) -> None:
    """Models come last: a metric scores them once it may rank."""
    desk = SubmissionService(opened, registry, data, isolation_gate, opened.clock)
    with TemporaryDirectory(prefix="assay-") as place:
        for model in DESCRIPTIONS:
            folder = write_generations(model, Path(place) / model)
            desk.submit_generations(folder, account=ASSAY)


def _work_off(
    opened: Store, store: StoreName, registry: Mapping[str, Benchmark], data: Path | None
) -> None:
    waiting = [s for s in Ledger(opened).statuses() if s.state in WAITING | IN_WORK]
    pairs = {
        name: len(registry[name].questions(data).pairs)
        for name in {n for s in waiting for n in s.submission.benchmarks if n in registry}
        if registry[name].has_questions(data)
    }
    modules = [s for s in waiting if s.submission.kind is Kind.METRIC]
    total = sum(pairs.get(name, 0) for s in modules for name in s.submission.benchmarks)
    # Every bundled metric scores every model.
    images = (s.submission.images for s in waiting)
    total += len(bundled_modules()) * sum(images_to_score(one) for one in images if one)
    if not waiting:
        return
    with stopped_in_words(_GOES_ON), run_bars(total) as listener:
        make_worker(opened, store, registry, data, listener).run_all()


def _clear_the_floor(opened: Store, registry: Mapping[str, Benchmark]) -> None:
    """One grey level turns its scores, as of a lookup; it is meant to."""
    shown = read_snapshot(opened.public)
    acts = OperatorActions(opened, cards_of(registry), opened.clock)
    for entry in shown.entries.values() if shown else ():
        if entry.account == ASSAY.key and entry.metric == FLOOR and entry.suspected:
            acts.clear(entry.submission_id, ASSAY, "It is a floor: random on purpose.")


def _summarise(shown: Snapshot | None) -> None:
    if shown is None:
        return
    for title, simulated in (("Boards", False), ("Boards of simulated ratings", True)):
        boards = {n: one for n, one in shown.boards.items() if one.card.simulated is simulated}
        console().print(_leading_metrics(shown, boards, title))


def _leading_metrics(shown: Snapshot, boards: Mapping[str, Board], title: str) -> Table:
    rows = []
    for name, board in boards.items():
        ranking = board.slice(board.card.headline, None)
        if not ranking:
            rows.append((name, "(nothing published yet)", "", "", "0"))
            continue
        leading = leading_cells(board.card, ranking, shown.entries)
        if not leading:
            why = nobody_leads(board.card, ranking) or "(no order yet)"
            rows.append((name, why, "", "", str(len(ranking))))
            continue
        first = leading[0]
        info = board.card.measures[first.measure]
        ranks = f"{first.rank_low}-{first.rank_high}"
        value = f"{info.title} {first.value:.3f} [{first.ci_low:.3f}, {first.ci_high:.3f}]"
        rows.append((name, shown.entries[first.entry_id].metric, ranks, value, str(len(ranking))))
    return table(("board", "leads", "rank range", "value", "metrics"), rows, title)


def with_absolute_paths(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child in another folder; the name of a store is left as it is."""
    absolute = dict(environment)
    for variable, setting in SETTINGS.items():
        text = environment.get(variable, "").strip()
        if setting.path and text and not setting.at_import:
            absolute[variable] = str(Path(text).absolute())
    return absolute


def _serve(store: StoreName, data: Path | None) -> None:
    """Run the app and a worker side by side until told to stop."""
    # The children run in the project's folder: what was said relative to this one is resolved.
    environment = {**with_absolute_paths(os.environ), "ASSAY_STORE": str(store.absolute())}
    if data is not None:
        environment["ASSAY_DATA"] = str(data.resolve())
    commands = {
        "worker": [sys.executable, "-m", "evaluator", "worker"],
        "app": [sys.executable, str(APP)],
    }
    with _children(commands, environment) as children:
        while children["app"].poll() is None:
            time.sleep(POLL_S)
            if children["worker"].poll() is not None:
                console().print("The worker has died and is started again; its log is above.")
                time.sleep(RESTART_AFTER_S)
                children["worker"] = _start(commands["worker"], environment)
    code = children["app"].returncode
    if code not in (0, None, -signal.SIGTERM, -signal.SIGINT):
        raise typer.Exit(max(code, 1))


def _start(command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=dict(environment), cwd=APP.parent)  # noqa: S603 (our own)


@contextmanager
def _children(
    commands: Mapping[str, list[str]], environment: Mapping[str, str]
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start the commands; whatever ends this process ends them."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in commands.items():
            started[name] = _start(command, environment)
        yield started
    except KeyboardInterrupt:
        console().print("Stopping.")
    finally:
        for child in started.values():
            child.terminate()
        for child in started.values():
            try:
                child.wait(timeout=STOPPED_WITHIN_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        signal.signal(signal.SIGTERM, before)
