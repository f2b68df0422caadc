"""`settings`: every setting, its value, and where it came from."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.errors import SubmitterError
from benchmarks.settings.model import (
    SETTINGS,
    Origin,
    Setting,
    Value,
    settings_file,
    unknown_variables,
    values,
)
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, table

_EXAMPLE_HEAD = """\
# Settings of Assay. Remove the # before what you set. Kept as .assay/settings.toml it is found by
# itself; elsewhere, name it: ASSAY_SETTINGS=FILE. An option of a command and a variable of the
# environment (in brackets) come before what stands here.
#
# Secrets are best kept in files of their own, which can be changed without a restart:
# `secret_file = "/run/secrets/..."` instead of `secret = "..."`. Where this file holds one itself,
# nobody else may read it: chmod 600.
"""
_EXAMPLE_VALUES = {
    "data": "/srv/assay/data",
    "endpoints": "/srv/assay/endpoints.toml",
    "locks": "/srv/assay/locks",
    "wheels": "/srv/assay/wheels",
    "package_index": "https://packages.example.org/simple",
    "accepted_advisories": ["CVE-2025-32434"],
    "scratch": "/srv/assay/scratch",
    "user": "ada",
    "operators": ["hub:ada", "hub:grace"],
    "site.host": "127.0.0.1",
    "live.address": "https://my-org-assay.hf.space",
    "hub.token_path": "~/.cache/huggingface/token",
    "hub.endpoint": "https://huggingface.co",
    "hub.home": "~/.cache/huggingface",
    "jobs.image": "hf.co/spaces/my-org/assay",
    "jobs.questions": "my-org/assay-questions",
    "isolation.docker_host": "unix:///run/user/1000/docker.sock",
}


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
    typed = {"store": str(store), "data": str(data)}
    options = {name: text for name, text in typed.items() if _typed(ctx, name)}
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
                "variable": value.setting.variable,
                "key": value.setting.key,
                "value": value.text,
                "origin": str(value.origin),
                "where": value.file,
                "secret": value.setting.secret,
                "who": [str(reader) for reader in value.setting.readers],
                "text": value.setting.text,
                "problem": value.problem,
            }
            for value in found
        ],
    }


def _table(found: Sequence[Value]) -> Table:
    rows = []
    for value in found:
        setting = value.setting
        style = "bold red" if value.problem else "dim" if value.origin is Origin.DEFAULT else ""
        origin = f"{value.origin}: {value.file}" if value.file else str(value.origin)
        cells = (setting.variable, setting.key, value.text, origin)
        rows.append([Text(cell, style) for cell in cells])
    return table(("variable", "key in the file", "value", "from"), rows)


def example_file() -> str:
    """An example of the settings file: every key, explained, and none of them in force."""
    parts, table = [_EXAMPLE_HEAD], ""
    # A table holds all that follows it, so the keys of none come first.
    for setting in sorted((s for s in SETTINGS.values() if s.key), key=lambda s: "." in s.key):
        within, _, name = setting.key.rpartition(".")
        if within != table:
            table = within
            parts.append(f"[{table}]\n")
        parts.append("\n".join(_example_lines(setting, name)) + "\n")
    return "\n".join(parts)


def _example_lines(setting: Setting, name: str) -> Iterator[str]:
    text = f"{setting.text} [{setting.variable}; read by: {', '.join(setting.readers)}]"
    yield from textwrap.wrap(text, 96, initial_indent="# ", subsequent_indent="# ")
    if setting.routes_secrets:
        yield "# Taken only from a file that ASSAY_SETTINGS names."
    if setting.secret:
        yield f'# {name}_file = "/run/secrets/{setting.key.replace(".", "_")}"'
        return
    value = _EXAMPLE_VALUES.get(setting.key, setting.default)
    yield f"# {name} = {value:g}" if isinstance(value, float) else f"# {name} = {json.dumps(value)}"
