"""`demo_evalmuse`: pictures of the simulated models with overall ratings and element labels.

Every label is made by the simulated raters of `ratings`; no person was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.schema import Element, Pair, Questions
from tools.demo_split import ratings
from tools.demo_split.language import WORDINGS, element, listing, prompt
from tools.demo_split.models import MODELS, Depiction, depict
from tools.demo_split.pictures import chance, later
from tools.demo_split.ratings import RATERS
from tools.demo_split.scenes import SAMPLERS, Aspect, Scene, aspects

PROMPTS_PER_SORT = 4
SORTS: tuple[str, ...] = (
    "detailed", "counted_sum", "related", "with_parts", "object_scene", "compared", "sized",
    "patterned", "three_shapes", "placed",
)  # fmt: skip
"""Sorts of scenes (`scenes.SAMPLERS`) that are asked for."""
ELEMENT_TYPES: dict[str, str] = {
    "object": "object",
    "shape": "shape",
    "color": "color",
    "part": "color",
    "counting": "counting",
    "scale": "attribute",
    "texture": "attribute",
    "spatial": "spatial",
    "comparison": "spatial",
    "place": "location",
}
"""Skill of a claim to the element type under which EvalMuse would file it."""


@dataclass(frozen=True)
class Prompt:
    """One prompt: its id, its split (`real` or `synth`), its text and what it asks for."""

    id: str
    split: str
    text: str
    scene: Scene

    def element_id(self, aspect: Aspect) -> str:
        """Key of an element in EvalMuse's manner, e.g. `three stars (counting)`."""
        return f"{element(self.scene, aspect)} ({ELEMENT_TYPES[aspect.skill]})"


@dataclass(frozen=True)
class Shot:
    """One picture: its path, its prompt and what the simulated model made of it."""

    path: str
    prompt: Prompt
    depiction: Depiction


def answers() -> EvalMuseAnswers:
    """The answer side, with means over the three simulated raters."""
    images, elements = [], []
    for shot in shots():
        p = shot.prompt
        images.append((shot.path, p.id, p.text, p.split, _overall(shot)))
        for aspect in aspects(p.scene):
            key = (shot.path, p.element_id(aspect), ELEMENT_TYPES[aspect.skill])
            elements.append((*key, _element_label(shot, aspect)))
    return EvalMuseAnswers(
        pair_ids=tuple(shot.path for shot in shots()),
        clusters=tuple(p.id for p in prompts()),
        images=pd.DataFrame(images, columns=["pair_id", "prompt_id", "prompt", "split", "label"]),
        elements=pd.DataFrame(elements, columns=["pair_id", "element_id", "skill", "label"]),
    )


def questions() -> Questions:
    """The question side; pictures are rendered when they are asked for."""
    return Questions(
        images={s.path: later(s.depiction.drawn, f"evalmuse/{s.path}") for s in shots()},
        texts={p.id: p.text for p in prompts()},
        pairs=tuple(Pair(s.path, s.path, s.prompt.id) for s in shots()),
        elements={p.id: tuple(_elements(p)) for p in prompts()},
    )


@lru_cache(maxsize=1)
def prompts() -> tuple[Prompt, ...]:
    """All prompts; of every sort one half is worded as sentences, the other as lists."""
    found: dict[str, Prompt] = {}
    for sort in SORTS:
        rng = chance("evalmuse", sort)
        wanted = len(found) + PROMPTS_PER_SORT
        while len(found) < wanted:
            scene = SAMPLERS[sort](rng)
            real = len(found) % 2 == 0
            text = prompt(scene, rng.below(WORDINGS)) if real else listing(scene)
            split = "real" if real else "synth"
            found.setdefault(text, Prompt(f"{len(found) + 1:05d}", split, text, scene))
    return tuple(found.values())


@lru_cache(maxsize=1)
def shots() -> tuple[Shot, ...]:
    """All pictures, prompt by prompt."""
    return tuple(_shot(p, model) for p in prompts() for model in MODELS)


def _shot(p: Prompt, model: str) -> Shot:
    depiction = depict(p.scene, model, chance("evalmuse", p.id, model))
    return Shot(f"{model}/{p.id}.png", p, depiction)


def _elements(p: Prompt) -> Iterator[Element]:
    for aspect in aspects(p.scene):
        yield Element(p.element_id(aspect), element(p.scene, aspect))


def _overall(shot: Shot) -> float:
    claims = len(aspects(shot.prompt.scene))
    marks = [
        ratings.overall(shot.depiction, claims, rater, chance("overall", shot.path, rater.id))
        for rater in RATERS
    ]
    return round(sum(marks) / len(marks), 6)


def _element_label(shot: Shot, aspect: Aspect) -> float:
    marks = [
        ratings.holds(
            shot.depiction, aspect.id, rater, chance("element", shot.path, aspect.id, rater.id)
        )
        for rater in RATERS
    ]
    return round(sum(marks) / len(marks), 6)
