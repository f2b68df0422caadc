"""Board of one ranking: what is asked for, its filters, columns, rows and layout."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote

from benchmarks.errors import PlatformError
from benchmarks.schema import Card, Selector
from leaderboard.publication.entries import (
    Entry,
    is_trained_on,
    origin,
    shown_account,
    signature_text,
)
from leaderboard.publication.measure_names import in_order, info, nearest, skill_title, title, token
from leaderboard.publication.metric_facts import metric_name
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.ranking.cells import Cell
from leaderboard.records import Cost, Kind
from leaderboard.text import clean
from leaderboard.views.addresses import ROWS_PAGE, items_address, page_number, query_of
from leaderboard.views.figures import in_words, named
from leaderboard.views.parameters import parameter
from leaderboard.views.skills import GIGA

MOST_PINS = 4  # As many as the page that compares takes
MOST_COLUMNS = 60
MOST_OPEN = 12
_LONGEST = 20_000  # Characters of a parameter that are looked at
_BETWEEN = ","
_SAFE = "~:@/ "
_DOWN = "-"  # Before the key of a sorted column: the worst first


@dataclass(frozen=True)
class Arrangement:
    """A layout; without arguments it is the plain ranking."""

    columns: tuple[str, ...] = parameter(
        "Further columns by key, joined by commas: a token, then @ and a skill where it is of one; "
        "or cost:pairs_per_s, cost:seconds, cost:gflops_declared, cost:memory_gib, "
        "cost:usd_per_1000_pairs; "
        "or meta:version, meta:submitter, meta:kind, meta:published.",
        default=(),
    )
    pins: tuple[str, ...] = ()  # entry ids held on top
    sort: str = parameter("Key of a column, after - where the worst come first. Without: by rank.")
    page: int = 1  # of the rows, from 1
    opened: tuple[str, ...] = ()  # entry ids whose details are unfolded

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> Arrangement:
        """Read from the query parameters of a request; nothing in them is trusted."""
        return cls(
            columns=_parted(params.get("columns", ""), MOST_COLUMNS),
            pins=_parted(params.get("pin", ""), MOST_PINS),
            sort=unquote(params.get("sort", "")[:_LONGEST]),
            page=page_number(params, ROWS_PAGE),
            opened=_parted(params.get("open", ""), MOST_OPEN),
        )

    def to_params(self) -> dict[str, str | int]:
        """The query parameters that `from_params` reads this from; empty ones too."""
        return {
            "columns": _list_of(self.columns),
            "pin": _list_of(self.pins),
            "sort": quote(self.sort, safe=_SAFE),
            ROWS_PAGE: self.page,
            "open": _list_of(self.opened),
        }

    @property
    def sorted_by(self) -> str:
        """Key of the column that rows are sorted by; empty: by rank."""
        return self.sort.removeprefix(_DOWN)

    @property
    def worst_first(self) -> bool:
        """Whether the sorting is turned round."""
        return self.sort.startswith(_DOWN)

    def known(self, columns: Collection[str], entries: Collection[str]) -> Arrangement:
        """The same without columns and entries that do not exist."""
        sortable = self.sorted_by in columns or self.sorted_by in OWN
        return replace(
            self,
            columns=tuple(key for key in self.columns if key in columns),
            pins=tuple(entry for entry in self.pins if entry in entries),
            opened=tuple(entry for entry in self.opened if entry in entries),
            sort=self.sort if sortable else "",
        )

    def pinned(self, entry_id: str) -> Arrangement:
        """With an entry pinned; the one that was pinned first gives way where there are enough."""
        if entry_id in self.pins:
            return self
        return replace(self, pins=(*self.pins, entry_id)[-MOST_PINS:])

    def unpinned(self, entry_id: str) -> Arrangement:
        """Without the pin of an entry."""
        return replace(self, pins=tuple(one for one in self.pins if one != entry_id))

    def unfolding(self, entry_id: str) -> Arrangement:
        """With the details of an entry unfolded; folded where they are unfolded already."""
        if entry_id in self.opened:
            return replace(self, opened=tuple(one for one in self.opened if one != entry_id))
        return replace(self, opened=(*self.opened, entry_id)[-MOST_OPEN:])

    def sorting(self, key: str) -> Arrangement:
        """Sorted by a column, best first; turned round where it is so sorted already."""
        turned = self.sort == key and key
        return replace(self, sort=f"{_DOWN}{key}" if turned else key, page=1)


def pin_in_query(entry_id: str) -> str:
    """An entry id as it stands among the pins of a query string."""
    return quote_plus(quote(entry_id, safe=_SAFE), safe="~:,")


def _parted(given: str, most: int) -> tuple[str, ...]:
    parts = (unquote(part) for part in given[:_LONGEST].split(_BETWEEN))
    return tuple(dict.fromkeys(part for part in parts if part))[:most]


@lru_cache(maxsize=256)
def _list_of(keys: tuple[str, ...]) -> str:
    # A key may hold a comma itself.
    return _BETWEEN.join(quote(key, safe=_SAFE) for key in keys)


_OF_SKILL = "@"


@dataclass(frozen=True)
class Column:
    """A column beside the ranked one."""

    key: str  # in links
    title: str  # measure, variant and skill, the kind of cost, or what is known of a metric
    meaning: str  # its definition
    higher_is_better: bool  # which way is better
    selector: Selector | None = None  # the measure; None for a cost and for words
    skill: str | None = None  # of the measure; None: all skills


def _by_key(*columns: Column) -> dict[str, Column]:
    return {column.key: column for column in columns}


FLOPS, USD = "cost:gflops_declared", "cost:usd_per_1000_pairs"
COSTS = _by_key(
    Column("cost:pairs_per_s", "Pairs/s", "Pairs scored in a second of the run here.", True),
    Column("cost:seconds", "Seconds", "Time spent in the scorer on this benchmark.", False),
    Column(FLOPS, "GFLOPs/pair, declared",
           "Floating-point operations of one pair as its author declares them, not measured.",
           False),
    Column("cost:memory_gib", "Memory, GiB", "Most memory the scorer held at a time.", False),
    Column(USD, "USD per 1,000 pairs",
           "Price of the replies of a metric that is paid for, those kept from earlier runs included.",
           False),
)  # fmt: skip
"""Columns of what a run used, empty for scores that were not computed here; and what is declared."""
METADATA = _by_key(
    Column("meta:version", "Version", "As its submitter names it.", False),
    Column("meta:submitter", "Submitter", "Who sent it, with the account.", False),
    Column("meta:kind", "Scores", "Computed by Assay, as submitted, or released by the authors.",
           False),
    Column("meta:published", "Published", "Date of the result.", False),
)  # fmt: skip
"""Columns of what is known of a metric, in words."""
OWN = _by_key(
    Column("metric", "Metric", "Its name.", False),
    Column("value", "Value", "Of the ranked measure.", True),
    Column("best_share", "Best in",
           "Share of the resamples in which it has the best value; a tie is shared out.", True),
    Column("n", "n", "Clusters behind the value.", True),
)  # fmt: skip
"""What every board shows beside the columns that are chosen, and may be sorted by."""


def key_of(selector: Selector, skill: str | None) -> str:
    """The key of a measure of a skill. It is compared, never taken apart again."""
    return f"{token(selector)}{_OF_SKILL}{skill}" if skill is not None else token(selector)


def every_key(board: BoardIndex) -> dict[str, tuple[Selector, str | None] | None]:
    """All keys of a board with what they stand for; None: a cost or a word. In the chooser's order."""
    found: dict[str, tuple[Selector, str | None] | None] = {}
    for skill in (None, *board.skills()):
        for selector in in_order(board.card, board.selectors(skill)):
            found[key_of(selector, skill)] = (selector, skill)
    return {**found, **dict.fromkeys((*COSTS, *METADATA))} if found else {}


