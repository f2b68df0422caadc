"""Rankings that a page leads with: their places, the verdict in a sentence, and the picks.

Only tested facts are said: the order of a published ranking, its tiers, and what is significantly
above chance. A metric that is not, that was trained on the benchmark, or that is an unchanged
template is never named as leading.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.publication.entries import Entry, Identity, RankCount, is_trained_on
from leaderboard.publication.index import IndexBase, Ranked, is_recommended, leading_cells, nobody
from leaderboard.publication.measure_names import info
from leaderboard.publication.metric_facts import facts_of, metric_in_words
from leaderboard.publication.reader import BoardIndex, headline_cells
from leaderboard.ranking.cells import (
    Cell,
    cell_at_or_below_chance,
    cell_beats_chance,
    chance_of,
    too_few,
)
from leaderboard.text import count, usd
from leaderboard.views.figures import Verdict, estimate
from leaderboard.views.skills import FLOPS, MEMORY, SECONDS, USD, Placed, SkillData

INDEX, MEAN = "index", "mean"
"""Keys of the ranking over benchmarks, and of that over those of a skill."""
_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten",
          "Eleven", "Twelve")  # fmt: skip
BOUNDS: Mapping[str, tuple[float, str]] = {
    FLOPS: (1e12, "Under 1 TFLOP a pair"),
    SECONDS: (10.0, "Under 10 s per 1,000 pairs"),
    MEMORY: (4.0, "Under 4 GiB"),
    USD: (1.0, "Under 1 USD per 1,000 pairs"),
}
"""Cost to the bound that is asked for where a visitor names none, and what it is called."""


@dataclass(frozen=True)
class Place:
    """One metric of a ranking."""

    who: Identity  # what tells it from others
    entry: Entry  # the one that has the value
    value: float  # of the ranking's measure; NaN where it is undefined
    low: float  # lower end of its 95% interval; NaN where there is none
    high: float  # upper end
    n: int | None  # clusters behind it
    # best rank that tests leave open, rank, and worst; None where it has none
    ranks: tuple[int, int, int] | None
    tier: int | None  # None where it was not tested
    best_share: (
        float | None
    )  # share of the resamples in which it is best; None where it is not known
    above: bool | None  # whether it is significantly above chance; None where chance is not known
    below: bool  # whether it is significantly at or below chance
    trained: bool  # whether its author declares the benchmark as training data
    may_lead: bool  # whether it may be named as leading
    why: str = ""  # why it has no rank; empty where it has one

    @property
    def range(self) -> str:
        """`1–4`, `2`, or empty."""
        if self.ranks is None:
            return ""
        low, _, high = self.ranks
        return f"{low}" if low == high else f"{low}–{high}"

    @property
    def figure(self) -> str:
        """Value and interval: `0.779 [0.731, 0.816]`."""
        return estimate(self.value, self.low, self.high)


@dataclass(frozen=True)
class Ranking:
    """A ranking whose metrics were tested against each other."""

    key: str  # `index`, or the benchmark
    title: str  # of the benchmark, or what it is a ranking of
    measure: str  # name of the measure
    unit: str  # what is resampled, in the plural with how many; empty of an index
    places: tuple[Place, ...]  # in tiers, best first; those without a rank last
    chance: float | None = None  # what guessing reaches; None where it is not known
    higher_is_better: bool = True  # which way is better
    few: str = ""  # why nothing can be ordered; empty where it can
    on: str = "on"  # the word before its title: `on`, `in` or `for`

    @property
    def ranked(self) -> tuple[Place, ...]:
        """The places with a rank."""
        return tuple(one for one in self.places if one.ranks is not None)

    @property
    def by_metric(self) -> Mapping[Identity, Place]:
        """Metric to its place; of one that was sent several times that of the latest published."""
        return {one.who: one for one in sorted(self.places, key=lambda one: one.entry.published_at)}

    @property
    def ranked_metrics(self) -> tuple[Place, ...]:
        """The places of `by_metric` that have a rank, best first."""
        latest = self.by_metric
        return tuple(one for one in self.ranked if latest[one.who] is one)

    @property
    def n_ranked(self) -> RankCount:
        """How many have a rank."""
        return RankCount(len(self.ranked_metrics), len(self.ranked))

    @property
    def leading(self) -> tuple[Place, ...]:
        """Those of `ranked_metrics` that may be named."""
        return tuple(one for one in self.ranked_metrics if one.may_lead)

    @property
    def tested(self) -> int:
        """How many were tested against each other."""
        return sum(one.tier is not None for one in self.ranked)


@dataclass(frozen=True)
class MetricPick:
    """An answer to a common question."""

    question: str  # as `With open weights`
    place: Place  # the metric
    cost: str = ""  # its cost in words; empty where the question is not about cost


def board_ranking(board: BoardIndex, entries: Mapping[str, Entry]) -> Ranking:
    """The published headline of a benchmark, as it is ordered there."""
    card, cells = board.card, headline_cells(board)
    leading = {cell.entry_id for cell in leading_cells(card, cells, entries)}
    measure = info(card, cells[0].measure) if cells else info(card, card.headline.measure)
    few = too_few(cells, card.cluster)
    most = max((cell.n_clusters for cell in cells), default=0)
    return Ranking(
        key=card.name,
        title=card.title,
        measure=measure.title,
        unit=count(most, card.cluster),
        places=tuple(_of_cell(cell, card, entries[cell.entry_id], leading) for cell in cells),
        chance=chance_of(card, cells[0].measure) if cells else None,
        higher_is_better=measure.higher_is_better,
        few=f"{few[0].upper()}{few[1:]}." if few else "",
    )


def index_ranking(
    found: Sequence[Ranked], base: IndexBase, weights: Mapping[str, float]
) -> Ranking:
    """The index under weights."""
    among = sum(one.standing.rank is not None for one in found)
    weighty = [base.boards[name].card for name, weight in weights.items() if weight]
    return Ranking(
        key=INDEX,
        title=f"the index over {count(len(weighty), 'benchmark')}",
        on="in",
        measure="Index",
        unit="",
        places=tuple(_of_index(one, among, weighty) for one in found if one.standing.present),
        chance=0.0,
    )


def skill_ranking(found: SkillData, title: str) -> Ranking:
    """The weighted mean over the benchmarks of a skill."""
    used = [found.base.measured[name].card for name, weight in found.weights.items() if weight]
    return Ranking(
        key=MEAN,
        title=title,
        measure="Mean of rescaled values",
        unit=count(len(used), "benchmark"),
        places=tuple(
            _of_standing(one, used, tier=None, above=one.above_chance, recommended=one.recommended)
            for one in found.placed
        ),
        chance=0.0,
        on="for",
    )


def verdict(ranking: Ranking, cheapest: tuple[Place, str] | None = None) -> Verdict:
    """The sentence on a ranking."""
    if ranking.few:
        return Verdict(ranking.few, f"Values of {ranking.title} stand below without ranks.")
    leading = ranking.leading
    if not leading:
        return Verdict(
            f"{_nobody(ranking)} {ranking.on} {ranking.title}.", "All values stand below."
        )
    best = leading[0]
    passed = any(one.trained for one in ranking.ranked[: ranking.ranked.index(best)])
    name = metric_in_words(best.entry)
    of_those = "Of the metrics not trained on its data, " if passed else ""
    sentence = f"{of_those}{name} ranks highest {ranking.on} {ranking.title}."
    return Verdict(
        f"{sentence} {_beside(ranking, best, cheapest)}".strip(), _rests_on(ranking, best)
    )


def also(ranking: Ranking) -> str:
    """A sentence on a further ranking; empty where nobody leads it."""
    if ranking.few or not ranking.leading:
        return ""
    best = ranking.leading[0]
    said = _beside(ranking, best, None)
    return (
        f"On {ranking.title}, {metric_in_words(best.entry)} ranks highest ({ranking.measure} "
        f"{best.figure}). {said}".strip()
    )


def picks(
    ranking: Ranking, costs: Mapping[Identity, float], by: str, bound: float | None = None
) -> tuple[MetricPick, ...]:
    """Answers to the questions most visitors have; those without an answer are left out."""
    leading = ranking.leading
    if not leading or ranking.few:
        return ()
    found = [MetricPick("Highest", leading[0])]
    open_ones = [one for one in leading if facts_of(one.entry).access == "open"]
    if open_ones:
        found.append(MetricPick("With open weights", open_ones[0]))
    most, question = BOUNDS[by] if bound is None else (bound, f"Under {cost_words(bound, by)}")
    within = [one for one in leading if costs.get(one.who, math.inf) <= most]
    if within:
        found.append(MetricPick(question, within[0], cost_words(costs[within[0].who], by)))
    cheap = cheapest_of_first_tier(ranking, costs)
    if cheap is not None:
        found.append(MetricPick("Cheapest of tier 1", cheap, cost_words(costs[cheap.who], by)))
    return tuple(found)


def cheapest_of_first_tier(ranking: Ranking, costs: Mapping[Identity, float]) -> Place | None:
    """The metric of tier 1 with the lowest known cost; None where there is none."""
    able = [one for one in ranking.leading if one.tier == 1 and one.who in costs]
    return min(able, key=lambda one: costs[one.who], default=None)


def front(
    places: Sequence[Place], costs: Mapping[Identity, float], *, rises: bool
) -> set[Identity]:
    """Those that may lead and that nothing cheaper beats."""
    found: set[Identity] = set()
    best = -math.inf
    able = [one for one in places if one.may_lead and one.who in costs]
    sign = 1.0 if rises else -1.0
    for one in sorted(able, key=lambda one: (costs[one.who], -sign * one.value)):
        if sign * one.value > best:
            best = sign * one.value
            found.add(one.who)
    return found


def cost_words(value: float, by: str) -> str:
    """A cost for people: `604 MFLOPs a pair`, `12.5 s per 1,000 pairs`, `0.21 GiB`, `0.35 USD per 1,000 pairs`."""
    if by == FLOPS:
        return f"{flops_text(value)}FLOPs a pair"
    if by == USD:
        return f"{usd(value)} USD per 1,000 pairs"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {'GiB' if by == MEMORY else 's per 1,000 pairs'}"


def flops_text(value: float) -> str:
    """`604 M`, `1.6 G`, `224 T`: with three digits at most."""
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g} "


def _beside(ranking: Ranking, best: Place, cheapest: tuple[Place, str] | None) -> str:
    """Who is not significantly worse, as far as it was tested."""
    if best.tier != 1 or ranking.tested < 2:
        firsts = (one.ranks is not None and one.ranks[0] == 1 for one in ranking.ranked_metrics)
        others = sum(firsts) - 1
        if others <= 0:
            return ""
        return f"The rank ranges of {count(others, 'other metric')} reach the first place as well."
    others = sum(one.tier == 1 for one in ranking.ranked_metrics) - 1
    if not others:
        return "The next metric is significantly worse."
    n = _WORDS[others] if others < len(_WORDS) else f"{others:,}"
    who = f"{n} {'other metric of its tier is' if others == 1 else 'others of its tier are'}"
    among = ""
    if cheapest is not None and cheapest[0] is not best:
        among = f", among them {metric_in_words(cheapest[0].entry)} at {cheapest[1]}"
    return f"{who} not significantly worse{among}."


def _rests_on(ranking: Ranking, best: Place) -> str:
    over = f" over {ranking.unit}" if ranking.unit else ""
    return f"{ranking.measure} {best.figure}{over}, rank {best.range} of {ranking.n_ranked}."


def _nobody(ranking: Ranking) -> str:
    if not ranking.ranked:
        return "No metric has a rank"
    return nobody(but_templates=any(one.above and one.entry.template for one in ranking.ranked))


def _of_cell(cell: Cell, card: Card, entry: Entry, leading: set[str]) -> Place:
    trained = is_trained_on(entry, card)
    ranks = None
    if cell.rank is not None and cell.rank_low is not None and cell.rank_high is not None:
        ranks = (cell.rank_low, cell.rank, cell.rank_high)
    return Place(
        who=Identity.of(entry),
        entry=entry,
        value=_or_nan(cell.value),
        low=_or_nan(cell.ci_low),
        high=_or_nan(cell.ci_high),
        n=cell.n_clusters,
        ranks=ranks,
        tier=cell.tier,
        best_share=cell.best_share,
        above=cell_beats_chance(card, cell),
        below=cell_at_or_below_chance(card, cell),
        trained=trained,
        may_lead=cell.entry_id in leading and not trained,
        why=cell.note or cell.why_unranked,
    )


def _of_index(one: Ranked, among: int, cards: Sequence[Card]) -> Place:
    above = None if math.isnan(one.standing.index.low) else one.standing.index.low > 0
    recommended = is_recommended(one.entry, one.standing, among)
    return _of_standing(one, cards, tier=one.standing.tier, above=above, recommended=recommended)


def _of_standing(
    one: Ranked | Placed,
    cards: Sequence[Card],
    *,
    tier: int | None,
    above: bool | None,
    recommended: bool,
) -> Place:
    standing, index, rank = one.standing, one.standing.index, one.standing.rank
    trained = any(is_trained_on(one.entry, card) for card in cards)
    return Place(
        who=one.who,
        entry=one.entry,
        value=index.value,
        low=index.low,
        high=index.high,
        n=None,
        ranks=(rank.low, rank.rank, rank.high) if rank else None,
        tier=tier,
        best_share=None if math.isnan(standing.best_share) else standing.best_share,
        above=above,
        below=not math.isnan(index.high) and index.high <= 0,
        trained=trained,
        may_lead=recommended and not trained,
        why=standing.note,
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
