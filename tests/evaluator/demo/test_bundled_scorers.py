"""The bundled scorers are submissions like any other, and each sees what its card says it sees."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
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
PROMPTS = (
    "a red circle", "three blue stars", "a red circle and no star", "2 green hearts, yellow ring",
    "", "ein Haus am See, ☃",
)  # fmt: skip
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
    return [Image.fromarray(draw(sample_scene(rng), rng)) for _ in range(6)]


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


def test_all_of_them_are_found() -> None:
    assert set(FOLDERS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
class TestEachOne:
    def test_comes_in_through_the_door_for_strangers(self, name: str) -> None:
        manifest = manifest_of(name)
        assert manifest.name == name.replace("_", "-")
        assert manifest.licence == "Apache-2.0"
        trained = name == "two_tower"
        assert bool(manifest.trained_on) is trained

    def test_has_a_card(self, name: str) -> None:
        card = (FOLDERS[name] / "README.md").read_text(encoding="utf-8")
        assert card.startswith(f"# {name.replace('_', '-')}\n")

    def test_imports_nothing_of_the_project(self, name: str) -> None:
        source = (FOLDERS[name] / "scorer.py").read_text(encoding="utf-8")
        assert set(IMPORTS.findall(source)) <= ALLOWED

    def test_gives_a_finite_score_per_pair_within_its_range(
        self, name: str, scorers: dict[str, Any], pictures: list[Image.Image]
    ) -> None:
        found = scorers[name].score(pictures, list(PROMPTS))
        limits = manifest_of(name).range
        assert limits is not None
        assert len(found) == len(pictures)
        assert all(isinstance(value, float) and math.isfinite(value) for value in found)
        assert all(limits[0] <= value <= limits[1] for value in found)

    def test_gives_the_same_scores_again(
        self, name: str, scorers: dict[str, Any], pictures: list[Image.Image]
    ) -> None:
        first = scorers[name].score(pictures, list(PROMPTS))
        assert scorers[name].score(pictures, list(PROMPTS)) == first
        assert _module(name).Scorer().score(pictures, list(PROMPTS)) == first

    def test_does_not_care_about_order_or_company(
        self, name: str, scorers: dict[str, Any], pictures: list[Image.Image]
    ) -> None:
        scorer, together = scorers[name], scorers[name].score(pictures, list(PROMPTS))
        backwards = scorer.score(pictures[::-1], list(PROMPTS[::-1]))
        alone = [_one(scorer, i, p) for i, p in zip(pictures, PROMPTS, strict=True)]
        many = scorer.score(pictures * 5, list(PROMPTS) * 5)
        assert backwards[::-1] == together
        assert alone == together
        assert many == together * 5

    def test_takes_an_empty_batch(self, name: str, scorers: dict[str, Any]) -> None:
        assert scorers[name].score([], []) == []

    def test_takes_pictures_of_other_sizes_and_modes(
        self, name: str, scorers: dict[str, Any]
    ) -> None:
        odd = [Image.new("L", (31, 200), 90), Image.new("RGBA", (300, 17), (9, 9, 200, 40))]
        assert all(map(math.isfinite, scorers[name].score(odd, ["a red circle", "a star"])))


class TestRandomFloor:
    def test_one_pixel_gives_an_unrelated_score(self, scorers: dict[str, Any]) -> None:
        image = _spots(RED, 1)
        changed = image.copy()
        changed.putpixel((0, 0), (241, 228, 206))
        scores = [_one(scorers["random_floor"], i, "a red circle") for i in (image, changed)]
        assert scores[0] != scores[1]

    def test_spreads_over_the_whole_range(self, scorers: dict[str, Any]) -> None:
        texts = [f"prompt {i}" for i in range(400)]
        found = scorers["random_floor"].score([_spots(RED, 1)] * 400, texts)
        assert sum(found) / 400 == pytest.approx(0.5, abs=0.06)
        assert min(found) < 0.05
        assert max(found) > 0.95


class TestPromptPrior:
    def test_sees_no_picture(self, scorers: dict[str, Any]) -> None:
        scorer = scorers["prompt_prior"]
        scores = {_one(scorer, _spots(colour, 1), "a red circle") for colour in (RED, BLUE)}
        assert len(scores) == 1

    def test_prefers_the_shorter_prompt(self, scorers: dict[str, Any]) -> None:
        image, scorer = _spots(RED, 1), scorers["prompt_prior"]
        assert _one(scorer, image, "a circle") > _one(scorer, image, "a red circle and a star")


class TestColourReader:
    def test_knows_the_colour(self, scorers: dict[str, Any]) -> None:
        scorer = scorers["colour_reader"]
        assert _one(scorer, _spots(RED, 1), "a red circle") == 1.0
        assert _one(scorer, _spots(BLUE, 1), "a red circle") == 0.0

    def test_takes_the_mean_over_the_colours_named(self, scorers: dict[str, Any]) -> None:
        found = _one(scorers["colour_reader"], _spots(RED, 1), "a red circle and a blue star")
        assert found == 0.5

    def test_sees_neither_number_nor_shape(self, scorers: dict[str, Any]) -> None:
        scorer, image = scorers["colour_reader"], _spots(RED, 2)
        assert _one(scorer, image, "five red stars") == _one(scorer, image, "two red circles")

    def test_has_no_opinion_without_a_colour(self, scorers: dict[str, Any]) -> None:
        assert _one(scorers["colour_reader"], _spots(RED, 1), "two stars") == 0.5


class TestColourCountReader:
    @pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
    def test_the_right_number_scores_highest(self, n: int, scorers: dict[str, Any]) -> None:
        words = ("two", "three", "four", "five", "six", "seven")
        prompts = [f"{word} red circles" for word in words]
        found = scorers["colour_count_reader"].score([_spots(RED, n)] * len(words), prompts)
        assert found[n - 2] == 1.0
        assert all(value < 1.0 for i, value in enumerate(found) if i != n - 2)

    def test_reads_digits_and_numbers_without_a_colour(self, scorers: dict[str, Any]) -> None:
        scorer, image = scorers["colour_count_reader"], _spots(BLUE, 3)
        assert _one(scorer, image, "3 blue circles") == 1.0
        assert _one(scorer, image, "three circles") == 1.0
        assert _one(scorer, image, "four circles") == 0.75

    def test_a_colour_that_is_missing_scores_nothing(self, scorers: dict[str, Any]) -> None:
        assert _one(scorers["colour_count_reader"], _spots(BLUE, 3), "three red circles") == 0.0

    def test_does_not_see_shape(self, scorers: dict[str, Any]) -> None:
        assert _one(scorers["colour_count_reader"], _spots(RED, 3), "three red stars") == 1.0

    def test_scores_elements_one_by_one(self, scorers: dict[str, Any]) -> None:
        found = scorers["colour_count_reader"].score_elements(
            [_spots(RED, 3), _spots(BLUE, 1)],
            ["three red circles", "two blue stars"],
            [["three circles", "red circles", "circles"], ["two stars"]],
        )
        assert found == [[1.0, 1.0, 0.5], [0.5]]

    def test_an_element_takes_its_colour_from_the_prompt(self, scorers: dict[str, Any]) -> None:
        image = _spots(RED, 3)
        ImageDraw.Draw(image).ellipse((60, 90, 86, 116), fill=BLUE)
        (found,) = scorers["colour_count_reader"].score_elements(
            [image], ["three red circles and two blue stars"], [["three circles", "two stars"]]
        )
        assert found == [1.0, 0.5]


class TestTwoTower:
    def test_is_small(self) -> None:
        assert (FOLDERS["two_tower"] / "weights.safetensors").stat().st_size < 2_000_000

    def test_works_in_steps_as_in_one(
        self, scorers: dict[str, Any], pictures: list[Image.Image]
    ) -> None:
        scorer = scorers["two_tower"]
        found = scorer.similarity(scorer.encode_images(pictures), scorer.encode_texts(PROMPTS))
        assert found.shape == (len(pictures),)
        assert list(found) == scorer.score(pictures, list(PROMPTS))

    @pytest.mark.parametrize("kind", ["color", "shape"])
    def test_tells_fresh_scenes_from_their_contradictions(
        self, kind: str, scorers: dict[str, Any]
    ) -> None:
        from tools.demo_split import train_two_tower

        rng = Chance("bundled scorers", "fresh", kind)
        fresh = train_two_tower.make_examples(_module("two_tower"), 60, rng, kind)
        assert train_two_tower.accuracy(scorers["two_tower"].network, fresh) > 0.75

    def test_its_card_gives_the_training_command_and_an_accuracy_for_every_kind(self) -> None:
        card = (FOLDERS["two_tower"] / "README.md").read_text(encoding="utf-8")
        given = dict(re.findall(r"^\| (\w+) \| ([01]\.\d{3}) \|$", card, re.MULTILINE))
        assert set(given) == {"overall", *CONTRADICTIONS}
        assert float(given["color"]) > 0.75
        assert "train_two_tower --out" in card


class TestTraining:
    def test_leaves_the_rest_of_a_card_as_it_is(self, tmp_path: Path) -> None:
        from tools.demo_split import train_two_tower

        card = tmp_path / "README.md"
        begin, end = train_two_tower.MARKS
        card.write_text(f"# before\n{begin}\nold\n{end}\n# after\n", encoding="utf-8")
        train_two_tower.write_card(card, {"overall": 0.5}, ["fact"])
        text = card.read_text(encoding="utf-8")
        assert text.startswith("# before\n")
        assert text.endswith("# after\n")
        assert "| overall | 0.500 |" in text
        assert "old" not in text

    def test_one_thing_more_is_not_wrong_for_the_shorter_sentence(self) -> None:
        from tools.demo_split import train_two_tower

        for kind, wrong in (("added", [True, False]), ("removed", [False, True])):
            rng = Chance("bundled scorers", kind)
            made = train_two_tower.make_examples(_module("two_tower"), 3, rng, kind)
            assert made.wrong.tolist() == [wrong] * 3