def columns_of(board: BoardIndex, keys: Iterable[str]) -> tuple[Column, ...]:
    """The columns of some keys, those that exist."""
    known = every_key(board)
    among = board.every_selector()
    return tuple(_column(board.card, key, known[key], among) for key in keys if key in known)


def _column(
    card: Card, key: str, what: tuple[Selector, str | None] | None, among: tuple[Selector, ...]
) -> Column:
    if what is None:
        return COSTS.get(key) or METADATA[key]
    selector, skill = what
    measure = info(card, selector.measure)
    name = title(card, selector, among)
    if skill is not None:
        name = f"{name}, {skill_title(card, skill)}"
    return Column(key, name, measure.meaning, measure.higher_is_better, selector, skill)


@dataclass(frozen=True)
class Values:
    """The values of one column for every entry that has one."""

    column: Column
    cells: Mapping[str, Cell]  # entry id to its cell; empty for a cost
    costs: Mapping[str, float]  # entry id to its cost; empty for a measure
    # entry id to what is known of it; empty for what is measured
    words: Mapping[str, str] = field(default_factory=dict)

    def of(self, entry_id: str) -> float | None:
        """The value of an entry; None where it has none."""
        cell = self.cells.get(entry_id)
        return cell.value if cell is not None else self.costs.get(entry_id)


