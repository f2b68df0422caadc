from __future__ import annotations

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SEEDS
from evaluator.generation.recipes import (
    Overrides,
    call_arguments,
    find_recipe,
    load_recipes,
)

NONE = Overrides()


@pytest.mark.parametrize(
    ("pipeline", "steps", "guidance"),
    [
        ("StableDiffusion3Pipeline", 28, 7.0),
        ("StableDiffusionXLPipeline", 50, 5.0),
        ("StableDiffusionPipeline", 50, 7.5),
        ("PixArtSigmaPipeline", 20, 4.5),
    ],
)
def test_the_four_models_of_re_thinking_are_run_as_in_its_appendix(
    pipeline: str, steps: int, guidance: float
) -> None:
    import diffusers

    recipe = find_recipe(load_recipes(), model="folder", pipeline=pipeline)
    found = call_arguments(getattr(diffusers, pipeline).__call__, recipe, NONE, None)
    assert (found["num_inference_steps"], found["guidance_scale"]) == (steps, guidance)
    assert SEEDS == (42, 3407, 5096)


def test_a_distilled_model_has_a_recipe_of_its_own() -> None:
    from diffusers import StableDiffusionXLPipeline

    recipe = find_recipe(
        load_recipes(), model="stabilityai/sdxl-turbo", pipeline="StableDiffusionXLPipeline"
    )
    found = call_arguments(StableDiffusionXLPipeline.__call__, recipe, NONE, (1024, 1024))
    assert (found["num_inference_steps"], found["guidance_scale"]) == (1, 0.0)
    assert (found["width"], found["height"]) == (512, 512)


def test_a_recipe_can_be_named() -> None:
    from diffusers import FluxPipeline

    recipes = load_recipes()
    found = find_recipe(recipes, model="folder", pipeline="FluxPipeline", name="flux1-schnell")
    assert found is not None
    assert call_arguments(FluxPipeline.__call__, found, NONE, None)["max_sequence_length"] == 256
    with pytest.raises(SubmitterError, match="sdxl-turbo"):
        find_recipe(recipes, model="folder", pipeline="FluxPipeline", name="turbo")


def test_an_unknown_model_is_run_by_its_pipelines_defaults_spelt_out() -> None:
    from diffusers import QwenImagePipeline

    recipe = find_recipe(load_recipes(), model="x/y", pipeline="QwenImagePipeline")
    assert recipe is None
    assert call_arguments(QwenImagePipeline.__call__, recipe, NONE, (64, 32)) == {
        "width": 64,
        "height": 32,
        "true_cfg_scale": 4.0,
        "num_inference_steps": 50,
        "max_sequence_length": 512,
    }


def test_the_command_line_wins_over_the_recipe() -> None:
    from diffusers import StableDiffusion3Pipeline

    recipe = load_recipes()[0]
    asked = Overrides(
        steps=3, guidance=1.5, width=64, negative_prompt="", call={"max_sequence_length": 77}
    )
    found = call_arguments(StableDiffusion3Pipeline.__call__, recipe, asked, (32, 32))
    assert found["num_inference_steps"] == 3
    assert found["guidance_scale"] == 1.5
    assert (found["width"], found["height"]) == (64, 32)
    assert found["negative_prompt"] == ""
    assert found["max_sequence_length"] == 77


def test_no_negative_prompt_is_not_an_empty_one() -> None:
    from diffusers import StableDiffusionXLPipeline

    found = call_arguments(StableDiffusionXLPipeline.__call__, None, NONE, None)
    assert "negative_prompt" not in found


@pytest.mark.parametrize("name", ["stepps", "prompt", "generator", "output_type"])
def test_an_argument_that_cannot_be_set_is_refused(name: str) -> None:
    from diffusers import StableDiffusionPipeline

    with pytest.raises(SubmitterError, match=name) as error:
        call_arguments(StableDiffusionPipeline.__call__, None, Overrides(call={name: "x"}), None)
    assert error.value.code == "unknown_argument"


def test_captions_are_not_cleaned_by_a_package_that_may_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from diffusers import PixArtSigmaPipeline

    assert call_arguments(PixArtSigmaPipeline.__call__, None, NONE, None)["clean_caption"] is False
    monkeypatch.setattr("evaluator.generation.recipes.find_spec", lambda name: None)
    with pytest.raises(SubmitterError, match="bs4 and ftfy") as error:
        call_arguments(
            PixArtSigmaPipeline.__call__, None, Overrides(call={"clean_caption": True}), None
        )
    assert error.value.code == "no_cleaning"
