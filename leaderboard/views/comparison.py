"""Comparison of two or more metrics on one benchmark, and their agreement cluster by cluster."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.comparison import Compared, corrected, plural
from benchmarks.parquet import parquet_file
from benchmarks.schema import Card, Selector
from benchmarks.statistics.correlation import kendall
from leaderboard.cache import MemoryCache
from leaderboard.publication.entries import Entry
from leaderboard.publication.item_scores import scores_of
from leaderboard.publication.measure_names import in_order, nearest
from leaderboard.publication.metric_facts import metric_name
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import Match, compare_cells
from leaderboard.ranking.slices import mean_over_skills
from leaderboard.store.interface import NotFoundError, Repository
from leaderboard.views.boards import BoardQuery, Choice, resolve
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.examples import ExampleSources, answers_are_public
from leaderboard.views.figures import named


@dataclass(frozen=True)
class Opponents:
    """Two metrics on one board, and perhaps a third and a fourth."""

    choice: Choice  # board, skill and measure
    a: str | None  # entry id of the one; None where there is none to show
    b: str | None  # of the other
    # entry ids that can be chosen, best first: those with all of the skills shown
    options: tuple[str, ...]
    remarks: tuple[str, ...] = ()  # what was asked for and could not be shown, in sentences
    # entry ids of the third and the fourth, where they are there and no others again
    further: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[str, ...]:
        """All that are there, each once, in their order."""
        named = (self.a, self.b, *self.further)
        return tuple(dict.fromkeys(entry for entry in named if entry))

    @property
    def query(self) -> CompareQuery:
        """The exact state, for a link."""
        exact, (c, d) = self.choice.query, (*self.further, "", "")[:2]
        return CompareQuery(
            benchmark=exact.benchmark, a=self.a or "", b=self.b or "", c=c, d=d,
            skill=exact.skill, measure=exact.measure,
        )  # fmt: skip


def opponents(query: CompareQuery, view: View) -> Opponents:
    """Find what a query asks for, saying so wherever it is not there."""
    choice = resolve(BoardQuery(query.benchmark, query.skill, query.measure), view.boards)
    whose = [{cell.entry_id for cell in of} for of in choice.slices()]
    options = tuple(entry for entry in choice.entry_ids() if all(entry in of for of in whose))
    remarks = list(choice.remarks)
    found: list[str | None] = []
    for asked in (query.a, query.b):
        if not asked or asked in options:
            found.append(asked or None)
            continue
        remarks.append(_absent(asked, choice, view))
        found.append(None)
    a, b = found
    if not query.a:
        a = next((one for one in options if one != query.b), None)
    if not query.b:
        b = next((one for one in options if one != a), None)
    further = []
    for asked in dict.fromkeys(query.named):
        if asked in {a, b}:
            continue
        if asked in options:
            further.append(asked)
        else:
            remarks.append(_absent(asked, choice, view))
    return Opponents(choice, a, b, options, tuple(remarks), tuple(further))


def _absent(asked: str, choice: Choice, view: View) -> str:
    entry = view.entries.get(asked)
    name = named(metric_name(entry) if entry else asked)
    if entry is None:
        return f"There is no metric with the id “{name}” here."
    title = choice.board.card.title
    return f"“{name}” has no result by this measure on {title} ({choice.title})."


COLUMNS = (
    "shown_as", "metric_a", "metric_b", "entry_a", "entry_b", "benchmark", "revision", "measure",
    "variant", "split", "facet", "skill", "higher_is_better", "value_a", "value_b", "difference",
    "ci_low", "ci_high", "ci_method", "percentile_low", "percentile_high", "p_value",
    "p_corrected", "correction", "n_tests", "n_patterns", "exact", "n_differing", "unit",
    "n_units", "n_better_a", "n_tied", "n_better_b", "t", "t_p", "wilcoxon_w", "wilcoxon_p",
    "effect", "effect_low", "effect_high", "seed", "n_resamples", "untested", "uncounted",
    "kind_a", "kind_b",
)  # fmt: skip


@dataclass(frozen=True)
class ComparisonPage:
    """All comparisons of two metrics on one page."""

    chosen: Compared  # by the chosen measure and skill, corrected as on the board
    # the same measure by skill, corrected over them (Benjamini-Hochberg)
    skills: tuple[Compared, ...]
    # everything else for the chosen skill, corrected over it likewise
    measures: tuple[Compared, ...]
    n_resamples: int  # joint resamples behind the intervals; 0 where none are published


def comparison_page(choice: Choice, a: str, b: str, view: View) -> ComparisonPage:
    """Compare two entries of a board."""
    if choice.selector is None:
        raise ValueError("there is no measure to compare by")
    by_skill = _by_skill(choice, choice.selector)
    others = [s for s in in_order(choice.board.card, choice.options) if s != choice.selector]
    wanted = [
        (choice.selector, choice.skills or (None,)),
        *((selector, (skill,)) for selector, skill in by_skill),
        *((selector, choice.skills or (None,)) for selector in others),
    ]
    matches = _matches(choice, wanted, (a, b), view)
    names = {entry: view.entries[entry].metric for entry in (a, b)}
    found = compare_cells([m for m in matches if m is not None], choice.board.card, names)
    rows = iter(found)
    placed = [None if match is None else next(rows) for match in matches]
    first = placed[0]
    if first is None:
        raise ValueError("the two metrics have no result by the chosen measure")
    end = 1 + len(by_skill)
    resamples = matches[0].of.draws.resamples.shape[1] if matches[0] else 0
    return ComparisonPage(
        chosen=as_on_the_board(first, choice, (a, b), view),
        skills=corrected([row for row in placed[1:end] if row]),
        measures=corrected([row for row in placed[end:] if row]),
        n_resamples=resamples,
    )


def _by_skill(choice: Choice, wanted: Selector) -> list[tuple[Selector, str]]:
    """The measure for each whole skill, by the variant that comes nearest."""
    board = choice.board
    known = board.skills()
    found: list[tuple[Selector, str]] = []
    for skill in [skill for skill in known if ":" not in skill] or known:
        available = [s for s in board.selectors(skill) if s.measure == wanted.measure]
        if available:
            found.append((nearest(wanted, available, board.card), skill))
    return found


_Wanted = tuple[Selector, tuple[str | None, ...]]


def _matches(
    choice: Choice, wanted: Sequence[_Wanted], entries: tuple[str, str], view: View
) -> list[Match | None]:
    """The two cells of each slice with their draws; None where one of the two has no cell."""
    own: dict[tuple[Selector, str | None], list[Cell]] = {}
    for cell in choice.board.of_entries(entries):
        own.setdefault((cell.selector, cell.skill), []).append(cell)
    cells = [
        [of_entries(own.get((selector, skill), ()), entries) for skill in skills]
        for selector, skills in wanted
    ]
    # Read at once: the files of a run are then read once for all of them.
    flat = [pair for of_slice in cells for pair in of_slice]
    slices = iter(view.orders.slices(choice.board.card, flat))
    found: list[Match | None] = []
    for of_slice in cells:
        parts = [next(slices) for _ in of_slice]
        whole = all(len(part.cells) == len(entries) for part in parts)
        found.append(Match(mean_over_skills(parts), 0, 1) if whole else None)
    return found


def of_entries(cells: Sequence[Cell], entries: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of some entries, in the order of these; shorter where one has none."""
    of_entry = {cell.entry_id: cell for cell in cells}
    return tuple(of_entry[entry] for entry in entries if entry in of_entry)


