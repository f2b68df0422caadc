"""Skills over benchmarks: what is asked for, every metric's place under the weights, and its cost."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.schema import Card, Scale, Selector
from leaderboard.cache import MemoryCache
from leaderboard.publication.entries import Entry, Identity, latest_cells
from leaderboard.publication.index import (
    INSIDE,
    Scaled,
    WeighedBase,
    is_above_chance,
    is_recommended,
    weighed_base,
)
from leaderboard.publication.measure_names import info, nearest
from leaderboard.publication.reader import (
    GROUPS,
    SIMULATED,
    BoardIndex,
    View,
    group_of,
    known_group,
    shown_group,
)
from leaderboard.publication.skill_names import Part, Skill, common_names, found_by, skills_of
from leaderboard.ranking.cells import Cell, too_few
from leaderboard.ranking.index import IndexRank
from leaderboard.tables import Column, Table, Type, Value, columns_of
from leaderboard.views.addresses import query_of
from leaderboard.views.figures import in_words, named
from leaderboard.views.index import HEAVIEST, WEIGHT, few, plain
from leaderboard.views.parameters import parameter

NO_SCALE = "its card states no chance level and bound of this measure"
NOBODY = "no metric has a rank on it"
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
    standing: IndexRank  # under the chosen weights; its benchmarks are names of parts
    among: int = 1  # number of metrics that are ranked beside it, itself included
    used: RunCost | None = None  # what its runs used; None where nothing is recorded

    @property
    def value(self) -> float:
        """Weighted mean of its rescaled values."""
        return self.standing.index.value

    @property
    def whole(self) -> bool:
        """Whether it has every part with a weight, so that it may be compared with the others."""
        return not self.standing.missing

    def cost(self, by: str) -> float | None:
        """A cost, a key of `COSTS`: FLOPs, seconds or USD for 1,000 pairs, or GiB; None: not known."""
        return self.used.by(by) if self.used else None

    @property
    def recommended(self) -> bool:
        """Whether it may be recommended: ranked, significantly above chance, and no template."""
        return is_recommended(self.entry, self.standing, self.among)

    @property
    def above_chance(self) -> bool:
        """Whether the interval of its mean lies wholly above 0, which is chance."""
        return is_above_chance(self.standing, self.among)


@dataclass(frozen=True)
class SkillsBase(WeighedBase):
    """Everything the page needs but weights; its measures are parts, by name."""

    measured: Mapping[str, Measured]  # every part that has results
    # part to metrics and their rescaled resamples, for those that are joined
    draws: Mapping[str, tuple[tuple[Identity, ...], NDArray[np.float32]]]

    def placed(self, weights: Mapping[str, float]) -> tuple[Placed, ...]:
        """Every metric that has a part, in the order of `Comparison.index_ranks`."""
        if self.comparison is None:
            return ()
        kept = {name: weights.get(name, 0.0) for name in self.comparison.benchmarks}
        if not any(kept.values()):
            return ()
        found = self.comparison.index_ranks(kept)
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
    used = {
        name: Scaled(one.card, one.scale, one.able)
        for name, one in measured.items()
        if one.scale is not None and not one.why_out
    }
    base = weighed_base(used, view)
    draws = {
        name: (tuple(part.cells), _rescaled_draws(part, view))
        for name, part in used.items()
        if name not in base.unjoined
    }
    return SkillsBase(**vars(base), measured=measured, draws=draws)


def _rescaled_draws(part: Scaled, view: View) -> NDArray[np.float32]:
    drawn = view.orders.slice(part.card, tuple(part.cells.values())).draws.resamples
    scale = part.scale
    return ((drawn - scale.chance) / (scale.ceiling - scale.chance)).astype(np.float32)


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


MOST_METRICS = 20  # The first of the list: whom a visitor would choose among
_ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class OppositeOrder:
    """Two metrics that two parts order in opposite ways, each beyond its resampling error."""

    one: Identity  # above the other by `by_first`
    other: Identity  # above `one` by `by_second`
    by_first: str  # a part
    by_second: str  # a part


@dataclass(frozen=True)
class Disagreement:
    """How often parts contradict each other."""

    opposed: tuple[OppositeOrder, ...]  # the pairs that do, one entry for each pair of metrics
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
            opposed.append(OppositeOrder(shown[i], shown[j], above[0], below[0]))
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


SECONDS, FLOPS, MEMORY, USD = "seconds", "flops", "memory", "usd"
COSTS = {
    SECONDS: "Seconds per 1,000 pairs",
    FLOPS: "GFLOPs per pair (declared)",
    MEMORY: "Peak memory (GiB)",
    USD: "USD per 1,000 pairs",
}
MOST_SKILLS = 6  # Asked for at once
MOST_BUDGET = 1e12
_MOST_PARTS = 100
RATINGS = (
    f"`preference` or `quality`: the boards of these alone; `{SIMULATED}`: those of simulated "
    "ratings, which stand apart. Without it, means are over the boards of alignment."
)


@dataclass(frozen=True)
class SkillsQuery:
    """The state of the page. Everything is as asked for, and may not exist."""

    skill: str = parameter("Keys or names of skills, joined by commas.", "counting")
    weights: str = parameter("Weights of skills and benchmarks, as `counting:2,gecko:0`.", name="w")
    cost: str = parameter("What `on_front` goes by; without: seconds.", options=COSTS)
    # in the unit of the cost
    budget: str = parameter("Most that may be spent; it changes no row.")
    ratings: str = parameter(RATINGS, options=GROUPS[1:])

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> SkillsQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        given = {"skill": "skill", "weights": "w", "cost": "cost", "budget": "budget"}
        read = {name: params.get(key, "") for name, key in given.items()}
        return cls(**read, ratings=known_group(params.get("ratings", "")))

    def to_query(self) -> str:
        """The query string of the link to this state, with its question mark."""
        return query_of({
            "skill": self.skill, "w": self.weights, "cost": self.cost, "budget": self.budget,
            "ratings": self.ratings,
        })  # fmt: skip


@dataclass(frozen=True)
class SkillsChoice:
    """What is shown: a query resolved against what exists."""

    known: Mapping[str, Skill]  # every skill with results, by key
    skills: tuple[Skill, ...] = ()  # the chosen ones
    of_skills: Mapping[str, float] | None = None  # weight of each of them
    # weight of each benchmark that measures one of them
    of_benchmarks: Mapping[str, float] | None = None
    # benchmark to the reason why it does not weigh 1 to begin with
    why: Mapping[str, str] | None = None
    began: Mapping[str, float] | None = None  # weight of each benchmark to begin with
    cost: str = SECONDS
    budget: float | None = None  # in the unit of the cost, GFLOPs; None: no matter
    remarks: tuple[str, ...] = ()  # what was asked for and could not be done, in sentences
    ratings: str = ""  # as in the query

    @property
    def title(self) -> str:
        """`Counting`, or `Counting and Colour`."""
        return in_words([skill.title for skill in self.skills])

    @property
    def in_a_sentence(self) -> str:
        """`counting and colour`; names that a benchmark gives stay as they are."""
        common = common_names()
        return in_words([s.title.lower() if s.key in common else s.title for s in self.skills])

    @property
    def bound(self) -> float | None:
        """The budget in FLOPs, seconds or USD for 1,000 pairs, or GiB."""
        return self.budget * GIGA if self.budget and self.cost == FLOPS else self.budget

    @property
    def parts(self) -> tuple[Part, ...]:
        """All that measures the chosen skills."""
        return tuple(dict.fromkeys(part for skill in self.skills for part in skill.parts))

    def weight(self, part: Part) -> float:
        """Of a part: that of its skill times that of its benchmark."""
        of_skill = max(
            (self.of_skills or {}).get(skill.key, 1.0) for skill in self.skills
            if part in skill.parts
        )  # fmt: skip
        return of_skill * (self.of_benchmarks or {}).get(part.benchmark, 1.0)

    @property
    def query(self) -> SkillsQuery:
        """The exact state, for a link; weights are named as soon as one differs."""
        skills, boards = self.of_skills or {}, self.of_benchmarks or {}
        weights: dict[str, float] = {}
        if any(weight != 1.0 for weight in skills.values()):
            weights |= skills
        if boards != (self.began or {}):
            weights |= boards
        return SkillsQuery(
            skill=",".join(skill.key for skill in self.skills),
            weights=",".join(f"{name}:{plain(weight)}" for name, weight in weights.items()),
            cost="" if self.cost == SECONDS else self.cost,
            budget="" if self.budget is None else f"{self.budget:.12g}",
            ratings=self.ratings,
        )


def resolve(query: SkillsQuery, boards: Mapping[str, BoardIndex]) -> SkillsChoice:
    """Find what a query asks for, saying so wherever something could not be done."""
    simulated = skills_of(group_of(boards, SIMULATED))
    boards = group_of(boards, shown_group(boards, query.ratings))
    known = skills_of(boards)
    remarks: list[str] = []
    given = _weights(query.weights, known, boards, remarks)
    skills = _skills(query.skill, known, simulated, remarks)
    # A weight for a skill asks for the skill.
    skills += [known[name] for name in given if name in known and known[name] not in skills]
    if len(skills) > MOST_SKILLS:
        remarks.append(f"Up to {MOST_SKILLS} skills are shown together; the first ones are.")
    skills = skills[:MOST_SKILLS]
    names = tuple(dict.fromkeys(part.benchmark for skill in skills for part in skill.parts))
    ordered = [name for name in boards if name in names]
    why = _why_not(ordered, boards)
    began = {name: 0.0 if name in why else 1.0 for name in ordered}
    cost = query.cost or SECONDS
    if cost not in COSTS:
        remarks.append(f"There is no cost “{named(cost)}”; shown instead: seconds.")
        cost = SECONDS
    return SkillsChoice(
        known=known,
        skills=tuple(skills),
        of_skills={skill.key: given.get(skill.key, 1.0) for skill in skills},
        of_benchmarks={name: given.get(name, began[name]) for name in ordered},
        why=why,
        began=began,
        cost=cost,
        budget=_budget(query.budget, remarks),
        ratings=query.ratings,
        remarks=few(remarks),
    )


def _skills(
    asked: str, known: Mapping[str, Skill], simulated: Mapping[str, Skill], remarks: list[str]
) -> list[Skill]:
    found: list[Skill] = []
    for part in [part.strip() for part in asked.split(",")][:_MOST_PARTS]:
        skill = found_by(part, known)
        if skill is not None and skill not in found:
            found.append(skill)
        elif skill is None and part:
            only = " but on simulated boards" if found_by(part, simulated) else ""
            remarks.append(f"No skill with results is called “{named(part)}”{only}.")
    return found


def _weights(
    asked: str, known: Mapping[str, Skill], boards: Mapping[str, BoardIndex], remarks: list[str]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in [part for part in asked.split(",") if part.strip()][:_MOST_PARTS]:
        name, _, given = part.strip().rpartition(":")
        if name not in known and name not in boards:
            remarks.append(
                f"“{named(name or given)}” is neither a skill with results nor a benchmark."
            )
        elif not WEIGHT.fullmatch(given):
            remarks.append(
                f"“{named(given)}” is no weight: it takes a number from 0 to {HEAVIEST:g}."
            )
        else:
            found[name] = min(float(given), HEAVIEST)
    return found


def _why_not(names: list[str], boards: Mapping[str, BoardIndex]) -> dict[str, str]:
    """Benchmarks that weigh nothing to begin with."""
    found = {}
    for name in names:
        whole = INSIDE.get(name, "")
        if whole in names:
            found[name] = (
                f"its prompts are inside {boards[whole].card.title}, and would count twice"
            )
    return found


_NUMBER = re.compile(r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?")


def _budget(asked: str, remarks: list[str]) -> float | None:
    if not asked:
        return None
    found = float(asked) if _NUMBER.fullmatch(asked) else math.nan
    if 0 < found <= MOST_BUDGET:
        return found
    wanted = f"a number above 0 and at most {MOST_BUDGET:g}"
    remarks.append(f"“{named(asked)}” is no budget: it takes {wanted}.")
    return None


_GIB = 2**30


@dataclass(frozen=True)
class RunCost:
    """What the runs of a metric used, and what its author declares."""

    seconds: float | None  # in the scorer, for a thousand pairs; None where that is not known
    memory: float | None  # peak, in GiB; None where it was not recorded
    devices: tuple[str, ...] = ()  # what it ran on, as the runs say
    # whether no run on the chosen benchmarks is recorded, but one on others is
    elsewhere: bool = False
    # of one pair, as declared by its author, not measured; None where it is not
    flops: float | None = None
    # price of a thousand pairs, of the runs that were paid for; None where none was
    usd: float | None = None

    def by(self, cost: str) -> float | None:
        """The figure that is asked for; only a positive one has a place on a log axis."""
        found = {MEMORY: self.memory, FLOPS: self.flops, USD: self.usd}.get(cost, self.seconds)
        return found if found is not None and found > 0 else None


def spent(entries: Iterable[Entry], benchmarks: Collection[str]) -> RunCost | None:
    """What a metric used on some benchmarks, together; on others where it ran on none of these."""
    entries = tuple(entries)
    flops = _declared(entries)
    found = [(entry, name) for entry in entries for name in entry.cost]
    chosen = [(entry, name) for entry, name in found if name in benchmarks]
    if not found:
        return None if flops is None else RunCost(None, None, flops=flops)
    used = chosen or found
    costs = [entry.cost[name] for entry, name in used]
    pairs = sum(cost.pairs for cost in costs)
    seconds = sum(cost.seconds for cost in costs)
    memory = max(cost.peak_memory_bytes for cost in costs)
    paid = [cost for cost in costs if cost.usd_per_1000_pairs is not None]
    devices = dict.fromkeys(device for entry, name in used if (device := _device(entry, name)))
    return RunCost(
        seconds=1000 * seconds / pairs if pairs else None,
        memory=memory / _GIB if memory else None,
        devices=tuple(devices),
        elsewhere=not chosen,
        flops=flops,
        usd=1000 * sum(c.usd for c in paid) / sum(c.pairs for c in paid) if paid else None,
    )


def pareto_front(found: Iterable[Placed], by: str) -> tuple[Placed, ...]:
    """Those of known cost that no other beats at the same cost or less, the cheapest first.

    Of metrics with every part only: what lacks one was not compared with the others.
    """
    front: list[Placed] = []
    costs = [(cost, one) for one in found if one.whole and (cost := one.cost(by)) is not None]
    for _, one in sorted(costs, key=lambda pair: (pair[0], -pair[1].value)):
        if not front or one.value > front[-1].value:
            front.append(one)
    return tuple(front)


def _declared(entries: Sequence[Entry]) -> float | None:
    """As the latest entry that says anything of it declares."""
    said = [one for one in entries if one.flops_per_pair is not None]
    latest = max(said, key=lambda one: (one.published_at, one.entry_id), default=None)
    return None if latest is None else latest.flops_per_pair


def _device(entry: Entry, benchmark: str) -> str:
    found = entry.findings.get(benchmark)
    stated = found.environment.get("device", "") if found else ""
    report = entry.trust.get(benchmark)
    return stated or (report.environment.get("device", "") if report else "")


_KEPT_BYTES = 64 << 20
_KEPT = 16


@dataclass(frozen=True)
class SkillData:
    """What is known of the chosen skills."""

    base: SkillsBase  # the parts
    weights: Mapping[str, float]  # part to weight, of those that take part in the list
    placed: tuple[Placed, ...]  # the list; those with every part come first and are ranked
    # of those that may be recommended, the ones that nothing cheaper beats
    front: tuple[Placed, ...]
    by: str  # the cost that the front is of
    disagreement: Disagreement  # between the parts

    @property
    def ranked(self) -> tuple[Placed, ...]:
        """Metrics with every part that has a weight."""
        return tuple(one for one in self.placed if one.standing.rank is not None)

    @property
    def recommended(self) -> tuple[Placed, ...]:
        """Of them, those that may be recommended, in the same order."""
        return tuple(one for one in self.placed if one.recommended)

    def affordable(self, bound: float | None) -> Placed | None:
        """The best within a bound; without one, the cheapest whose rank range reaches the first.

        Of those that may be recommended; None where none of them does.
        """
        if bound is None:
            ranked = ((one, one.standing.rank) for one in self.front)
            return next((one for one, rank in ranked if rank and rank.low == 1), None)
        within = [one for one in self.front if (one.cost(self.by) or math.inf) <= bound]
        return within[-1] if within else None


def found_for(choice: SkillsChoice, base: SkillsBase) -> SkillData:
    """The list, its costs and the front under the weights of a choice."""
    used = base.comparison.benchmarks if base.comparison else ()
    weights = {part.name: choice.weight(part) for part in choice.parts if part.name in used}
    benchmarks = {part.benchmark for part in choice.parts if weights.get(part.name)}
    placed = tuple(
        replace(one, used=spent(base.sent[one.who], benchmarks)) for one in base.placed(weights)
    )
    weighty = [name for name, weight in weights.items() if weight]
    return SkillData(
        base=base,
        weights=weights,
        placed=placed,
        front=pareto_front((one for one in placed if one.recommended), choice.cost),
        by=choice.cost,
        disagreement=disagreement(base, weighty, [one.who for one in placed]),
    )


class Prepared:
    """The parts of the skills that were looked at last, for one view of the boards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._view: View | None = None
        self._kept: MemoryCache[SkillsBase] = MemoryCache(
            lambda base: base.nbytes, _KEPT_BYTES, _KEPT
        )

    def of(self, view: View, parts: tuple[Part, ...]) -> SkillsBase:
        """Cells and resamples of some parts; read at the first use."""
        with self._lock:
            if self._view is not view:
                self._view = view
                self._kept = MemoryCache(lambda base: base.nbytes, _KEPT_BYTES, _KEPT)
            kept = self._kept
        return kept.of(parts, lambda: skills_base(view, parts))

    @property
    def nbytes(self) -> int:
        """What is kept now, about."""
        return self._kept.nbytes


