"""Recipes: the bounds of common settings hold in each, and what is told of the base of one."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evaluator.scorers.checkpoints import Source
from evaluator.training.base import benchmarks_of, content_of
from evaluator.training.recipe import load_recipes
from tests.kit.refusals import refused

OUT_OF_BOUNDS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("batch", "accumulate", "epochs", "steps", "eps", "clip"), (0,)),
    "rate": (0, "inf"),
    "betas": ((0.9, 1.0), (-0.1, 0.9)),
    "weight_decay": (-1, "nan"),
    "warmup_steps": (-5,),
    "held_out": (0, 1),
    "variant": ("other",),
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_settings_out_of_bounds_are_refused_by_every_recipe(name: str) -> None:
    for recipe, value in product(load_recipes().values(), OUT_OF_BOUNDS[name]):
        with pytest.raises(ValidationError):
            recipe.settings_class.model_validate({name: value})


# The base of a recipe

COMMIT = "0" * 40


@pytest.mark.parametrize(
    ("name", "trained_on"),
    [
        ("Salesforce/blip2-itm-vit-g-coco", ("coco",)),
        ("nllg/crocscore", ("croc", "croc_syn")),
        ("nobody/nothing", ()),
    ],
)
def test_a_repository_was_trained_on_what_the_metrics_that_read_it_say(
    name: str, trained_on: tuple[str, ...], tmp_path: Path
) -> None:
    source = Source(tmp_path, name, COMMIT)
    assert (benchmarks_of(source), content_of(source)) == (trained_on, COMMIT)


@pytest.mark.parametrize("place", ["submission", "submission/checkpoint"])
def test_a_folder_was_trained_on_what_its_manifest_says(place: str, tmp_path: Path) -> None:
    (tmp_path / "submission" / "checkpoint").mkdir(parents=True)
    source = Source(tmp_path / place, place, "")
    assert benchmarks_of(source) == ()
    manifest = tmp_path / "submission" / "assay.toml"
    manifest.write_text('name = "mine"\ntrained_on = ["croc_syn"]\n')
    assert benchmarks_of(source) == ("croc_syn",)
    manifest.write_text("name = 3\n")
    with refused("bad_manifest"):
        benchmarks_of(source)
