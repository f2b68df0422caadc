"""The parts of Gecko that have rows of their own: splits, skills and sub-skills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.gecko.answers import GeckoAnswers

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """A split, skill or sub-skill: `chosen` (n,) marks its images."""

    split: str | None
    skill: str | None
    chosen: Mask

    @property
    def is_sub_skill(self) -> bool:
        """Whether it is finer than a skill."""
        return self.skill is not None and ":" in self.skill

    @property
    def orders_models(self) -> bool:
        """The paper orders models on the reliable prompts only; so do we, where they are known."""
        return self.skill is None and (self.split is None or self.split.endswith("rel"))

    @property
    def has_words(self) -> bool:
        """The paper reports word level for all prompts of a kind."""
        return self.skill is None and not (self.split or "").endswith("rel")


def parts_of(answers: GeckoAnswers) -> Iterator[Part]:
    """The splits, each without a skill first; empty parts are left out.

    Without a column `split` the one split is None, with skills and sub-skills. With it there are
    `all`, `s`, `r` and their reliable parts `rel`, `s_rel`, `r_rel`. Only prompts of `s` have
    skills, so skills stand below the two whole sets, `all` (with sub-skills) and `rel`.
    """
    prompts = answers.prompts.set_index("prompt_id").loc[answers.pairs["prompt_id"]]
    skills = prompts["skill"].astype(str).to_numpy(object)
    sub_skills = skills + ":" + prompts["sub_skill"].astype(str).to_numpy(object)
    whole = np.ones(skills.size, bool)
    if "split" not in prompts:
        yield from _with_skills(None, whole, skills, sub_skills)
        return
    split = prompts["split"].to_numpy(object)
    reliable = prompts["reliable"].to_numpy(bool)
    nothing = np.full(skills.size, "", object)
    for suffix, among, finer in (("", whole, sub_skills), ("rel", reliable, nothing)):
        yield from _with_skills(suffix or "all", among, skills, finer)
        for name in ("s", "r"):
            chosen = among & (split == name)
            if chosen.any():
                yield Part(f"{name}_{suffix}".rstrip("_"), None, chosen)


def _with_skills(
    split: str | None, among: Mask, skills: NDArray[np.object_], finer: NDArray[np.object_]
) -> Iterator[Part]:
    if among.any():
        yield Part(split, None, among)
    for labels in (skills, finer):
        for label in sorted(set(labels[among & (skills != "")]) - {""}):
            yield Part(split, label, among & np.asarray(labels == label, bool))
