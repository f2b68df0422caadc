"""`assay`, which is `python -m evaluator` too: the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

from benchmarks.command_line import run, with_help_as_started

_PANELS: dict[str, dict[str, str]] = {
    "Begin": {"demo": "demo:demo"},
    "Submitters": {
        "init": "init:init",
        "check": "check:check",
        "submit": "submit:submit",
        "status": "status:status",
        "logs": "status:logs",
        "report": "report:report",
        "quota": "operate:quota",
        "withdraw": "operate:withdraw",
        "publish": "operate:publish",
    },
    "Without a store": {
        "score": "score:score",
        "serve": "serve:serve",
        "ab": "ab:ab",
        "watch": "watch:watch",
        "meta": "meta:meta",
        "compare": "compare:compare",
        "generate": "generate:generate",
        "train": "train:train",
    },
    "Visitors": {"moved": "reevaluate:board_changes", "best-of-n": "best_of_n:best_of_n"},
    "Operators": {
        "worker": "worker:worker",
        "doctor": "doctor:doctor",
        "health": "doctor:health",
        "settings": "settings:settings",
        "grid": "grid:grid",
        "reevaluate": "reevaluate:reevaluate",
        "rerun": "operate:rerun",
        "clear": "operate:clear",
        "hide": "operate:hide",
        "show": "operate:show",
        "ban": "operate:ban",
        "unban": "operate:unban",
        "policy": "operate:policy",
        "space": "space:space",
        "judges": "judges:judges",
        "pin": "judges:pin",
        "unpin": "judges:unpin",
        "ledger": "operate:ledger",
    },
}
"""Commands by the panel of the help in which they stand, with module and function."""
_GROUPS = {
    "scorers": "scorers:scorers_app",
    "questions": "questions:app",
    "prompts": "prompts:app",
    "croc": "croc:app",
    "votes": "votes:app",
    "models": "models:app",
    "export": "export:app",
    "store": "store:store_app",
    "bench": "benchmarks.__main__:command_line",
}
"""Groups of commands, with module and application, or the function that makes it."""
_RUNTIME_OPTIONS_WITHOUT: dict[str, tuple[str, ...]] = {
    "score": (),
    "serve": (),
    "ab": ("checkpoint", "revision"),
    "watch": ("checkpoint", "revision"),
}
"""Commands with the options of scoring, and which of them they lack."""


def command_line(only: str | None = None) -> typer.Typer:
    """All commands, or the one of this name or the group: what another needs is not imported."""
    app = typer.Typer(
        help="Test text-to-image metrics: submit, run and measure them.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_begin)
    known = {*_GROUPS, *(name for commands in _PANELS.values() for name in commands)}
    wanted = {only} & known or known
    for panel, commands in _PANELS.items():
        for name in (name for name in commands if name in wanted):
            app.command(name, rich_help_panel=panel)(_command(name, commands[name]))
    for name in (name for name in _GROUPS if name in wanted):
        found = _imported(_GROUPS[name])
        app.add_typer(found if isinstance(found, typer.Typer) else found(), name=name)
    return app


def _command(name: str, where: str) -> Callable[..., None]:
    command: Callable[..., None] = _imported(where)
    if name not in _RUNTIME_OPTIONS_WITHOUT:
        return command
    with_options = _imported("scorer_options:with_runtime_options")
    complete: Callable[..., None] = with_options(command, without=_RUNTIME_OPTIONS_WITHOUT[name])
    return complete


def _imported(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(module if "." in module else f"evaluator.commands.{module}"), name)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"assay {_imported('evaluator.submission.receipts:assay_version')()}")
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
    first = sys.argv[1] if len(sys.argv) > 1 else None
    return run(with_help_as_started(command_line(first)))


if __name__ == "__main__":
    sys.exit(main())
