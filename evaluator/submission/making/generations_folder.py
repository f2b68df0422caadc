"""The files of a new folder of generations: its manifest, and a line for each wanted image."""

from __future__ import annotations

from string import Template

import tomlkit

from evaluator.generation.manifest import GenerationsManifest
from evaluator.generation.names import image_file
from evaluator.generation.prompts import PromptSet
from evaluator.generation.rows import TABLE, ImageRow
from evaluator.manifest import FILE
from evaluator.submission.making.skeletons import TEMPLATES

_COMMENTS = {
    "kind": "What this folder is: images of a text-to-image model.",
    "name": "The model's name on the boards: letters, digits and . _ + -, at most 64.",
    "version": "Raise it when images change.",
    "benchmark": "Whose prompts were drawn; leave it out for prompts of your own.",
    "benchmark_revision": "Of the data that the prompts are from.",
    "seeds": "Every prompt is there once for each seed.",
    "images": "The table: one line of JSON for each image.",
}
_EXAMPLES = """
# authors = ["Ada Example"]
# licence = "Of the weights"
# description = "Which model, how many steps, which guidance."

# The model's name on the Hub, where it has one, and the commit that made the images.
# model = "owner/name"
# revision = "0123456789abcdef0123456789abcdef01234567"
"""


def generations_files(
    name: str, prompts: PromptSet | None, seeds: tuple[int, ...]
) -> dict[str, bytes]:
    """Every file of a new folder of generations.

    Args:
        name: of the model on the boards, checked.
        prompts: what is wanted; None: the table stays empty.
        seeds: each prompt is wanted once with each.
    """
    manifest = GenerationsManifest(
        name=name,
        benchmark=prompts.benchmark if prompts else "",
        benchmark_revision=prompts.revision if prompts else "",
        seeds=seeds,
    )
    readme = Template((TEMPLATES / "generations" / "README.md").read_text(encoding="utf-8"))
    benchmark = manifest.benchmark or "BENCHMARK"
    return {
        FILE: _commented(manifest),
        TABLE: b"".join(_wanted(prompts, seeds)) if prompts else b"",
        "README.md": readme.substitute(name=name, benchmark=benchmark).encode(),
    }


def _wanted(prompts: PromptSet, seeds: tuple[int, ...]) -> list[bytes]:
    return [
        ImageRow(
            prompt_id=prompt.prompt_id,
            seed=seed,
            file=image_file(prompt.prompt_id, seed),
            prompt=prompt.text,
        )
        .model_dump_json(include={"prompt_id", "seed", "file", "prompt"})
        .encode()
        + b"\n"
        for prompt in prompts.prompts
        for seed in seeds
    ]


def _commented(manifest: GenerationsManifest) -> bytes:
    values = manifest.model_dump(mode="json", exclude_none=True)
    lines = []
    for key, comment in _COMMENTS.items():
        if values[key] not in ("", []):
            lines.append(f"# {comment}\n{tomlkit.dumps({key: values[key]})}")
    return ("\n".join(lines) + _EXAMPLES).encode()
