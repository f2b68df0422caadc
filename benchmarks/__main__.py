"""`python -m benchmarks`, which is `assay bench` too: what is measured here."""

from __future__ import annotations

import sys

import typer

from benchmarks.command_line import run
from benchmarks.commands.check_card import check
from benchmarks.commands.describe import describe, list_benchmarks
from benchmarks.commands.files import fetch, pairs, prompts, questions
from benchmarks.commands.new_card import new


def command_line() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        help="The benchmarks Assay knows: list them, fetch their data, list pairs, export prompts and questions.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.command("list")(list_benchmarks)
    for command in (new, check, describe, fetch, pairs, prompts, questions):
        app.command()(command)
    return app


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(command_line())


if __name__ == "__main__":
    sys.exit(main())