def as_on_the_board(
    row: Compared, choice: Choice, entries: tuple[str, str], view: View
) -> Compared:
    """With the p-value that the board corrects over all pairs of its ranking."""
    if math.isnan(row.p_value):
        return row
    ranked = view.orders.ranked(choice.board.card, choice.slices())
    places = {cell.entry_id: place for place, cell in enumerate(ranked.cells)}
    matrix = ranked.ordering.corrected
    p_corrected = float(matrix[places[entries[0]], places[entries[1]]])
    if math.isnan(p_corrected):
        return row
    n_tests = int(np.isfinite(matrix).sum()) // 2
    return replace(row, p_corrected=p_corrected, correction="joint", n_tests=n_tests)


_KEPT_CLUSTER_BYTES = 48 << 20


@dataclass(frozen=True)
class ClusterValues:
    """The values of some metrics on the clusters of one slice."""

    entries: tuple[str, ...]  # entry ids
    clusters: tuple[str, ...]  # ids of every cluster that any of them has a value on
    values: FloatArray  # shape (clusters, entries); NaN where a metric has none

    def of(self, *entries: str) -> ClusterValues:
        """Those of some of the entries, on clusters on which all of these have a value."""
        columns = self.values[:, [self.entries.index(entry) for entry in entries]]
        both = np.isfinite(columns).all(axis=1)
        clusters = tuple(np.array(self.clusters, object)[both])
        return ClusterValues(entries, clusters, columns[both])

    def taus(self) -> FloatArray:
        """Kendall's tau-b between each two metrics over the clusters that both have.

        NaN where one of them is constant there.
        """
        found = np.eye(len(self.entries))
        for i, j in combinations(range(len(self.entries)), 2):
            both = np.isfinite(self.values[:, [i, j]]).all(axis=1)
            tau = kendall(self.values[both, i], self.values[both, j])
            found[i, j] = found[j, i] = tau
        return found


