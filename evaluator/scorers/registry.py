"""Finds rows and families by looking at the folders; imports a family only to use it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scorers.device import check_device
from evaluator.scorers.family import Family, Loaded
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime

ROWS = Path(__file__).parent / "rows"


def load_rows(folder: Path = ROWS) -> Mapping[str, ScorerRow]:
    """All rows by name, those of a file together, in the files' order.

    Raises:
        PlatformError: `bad_scorer_row`, a row that does not fit, or a name that is there twice.
    """
    rows: dict[str, ScorerRow] = {}
    for path in sorted(folder.glob("*.toml")):
        for values in _tables(path):
            try:
                row = ScorerRow.model_validate(values)
            except ValidationError as error:
                raise PlatformError("bad_scorer_row", f"{path.name}: {_first(error)}.") from error
            if row.name in rows:
                raise PlatformError("bad_scorer_row", f"{path.name}: {row.name} is there twice.")
            rows[row.name] = row
    return rows


def _tables(path: Path) -> list[dict[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("scorer")
    except ValueError as error:
        raise PlatformError("bad_scorer_row", f"{path.name}: {error}.") from error
    if not isinstance(tables, list):
        raise PlatformError("bad_scorer_row", f"{path.name} holds no [[scorer]].")
    return tables


def find_row(name: str, rows: Mapping[str, ScorerRow]) -> ScorerRow:
    """The row of a name.

    Raises:
        SubmitterError: `unknown_scorer`, with the names most like it.
    """
    if name in rows:
        return rows[name]
    close = get_close_matches(name, rows, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(close)}?" if close else ""
    raise SubmitterError(
        "unknown_scorer",
        f"There is no built-in metric {name!r}.",
        f"{hint} `python -m evaluator scorers list` shows all.".strip(),
    )


def family_of(row: ScorerRow) -> Family[Any]:
    """The family of a row; imports its file, and with it what the file needs.

    Raises:
        PlatformError: `bad_scorer_row`, there is no such file.
    """
    name = f"evaluator.scorers.families.{row.family}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise PlatformError("bad_scorer_row", f"{row.name}: no family {row.family!r}.") from error
    family: Family[Any] = module.FAMILY
    return family


def load_scorer(row: ScorerRow, runtime: Runtime) -> Loaded:
    """Load a metric.

    Raises:
        SubmitterError: a device, a checkpoint or a question file that cannot be used.
        PlatformError: `bad_scorer_row`.
    """
    check_device(runtime.device)
    family = family_of(row)
    try:
        options = family.check(row)
    except ValidationError as error:
        raise PlatformError("bad_scorer_row", f"{row.name}: {_first(error)}.") from error
    return family.load(row, options, runtime)


def _first(error: ValidationError) -> str:
    """Where a row does not fit, and why."""
    found = error.errors()[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else str(found["msg"])
