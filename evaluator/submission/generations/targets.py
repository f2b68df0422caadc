"""Prompt set of a submission of generations, as its manifest names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.prompt_sets.registry import find_prompt_set
from benchmarks.schema import Benchmark
from evaluator.generation.manifest import GenerationsManifest
from evaluator.generation.prompts import Choice, benchmark_prompts
from evaluator.manifest import FILE, nearest
from evaluator.submission.generations.sources import Source


@dataclass(frozen=True)
class Target:
    """What was to be drawn.

    Attributes:
        name: of the prompt set; empty for prompts of one's own.
        revision: of it.
        texts: prompt id to text, in the order of the set; None: those that the table names.
        least_side: of an image, in pixels.
        most_side: likewise; None: any.
    """

    name: str
    revision: str
    texts: Mapping[str, str | None] | None
    least_side: int = 1
    most_side: int | None = None


@dataclass(frozen=True)
class PromptSets:
    """Finds a manifest's prompt set: what a submission must be of.

    Attributes:
        known: prompt sets by name.
        data: folder of benchmark data, if there is one.
    """

    known: Mapping[str, PromptSet]
    data: Path | None

    def __call__(self, manifest: GenerationsManifest, source: Source) -> Target:
        """Look it up.

        Raises:
            SubmitterError: `no_prompt_set`, `unknown_prompt_set`, or its data is not here.
        """
        if not manifest.benchmark:
            raise SubmitterError(
                "no_prompt_set",
                f"{FILE} of {source.name} does not say which prompt set was drawn.",
                f'Write benchmark = "NAME". Prompt sets: {", ".join(self.known)}.',
            )
        try:
            found = find_prompt_set(self.known, manifest.benchmark)
        except SubmitterError as error:
            hint = f"{nearest(manifest.benchmark, self.known)}{error.hint}"
            raise SubmitterError(error.code, error.message, hint) from error
        texts = {one.prompt_id: one.text for one in found.set_prompts(self.data)}
        drawing = found.drawing
        return Target(found.name, found.card.revision, texts, drawing.least_side, drawing.most_side)


@dataclass(frozen=True)
class AnyPrompts:
    """Finds the prompts of whatever can be drawn: also of benchmarks of metrics, or one's own.

    Attributes:
        sets: prompt sets.
        registry: benchmarks of metrics.
    """

    sets: PromptSets
    registry: Mapping[str, Benchmark]

    def __call__(self, manifest: GenerationsManifest, source: Source) -> Target:
        """Look it up.

        Raises:
            SubmitterError: `unknown_prompt_set`, or its data is not here.
        """
        name = manifest.benchmark
        if name in self.registry and name not in self.sets.known:
            prompts = benchmark_prompts(self.registry[name], self.sets.data, Choice())
            texts = {one.prompt_id: one.text for one in prompts.prompts}
            return Target(name, prompts.revision, texts)
        if not name:
            return Target("", manifest.benchmark_revision, None)
        return self.sets(manifest, source)
