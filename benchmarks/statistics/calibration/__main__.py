"""`python -m benchmarks.statistics.calibration`: simulate, and print the tables of the report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.command_line import errors, run
from benchmarks.inference import versions
from benchmarks.statistics.calibration.designs import Design
from benchmarks.statistics.calibration.rates import Rates
from benchmarks.statistics.calibration.scenarios import Scenario, quick_scenarios, scenarios
from benchmarks.statistics.calibration.tables import markdown
from benchmarks.statistics.calibration.trials import BATCH, batch
from benchmarks.statistics.calibration.truths import Truth, truth

REPETITIONS = 4000
QUICK_REPETITIONS = 200
QUICK_SHARE = 0.2


def calibration(  # noqa: PLR0917 (a command's options are its function's arguments)
    quick: Annotated[bool, typer.Option(help="Four small scenarios, few repetitions.")] = False,
    repetitions: Annotated[
        int | None, typer.Option(min=2, help="Simulated benchmarks of each main scenario.")
    ] = None,
    only: Annotated[str, typer.Option(help="Scenarios whose name holds this.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Of all random numbers.")] = 4,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write here.")] = None,
    earlier: Annotated[
        list[Path] | None, typer.Option("--from", help="Only tabulate files of earlier runs.")
    ] = None,
) -> None:
    """Simulate benchmarks with known truth: coverage of intervals, rejections of tests."""
    if earlier:
        contents = [json.loads(file.read_text())["rates"] for file in earlier]
        print(markdown([Rates.from_json(one) for rates in contents for one in rates]))  # noqa: T201
        return
    chosen = [one for one in (quick_scenarios() if quick else scenarios()) if only in one.name]
    if not chosen:
        raise typer.BadParameter(f"no scenario has {only!r} in its name")
    wanted = repetitions or (QUICK_REPETITIONS if quick else REPETITIONS)
    before = time.process_time()
    found = simulated(chosen, wanted, seed, QUICK_SHARE if quick else 1.0)
    built_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    print(markdown(found))  # noqa: T201
    print(f"\nSeed {seed}; {built_with}; {time.process_time() - before:.0f} s CPU.")  # noqa: T201
    if json_file is not None:
        content = {"seed": seed, "versions": versions(), "rates": [r.to_json() for r in found]}
        json_file.write_text(json.dumps(content, indent=1))


def simulated(
    chosen: Sequence[Scenario], repetitions: int, seed: int, share: float = 1.0
) -> list[Rates]:
    """Rates of some scenarios, with progress on standard error.

    Args:
        chosen: what to simulate.
        repetitions: of each main scenario.
        seed: of all random numbers.
        share: of the size of the samples behind the truth.
    """
    known: dict[tuple[str, Design], Truth] = {}
    found = []
    columns = SpinnerColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn()
    remaining = TimeRemainingColumn(elapsed_when_finished=True), TextColumn("{task.description}")
    with Progress(*columns, *remaining, console=errors()) as progress:
        sizes = [_batches(one, repetitions) for one in chosen]
        weights = [one.design.n_clusters + 50.0 for one in chosen]
        bar = progress.add_task(
            "", total=sum(w * sum(n) for w, n in zip(weights, sizes, strict=True))
        )
        for scenario, of_batches, weight in zip(chosen, sizes, weights, strict=True):
            progress.update(bar, description=scenario.name)
            key = scenario.measure, scenario.design.with_clusters(0)
            if key not in known:
                known[key] = truth(*key, same=scenario.null, seed=seed, share=share)
            done = []
            for number, size in enumerate(of_batches):
                value = known[key].value
                done.append(batch(scenario, value, number=number, size=size, seed=seed))
                progress.advance(bar, weight * size)
            found.append(Rates.of(scenario, known[key], done))
    return found


def _batches(scenario: Scenario, repetitions: int) -> list[int]:
    """Sizes of the batches of a scenario."""
    left = max(int(repetitions * scenario.repetitions_share), 1)
    return [BATCH] * (left // BATCH) + ([left % BATCH] if left % BATCH else [])


def main() -> int:
    """Run the command; returns the exit code."""
    app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    app.command()(calibration)
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
