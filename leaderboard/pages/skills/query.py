"""Query of the skills page: to and from a link, resolved to what exists."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode

from leaderboard.pages.index.boards import INSIDE
from leaderboard.pages.index.query import SIMULATED
from leaderboard.pages.reading import BoardIndex, comparable
from leaderboard.pages.shown.markup import clean
from leaderboard.pages.skills.names import Part, Skill, found_by, skills_of

SECONDS, FLOPS, MEMORY = "seconds", "flops", "memory"
COSTS = {
    SECONDS: "Seconds per 1,000 pairs",
    FLOPS: "GFLOPs per pair (declared)",
    MEMORY: "Peak memory (GiB)",
}
HEAVIEST = 5.0
MOST_SKILLS = 6
"""Asked for at once."""

_WEIGHT = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)
_BUDGET = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", re.ASCII)
_MOST_PARTS = 100
_MOST_REMARKS = 6
_LONGEST_NAMED = 60


@dataclass(frozen=True)
class SkillsQuery:
    """The state of the page. Everything is as asked for, and may not exist.

    Attributes:
        skill: keys or words, joined by commas; empty: none is chosen.
        weights: `counting:2,gecko:0`, of skills and of benchmarks.
        cost: one of `COSTS`; empty: seconds.
        budget: most that may be spent, in the unit of the cost; empty: no matter.
        ratings: `simulated` for the boards of simulated ratings.
    """

    skill: str = ""
    weights: str = ""
    cost: str = ""
    budget: str = ""
    ratings: str = ""

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> SkillsQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        return cls(*(params.get(name, "") for name in ("skill", "w", "cost", "budget", "ratings")))

    @property
    def simulated(self) -> bool:
        """Whether the boards of simulated ratings are asked for."""
        return self.ratings == SIMULATED

    @classmethod
    def from_link(cls, query: str) -> SkillsQuery:
        """The inverse of `to_query`."""
        return cls.from_params({k: v[-1] for k, v in parse_qs(query.removeprefix("?")).items()})

    def to_query(self) -> str:
        """The query string of the link to this state, with its question mark."""
        named = {
            "skill": self.skill, "w": self.weights, "cost": self.cost, "budget": self.budget,
            "ratings": self.ratings,
        }  # fmt: skip
        given = {name: value for name, value in named.items() if value}
        return "?" + urlencode(given, safe="~:,/") if given else ""


@dataclass(frozen=True)
class SkillsChoice:
    """What is shown: a query resolved against what exists.

    Attributes:
        known: every skill with results, by key.
        skills: the chosen ones.
        of_skills: weight of each of them.
        of_benchmarks: weight of each benchmark that measures one of them.
        why: benchmark to the reason why it does not weigh 1 to begin with.
        began: weight of each benchmark to begin with.
        cost: one of `COSTS`.
        budget: None: no matter.
        remarks: what was asked for and could not be done, in sentences.
        ratings: as in the query.
    """

    known: Mapping[str, Skill]
    skills: tuple[Skill, ...] = ()
    of_skills: Mapping[str, float] | None = None
    of_benchmarks: Mapping[str, float] | None = None
    why: Mapping[str, str] | None = None
    began: Mapping[str, float] | None = None
    cost: str = SECONDS
    budget: float | None = None
    remarks: tuple[str, ...] = ()
    ratings: str = ""

    @property
    def title(self) -> str:
        """`Counting`, or `Counting and Colour`."""
        names = [skill.title for skill in self.skills]
        if len(names) < 2:
            return "".join(names)
        return f"{', '.join(names[:-1])} and {names[-1]}"

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
            weights=",".join(f"{name}:{_plain(weight)}" for name, weight in weights.items()),
            cost="" if self.cost == SECONDS else self.cost,
            budget="" if self.budget is None else _plain(self.budget),
            ratings=self.ratings,
        )


def resolve(query: SkillsQuery, boards: Mapping[str, BoardIndex]) -> SkillsChoice:
    """Find what a query asks for, saying so wherever something could not be done.

    Args:
        query: as asked for.
        boards: what is published; of real and simulated boards, only the former are weighed.
    """
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
        remarks.append(f"There is no cost “{_named(cost)}”; shown instead: seconds.")
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
        remarks=_few(remarks),
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
            remarks.append(f"No skill with results is called “{_named(part)}”{only}.")
    return found


def _weights(
    asked: str, known: Mapping[str, Skill], boards: Mapping[str, BoardIndex], remarks: list[str]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in [part for part in asked.split(",") if part.strip()][:_MOST_PARTS]:
        name, _, given = part.strip().rpartition(":")
        if name not in known and name not in boards:
            remarks.append(
                f"“{_named(name or given)}” is neither a skill with results nor a benchmark."
            )
        elif not _WEIGHT.fullmatch(given):
            remarks.append(
                f"“{_named(given)}” is no weight: it takes a number from 0 to {HEAVIEST:g}."
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
    remarks.append(f"“{_named(asked)}” is no budget: it takes a number above 0.")
    return None


def _plain(number: float) -> str:
    """Without needless zeros, as it is read again: never `1e-06`."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _named(asked: str) -> str:
    shown = clean(asked)
    return shown if len(shown) <= _LONGEST_NAMED else f"{shown[:_LONGEST_NAMED]}…"


def _few(remarks: list[str]) -> tuple[str, ...]:
    if len(remarks) <= _MOST_REMARKS:
        return tuple(remarks)
    more = len(remarks) - _MOST_REMARKS + 1
    return (*remarks[: _MOST_REMARKS - 1], f"{more} more parts of the link could not be used.")
