"""Makes the figures of the guides: `python -m tools.figures`.

Each is computed with the code of the boards, from the bundled scorers on the demo split or from a
simulation that the text states, and comes out the same each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from benchmarks.command_line import run
from tools.figures import croc, intervals, models, prompt_sets, ranks, training

FIGURES: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "clusters": intervals.clusters_or_pairs,
        "coverage": intervals.coverage,
        "missing": intervals.missing_scores,
        "paired-test": ranks.paired_test,
        "joint-tests": ranks.joint_tests,
        "rank-ranges": ranks.rank_ranges,
        "tiers": ranks.tiers,
        "index": ranks.index,
        "trusted": models.trusted,
        "contradiction": models.contradiction,
        "dominance": models.dominance_ratio,
        "seeds": models.seeds,
        "croc-coverage": croc.coverage,
        "prompt-set": prompt_sets.balanced,
        "training": training.loss_and_held_out,
    }
)
"""By the name of its file."""


def make(
    to: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("docs/figures"),
) -> None:
    """Write every figure as SVG.

    Example: python -m tools.figures --to docs/figures
    """
    to.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        (to / f"{name}.svg").write_text(draw(), encoding="utf-8")
        typer.echo(to / f"{name}.svg")


def main() -> int:
    """Run the command; returns the exit code."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(make)
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
