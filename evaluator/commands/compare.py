"""`compare`: metric against metric by the tests of the boards, without a store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption, fits
from benchmarks.comparison import (
    LEVEL,
    Compared,
    corrected,
    correction_words,
    dominance_words,
    effect_words,
    evidence_words,
    figures,
    p_words,
    paired_words,
    plural,
    units_of,
    verdict,
)
from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.schema import Card, Selector
from benchmarks.statistics.resampling import seed_of
from evaluator.commands.common import Head, LowerIsBetterOption, aligned_table, console
from evaluator.commands.compare_metrics import (
    Permuted,
    SliceKey,
    column_words,
    contenders,
    measured_field,
    permuted,
    permuted_words,
)
from leaderboard.publication.measure_names import in_order, info, nearest, skill_title, token
from leaderboard.ranking.slices import Slice, mean_over_skills

_PERMUTE_HELP = (
    "Test rows that are one correlation over a pool of images (SRCC, KRCC, Pearson) by PERM-BOTH "
    "too: both metrics are standardised and swapped at random, cluster by cluster, which tests that "
    "they are exchangeable on every cluster. Boards flip the signs of the two metrics' "
    "contributions instead: that works for every measure, needs its long work per metric and not "
    "per pair, and keeps its level for scores of few steps, where PERM-BOTH rejects too seldom by "
    "SRCC. Otherwise the two agree, and over few clusters both reject too often where the errors "
    "of two metrics differ in kind (see tools/calibration/REPORT.md). KRCC of "
    "metrics with ties takes seconds per pair."
)


def compare(
    benchmark: Annotated[str, typer.Argument(help="Benchmark, for example ts2.")],
    more: Annotated[
        list[Path] | None, typer.Argument(help="Further scores files.", metavar="[FILE]...")
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--scores", help="Scores files, CSV or Parquet: two, or one of several columns."
        ),
    ] = None,
    data: DataOption = None,
    metric_a: Annotated[
        str | None, typer.Option(help="The metric of the first file that is compared.")
    ] = None,
    metric_b: Annotated[
        str | None, typer.Option(help="The metric of the second file, or of the only one.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="Measure to compare by; without it, the headline.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Variant of the measure.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the benchmark.")] = None,
    facet: Annotated[str | None, typer.Option(help="Facet of the measure.")] = None,
    skill: Annotated[
        list[str] | None, typer.Option(help="Skill; repeatable for the mean of several.")
    ] = None,
    skills: Annotated[bool, typer.Option("--skills", help="Show every skill too.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every variant, split and facet too.")
    ] = False,
    lower_is_better: LowerIsBetterOption = None,
    permute_scores: Annotated[bool, typer.Option("--permute-scores", help=_PERMUTE_HELP)] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two metrics, or each two of several, by the test of the boards.

    Several are tested together, as on the boards; two are tested alone.

    Example: python -m evaluator compare ts2 --scores a.csv b.csv --data data
    """
    paths = [*(scores or ()), *(more or ())]
    if not paths:
        raise typer.BadParameter("scores files are needed", param_hint="--scores")
    if len(paths) > 2 and (metric_a or metric_b):
        raise typer.BadParameter("--metric-a and --metric-b choose from one file or two")
    if len(paths) == 1 and bool(metric_a) != bool(metric_b):
        raise typer.BadParameter("of one file, give both --metric-a and --metric-b, or neither")
    target = find(load_registry(), benchmark)
    answers = target.answers(data)
    found = contenders(paths, (metric_a, metric_b), target, answers, tuple(lower_is_better or ()))
    field = measured_field(found, target, answers)
    asked = CompareRequest(measure, variant, split, facet, tuple(skill or ()), skills, everything)
    chosen = choose(field.slices, asked, target.card)
    rows = _rows(chosen, target.card, field.names)
    seed = seed_of(target.card.name, target.card.revision)
    second = permuted(rows, field, seed) if permute_scores else ()
    if as_json:
        records = [field.facts | row.to_json() for row in rows]
        if second:
            records = [a | b.to_json() for a, b in zip(records, second, strict=True)]
        typer.echo(json.dumps(records, indent=1))
        return
    out = console()
    report = field_report if len(found) > 2 else pair_report
    for block in report(rows, field.facts, target.card, out.width, second):
        out.print(block)


def _rows(chosen: Chosen, card: Card, names: Mapping[str, str]) -> tuple[Compared, ...]:
    """Each two of several metrics on one slice, or two of them on all that were chosen."""
    # It brings scipy.stats, which takes seconds to import and no other command needs.
    from leaderboard.ranking.comparing import Match, compare_all, compare_cells  # noqa: PLC0415

    if len(names) > 2:
        return compare_all(chosen.first, card, names)
    matches = [Match(one, 0, 1) for one in (chosen.first, *chosen.others)]
    return each_corrected(compare_cells(matches, card, names))


