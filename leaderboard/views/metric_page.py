"""Page of one metric: verdict, results, profile, controls, cost, history and what can be copied."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.schema import Card, Selector
from leaderboard.ledger.versions import standing_over, superseded_versions
from leaderboard.publication.entries import Entry
from leaderboard.publication.flags import flags_of, is_trained_on, origin
from leaderboard.publication.item_scores import CaseSet, CaseSummary
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.publication.metric_facts import metric_in_words, metric_name
from leaderboard.publication.reader import View
from leaderboard.publication.skill_names import skills_of
from leaderboard.ranking.cells import Cell, cell_beats_chance, chance_of
from leaderboard.records import Kind, RunResult, Status, Submission
from leaderboard.text import MISSING, count
from leaderboard.trust import TITLES, Check, TrustReport
from leaderboard.views.addresses import (
    board_address,
    compare_address,
    items_address,
    metric_address,
    skills_address,
)
from leaderboard.views.figures import estimate, rank_range
from leaderboard.views.index import SIMULATED
from leaderboard.views.metric import (
    MetricOnBoards,
    OnBoard,
    benchmark_bibtex,
    commands_for,
    entry_bibtex,
    hub_results,
    on_boards,
    profile,
)
from leaderboard.views.skills import (
    DECLARED,
    GIGA,
    NOT_DECLARED,
    gigaflops_text,
)

MOST_ROWS = 1200  # Of every measure and skill of one benchmark
MOST_SHOWN = 6  # Rows of a benchmark that are not folded
MOST_POINTS = 600  # Of the scatter of people against scores; more are thinned evenly
_LONGEST_DESCRIPTION = 4000


@dataclass(frozen=True)
class ResultRow:
    """One value of the metric on one benchmark."""

    measure: str  # its title
    skill: str  # whose; empty for all
    cell: Cell  # the value with its uncertainty
    chance: float | None  # what guessing gets by this measure; None where the card does not say
    above_chance: bool | None  # whether it is significantly above; None where that cannot be said
    ranked: int  # metrics with a rank beside it; 0 where that is not counted
    board: str  # address of the ranking
    examples: str  # address of images where it fails; empty where answers are withheld
    compare: str = ""  # address of the comparison with others; empty but for headlines


@dataclass(frozen=True)
class BenchmarkResults:
    """A metric on one benchmark."""

    card: Card  # the benchmark
    shown: tuple[ResultRow, ...]  # the headline and what stands beside it, over all skills
    skills: tuple[ResultRow, ...]  # one row a skill, by the measure nearest to the headline
    every: tuple[ResultRow, ...]  # all that was published
    cut: int  # further rows that only the data hold


@dataclass(frozen=True)
class VersionValue:
    """The headline of one version of the metric."""

    version: str
    submission_id: str
    received: datetime
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class VersionHistory:
    """The headline of a benchmark over the versions of a metric, the earliest first."""

    card: Card
    measure: str
    values: tuple[VersionValue, ...]


def metric_page(
    shown: MetricOnBoards,
    view: View,
    statuses: Sequence[Status] = (),
    *,
    changes: Mapping[str, str] | None = None,
    results_of: Callable[[Submission], Sequence[RunResult]] = lambda _: (),
    url: str = "",
) -> dict[str, Any]:
    """What the page of a metric prints, by name.

    `changes` has the title of a benchmark to the address of its changes since earlier revisions;
    `results_of` reads the results of a submission, of earlier versions too.
    """
    entry, status = shown.entry, shown.status
    boards = on_boards(shown, view)
    cards = {name: board.card for name, board in view.boards.items()}
    simulated = bool(boards) and all(one.card.simulated for one in boards)
    ratings = SIMULATED if simulated else ""
    authors = status.submission.authors if status else ()
    headlines = [(one.card, one.headline) for one in boards if one.headline is not None]
    open_boards = [one for one in boards if one.card.answers_public]
    flops = entry.flops_per_pair
    before: Sequence[Status] = ()
    if status is not None and status.scored_at:
        before = superseded_versions(status.submission, statuses)

    def title_of(benchmark: str) -> str:
        return cards[benchmark].title if benchmark in cards else benchmark

    return {
        "shown": shown,
        "entry": entry,
        "name": metric_name(entry),
        "description": entry.description[:_LONGEST_DESCRIPTION],
        "origin": origin(entry),
        "was_run": entry.kind is not Kind.SCORES,
        "verdict": _verdict(entry, boards),
        "detail": [_detail(one) for one in boards if one.headline is not None],
        "trained_on": [card.title for card in cards.values() if is_trained_on(entry, card)],
        "flags": flags_of(shown.entries),
        "results": [_results(one) for one in boards],
        "profile": profile(boards, view),
        "skill_links": {
            skill.title: skills_address(key, ratings=ratings)
            for key, skill in skills_of(view.group(simulated=simulated).boards).items()
        },
        "costs": [(title_of(name), cost) for name, cost in sorted(entry.cost.items())],
        "findings": [
            (title_of(name), found)
            for name, found in sorted(entry.findings.items())
            if found.counts or found.scored < found.pairs
        ],
        "layers": [of for of in dict.fromkeys(entry.isolation.values()) if of],
        "reports": reports_of(entry),
        "flops": NOT_DECLARED if flops is None else f"{gigaflops_text(flops / GIGA)}, {DECLARED}",
        "history": _history(entry, status, before, cards, results_of),
        "over": standing_over(status.submission, statuses) if status else None,
        "before": before,
        "recomputed": [_recomputed(one, shown) for one in boards],
        "own_bibtex": entry_bibtex(entry, [one.card for one in boards], authors, url),
        "works_bibtex": "\n\n".join(dict.fromkeys(benchmark_bibtex(one.card) for one in boards)),
        "hub": hub_results(entry, headlines, url),
        "failures": items_address(
            open_boards[0].card.name, a=open_boards[0].entry_id, show="failures"
        )
        if open_boards
        else "",
        "data": f"./v1/entries/{quote(entry.entry_id)}?elsewhere=1" if boards else "",
        "changes": changes or {},
        "title_of": title_of,
        "address_of": lambda other: metric_address(other.entry_id),
    }


def reports_of(entry: Entry) -> tuple[TrustReport, ...]:
    """The trust reports of an entry; one stands for all benchmarks of a run."""
    return tuple(
        {r.benchmark: entry.trust.get(r.benchmark, r) for r in entry.trust.values()}.values()
    )


def share_of_spread(value: float, report: TrustReport) -> str:
    """A change as a share of the spread of scores, which is what orders images."""
    if math.isnan(value):
        return MISSING
    if value == 0.0:
        return "0"
    if report.spread == 0.0:
        return f"{value:.1g}"
    share = 100 * value / report.spread
    shown = "<0.01" if share < 0.01 else f"{share:.2g}" if share < 100 else f"{share:,.0f}"
    return f"{shown}% of sd"


def one_pixel_of(report: TrustReport) -> Check | None:
    """How far scores move when every channel value is raised by one."""
    return next((check for check in report.checks if check.name == "one_pixel"), None)


def check_title(check: Check) -> str:
    """What was asked again."""
    return TITLES[check.name]


# The verdict.


def _verdict(entry: Entry, boards: Sequence[OnBoard]) -> str:
    """What tests say of a metric where most others stand beside it, on two benchmarks at most."""
    name = metric_in_words(entry)
    told = [one for one in boards if one.headline is not None and one.headline.tier is not None]
    told.sort(key=lambda one: (one.card.simulated, -one.ranked))
    parts = [_in_tier(one) for one in told[:2]]
    if parts:
        return f"{name} {'; '.join(parts)}."
    one = next((one for one in boards if one.headline is not None), None)
    if one is None or one.headline is None:
        return f"{name} has no results on the current boards."
    if one.headline.rank is None:
        return f"{name} has no rank on {one.card.title}: {one.headline.why_unranked}."
    if one.ranked < 2:
        return f"{name} is the only metric with a rank on {one.card.title}."
    return f"{name} was not tested against others on {one.card.title}."


def _in_tier(one: OnBoard) -> str:
    cell = one.headline
    assert cell is not None
    where = f"on {one.card.title}{' (simulated ratings)' if one.card.simulated else ''}"
    if cell_beats_chance(one.card, cell, one.ranked) is False:
        return f"is not significantly above chance {where}"
    if cell.tier == 1 and cell.rank == 1:
        return f"is highest of {count(one.ranked, 'metric')} {where}"
    if cell.tier == 1:
        return f"is not significantly worse than the best of {count(one.ranked, 'metric')} {where}"
    above = (cell.tier or 2) - 1
    return f"is significantly worse than a metric of tier {above} {where}"


def _detail(one: OnBoard) -> str:
    cell = one.headline
    assert cell is not None
    parts = [estimate(cell.value, cell.ci_low, cell.ci_high)]
    if cell.rank is not None:
        parts.append(f"rank range {rank_range(cell)} of {one.ranked}")
    elif cell.why_unranked:
        parts.append(f"no rank: {cell.why_unranked}")
    if cell.tier is not None:
        parts.append(f"tier {cell.tier}")
    return f"{one.card.title}: {', '.join(parts)}."


# Results.


def _results(one: OnBoard) -> BenchmarkResults:
    first = [one.headline] if one.headline is not None else []
    beside = [cell for cell in one.cells if cell.skill is None and cell is not one.headline]
    return BenchmarkResults(
        one.card,
        tuple(_row(one, cell) for cell in [*first, *beside][:MOST_SHOWN]),
        tuple(_row(one, cell) for cell in one.skills),
        tuple(_row(one, cell) for cell in one.cells[:MOST_ROWS]),
        max(0, len(one.cells) - MOST_ROWS),
    )


def _row(one: OnBoard, cell: Cell) -> ResultRow:
    card = one.card
    headline = cell is one.headline
    return ResultRow(
        measure=title(card, cell.selector, one.board.every_selector()),
        skill=skill_title(card, cell.skill) if cell.skill else "",
        cell=cell,
        chance=chance_of(card, cell.measure),
        above_chance=cell_beats_chance(card, cell, 1),
        ranked=one.ranked if headline else 0,
        board=board_address(card.name, skill=cell.skill or "", measure=token(cell.selector)),
        examples=items_address(
            card.name, skill=cell.skill or "", split=cell.split or "", a=one.entry_id,
            show="failures",
        )
        if card.answers_public
        else "",
        compare=compare_address(card.name, one.entry_id) if headline else "",
    )  # fmt: skip


# Versions.


def _history(
    entry: Entry,
    status: Status | None,
    before: Sequence[Status],
    cards: Mapping[str, Card],
    results_of: Callable[[Submission], Sequence[RunResult]],
) -> tuple[VersionHistory, ...]:
    """The headline of each benchmark over the versions that have a value for it."""
    if status is None or not before:
        return ()
    found: dict[str, list[VersionValue]] = {}
    for one in (*reversed(before), status):
        for result in results_of(one.submission):
            value = _version_value(one.submission, result, cards, entry.metric)
            if value is not None:
                found.setdefault(result.benchmark, []).append(value)
    return tuple(
        VersionHistory(
            cards[name], info(cards[name], cards[name].headline.measure).title, tuple(values)
        )
        for name, values in found.items()
        if len(values) > 1
    )


def _version_value(
    own: Submission, result: RunResult, cards: Mapping[str, Card], metric: str
) -> VersionValue | None:
    card = cards.get(result.benchmark)
    if card is None or result.revision != card.revision:
        return None
    for row in result.as_rows():
        selector = Selector(
            measure=row.measure, variant=row.variant, split=row.split, facet=row.facet
        )
        if row.metric == metric and row.skill is None and selector == card.headline:
            if row.value is None or not math.isfinite(row.value):
                return None
            return VersionValue(
                own.version or own.submission_id,
                own.submission_id,
                own.received_at,
                row.value,
                row.ci_low,
                row.ci_high,
            )
    return None


# Computed again.


def _recomputed(one: OnBoard, shown: MetricOnBoards) -> dict[str, Any]:
    """The commands for a terminal, and what is stated of the run: seed, resamples, plan, versions."""
    of = next((e for e in shown.entries if e.entry_id == one.entry_id), shown.entry)
    how = commands_for(of, one.card, shown.status if of is shown.entry else None)
    lines = how.from_store
    if how.from_file:
        lines = (
            f"{lines}\n# the same from its published scores alone, {how.scores} of the store:\n"
            f"{how.from_file}"
        )
    return {"card": one.card, "commands": lines, "stated": of.provenance.get(one.card.name)}


# Against people.


@dataclass(frozen=True)
class RatedPrompt:
    """One prompt: the mean score of its images, and the mean of what people say of them."""

    prompt: str
    score: float
    people: float


@dataclass(frozen=True)
class AgainstPeople:
    """Scores of a metric against what people say, by prompt."""

    card: Card  # the benchmark
    points: tuple[RatedPrompt, ...]  # by prompt, thinned evenly where there are many
    n_prompts: int  # all of them
    n_missing: int  # prompts without a score


def against_people(card: Card, cases: CaseSet, standing: CaseSummary) -> AgainstPeople | None:
    """The scatter of a benchmark; None where people gave no values to its images."""
    expected = cases.frame["expected"].to_numpy(float)
    of_case = cases.comparisons.of_row
    known = np.isfinite(expected)
    scored = known & np.isfinite(standing.score)
    n_known = np.bincount(of_case[known], minlength=cases.size)
    n = np.bincount(of_case[scored], minlength=cases.size)
    if not n.any():
        return None
    people = np.bincount(of_case[scored], expected[scored], cases.size)
    scores = np.bincount(of_case[scored], standing.score[scored], cases.size)
    prompts = cases.frame.drop_duplicates("case_id")["prompt"].astype(str).to_list()
    places = np.flatnonzero(n)
    kept = places[:: -(-len(places) // MOST_POINTS)]
    points = tuple(
        RatedPrompt(prompts[k], float(scores[k] / n[k]), float(people[k] / n[k])) for k in kept
    )
    return AgainstPeople(
        card, points, int((n_known > 0).sum()), int(((n_known > 0) & (n == 0)).sum())
    )
