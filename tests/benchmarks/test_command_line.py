"""Ends of command lines: closed pipes (`| head -1`), exit codes, and errors that travel whole."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.command_line import NOBODY_READS
from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError

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


@pytest.mark.parametrize(
    ("way", "code", "said"),
    [
        *((way, NOBODY_READS, "") for way in ("echo", "table", "buffered", "--help")),
        ("refused", 1, "There is none."),
        ("ended", 3, ""),
    ],
)
def test_a_command_that_nobody_reads_ends_quietly_but_for_its_errors(
    way: str, code: int, said: str
) -> None:
    ended = unread("-c", COMMAND, way)
    assert ended.returncode == code
    assert said in ended.stderr if said else not ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("benchmarks", "list"), ("evaluator", "models"), ("benchmarks.errata", "--help")]
)
def test_the_command_lines_of_the_project_end_so(words: tuple[str, ...]) -> None:
    ended = unread("-m", *words)
    assert (ended.returncode, ended.stderr) == (NOBODY_READS, "")


@pytest.mark.parametrize("kind", [SubmitterError, TransientError, PlatformError])
@pytest.mark.parametrize("hint", ["Send another.", ""])
def test_an_error_goes_whole_to_another_process(kind: type[AssayError], hint: str) -> None:
    there = pickle.loads(pickle.dumps(kind("bad_file", "a.csv is empty.", hint)))
    assert type(there) is kind
    assert (there.code, there.message, there.hint) == ("bad_file", "a.csv is empty.", hint)
    assert str(there) == f"a.csv is empty. {hint}".strip()
