"""`python -m tools.compare_checkouts A B`: do two checkouts publish the same rows, bit for bit?

Each side publishes the demo into a store of its own and serves it; every board is read through
`/v1`, and every released scores table through `meta` and `compare`. Exits with 0 where all is
equal, 1 where it is not, 2 for wrong usage and 3 where a side does not run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table as Printed

from tools.checkout_rows import (
    INDEX,
    Side,
    SideError,
    read_bundle,
    read_demo,
    released_scores,
)
from tools.row_differences import Comparison, Difference, Level, Table, compare_tables

DIFFERENT, BROKEN = 1, 3
SHOWN_PER_BOARD = 5
LONGEST_VALUE = 80
_WIDTH = 160


class Part(StrEnum):
    """What of a checkout is compared."""

    DEMO = "demo"
    BUNDLE = "bundle"


def main(
    a: Annotated[str, typer.Argument(help="A checkout's folder, or a revision of this one.")],
    b: Annotated[str, typer.Argument(help="Likewise; what it adds to A's columns is allowed.")],
    python: Annotated[
        Path | None,
        typer.Option(help="Interpreter of both. Without: .venv/bin/python of each, or this one."),
    ] = None,
    only: Annotated[Part | None, typer.Option(help="Compare only this part.")] = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="How far floats may be apart; 0: not one bit.")
    ] = 0.0,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A further field to leave out; repeatable.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep stores, logs and rows in this new folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Compare the published rows of two checkouts, bit for bit.

    Example: python -m tools.compare_checkouts HEAD .
    """
    progress = Console(stderr=True, highlight=False)
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise typer.BadParameter(f"{keep} is not empty", param_hint="--keep")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="assay-compare-")))
        folder = keep or scratch / "kept"
        sides = []
        for name, given in (("A", a), ("B", b)):
            checkout = stack.enter_context(checkout_of(given, name))
            own = (folder / name).absolute()
            own.mkdir(parents=True)
            sides.append(Side(name, checkout, interpreter_of(checkout, python), own, scratch))
        try:
            found, notes = compare_sides(
                *sides, progress=progress, only=only, tolerance=tolerance, ignored=ignore or ()
            )
        except SideError as error:
            progress.print(f"error: {error}", markup=False, soft_wrap=True)
            if error.log:
                progress.print(error.log, markup=False, soft_wrap=True)
            raise typer.Exit(BROKEN) from error
    if as_json:
        typer.echo(json.dumps(record_of(found, notes, (a, b)), indent=1))
    else:
        show(found, notes)
    if not found.equal:
        raise typer.Exit(DIFFERENT)


@contextmanager
def checkout_of(given: str, name: str) -> Iterator[Path]:
    """The folder of a checkout; of a revision an export, which is removed afterwards."""
    folder = Path(given).absolute()
    if folder.is_dir():
        yield _checked(folder, given, name)
        return
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}")
    root = _git("rev-parse", "--show-toplevel")
    if not commit or not root:
        raise typer.BadParameter(f"{given} is neither a folder nor a revision", param_hint=name)
    with TemporaryDirectory(prefix="assay-revision-") as place:
        archive, tree = Path(place) / "tree.tar", Path(place) / "tree"
        _git("-C", root, "archive", "--format=tar", f"--output={archive}", commit)
        if not archive.is_file():
            raise typer.BadParameter(f"git does not export {given}", param_hint=name)
        with tarfile.open(archive) as packed:
            packed.extractall(tree, filter="data")
        archive.unlink()
        yield _checked(tree, given, name)


def _checked(folder: Path, given: str, name: str) -> Path:
    if not (folder / "app.py").is_file() or not (folder / "evaluator").is_dir():
        raise typer.BadParameter(f"{given} is no checkout of Assay", param_hint=name)
    return folder


def _git(*words: str) -> str:
    command = ["git", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def interpreter_of(checkout: Path, given: Path | None) -> Path:
    """The interpreter that runs a checkout: the given one, its own, or this one."""
    own = checkout / ".venv" / "bin" / "python"
    chosen = given or (own if own.exists() else Path(sys.executable))
    # Links are not followed: the place of an interpreter says which packages it has.
    return chosen.absolute() if len(chosen.parts) > 1 else chosen


def compare_sides(
    a: Side,
    b: Side,
    *,
    progress: Console,
    only: Part | None = None,
    tolerance: float = 0.0,
    ignored: Sequence[str] = (),
) -> tuple[Comparison, list[str]]:
    """Run both sides, one after the other, and compare their rows."""
    listed = {side.name: released_scores(side) for side in (a, b)}
    missing = [f"{name} has no bundle ({INDEX})" for name, one in listed.items() if one is None]
    if missing and only is Part.BUNDLE:
        raise SideError("; ".join(missing))
    read: list[tuple[Table, ...]] = []
    for side in (a, b):
        started = time.monotonic()
        with progress.status(side.name) as status:
            say = partial(_update, status, side.name)
            tables = read_demo(side, say) if only is not Part.BUNDLE else ()
            if only is not Part.DEMO and not missing:
                tables += read_bundle(side, listed[side.name] or (), say)
        rows = json.dumps([asdict(one) for one in tables], indent=1)
        (side.folder / "rows.json").write_text(rows)
        took = time.monotonic() - started
        progress.print(f"{side.name}: {len(tables)} tables in {took:.0f} s", markup=False)
        read.append(tables)
    found = compare_tables(*read, tolerance=tolerance, ignored=ignored)
    return found, [] if only is Part.DEMO else missing


def _update(status: Status, name: str, text: str) -> None:
    status.update(escape(f"{name}: {text}"))


def record_of(found: Comparison, notes: list[str], names: tuple[str, str]) -> dict[str, Any]:
    """The comparison as JSON, with every difference."""
    return {
        "equal": found.equal,
        "a": names[0],
        "b": names[1],
        "notes": [*notes, *found.notes],
        "compared": {kind: asdict(count) for kind, count in found.counts.items()},
        "per_field": found.per_field(),
        "differences": [asdict(one) for one in found.differences],
    }


def show(found: Comparison, notes: list[str]) -> None:
    """Print what was compared, then the first differences of each board, or `equal`."""
    out = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, markup=False)
    compared = Printed("compared", "tables", "rows in A", "rows in B", "differences")
    for kind, count in found.counts.items():
        compared.add_row(kind, *(f"{n:,}" for n in asdict(count).values()))
    out.print(compared)
    for note in (*notes, *found.notes):
        out.print(f"note: {note}")
    for board, n in Counter(one.board for one in found.differences).items():
        out.print(f"{board}: {n:,} differences")
        here = [one for one in found.differences if one.board == board]
        for one in here[:SHOWN_PER_BOARD]:
            out.print(f"  {describe(one)}", soft_wrap=True)
        if n > SHOWN_PER_BOARD:
            out.print(f"  and {n - SHOWN_PER_BOARD:,} more (--json has all)")
    if found.equal:
        out.print("equal")
        return
    fields = Printed("field", "differences")
    for name, n in found.per_field().items():
        fields.add_row(name, f"{n:,}")
    out.print(fields)


def describe(one: Difference) -> str:
    """A difference in one line."""
    where = " | ".join(part for part in (one.table, one.row, one.field) if part)
    if one.level is not Level.VALUE:
        return f"{where or one.board}: {one.level} only in {one.only_in}"
    return f"{where}: {_short(one.a)} in A, {_short(one.b)} in B"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


if __name__ == "__main__":
    typer.run(main)
