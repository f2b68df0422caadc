"""The commands and options there are, and those that a piece of code names."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import typer.main
from typer._click.core import Command
from typer.core import TyperGroup

import benchmarks.__main__
import evaluator.__main__
from tests.conftest import REPOSITORY

_COMMAND = re.compile(r"\bpython3? -m ([\w.]+)([^|;&>\n]*)")
_PARAMETER = re.compile(r"^\s*(\w+): Annotated\[", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


@dataclass(frozen=True)
class Named:
    """A command as a document names it: the module, and the words behind it."""

    module: str
    words: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The long options among the words."""
        return tuple(word.partition("=")[0] for word in self.words if _OPTION.match(word))


def named_in(code: str) -> Iterator[Named]:
    """Every `python -m ...` of a piece of code."""
    for found in _COMMAND.finditer(code):
        words = re.sub(r"\s#.*", "", found[2]).replace("[", " ").replace("]", " ").split()
        yield Named(found[1], tuple(words))


def problem(named: Named) -> str:
    """Why there is no such command; empty where there is one."""
    tree = _trees().get(named.module)
    if tree is not None:
        return _problem_in(tree, named)
    if importlib.util.find_spec(named.module) is None:
        return f"there is no module {named.module}"
    if not named.module.startswith(("benchmarks", "evaluator", "tests", "leaderboard")):
        return ""
    lacking = [name for name in named.options if name not in _options_in_source(named.module)]
    return f"{named.module} has no {', '.join(lacking)}" if lacking else ""


def _problem_in(tree: Command, named: Named) -> str:
    command, words = tree, list(named.words)
    while isinstance(command, TyperGroup):
        if not words or words[0].startswith("-"):
            break
        # `hide|show` and `hide/show` stand for two commands.
        choices = re.split(r"[|/]", words.pop(0).strip("`.,:;()"))
        if choices in (["..."], ["…"]):
            return ""
        unknown = [choice for choice in choices if choice not in command.commands]
        if unknown:
            return f"python -m {named.module} has no command {unknown[0]!r}"
        command = command.commands[choices[-1]]
    known = options_of(command) | {"--help"}
    lacking = [name for name in named.options if name not in known]
    return f"{command.name} has no {', '.join(lacking)}" if lacking else ""


def options_of(command: Command) -> frozenset[str]:
    """Long options of a command, without those of commands below it."""
    return frozenset(
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    )


@cache
def every_option() -> frozenset[str]:
    """Long options of all commands together, those of plain modules too."""
    found = {"--help"}
    waiting = list(_trees().values())
    while waiting:
        command = waiting.pop()
        found |= options_of(command)
        if isinstance(command, TyperGroup):
            waiting += command.commands.values()
    for package in ("benchmarks", "evaluator"):
        for file in (REPOSITORY / package).rglob("*.py"):
            text = file.read_text("utf-8")
            if "argparse" in text or "typer" in text:
                found |= set(_OPTION.findall(text))
    return frozenset(found)


@cache
def _trees() -> dict[str, Command]:
    return {
        "evaluator": typer.main.get_command(evaluator.__main__.command_line()),
        "benchmarks": typer.main.get_command(benchmarks.__main__.command_line()),
    }


@cache
def _options_in_source(module: str) -> frozenset[str]:
    """Options named in a module's package: enough for the plain modules, which have few."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    origin = Path(spec.origin)
    files = origin.parent.rglob("*.py") if spec.submodule_search_locations else [origin]
    found = {"--help"}
    for file in files:
        text = file.read_text("utf-8")
        found |= {*_OPTION.findall(text)}
        found |= {f"--{name.replace('_', '-')}" for name in _PARAMETER.findall(text)}
    return frozenset(found)
