"""Outline of a run: all that is known before weights are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluator.generation.checkpoint import Checkpoint
from evaluator.generation.estimate import image_bytes
from evaluator.generation.folder import RunFolder
from evaluator.generation.pipeline_class import own_size, pipeline_class
from evaluator.generation.plan import all_jobs
from evaluator.generation.prompts import ChosenPrompts
from evaluator.generation.recipes import (
    CallArguments,
    Overrides,
    Recipe,
    call_arguments,
    find_recipe,
    load_recipes,
)


@dataclass(frozen=True)
class Outline:
    """A run before its model is loaded.

    Attributes:
        pipeline: class of diffusers.
        recipe: None: the pipeline's own defaults.
    """

    checkpoint: Checkpoint
    pipeline: type[Any]
    recipe: Recipe | None
    overrides: Overrides
    prompts: ChosenPrompts
    seeds: tuple[int, ...]
    folder: RunFolder

    @classmethod
    def of(
        cls,
        checkpoint: Checkpoint,
        *,
        recipe: str | None,
        overrides: Overrides,
        prompts: ChosenPrompts,
        seeds: tuple[int, ...],
        folder: RunFolder,
    ) -> Outline:
        """Look up class and recipe.

        Raises:
            SubmitterError: `checkpoint_malformed`, `not_text_to_image`, `unknown_recipe`.
        """
        found = pipeline_class(checkpoint)
        chosen = find_recipe(
            load_recipes(), model=checkpoint.name, pipeline=found.__name__, name=recipe
        )
        return cls(checkpoint, found, chosen, overrides, prompts, seeds, folder)

    def arguments(self, pipe: Any = None) -> CallArguments:
        """Of the pipeline's call.

        Raises:
            SubmitterError: `unknown_argument`, `no_cleaning`.
        """
        size = own_size(self.checkpoint, pipe)
        return call_arguments(self.pipeline.__call__, self.recipe, self.overrides, size)

    def facts(self) -> Mapping[str, Any]:
        """For people and programs: what would be drawn, what is there, and the room it takes.

        Raises:
            SubmitterError: `table_malformed`, and those of `arguments`.
        """
        rows, arguments = self.folder.rows(), self.arguments()
        wanted = {job.key for job in all_jobs(self.prompts.prompts, self.seeds)}
        each = image_bytes(self.folder, rows, arguments)
        return {
            "model": self.checkpoint.name,
            "revision": self.checkpoint.revision,
            "pipeline": self.pipeline.__name__,
            "recipe": self.recipe.name if self.recipe else None,
            "source": self.recipe.source if self.recipe else "the pipeline's own defaults",
            "benchmark": self.prompts.benchmark or None,
            "benchmark_revision": self.prompts.revision or None,
            "prompts": len(self.prompts.prompts),
            "seeds": list(self.seeds),
            "images": len(wanted),
            "finished": sum(row.key in wanted for row in rows),
            "bytes": None if each is None else round(each * len(wanted)),
            "arguments": arguments,
        }
