"""The report as Markdown tables: one row per scenario, percentages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.statistics.calibration.rates import COVERAGE, REJECTION, Rate, Rates

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


def markdown(found: Sequence[Rates]) -> str:
    """Tables: means over kinds of measures, coverage, rejection of a true null, and power.

    A rate outside its target is bold where it misses by more than two standard errors, and in
    italics where it misses by less.
    """
    null = [each for each in found if each.scenario.null]
    power = [each for each in found if not each.scenario.null]
    parts = [
        "### Means over scenarios of one kind",
        *_means(null),
        "",
        "### Coverage of 95 % intervals (target 94-96 %), first / second metric",
        *_coverage(null),
        "",
        "### Rejections of a true null hypothesis at 5 % (target 4.5-5.5 %)",
        *_rejection(null, REJECTION),
        *(["", "### Power at 5 %", *_rejection(power, None)] if power else []),
    ]
    return "\n".join(parts)


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
    """By kind of measure, kind of metrics and clusters; both metrics of a scenario count as one."""
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