def each_corrected(rows: Sequence[Compared]) -> tuple[Compared, ...]:
    """The first row alone, skills over skills and measures over measures, as the page has them.

    So what is said of the first does not depend on how many others are shown.
    """
    first, *others = rows
    of_skills = [row.skill != first.skill for row in others]
    parts = {
        chosen: iter(
            corrected([row for row, by in zip(others, of_skills, strict=True) if by == chosen])
        )
        for chosen in (True, False)
    }
    return (first, *(next(parts[by]) for by in of_skills))


@dataclass(frozen=True)
class CompareRequest:
    """What was asked for; None and nothing mean the headline over all skills."""

    measure: str | None = None
    variant: str | None = None
    split: str | None = None
    facet: str | None = None
    skills: tuple[str, ...] = ()
    every_skill: bool = False
    everything: bool = False


@dataclass(frozen=True)
class Chosen:
    """The slice that is said in words, and those that stand in the table below it."""

    first: Slice
    others: tuple[Slice, ...]


def choose(slices: Mapping[SliceKey, Slice], asked: CompareRequest, card: Card) -> Chosen:
    """The slices that were asked for."""
    skills = _skills(slices, asked, card)
    available = [s for s, k in slices if k == skills[0] and all((s, o) in slices for o in skills)]
    first = _selector(available, asked, card)
    shown = in_order(card, available) if asked.everything else _one_each(available, first, card)
    others = [_mean(slices, selector, skills) for selector in shown if selector != first]
    if asked.every_skill:
        others += _by_skill(slices, first, skills, card, everything=asked.everything)
    return Chosen(_mean(slices, first, skills), tuple(others))


def _skills(
    slices: Mapping[SliceKey, Slice], asked: CompareRequest, card: Card
) -> tuple[str | None, ...]:
    known = list(dict.fromkeys(skill for _, skill in slices))
    for skill in asked.skills:
        if skill not in known:
            named = [name for name in known if name]
            raise SubmitterError(
                "unknown_skill",
                f"{card.name} has no skill {skill!r} that these metrics are measured by.",
                f"Known skills: {', '.join(named)}." if named else "It has no skills.",
            )
    if asked.skills:
        return tuple(dict.fromkeys(asked.skills))
    return (None,) if None in known else (known[0],)


def _selector(available: Sequence[Selector], asked: CompareRequest, card: Card) -> Selector:
    """The measure that was asked for, as near to the headline as it comes."""
    left = list(available)
    if asked.measure is not None:
        exact = [s for s in left if token(s) == asked.measure]
        known = ", ".join(dict.fromkeys(s.measure for s in in_order(card, left)))
        left = exact or [s for s in left if s.measure == asked.measure]
        if not left:
            raise SubmitterError(
                "unknown_measure",
                f"{card.name} has no measure {asked.measure!r} there.",
                f"Known measures: {known}.",
            )
    if asked.measure is None and not any((asked.variant, asked.split, asked.facet)):
        return nearest(card.headline, left, card)
    for name in ("variant", "split", "facet"):
        wanted = getattr(asked, name)
        if wanted is None:
            continue
        of_name = list(dict.fromkeys(getattr(s, name) for s in left if getattr(s, name)))
        left = [s for s in left if getattr(s, name) == wanted]
        if not left:
            raise SubmitterError(
                f"unknown_{name}",
                f"{card.name} has no {name} {wanted!r} there.",
                f"Known: {', '.join(of_name)}." if of_name else f"There is no {name} to choose.",
            )
    like = card.headline.model_copy(update={"measure": asked.measure or card.headline.measure})
    return left[0] if len(left) == 1 else nearest(like, left, card)


def _one_each(available: Sequence[Selector], first: Selector, card: Card) -> list[Selector]:
    """Each measure once, as like to the first as it comes."""
    measures = dict.fromkeys(selector.measure for selector in in_order(card, available))
    return [
        nearest(
            first.model_copy(update={"measure": m}), [s for s in available if s.measure == m], card
        )
        for m in measures
        if m != first.measure
    ]


def _by_skill(
    slices: Mapping[SliceKey, Slice],
    first: Selector,
    shown: Sequence[str | None],
    card: Card,
    *,
    everything: bool,
) -> list[Slice]:
    found: list[Slice] = []
    for skill in dict.fromkeys(skill for _, skill in slices):
        if skill is None or skill in shown:
            continue
        there = [s for s, k in slices if k == skill]
        if everything:
            found += [slices[s, skill] for s in in_order(card, there)]
            continue
        same = [s for s in there if s.measure == first.measure]
        if same:
            found.append(slices[nearest(first, same, card), skill])
    return found


