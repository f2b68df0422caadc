"""Skills over benchmarks: every metric's place, cost and disagreement before weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.schema import Card, Scale, Selector
from leaderboard.publication.entries import Entry
from leaderboard.publication.identities import (
    Identity,
    entries_of_each,
    latest_cells,
    latest_entries,
)
from leaderboard.publication.index import rescaled
from leaderboard.publication.measure_names import info, nearest
from leaderboard.publication.reader import View
from leaderboard.publication.recommending import is_above_chance, is_recommended
from leaderboard.publication.skill_names import Part
from leaderboard.ranking.cells import Cell, too_few
from leaderboard.ranking.index import Comparison, Headlines, Interval, Standing

NO_SCALE = "its card states no chance level and bound of this measure"
NOBODY = "no metric has a rank on it"
OTHER_PLAN = "its resamples cannot be joined with those of the others"
NO_DRAWS = "its resamples are not at hand"
_OF_METRIC = 1000  # Bytes that a metric of a part takes beside its resamples, about


@dataclass(frozen=True)
class Measured:
    """A skill of one benchmark, by the measure that is nearest to the benchmark's headline."""

    part: Part  # which
    card: Card  # the benchmark
    selector: Selector  # the measure
    cells: tuple[Cell, ...]  # of every metric that has one, best first
    scale: Scale | None  # chance and ceiling it is rescaled with; None where it cannot be
    own_scale: bool  # whether that is of the headline; else of this measure
    able: Mapping[Identity, Cell]  # the cells that count: those with a rank
    unfit: Mapping[Identity, str]  # metrics without a rank, with the reason
    why_out: str = ""  # why it takes no part in the list; empty where it does


@dataclass(frozen=True)
class Placed:
    """One metric of the list."""

    who: Identity  # what tells it from others
    entry: Entry  # the latest of its entries
    standing: Standing  # under the chosen weights; its benchmarks are names of parts
    among: int = 1  # number of metrics that are ranked beside it, itself included

    @property
    def recommended(self) -> bool:
        """Whether it may be recommended: ranked, significantly above chance, and no template."""
        return is_recommended(self.entry, self.standing, self.among)

    @property
    def above_chance(self) -> bool:
        """Whether the interval of its mean lies wholly above 0, which is chance."""
        return is_above_chance(self.standing, self.among)


@dataclass(frozen=True)
class SkillsBase:
    """Everything the page needs but weights."""

    measured: Mapping[str, Measured]  # every part that has results, by name
    comparison: Comparison | None  # weighs those that can be rescaled; None where none can
    # key of a metric in the comparison to the metric and its latest entry
    entries: Mapping[str, tuple[Identity, Entry]]
    # part to metric to its rescaled value and interval
    values: Mapping[str, Mapping[Identity, Interval]]
    # part to metrics and their rescaled resamples, for those that are joined
    draws: Mapping[str, tuple[tuple[Identity, ...], NDArray[np.float32]]]
    unjoined: Mapping[str, str]  # parts without joint resamples, with the reason
    sent: Mapping[Identity, tuple[Entry, ...]]  # metric to all of its entries

    def placed(self, weights: Mapping[str, float]) -> tuple[Placed, ...]:
        """Every metric that has a part, in the order of `Comparison.standings`."""
        if self.comparison is None:
            return ()
        kept = {name: weights.get(name, 0.0) for name in self.comparison.benchmarks}
        if not any(kept.values()):
            return ()
        found = self.comparison.standings(kept)
        among = sum(one.rank is not None for one in found)
        return tuple(Placed(*self.entries[one.metric], one, among) for one in found if one.present)

    @property
    def nbytes(self) -> int:
        """About what it takes in memory, apart from what the view holds anyway."""
        arrays = sum(drawn.nbytes for _, drawn in self.draws.values())
        arrays += self.comparison.nbytes if self.comparison else 0
        metrics = sum(len(one.cells) for one in self.measured.values()) + len(self.sent)
        return arrays + _OF_METRIC * metrics


def skills_base(view: View, parts: Sequence[Part]) -> SkillsBase:
    """Read the cells of some parts and their draws."""
    measured = {part.name: measured_part(view, part) for part in parts}
    used = {name: one for name, one in measured.items() if not one.why_out}
    latest = latest_entries(view.entries.values())
    keys = {who: _key(who) for one in used.values() for who in one.able}
    draws = {name: _draws(one, view) for name, one in used.items()}
    length, unjoined = _joint(draws)
    return SkillsBase(
        measured=measured,
        comparison=_comparison(used, keys, draws, unjoined, length),
        entries={key: (who, latest[who]) for who, key in keys.items()},
        values={
            name: {who: rescaled(cell, one.scale) for who, cell in one.able.items()}
            for name, one in used.items()
            if one.scale is not None
        },
        draws={
            name: (tuple(one.able), _rescaled_draws(draws[name], one.scale))
            for name, one in used.items()
            if name not in unjoined and one.scale is not None
        },
        unjoined=unjoined,
        sent=entries_of_each(view.entries.values()),
    )


def scale_of(card: Card, measure: str) -> tuple[Scale | None, bool]:
    """What values of a measure are rescaled with, and whether that is of the headline.

    The headline's own chance and ceiling where the skill is measured as the headline is; else the
    chance level of the measure and its best possible value, where its card states both.
    """
    if measure == card.headline.measure and card.headline_scale is not None:
        return card.headline_scale, True
    about = info(card, measure)
    best = about.high if about.higher_is_better else about.low
    if about.chance is None or best is None or about.chance == best:
        return None, False
    said = "The best possible value of the measure."
    return Scale(
        chance=about.chance, ceiling=best, ceiling_is=said, source=about.source or card.title
    ), False  # fmt: skip


