"""Template of a folder of generations: its manifest, and a table of the images it needs.

`assay.toml` says what the folder is, with a comment on every key, those about the model commented
out; `images.jsonl` has a line for each image. With the images in their places it can be
submitted as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import tomlkit

from benchmarks.prompt_sets.prompt_set import Drawing, image_file

MANIFEST = "assay.toml"
TABLE = "images.jsonl"

_COMMENTS: Mapping[str, str] = MappingProxyType(
    {
        "kind": "What this folder is: images of a text-to-image model.",
        "name": "The model's name on the boards: letters, digits and . _ + -, at most 64.",
        "version": "Raise it when images change.",
        "benchmark": "Whose prompts were drawn; leave it out for prompts of your own.",
        "benchmark_revision": "Of the data that the prompts are from.",
        "seeds": "Every prompt is there once for each seed.",
        "images": "The table: one line of JSON for each image.",
    }
)
_ABOUT_THE_MODEL = """
# What follows is shown beside the model. Take away the # before what you know, and correct it.

# authors = ["Ada Example"]
# licence = "Of the weights"
# description = "Which model, and what is special about these images."

# The model's name on the Hub, where it has one, and the commit that made the images.
# model = "owner/name"
# revision = "0123456789abcdef0123456789abcdef01234567"

# Number of weights, denoising steps, guidance scale.
# parameters = 860000000
# steps = 28
# guidance = 7.0

# The day they were drawn: a service behind an address changes under one name.
# drawn_on = "2026-01-31"

# The day of the model's release: metrics may have been validated on older models alone.
# released = "2025-11-01"

# Each image is the first one drawn with its seed, unless you say that it is the best of several,
# of how many, and who took it: a person, or a metric by its name.
# selection = "best_of"
# best_of = 4
# selected_by = "a person"
"""


@dataclass(frozen=True)
class FolderTemplate:
    """Folder of generations that is to be filled: every prompt once with every seed."""

    prompts: Sequence[tuple[str, str]]  # id and text of each
    seeds: Sequence[int]  # each once
    # registry name of the prompt set or benchmark; empty for prompts of one's own
    benchmark: str = ""
    revision: str = ""  # of its data
    drawing: Drawing | None = None  # says which sizes are taken; None: not said

    @property
    def n_images(self) -> int:
        """Number of images."""
        return len(self.prompts) * len(self.seeds)


def template_files(name: str, template: FolderTemplate) -> dict[str, bytes]:
    """Manifest and table of a new folder, by their names."""
    return {MANIFEST: _manifest(name, template), TABLE: b"".join(_lines(template))}


def _manifest(name: str, template: FolderTemplate) -> bytes:
    values = {
        "kind": "generations",
        "name": name,
        "version": "1",
        "benchmark": template.benchmark,
        "benchmark_revision": template.revision,
        "seeds": list(template.seeds),
        "images": TABLE,
    }
    entries = [
        f"# {comment}\n{tomlkit.dumps({key: values[key]})}"
        for key, comment in _COMMENTS.items()
        if values[key] not in ("", [])
    ]
    return ("\n".join(entries) + _ABOUT_THE_MODEL).encode()


def _lines(template: FolderTemplate) -> Iterator[bytes]:
    """Each image's prompt id, seed, file and prompt, and the least and the largest side, in pixels."""
    drawing = template.drawing
    sides = {"least_side": drawing.least_side, "most_side": drawing.most_side} if drawing else {}
    for prompt_id, text in template.prompts:
        for seed in template.seeds:
            row = {
                "prompt_id": prompt_id,
                "seed": seed,
                "file": image_file(prompt_id, seed),
                "prompt": text,
                **sides,
            }
            yield json.dumps(row, ensure_ascii=False).encode() + b"\n"
