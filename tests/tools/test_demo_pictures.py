"""Pictures show what their scene says, and are the same bytes everywhere."""

from __future__ import annotations

import io
import zlib
from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from tools.demo_split.outlines import FINE, FULL, OBJECTS, SHAPES, coverage
from tools.demo_split.pictures import (
    PAINT,
    SIDE,
    Picture,
    arrange,
    draw,
    encode,
    picture_png,
    render,
)
from tools.demo_split.scenes import SAMPLERS, SPATIAL, Chance, Group, Scene, sample_scene


def pictures(n: int) -> list[tuple[Scene, Picture]]:
    found = []
    for i in range(n):
        rng = Chance("pictures", i)
        scene = sample_scene(rng)
        found.append((scene, arrange(scene, rng)))
    return found


@pytest.mark.parametrize("shape", [(1, 1, 3), (128, 128, 3), (200, 300, 3)])
def test_a_png_decodes_to_the_pixels_it_was_made_from(shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    decoded = Image.open(io.BytesIO(encode(pixels)))
    decoded.load()
    assert decoded.mode == "RGB"
    assert np.array_equal(np.asarray(decoded), pixels)


def test_a_png_holds_no_metadata_and_does_not_depend_on_a_compressor() -> None:
    encoded = encode(np.zeros((2, 2, 3), np.uint8))
    assert [encoded[i : i + 4] for i in (12, 37, len(encoded) - 8)] == [b"IHDR", b"IDAT", b"IEND"]
    rows = b"\0" * 14
    assert rows in encoded  # as they are, not compressed
    assert zlib.decompress(encoded[41 : encoded.index(b"IEND") - 8]) == rows


def test_a_picture_is_the_same_each_time_it_is_rendered() -> None:
    _, picture = pictures(1)[0]
    assert picture_png(picture) == picture_png(picture)


def test_pictures_of_one_scene_differ() -> None:
    scene = SAMPLERS["two_shapes"](Chance("one scene"))
    drawn = {draw(scene, Chance("variation", i)).tobytes() for i in range(20)}
    assert len(drawn) == 20


@pytest.mark.parametrize("colour", PAINT)
def test_the_middle_of_a_square_has_its_colour(colour: str) -> None:
    picture = arrange(Scene((Group("square", colour),)), Chance("square", colour))
    thing = picture.things[0]
    middle = render(picture)[thing.y, thing.x].astype(int)
    assert np.abs(middle - PAINT[colour]).max() <= 14


def test_a_scene_has_as_many_things_as_it_says() -> None:
    for scene, picture in pictures(400):
        for group in scene.groups:
            assert sum(t.kind == group.kind for t in picture.things) == group.count


def test_things_lie_inside_the_picture() -> None:
    for _, picture in pictures(400):
        for thing in picture.things:
            reach = thing.radius // FINE
            assert reach - 2 <= thing.x <= SIDE - reach + 2
            assert reach - 2 <= thing.y <= SIDE - reach + 2


def test_things_do_not_overlap_unless_one_is_inside_the_other() -> None:
    for scene, picture in pictures(400):
        if scene.relation == "inside":
            continue
        for a, b in combinations(picture.things, 2):
            apart = max(abs(a.x - b.x), abs(a.y - b.y))
            assert apart * FINE * 100 >= (a.radius + b.radius) * 95


@pytest.mark.parametrize("relation", SPATIAL)
def test_things_stand_as_the_relation_says(relation: str) -> None:
    for i in range(50):
        scene = Scene((Group("star", "red"), Group("circle", "blue")), relation=relation)
        things = {t.kind: t for t in arrange(scene, Chance(relation, i)).things}
        star, circle = things["star"], things["circle"]
        assert {
            "left of": star.x < circle.x - 25,
            "right of": star.x > circle.x + 25,
            "above": star.y < circle.y - 25,
            "below": star.y > circle.y + 25,
            "inside": abs(star.x - circle.x) + abs(star.y - circle.y) < 15,
        }[relation]


@pytest.mark.parametrize("relation", ["bigger than", "smaller than"])
def test_compared_things_differ_clearly_in_size(relation: str) -> None:
    for i in range(50):
        scene = Scene((Group("star"), Group("circle")), relation=relation)
        things = {t.kind: t.radius for t in arrange(scene, Chance(relation, i)).things}
        larger, smaller = ("star", "circle") if relation == "bigger than" else ("circle", "star")
        assert things[larger] > 2 * things[smaller]


def test_a_colour_that_the_prompt_leaves_open_is_none_it_names() -> None:
    scene = Scene((Group("star"), Group("circle", "blue")))
    for i in range(50):
        looks = {t.kind: t.colours for t in arrange(scene, Chance(i)).things}
        assert looks["star"] != looks["circle"] == (("", "blue"),)


@pytest.mark.parametrize("kind", [*SHAPES, *OBJECTS])
def test_figures_are_filled_and_keep_to_their_window(kind: str) -> None:
    covered = coverage(kind, "", 90)
    assert covered.max() == FULL
    assert covered.min() == 0
    rim = np.concatenate([covered[0], covered[-1], covered[:, 0], covered[:, -1]])
    assert rim.max() == 0
