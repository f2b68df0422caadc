"""Skills that benchmarks have in common, under one name each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.schema import Card
from leaderboard.publication.measure_names import short_titles, skill_title
from leaderboard.publication.reader import BoardIndex, boards_of_one_kind

_NOT_IN_A_KEY = re.compile(r"[^A-Za-z0-9_.]+")
_MOST_WORDS = 120


class CommonName(BaseModel):
    """A skill as visitors know it.

    Attributes:
        title: how it is shown.
        words: by which it is found too.
        keys: family of cards to the keys that mean it there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    words: tuple[str, ...] = ()
    keys: dict[str, tuple[str, ...]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A skill of one benchmark."""

    benchmark: str
    key: str

    @property
    def name(self) -> str:
        """Its own among all parts."""
        return f"{self.benchmark}/{self.key}"


@dataclass(frozen=True)
class Skill:
    """A skill over benchmarks."""

    key: str  # stands in links
    title: str  # how it is shown
    words: tuple[str, ...]  # by which it is found too
    parts: tuple[Part, ...]  # what measures it, in the order of the benchmarks


@cache
def common_names() -> Mapping[str, CommonName]:
    """The names in `skill_names.toml`, by key, in their order."""
    file = resources.files("leaderboard.publication").joinpath("skill_names.toml")
    given = tomllib.loads(file.read_text(encoding="utf-8"))
    return {key: CommonName.model_validate(one) for key, one in given.items()}


def skills_of(boards: Mapping[str, BoardIndex]) -> dict[str, Skill]:
    """Every skill with results on boards of one kind, by key: those with a common name come first."""
    parts: dict[str, list[Part]] = {key: [] for key in common_names()}
    titles = {key: one.title for key, one in common_names().items()}
    short = short_titles(board.card for board in boards.values())
    for name, board in boards_of_one_kind(boards).items():
        for skill in board.skills():
            key = common_key(board.card, skill)
            if key is None:
                # Sub-skills that no common name takes are on their boards: they rest on few items.
                if ":" in skill:
                    continue
                key = _NOT_IN_A_KEY.sub("-", f"{board.card.family}.{skill}")
                titles[key] = f"{skill_title(board.card, skill)} ({short[name]})"
            parts.setdefault(key, []).append(Part(name, skill))
    known = common_names()
    return {
        key: Skill(key, titles[key], known[key].words if key in known else (), tuple(found))
        for key, found in parts.items()
        if found
    }


def common_key(card: Card, skill: str) -> str | None:
    """The common name a skill of a benchmark goes by; None: it stands for itself.

    Families that `skill_names.toml` does not know go by a common name that is their own key.
    """
    names = common_names()
    for key, name in names.items():
        if skill in name.keys.get(card.family, ()):
            return key
    stranger = all(card.family not in name.keys for name in names.values())
    return skill if stranger and skill in names else None


def found_by(asked: str, skills: Mapping[str, Skill]) -> Skill | None:
    """The skill that words mean: by key, title or other words, whole before in part."""
    wanted = " ".join(asked[:_MOST_WORDS].casefold().split())
    if not wanted:
        return None
    if asked in skills:
        return skills[asked]
    for fits in (_is, _begins, _holds):
        for skill in skills.values():
            if fits(wanted, (skill.key, skill.title, *skill.words)):
                return skill
    return None


def _is(wanted: str, words: Iterable[str]) -> bool:
    return any(wanted == word.casefold() for word in words)


def _begins(wanted: str, words: Iterable[str]) -> bool:
    return any(word.casefold().startswith(wanted) for word in words)


def _holds(wanted: str, words: Iterable[str]) -> bool:
    """Whether one holds the other as whole words: `counting people` means counting."""
    return any(
        re.search(rf"\b{re.escape(word.casefold())}\b", wanted)
        or (len(wanted) > 3 and wanted in word.casefold())
        for word in words
    )
