"""`demo_croc`: contrast pairs of prompts with faithful pictures of either side.

The categories are those of CROC_hum that can be drawn. As there, every picture is right for its own
prompt (the pictures of negation show "A" alone).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from benchmarks.croc.load import CrocAnswers, PromptPair, pair_id
from benchmarks.schema import Pair, Questions
from tools.demo_split import scenes
from tools.demo_split.language import prompt
from tools.demo_split.models import MODELS, contradict
from tools.demo_split.pictures import chance, later
from tools.demo_split.scenes import Chance, Group, Scene

PAIRS_PER_CATEGORY = 10
SIDES: tuple[str, ...] = ("prompt", "contrast")
TEXTS: tuple[str, ...] = ("orig", "contrast")


@dataclass(frozen=True)
class Contrast:
    """One prompt pair."""

    id: str  # `<category>_<num>`
    category: str  # as in CROC_hum
    original: Scene  # what T_O says
    contrast: Scene  # what T_C says
    images: tuple[tuple[str, str], ...]  # (stem, side) of every picture, side as in SIDES

    def scene_of(self, side: str) -> Scene:
        """What the pictures of a side show."""
        return self.original if side == "prompt" else self.contrast

    def stems(self, side: str) -> tuple[str, ...]:
        """Stems of the pictures of a side."""
        return tuple(stem for stem, of in self.images if of == side)


def answers() -> CrocAnswers:
    """The answer side."""
    pairs = tuple(
        PromptPair(
            id=c.id,
            category=c.category,
            prompt=prompt(c.original),
            contrast=prompt(c.contrast),
            original_images=c.stems("prompt"),
            contrast_images=c.stems("contrast"),
        )
        for c in contrasts()
    )
    ids = tuple(pair_id(stem, text) for c in contrasts() for stem, _ in c.images for text in TEXTS)
    return CrocAnswers(ids, tuple(p.id for p in pairs), pairs)


def questions() -> Questions:
    """The question side; pictures are rendered when they are asked for."""
    texts, images, pairs = {}, {}, []
    for c in contrasts():
        texts[f"{c.id}|orig"], texts[f"{c.id}|contrast"] = prompt(c.original), prompt(c.contrast)
        for stem, side in c.images:
            images[stem] = later(c.scene_of(side), f"croc/{stem}")
            pairs += [Pair(pair_id(stem, text), stem, f"{c.id}|{text}") for text in TEXTS]
    return Questions(images, texts, tuple(pairs))


@lru_cache(maxsize=1)
def contrasts() -> tuple[Contrast, ...]:
    """All prompt pairs, category by category."""
    return tuple(c for category in CATEGORIES for c in _of_category(category))


def _of_category(category: str) -> list[Contrast]:
    found: list[Contrast] = []
    seen: set[tuple[str, str]] = set()
    rng = chance("croc", category)
    while len(found) < PAIRS_PER_CATEGORY:
        original, contrast = CATEGORIES[category](rng, len(found))
        said = (prompt(original), prompt(contrast))
        if said in seen:
            continue
        seen.add(said)
        name = f"{category}_{len(found) + 1}"
        found.append(Contrast(name, category, original, contrast, _images(name, rng)))
    return found


def _images(name: str, rng: Chance) -> tuple[tuple[str, str], ...]:
    """Two or three pictures a side, each under the name of some simulated model."""
    return tuple(
        (f"{name}___{side}___{rng.pick(MODELS)}___image{k}", side)
        for side in SIDES
        for k in range(1, rng.pick((2, 3, 3)) + 1)
    )


Couple = tuple[Scene, Scene]


def _contrasting(rng: Chance, scene: Scene, kind: str) -> Couple:
    return scene, contradict(scene, rng, kind).scene


def _counting(rng: Chance, k: int) -> Couple:
    scene = scenes.counted_sum(rng) if k % 3 == 2 else scenes.counted(rng)
    return _contrasting(rng, scene, "count")


def _shapes(rng: Chance, k: int) -> Couple:
    scene = scenes.two_shapes(rng) if k % 2 else scenes.one_shape(rng)
    return _contrasting(rng, scene, "shape")


def _spatial(rng: Chance, _: int) -> Couple:
    return _contrasting(rng, scenes.related(rng), "relation")


def _sizes(rng: Chance, k: int) -> Couple:
    if k % 2:
        return _contrasting(rng, scenes.compared(rng), "comparison")
    first, second = scenes.sample_groups(rng, 2)
    big, small = replace(first, size="large"), replace(second, size="small")
    turned = (replace(first, size="small"), replace(second, size="large"))
    return Scene((big, small)), Scene(turned)


def _parts(rng: Chance, k: int) -> Couple:
    return _contrasting(rng, scenes.with_parts(rng), "part" if k % 3 == 2 else "binding")


def _fingers(rng: Chance, _: int) -> Couple:
    return _contrasting(rng, scenes.hand(rng), "part")


def _negation(rng: Chance, _: int) -> Couple:
    """T_O "A and B", T_C "A and no B"; what T_C shows is A alone."""
    group = scenes.sample_group(rng)
    other = scenes.sample_group(rng, taken={group.kind}).kind
    return Scene((group, Group(other))), Scene((group,), absent=(other,))


CATEGORIES: dict[str, Callable[[Chance, int], Couple]] = {
    "counting": _counting,
    "shapes": _shapes,
    "spacial_relation": _spatial,
    "size_relation": _sizes,
    "things_parts": _parts,
    "negation": _negation,
    "body_parts": _fingers,
}
"""Category as in CROC_hum (`spacial` sic) to a function that invents a prompt pair."""
