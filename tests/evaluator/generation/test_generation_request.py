"""What is to be drawn and how: prompts and seeds, recipes, and the manifest that tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SEEDS, image_file, load_prompt_sets, parse_seeds
from benchmarks.registry import find, load_registry
from evaluator.commands.generate import prompts_by_name, seeds_of
from evaluator.generation.manifest import (
    GenerationsManifest,
    Settings,
    manifest_text,
    parse_generations,
)
from evaluator.generation.prompts import Choice, Prompt, benchmark_prompts, file_prompts
from evaluator.generation.recipes import Overrides, call_arguments, find_recipe, load_recipes
from evaluator.manifest import manifest_reading
from leaderboard.records import ModelCard
from tests.evaluator.scorers.common import later, refusal

diffusers = later("diffusers")

ROWS = """prompt_id,prompt,split,skills
c1,two cats,train,counting;basic
c2,"a ""red"" cat",test,colour
c3,null,test,counting
"""


# Prompts and seeds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "prompts.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path / "prompts.csv"


@pytest.mark.parametrize("text", ["", "a", "-1", "1.5", "1,1", str(2**64), "1 2", "٣"])
def test_what_is_no_list_of_seeds_is_refused(text: str) -> None:
    assert parse_seeds("42, 3407,5096") == (42, 3407, 5096)
    with refusal("bad_seeds"):
        parse_seeds(text)


def test_a_file_of_prompts_is_read_as_text_and_skills_splits_and_a_limit_choose(path: Path) -> None:
    c1 = Prompt("c1", "two cats", ("counting", "basic"))
    c2, c3 = Prompt("c2", 'a "red" cat', ("colour",)), Prompt("c3", "null", ("counting",))
    both = ("counting", "colour")
    for choice, chosen in (
        (Choice(), (c1, c2, c3)),
        (Choice(skills=("counting",)), (c1, c3)),
        (Choice(skills=both, splits=("test",), limit=1), (c2,)),
    ):
        assert file_prompts(path, choice).prompts == chosen
    with refusal("unknown_choice", "'count'", "counting"):
        file_prompts(path, Choice(skills=("count",)))


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ("id,prompt\n1,a", "missing_columns", "column prompt_id"),
        ("prompt_id,prompt\n1,a\n1,b\n", "bad_prompts", "twice: '1'"),
        ("prompt_id,prompt\n1,\n2,  \n", "bad_prompts", "word: '1', '2'"),
        ("prompt_id,prompt\n,a\n", "bad_prompts", "prompt_id: 'a'"),
        ("", "unreadable_file", "CSV"),
        ("prompt_id,prompt\np1,a red, shiny cat\n", "uneven_lines", "line 2"),
    ],
)
def test_a_bad_file_says_what_is_wrong(path: Path, content: str, code: str, named: str) -> None:
    path.write_text(content, encoding="utf-8")
    with refusal(code, named):
        file_prompts(path, Choice())


def test_a_prompt_set_is_found_by_name_with_its_drawing_and_seeds(path: Path) -> None:
    demo = load_prompt_sets()["demo_prompts"]
    chosen = prompts_by_name("demo_prompts", None, Choice(skills=("count",), limit=3))
    assert (len(chosen.prompts), chosen.drawing) == (3, demo.drawing)
    assert (chosen.benchmark, chosen.revision) == ("demo_prompts", demo.card.revision)
    assert len(prompts_by_name("demo_prompts", None, Choice()).prompts) == 76
    assert (seeds_of(None, chosen, (42,)), seeds_of("5,6", chosen, (42,))) == ((1, 2), (5, 6))
    own = file_prompts(path, Choice())
    assert own.drawing is None
    assert seeds_of(None, own, (42,)) == seeds_of(None, None, (42,)) == (42,)
    with refusal("unknown_benchmark"):
        prompts_by_name("nothing", None, Choice())
    with refusal("no_prompts"):
        benchmark_prompts(find(load_registry(), "demo_ts2"), None, Choice())


@pytest.mark.paper
def test_the_prompts_of_a_benchmark_come_by_skill(assay_data: Path) -> None:
    benchmark = find(load_registry(), "genai_527")
    everything = benchmark_prompts(benchmark, assay_data, Choice())
    assert len(everything.prompts) == 527
    assert (everything.benchmark, everything.revision) == ("genai_527", benchmark.card.revision)
    counting = benchmark_prompts(benchmark, assay_data, Choice(skills=("counting",)))
    assert 0 < len(counting.prompts) < 527


def test_file_names_are_stable_and_hold_nothing_of_a_prompt_or_a_path() -> None:
    assert image_file("Counting 7", 42) == "images/counting-7-83d477283b_s42.png"
    for name in ("../../etc/passwd", "a/b", "C:\\x", "нет", "", "x" * 500, "a\nb", "CON"):
        file = image_file(name, 1)
        assert file.startswith("images/") and len(file) < 80 and ".." not in file
        assert set(file[7:]) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.s")
    alike = ["a b", "a-b", "A b", "a  b", "a b "]
    assert len({image_file(name, 1).lower() for name in alike}) == len(alike)


# Recipes


def call_of(pipeline: str, recipe: Any = None, size: Any = None, **overrides: Any) -> Any:
    call = getattr(diffusers, pipeline).__call__
    return call_arguments(call, recipe, Overrides(**overrides), size)


@pytest.mark.parametrize(
    ("pipeline", "steps", "guidance"),
    [
        ("StableDiffusion3Pipeline", 28, 7.0), ("StableDiffusionXLPipeline", 50, 5.0),
        ("StableDiffusionPipeline", 50, 7.5), ("PixArtSigmaPipeline", 20, 4.5),
    ],
)  # fmt: skip
def test_the_four_models_of_re_thinking_are_run_as_in_its_appendix(
    pipeline: str, steps: int, guidance: float
) -> None:
    recipe = find_recipe(load_recipes(), model="folder", pipeline=pipeline)
    found = call_of(pipeline, recipe)
    assert (found["num_inference_steps"], found["guidance_scale"]) == (steps, guidance)
    assert SEEDS == (42, 3407, 5096)


def test_a_distilled_model_has_a_recipe_of_its_own_and_a_recipe_can_be_named() -> None:
    recipes, xl, flux = load_recipes(), "StableDiffusionXLPipeline", "FluxPipeline"
    turbo = find_recipe(recipes, model="stabilityai/sdxl-turbo", pipeline=xl)
    found = call_of(xl, turbo, (1024, 1024))
    assert (found["num_inference_steps"], found["guidance_scale"]) == (1, 0.0)
    assert (found["width"], found["height"]) == (512, 512)
    assert "negative_prompt" not in found  # which is not an empty one
    named = find_recipe(recipes, model="folder", pipeline=flux, name="flux1-schnell")
    assert call_of(flux, named)["max_sequence_length"] == 256
    with pytest.raises(SubmitterError, match="sdxl-turbo"):
        find_recipe(recipes, model="folder", pipeline=flux, name="turbo")


def test_the_command_line_wins_over_the_recipe() -> None:
    given = {"steps": 3, "guidance": 1.5, "width": 64, "negative_prompt": ""}
    more = {"max_sequence_length": 77}
    found = call_of("StableDiffusion3Pipeline", load_recipes()[0], (32, 32), **given, call=more)
    wanted = {"num_inference_steps": 3, "guidance_scale": 1.5, "width": 64, "height": 32}
    assert found.items() >= {**wanted, "negative_prompt": "", **more}.items()


def test_an_unknown_model_is_run_by_its_pipelines_defaults_spelt_out() -> None:
    assert find_recipe(load_recipes(), model="x/y", pipeline="QwenImagePipeline") is None
    assert call_of("QwenImagePipeline", size=(64, 32)) == {
        "width": 64, "height": 32, "true_cfg_scale": 4.0, "num_inference_steps": 50,
        "max_sequence_length": 512,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["stepps", "prompt", "generator", "output_type"])
def test_an_argument_that_cannot_be_set_is_refused(name: str) -> None:
    with refusal("unknown_argument", name):
        call_of("StableDiffusionPipeline", call={name: "x"})


def test_captions_are_not_cleaned_by_a_package_that_may_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert call_of("PixArtSigmaPipeline")["clean_caption"] is False
    monkeypatch.setattr("evaluator.generation.recipes.find_spec", lambda name: None)
    with refusal("no_cleaning", "ftfy"):
        call_of("PixArtSigmaPipeline", call={"clean_caption": True})


# Manifest


def manifest(**more: Any) -> GenerationsManifest:
    return GenerationsManifest.model_validate({"name": "a", **more})


def problems(text: str) -> list[str]:
    reading = manifest_reading(text.encode(), GenerationsManifest)
    assert reading.manifest is not None
    return [problem.message for problem in reading.problems]


def test_every_key_of_the_card_is_read_and_written() -> None:
    text = (
        'name = "a"\nmodel = "ada/painter"\nrevision = "1"\nparameters = 5\nsteps = 3\n'
        'guidance = 2.5\ndrawn_on = 2026-01-05\nselection = "best_of"\nbest_of = 4\n'
        'selected_by = "clip"\n'
    )
    read = parse_generations(text.encode())
    assert read.model_card() == ModelCard(
        model="ada/painter", revision="1", parameters=5, steps=3, guidance=2.5,
        drawn_on="2026-01-05", selection="best_of", best_of=4, selected_by="clip",
    )  # fmt: skip
    assert parse_generations(manifest_text(read)) == read


@pytest.mark.parametrize(
    ("steps", "guidance", "given", "card"),
    [
        (28, 4.5, {}, (28, 4.5)),
        (28, 4.5, {"steps": 4, "guidance": 0.0}, (4, 0.0)),
        (True, "x", {}, (None, None)),
    ],
)
def test_steps_and_guidance_come_from_the_settings_where_they_are_not_given(
    steps: Any, guidance: Any, given: dict[str, Any], card: tuple[Any, Any]
) -> None:
    settings = Settings(
        model="ada/painter", revision="1", pipeline="P", scheduler="S", dtype="float32",
        device="cpu", safety_checker="off",
        call={"num_inference_steps": steps, "guidance_scale": guidance},
    )  # fmt: skip
    found = manifest(settings=settings, **given).model_card()
    assert (found.steps, found.guidance) == card


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ('selection = "best_of"', "selection: "), ("best_of = 4", "best_of: "),
        ('selection = "best_of"\nbest_of = 1', "best_of: Input"),
        ('drawn_on = "2026-02-30"', "drawn_on: "), ("drawn_on = 2026-01-01T00:00:00", "drawn_on"),
        ("steps = 0", "steps: "), ("guidance = nan", "guidance: "), ("seeds = [-1]", "seeds.0: "),
        (f"seeds = [{2**64}]", "seeds.0: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_key_beside_other_mistakes(keys: str, key: str) -> None:
    alone = problems(f'name = "a"\n{keys}\n')
    assert any(told.startswith(key) for told in alone)
    assert len(problems(f'name = "a b"\n{keys}\nextra = 1\n')) == len(alone) + 2
