"""List of examples: cases of a benchmark with images, scores, and who fails on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol
from urllib.parse import quote

from benchmarks.schema import Card
from leaderboard.publication.identities import Identity
from leaderboard.publication.item_scores import CaseSet, ItemReader
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.publication.skill_names import common_key
from leaderboard.views.examples import (
    MOST_TILES,
    MOST_TILES_ALONE,
    PER_PAGE,
    CaseShown,
    Choice,
    ItemsQuery,
    Share,
    Summary,
    Verdict,
    answers_are_public,
    board_of,
    case_shown,
    difference,
    entries_on,
    look,
    resolve,
    summary,
    verdict,
)

MOST_ENTRIES = 40
"""Metrics whose scores are read to say who fails on one case, those that rank first."""
IMAGE_WIDTH = 320


class Images(Protocol):
    """Images and prompts of benchmarks that are on this machine."""

    def available(self, benchmark: str) -> Collection[str]:
        """Ids of the images of a benchmark that are here and may be shown."""
        ...

    def texts(self, benchmark: str) -> Mapping[str, str]:
        """Cluster to its prompt, where the prompts of a benchmark are here."""
        ...


@dataclass(frozen=True)
class ExampleSources:
    """Where examples are read."""

    reader: ItemReader  # of cases and scores
    images: Images  # those on this machine
    # the cards of this installation; what one of them withholds is not shown
    here: Mapping[str, Card]
    # submission to those of its metrics whose smaller scores are better
    lower: Callable[[], Mapping[str, tuple[str, ...]]]

    def cases(self, card: Card) -> CaseSet | None:
        """The cases of a benchmark; None where none are published or its answers are withheld."""
        if not answers_are_public(card, self.here):
            return None
        return self.reader.cases(card, self.images.texts(card.name))


@dataclass(frozen=True)
class Example:
    """One case with the addresses of its images."""

    case: CaseShown  # what people say of it, and what each metric makes of it
    skills: tuple[str, ...]  # titles of its skills
    images: tuple[str, ...]  # address of the image of each tile; empty where it is not here

    @property
    def n_available(self) -> int:
        """Images that are here, among those shown."""
        return sum(map(bool, self.images))

    @property
    def drawn(self) -> bool:
        """Whether tiles are shown: where fewer than half of the images are here, one line stands."""
        return 2 * self.n_available >= len(self.images)


@dataclass(frozen=True)
class EntryVerdict:
    """How one metric of the board does on a case."""

    entry_id: str
    verdict: Verdict


@dataclass(frozen=True)
class ExampleList:
    """What is shown of the examples of a benchmark."""

    choice: Choice  # what is looked at
    # why there is nothing to show; empty where there is
    missing: Literal["", "withheld", "no_cases"] = ""
    examples: tuple[Example, ...] = ()  # those of this page
    total: int = 0  # how many are listed on all pages
    page: int = 1  # which this is, from 1
    n_cases: int = 0  # with the skill and the split, listed or not
    summaries: tuple[Summary, ...] = ()  # of each metric, over those
    gap: Share | None = None  # difference of two metrics
    # for a case by itself: how the metrics of the board do on it, the worst first
    every_entry: tuple[EntryVerdict, ...] = ()
    absent: tuple[str, ...] = ()  # what could be fetched and is not here: prompts, images
    # the first benchmark on which metric A fails, where it does not here
    elsewhere: ItemsQuery | None = None
    sought: bool = False  # whether such a benchmark was looked for

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.total // PER_PAGE))


def list_examples(query: ItemsQuery, view: View, sources: ExampleSources) -> ExampleList | None:
    """The examples that a query asks for; None where there is no benchmark."""
    board, remark = board_of(query, view)
    if board is None:
        return None
    card = board.card
    cases = sources.cases(card)
    choice = resolve(query, board, cases, [remark] if remark else [])
    if cases is None:
        public = answers_are_public(card, sources.here)
        return ExampleList(choice, "no_cases" if public else "withheld")
    here = frozenset(sources.images.available(card.name))
    absent = _absent(cases, sources, here)
    if choice.query.case:
        return replace(_alone(choice, cases, view, sources), absent=absent)
    found = look(choice, cases, view, sources.reader, sources.lower())
    number = min(choice.query.page, max(1, -(-len(found.order) // PER_PAGE)))
    on_page = found.order[(number - 1) * PER_PAGE : number * PER_PAGE]
    shown = [case_shown(cases, int(case), found.standings, MOST_TILES) for case in on_page]
    none_fails = choice.show == "failures" and bool(choice.a) and not len(found.order)
    return ExampleList(
        choice=choice,
        examples=tuple(_example(one, card, here) for one in shown),
        total=len(found.order),
        page=number,
        n_cases=int(found.chosen.sum()),
        summaries=tuple(summary(cases, one, found.chosen) for one in found.standings),
        gap=difference(cases, *found.standings, found.chosen)
        if len(found.standings) == 2
        else None,
        absent=absent,
        elsewhere=first_failures(choice.query, view, sources) if none_fails else None,
        sought=none_fails,
    )


def _alone(choice: Choice, cases: CaseSet, view: View, sources: ExampleSources) -> ExampleList:
    """One case by itself, and which metrics of the board fail on it."""
    case = cases.place(choice.query.case)
    lower = sources.lower()
    metrics = [view.entries[entry] for entry in choice.metrics]
    shown = case_shown(
        cases, case, sources.reader.standings(metrics, cases, lower), MOST_TILES_ALONE
    )
    looked_at = dict.fromkeys([*choice.metrics, *choice.entries[:MOST_ENTRIES]])
    entries = [view.entries[entry] for entry in looked_at]
    rows = [
        EntryVerdict(one.entry_id, verdict(cases, case, one))
        for one in sources.reader.standings(entries, cases, lower)
    ]
    # Who scored nothing here did not fail by an order; they come last.
    rows.sort(key=lambda row: (not row.verdict.came.compared, row.verdict.came.share))
    here = frozenset(sources.images.available(choice.card.name))
    example = _example(shown, choice.card, here)
    return ExampleList(choice, examples=(example,), total=1, every_entry=tuple(rows))


def _absent(cases: CaseSet, sources: ExampleSources, here: Collection[str]) -> tuple[str, ...]:
    """What of the prompts and images is not here, where the benchmark has files to fetch."""
    card = sources.here.get(cases.benchmark)
    if card is None or not card.files:
        return ()
    has = {"prompts": cases.has_prompts, "images": bool(here)}
    return tuple(what for what, is_here in has.items() if not is_here)


def _example(case: CaseShown, card: Card, here: Collection[str]) -> Example:
    # A skill whose sub-skill is named too says nothing more.
    leaves = [s for s in case.skills if not any(o.startswith(f"{s}:") for o in case.skills)]
    return Example(
        case=case,
        skills=tuple(skill_title(card, skill) for skill in leaves),
        images=tuple(
            image_address(card.name, tile.image_id) if tile.image_id in here else ""
            for tile in case.tiles
        ),
    )


def image_address(benchmark: str, image_id: str, width: int = IMAGE_WIDTH) -> str:
    """Where the thumbnail of an image of a benchmark is; not escaped for HTML yet."""
    return f"./v1/images/{quote(benchmark, safe='')}/{quote(image_id, safe='')}?w={width}"


def first_failures(query: ItemsQuery, view: View, sources: ExampleSources) -> ItemsQuery | None:
    """The first benchmark on which a metric fails, for the skill that is asked for or for all."""
    start, _ = board_of(query, view)
    if start is None:
        return None
    entry = view.entries.get(query.a)
    whom = None if entry is None else Identity.of(entry)
    key = common_key(start.card, query.skill) if query.skill else None
    boards = [start, *(board for board in view.boards.values() if board is not start)]
    boards = [b for b in boards if b.card.simulated == start.card.simulated]
    for by_skill in (True, False) if query.skill else (False,):
        for board in boards:
            a = query.a if board is start and query.a else _entry_on(board, whom, view)
            cases = sources.cases(board.card) if a else None
            if cases is None:
                continue
            skill = ""
            if by_skill:
                same = query.skill if board is start else _same_skill(key, board, cases)
                if not same:
                    continue
                skill = same
            split = query.split if board is start else ""
            wanted = ItemsQuery(board.card.name, skill, split, a, show="failures")
            exact = resolve(wanted, board, cases)
            if len(look(exact, cases, view, sources.reader, sources.lower()).order):
                return exact.query
    return None


def _entry_on(board: BoardIndex, whom: Identity | None, view: View) -> str:
    """The entry of a metric on a board, or the first where none is named; empty: it has none."""
    entries = entries_on(board)
    if whom is None:
        return next(iter(entries), "")
    return next((one for one in entries if Identity.of(view.entries[one]) == whom), "")


def _same_skill(key: str | None, board: BoardIndex, cases: CaseSet) -> str:
    """The skill of another benchmark that goes by the same common name; empty where none does."""
    if key is None:
        return ""
    return next((s for s in cases.every_skill if common_key(board.card, s) == key), "")


def seek_failures(query: ItemsQuery, view: View, sources: ExampleSources) -> ItemsQuery:
    """The query, or that of the first benchmark on which its metric fails."""
    if query.show not in {"", "failures"}:
        return query
    found = first_failures(replace(query, b=""), view, sources)
    return query if found is None else found
