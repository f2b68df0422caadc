"""`assay`, which is `python -m evaluator` too: the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from benchmarks.__main__ import command_line as benchmarks_command_line
from benchmarks.command_line import run, with_help_as_started
from evaluator.commands.ab import ab
from evaluator.commands.best_of_n import best_of_n
from evaluator.commands.check import check
from evaluator.commands.compare import compare
from evaluator.commands.croc import app as croc
from evaluator.commands.demo import demo
from evaluator.commands.doctor import doctor, health
from evaluator.commands.export import app as export
from evaluator.commands.generate import generate
from evaluator.commands.grid import grid
from evaluator.commands.init import init
from evaluator.commands.judges import judges, pin, unpin
from evaluator.commands.meta import meta
from evaluator.commands.models import app as models
from evaluator.commands.operate import (
    ban,
    clear,
    hide,
    ledger,
    policy,
    publish,
    quota,
    rerun,
    show,
    unban,
    withdraw,
)
from evaluator.commands.prompts import app as prompts
from evaluator.commands.questions import app as questions
from evaluator.commands.reevaluate import board_changes, reevaluate
from evaluator.commands.report import report
from evaluator.commands.score import score
from evaluator.commands.scorer_options import with_runtime_options
from evaluator.commands.scorers import scorers_app
from evaluator.commands.serve import serve
from evaluator.commands.settings import settings
from evaluator.commands.space import space
from evaluator.commands.status import logs, status
from evaluator.commands.store import store_app
from evaluator.commands.submit import submit
from evaluator.commands.train import train
from evaluator.commands.votes import app as votes
from evaluator.commands.watch import watch
from evaluator.commands.worker import worker
from evaluator.submission.receipts import assay_version

_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Begin": (demo,),
    "Submitters": (init, check, submit, status, logs, report, quota, withdraw, publish),
    "Without a store": (
        with_runtime_options(score),
        with_runtime_options(serve),
        with_runtime_options(ab, without=("checkpoint", "revision")),
        with_runtime_options(watch, without=("checkpoint", "revision")),
        meta,
        compare,
        generate,
        train,
    ),
    "Visitors": (board_changes, best_of_n),
    "Operators": (
        worker,
        doctor,
        health,
        settings,
        grid,
        reevaluate,
        rerun,
        clear,
        hide,
        show,
        ban,
        unban,
        policy,
        space,
        judges,
        pin,
        unpin,
        ledger,
    ),
}
_TYPED_AS = {board_changes: "moved"}
"""Commands whose functions have another name."""


def command_line() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        help="Test text-to-image metrics: submit, run and measure them.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_begin)
    for panel, commands in _PANELS.items():
        for command in commands:
            app.command(_TYPED_AS.get(command), rich_help_panel=panel)(command)
    app.add_typer(scorers_app(), name="scorers")
    app.add_typer(questions, name="questions")
    app.add_typer(prompts, name="prompts")
    app.add_typer(croc, name="croc")
    app.add_typer(votes, name="votes")
    app.add_typer(models, name="models")
    app.add_typer(export, name="export")
    app.add_typer(store_app(), name="store")
    app.add_typer(benchmarks_command_line(), name="bench")
    return app


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"assay {assay_version()}")
        raise typer.Exit


def _begin(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version of Assay."
        ),
    ] = False,
) -> None:
    """What all commands share."""


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(with_help_as_started(command_line()))


if __name__ == "__main__":
    sys.exit(main())
