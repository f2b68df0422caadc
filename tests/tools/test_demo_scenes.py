"""Prompts say what a scene says, and contradictions change exactly one thing."""

from __future__ import annotations

import pytest

from tools.demo_split.language import element, prompt, prompts, question, words
from tools.demo_split.models import CONTRADICTIONS, contradict, contradictions_of, spoil
from tools.demo_split.scenes import (
    OPPOSITE,
    PARTS,
    SAMPLERS,
    SPATIAL,
    Chance,
    Group,
    Scene,
    aspects,
    sample_scene,
)

STAR, CIRCLE = Group("star", "blue"), Group("circle", "red")


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        (Scene((Group("circle"),)), "a circle"),
        (Scene((Group("hexagon", "orange"),)), "an orange hexagon"),
        (Scene((Group("cross", "red", count=3), STAR)), "three red crosses and a blue star"),
        (Scene((CIRCLE, STAR, Group("ring"))), "a red circle, a blue star and a ring"),
        (Scene((Group("circle", "purple", 1, "small", "striped"),)), "a small striped purple circle"),
        (Scene((STAR, CIRCLE), "left of"), "a blue star to the left of a red circle"),
        (Scene((STAR, CIRCLE), "bigger than"), "a blue star that is bigger than a red circle"),
        (Scene((CIRCLE,), absent=("star",)), "a red circle and no star"),
        (
            Scene((Group("house", parts=(("roof", "red"), ("door", "orange"))),)),
            "a house with a red roof and an orange door",
        ),
        (Scene((Group("car", parts=(("wheels", "blue"),)),)), "a car with blue wheels"),
        (Scene((Group("tree", "pink"),), place="beach"), "a pink tree at the beach"),
    ],
)  # fmt: skip
def test_a_scene_is_put_into_plain_words(scene: Scene, said: str) -> None:
    assert prompt(scene) == said


def test_a_scene_has_several_wordings_and_a_list_form() -> None:
    scene = Scene((Group("circle", "red", count=2), STAR), "above", "night")
    assert prompts(scene) == (
        "two red circles above a blue star at night",
        "a picture of two red circles directly above a blue star at night",
        "an image that shows two red circles above a blue star at night",
        "a drawing of two red circles directly above a blue star at night",
        "2 red circles, blue star, circles above star, night",
    )


def test_every_claim_is_made_by_some_word_of_the_sentence() -> None:
    for i in range(300):
        scene = sample_scene(Chance("claims", i))
        for wording in range(4):
            made = {word.aspect for word in words(scene, wording)} - {""}
            assert made == {aspect.id for aspect in aspects(scene)}


def test_claims_become_elements_and_questions() -> None:
    scene = Scene((Group("circle", "red", count=3), STAR), "left of", absent=("ring",))
    assert {a.id: (element(scene, a), question(scene, a)) for a in aspects(scene)} == {
        "0.counting": ("three circles", "Are there exactly three circles?"),
        "0.color": ("red circles", "Are the circles red?"),
        "0.object": ("circles", "Are there circles?"),
        "1.color": ("blue star", "Is the star blue?"),
        "1.object": ("star", "Is there a star?"),
        "relation": (
            "circles to the left of star",
            "Are the circles to the left of the star?",
        ),
        "absent.0": ("no rings", "Is the picture free of rings?"),
    }


def test_the_elements_of_a_prompt_are_all_different() -> None:
    for i in range(500):
        scene = sample_scene(Chance("elements", i))
        texts = [element(scene, aspect) for aspect in aspects(scene)]
        assert len(texts) == len(set(texts))


def test_scenes_follow_from_their_seed() -> None:
    assert sample_scene(Chance("seed", 3)) == sample_scene(Chance("seed", 3))
    assert len({sample_scene(Chance("seed", i)) for i in range(200)}) > 180


@pytest.mark.parametrize("sort", SAMPLERS)
def test_every_sort_of_scene_can_be_contradicted(sort: str) -> None:
    rng = Chance("sorts", sort)
    for _ in range(50):
        scene = SAMPLERS[sort](rng)
        for kind in contradictions_of(scene):
            changed = contradict(scene, rng, kind)
            assert changed.scene != scene
            assert prompt(changed.scene) != prompt(scene)
            assert changed.mutual == (kind not in ("added", "removed"))


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_every_kind_of_contradiction_occurs(kind: str) -> None:
    assert any(kind in contradictions_of(sample_scene(Chance("kinds", i))) for i in range(200))


def test_a_contradiction_that_the_scene_does_not_admit_is_refused() -> None:
    with pytest.raises(ValueError, match="'count' needs another scene"):
        contradict(Scene((CIRCLE,)), Chance(0), "count")


def test_swapped_colours_are_bound_to_the_other_thing() -> None:
    swapped = contradict(Scene((CIRCLE, STAR)), Chance(0), "binding").scene
    assert prompt(swapped) == "a blue circle and a red star"


def test_a_spoilt_claim_leaves_the_other_claims_alone() -> None:
    for i in range(500):
        rng = Chance("spoil", i)
        scene = sample_scene(rng)
        for aspect in aspects(scene):
            if aspect.skill in ("negation", "object", "part"):
                continue
            before = {a.id for a in aspects(scene)}
            after = {a.id for a in aspects(spoil(scene, aspect, rng))}
            gone = {aspect.id} if aspect.skill in ("counting", "texture") else set()
            assert before - after <= gone


def test_a_second_error_does_not_undo_the_first() -> None:
    scene = Scene((CIRCLE, STAR))
    first, second = (aspect for aspect in aspects(scene) if aspect.skill == "shape")
    for i in range(100):
        rng = Chance("undo", i)
        drawn = spoil(spoil(scene, first, rng, scene), second, rng, scene)
        assert not {"circle", "star"} & {group.kind for group in drawn.groups}


def test_the_vocabulary_is_complete() -> None:
    assert set(SPATIAL) < set(OPPOSITE)
    assert all(len(parts) > 1 for parts in PARTS.values())
