"""Settings of recipes: the bounds of the common ones hold in each."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evaluator.training.recipe import Recipe, load_recipes

RECIPES = list(load_recipes().values())


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda one: str(one.name))
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", 0),
        ("accumulate", 0),
        ("epochs", 0),
        ("steps", 0),
        ("rate", 0),
        ("rate", "inf"),
        ("betas", (0.9, 1.0)),
        ("betas", (-0.1, 0.9)),
        ("eps", 0),
        ("weight_decay", -1),
        ("weight_decay", "nan"),
        ("clip", 0),
        ("warmup_steps", -5),
        ("held_out", 0),
        ("held_out", 1),
        ("variant", "other"),
    ],
)
def test_settings_out_of_bounds_are_refused(recipe: type[Recipe], name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        recipe.settings_class.model_validate({name: value})
