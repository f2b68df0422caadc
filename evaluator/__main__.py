"""`python -m evaluator`: the command line of submitters and operators."""

from __future__ import annotations

import sys

import typer

from benchmarks.command_line import run
from evaluator.commands.compare import compare
from evaluator.commands.demo import demo
from evaluator.commands.generate import generate
from evaluator.commands.meta import meta
from evaluator.commands.questions import app as questions
from evaluator.commands.scorers import scorers_app
from evaluator.commands.status import logs, status
from evaluator.commands.submit import submit
from evaluator.commands.work import doctor, worker


def command_line() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        help="Test text-to-image metrics: submit, run and measure them.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    for command in (submit, status, logs, meta, compare, generate, worker, doctor, demo):
        app.command()(command)
    app.add_typer(scorers_app(), name="scorers")
    app.add_typer(questions, name="questions")
    return app


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(command_line())


if __name__ == "__main__":
    sys.exit(main())
