"""What the commands share: options, and how a benchmark is found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.registry import find, load_registry
from benchmarks.schema import Benchmark

Name = Annotated[str, typer.Argument(help="Benchmark, for example ts2; `list` shows all.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", envvar="ASSAY_DATA", help="Folder of benchmark data files."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def known() -> Mapping[str, Benchmark]:
    """Every benchmark, by name."""
    return load_registry()


def named(name: str) -> Benchmark:
    """One benchmark.

    Raises:
        SubmitterError: `unknown_benchmark`, listing the known names.
    """
    return find(known(), name)


def print_json(content: object) -> None:
    """Print for programs."""
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