class ClusterReader:
    """Reads the clusters of runs, and keeps what was read for the next look."""

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept: MemoryCache[dict[str, float]] = MemoryCache(
            lambda own: 64 + sum(len(name) + 120 for name in own), _KEPT_CLUSTER_BYTES
        )

    def values(self, card: Card, cells: Sequence[Cell], version: str) -> ClusterValues | None:
        """The clusters behind the cells of one slice."""
        if not card.answers_public:
            return None
        found = {cell.entry_id: self._of(card, cell, version) for cell in cells if cell.row >= 0}
        known = {entry: own for entry, own in found.items() if own}
        if len(known) < 2:
            return None
        clusters = tuple(dict.fromkeys(name for own in known.values() for name in own))
        values = np.array(
            [[own.get(name, np.nan) for own in known.values()] for name in clusters], np.float64
        )
        return ClusterValues(tuple(known), clusters, values)

    def _of(self, card: Card, cell: Cell, version: str) -> dict[str, float]:
        submission = cell.entry_id.rpartition("/")[0]
        path = f"results/{submission}/{card.name}.clusters.parquet"
        return self._kept.of((version, path, cell.row), lambda: self._read(path, cell.row))

    def _read(self, path: str, row: int) -> dict[str, float]:
        try:
            file = parquet_file(self._public.read(path))
        except NotFoundError:
            return {}
        if not {"row", "cluster", "value"} <= set(file.schema_arrow.names):
            return {}
        table: Any = file.read(columns=["row", "cluster", "value"], use_threads=False)
        own = table.filter(table["row"].to_numpy() == row)
        clusters = map(str, own["cluster"].to_pylist())
        return dict(zip(clusters, own["value"].to_numpy().tolist(), strict=True))


MOST_PAIRS = 4000
"""Pairs of a benchmark that are compared: the same of every metric, however many it has."""
_KEPT_SCORE_BYTES = 24 << 20
_OF_ONE = 200  # Bytes that a pair id and its score take, about


class PairScoreReader:
    """Reads the scores of some pairs, and keeps what was read for the next look."""

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept: MemoryCache[dict[str, float]] = MemoryCache(
            lambda own: 64 + _OF_ONE * len(own), _KEPT_SCORE_BYTES
        )

    def values(
        self, card: Card, entries: Sequence[Entry], lower: Mapping[str, Sequence[str]]
    ) -> ClusterValues | None:
        """The scores of metrics on pairs, larger for a better match; a pair stands for a cluster."""
        if not card.answers_public:
            return None
        found: dict[str, dict[str, float]] = {}
        for entry in entries:
            if own := self._of(card, entry):
                sign = -1.0 if entry.metric in lower.get(entry.submission_id, ()) else 1.0
                found[entry.entry_id] = {pair: sign * score for pair, score in own.items()}
        if len(found) < 2:
            return None
        # What a metric lacks makes room for other pairs in it, not in the rest.
        pairs = sampled(dict.fromkeys(pair for own in found.values() for pair in own))
        values = [[own.get(pair, np.nan) for own in found.values()] for pair in pairs]
        return ClusterValues(tuple(found), pairs, np.array(values, np.float64))

    def _of(self, card: Card, entry: Entry) -> dict[str, float]:
        # A result that is published again has another date, and scores of its own.
        key = (entry.entry_id, entry.published_at, card.name, card.revision)
        return self._kept.of(key, lambda: self._read(card, entry))

    def _read(self, card: Card, entry: Entry) -> dict[str, float]:
        try:
            content = self._public.read(f"results/{entry.submission_id}/{card.name}.scores.parquet")
        except NotFoundError:
            return {}
        scores = scores_of(content, entry.metric)
        return {pair: scores[pair] for pair in sampled(scores)}


def sampled(pairs: Mapping[str, object]) -> tuple[str, ...]:
    """At most `MOST_PAIRS` of some pairs, by a hash of their ids: no sample prefers any."""
    if len(pairs) <= MOST_PAIRS:
        return tuple(pairs)
    return tuple(
        sorted(pairs, key=lambda pair: hashlib.sha256(pair.encode()).digest())[:MOST_PAIRS]
    )


MOST_AGREEING = 12  # Metrics of the table of agreement: those compared, then the best of the board
MOST_CLUSTERS = 10  # Clusters that are listed where two metrics disagree
MOST_POINTS = 2000  # Points of the scatter plot; the clusters that are listed are always drawn
Missing = Literal["", "withheld", "no_clusters", "several_skills"]


@dataclass(frozen=True)
class Behind(ExampleSources):
    """Reads what lies behind the values of a comparison: cases, clusters and scores of pairs."""

    clusters: ClusterReader  # the value of every cluster
    scores: PairScoreReader  # those of pairs, for measures without values of clusters


@dataclass(frozen=True)
class ClusterGap:
    """A cluster on which two metrics differ."""

    cluster: str  # its id
    case: str  # id of the first example in it; empty where a benchmark shows none
    a: float  # value of the first metric
    b: float  # of the second

    @property
    def gap(self) -> float:
        """Value of the first less that of the second."""
        return self.a - self.b


