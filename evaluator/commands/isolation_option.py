"""Option of the isolation backend, for the commands that run code."""

from __future__ import annotations

from typing import Annotated

import typer

from evaluator.isolation.gate import IsolationChoice
from evaluator.isolation.layers import Layer

IsolationOption = Annotated[
    IsolationChoice,
    typer.Option(
        "--isolation",
        help="What isolates the code that is scored. `none` is for your own code alone: it can read "
        "your files and reach the network, and its results get no ranks.",
    ),
]

RequireOption = Annotated[
    list[Layer] | None,
    typer.Option(
        "--require",
        help="Take strangers' code only where this layer holds, e.g. 'memory: cgroup'; repeatable.",
    ),
]