COLUMNS = (
    "skills", "metric", "version", "submitter", "account", "kind", "released_with", "mean", "ci_low", "ci_high",
    "rank_low", "rank", "rank_high", "best_share", "parts", "missing", "seconds_per_1000_pairs",
    "flops_per_pair_declared", "peak_memory_gib", "usd_per_1000_pairs", "devices", "recommended",
    "on_front", "entry_id",
)  # fmt: skip
PART_COLUMNS = ("weight", "rescaled", "ci_low", "ci_high")  # Of each part, after its name
_TYPES = {
    Type.NUMBER: "mean ci_low ci_high best_share seconds_per_1000_pairs flops_per_pair_declared "
    "peak_memory_gib usd_per_1000_pairs",
    Type.COUNT: "rank_low rank rank_high",
    Type.FLAG: "recommended on_front",
}
_MEANINGS = {
    "skills": "Keys, joined by commas.",
    "mean": "Weighted mean of the rescaled values: 0 is chance, 1 the ceiling.",
    "rank": "Missing where a benchmark with a weight is.",
    "best_share": "Share of the resamples in which it comes first.",
    "parts": "What it has values of, joined by ;",
    "missing": "What it lacks, joined by ;",
    "seconds_per_1000_pairs": "Where it was recorded, on `devices`.",
    "flops_per_pair_declared": "Declared by its author, not measured; empty: not declared.",
    "usd_per_1000_pairs": "Price of its replies; empty: not paid for.",
    "recommended": "Whether it may be: ranked, its interval, corrected for the number of "
    "metrics, wholly above 0, and no unchanged template.",
    "on_front": "Whether it is recommended and nothing recommended that costs less is as good.",
}


