"""The bundled scorers are submissions like any other, and each sees what its card says it sees."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image, ImageDraw

from benchmarks.registry import load_registry
from evaluator.bundled import bundled_modules
from evaluator.submission.manifest import Manifest
from evaluator.submission.validate import validated_source
from tools.demo_split.models import CONTRADICTIONS
from tools.demo_split.pictures import draw
from tools.demo_split.scenes import Chance, sample_scene

FOLDERS = {folder.name: folder for folder in bundled_modules()}
NAMES = (
    "colour_count_reader", "colour_reader", "prompt_prior", "random_floor", "two_tower",
)  # fmt: skip
IMPORTS = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
ALLOWED = {
    "__future__", "PIL", "collections", "dataclasses", "hashlib", "numpy", "pathlib", "re",
    "safetensors", "scipy", "torch",
}  # fmt: skip
PROMPTS = [
    "a red circle", "three blue stars", "a red circle and no star", "2 green hearts, yellow ring",
    "", "ein Haus am See, ☃",
]  # fmt: skip
RED, BLUE, GROUND = (222, 46, 52), (44, 104, 214), (240, 228, 206)


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bundled_{name}", FOLDERS[name] / "scorer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name while they are made.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def scorers() -> dict[str, Any]:
    return {name: _module(name).Scorer() for name in NAMES}


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    rng = Chance("bundled scorers", "test")
    return [Image.fromarray(draw(sample_scene(rng), rng)) for _ in PROMPTS]


def _spots(colour: tuple[int, int, int], n: int) -> Image.Image:
    image = Image.new("RGB", (128, 128), GROUND)
    pen = ImageDraw.Draw(image)
    for i in range(n):
        x, y = 24 + 40 * (i % 3), 24 + 40 * (i // 3)
        pen.ellipse((x - 13, y - 13, x + 13, y + 13), fill=colour)
    return image


def _one(scorer: Any, image: Image.Image, prompt: str) -> float:
    (value,) = scorer.score([image], [prompt])
    return float(value)


def manifest_of(name: str) -> Manifest:
    with validated_source(FOLDERS[name], load_registry()) as module:
        return module.manifest


# Each of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_each_comes_in_through_the_door_for_strangers_with_a_card(name: str) -> None:
    assert set(FOLDERS) == set(NAMES)
    manifest, shown = manifest_of(name), name.replace("_", "-")
    assert (manifest.name, manifest.licence) == (shown, "Apache-2.0")
    assert bool(manifest.trained_on) is (name == "two_tower")
    assert (FOLDERS[name] / "README.md").read_text(encoding="utf-8").startswith(f"# {shown}\n")
    source = (FOLDERS[name] / "scorer.py").read_text(encoding="utf-8")
    assert set(IMPORTS.findall(source)) <= ALLOWED, "nothing of the project"


@pytest.mark.parametrize("name", NAMES)
def test_each_gives_a_finite_score_per_pair_the_same_again_in_any_order_or_company(
    name: str, scorers: dict[str, Any], pictures: list[Image.Image]
) -> None:
    scorer, limits = scorers[name], manifest_of(name).range
    found = scorer.score(pictures, PROMPTS)
    assert limits is not None
    assert len(found) == len(pictures)
    assert all(isinstance(value, float) and math.isfinite(value) for value in found)
    assert all(limits[0] <= value <= limits[1] for value in found)
    assert scorer.score(pictures, PROMPTS) == found
    assert _module(name).Scorer().score(pictures, PROMPTS) == found
    # Its vectors are computed in batches, whose last bits depend on the place in them.
    alike = partial(pytest.approx, rel=0, abs=2e-6 if name == "two_tower" else 0)
    assert scorer.score(pictures[::-1], PROMPTS[::-1])[::-1] == alike(found)
    assert [_one(scorer, i, p) for i, p in zip(pictures, PROMPTS, strict=True)] == alike(found)
    assert scorer.score(pictures * 5, PROMPTS * 5) == alike(found * 5)

    assert scorer.score([], []) == []
    odd = [Image.new("L", (31, 200), 90), Image.new("RGBA", (300, 17), (9, 9, 200, 40))]
    assert all(map(math.isfinite, scorer.score(odd, ["a red circle", "a star"])))


# What each sees -------------------------------------------------------------------------------


def test_the_floor_is_random_over_the_whole_range_and_another_for_one_pixel(
    scorers: dict[str, Any],
) -> None:
    scorer, image = scorers["random_floor"], _spots(RED, 1)
    found = scorer.score([image] * 400, [f"prompt {i}" for i in range(400)])
    assert sum(found) / 400 == pytest.approx(0.5, abs=0.06)
    assert min(found) < 0.05
    assert max(found) > 0.95
    before = _one(scorer, image, "a red circle")
    image.putpixel((0, 0), (241, 228, 206))
    assert _one(scorer, image, "a red circle") != before


def test_the_prior_sees_no_picture_and_prefers_the_shorter_prompt(scorers: dict[str, Any]) -> None:
    scorer, image = scorers["prompt_prior"], _spots(RED, 1)
    assert _one(scorer, image, "a red circle") == _one(scorer, _spots(BLUE, 1), "a red circle")
    assert _one(scorer, image, "a circle") > _one(scorer, image, "a red circle and a star")


@pytest.mark.parametrize(
    ("reader", "colour", "n", "prompt", "score"),
    [
        ("colour_reader", RED, 1, "a red circle", 1.0),
        ("colour_reader", BLUE, 1, "a red circle", 0.0),
        ("colour_reader", RED, 1, "a red circle and a blue star", 0.5),  # the mean
        ("colour_reader", RED, 2, "five red stars", 1.0),  # neither number nor shape
        ("colour_reader", RED, 1, "two stars", 0.5),  # no opinion without a colour
        ("colour_count_reader", BLUE, 3, "3 blue circles", 1.0),
        ("colour_count_reader", BLUE, 3, "three circles", 1.0),
        ("colour_count_reader", BLUE, 3, "four circles", 0.75),
        ("colour_count_reader", BLUE, 3, "three red circles", 0.0),
        ("colour_count_reader", RED, 3, "three red stars", 1.0),  # no shape
    ],
)
def test_readers_see_colours_and_one_of_them_counts(
    scorers: dict[str, Any], reader: str, colour: tuple[int, int, int], *, n: int, prompt: str,
    score: float,
) -> None:  # fmt: skip
    assert _one(scorers[reader], _spots(colour, n), prompt) == score


def test_the_right_number_scores_highest(scorers: dict[str, Any]) -> None:
    words = ("two", "three", "four", "five", "six", "seven")
    prompts = [f"{word} red circles" for word in words]
    for n in range(2, 7):
        found = scorers["colour_count_reader"].score([_spots(RED, n)] * len(words), prompts)
        assert [value == 1.0 for value in found] == [i == n - 2 for i in range(len(words))]


def test_elements_are_scored_one_by_one_and_take_their_colour_from_the_prompt(
    scorers: dict[str, Any],
) -> None:
    both = _spots(RED, 3)
    ImageDraw.Draw(both).ellipse((60, 90, 86, 116), fill=BLUE)
    found = scorers["colour_count_reader"].score_elements(
        [_spots(RED, 3), _spots(BLUE, 1), both],
        ["three red circles", "two blue stars", "three red circles and two blue stars"],
        [
            ["three circles", "red circles", "circles"],
            ["two stars"],
            ["three circles", "two stars"],
        ],
    )
    assert found == [[1.0, 1.0, 0.5], [0.5], [1.0, 0.5]]


# The trained one ------------------------------------------------------------------------------


def test_two_towers_are_small_and_work_in_steps_as_in_one(
    scorers: dict[str, Any], pictures: list[Image.Image]
) -> None:
    assert (FOLDERS["two_tower"] / "weights.safetensors").stat().st_size < 2_000_000
    scorer = scorers["two_tower"]
    found = scorer.similarity(scorer.encode_images(pictures), scorer.encode_texts(PROMPTS))
    assert found.shape == (len(pictures),)
    assert list(found) == scorer.score(pictures, PROMPTS)


@pytest.mark.parametrize("kind", ["color", "shape"])
def test_two_towers_tell_fresh_scenes_from_their_contradictions(
    kind: str, scorers: dict[str, Any]
) -> None:
    from tools.demo_split import train_two_tower

    rng = Chance("bundled scorers", "fresh", kind)
    fresh = train_two_tower.make_examples(60, rng, kind)
    assert train_two_tower.accuracy(scorers["two_tower"].network, fresh) > 0.75


@pytest.mark.parametrize(("kind", "wrong"), [("added", (True, False)), ("removed", (False, True))])
def test_one_thing_more_is_not_wrong_for_the_shorter_sentence(
    kind: str, wrong: tuple[bool, bool]
) -> None:
    from tools.demo_split import train_two_tower

    rng = Chance("bundled scorers", kind)
    made = train_two_tower.make_examples(3, rng, kind)
    assert [one.content.wrong for one in made] == [wrong] * 3


def test_its_card_has_the_training_command_and_every_accuracy_and_the_rest_stays(
    tmp_path: Path,
) -> None:
    from tools.demo_split import train_two_tower

    card = (FOLDERS["two_tower"] / "README.md").read_text(encoding="utf-8")
    given = dict(re.findall(r"^\| (\w+) \| ([01]\.\d{3}) \|$", card, re.MULTILINE))
    assert set(given) == {"overall", *CONTRADICTIONS}
    assert float(given["color"]) > 0.75
    assert "train_two_tower --out" in card
    other, (begin, end) = tmp_path / "README.md", train_two_tower.MARKS
    other.write_text(f"# before\n{begin}\nold\n{end}\n# after\n", encoding="utf-8")
    train_two_tower.write_card(other, {"overall": 0.5}, ["fact"])
    text = other.read_text(encoding="utf-8")
    assert (text.startswith("# before\n"), text.endswith("# after\n")) == (True, True)
    assert ("| overall | 0.500 |" in text, "old" in text) == (True, False)