def _mean(
    slices: Mapping[SliceKey, Slice], selector: Selector, skills: Sequence[str | None]
) -> Slice:
    return mean_over_skills([slices[selector, skill] for skill in skills])


_DASH = "–"


def pair_report(
    rows: Sequence[Compared],
    facts: Mapping[str, Any],
    card: Card,
    width: int,
    permuted: Sequence[Permuted] = (),
) -> Iterator[RenderableType]:
    """Two metrics: the first row in words, then all rows below each other."""
    first = rows[0]
    a, b = first.metric_a, first.metric_b
    yield Text(_where(first, card))
    yield Text(f"{verdict(first, a, b)}.", style="bold")
    said = (
        f"{a} {_value(first.value_a)}, {b} {_value(first.value_b)}",
        evidence_words(first),
        permuted_words(permuted[0], card.cluster) if permuted else "",
        dominance_words(first, a, b),
        paired_words(first),
        effect_words(first),
        _percentile(first),
    )
    for line in said:
        if line:
            yield Padding(Text(line), (0, 0, 0, 2), expand=False)
    yield Text("")
    if len(rows) > 1:
        heads: list[Head] = [
            ("by", "left"), (a, "right"), (b, "right"), ("difference [95 % interval]", "left"),
            ("p", "right"), ("p (BH)", "right"),
            (f"{units_of(first.unit)}: better, tied, worse", "right"), ("d_z", "right"),
        ]  # fmt: skip
        lines = [_cells(row, card) for row in rows]
        if permuted:
            place = heads.index(("p", "right")) + 1
            heads.insert(place, ("p (scores)", "right"))
            for cells, one in zip(lines, permuted, strict=True):
                cells.insert(place, _p(one.p_value))
        yield from table_or_lines(heads, lines, width)
        yield Text(about_table(rows, card))
        if permuted:
            yield Text(column_words([_label(row, card) for row in rows], permuted, card.cluster))
    yield Text(legend(facts))


def field_report(
    rows: Sequence[Compared],
    facts: Mapping[str, Any],
    card: Card,
    width: int,
    permuted: Sequence[Permuted] = (),
) -> Iterator[RenderableType]:
    """More than two metrics: each pair in the order of the values, and how many differ."""
    values = {row.metric_a: row.value_a for row in rows} | {r.metric_b: r.value_b for r in rows}
    sign = -1.0 if rows[0].higher_is_better else 1.0
    order = sorted(values, key=lambda m: (math.isnan(values[m]), sign * values[m]))
    yield Text(_where(rows[0], card))
    yield from _matrix(rows, order, values, width)
    apart = sum(row.told_apart for row in rows)
    yield Text(
        f"Upper right: p of joint tests of {plural('pair', rows[0].n_tests)}; "
        f"{apart} below {LEVEL}. Lower left: difference, column less row. Dash: not tested."
    )
    for row in rows:
        if row.untested:
            yield Text(f"{row.metric_a}, {row.metric_b}: {row.untested}.")
    if permuted:
        yield from _both_tests(rows, permuted, card, width)
    most = max(row.n_differing for row in rows)
    yield Text(
        f"Sign flips of {plural(rows[0].unit, most)} at most. --metric-a and --metric-b show one "
        "pair in full; --json has every pair in full."
    )
    yield Text(legend(facts))


def _both_tests(
    rows: Sequence[Compared], permuted: Sequence[Permuted], card: Card, width: int
) -> Iterator[RenderableType]:
    pairs = [f"{row.metric_a}, {row.metric_b}" for row in rows]
    if any(math.isfinite(one.p_value) for one in permuted):
        heads: list[Head] = [("pair", "left"), ("p", "right"), ("p (scores)", "right")]
        lines = [
            [pair, _p(row.p_value), _p(one.p_value)]
            for pair, row, one in zip(pairs, rows, permuted, strict=True)
        ]
        yield from table_or_lines(heads, lines, width)
        labels = [f"({pair})" for pair in pairs]
        yield Text(f"p: sign flips. {column_words(labels, permuted, card.cluster)}")
        return
    for note in dict.fromkeys(one.note for one in permuted):
        yield Text(f"{permuted_words(Permuted(note=note), card.cluster)}.")