def values_of(board: BoardIndex, column: Column, entries: Mapping[str, Entry]) -> Values:
    """The values of a column."""
    if column.selector is not None:
        cells = board.cells(column.selector, column.skill)
        return Values(column, {cell.entry_id: cell for cell in cells}, {})
    if column.key in METADATA:
        words = {entry_id: _word(entry, column.key) for entry_id, entry in entries.items()}
        return Values(column, {}, {}, {entry_id: word for entry_id, word in words.items() if word})
    if column.key == FLOPS:
        declared = ((entry_id, entry.flops_per_pair) for entry_id, entry in entries.items())
        return Values(column, {}, {e: flops / GIGA for e, flops in declared if flops is not None})
    known = ((entry_id, entry.cost.get(board.card.name)) for entry_id, entry in entries.items())
    costs = {entry_id: _cost(cost, column.key) for entry_id, cost in known if cost is not None}
    return Values(column, {}, {e: cost for e, cost in costs.items() if cost is not None})


def _word(entry: Entry, key: str) -> str:
    if key == "meta:version":
        return entry.version
    if key == "meta:submitter":
        return signature_text(entry)
    if key == "meta:kind":
        return origin(entry) or KINDS[Kind.METRIC.value]
    return f"{entry.published_at:%Y-%m-%d}"


def _cost(cost: Cost, key: str) -> float | None:
    if key == "cost:pairs_per_s":
        return cost.pairs_per_s
    if key == "cost:seconds":
        return cost.seconds
    if key == USD:
        return cost.usd_per_1000_pairs
    return cost.peak_memory_bytes / 2**30 if cost.peak_memory_bytes else None


MOST_SEARCHED = 200  # Characters of a search that are looked at
KINDS = {Kind.METRIC.value: "run by Assay", Kind.SCORES.value: "scores as submitted"}
"""What an entry may be, and its name in the chooser."""
YES = "1"  # How a link says so; anything else is no


@dataclass(frozen=True)
class Filters:
    """A choice among the entries of a board; without arguments it keeps all of them."""

    search: str = parameter("Only metrics or submitters with one of these texts, parted by commas.")
    kind: str = parameter("Only entries of this kind.", Kind.METRIC.value, options=KINDS)
    untrained: bool = parameter(
        "1: without those trained on the benchmark.", YES, options=(YES,), default=False
    )
    within: bool = parameter(
        "1: rank and test only the entries that are kept, among themselves. That is chosen after "
        "seeing the data. Without: ranks, tiers and p-values of all entries.",
        YES,
        options=(YES,),
        default=False,
    )

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> Filters:
        """Read from the query parameters of a request; nothing in them is trusted."""
        return cls(
            search=clean(params.get("search", "")[:MOST_SEARCHED]).strip(),
            kind=params.get("kind", ""),
            untrained=params.get("untrained", "") == YES,
            within=params.get("within", "") == YES,
        )

    def to_params(self) -> dict[str, str]:
        """The query parameters that `from_params` reads this from; empty ones too."""
        return {
            "kind": self.kind,
            "untrained": YES if self.untrained else "",
            "search": self.search,
            "within": YES if self.within and self.active else "",
        }

    @property
    def terms(self) -> tuple[str, ...]:
        """What is searched for, each without regard to case."""
        found = (part.strip().casefold() for part in self.search.split(","))
        return tuple(term for term in found if term)

    @property
    def active(self) -> bool:
        """Whether anything may be left out."""
        return bool(self.terms or self.kind or self.untrained)

    def known(self) -> tuple[Filters, tuple[str, ...]]:
        """The same without a kind that does not exist, and what to say about that."""
        remark = f"There is no kind of entry “{clean(self.kind)[:40]}”; all kinds are shown."
        unknown = bool(self.kind) and self.kind not in KINDS
        found = replace(self, kind="") if unknown else self
        # Without a filter there is nothing to be within.
        return replace(found, within=found.within and found.active), (remark,) * unknown

    def parts(self) -> tuple[tuple[str, Filters], ...]:
        """Each part in words, with the filter that is left when it is taken away.

        What is left is not tested within: that is asked for anew for every choice.
        """
        left = replace(self, within=False)
        found = [
            (f"“{term}”", replace(left, search=", ".join(t for t in self.terms if t != term)))
            for term in dict.fromkeys(self.terms)
        ]
        if self.kind in KINDS:
            found.append((KINDS[self.kind], replace(left, kind="")))
        if self.untrained:
            found.append(("not trained on this benchmark", replace(left, untrained=False)))
        return tuple(found)

    def keeps(self, entry: Entry, card: Card) -> bool:
        """Whether an entry of a board is looked at."""
        if self.kind and entry.kind.value != self.kind:
            return False
        if self.untrained and is_trained_on(entry, card):
            return False
        every = (entry.metric, metric_name(entry), entry.submitter, shown_account(entry.account))
        names = [clean(name).casefold() for name in every]
        terms = self.terms
        return not terms or any(term in name for term in terms for name in names)

    def kept(
        self, entry_ids: Iterable[str], entries: Mapping[str, Entry], card: Card
    ) -> Collection[str] | None:
        """Those of some entries that are looked at; None where nothing is filtered."""
        if not self.active:
            return None
        return frozenset(e for e in entry_ids if self.keeps(entries[e], card))


