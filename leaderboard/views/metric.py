"""Metric detail: results, citation, commands, and metadata for the Hub."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.schema import Card, Selector
from leaderboard.publication.entries import Entry
from leaderboard.publication.flags import origin
from leaderboard.publication.identities import Identity, latest_cells
from leaderboard.publication.index import rescaled
from leaderboard.publication.measure_names import in_order, info, nearest, skill_title, token
from leaderboard.publication.metric_facts import metric_label
from leaderboard.publication.reader import BoardIndex, View, headline_cells
from leaderboard.publication.skill_names import common_key, common_names
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.index import Interval
from leaderboard.records import Kind, Status
from leaderboard.text import clean, interval
from leaderboard.views.skills import scale_of

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
    ranked: int  # metrics with a rank beside it
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
        cells = () if board.empty else board.of_entries(wanted)
        # Its own before those of its siblings, of which the latest counts.
        order = sorted(shown.others, key=lambda entry: entry.published_at, reverse=True)
        there = {cell.entry_id for cell in cells}
        whose = next((e.entry_id for e in (shown.entry, *order) if e.entry_id in there), None)
        if whose is not None:
            found.append(_on_board(board, whose, [c for c in cells if c.entry_id == whose]))
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


def _on_board(board: BoardIndex, entry_id: str, cells: Sequence[Cell]) -> OnBoard:
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
        sum(cell.rank is not None for cell in ranking),
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


_CITATION = re.compile(r"(?P<authors>[^:.\d]+(?: et al\.)?): (?P<title>.+?)\. (?P<rest>.*)")
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_YEAR = re.compile(r"\b(20\d\d)\b")
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "&": r"\&",
    "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip
"""Braces by name: BibTeX counts those with a backslash too, and a lone one would end the field."""
_LONGEST_CITED = 300


def benchmark_bibtex(card: Card) -> str:
    """The work behind a benchmark; the citation as a note where it cannot be taken apart."""
    found = _CITATION.match(card.citation)
    fields: dict[str, str] = {}
    if found and not card.simulated:
        names = found["authors"].removesuffix(" et al.").split(", ")
        more = ["others"] if found["authors"].endswith(" et al.") else []
        fields["author"] = " and ".join([*map(latex, names), *more])
        fields["title"] = f"{{{latex(found['title'])}}}"
    else:
        fields["title"] = f"{{{latex(card.title)}}}"
        fields["note"] = latex(card.citation)
    year = _YEAR.search(card.citation)
    fields["year"] = year[1] if year else ""
    arxiv = _ARXIV.search(card.citation)
    if arxiv:
        fields |= {"eprint": arxiv[1], "archiveprefix": "arXiv"}
    fields["url"] = card.links.get("paper") or card.links.get("Paper", "")
    return _entry(f"{card.name}{fields['year']}", fields)


def entry_bibtex(entry: Entry, cards: Iterable[Card], authors: Iterable[str], url: str) -> str:
    """The results of a metric on this board."""
    names = [name for name in map(latex, authors) if name] or [latex(entry.submitter)]
    tested = ", ".join(f"{card.title} {card.revision}" for card in cards)
    name = f"{entry.metric} {entry.version}".strip()
    fields = {
        "author": " and ".join(f"{{{name}}}" for name in names if name),
        "title": f"{{{latex(name)}: results of a text-to-image metric on Assay}}",
        "year": f"{entry.published_at:%Y}",
        "month": f"{entry.published_at:%b}".lower(),
        "note": latex(f"Entry {entry.submission_id}, on {tested}"),
        "url": url,
    }
    return _entry(f"assay-{entry.submission_id}", fields)


def latex(value: str) -> str:
    """A submitted text that BibTeX takes for nothing but text."""
    return "".join(_SPECIAL.get(char, char) for char in clean(value)[:_LONGEST_CITED]).strip()


def _entry(key: str, fields: Mapping[str, str]) -> str:
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@misc{{{key},\n{lines}}}"


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


FILE = ".eval_results/assay.yaml"
NO_DATASET = "its data are not in a dataset of the Hub"
_DATASET = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)/?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_SOURCE = "Assay"


@dataclass(frozen=True)
class HubResults:
    """What is ready to be put into a repository."""

    content: str  # of the file; empty where no benchmark has a dataset
    left_out: Mapping[str, str]  # benchmark to the reason why it is not in it


def hub_results(entry: Entry, cells: Iterable[tuple[Card, Cell]], url: str = "") -> HubResults:
    """The metadata of a metric."""
    # Loaded here: the pages start without them.
    import yaml  # noqa: PLC0415
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml  # noqa: PLC0415

    found, left_out = [], {}
    for card, cell in cells:
        dataset = dataset_of(card)
        why = _why_not(card, cell)
        if why or dataset is None:
            left_out[card.title] = why or NO_DATASET
            continue
        found.append(
            EvalResultEntry(
                dataset_id=dataset[0],
                dataset_revision=dataset[1] or None,
                task_id=card.name,
                value=round(cell.value or 0.0, 6),
                date=f"{entry.published_at:%Y-%m-%dT%H:%M:%SZ}",
                source_url=url or None,
                source_name=_SOURCE if url else None,
                notes=_notes(entry, card, cell),
            )
        )
    if not found:
        return HubResults("", left_out)
    records = eval_result_entries_to_yaml(found)
    content = yaml.safe_dump(records, sort_keys=False, allow_unicode=True, width=100)
    return HubResults(content, left_out)


def _why_not(card: Card, cell: Cell) -> str:
    if card.simulated:
        return "its ratings are simulated"
    if cell.distrust:
        return cell.distrust
    return "its value is undefined" if cell.value is None else ""


def dataset_of(card: Card) -> tuple[str, str] | None:
    """The dataset a benchmark's answers come from and the full commit it is pinned to, if any."""
    for file in card.files:
        if file.role == "answers" and file.repo and _REPOSITORY.fullmatch(file.repo):
            return file.repo, file.revision if _COMMIT.fullmatch(file.revision) else ""
    for address in card.links.values():
        linked = _DATASET.fullmatch(address)
        if linked:
            return linked[1], ""
    return None


def _notes(entry: Entry, card: Card, cell: Cell) -> str:
    measure = info(card, cell.measure).title
    span = interval(cell.ci_low, cell.ci_high)
    parts = [
        f"meta-evaluation of a metric: {measure} with people ({token(cell.selector)})",
        f"95 % interval {span}" if span else "",
        f"{cell.n_items} items, {cell.n_clusters} {card.cluster}s",
        f"{cell.n_missing} scores missing" if cell.n_missing else "",
        f"Assay revision {card.revision}, protocol {card.protocol}",
        f"entry {entry.entry_id}",
        origin(entry),
    ]
    return "; ".join(clean(part) for part in parts if part).replace("−", "-")
