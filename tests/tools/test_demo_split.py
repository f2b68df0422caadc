"""The generator of the demo split: scenes, words, pictures, simulated models and raters.

What it makes of them ships and is compared byte by byte; here is why that is right.
"""

from __future__ import annotations

import io
from collections import Counter
from itertools import combinations
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow as pa
import pytest
import typer
from PIL import Image

import benchmarks.demo
from tools.demo_split import __main__ as command
from tools.demo_split import ratings
from tools.demo_split.language import element, prompt, question, words
from tools.demo_split.models import (
    ERROR_RATES,
    MODELS,
    SKILLS,
    contradict,
    contradictions_of,
    depict,
)
from tools.demo_split.outlines import FINE
from tools.demo_split.pictures import SIDE, arrange, encode
from tools.demo_split.ratings import RATERS
from tools.demo_split.scenes import (
    SAMPLERS,
    SPATIAL,
    Chance,
    Group,
    Scene,
    aspects,
    sample_scene,
)

STAR, CIRCLE = Group("star", "blue"), Group("circle", "red")


def scenes(n: int) -> list[Scene]:
    return [sample_scene(Chance("scenes", i)) for i in range(n)]


# Files.


@pytest.mark.slow
def test_the_files_that_ship_are_what_the_generator_makes() -> None:
    with pytest.raises(typer.Exit) as done:
        command.main(check=True)
    assert done.value.exit_code == 0


def test_files_are_written_once_and_what_is_left_over_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "HASHES", tmp_path / "files.toml")
    made = {"a/one.parquet": pa.table({"n": [1, 2]}), "pictures.parquet": pa.table({"png": [b"x"]})}
    monkeypatch.setattr(command, "tables", made.items)
    (tmp_path / "old.parquet").write_bytes(b"")
    with pytest.raises(typer.Exit) as differs:
        command.main(check=True)
    assert differs.value.exit_code == 1
    command.main()
    assert capsys.readouterr().out.split() == [*made, "old.parquet"] * 2
    command.main()
    assert capsys.readouterr().out == ""
    assert (tmp_path / "files.toml").read_text().count("parquet") == len(made)
    assert not (tmp_path / "old.parquet").exists()


# Words, and contradictions that change exactly one thing.


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


def test_every_claim_is_made_by_some_word_and_elements_are_all_different() -> None:
    for scene in scenes(300):
        claims = aspects(scene)
        for wording in range(4):
            made = {word.aspect for word in words(scene, wording)} - {""}
            assert made == {aspect.id for aspect in claims}
        assert len({element(scene, aspect) for aspect in claims}) == len(claims)


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


def test_a_contradiction_that_the_scene_does_not_admit_is_refused() -> None:
    with pytest.raises(ValueError, match="'count'"):
        contradict(Scene((CIRCLE,)), Chance(0), "count")
    swapped = contradict(Scene((CIRCLE, STAR)), Chance(0), "binding").scene
    assert prompt(swapped) == "a blue circle and a red star"


# Pictures show what their scene says, and are the same bytes everywhere.


@pytest.mark.parametrize("shape", [(1, 1, 3), (128, 128, 3), (200, 300, 3)])
def test_a_png_decodes_to_its_pixels_and_does_not_depend_on_a_compressor(
    shape: tuple[int, int, int],
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    encoded = encode(pixels)
    decoded = Image.open(io.BytesIO(encoded))
    assert decoded.mode == "RGB"
    assert np.array_equal(np.asarray(decoded), pixels)
    assert [encoded[i : i + 4] for i in (12, 37, len(encoded) - 8)] == [b"IHDR", b"IDAT", b"IEND"]
    flat = encode(np.zeros((2, 2, 3), np.uint8))
    assert b"\0" * 14 in flat, "rows stand there as they are"


def test_things_are_as_many_as_said_inside_the_picture_and_apart() -> None:
    for i, scene in enumerate(scenes(400)):
        things = arrange(scene, Chance("pictures", i)).things
        for group in scene.groups:
            assert sum(thing.kind == group.kind for thing in things) == group.count
        for thing in things:
            reach = thing.radius // FINE
            assert all(reach - 2 <= at <= SIDE - reach + 2 for at in (thing.x, thing.y))
        for a, b in combinations(things, 2) if scene.relation != "inside" else ():
            apart = max(abs(a.x - b.x), abs(a.y - b.y))
            assert apart * FINE * 100 >= (a.radius + b.radius) * 95


@pytest.mark.parametrize("relation", [*SPATIAL, "bigger than", "smaller than"])
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
            "bigger than": star.radius > 2 * circle.radius,
            "smaller than": circle.radius > 2 * star.radius,
        }[relation]


# Models err as documented, and raters follow their errors.


@pytest.mark.parametrize("model", MODELS)
def test_measured_error_rates_are_the_documented_ones(model: str) -> None:
    made: Counter[str] = Counter()
    chances: Counter[str] = Counter()
    for i, scene in enumerate(scenes(1500)):
        for skill, (errors, occasions) in depict(
            scene, model, Chance("rates", i)
        ).occasions.items():
            made[skill] += errors
            chances[skill] += occasions
    assert set(chances) == set(SKILLS)
    for skill, n in chances.items():
        rate = ERROR_RATES[model][skill]
        assert abs(made[skill] / n - rate) <= 4 * (rate * (1 - rate) / n) ** 0.5, skill


@pytest.mark.parametrize("card", ["card_evalmuse.toml", "card_gecko.toml"])
def test_the_cards_quote_the_documented_rates(card: str) -> None:
    text = (Path(benchmarks.demo.__file__).parent / card).read_text()
    for skill in ("color", "counting", "spatial"):
        a, b, c, d = (round(100 * ERROR_RATES[model][skill]) for model in MODELS)
        assert f"{a} %, {b} %, {c} % and {d} %" in text


def test_errors_are_about_claims_and_without_one_the_picture_is_that_of_the_prompt() -> None:
    seen = 0
    for i, scene in enumerate(scenes(600)):
        for model in MODELS:
            depiction = depict(scene, model, Chance("claims", i, model))
            claims = aspects(scene)
            assert (depiction.drawn == scene) == (not depiction.wrong)
            assert depiction.wrong <= {aspect.id for aspect in claims}
            for group in depiction.missing:  # what is left out is wrong in every respect
                seen += 1
                assert {a.id for a in claims if a.group == group} <= depiction.wrong
                assert depiction.drawn.groups
    assert seen > 10


def test_overall_ratings_fall_with_the_number_of_errors() -> None:
    by_errors: dict[int, list[int]] = {}
    for i, scene in enumerate(scenes(800)):
        depiction = depict(scene, MODELS[i % 4], Chance("falls", i))
        claims = len(aspects(scene))
        for rater in RATERS:
            given = ratings.overall(depiction, claims, rater, Chance("falls", i, rater.id))
            assert 1 <= given <= 5
            by_errors.setdefault(min(depiction.errors, 4), []).append(given)
    means = [mean(by_errors[errors]) for errors in sorted(by_errors)]
    assert means == sorted(means, reverse=True)
    assert means[0] > 4.7
    assert means[-1] < 1.5