def skills_table(
    choice: SkillsChoice, found: SkillData | None, about: Mapping[str, Any] | None = None
) -> Table:
    """One row per metric of the list, with its rescaled value on every part."""
    keys = [skill.key for skill in choice.skills]
    columns: Sequence[Column] = columns_of(COLUMNS, _TYPES, _MEANINGS)
    told = {**(about or {}), "skills": keys, "weights": dict(found.weights) if found else {}}
    if found is None:
        return Table("skills", tuple(columns), (), told)
    parts = [
        Column(f"{name} {column}", Type.NUMBER) for name in found.weights for column in PART_COLUMNS
    ]
    front = {one.entry.entry_id for one in found.front}
    rows = [
        {
            "skills": ",".join(keys),
            **_of_metric(one),
            "recommended": one.recommended,
            "on_front": one.entry.entry_id in front,
            **_of_parts(one, found),
        }
        for one in found.placed
    ]
    return Table(f"skills-{'-'.join(keys)}", (*columns, *parts), rows, told)


def _of_metric(one: Placed) -> dict[str, Value]:
    standing, rank, index = one.standing, one.standing.rank, one.standing.index
    used = one.used
    return {
        "metric": one.who.metric,
        "version": one.who.version,
        "submitter": one.who.submitter,
        "account": one.entry.account,
        "kind": one.who.kind.value,
        "released_with": one.entry.released_with,
        "mean": index.value,
        "ci_low": index.low,
        "ci_high": index.high,
        "rank_low": rank.low if rank else None,
        "rank": rank.rank if rank else None,
        "rank_high": rank.high if rank else None,
        "best_share": standing.best_share,
        "parts": ";".join(standing.present),
        "missing": ";".join(standing.missing),
        "seconds_per_1000_pairs": used.seconds if used else None,
        "flops_per_pair_declared": used.flops if used else None,
        "peak_memory_gib": used.memory if used else None,
        "usd_per_1000_pairs": used.usd if used else None,
        "devices": ";".join(used.devices) if used else "",
        "entry_id": one.entry.entry_id,
    }


def _of_parts(one: Placed, found: SkillData) -> dict[str, Value]:
    row: dict[str, Value] = {}
    for name, weight in found.weights.items():
        value = found.base.values[name].get(one.who)
        values = (weight, *(value or (None, None, None)))
        row |= {f"{name} {k}": v for k, v in zip(PART_COLUMNS, values, strict=True)}
    return row


GIGA = 1e9
"""They are shown in thousands of millions, which is about what small models take for a pair."""
DECLARED = "declared by its author, not measured"
NOT_DECLARED = "not declared"


def gigaflops_text(value: float) -> str:
    """`98.6 GFLOPs`, from a number of them."""
    if value < 0.01:
        return f"{value:.1e} GFLOPs"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} GFLOPs"
