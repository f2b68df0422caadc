"""`models list` and `models forget`: what is kept on this machine of models that modules name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from benchmarks.command_line import JsonOption
from evaluator.commands.common import console, models_folder, table
from evaluator.doctoring import mib
from evaluator.hub.model_cache import ModelCache, model_of

app = typer.Typer(
    help="Models of the Hub that are kept on this machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def listed(as_json: JsonOption = False) -> None:
    """List the models that are kept here, the one that was used longest ago first.

    Example: python -m evaluator models list
    """
    models = ModelCache(models_folder()).models()
    if as_json:
        record = [
            {
                "model": model_of(one),
                "bytes": one.n_bytes,
                "last_used": _when(one.last_used).isoformat(),
                "in_use": one.in_use,
                "whole": one.whole,
            }
            for one in models
        ]
        typer.echo(json.dumps(record, indent=1))
        return
    rows = []
    for one in models:
        state = "in use" if one.in_use else "" if one.whole else "not fetched wholly"
        used = f"{_when(one.last_used):%Y-%m-%d %H:%M}"
        rows.append((Text(model_of(one), overflow="fold"), mib(one.n_bytes), used, state))
    console().print(table(("model", "size", "last used", "state"), rows))


@app.command()
def forget(
    model: Annotated[str, typer.Argument(help="As it is listed: owner/name@commit.")],
) -> None:
    """Remove a model from this machine; it is fetched again when it is needed.

    Example: python -m evaluator models forget openai/clip-vit-base-patch32@3d74acf...
    """
    freed = ModelCache(models_folder()).forget(model)
    console().print(Text(f"{mib(freed)} freed."))


def _when(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
