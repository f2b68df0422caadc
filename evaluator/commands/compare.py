"""`compare`: metric against metric, with the numbers of the boards, without a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.comparison import Compared, corrected
from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.schema import Card, Selector
from benchmarks.statistics.resampling import seed_of
from evaluator.commands.common import DataOption, JsonOption, console
from evaluator.commands.compare_metrics import SliceKey, contenders, measured_field, permuted
from evaluator.commands.compare_report import field_report, pair_report
from leaderboard.publication.measure_names import in_order, nearest, token
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
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="Metric for which lower is better; repeatable.")
    ] = None,
    permute_scores: Annotated[bool, typer.Option("--permute-scores", help=_PERMUTE_HELP)] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two metrics, or each two of several, by the test of the boards.

    The scores files that boards publish give the p-values of the boards, before the board's
    correction over all its pairs.

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
    from leaderboard.ranking.comparing import Match, compare_cells  # noqa: PLC0415

    if len(names) > 2:
        matches = [Match(chosen.first, a, b) for a, b in combinations(range(len(names)), 2)]
        return corrected(compare_cells(matches, card, names), "holm")
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
            corrected(
                [row for row, by in zip(others, of_skills, strict=True) if by == chosen],
                "benjamini_hochberg",
            )
        )
        for chosen in (True, False)
    }
    return (*corrected([first], "holm"), *(next(parts[by]) for by in of_skills))


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
