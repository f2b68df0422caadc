"""The command line of the Re-Thinking measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from benchmarks.commands.layout import print_blocks, table_or_lines, write
from benchmarks.rethinking.generations import read_generations
from benchmarks.rethinking.report import report
from benchmarks.rethinking.significance import LEVEL
from benchmarks.rethinking.tables import listings_of
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES

app = typer.Typer(
    help="Ranks over seeds, one-step perturbation and significance of scored generations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
def rethinking(
    scores: Annotated[
        Path,
        typer.Argument(
            help="CSV file with the columns metric, model, seed, prompt_id, score and, "
            "optionally, perturbed_score; one line per score, see FORMAT.md of this package."
        ),
    ],
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Bootstrap resamples of the prompts.")
    ] = DEFAULT_RESAMPLES,
    level: Annotated[
        float, typer.Option("--level", min=0.0, max=1.0, help="Significance level of the t-test.")
    ] = LEVEL,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Print the measures of Re-Thinking for the generations of several models and seeds.

    With several seeds, models are compared and perturbations summed up twice: by prompt (the mean
    over its seeds) and by image. Trust the prompt lines. The images of one prompt are alike, so
    counting each by itself makes p-values too small and intervals too narrow.

    Example: python -m benchmarks.rethinking scores.csv
    """
    found = report(read_generations(scores), resamples, level)
    if as_json:
        write(json.dumps(found.to_json(), indent=1) + "\n")
        return
    console = Console()
    blocks = [b for listing in listings_of(found) for b in table_or_lines(listing, console.width)]
    drawn = f"Intervals: {found.n_resamples} resamples, generator seed {found.plan_seed}"
    print_blocks([*blocks, *map(Text, (*found.notes, drawn))], console)