TAB = "benchmark:"  # Before the name of a benchmark, where it is a tab of the first page
BETWEEN_SKILLS = ","
"""Joins the skills of a link; a parameter `skill` may come several times as well."""
_MOST_NAMED = 3
MEASURE = "A measure, or a token as /v1/benchmarks/{benchmark} lists them."
SKILLS = "Skills by key, joined by commas: their mean. Without: all skills."


@dataclass(frozen=True)
class BoardQuery:
    """The state of the boards page. Everything is as asked for, and may not exist."""

    # registry name; a page shows the first with results where it is empty
    benchmark: str = parameter("That of the address.", "demo_croc")
    skill: str = parameter(SKILLS, several=True)
    measure: str = parameter(MEASURE)
    filters: Filters = field(default_factory=Filters)  # which entries are shown
    # further columns, pinned rows, sorting and page
    arranged: Arrangement = field(default_factory=Arrangement)

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> BoardQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        several = getattr(params, "getlist", None)
        skills = several("skill") if several else [params.get("skill", "")]
        return cls(
            benchmark=benchmark_of(params),
            skill=BETWEEN_SKILLS.join(skill for skill in skills if skill),
            measure=params.get("measure", ""),
            filters=Filters.from_params(params),
            arranged=Arrangement.from_params(params),
        )

    def to_query(self) -> str:
        """The query string of the link to this state, with its question mark."""
        return self._query(benchmark=self.benchmark)

    def to_link(self) -> str:
        """The address of this state: the tab of its benchmark; not escaped for HTML."""
        return f"./{self._query(tab=f'{TAB}{self.benchmark}')}"

    def _query(self, **benchmark: str) -> str:
        own = {"skill": self.skill, "measure": self.measure}
        return query_of(
            benchmark | own | self.filters.to_params() | self.arranged.to_params(), "~:,"
        )


def benchmark_of(params: Mapping[str, str]) -> str:
    """The benchmark that an address names: by itself, or as a tab of the first page."""
    tab = params.get("tab", "")
    return params.get("benchmark", "") or (tab.removeprefix(TAB) if tab.startswith(TAB) else "")