@dataclass(frozen=True)
class ClusterComparison:
    """Two metrics on every cluster that both have a value on."""

    missing: Missing  # why there is nothing to show; empty where there is
    cluster: str  # what a cluster is, as `graph`
    n_clusters: int = 0  # how many both have
    points: tuple[tuple[float, float], ...] = ()  # values of the two, as many as are drawn
    # the clusters on which they differ most, the greatest difference first
    gaps: tuple[ClusterGap, ...] = ()


def compare_clusters(pair: Opponents, view: View, behind: Behind) -> ClusterComparison:
    """The first two metrics on every cluster."""
    choice, card = pair.choice, pair.choice.board.card
    if len(choice.skills) > 1:
        return ClusterComparison("several_skills", card.cluster)
    if not answers_are_public(card, behind.here):
        return ClusterComparison("withheld", card.cluster)
    cells = {cell.entry_id: cell for cell in choice.slices()[0]}
    wanted = [entry for entry in (pair.a, pair.b) if entry]
    found = behind.clusters.values(card, [cells[entry] for entry in wanted], view.version)
    if found is None:
        return ClusterComparison("no_clusters", card.cluster)
    two = found.of(*wanted)
    gaps = two.values[:, 0] - two.values[:, 1]
    # Stable, so that equal gaps keep the order of the data and a link shows the same list again.
    places = np.argsort(-np.abs(gaps), kind="stable")[:MOST_CLUSTERS]
    cases = _first_cases(card, behind)
    step = max(1, len(two.clusters) // MOST_POINTS)
    return ClusterComparison(
        missing="",
        cluster=card.cluster,
        n_clusters=len(two.clusters),
        points=tuple((float(a), float(b)) for a, b in two.values[::step]),
        gaps=tuple(
            ClusterGap(
                two.clusters[place],
                cases.get(two.clusters[place], ""),
                float(two.values[place, 0]),
                float(two.values[place, 1]),
            )
            for place in places
            if gaps[place] != 0.0
        ),
    )


def _first_cases(card: Card, behind: Behind) -> dict[str, str]:
    """Cluster to the first of its cases; empty where a benchmark shows none."""
    found = behind.reader.cases(card)
    if found is None:
        return {}
    clusters = (found.clusters[place] for place in found.cluster_of)
    first: dict[str, str] = {}
    for cluster, case in zip(clusters, found.comparisons.case_ids, strict=True):
        first.setdefault(str(cluster), str(case))
    return first


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau-b between each two of some metrics."""

    missing: Missing  # why there is none; empty where there is
    cluster: str  # what a cluster is, as `graph`
    entries: tuple[str, ...] = ()  # entry ids, those compared first
    # by row and column; None where one of the two is constant, or on the diagonal
    taus: tuple[tuple[float | None, ...], ...] = ()
    over: str = ""  # what it is computed over, with its number
    # whether that is the scores of pairs, since the measure has no value of a cluster
    of_scores: bool = False
    n_chosen: int = 0  # how many of the metrics are compared; the others are the best of the board

    @property
    def most_pairs(self) -> int:
        """Pairs that are looked at where scores are compared."""
        return MOST_PAIRS


def agreement(pair: Opponents, view: View, behind: Behind) -> Agreement:
    """How much alike the compared metrics, and the best of the board, order its clusters."""
    choice, card = pair.choice, pair.choice.board.card
    if len(choice.skills) > 1:
        return Agreement("several_skills", card.cluster)
    if not answers_are_public(card, behind.here):
        return Agreement("withheld", card.cluster)
    wanted = tuple(dict.fromkeys((*pair.chosen, *pair.options)))[:MOST_AGREEING]
    cells = {cell.entry_id: cell for cell in choice.slices()[0]}
    found = behind.clusters.values(card, [cells[entry] for entry in wanted], view.version)
    of_scores = found is None
    if found is None:
        entries = [view.entries[entry] for entry in wanted]
        found = behind.scores.values(card, entries, behind.lower())
    if found is None:
        return Agreement("no_clusters", card.cluster)
    return Agreement(
        missing="",
        cluster=card.cluster,
        entries=found.entries,
        taus=_taus(found),
        over=plural("pair of an image and a prompt" if of_scores else card.cluster,
                    len(found.clusters)),
        of_scores=of_scores,
        n_chosen=sum(entry in found.entries for entry in pair.chosen),
    )  # fmt: skip


def _taus(found: ClusterValues) -> tuple[tuple[float | None, ...], ...]:
    return tuple(
        tuple(
            None if row == column or not math.isfinite(tau) else float(tau)
            for column, tau in enumerate(line)
        )
        for row, line in enumerate(found.taus())
    )