def _matrix(
    rows: Sequence[Compared], order: Sequence[str], values: Mapping[str, float], width: int
) -> Iterator[RenderableType]:
    of_pair = {frozenset((row.metric_a, row.metric_b)): row for row in rows}
    heads: list[Head] = [("metric", "left"), ("value", "right")]
    heads += [(str(place), "right") for place in range(1, len(order) + 1)]
    lines = []
    for i, metric in enumerate(order):
        line = [f"{i + 1} {metric}", _value(values[metric])]
        for j, other in enumerate(order):
            row = of_pair.get(frozenset((metric, other)))
            if row is None or i == j:
                line.append("")
            elif i < j:
                line.append(_p(row.p_corrected) + ("*" if row.told_apart else ""))
            else:
                line.append(figures(values[other] - values[metric])[0])
        lines.append(line)
    if fits(aligned_table(heads, lines), width):
        yield aligned_table(heads, lines)
        return
    ordered = sorted(rows, key=lambda r: (order.index(r.metric_a), order.index(r.metric_b)))
    for row in ordered:
        joint = correction_words(row, "pairs")
        yield Text(f"{verdict(row, row.metric_a, row.metric_b)}; {joint or row.untested}.")


def _where(row: Compared, card: Card) -> str:
    parts = (row.measure, row.facet, row.split, row.variant and f"variant {row.variant}")
    skill = skill_title(card, row.skill)
    return " · ".join((card.name, *(part for part in parts if part), skill))


def _label(row: Compared, card: Card) -> str:
    parts = (row.measure, row.facet, row.split, row.variant)
    label = " ".join(part for part in parts if part)
    return f"{label} · {skill_title(card, row.skill)}" if row.skill else label


def _cells(row: Compared, card: Card) -> list[str]:
    units = ", ".join(map(str, row.tally)) if row.tally else _DASH
    return [
        _label(row, card),
        _value(row.value_a),
        _value(row.value_b),
        _difference(row),
        _p(row.p_value),
        _DASH if row.correction is None else _p(row.p_corrected) + ("*" if row.told_apart else ""),
        units,
        f"{row.effect:.2f}".replace("-", "−") if math.isfinite(row.effect) else _DASH,
    ]


def _difference(row: Compared) -> str:
    if math.isnan(row.difference):
        return row.untested or _DASH
    value, low, high = figures(row.difference, row.ci_low, row.ci_high)
    return value if math.isnan(row.ci_low) else f"{value} [{low}, {high}]"


def _percentile(row: Compared) -> str:
    if math.isnan(row.percentile_low):
        return ""
    _, low, high = figures(row.difference, row.percentile_low, row.percentile_high)
    kind = "BCa" if row.ci_method == "bca" else "percentile, since BCa is undefined"
    return f"interval: {kind}; percentile ends of the difference [{low}, {high}]"


def _value(value: float) -> str:
    return _DASH if math.isnan(value) else f"{value:.4f}".replace("-", "−")


def _p(value: float) -> str:
    return p_words(value).removeprefix("p ").removeprefix("= ")


def table_or_lines(
    heads: Sequence[Head], lines: Sequence[Sequence[str]], width: int
) -> Iterator[RenderableType]:
    """A table where it fits; else a few lines for each row. No number is ever cut."""
    table = aligned_table(heads, lines)
    if fits(table, width):
        yield table
        return
    names = [name for name, _ in heads]
    for line in lines:
        yield Text(line[0], style="bold")
        said = ", ".join(f"{n} {cell}" for n, cell in zip(names[1:], line[1:], strict=True))
        yield Padding(Text(said), (0, 0, 0, 2), expand=False)
    yield Text("")


def about_table(rows: Sequence[Compared], card: Card) -> str:
    """How the p-values of a table are corrected, and what its columns count."""
    first, *others = rows
    lines = [
        f"{plural(of, len(tests))}"
        for of, tests in (
            ("skill", [r for r in others if r.skill != first.skill and math.isfinite(r.p_value)]),
            ("measure", [r for r in others if r.skill == first.skill and math.isfinite(r.p_value)]),
        )
        if tests
    ]
    over = " and over ".join(lines)
    said = [
        f"p (BH): Benjamini-Hochberg over {over}, without the first line." if over else "",
        f"Better and worse are those of {first.metric_a}. For a measure that is not a mean of "
        f"values of {units_of(card.cluster)}, they count contributions to its value "
        "(influences), not scores.",
        *(f"{why[0].upper()}{why[1:]}." for why in dict.fromkeys(r.uncounted for r in rows) if why),
        _directions(rows, card),
    ]
    return " ".join(filter(None, said))


def _directions(rows: Sequence[Compared], card: Card) -> str:
    falling = dict.fromkeys(
        row.measure for row in rows if not info(card, row.measure).higher_is_better
    )
    return f"Lower is better: {', '.join(falling)}." if falling else ""


def legend(facts: Mapping[str, Any]) -> str:
    """How intervals were made, and what gives the same figures again."""
    return (
        f"[low, high]: 95 % BCa interval from {facts['n_resamples']:,} joint resamples. Seed "
        f"{facts['seed']}, plan {facts['plan']}, {facts['versions']}."
    )
