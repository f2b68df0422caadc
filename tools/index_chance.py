"""What metrics that guess reach on the headline of a benchmark, by its own protocol.

    python -m tools.index_chance BENCHMARK ... [--data FOLDER] [--draws 200] [--seed 0]

Each draw is a metric whose scores are independent of everything, uniform in 0..1 and as good as
never tied. Printed are the mean of the headline over the draws, its standard error, the spread of
single draws and the largest of them. The means are the `chance` of the cards' scales; an index
that took another figure would give a guess more or less than nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.arrays import FloatArray
from benchmarks.registry import find, load_registry
from benchmarks.schema import Answers, Benchmark, ScoreTable

AT_ONCE = 20
"""Metrics per table, so that the memory a protocol needs for one table stays small."""


def guesses(answers: Answers, draws: int, rng: np.random.Generator) -> ScoreTable:
    """Scores of metrics that guess, uniform in 0..1, one column per draw."""
    scores = rng.random((len(answers.pair_ids), draws))
    names = [f"guess {i}" for i in range(draws)]
    return ScoreTable(pd.DataFrame(scores, index=list(answers.pair_ids), columns=names))


def headlines(benchmark: Benchmark, answers: Answers, table: ScoreTable) -> FloatArray:
    """The headline of every metric of the table, shape (metrics,)."""
    card = benchmark.card
    rows = benchmark.measure(table, answers, benchmark.plan(answers, n_resamples=1)).rows
    found = [row.value for row in rows if row.skill is None and card.headline.matches(row)]
    return np.array(found, np.float64)


def guessed(benchmark: Benchmark, data: Path | None, draws: int, seed: int) -> FloatArray:
    """Headlines of so many guessing metrics, shape (draws,)."""
    answers = benchmark.answers(data)
    rng = np.random.default_rng(seed)
    sizes = [min(AT_ONCE, draws - start) for start in range(0, draws, AT_ONCE)]
    parts = [headlines(benchmark, answers, guesses(answers, size, rng)) for size in sizes]
    return np.concatenate(parts)


def main(
    benchmarks: Annotated[list[str], typer.Argument(help="Names of benchmarks.")],
    data: Annotated[Path | None, typer.Option(envvar="ASSAY_DATA", help="Folder of data.")] = None,
    draws: Annotated[int, typer.Option(help="Metrics that guess.")] = 200,
    seed: Annotated[int, typer.Option(help="Of their scores.")] = 0,
) -> None:
    """Print what guessing metrics reach on the headline of each benchmark."""
    registry = load_registry()
    table = Table("benchmark", "draws", "mean", "error", "spread", "largest", box=None)
    for name in benchmarks:
        found = guessed(find(registry, name), data, draws, seed)
        spread = float(found.std(ddof=1))
        figures = (found.mean(), spread / np.sqrt(found.size), spread, found.max())
        table.add_row(name, str(found.size), *(f"{figure:.6f}" for figure in figures))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
