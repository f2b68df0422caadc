"""Metric: which one an address names, its results, and what its page prints and lets copy."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.schema import BY_GENERATOR, Card, Selector
from leaderboard.ledger.versions import standing_over, superseded_versions
from leaderboard.publication.entries import (
    Entry,
    Identity,
    RankCount,
    count_ranked,
    flags_of,
    is_trained_on,
    latest_cells,
    origin,
)
from leaderboard.publication.index import rescaled
from leaderboard.publication.item_scores import CaseSet, CaseSummary
from leaderboard.publication.measure_names import in_order, info, nearest, skill_title, title, token
from leaderboard.publication.metric_facts import (
    metric_in_words,
    metric_label,
    metric_name,
    verification_of,
)
from leaderboard.publication.reader import SIMULATED, BoardIndex, View, headline_cells
from leaderboard.publication.skill_names import common_key, common_names, skills_of
from leaderboard.ranking.cells import (
    Cell,
    cell_at_or_below_chance,
    cell_beats_chance,
    chance_of,
)
from leaderboard.ranking.index import Interval
from leaderboard.records import Kind, RunResult, Status, Submission
from leaderboard.text import MISSING, clean, count
from leaderboard.trust import TITLES, Check, TrustReport
from leaderboard.views.addresses import (
    board_address,
    compare_address,
    items_address,
    metric_address,
    record_address,
    skills_address,
)
from leaderboard.views.citation import NOWHERE, CitedAt, benchmark_bibtex, metric_citation
from leaderboard.views.figures import estimate, rank_range
from leaderboard.views.hub_results import metric_hub_results
from leaderboard.views.skills import DECLARED, GIGA, NOT_DECLARED, gigaflops_text, scale_of

MOST_FOUND = 60
_LONGEST_QUERY = 400


@dataclass(frozen=True)
class MetricQuery:
    """The state of the page. Everything is as asked for, and may not exist."""

    entry_id: str = ""  # `<submission_id>/<metric>`, or a submission alone
    search: str = ""  # words of a name or a submitter

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> MetricQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        return cls(params.get("id", "")[:_LONGEST_QUERY], params.get("q", "")[:_LONGEST_QUERY])


@dataclass(frozen=True)
class MetricOnBoards:
    """A metric that stands on a board."""

    entry: Entry  # what was asked for
    status: Status | None  # of its submission; None where the queue does not hold it
    # the other published entries of the same metric, on other benchmarks as a rule
    others: tuple[Entry, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was asked for, then the others."""
        return (self.entry, *self.others)


@dataclass(frozen=True)
class OffBoard:
    """A submission that is known and stands on no board."""

    metric: str  # the name that was asked for
    status: Status  # what became of it


@dataclass(frozen=True)
class Unknown:
    """Nothing is known under that id."""

    asked: str = ""  # what was asked for
    search: str = ""
    matches: tuple[Entry, ...] = field(default=())  # entries that fit the search, by name
    n_matches: int = 0  # how many there are


def resolve(
    query: MetricQuery, view: View, statuses: Sequence[Status]
) -> MetricOnBoards | OffBoard | Unknown:
    """What a query finds. A private submission is as if it did not exist."""
    asked = query.entry_id
    ident, _, metric = asked.partition("/")
    known = {s.submission.submission_id: s for s in statuses if not s.submission.private}
    entry_id = asked if asked in view.entries else _only(ident, view) if not metric else ""
    if entry_id:
        entry = view.entries[entry_id]
        return MetricOnBoards(entry, known.get(entry.submission_id), others_of(entry, view))
    status = known.get(ident)
    if status is not None and (not metric or metric in status.submission.metrics):
        return OffBoard(metric or status.submission.name, status)
    matches = _matching(query.search or clean(metric or ident), view)
    if asked and not query.search and not matches:
        matches = _matching("", view)
    return Unknown(asked, query.search, matches[:MOST_FOUND], len(matches))


def others_of(entry: Entry, view: View) -> tuple[Entry, ...]:
    """The other published entries of the same metric."""
    who = Identity.of(entry)
    return tuple(
        other for other in view.entries.values()
        if Identity.of(other) == who and other.entry_id != entry.entry_id
    )  # fmt: skip


