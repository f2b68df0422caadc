"""`docs/reference/commands.md`: every command with its options, as `--help` has them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.main import get_command

from evaluator.documenting.markdown import code, page, table, text

_INTRODUCTION = """\
Every command answers `--help`. They end with 0, or with 1 where the input is wrong, 2 where they are
used wrongly and 3 where Assay or the world outside is at fault; see [errors](errors.md). An option
with a variable in the last column is taken from there, or from the
[settings file](settings.md), where it is not given."""

_EXAMPLE = re.compile(r"\s*Examples?:\s*", re.IGNORECASE)


def commands_page(command_lines: Mapping[str, typer.Typer]) -> str:
    """The document.

    Args:
        command_lines: how each is called, to it.
    """
    parts = [
        part for called, app in command_lines.items() for part in _of(called, get_command(app), 2)
    ]
    return page("Commands", _INTRODUCTION, *parts)


def _of(called: str, command: Any, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, 4)} {called}"
    yield from _help(command)
    if hasattr(command, "commands"):
        for name, one in sorted(command.commands.items()):
            if not one.hidden:
                yield from _of(f"{called} {name}", one, level + 1)
        return
    rows = [row for option in command.params if (row := _row(option))]
    if rows:
        yield table(("option", "", "default", "variable"), rows)


def _help(command: Any) -> Iterator[str]:
    said = inspect.cleandoc(command.help or "").replace("\f", "")
    words, *examples = _EXAMPLE.split(said)
    for paragraph in words.strip().split("\n\n"):
        if paragraph.strip():
            yield text(paragraph)
    for example in examples:
        yield f"```text\n{inspect.cleandoc(example).strip()}\n```"


def _row(option: Any) -> list[str] | None:
    if getattr(option, "hidden", False) or option.name == "help":
        return None
    is_argument = option.param_type_name == "argument"
    names = (
        [option.metavar or option.name.upper()]
        if is_argument
        else [*option.opts, *option.secondary_opts]
    )
    taken = option.envvar if isinstance(option.envvar, str) else ""
    needed = " **Needed.**" if option.required else ""
    return [
        "<br>".join(code(name) for name in names),
        text(option.help or "") + needed,
        code(_default(option)),
        code(taken),
    ]


def _default(option: Any) -> str:
    value = option.default
    if value is None or callable(value) or value in ((), [], ""):
        return ""
    if isinstance(value, bool):
        return "" if not value else "yes"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
