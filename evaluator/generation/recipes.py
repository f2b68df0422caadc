"""The table of recipes, and the arguments a pipeline is called with."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.errors import SubmitterError
from evaluator.generation.manifest import Dtype, Scalar

RECIPES = Path(__file__).with_name("recipes.toml")

CallArguments = dict[str, Scalar | tuple[Scalar, ...]]

# What the run itself gives, what changes the form of the output, and what is deprecated.
_NOT_SETTINGS = frozenset(
    {
        "self",
        "prompt",
        "generator",
        "num_images_per_prompt",
        "output_type",
        "return_dict",
        "callback_steps",
        "callback_on_step_end_tensor_inputs",
    }
)


class Recipe(BaseModel):
    """How a model is run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pipelines: tuple[str, ...] = ()  # Classes of diffusers this is the default of
    models: tuple[str, ...] = ()  # Hub ids this belongs to
    steps: int = Field(ge=1)
    guidance: float = Field(ge=0)
    width: int | None = Field(default=None, ge=8)  # In pixels; None: the checkpoint's own
    height: int | None = Field(default=None, ge=8)
    gpu_dtype: Dtype = "bfloat16"  # Precision where there is a GPU; on a CPU it is float32
    call: dict[str, Scalar] = Field(default_factory=dict)
    """Further arguments of the pipeline's call."""
    source: str  # Paper and section, or model card


class Overrides(BaseModel):
    """What the command line says; None: nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int | None = None
    guidance: float | None = None
    width: int | None = None
    height: int | None = None
    negative_prompt: str | None = None
    call: dict[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """Further arguments of the pipeline's call, by their names in diffusers."""

    def arguments(self) -> CallArguments:
        """By the names that diffusers has for them."""
        named = {
            "num_inference_steps": self.steps,
            "guidance_scale": self.guidance,
            "width": self.width,
            "height": self.height,
            "negative_prompt": self.negative_prompt,
        }
        return {**{k: v for k, v in named.items() if v is not None}, **self.call}


def load_recipes(path: Path = RECIPES) -> tuple[Recipe, ...]:
    """All recipes, in the file's order."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["recipe"]
    return tuple(Recipe.model_validate(values) for values in tables)


def find_recipe(
    recipes: Sequence[Recipe], *, model: str, pipeline: str, name: str | None = None
) -> Recipe | None:
    """The recipe of a name, else of a model, else of a class of pipelines."""
    if name is not None:
        for recipe in recipes:
            if recipe.name == name:
                return recipe
        known = ", ".join(recipe.name for recipe in recipes)
        raise SubmitterError("unknown_recipe", f"There is no recipe {name!r}.", f"Known: {known}.")
    by_model = [r for r in recipes if model in r.models]
    by_class = [r for r in recipes if pipeline in r.pipelines]
    return next(iter([*by_model, *by_class]), None)


def call_arguments(
    call: Callable[..., object],
    recipe: Recipe | None,
    overrides: Overrides,
    size: tuple[int, int] | None,
) -> CallArguments:
    """Every plain argument of a pipeline's call, spelt out.

    The checkpoint's size, over it the signature's defaults, then the recipe, then the command
    line. What is None by default stays away, since None can mean something else than any value: SDXL draws
    differently without a negative prompt than with an empty one.
    """
    parameters = inspect.signature(call).parameters
    asked = overrides.arguments()
    for name in asked:
        if name not in parameters or name in _NOT_SETTINGS:
            usual = ", ".join(sorted(set(parameters) - _NOT_SETTINGS))
            raise SubmitterError(
                "unknown_argument",
                f"This pipeline takes no {name} from the command line.",
                f"It takes: {usual}.",
            )
    off: CallArguments = {"clean_caption": False}
    own = dict(zip(("width", "height"), size or (), strict=False))
    layers = {**own, **_defaults(parameters), **off, **_recipe_arguments(recipe)}
    arguments = {**{k: v for k, v in layers.items() if k in parameters}, **asked}
    _check_cleaning(arguments)
    return arguments


def _recipe_arguments(recipe: Recipe | None) -> CallArguments:
    if recipe is None:
        return {}
    arguments: CallArguments = {
        "num_inference_steps": recipe.steps,
        "guidance_scale": recipe.guidance,
    }
    if recipe.width and recipe.height:
        arguments |= {"width": recipe.width, "height": recipe.height}
    return {**arguments, **recipe.call}


def _defaults(parameters: Mapping[str, inspect.Parameter]) -> CallArguments:
    found: CallArguments = {}
    for name, parameter in parameters.items():
        value = parameter.default
        if name in _NOT_SETTINGS or value is inspect.Parameter.empty:
            continue
        if isinstance(value, list | tuple) and all(isinstance(v, Scalar) for v in value):
            found[name] = tuple(value)
        elif isinstance(value, Scalar):
            found[name] = value
    return found


def _check_cleaning(arguments: CallArguments) -> None:
    lacking = [name for name in ("bs4", "ftfy") if find_spec(name) is None]
    if arguments.get("clean_caption") and lacking:
        raise SubmitterError(
            "no_cleaning",
            f"clean_caption needs {' and '.join(lacking)}, without which it would do nothing.",
            "Install beautifulsoup4 and ftfy, or leave clean_caption out.",
        )
