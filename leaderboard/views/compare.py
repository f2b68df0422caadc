"""Compare place: its state in the address, whom it compares by what, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from benchmarks.comparison import Compared, correction_words, figures, p_words
from benchmarks.schema import Card
from leaderboard.publication.entries import Entry
from leaderboard.publication.identities import Identity, shown_account
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.publication.reader import View
from leaderboard.text import clean
from leaderboard.views.addresses import address, metric_address
from leaderboard.views.badges import Badge, badges_of
from leaderboard.views.boards import BETWEEN_SKILLS, BoardQuery, Choice
from leaderboard.views.comparison import CompareQuery, Opponents, opponents
from leaderboard.views.examples import ALL_SPLITS, ItemsQuery, entries_on

ViewName = Literal["differences", "examples", "pairs", "skills"]
VIEWS: tuple[ViewName, ...] = get_args(ViewName)
SIDES = ("a", "b", "c", "d")
METRICS, MODELS = "metrics", "models"  # What is compared: the values of `of` in an address
MOST_OPTIONS = 400
"""Metrics that a list offers: of very many the first of the board, and those chosen."""
_LONGEST = 2000
_LONGEST_LABEL = 60
_YES = "1"
_WORDS = ("benchmark", *SIDES, "skill", "measure", "split", "show", "case")


@dataclass(frozen=True)
class PlaceQuery:
    """State of the Compare place. Everything is as asked for, and may not exist."""

    view: ViewName = "differences"  # which tab
    of: str = ""  # `metrics` or `models`; empty means metrics
    benchmark: str = ""  # registry name; empty means the first with results
    a: str = ""  # entry id of the first metric; empty means the best that is not another
    b: str = ""  # of the second; empty likewise, and none among the examples
    c: str = ""  # of a third; empty for none
    d: str = ""  # of a fourth; empty for none
    skill: str = ""  # skill keys joined by commas; empty for all
    measure: str = ""  # as in `BoardQuery`
    split: str = ""  # key of a split, among the examples
    show: str = ""  # which examples; see `views.examples.SHOWS`
    case: str = ""  # id of the one example that is looked at
    page: int = 1  # of the examples, from 1
    # benchmark of the form that asks: where it is another one, metrics are sought anew
    before: str = ""
    seek: bool = False  # whether to go on to the first benchmark on which the metric fails

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> PlaceQuery:
        """Read an address; unknown parameters are left alone."""
        given = {name: str(params.get(name, ""))[:_LONGEST] for name in _WORDS}
        given["skill"] = BoardQuery.from_params(params).skill[:_LONGEST]
        view = next((one for one in VIEWS if one == params.get("view")), VIEWS[0])
        return cls(
            view=view,
            of=MODELS if params.get("of") == MODELS else "",
            page=ItemsQuery.from_params(params).page,
            before=str(params.get("before", ""))[:_LONGEST],
            seek=params.get("seek") == _YES,
            **given,
        )

    def to_link(self, **changes: str | int) -> str:
        """The address of this state, or of one that differs from it; not escaped for HTML yet."""
        after = replace(self, **changes)  # type: ignore[arg-type]
        view = after.view if after.view != VIEWS[0] else ""
        words = {name: str(getattr(after, name)) for name in _WORDS}
        page = str(after.page) if after.page > 1 else ""
        return address("compare", of=after.of, **words, view=view, page=page)

    @property
    def comparison(self) -> CompareQuery:
        """What of it says which metrics are compared by what."""
        board = BoardQuery(benchmark=self.benchmark, skill=self.skill, measure=self.measure)
        return CompareQuery(board, self.a, self.b, tuple(one for one in (self.c, self.d) if one))

    @property
    def examples(self) -> ItemsQuery:
        """What of it says which examples are listed."""
        return ItemsQuery(
            self.benchmark, self.skill, self.split, self.a, self.b, self.show, self.case, self.page
        )


@dataclass(frozen=True)
class Option:
    """One that can be chosen from a list."""

    value: str
    label: str


@dataclass(frozen=True)
class ComparedMetric:
    """One of the metrics that are compared."""

    side: str  # `a` to `d`
    entry_id: str
    name: str  # as submitted
    version: str  # likewise
    href: str  # of its own page
    submitter: str = ""  # as signed; empty where there is no account to show
    account: str = ""  # its key
    value: float | None = None  # by the chosen measure; None where it has none
    badges: tuple[Badge, ...] = ()  # what must be known of it


def resolve_place(query: PlaceQuery, view: View) -> Opponents:
    """The metrics, benchmark, skill and measure that a state of the place is about.

    Where the form asks for another benchmark, the same metrics are looked for there, and its skill
    and measure are those it begins with.
    """
    return opponents(moved_along(query, view).comparison, view)


def moved_along(query: PlaceQuery, view: View) -> PlaceQuery:
    """The query with the metrics as they are called on another benchmark, if it asks for one."""
    if not query.before or query.before == query.benchmark:
        return replace(query, before="")
    board = view.boards.get(query.benchmark)
    there = {} if board is None else by_identity(view, entries_on(board))

    def found(asked: str) -> str:
        entry = view.entries.get(asked)
        return "" if entry is None else there.get(Identity.of(entry), "")

    return replace(
        query, a=found(query.a), b=found(query.b), c=found(query.c), d=found(query.d), before="",
        skill="", measure="", split="", case="", page=1,
    )  # fmt: skip


def by_identity(view: View, entries: Sequence[str]) -> dict[Identity, str]:
    """The metrics of some entries, each by the first of its entries."""
    found: dict[Identity, str] = {}
    for entry in entries:
        found.setdefault(Identity.of(view.entries[entry]), entry)
    return found


def state_of(query: PlaceQuery, pair: Opponents) -> PlaceQuery:
    """The exact state in which a comparison is shown."""
    c, d = (*pair.further, "", "")[:2]
    exact = pair.choice.query
    return PlaceQuery(
        view=query.view, benchmark=exact.benchmark, a=pair.a or "", b=pair.b or "", c=c, d=d,
        skill=exact.skill, measure=exact.measure,
    )  # fmt: skip


def tab_links(state: PlaceQuery, choice: Choice | None) -> dict[ViewName, str]:
    """Where each tab leads from a state."""
    skill = state.skill if BETWEEN_SKILLS not in state.skill else ""
    split = state.split
    if choice is not None and choice.selector is not None:
        own = choice.selector.split or ""
        split = "" if own == ALL_SPLITS else own
    listed = replace(state, skill=skill, split=split, page=1, case="")
    compared = replace(state, split="", show="", case="", page=1)
    return {
        name: listed.to_link(view=name) if name == "examples" else compared.to_link(view=name)
        for name in VIEWS
    }


def entry_options(
    entries: Sequence[str], chosen: Sequence[str | None], view: View
) -> tuple[Option, ...]:
    """Names of entries to choose from; equal names are told apart by their submission."""
    offered = list(dict.fromkeys([*entries[:MOST_OPTIONS], *filter(None, chosen)]))
    found = [view.entries[entry] for entry in offered]
    names = [clean(f"{entry.metric} {entry.version}".strip()) for entry in found]
    return tuple(
        Option(
            entry.entry_id,
            (f"{name} ({entry.submission_id})" if names.count(name) > 1 else name)[:_LONGEST_LABEL],
        )
        for name, entry in zip(names, found, strict=True)
    )


def benchmark_options(view: View) -> tuple[Option, ...]:
    """Titles of the benchmarks, those with results first."""
    boards = sorted(view.boards.items(), key=lambda item: item[1].empty)
    return tuple(
        Option(name, f"{board.card.title} (no results yet)" if board.empty else board.card.title)
        for name, board in boards
    )


def measure_options(choice: Choice) -> tuple[Option, ...]:
    """Titles of the measures that exist for the chosen skill."""
    card, among = choice.board.card, choice.board.every_selector()
    return tuple(Option(token(one), title(card, one, among)) for one in choice.options)


def skill_options(choice: Choice) -> tuple[Option, ...]:
    """Titles of the skills that have results."""
    card = choice.board.card
    return tuple(Option(skill, skill_title(card, skill)) for skill in choice.board.skills())


def measure_title(choice: Choice) -> str:
    """The name of the chosen measure; empty where there is none."""
    if choice.selector is None:
        return ""
    return title(choice.board.card, choice.selector, choice.board.every_selector())


def measure_name(choice: Choice) -> str:
    """The bare name of the chosen measure; empty where there is none."""
    return info(choice.board.card, choice.selector.measure).title if choice.selector else ""


def higher_is_better(choice: Choice) -> bool:
    """Whether larger values of the chosen measure are better."""
    measure = choice.selector.measure if choice.selector else ""
    return info(choice.board.card, measure).higher_is_better


def compared_metrics(
    pair: Opponents, view: View, values: Mapping[str, float] | None = None
) -> tuple[ComparedMetric, ...]:
    """The chosen metrics with what a reader must know of them."""
    cells = {cell.entry_id: cell for of in pair.choice.slices() for cell in of}
    card = pair.choice.board.card
    found = []
    for side, entry_id in zip(SIDES, pair.chosen, strict=False):
        badges = badges_of(view.entries[entry_id], cells.get(entry_id), card)
        one = named_metric(side, view.entries[entry_id])
        value = (values or {}).get(entry_id)
        known = value is not None and math.isfinite(value)
        found.append(replace(one, value=value if known else None, badges=badges))
    return tuple(found)


def named_metric(side: str, entry: Entry) -> ComparedMetric:
    """A metric by its name alone."""
    account = shown_account(entry.account)
    return ComparedMetric(
        side, entry.entry_id, entry.metric, entry.version, metric_address(entry.entry_id),
        entry.submitter if account else "", account,
    )  # fmt: skip


Outcome = Literal["better", "not_significant", "equal", "same_value", "untested", "undefined"]


@dataclass(frozen=True)
class ComparisonVerdict:
    """Which of two metrics is better, by how much and how sure that is."""

    outcome: Outcome  # what the test of the board says
    ahead: Literal["a", "b"]  # side of the one with the better value: `a` or `b`
    by: str  # the difference in favour of that one, as text
    interval: str  # its 95% interval; empty where there is none
    p: str  # p-value of the test alone, as text; empty where none was made
    corrected: str  # after the correction of the board; empty where there is none
    n_tests: int  # tests that were corrected together
    correction: str  # the corrected p-value with its method and what it is corrected over
    unit: str  # what the signs of are flipped


def verdict_of(row: Compared) -> ComparisonVerdict:
    """The verdict of one comparison."""
    gain, low, high = row.advantage
    ahead: Literal["a", "b"] = "a"
    if gain < 0.0:
        ahead, gain, low, high = "b", -gain, -high, -low
    by, start, end = figures(gain, low, high) if math.isfinite(gain) else ("", "", "")
    return ComparisonVerdict(
        outcome=_outcome(row),
        ahead=ahead,
        by=by,
        interval=f"[{start}, {end}]" if math.isfinite(low) and math.isfinite(high) else "",
        p="" if math.isnan(row.p_value) else p_words(row.p_value),
        corrected="" if math.isnan(row.p_corrected) else p_words(row.p_corrected),
        n_tests=row.n_tests,
        correction=correction_words(row, "pairs of the whole board, without filters"),
        unit=row.unit,
    )


def _outcome(row: Compared) -> Outcome:
    if math.isnan(row.value_a) or math.isnan(row.value_b):
        return "undefined"
    if row.difference == 0.0 and row.n_differing == 0 and row.tally:
        return "equal"
    if row.told_apart:
        return "better"
    if math.isnan(row.p_value):
        return "untested"
    return "same_value" if row.difference == 0.0 else "not_significant"


def other_benchmarks(card: Card, view: View) -> tuple[Option, ...]:
    """Benchmarks with results, but for one."""
    return tuple(
        one for one in benchmark_options(view)
        if one.value != card.name and not view.boards[one.value].empty
    )  # fmt: skip