def measured_part(view: View, part: Part) -> Measured:
    """A skill of one benchmark, by the measure that is nearest to its headline."""
    board = view.boards[part.benchmark]
    card = board.card
    selector = nearest(card.headline, board.selectors(part.key), card)
    cells = board.cells(selector, part.key)
    latest = latest_cells(cells, view.entries)
    able = {who: cell for who, cell in latest.items() if cell.rank is not None}
    scale, own = scale_of(card, selector.measure)
    why = too_few(cells, card.cluster)
    if not why and not able:
        why = NOBODY
    elif not why and scale is None:
        why = NO_SCALE
    return Measured(
        part, card, selector, cells, scale, own, able,
        {who: c.note or c.why_unranked for who, c in latest.items() if who not in able}, why,
    )  # fmt: skip


def _comparison(
    used: Mapping[str, Measured],
    keys: Mapping[Identity, str],
    draws: Mapping[str, NDArray[np.floating]],
    unjoined: Mapping[str, str],
    length: int,
) -> Comparison | None:
    """The parts as the index weighs benchmarks: resample b of one joins resample b of all."""
    headlines = []
    for name, one in used.items():
        if one.scale is None:
            continue
        missing = np.full((len(one.able), max(length, 1)), np.nan)
        drawn = (
            missing if name in unjoined else np.where(np.isfinite(draws[name]), draws[name], np.nan)
        )
        values = [math.nan if c.value is None else c.value for c in one.able.values()]
        metrics = tuple(keys[who] for who in one.able)
        headlines.append(Headlines(name, one.scale, metrics, np.array(values), drawn))
    return Comparison(headlines) if headlines else None


def _draws(one: Measured, view: View) -> NDArray[np.floating]:
    return view.orders.slice(one.card, tuple(one.able.values())).draws.resamples


def _joint(draws: Mapping[str, NDArray[np.floating]]) -> tuple[int, dict[str, str]]:
    """How many resamples are joined, and the parts that have another number of them."""
    lengths = [of.shape[1] for of in draws.values() if of.shape[1]]
    length = Counter(lengths).most_common(1)[0][0] if lengths else 0
    return length, {
        name: OTHER_PLAN if of.shape[1] else NO_DRAWS
        for name, of in draws.items()
        if of.shape[1] != length or not length
    }


def _rescaled_draws(draws: NDArray[np.floating], scale: Scale | None) -> NDArray[np.float32]:
    if scale is None:
        return np.empty((0, 0), np.float32)
    return ((draws - scale.chance) / (scale.ceiling - scale.chance)).astype(np.float32)


def _key(who: Identity) -> str:
    """A name in the comparison that is its own and sorts as people expect."""
    parts = (who.metric.casefold(), who.metric, who.version, who.submitter, who.kind, who.account)
    return "\x1f".join(parts)


MOST_METRICS = 20  # The first of the list: whom a visitor would choose among
_ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Opposed:
    """Two metrics that two parts order in opposite ways, each beyond its resampling error."""

    one: Identity  # above the other by `by_first`
    other: Identity  # above `one` by `by_second`
    by_first: str  # a part
    by_second: str  # a part


@dataclass(frozen=True)
class Disagreement:
    """How often parts contradict each other."""

    opposed: tuple[Opposed, ...]  # the pairs that do, one entry for each pair of metrics
    n_pairs: int  # pairs of metrics that two parts both order beyond resampling error


def disagreement(
    base: SkillsBase, parts: Sequence[str], metrics: Sequence[Identity]
) -> Disagreement:
    """Compare the orders of the parts, pair of metrics by pair.

    A part orders two metrics where the 95 % percentile interval of their difference, over its joint
    resamples, leaves out 0. These are intervals of single differences, corrected for nothing: the
    count says where to look and proves no single case.
    """
    shown = tuple(metrics)[:MOST_METRICS]
    signs = {name: _signs(base, name, shown) for name in parts if name in base.draws}
    opposed, n_pairs = [], 0
    for i, j in combinations(range(len(shown)), 2):
        ordered = [(name, sign[i, j]) for name, sign in signs.items() if sign[i, j]]
        n_pairs += len(ordered) > 1
        above = [name for name, sign in ordered if sign > 0]
        below = [name for name, sign in ordered if sign < 0]
        if above and below:
            opposed.append(Opposed(shown[i], shown[j], above[0], below[0]))
    return Disagreement(tuple(opposed), n_pairs)


def _signs(base: SkillsBase, name: str, metrics: Sequence[Identity]) -> NDArray[np.int8]:
    """Shape (n, n): 1 where the row is above the column beyond error, -1 below, 0 undecided."""
    who, drawn = base.draws[name]
    place: Mapping[Identity, int] = {one: i for i, one in enumerate(who)}
    there = [(k, place[one]) for k, one in enumerate(metrics) if one in place]
    found = np.zeros((len(metrics), len(metrics)), np.int8)
    for (k, row), (m, other) in combinations(there, 2):
        gap = drawn[row] - drawn[other]
        gap = gap[np.isfinite(gap)]
        if not gap.size:
            continue
        low, high = np.quantile(gap, _ENDS)
        found[k, m] = 1 if low > 0 else -1 if high < 0 else 0
        found[m, k] = -found[k, m]
    return found