@dataclass(frozen=True)
class Choice:
    """What is shown: a query resolved against what exists."""

    board: BoardIndex
    skills: tuple[str, ...]  # the skills whose mean is shown; none means all skills together
    selector: Selector | None  # the measure; None where the board is empty
    options: tuple[Selector, ...]  # the measures that exist for all of those skills, headline first
    filters: Filters = field(default_factory=Filters)  # which entries are shown
    remarks: tuple[str, ...] = ()  # what was asked for and could not be shown, in sentences
    arranged: Arrangement = field(default_factory=Arrangement)  # how rows and columns are laid out

    @property
    def skill(self) -> str | None:
        """The one skill that is shown; None for all and for the mean of several."""
        return self.skills[0] if len(self.skills) == 1 else None

    @property
    def query(self) -> BoardQuery:
        """The exact state, for a link."""
        return BoardQuery(
            benchmark=self.board.card.name,
            skill=BETWEEN_SKILLS.join(self.skills),
            measure=token(self.selector) if self.selector else "",
            filters=self.filters,
            arranged=self.arranged,
        )

    @property
    def title(self) -> str:
        """What the measure is shown of: one skill, all, or the mean of several."""
        return skills_title(self.board.card, self.skills)

    @property
    def measure_title(self) -> str:
        """The name of the measure; empty where there is none."""
        if self.selector is None:
            return ""
        return title(self.board.card, self.selector, self.board.every_selector())

    def slices(self) -> list[tuple[Cell, ...]]:
        """The cells of each skill that is shown."""
        if self.selector is None:
            return []
        return [self.board.cells(self.selector, skill) for skill in self.skills or (None,)]

    def entry_ids(self) -> tuple[str, ...]:
        """Whoever has a value in any of the slices, filtered or not."""
        return tuple(dict.fromkeys(cell.entry_id for of in self.slices() for cell in of))


def skills_title(card: Card, skills: tuple[str, ...]) -> str:
    """`All skills`, the skill, or `mean of Counting and Colour`; many are only counted."""
    names = [skill_title(card, skill) for skill in skills]
    if len(names) < 2:
        return names[0] if names else skill_title(card, None)
    return f"mean of {len(names)} skills" if len(names) > 4 else f"mean of {in_words(names)}"


def resolve(query: BoardQuery, boards: Mapping[str, BoardIndex]) -> Choice:
    """Find what a query asks for, saying so wherever something else must be shown instead."""
    if not boards:
        raise PlatformError("no_benchmarks", "This installation has no benchmarks.")
    remarks: list[str] = []
    first = next((n for n, b in boards.items() if not b.empty), next(iter(boards)))
    name = query.benchmark or first
    if name not in boards:
        remarks.append(f"There is no benchmark “{named(name)}” here.")
        name = first
    board = boards[name]
    filters, about_filters = query.filters.known()
    skills, about_skills = _skills(query.skill, board)
    remarks += [*about_filters, *about_skills]
    options = in_order(board.card, _common(board, skills))
    if not options:
        return Choice(board, skills, None, (), filters, tuple(remarks))
    selector, remark = _selector(query.measure, board, skills, options)
    choice = Choice(board, skills, selector, options, filters, (*remarks, *remark))
    return _arranged(choice, query.arranged)


def _arranged(choice: Choice, asked: Arrangement) -> Choice:
    """With the columns and pins that exist; what is not there is said, but for rows gone since."""
    if asked == Arrangement():
        return choice
    board = choice.board
    found = asked.known(every_key(board), frozenset(choice.entry_ids()))
    remarks = choice.remarks
    if lost := [key for key in asked.columns if key not in found.columns]:
        names = ", ".join(f"“{named(key)}”" for key in lost[:_MOST_NAMED])
        more = ", …" if len(lost) > _MOST_NAMED else ""
        remarks += (f"No column {names}{more} on {board.card.title}.",)
    if asked.sort and not found.sort:
        name = named(asked.sorted_by)
        remarks += (f"No column “{name}” to sort by on {board.card.title}; sorted by rank.",)
    if lost_pins := len(asked.pins) - len(found.pins):
        gone = "A pinned metric is" if lost_pins == 1 else f"{lost_pins} pinned metrics are"
        remarks += (f"{gone} not on this board.",)
    return replace(choice, arranged=found, remarks=remarks)