def _only(ident: str, view: View) -> str:
    """The entry of a submission that has one."""
    found = [name for name in view.entries if name.startswith(f"{ident}/")] if ident else []
    return found[0] if len(found) == 1 else ""


def _matching(search: str, view: View) -> tuple[Entry, ...]:
    words = clean(search).casefold().split()
    found = [
        entry for entry in view.entries.values()
        if all(
            word in f"{entry.metric} {metric_label(entry)} {entry.submitter} {entry.account}".casefold()
            for word in words
        )
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda entry: (entry.metric.casefold(), entry.entry_id)))


@dataclass(frozen=True)
class OnBoard:
    """A metric on one benchmark."""

    board: BoardIndex  # the benchmark
    # whose cells these are: of the entry that was asked for, or of another of the same
    # metric where that has none here
    entry_id: str
    headline: Cell | None  # the cell the board ranks by; None where there is none
    ranked: RankCount  # how many have a rank there
    skills: tuple[Cell, ...]  # one cell for each skill, by the measure nearest to the headline
    cells: tuple[Cell, ...]  # all, headline and whole before skills, in the card's order

    @property
    def card(self) -> Card:
        """The benchmark."""
        return self.board.card


@dataclass(frozen=True)
class ProfileRow:
    """One skill of one benchmark, rescaled: 0 chance, 1 the ceiling."""

    skill: str  # the common name, or the benchmark's own
    on: Card  # the benchmark
    cell: Cell  # of the metric
    own: Interval  # its value and interval
    median: float  # of all metrics with a rank there
    best: float  # the highest of them
    n_metrics: int  # how many they are
    own_scale: bool  # whether the scale is of the headline; else of this measure


def on_boards(shown: MetricOnBoards, view: View) -> tuple[OnBoard, ...]:
    """The benchmarks on which a metric stands, in the order of the site."""
    wanted = [entry.entry_id for entry in shown.entries]
    found = []
    for board in view.boards.values():
        every = () if board.empty else board.of_entries(wanted)
        cells = [cell for cell in every if cell.measure != BY_GENERATOR]
        # Its own before those of its siblings, of which the latest counts.
        order = sorted(shown.others, key=lambda entry: entry.published_at, reverse=True)
        there = {cell.entry_id for cell in cells}
        whose = next((e.entry_id for e in (shown.entry, *order) if e.entry_id in there), None)
        if whose is not None:
            own = [c for c in cells if c.entry_id == whose]
            found.append(_on_board(board, whose, own, view.entries))
    return tuple(found)


def profile(found: Iterable[OnBoard], view: View) -> tuple[ProfileRow, ...]:
    """Skills across benchmarks, those under one name together; what has no scale is left out."""
    rows: list[tuple[int, ProfileRow]] = []
    order = list(common_names())
    for one in found:
        for cell in one.skills:
            row = _profile_row(one, cell, view)
            if row is not None:
                key = common_key(one.card, cell.skill or "")
                rows.append((order.index(key) if key else len(order), row))
    return tuple(row for _, row in sorted(rows, key=lambda pair: (pair[0], pair[1].skill)))


def _on_board(
    board: BoardIndex, entry_id: str, cells: Sequence[Cell], entries: Mapping[str, Entry]
) -> OnBoard:
    ranking = headline_cells(board)
    headline = next((cell for cell in ranking if cell.entry_id == entry_id), None)
    by_key = {(cell.selector, cell.skill): cell for cell in cells}
    if headline is not None and (headline.selector, headline.skill) in by_key:
        by_key[headline.selector, headline.skill] = headline  # with its tier
    skills = []
    for skill in board.skills():
        selectors = [selector for selector, of in by_key if of == skill]
        if selectors:
            skills.append(by_key[nearest(board.card.headline, selectors, board.card), skill])
    return OnBoard(
        board,
        entry_id,
        headline,
        count_ranked(ranking, entries),
        tuple(skills),
        _in_order(board, tuple(by_key.values())),
    )


