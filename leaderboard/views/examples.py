"""Examples of a benchmark: prompts with their images, ratings and scores, chosen and in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args
from urllib.parse import quote

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.cases import BETWEEN_SKILLS
from benchmarks.schema import Card
from leaderboard.publication.entries import Identity
from leaderboard.publication.item_scores import CaseSet, CaseSummary, ItemReader
from leaderboard.publication.measure_names import in_card_order, in_order, leaves, skill_title
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.publication.skill_names import common_key
from leaderboard.records import Status
from leaderboard.tables import Column, Table, Type, Value
from leaderboard.views.addresses import paged
from leaderboard.views.compare_query import CompareQuery, Show
from leaderboard.views.figures import named

SHOWS: tuple[Show, ...] = get_args(Show)
PER_PAGE = 12
ALL_SPLITS = "all"  # In a link from a board; it means the same as none


@dataclass(frozen=True)
class Choice:
    """What is shown: a query resolved against what exists."""

    card: Card  # the benchmark
    query: CompareQuery  # the exact state, for links
    entries: tuple[str, ...]  # ids of all metrics on the board, best first
    a: str  # the metric that is looked at; empty where the board has none
    b: str  # the one it is held against; empty for none
    show: Show  # which cases are listed
    skills: tuple[str, ...]  # the skills that cases have
    splits: tuple[str, ...]  # the splits that cases are in
    remarks: tuple[str, ...]  # what was asked for and could not be shown, in sentences

    @property
    def metrics(self) -> tuple[str, ...]:
        """Entry ids of those that are looked at: one or two."""
        return tuple(entry for entry in (self.a, self.b) if entry)


def board_of(query: CompareQuery, view: View) -> tuple[BoardIndex | None, str]:
    """The board that is asked for, or another and a remark; None where there is no benchmark."""
    boards = view.boards
    first = next((board for board in boards.values() if not board.empty), None)
    first = first or next(iter(boards.values()), None)
    if not query.benchmark or query.benchmark in boards:
        return boards.get(query.benchmark, first), ""
    return first, f"There is no benchmark “{named(query.benchmark)}” here."


def resolve(
    query: CompareQuery, board: BoardIndex, cases: CaseSet | None, remarks: Sequence[str] = ()
) -> Choice:
    """Find what a query asks for, saying so wherever something else is shown instead."""
    said, entries = list(remarks), entries_on(board)
    a = _known(query.a, entries, "metric", said) or (entries[0] if entries else "")
    b = _known(query.b, entries, "metric", said)
    if b and b == a:
        said.append("A metric is not held against itself; choose another as B.")
        b = ""
    skills = in_card_order(board.card, cases.every_skill if cases else ())
    splits = cases.every_split if cases else ()
    skill = _known(query.skill, skills, "skill", said)
    split = _known("" if query.split == ALL_SPLITS else query.split, splits, "split", said)
    case = _known(query.case, cases.comparisons.case_ids if cases else (), "case", said)
    show = _show(query.show, b, said)
    exact = replace(query, benchmark=board.card.name, skill=skill, split=split, a=a, b=b,
                    show=show, case=case)  # fmt: skip
    return Choice(board.card, exact, entries, a, b, show, skills, splits, tuple(said))


def entries_on(board: BoardIndex) -> tuple[str, ...]:
    """Entry ids of the metrics on a board, best first by what it is ordered by."""
    every = board.every_selector()
    if not every:
        return ()
    overall = in_order(board.card, board.selectors(None) or every)
    cells = board.cells(overall[0], None if board.selectors(None) else board.skills()[0])
    return tuple(dict.fromkeys(cell.entry_id for cell in cells))


def _show(asked: str, b: str, remarks: list[str]) -> Show:
    show = next((one for one in SHOWS if one == asked), None)
    if asked and show is None:
        remarks.append(f"There is nothing called “{named(asked)}” to show.")
    if show == "disagreements" and not b:
        remarks.append("Disagreements need a second metric; choose one as B.")
        return "failures"
    return show or ("disagreements" if b else "failures")


def _known(asked: str, known: Sequence[str], what: str, remarks: list[str]) -> str:
    if not asked or asked in known:
        return asked
    remarks.append(f"There is no {what} “{named(asked)}” on this benchmark.")
    return ""


BINS = 10  # Of a histogram of shares
_FEWEST_CLUSTERS = 8  # Below this an interval would say more than is known, as on the boards


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval over resampled clusters; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """What one metric does on all the cases that are looked at."""

    entry_id: str  # the metric
    right: Share  # share of comparisons that it orders as people do
    n_compared: int  # comparisons, without those that lack a score
    n_cases: int
    n_all_right: int  # cases without a mistake
    n_missing: int  # pairs without a score
    bins: IntArray  # shape (BINS,), cases by the share that is right in them


def summary(cases: CaseSet, standing: CaseSummary, chosen: BoolArray) -> Summary:
    """Add up a metric over some cases (C,)."""
    share = standing.share[chosen]
    known = share[np.isfinite(share)]
    places = np.minimum((known * BINS).astype(np.intp), BINS - 1)
    return Summary(
        entry_id=standing.entry_id,
        right=_share(_resampled(cases, standing, chosen)),
        n_compared=int(standing.n_compared[chosen].sum()),
        n_cases=int(chosen.sum()),
        n_all_right=int((known == 1.0).sum()),
        n_missing=int(standing.n_missing[chosen].sum()),
        bins=np.bincount(places, minlength=BINS),
    )


def difference(cases: CaseSet, a: CaseSummary, b: CaseSummary, chosen: BoolArray) -> Share:
    """Share of a less that of b, both over the same resamples."""
    return _share(_resampled(cases, a, chosen) - _resampled(cases, b, chosen))


def listed(
    show: Show, cases: CaseSet, standings: tuple[CaseSummary, ...], chosen: BoolArray
) -> IntArray:
    """Positions of the cases to list, in their order.

    `failures` are those in which the first metric is not all right or lacks a score, worst first;
    `disagreements` those in which a comparison comes out otherwise for the second, the greatest
    difference first (one of the two then disagrees with people); `all` are all, in the order of the
    benchmark.
    """
    if show == "all" or not standings:
        return np.flatnonzero(chosen)
    a, size = standings[0], cases.size
    if show == "disagreements" and len(standings) > 1:
        b = standings[1]
        differ = np.nan_to_num(np.abs(a.outcome - b.outcome)) > 0
        n_differ = np.bincount(cases.case_of_comparison[differ], minlength=size)
        gap = np.nan_to_num(np.abs(a.share - b.share))
        kept = np.flatnonzero(chosen & (n_differ > 0))
        return kept[np.lexsort((-n_differ[kept], -gap[kept]))]
    missed = np.isnan(a.share) & (cases.compared > 0)
    kept = np.flatnonzero(chosen & ((a.share < 1.0) | missed))
    worst = np.nan_to_num(a.share[kept], nan=2.0)
    return kept[np.lexsort((-a.n_compared[kept], worst))]


def _resampled(cases: CaseSet, standing: CaseSummary, chosen: BoolArray) -> FloatArray:
    """The share over the chosen cases: as they are, then in each resample of the clusters."""
    size = len(cases.clusters)
    of, right = cases.cluster_of[chosen], standing.n_right[chosen]
    per_cluster = np.stack(
        [
            np.bincount(of, weights=right, minlength=size),
            np.bincount(of, weights=standing.n_compared[chosen], minlength=size),
        ],
        axis=1,
    )
    inside = np.bincount(of, minlength=size) > 0
    sums = per_cluster.sum(axis=0)[None, :]
    if inside.sum() >= _FEWEST_CLUSTERS:
        sums = np.concatenate([sums, cases.plan.counts[:, inside] @ per_cluster[inside]])
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: FloatArray = sums[:, 0] / sums[:, 1]
    return shares


def _share(values: FloatArray) -> Share:
    draws = values[1:][np.isfinite(values[1:])]
    if not draws.size:
        return Share(float(values[0]), float("nan"), float("nan"))
    low, high = np.quantile(draws, [0.025, 0.975])
    return Share(float(values[0]), float(low), float(high))


@dataclass(frozen=True)
class CaseSample:
    """The cases that a choice lists."""

    standings: tuple[CaseSummary, ...]  # of metric A, and of metric B where there is one
    chosen: BoolArray  # shape (C,), the cases with the skill and in the split
    order: IntArray  # positions of those that are listed, in their order


def answers_are_public(card: Card, here: Mapping[str, Card]) -> bool:
    """Whether those of a benchmark are: by the card that is published, and by the one here."""
    return card.answers_public and here.get(card.name, card).answers_public


def lower_is_better(statuses: Iterable[Status]) -> dict[str, tuple[str, ...]]:
    """Submission to those of its metrics whose smaller scores mean a better match."""
    submissions = (status.submission for status in statuses)
    return {one.submission_id: one.lower_is_better for one in submissions}


def look(
    choice: Choice,
    cases: CaseSet,
    view: View,
    reader: ItemReader,
    lower: Mapping[str, tuple[str, ...]],
) -> CaseSample:
    """List the cases of a choice."""
    entries = [view.entries[entry] for entry in choice.metrics]
    standings = reader.summaries(entries, cases, lower)
    chosen = cases.within(choice.query.skill, choice.query.split)
    return CaseSample(standings, chosen, listed(choice.show, cases, standings, chosen))


MOST_TILES = 6  # Images of a case in a list; the case by itself shows more
MOST_TILES_ALONE = 60


@dataclass(frozen=True)
class Came:
    """How comparisons came out."""

    right: int  # as people have it
    wrong: int  # the other way round
    tied: int  # with equal scores, which count a half

    @classmethod
    def of(cls, outcome: FloatArray) -> Came:
        """Count outcomes: 1 right, 0 wrong, a half for equal scores, NaN not compared."""
        return cls(
            int((outcome == 1).sum()), int((outcome == 0).sum()), int((outcome == 0.5).sum())
        )

    @property
    def compared(self) -> int:
        """All of them."""
        return self.right + self.wrong + self.tied

    @property
    def share(self) -> float:
        """Right among all, ties counting a half; NaN where there is none."""
        return (self.right + self.tied / 2) / self.compared if self.compared else float("nan")


@dataclass(frozen=True)
class Scored:
    """What one metric made of one pair."""

    score: float  # as the metric gave it, larger for a better match; NaN where it gave none
    came: Came  # how its comparisons came out


@dataclass(frozen=True)
class PairShown:
    """One pair: which of the case's prompts, what people say, and each metric's score."""

    prompt: int
    said: str
    scored: tuple[Scored, ...]


@dataclass(frozen=True)
class ImageCard:
    """One image of a case, with its pairs."""

    number: int  # of the image within its case, from 1, in the order of what people say
    image_id: str  # of the question side
    pairs: tuple[PairShown, ...]  # one for each prompt that it is scored with


@dataclass(frozen=True)
class CaseVerdict:
    """How one metric does on a case."""

    entry_id: str
    came: Came  # how the comparisons came out of which it scored both pairs
    n_missing: int  # pairs without a score


@dataclass(frozen=True)
class WrongComparison:
    """A comparison that a metric gets wrong: it scores `above` over `below`."""

    # number of the image, prompt, what people say and the score of what it prefers
    above: tuple[int, int, str, float]
    below: tuple[int, int, str, float]  # the same of what people prefer


@dataclass(frozen=True)
class CaseShown:
    """All that is shown of a case."""

    case_id: str
    prompts: tuple[str, ...]  # its prompts; most cases have one
    skills: tuple[str, ...]  # keys of its skills
    tiles: tuple[ImageCard, ...]  # its images, as many as are shown
    n_images: int  # how many it has
    verdicts: tuple[CaseVerdict, ...]  # of each metric
    mistake: WrongComparison | None  # the gravest of the first metric; None where it makes none
    skill_titles: tuple[str, ...] = ()  # how its skills are shown
    images: tuple[str, ...] = ()  # address of the image of each tile; empty where it is not here

    @property
    def n_available(self) -> int:
        """Images that are here, among those shown."""
        return sum(map(bool, self.images))

    @property
    def drawn(self) -> bool:
        """Whether tiles are shown, not a line: where half of the images are here or more."""
        return 2 * self.n_available >= len(self.images)


def case_shown(
    cases: CaseSet, case: int, standings: Sequence[CaseSummary], most: int = MOST_TILES
) -> CaseShown:
    """Gather what is shown of a case."""
    rows = cases.rows_of(case)
    frame = cases.frame.iloc[rows]
    prompts = tuple(dict.fromkeys(frame["prompt"].astype(str)))
    inside = np.flatnonzero(cases.case_of_comparison == case)
    images = _by_expectation([str(i) for i in frame["image_id"]], frame["expected"].to_numpy(float))
    tallies = [_tallies(cases, standing, rows, inside) for standing in standings]
    tiles = tuple(
        ImageCard(
            number,
            image,
            tuple(
                PairShown(
                    prompts.index(str(frame["prompt"].iloc[k])),
                    str(frame["said"].iloc[k]),
                    tuple(tally[k] for tally in tallies),
                )
                for k in places
            ),
        )
        for number, (image, places) in enumerate(images.items(), start=1)
    )
    pair_at = {
        int(rows[place]): (tile.number, pair)
        for tile, places in zip(tiles, images.values(), strict=True)
        for place, pair in zip(places, tile.pairs, strict=True)
    }
    mistake = _gravest(cases, standings[0], inside, pair_at) if standings else None
    return CaseShown(
        case_id=cases.comparisons.case_ids[case],
        prompts=prompts,
        skills=cases.skills[case],
        tiles=_worst(tiles, most, mistake),
        n_images=len(tiles),
        verdicts=tuple(verdict(cases, case, standing) for standing in standings),
        mistake=mistake,
    )


def verdict(cases: CaseSet, case: int, standing: CaseSummary) -> CaseVerdict:
    """How a metric does on one case."""
    outcome = standing.outcome[cases.case_of_comparison == case]
    return CaseVerdict(standing.entry_id, Came.of(outcome), int(standing.n_missing[case]))


def _by_expectation(image_ids: Sequence[str], expected: np.ndarray) -> dict[str, list[int]]:
    """Image to the places of its pairs: what people find best first, else as it comes."""
    places: dict[str, list[int]] = {}
    for place, image in enumerate(image_ids):
        places.setdefault(image, []).append(place)
    # By the first prompt alone: the sum over both sides of a contrast is the same for all images.
    best = np.nan_to_num(expected, nan=-np.inf)
    return dict(sorted(places.items(), key=lambda item: -best[item[1][0]]))


def _tallies(
    cases: CaseSet, standing: CaseSummary, rows: IntArray, inside: IntArray
) -> tuple[Scored, ...]:
    """What the metric made of each row of a case."""
    outcome = standing.outcome[inside]
    start, size = int(rows.min()), int(rows.max() - rows.min() + 1)
    counts = np.zeros((3, size), np.intp)
    for side in (cases.comparisons.better, cases.comparisons.worse):
        of = side[inside] - start
        for k, value in enumerate((1.0, 0.0, 0.5)):
            counts[k] += np.bincount(of[outcome == value], minlength=size)
    return tuple(
        Scored(float(standing.score[row]), Came(*map(int, counts[:, row - start]))) for row in rows
    )


def _gravest(
    cases: CaseSet,
    standing: CaseSummary,
    inside: IntArray,
    pair_at: dict[int, tuple[int, PairShown]],
) -> WrongComparison | None:
    """Where people are most sure and the metric is most wrong."""
    wrong = inside[standing.outcome[inside] == 0.0]
    if not wrong.size:
        return None
    better, worse = cases.comparisons.better[wrong], cases.comparisons.worse[wrong]
    expected = cases.frame["expected"].to_numpy(float)
    sure, off = expected[better] - expected[worse], standing.score[worse] - standing.score[better]
    gravest = np.lexsort((-off, -sure))[0]

    def side(row: int) -> tuple[int, int, str, float]:
        number, pair = pair_at[row]
        return number, pair.prompt, pair.said, float(standing.score[row])

    return WrongComparison(side(int(worse[gravest])), side(int(better[gravest])))


def _worst(
    tiles: tuple[ImageCard, ...], most: int, mistake: WrongComparison | None
) -> tuple[ImageCard, ...]:
    """As many as are shown, in the order of all: those of the mistake, and the most misjudged."""
    if len(tiles) <= most:
        return tiles
    named = {mistake.above[0], mistake.below[0]} if mistake else set()

    def wrong(tile: ImageCard) -> float:
        of = [pair.scored[0] for pair in tile.pairs if pair.scored]
        return sum(one.came.wrong + one.came.tied / 2 for one in of)

    ranked = sorted(tiles, key=lambda tile: (tile.number not in named, -wrong(tile), tile.number))
    return tuple(sorted(ranked[:most], key=lambda tile: tile.number))


_OF_CASE = (
    Column("case_id", Type.TEXT, "what is looked at together; see the file of cases"),
    Column("cluster", Type.TEXT, "what is resampled, of which the case is a part"),
    Column("split", Type.TEXT, "parts of the benchmark that it is in, joined by ;"),
    Column("skills", Type.TEXT, "what it is about, joined by ;"),
    Column("n_comparisons", Type.COUNT, "comparisons that people decide"),
)
_SIDES = ("a", "b")


def table_of(
    cases: CaseSet,
    standings: Sequence[CaseSummary],
    order: Iterable[int],
    about: Mapping[str, Any] | None = None,
) -> Table:
    """What the item browser lists, with all of its pages."""
    sides = list(zip(_SIDES, standings, strict=False))
    return Table(
        name=f"{cases.benchmark}-items",
        columns=(*_OF_CASE, *(column for side, _ in sides for column in _of_metric(side))),
        rows=[_row(cases, sides, int(case)) for case in order],
        about={
            **(about or {}),
            "benchmark": cases.benchmark,
            "revision": cases.revision,
            **{side: standing.entry_id for side, standing in sides},
        },
    )


def _of_metric(side: str) -> tuple[Column, ...]:
    name = f"metric {side.upper()}"
    return (
        Column(f"{side}_n_compared", Type.COUNT, f"comparisons of which {name} scored both pairs"),
        Column(f"{side}_n_right", Type.NUMBER, "as people have them; equal scores count a half"),
        Column(f"{side}_share", Type.NUMBER, "right among those compared"),
        Column(f"{side}_n_missing", Type.COUNT, f"pairs without a score by {name}"),
    )


def _row(cases: CaseSet, sides: Sequence[tuple[str, CaseSummary]], case: int) -> dict[str, Value]:
    row: dict[str, Value] = {
        "case_id": cases.comparisons.case_ids[case],
        "cluster": cases.clusters[cases.cluster_of[case]],
        "split": BETWEEN_SKILLS.join(cases.splits[case]),
        "skills": BETWEEN_SKILLS.join(cases.skills[case]),
        "n_comparisons": int(cases.compared[case]),
    }
    for side, standing in sides:
        row |= {
            f"{side}_n_compared": int(standing.n_compared[case]),
            f"{side}_n_right": float(standing.n_right[case]),
            f"{side}_share": float(standing.share[case]),
            f"{side}_n_missing": int(standing.n_missing[case]),
        }
    return row


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
class ExampleList:
    """What is shown of the examples of a benchmark."""

    choice: Choice  # what is looked at
    # why there is nothing to show; empty where there is
    missing: Literal["", "withheld", "no_cases"] = ""
    examples: tuple[CaseShown, ...] = ()  # those of this page
    total: int = 0  # how many are listed on all pages
    page: int = 1  # which this is, from 1
    pages: int = 1  # how many there are
    n_cases: int = 0  # with the skill and the split, listed or not
    summaries: tuple[Summary, ...] = ()  # of each metric, over those
    gap: Share | None = None  # difference of two metrics
    # for a case by itself: how the metrics of the board do on it, the worst first
    every_entry: tuple[CaseVerdict, ...] = ()
    absent: tuple[str, ...] = ()  # what could be fetched and is not here: prompts, images
    # the first benchmark on which metric A fails, where it does not here
    elsewhere: CompareQuery | None = None
    sought: bool = False  # whether such a benchmark was looked for


def list_examples(query: CompareQuery, view: View, sources: ExampleSources) -> ExampleList | None:
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
    on_page, number, pages = paged(found.order.tolist(), choice.query.page, PER_PAGE)
    shown = [case_shown(cases, case, found.standings, MOST_TILES) for case in on_page]
    none_fails = choice.show == "failures" and bool(choice.a) and not len(found.order)
    return ExampleList(
        choice=choice,
        examples=tuple(_example(one, card, here) for one in shown),
        total=len(found.order),
        page=number,
        pages=pages,
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
        cases, case, sources.reader.summaries(metrics, cases, lower), MOST_TILES_ALONE
    )
    looked_at = dict.fromkeys([*choice.metrics, *choice.entries[:MOST_ENTRIES]])
    entries = [view.entries[entry] for entry in looked_at]
    rows = [verdict(cases, case, one) for one in sources.reader.summaries(entries, cases, lower)]
    # Who scored nothing here did not fail by an order; they come last.
    rows.sort(key=lambda row: (not row.came.compared, row.came.share))
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


def _example(case: CaseShown, card: Card, here: Collection[str]) -> CaseShown:
    """A case with the addresses of its images and the titles of its skills."""
    images = tuple(
        image_address(card.name, tile.image_id) if tile.image_id in here else ""
        for tile in case.tiles
    )
    return replace(
        case, images=images, skill_titles=tuple(skill_title(card, s) for s in leaves(case.skills))
    )


def image_address(benchmark: str, image_id: str, width: int = IMAGE_WIDTH) -> str:
    """Where the thumbnail of an image of a benchmark is; not escaped for HTML yet."""
    return f"./v1/images/{quote(benchmark, safe='')}/{quote(image_id, safe='')}?w={width}"


def first_failures(query: CompareQuery, view: View, sources: ExampleSources) -> CompareQuery | None:
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
            wanted = CompareQuery(
                benchmark=board.card.name, a=a, skill=skill, split=split, show="failures"
            )
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


def seek_failures(query: CompareQuery, view: View, sources: ExampleSources) -> CompareQuery:
    """The query, or that of the first benchmark on which its metric fails."""
    if query.show not in {"", "failures"}:
        return query
    found = first_failures(replace(query, b=""), view, sources)
    return query if found is None else found
