"""`demo_gecko`: prompts by skill and sub-skill, rated in four templates by simulated raters.

Every rating is made by the simulated raters of `ratings`; no person was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import pandas as pd

from benchmarks.gecko.load import GeckoAnswers
from benchmarks.schema import Pair, Questions
from tools.demo_split import ratings, scenes
from tools.demo_split.language import WORDINGS, Words, question, spell, words
from tools.demo_split.models import MODELS, Depiction, depict
from tools.demo_split.pictures import chance, later
from tools.demo_split.ratings import RATERS, Rater
from tools.demo_split.scenes import Chance, Group, Scene, aspects

PROMPTS_PER_SUB_SKILL = 4
_UNUSUAL: dict[str, tuple[str, ...]] = {
    "tree": ("blue", "pink", "purple", "red"),
    "fish": ("green", "pink", "purple", "brown"),
    "house": ("black", "purple", "green", "pink"),
    "flower": ("green", "brown", "black", "blue"),
}
_RATING_COLUMNS = [
    "template", "prompt_id", "model", "model_b", "rater_id", "unit_index", "unit_text", "value",
]  # fmt: skip

Rating = tuple[str, str, str, str, str, int, str, str]


@dataclass(frozen=True)
class Prompt:
    """One prompt: its id, its skill, its sub-skill, what it asks for and how it is worded."""

    id: str
    skill: str
    sub_skill: str
    scene: Scene
    words: Words

    @property
    def text(self) -> str:
        """The sentence."""
        return spell(self.words)


def answers() -> GeckoAnswers:
    """The answer side: raw ratings, one row per rated unit."""
    rows = [(p.id, p.text, p.skill, p.sub_skill) for p in prompts()]
    pairs = [(f"{p.id}/{model}", p.id, model) for p in prompts() for model in MODELS]
    given = [rating for p in prompts() for rating in _ratings_of(p)]
    return GeckoAnswers(
        pair_ids=tuple(pair for pair, _, _ in pairs),
        clusters=tuple(p.id for p in prompts()),
        prompts=pd.DataFrame(rows, columns=["prompt_id", "prompt", "skill", "sub_skill"]),
        pairs=pd.DataFrame(pairs, columns=["pair_id", "prompt_id", "model"]),
        ratings=pd.DataFrame(given, columns=_RATING_COLUMNS),
    )


def questions() -> Questions:
    """The question side; pictures are rendered when they are asked for."""
    images, pairs = {}, []
    for p in prompts():
        for model, depiction in depictions(p.id).items():
            pair = f"{p.id}/{model}"
            images[pair] = later(depiction.drawn, f"gecko/{pair}")
            pairs.append(Pair(pair, pair, p.id))
    return Questions(images, {p.id: p.text for p in prompts()}, tuple(pairs))


@lru_cache(maxsize=1)
def prompts() -> tuple[Prompt, ...]:
    """All prompts, sub-skill by sub-skill."""
    found: dict[str, Prompt] = {}
    for (skill, sub_skill), invent in SUB_SKILLS.items():
        rng = chance("gecko", skill, sub_skill)
        wanted, number = len(found) + PROMPTS_PER_SUB_SKILL, 1
        while len(found) < wanted:
            scene, wording = invent(rng), rng.below(WORDINGS)
            name = f"{skill}_{sub_skill}_{number}"
            new = Prompt(name, skill, sub_skill, scene, words(scene, wording))
            number += found.setdefault(new.text, new) is new
    return tuple(found.values())


@lru_cache(maxsize=256)
def depictions(prompt_id: str) -> dict[str, Depiction]:
    """What each simulated model made of a prompt."""
    scene = next(p.scene for p in prompts() if p.id == prompt_id)
    return {model: depict(scene, model, chance("gecko", prompt_id, model)) for model in MODELS}


def _ratings_of(p: Prompt) -> Iterator[Rating]:
    for rater in RATERS:
        for model, depiction in depictions(p.id).items():
            rng = chance("gecko", p.id, model, rater.id)
            yield from _absolute(p, model, depiction, rater, rng)
        yield from _side_by_side(p, rater)


def _absolute(
    p: Prompt, model: str, depiction: Depiction, rater: Rater, rng: Chance
) -> Iterator[Rating]:
    claims = aspects(p.scene)
    for i, word in enumerate(p.words):
        value = ratings.word_label(depiction, word, rater, rng)
        yield ("WL", p.id, model, "", rater.id, i, word.text.strip(","), value)
    value = ratings.likert(depiction, len(claims), rater, rng)
    yield ("Likert", p.id, model, "", rater.id, 0, "", value)
    for i, aspect in enumerate(claims):
        value = ratings.answer(depiction, aspect, rater, rng)
        yield ("DSGH", p.id, model, "", rater.id, i, question(p.scene, aspect), value)


def _side_by_side(p: Prompt, rater: Rater) -> Iterator[Rating]:
    drawn = depictions(p.id)
    for a, b in combinations(MODELS, 2):
        rng = chance("gecko", p.id, a, b, rater.id)
        yield (
            "SxS",
            p.id,
            a,
            b,
            rater.id,
            0,
            "",
            ratings.preference(drawn[a], drawn[b], rater, rng),
        )


def _stroop_like(rng: Chance) -> Scene:
    """Things in colours they hardly ever have."""
    kinds = rng.sample(tuple(_UNUSUAL), 2)
    first = rng.pick(_UNUSUAL[kinds[0]])
    second = rng.pick([colour for colour in _UNUSUAL[kinds[1]] if colour != first])
    return Scene((Group(kinds[0], first), Group(kinds[1], second)))


def _coloured(rng: Chance) -> Scene:
    return Scene((scenes.sample_group(rng),))


def _counted(rng: Chance) -> Scene:
    return Scene((replace(scenes.sample_group(rng), count=rng.between(2, 6)),))


def _uncoloured(n: int) -> Callable[[Chance], Scene]:
    def invent(rng: Chance) -> Scene:
        return Scene(tuple(Group(kind) for kind in rng.sample(scenes.SHAPE_NAMES, n)))

    return invent


def _textured(n: int) -> Callable[[Chance], Scene]:
    def invent(rng: Chance) -> Scene:
        names, groups = rng.sample(scenes.PATTERN_NAMES, n), scenes.sample_groups(rng, n)
        return Scene(tuple(replace(g, pattern=name) for g, name in zip(groups, names, strict=True)))

    return invent


def _related(rng: Chance) -> Scene:
    return Scene(scenes.sample_groups(rng, 2), relation=rng.pick(scenes.SPATIAL[:4]))


def _reversed(invent: Callable[[Chance], Scene]) -> Callable[[Chance], Scene]:
    """The same things told from the other side: `A above B` becomes `B below A`."""

    def turned(rng: Chance) -> Scene:
        scene = invent(rng)
        relation = scenes.OPPOSITE[scene.relation or ""]
        return replace(scene, groups=scene.groups[::-1], relation=relation)

    return turned


def _spatial_complex(rng: Chance) -> Scene:
    scene = _related(rng)
    first, second = scene.groups
    third = scenes.sample_group(
        rng, taken={first.kind, second.kind}, colours=scenes.colours_in(scene)
    )
    return replace(scene, groups=(replace(first, count=2), second), absent=(third.kind,))


def _long(rng: Chance) -> Scene:
    return replace(scenes.detailed(rng), place=rng.pick(scenes.PLACES))


SUB_SKILLS: dict[tuple[str, str], Callable[[Chance], Scene]] = {
    ("color", "simple"): _coloured,
    ("color", "composed"): scenes.three_shapes,
    ("color", "stroop_like"): _stroop_like,
    ("count", "simple_numeric"): _counted,
    ("count", "additive"): scenes.counted_sum,
    ("shape", "basic_shape"): _uncoloured(1),
    ("shape", "shape_pair"): _uncoloured(2),
    ("texture", "one_pattern"): _textured(1),
    ("texture", "two_patterns"): _textured(2),
    ("spatial", "spatial_basic"): _related,
    ("spatial", "spatial_basic_rev"): _reversed(_related),
    ("spatial", "spatial_complex"): _spatial_complex,
    ("scale", "comparative"): scenes.compared,
    ("scale", "comparative_rev"): _reversed(scenes.compared),
    ("scale", "single_object"): scenes.sized,
    ("compositional", "parts"): scenes.with_parts,
    ("compositional", "objects"): scenes.object_scene,
    ("lang", "negation"): scenes.negated,
    ("lang", "long_prompt"): _long,
}
"""(skill, sub-skill) in Gecko's manner to a function that invents a scene."""
