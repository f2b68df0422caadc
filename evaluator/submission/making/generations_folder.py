"""The files of a new folder of generations: its manifest, and a line for each wanted image."""

from __future__ import annotations

from string import Template

from benchmarks.prompt_sets.folder_template import FolderTemplate, template_files
from evaluator.generation.prompts import ChosenPrompts
from evaluator.submission.making.skeletons import TEMPLATES


def generations_files(
    name: str, prompts: ChosenPrompts | None, seeds: tuple[int, ...]
) -> dict[str, bytes]:
    """Every file of a new folder of generations.

    Args:
        name: of the model on the boards, checked.
        prompts: what is wanted; None: the table stays empty.
        seeds: each prompt is wanted once with each.
    """
    readme = Template((TEMPLATES / "generations" / "README.md").read_text(encoding="utf-8"))
    benchmark = (prompts.benchmark if prompts else "") or "BENCHMARK"
    return {
        **template_files(name, _wanted(prompts, seeds)),
        "README.md": readme.substitute(name=name, benchmark=benchmark).encode(),
    }


def _wanted(prompts: ChosenPrompts | None, seeds: tuple[int, ...]) -> FolderTemplate:
    if prompts is None:
        return FolderTemplate((), seeds)
    texts = [(prompt.prompt_id, prompt.text) for prompt in prompts.prompts]
    return FolderTemplate(texts, seeds, prompts.benchmark, prompts.revision, prompts.drawing)
