"""Images of prompt pairs: drawn by the image engine, put where the layout of CROC_syn has them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from benchmarks.croc_syn.load import SIDES
from benchmarks.croc_syn.protocol import IMAGES
from benchmarks.errors import SubmitterError
from evaluator.croc.folder import CrocFolder, WritingRun
from evaluator.croc.replies import WrittenPair
from evaluator.generation.folder import RunFolder
from evaluator.generation.prompts import ChosenPrompts, Prompt


def runs_of(folder: CrocFolder, image_model: str | None) -> tuple[WritingRun, ...]:
    """The prompt files of an image model; None: of the only one.

    Raises:
        SubmitterError: `unknown_image_model`.
    """
    runs = folder.runs()
    known = list(dict.fromkeys(run.image_model for run in runs))
    chosen = known[0] if image_model is None and len(known) == 1 else image_model
    if chosen not in known:
        raise SubmitterError(
            "unknown_image_model",
            f"{folder.path} has prompts for {', '.join(known)}"
            + (f", and none for {chosen}." if chosen else "; it is not said which to draw."),
            "Name one with --image-model.",
        )
    return tuple(run for run in runs if run.image_model == chosen)


def prompts_of(folder: CrocFolder, run: WritingRun) -> ChosenPrompts:
    """Prompts and contrast prompts of a file, one after the other, named as their images are.

    Raises:
        SubmitterError: `nothing_written`: it has none.
    """
    found = [
        Prompt(request.stem(number, side), text)
        for request in folder.read(drawn=False)
        if request.run.key == run.key
        for number, pair in enumerate(request.found)
        if isinstance(pair, WrittenPair)
        for (_, side), text in zip(SIDES, (pair.prompt, pair.contrast), strict=True)
    ]
    if not found:
        raise SubmitterError(
            "nothing_written",
            f"{folder.path} has no prompt pair of {run.key}.",
            "Go on with `croc prompts`, or name another --image-model.",
        )
    return ChosenPrompts(tuple(found))


def place_images(folder: CrocFolder, run: WritingRun, seeds: Sequence[int]) -> int:
    """Put the images of a run into their places; gives how many there are.

    A place is a link to the file of the engine where the disk knows links, else a copy.
    """
    drawn = RunFolder(folder.drawing(run))
    count = 0
    for row in drawn.rows():
        if row.file is None or row.seed not in seeds:
            continue
        side = next(place for place, word in SIDES if f"_{word}_" in _end(row.prompt_id))
        place = folder.path / IMAGES / run.image_model / run.text_model / side
        place.mkdir(parents=True, exist_ok=True)
        target = place / f"{row.prompt_id}_image_{row.seed}.png"
        source = drawn.path / row.file
        if not (target.exists() and target.samefile(source)):
            aside = target.with_name(f".part-{target.name}")
            aside.unlink(missing_ok=True)
            try:
                os.link(source, aside)
            except OSError:  # another disk, or one without links
                shutil.copyfile(source, aside)
            aside.replace(target)
        count += 1
    return count


def _end(prompt_id: str) -> str:
    """The side and number of a prompt, behind all that a taxonomy names."""
    head, _, number = prompt_id.rpartition("_")
    return f"_{head.rpartition('_')[2]}_{number}"