def _in_order(board: BoardIndex, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    skills: dict[str | None, int] = {s: place for place, s in enumerate(board.skills())}
    skills[None] = -1
    measures: dict[Selector, int] = {
        selector: place
        for place, selector in enumerate(
            in_order(board.card, tuple(dict.fromkeys(cell.selector for cell in cells)))
        )
    }
    return tuple(sorted(cells, key=lambda c: (skills.get(c.skill, 0), measures[c.selector])))


def _profile_row(one: OnBoard, cell: Cell, view: View) -> ProfileRow | None:
    key = common_key(one.card, cell.skill or "")
    scale, own_scale = scale_of(one.card, cell.measure)
    if scale is None or cell.value is None or (key is None and ":" in (cell.skill or "")):
        return None
    ranking = latest_cells(one.board.cells(cell.selector, cell.skill), view.entries).values()
    values = [rescaled(c, scale).value for c in ranking if c.rank is not None]
    if not values:
        return None
    title = common_names()[key].title if key else skill_title(one.card, cell.skill)
    return ProfileRow(
        skill=title,
        on=one.card,
        cell=cell,
        own=rescaled(cell, scale),
        median=statistics.median(values),
        best=max(values),
        n_metrics=len(values),
        own_scale=own_scale,
    )


_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Commands:
    """How the rows of one run are computed again."""

    from_store: str  # reads rows and scores from the store and says where they differ
    # needs the published scores file alone; empty where that does not do: scores are not
    # public, or the benchmark's own format holds more than a table
    from_file: str = ""
    scores: str = ""  # path of that file in the public store


def commands_for(entry: Entry, card: Card, status: Status | None) -> Commands:
    """The commands of a run."""
    from_store = (
        f"python -m evaluator report {entry.submission_id} --benchmark {card.name} --recompute"
    )
    if not card.answers_public or (entry.kind is Kind.SCORES and status is None):
        return Commands(from_store)
    lower = status.submission.lower_is_better if status else ()
    if any(not _PLAIN.fullmatch(name) for name in lower):
        return Commands(from_store)  # A name fit for a shell is not to be made here.
    file = f"{card.name}.scores.parquet"
    turned = "".join(f" --lower-is-better {name}" for name in lower)
    return Commands(
        from_store,
        f"python -m evaluator meta {card.name} --scores {file} --skills{turned}",
        f"results/{entry.submission_id}/{file}",
    )


# Its page.

MOST_ROWS = 1200  # Of every measure and skill of one benchmark
MOST_SHOWN = 6  # Rows of a benchmark that are not folded
MOST_POINTS = 600  # Of the scatter of people against scores; more are thinned evenly
_LONGEST_DESCRIPTION = 4000


Version = tuple[str, float, float | None, float | None]
"""A version of a metric, its headline, and the ends of its interval."""


@dataclass(frozen=True)
class VersionHistory:
    """The headline of a benchmark over the versions of a metric, the earliest first."""

    card: Card
    measure: str
    values: tuple[Version, ...]


def metric_page(
    shown: MetricOnBoards,
    view: View,
    statuses: Sequence[Status] = (),
    *,
    changes: Mapping[str, str] | None = None,
    results_of: Callable[[Submission], Sequence[RunResult]] = lambda _: (),
    at: CitedAt = NOWHERE,
) -> dict[str, Any]:
    """What the page of a metric prints, by name.

    `changes` has the title of a benchmark to the address of its changes since earlier revisions;
    `results_of` reads the results of a submission, of earlier versions too; `at` is for citations.
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
            for key, skill in skills_of(view.group(ratings).boards).items()
        },
        "costs": [(title_of(name), cost) for name, cost in sorted(entry.cost.items())],
        "findings": [
            (title_of(name), found)
            for name, found in sorted(entry.findings.items())
            if found.counts or found.scored < found.pairs
        ],
        "orders": [(title_of(name), one) for name, one in sorted(entry.orders.items())],
        "layers": [of for of in dict.fromkeys(entry.isolation.values()) if of],
        "reports": reports_of(entry),
        "verification": verification_of(entry),
        "flops": NOT_DECLARED if flops is None else f"{gigaflops_text(flops / GIGA)}, {DECLARED}",
        "history": _history(entry, status, before, cards, results_of),
        "over": standing_over(status.submission, statuses) if status else None,
        "before": before,
        "recomputed": [_recomputed(one, shown) for one in boards],
        "cite": metric_citation(entry, [one.card for one in boards], authors, at),
        "records": [
            (one.card.title, record_address(one.card.name, one.entry_id))
            for one in boards
            if one.entry_id == entry.entry_id
        ],
        "works_bibtex": "\n\n".join(dict.fromkeys(benchmark_bibtex(one.card) for one in boards)),
        "hub": metric_hub_results(entry, headlines, at),
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
    told.sort(key=lambda one: (one.card.simulated, -one.ranked.metrics))
    parts = [_in_tier(one) for one in told[:2]]
    if parts:
        return f"{name} {'; '.join(parts)}."
    one = next((one for one in boards if one.headline is not None), None)
    if one is None or one.headline is None:
        return f"{name} has no results on the current boards."
    if one.headline.rank is None:
        return f"{name} has no rank on {one.card.title}: {one.headline.why_unranked}."
    if one.ranked.metrics < 2:
        return f"{name} is the only metric with a rank on {one.card.title}."
    return f"{name} was not tested against others on {one.card.title}."


def _in_tier(one: OnBoard) -> str:
    cell = one.headline
    assert cell is not None
    where = f"on {one.card.title}{' (simulated ratings)' if one.card.simulated else ''}"
    if cell_at_or_below_chance(one.card, cell):
        return f"is significantly at or below chance {where}"
    if cell_beats_chance(one.card, cell) is False:
        return f"is not significantly above chance {where}"
    if cell_beats_chance(one.card, cell, one.ranked.entries) is False:
        among = f"when corrected for all {one.ranked.entries} that are ranked"
        return f"is not significantly above chance {where} {among}"
    of = count(one.ranked.metrics, "metric")
    if cell.tier == 1:
        best = "highest of" if cell.rank == 1 else "not significantly worse than the best of"
        return f"is {best} {of} {where}"
    # Who follows another into a tier need not be told apart from anybody.
    worse = (cell.rank_low or 1) > 1
    return f"is {'significantly worse than the best' if worse else f'in tier {cell.tier}'} of {of} {where}"


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


def _results(one: OnBoard) -> dict[str, Any]:
    """The headline and what stands beside it, a row a skill, and all that was published."""
    first = [one.headline] if one.headline is not None else []
    beside = [cell for cell in one.cells if cell.skill is None and cell is not one.headline]
    return {
        "card": one.card,
        "shown": [_row(one, cell) for cell in [*first, *beside][:MOST_SHOWN]],
        "skills": [_row(one, cell) for cell in one.skills],
        "every": [_row(one, cell) for cell in one.cells[:MOST_ROWS]],
        "cut": max(0, len(one.cells) - MOST_ROWS),
    }


def _row(one: OnBoard, cell: Cell) -> dict[str, Any]:
    card = one.card
    headline = cell is one.headline
    return {
        "measure": title(card, cell.selector, one.board.every_selector()),
        "skill": skill_title(card, cell.skill) if cell.skill else "",
        "cell": cell,
        "chance": chance_of(card, cell.measure),
        "above_chance": cell_beats_chance(card, cell),
        "ranked": one.ranked if headline and one.ranked.entries else None,
        "board": board_address(card.name, skill=cell.skill or "", measure=token(cell.selector)),
        "examples": items_address(
            card.name, skill=cell.skill or "", split=cell.split or "", a=one.entry_id,
            show="failures",
        )
        if card.answers_public
        else "",
        "compare": compare_address(card.name, one.entry_id) if headline else "",
    }  # fmt: skip


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
    found: dict[str, list[Version]] = {}
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
) -> Version | None:
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
            return own.version or own.submission_id, row.value, row.ci_low, row.ci_high
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
class AgainstPeople:
    """Scores of a metric against what people say, by prompt."""

    card: Card  # the benchmark
    # prompt, mean score of its images and mean of what people say of them; thinned evenly
    # where there are many
    points: tuple[tuple[str, float, float], ...]
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
    points = tuple((prompts[k], float(scores[k] / n[k]), float(people[k] / n[k])) for k in kept)
    return AgainstPeople(
        card, points, int((n_known > 0).sum()), int(((n_known > 0) & (n == 0)).sum())
    )
