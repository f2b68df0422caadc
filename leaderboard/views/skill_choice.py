"""Choice of skills, weights and budget, what is found for it, and its table."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.cache import MemoryCache
from leaderboard.publication.entries import Entry
from leaderboard.publication.index import INSIDE
from leaderboard.publication.reader import BoardIndex, View, comparable
from leaderboard.publication.skill_names import Part, Skill, found_by, skills_of
from leaderboard.tables import Column, Table, Type, Value, columns_of
from leaderboard.views.addresses import query_of
from leaderboard.views.figures import in_words, named
from leaderboard.views.index import HEAVIEST, SIMULATED, WEIGHT, few, plain
from leaderboard.views.skills import Disagreement, Placed, SkillsBase, disagreement, skills_base

SECONDS, FLOPS, MEMORY = "seconds", "flops", "memory"
COSTS = {
    SECONDS: "Seconds per 1,000 pairs",
    FLOPS: "GFLOPs per pair (declared)",
    MEMORY: "Peak memory (GiB)",
}
MOST_SKILLS = 6  # Asked for at once
_BUDGET = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", re.ASCII)
_MOST_PARTS = 100


@dataclass(frozen=True)
class SkillsQuery:
    """The state of the page. Everything is as asked for, and may not exist."""

    skill: str = ""  # keys or words, joined by commas; empty: none is chosen
    weights: str = ""  # `counting:2,gecko:0`, of skills and of benchmarks
    cost: str = ""  # one of `COSTS`; empty: seconds
    budget: str = ""  # most that may be spent, in the unit of the cost; empty: no matter
    ratings: str = ""  # `simulated` for the boards of simulated ratings

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> SkillsQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        return cls(*(params.get(name, "") for name in ("skill", "w", "cost", "budget", "ratings")))

    @property
    def simulated(self) -> bool:
        """Whether the boards of simulated ratings are asked for."""
        return self.ratings == SIMULATED

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
    budget: float | None = None  # None: no matter
    remarks: tuple[str, ...] = ()  # what was asked for and could not be done, in sentences
    ratings: str = ""  # as in the query

    @property
    def title(self) -> str:
        """`Counting`, or `Counting and Colour`."""
        return in_words([skill.title for skill in self.skills])

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
            budget="" if self.budget is None else plain(self.budget),
            ratings=self.ratings,
        )


def resolve(query: SkillsQuery, boards: Mapping[str, BoardIndex]) -> SkillsChoice:
    """Find what a query asks for, saying so wherever something could not be done."""
    simulated = skills_of(comparable(boards, simulated=True))
    boards = comparable(boards, simulated=query.simulated)
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
        ratings=SIMULATED if query.simulated else "",
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


def _budget(asked: str, remarks: list[str]) -> float | None:
    if not asked:
        return None
    if _BUDGET.fullmatch(asked) and math.isfinite(float(asked)) and float(asked) > 0:
        return float(asked)
    remarks.append(f"“{named(asked)}” is no budget: it takes a number above 0.")
    return None


_GIB = 2**30


@dataclass(frozen=True)
class Spent:
    """What the runs of a metric used, and what its author declares."""

    seconds: float | None  # in the scorer, for a thousand pairs; None where that is not known
    memory: float | None  # peak, in GiB; None where it was not recorded
    devices: tuple[str, ...] = ()  # what it ran on, as the runs say
    # whether no run on the chosen benchmarks is recorded, but one on others is
    elsewhere: bool = False
    # of one pair, as declared by its author, not measured; None where it is not
    gigaflops: float | None = None

    def by(self, cost: str) -> float | None:
        """The figure that is asked for; only a positive one has a place on a log axis."""
        found = {MEMORY: self.memory, FLOPS: self.gigaflops}.get(cost, self.seconds)
        return found if found is not None and found > 0 else None


@dataclass(frozen=True)
class Point:
    """A metric with its value and its cost."""

    placed: Placed
    cost: float
    spent: Spent

    @property
    def value(self) -> float:
        """Weighted mean of its rescaled values."""
        return self.placed.standing.index.value

    @property
    def whole(self) -> bool:
        """Whether it has every part with a weight, so that it may be compared with the others."""
        return not self.placed.standing.missing


def spent(entries: Iterable[Entry], benchmarks: Collection[str]) -> Spent | None:
    """What a metric used on some benchmarks, together; on others where it ran on none of these."""
    entries = tuple(entries)
    gigaflops = _declared(entries)
    found = [(entry, name) for entry in entries for name in entry.cost]
    chosen = [(entry, name) for entry, name in found if name in benchmarks]
    if not found:
        return None if gigaflops is None else Spent(None, None, gigaflops=gigaflops)
    used = chosen or found
    costs = [entry.cost[name] for entry, name in used]
    pairs = sum(cost.pairs for cost in costs)
    seconds = sum(cost.seconds for cost in costs)
    memory = max(cost.peak_memory_bytes for cost in costs)
    devices = dict.fromkeys(device for entry, name in used if (device := _device(entry, name)))
    return Spent(
        seconds=1000 * seconds / pairs if pairs else None,
        memory=memory / _GIB if memory else None,
        devices=tuple(devices),
        elsewhere=not chosen,
        gigaflops=gigaflops,
    )


def points(placed: Iterable[Placed], spent_by: Sequence[Spent | None], cost: str) -> list[Point]:
    """The metrics whose cost is known, in their order."""
    found = []
    for one, used in zip(placed, spent_by, strict=True):
        figure = used.by(cost) if used else None
        if used is not None and figure is not None and math.isfinite(one.standing.index.value):
            found.append(Point(one, figure, used))
    return found


def pareto_front(found: Iterable[Point]) -> tuple[Point, ...]:
    """Those that no other beats at the same cost or less, the cheapest first.

    Of metrics with every part only: what lacks one was not compared with the others.
    """
    front: list[Point] = []
    for point in sorted((p for p in found if p.whole), key=lambda p: (p.cost, -p.value)):
        if not front or point.value > front[-1].value:
            front.append(point)
    return tuple(front)


def affordable(front: Sequence[Point], budget: float) -> Point | None:
    """The best that costs no more than that; None where nothing does."""
    within = [point for point in front if point.cost <= budget]
    return within[-1] if within else None


def as_good_for_less(front: Sequence[Point]) -> Point | None:
    """The cheapest whose rank range reaches the first place: nothing shown is surely better."""
    return next(
        (p for p in front if p.placed.standing.rank and p.placed.standing.rank.low == 1), None
    )


def _declared(entries: Sequence[Entry]) -> float | None:
    """As the latest entry that says anything of it declares."""
    said = [one for one in entries if one.flops_per_pair is not None]
    latest = max(said, key=lambda one: (one.published_at, one.entry_id), default=None)
    return None if latest is None or latest.flops_per_pair is None else latest.flops_per_pair / GIGA


def _device(entry: Entry, benchmark: str) -> str:
    found = entry.findings.get(benchmark)
    stated = found.environment.get("device", "") if found else ""
    report = entry.trust.get(benchmark)
    return stated or (report.environment.get("device", "") if report else "")


_KEPT_BYTES = 64 << 20
_KEPT = 16


@dataclass(frozen=True)
class Found:
    """What is known of the chosen skills."""

    base: SkillsBase  # the parts
    weights: Mapping[str, float]  # part to weight, of those that take part in the list
    placed: tuple[Placed, ...]  # the list; those with every part come first and are ranked
    spent: tuple[Spent | None, ...]  # of each metric of the list; None where nothing is recorded
    points: tuple[Point, ...]  # metrics whose cost is known
    # of those that may be recommended, the ones that nothing cheaper beats
    front: tuple[Point, ...]
    disagreement: Disagreement  # between the parts

    @property
    def ranked(self) -> tuple[Placed, ...]:
        """Metrics with every part that has a weight."""
        return tuple(one for one in self.placed if one.standing.rank is not None)

    @property
    def recommended(self) -> tuple[Placed, ...]:
        """Of them, those that may be recommended, in the same order."""
        return tuple(one for one in self.placed if one.recommended)

    def affordable(self, budget: float | None) -> Point | None:
        """The best within a budget; without one, the cheapest that may be as good as the best.

        Of those that may be recommended; None where none of them does.
        """
        if budget is None:
            return as_good_for_less(self.front)
        return affordable(self.front, budget)


def found_for(choice: SkillsChoice, base: SkillsBase) -> Found:
    """The list, its costs and the front under the weights of a choice."""
    used = base.comparison.benchmarks if base.comparison else ()
    weights = {part.name: choice.weight(part) for part in choice.parts if part.name in used}
    placed = base.placed(weights)
    benchmarks = {part.benchmark for part in choice.parts if weights.get(part.name)}
    costs = tuple(spent(base.sent[one.who], benchmarks) for one in placed)
    shown = tuple(points(placed, costs, choice.cost))
    weighty = [name for name, weight in weights.items() if weight]
    return Found(
        base=base,
        weights=weights,
        placed=placed,
        spent=costs,
        points=shown,
        front=pareto_front(point for point in shown if point.placed.recommended),
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
    "rank_low", "rank", "rank_high", "p_best", "parts", "missing", "seconds_per_1000_pairs",
    "flops_per_pair_declared", "peak_memory_gib", "devices", "recommended",
    "on_front", "entry_id",
)  # fmt: skip
PART_COLUMNS = ("weight", "rescaled", "ci_low", "ci_high")  # Of each part, after its name
_TYPES = {
    Type.NUMBER: "mean ci_low ci_high p_best seconds_per_1000_pairs flops_per_pair_declared "
    "peak_memory_gib",
    Type.COUNT: "rank_low rank rank_high",
    Type.FLAG: "recommended on_front",
}
_MEANINGS = {
    "skills": "Keys, joined by commas.",
    "mean": "Weighted mean of the rescaled values: 0 is a guess, 1 the ceiling.",
    "rank": "Missing where a benchmark with a weight is.",
    "p_best": "Share of the resamples in which it comes first.",
    "parts": "What it has values of, joined by ;",
    "missing": "What it lacks, joined by ;",
    "seconds_per_1000_pairs": "Where it was recorded, on `devices`.",
    "flops_per_pair_declared": "Declared by its author, not measured; empty: not declared.",
    "recommended": "Whether it may be: ranked, its interval, corrected for the number of "
    "metrics, wholly above 0, and no unchanged template.",
    "on_front": "Whether it is recommended and nothing recommended that costs less is as good.",
}


def skills_table(
    choice: SkillsChoice, found: Found | None, about: Mapping[str, Any] | None = None
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
    front = {point.placed.entry.entry_id for point in found.front}
    rows = [
        {
            "skills": ",".join(keys),
            **_of_metric(one, used),
            "recommended": one.recommended,
            "on_front": one.entry.entry_id in front,
            **_of_parts(one, found),
        }
        for one, used in zip(found.placed, found.spent, strict=True)
    ]
    return Table(f"skills-{'-'.join(keys)}", (*columns, *parts), rows, told)


def _of_metric(one: Placed, used: Spent | None) -> dict[str, Value]:
    standing, rank, index = one.standing, one.standing.rank, one.standing.index
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
        "p_best": standing.p_best,
        "parts": ";".join(standing.present),
        "missing": ";".join(standing.missing),
        "seconds_per_1000_pairs": used.seconds if used else None,
        "flops_per_pair_declared": _flops(used),
        "peak_memory_gib": used.memory if used else None,
        "devices": ";".join(used.devices) if used else "",
        "entry_id": one.entry.entry_id,
    }


def _flops(used: Spent | None) -> float | None:
    return None if used is None or used.gigaflops is None else used.gigaflops * GIGA


def _of_parts(one: Placed, found: Found) -> dict[str, Value]:
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
