"""A command whose reader has seen enough (`| head -1`) ends quietly, whatever it prints with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.command_line import NOBODY_READS

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = """
import sys
import typer
from rich.console import Console
from benchmarks.command_line import run
from benchmarks.errors import SubmitterError

app = typer.Typer(pretty_exceptions_enable=False)

@app.command()
def echo() -> None:
    typer.echo("a line")

@app.command()
def table() -> None:
    Console().print("a line")

@app.command()
def buffered() -> None:
    sys.stdout.write("a line that is not flushed")

@app.command()
def refused() -> None:
    raise SubmitterError("no_such_thing", "There is none.")

@app.command()
def ended() -> None:
    raise typer.Exit(3)

sys.exit(run(app))
"""


def unread(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a standard output that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, *words],
            cwd=REPOSITORY,
            env={name: v for name, v in os.environ.items() if name != "PYTHONUNBUFFERED"},
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("way", ["echo", "table", "buffered", "--help"])
def test_it_ends_without_a_word_and_as_shells_say_it(way: str) -> None:
    ended = unread("-c", COMMAND, way)
    assert (ended.returncode, ended.stderr) == (NOBODY_READS, "")


def test_an_error_is_told_all_the_same_since_that_goes_elsewhere() -> None:
    ended = unread("-c", COMMAND, "refused")
    assert ended.returncode == 1
    assert "There is none." in ended.stderr


def test_an_exit_code_of_its_own_stands() -> None:
    assert unread("-c", COMMAND, "ended").returncode == 3


@pytest.mark.parametrize(
    "words", [("benchmarks", "list"), ("evaluator", "models"), ("benchmarks.errata", "--help")]
)
def test_the_command_lines_of_the_project_end_so(words: tuple[str, ...]) -> None:
    ended = unread("-m", *words)
    assert (ended.returncode, ended.stderr) == (NOBODY_READS, "")
