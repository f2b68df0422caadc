"""Command `python -m tools.calibration`: the simulations, and the tables of their report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
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
from tools.calibration.boards import (
    BoardRates,
    BoardScenario,
    board_scenarios,
    board_table,
    quick_boards,
    simulated_boards,
)
from tools.calibration.designs import Design
from tools.calibration.scenarios import Scenario, Truth, quick_scenarios, scenarios, truth
from tools.calibration.trials import BATCH, COVERAGE, REJECTION, Rate, Rates, batch

TESTS = ("sign flips", "less bias", "PERM-BOTH", "t", "Wilcoxon")
KINDS = {
    "Pearson": "correlations",
    "Spearman": "correlations",
    "Kendall": "correlations",
    "accuracy": "means",
    "chain rank": "means",
}
"""Measures that are summarised together; the others stand alone."""
_METHODS = ("assay", "bca", "percentile")
_WHAT = ("measure", "metrics", "clusters", "items", "gold / score levels")


def markdown(found: Sequence[Rates], boards: Sequence[BoardRates] = ()) -> str:
    """Tables: means over kinds of measures, coverage, rejections, power, and boards of metrics.

    A rate outside its target is bold where it misses by more than two standard errors, and in
    italics where it misses by less.
    """
    parts = [*(_of_values(found) if found else ()), *(_of_boards(boards) if boards else ())]
    return "\n".join(parts)


def _of_boards(boards: Sequence[BoardRates]) -> Iterator[str]:
    yield "### Boards of metrics: false orders, ranges that hold all ranks, pairs told apart"
    head, *rows = board_table(boards)
    yield from _head(*head)
    yield from (_line(*row) for row in rows)


def _of_values(found: Sequence[Rates]) -> list[str]:
    null = [each for each in found if each.scenario.null]
    power = [each for each in found if not each.scenario.null]
    return [
        "### Means over scenarios of one kind",
        *_means(null),
        "",
        "### Coverage of 95 % intervals (target 94-96 %), first / second metric",
        *_coverage(null),
        "",
        "### Rejections of a true null hypothesis at 5 % (target 4.5-5.5 %)",
        *_rejection(null, REJECTION),
        *(["", "### Power at 5 %", *_rejection(power, None)] if power else []),
        "",
    ]


def _coverage(found: Sequence[Rates]) -> Iterator[str]:
    yield from _head(*_WHAT, "Assay", "plain BCa", "percentile", "± se", "above truth", "bias / sd")
    for each in found:
        error = max(rate.error for rate in each.coverage["assay"])
        yield _line(
            *_what(each),
            *(" / ".join(_shown(r, COVERAGE) for r in each.coverage[name]) for name in _METHODS),
            f"{100 * error:.2f}",
            " / ".join(_shown(rate, None) for rate in each.above),
            " / ".join(f"{bias:+.2f}" for bias in each.bias),
        )


def _rejection(found: Sequence[Rates], target: tuple[float, float] | None) -> Iterator[str]:
    yield from _head(*_WHAT, *TESTS, "± se", "repetitions")
    for each in found:
        rates = (each.rejection.get(test) for test in TESTS)
        yield _line(
            *_what(each),
            *("" if rate is None else _shown(rate, target) for rate in rates),
            f"{100 * each.rejection['sign flips'].error:.2f}",
            str(each.repetitions),
        )


def _means(found: Sequence[Rates]) -> Iterator[str]:
    """Means by kind of measure, kind of metrics and clusters; both metrics count as one."""
    yield from _head("measures", "metrics", "clusters", *_METHODS, "± se", *TESTS, "± se")
    groups: dict[tuple[str, str, int], list[Rates]] = {}
    for each in found:
        kind = KINDS.get(each.scenario.measure, each.scenario.measure)
        key = kind, each.scenario.noises, each.scenario.design.n_clusters
        groups.setdefault(key, []).append(each)
    for (kind, noises, n_clusters), group in groups.items():
        covered = {name: _mean_coverage(group, name) for name in _METHODS}
        tests = {name: _mean_rejection(group, name) for name in TESTS}
        flips = tests["sign flips"]
        yield _line(
            *(kind, noises, str(n_clusters)),
            *(_shown(rate, COVERAGE) for rate in covered.values()),
            f"{100 * covered['assay'].error:.2f}",
            *("" if rate is None else _shown(rate, REJECTION) for rate in tests.values()),
            "" if flips is None else f"{100 * flips.error:.2f}",
        )


def _mean_coverage(group: Sequence[Rates], method: str) -> Rate:
    pairs = [each.coverage[method] for each in group]
    # The metrics of one sample are not independent: their mean has the error of one of them.
    halves = (Rate.mean(pair) for pair in pairs)
    errors = (max(one.error, other.error) for one, other in pairs)
    return Rate.mean([Rate(r.value, error) for r, error in zip(halves, errors, strict=True)])


def _mean_rejection(group: Sequence[Rates], test: str) -> Rate | None:
    rates = [each.rejection[test] for each in group if test in each.rejection]
    return Rate.mean(rates) if rates else None


def _what(found: Rates) -> tuple[str, ...]:
    design, scenario = found.scenario.design, found.scenario
    fewest, most = design.sizes
    items = str(fewest) if fewest == most else f"{fewest}-{most}"
    if design.misjudged:
        items += f", {'EvalMi, ' if design.kind == 'evalmi' else ''}misjudged {design.misjudged}"
    return scenario.measure, scenario.noises, str(design.n_clusters), items, scenario.ties


def _shown(rate: Rate, target: tuple[float, float] | None) -> str:
    number = f"{100 * rate.value:.1f}"
    if target is None or rate.within(target):
        return number
    return f"*{number}*" if rate.within(target, 2.0) else f"**{number}**"


def _head(*names: str) -> Iterator[str]:
    yield _line(*names)
    yield _line(*("---" for _ in names))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


REPETITIONS = 4000
QUICK_REPETITIONS = 200
QUICK_SHARE = 0.2
BOARDS = 4
"""So many times fewer boards of metrics than benchmarks of two."""


def calibration(
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
        contents = [json.loads(file.read_text()) for file in earlier]
        values = [Rates.from_json(one) for content in contents for one in content["rates"]]
        boards = [BoardRates.from_json(one) for content in contents for one in content["boards"]]
        print(markdown(values, boards))  # noqa: T201
        return
    chosen = [one for one in (quick_scenarios() if quick else scenarios()) if only in one.name]
    of_boards = [
        one for one in (quick_boards() if quick else board_scenarios()) if only in one.name
    ]
    if not chosen and not of_boards:
        raise typer.BadParameter(f"no scenario has {only!r} in its name")
    wanted = repetitions or (QUICK_REPETITIONS if quick else REPETITIONS)
    before = time.process_time()
    share = QUICK_SHARE if quick else 1.0
    found = simulated(chosen, wanted, seed, share)
    boards = boards_simulated(of_boards, max(2, wanted // BOARDS), seed, share)
    built_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    print(markdown(found, boards))  # noqa: T201
    print(f"\nSeed {seed}; {built_with}; {time.process_time() - before:.0f} s CPU.")  # noqa: T201
    if json_file is not None:
        content = {
            "seed": seed,
            "versions": versions(),
            "rates": [one.to_json() for one in found],
            "boards": [one.to_json() for one in boards],
        }
        json_file.write_text(json.dumps(content, indent=1))


def simulated(
    chosen: Sequence[Scenario], repetitions: int, seed: int, share: float = 1.0
) -> list[Rates]:
    """Rates of some scenarios, with progress on standard error; `share` as in `truth`."""
    known: dict[tuple[str, Design], Truth] = {}
    found = []
    with _progress() as progress:
        sizes = [_batches(one, repetitions) for one in chosen]
        weights = [one.design.n_clusters + 50.0 for one in chosen]
        bar = progress.add_task(
            "", total=sum(w * sum(n) for w, n in zip(weights, sizes, strict=True))
        )
        for scenario, of_batches, weight in zip(chosen, sizes, weights, strict=True):
            progress.update(bar, description=scenario.name)
            key = scenario.measure, scenario.limit
            if key not in known:
                known[key] = truth(*key, same=scenario.null, seed=seed, share=share)
            done = []
            for number, size in enumerate(of_batches):
                value = known[key].value
                done.append(batch(scenario, value, number=number, size=size, seed=seed))
                progress.advance(bar, weight * size)
            found.append(Rates.of(scenario, known[key], done))
    return found


def boards_simulated(
    chosen: Sequence[BoardScenario], repetitions: int, seed: int, share: float = 1.0
) -> list[BoardRates]:
    """Rates of some boards, with progress on standard error."""
    found = []
    with _progress() as progress:
        sizes = [max(2, int(repetitions * one.repetitions_share)) for one in chosen]
        bar = progress.add_task("", total=sum(sizes))
        for scenario in chosen:
            progress.update(bar, description=scenario.name)
            advance = partial(progress.advance, bar)
            found.append(simulated_boards(scenario, repetitions, seed, share, advance))
    return found


def _progress() -> Progress:
    columns = SpinnerColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn()
    remaining = TimeRemainingColumn(elapsed_when_finished=True), TextColumn("{task.description}")
    return Progress(*columns, *remaining, console=errors())


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
