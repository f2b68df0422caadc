"""`settings`: every setting, its value, and where it came from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.errors import SubmitterError
from benchmarks.settings.adopting import settings_file
from benchmarks.settings.example import example as example_file
from benchmarks.settings.fields import unknown_variables
from benchmarks.settings.values import Origin, Value, values
from evaluator.commands.common import (
    DEFAULT_STORE,
    DataOption,
    JsonOption,
    StoreOption,
    console,
)


def settings(
    ctx: typer.Context,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a settings file with every key explained.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print every setting, its value and where it came from; of secrets only that they are set.

    An option comes before a variable, a variable before the settings file, and that before the
    default. The file is .assay/settings.toml, or the one that ASSAY_SETTINGS names.

    Example: python -m evaluator settings --example > settings.toml
    """
    if example:
        typer.echo(example_file(), nl=False)
        return
    given = {"store": str(store), "data": str(data)}
    options = {name: text for name, text in given.items() if _typed(ctx, name)}
    found = values(os.environ, options)
    if as_json:
        typer.echo(json.dumps(_record(found), indent=1))
    else:
        file = settings_file(os.environ)
        console().print(Text(f"Settings file: {file or 'none'}"), _table(found))
    wrong = [value for value in found if value.problem]
    if wrong:
        raise SubmitterError(
            "bad_setting",
            " ".join(value.problem for value in wrong),
            "See what they may be: python -m evaluator settings --example",
        )


def _typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _record(found: Sequence[Value]) -> dict[str, Any]:
    file = settings_file(os.environ)
    return {
        "file": str(file) if file else None,
        "unknown": list(unknown_variables(os.environ)),
        "settings": [
            {
                "variable": value.field.about.variable,
                "key": value.field.about.key,
                "value": value.shown,
                "origin": str(value.origin),
                "where": value.where,
                "secret": value.field.about.secret,
                "who": [str(who) for who in value.field.about.who],
                "text": value.field.text,
                "problem": value.problem,
            }
            for value in found
        ],
    }


def _table(found: Sequence[Value]) -> Table:
    table = Table("variable", "key in the file", "value", "from")
    for value in found:
        about = value.field.about
        style = "bold red" if value.problem else "dim" if value.origin is Origin.DEFAULT else ""
        origin = f"{value.origin}: {value.where}" if value.where else str(value.origin)
        cells = (about.variable, about.key, value.shown, origin)
        table.add_row(*(Text(cell, style) for cell in cells))
    return table
