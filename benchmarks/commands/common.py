"""What the commands share: options, and how a benchmark is found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.prompt_sets.registry import load_prompt_sets, with_prompt_sets
from benchmarks.registry import find, load_registry
from benchmarks.schema import Benchmark

Name = Annotated[
    str, typer.Argument(help="Benchmark or prompt set, for example ts2; `list` shows all.")
]
Data = Annotated[
    Path | None,
    typer.Option("--data", envvar="ASSAY_DATA", help="Folder of benchmark data files."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def known() -> Mapping[str, Benchmark]:
    """Every benchmark of metrics, by name."""
    return load_registry()


def known_sets() -> Mapping[str, PromptSet]:
    """Every prompt set, by name."""
    return load_prompt_sets()


def named(name: str) -> Benchmark:
    """One benchmark, or one prompt set.

    Raises:
        SubmitterError: `unknown_benchmark`, listing the known names.
    """
    return find(with_prompt_sets(known(), known_sets()), name)


def print_json(content: object) -> None:
    """Print for programs."""
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