def _skills(asked: str, board: BoardIndex) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The skills that exist among those asked for, and that share a measure."""
    known = board.skills()
    # A key that holds a comma itself is one skill, not several.
    parts = (asked,) if asked in known else dict.fromkeys(asked.split(BETWEEN_SKILLS))
    wanted = [part for part in parts if part]
    found = [part for part in wanted if part in known]
    remarks: list[str] = []
    unknown = [part for part in wanted if part not in known]
    if unknown and not board.empty:
        names = ", ".join(f"“{named(part)}”" for part in unknown[:_MOST_NAMED])
        more = ", …" if len(unknown) > _MOST_NAMED else ""
        which = "skill" if len(unknown) == 1 else "skills"
        remarks.append(f"No results by the {which} {names}{more} on {board.card.title}.")
    if not found:
        all_skills = bool(board.selectors(None)) or not known
        return (() if all_skills else known[:1]), tuple(remarks)
    kept = found[:1]
    for skill in found[1:]:
        if _common(board, (*kept, skill)):
            kept.append(skill)
            continue
        remarks.append(
            f"{skill_title(board.card, skill)} shares no measure with "
            f"{skills_title(board.card, tuple(kept))} and is left out of the mean."
        )
    return tuple(kept), tuple(remarks)


def _common(board: BoardIndex, skills: tuple[str, ...]) -> tuple[Selector, ...]:
    """What is measured for each of the skills."""
    first, *others = skills or (None,)
    elsewhere = [frozenset(board.selectors(skill)) for skill in others]
    return tuple(s for s in board.selectors(first) if all(s in of for of in elsewhere))


def _selector(
    wanted: str, board: BoardIndex, skills: tuple[str, ...], options: tuple[Selector, ...]
) -> tuple[Selector, tuple[str, ...]]:
    for option in options:
        if wanted in {"", token(option)}:
            return option, ()
    same = [option for option in options if option.measure == wanted]
    if same:
        return same[0], ()
    everywhere = board.every_selector()
    asked = next((s for s in everywhere if token(s) == wanted), None)
    if asked is None:
        remark = f"There is no measure “{named(wanted)}” on {board.card.title}."
        return options[0], (remark,)
    found = nearest(asked, options, board.card)
    remark = (
        f"“{title(board.card, asked, everywhere)}” is not reported for "
        f"{skills_title(board.card, skills)}; shown instead: "
        f"“{title(board.card, found, everywhere)}”."
    )
    return found, (remark,)


_ENTRY = "0ENTRY0"


@dataclass(frozen=True)
class Layout:
    """How a ranking is laid out; without arguments it is the plain ranking without links."""

    arranged: Arrangement = field(default_factory=Arrangement)  # what was asked for
    columns: tuple[Values, ...] = ()  # the further columns with their values
    # of the same view laid out otherwise; None where it cannot be (a kept board)
    address: Callable[[Arrangement], str] | None = None
    # skill and measure of the view, for the page that compares
    compared: Mapping[str, str] = field(default_factory=dict)
    # address of the items behind a value of an entry, by skill and split; None where a
    # benchmark's answers are not public, so that there is nothing to look at
    items: ItemLinks | None = None
    higher_is_better: bool = True  # by the ranked measure


@dataclass(frozen=True)
class ItemLinks:
    """Addresses of the items behind values, made once for a column and filled in for each row."""

    benchmark: str

    @classmethod
    def of(cls, card: Card) -> ItemLinks | None:
        """Those of a benchmark; None where its items are not public."""
        return cls(card.name) if card.answers_public else None

    def column(self, skill: str | None, split: str | None) -> str:
        """The address for one column, to be given to `of_entry`."""
        return items_address(self.benchmark, skill=skill or "", split=split or "", a=_ENTRY)

    def entry(self, entry_id: str) -> str:
        """An entry as it stands in an address; made once for all columns of its row."""
        return quote(entry_id, safe="~:/")

    def of_entry(self, column: str, entry: str) -> str:
        """The address for one row of a column, of the entry as `entry` gives it."""
        return column.replace(_ENTRY, entry)


def layout_of(choice: Choice, view: View) -> Layout:
    """How the ranking of a choice is laid out, with its links."""
    query, arranged = choice.query, choice.arranged
    keys = dict.fromkeys((*arranged.columns, *filter(None, (arranged.sorted_by,))))
    columns = columns_of(choice.board, keys)
    return Layout(
        arranged,
        tuple(values_of(choice.board, column, view.entries) for column in columns),
        lambda other: replace(query, arranged=other).to_link(),
        {"skill": query.skill, "measure": query.measure},
        ItemLinks.of(choice.board.card),
        choice.selector is None or choice.board.card.higher_is_better(choice.selector.measure),
    )
