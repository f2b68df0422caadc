"""Preparation of a run: data are opened, split, made into examples, and guarded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.croc.load import TEXTS, CrocAnswers, PromptPair, pair_id
from benchmarks.croc.protocol import CARD, CrocHum
from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import prompt_key
from benchmarks.problems import one_error
from benchmarks.registry import find
from benchmarks.schema import Benchmark, Pair, Questions
from evaluator.image_folder import ImagePair, MatchedImages, images_below, matched, read_prompts
from evaluator.scoring.progress import Listener
from evaluator.training.data import TrainingData
from evaluator.training.guard import Comparison, HeldOut, guard, held_out_of
from evaluator.training.loop import Prepared
from evaluator.training.recipe import Recipe

_TABLES = ("prompts.csv", "prompts.jsonl")


@dataclass(frozen=True)
class Preparation:
    """The data of a run, and all that is told of them."""

    prepared: Prepared
    data: TrainingData  # whole
    dropped: Mapping[str, int]  # examples that are not trained on, by the reason
    comparisons: tuple[Comparison, ...]  # what they were compared with
    overlap: tuple[str, ...]  # benchmarks that they were not compared with
    not_at_hand: tuple[str, ...] = ()  # benchmarks of which neither prompts nor images are at hand

    @property
    def trained_on(self) -> tuple[str, ...]:
        """Benchmarks whose data are among the examples."""
        own = () if self.data.origin == "folder" else (self.data.name,)
        return tuple(dict.fromkeys((*own, *self.overlap)))


def open_data(named: str, registry: Mapping[str, Benchmark], files: Path | None) -> TrainingData:
    """Data by the name of a benchmark, or of a folder of images with a table of prompts.

    Where a board leaves a part of its release to be trained on, it is that part.

    Raises:
        SubmitterError: it is neither, or cannot be read.
    """
    folder = Path(named)
    if named not in registry and folder.is_dir():
        return folder_data(folder)
    benchmark = find(registry, named)
    released = benchmark.training(files)
    if released is not None:
        return TrainingData(benchmark, *released, "release")
    return TrainingData(benchmark, benchmark.questions(files), benchmark.answers(files))


def folder_data(folder: Path) -> TrainingData:
    """Images of a folder with the prompts of its `prompts.csv` or `prompts.jsonl`, as contrast pairs.

    Prompts are paired by chance, the same each time; of an odd number one is left out. The pairs are
    measured as those of CROC_hum are.
    """
    table = next((folder / name for name in _TABLES if (folder / name).is_file()), None)
    if table is None:
        raise SubmitterError(
            "no_prompts",
            f"{folder} has no table of prompts.",
            f"Write {' or '.join(_TABLES)} with the columns `prompt` and `file`.",
        )
    found = matched(images_below(folder), read_prompts(str(table)))
    if found.problems:
        raise one_error(list(found.problems))
    by_prompt: dict[str, list[ImagePair]] = {}
    for pair in found.pairs:
        by_prompt.setdefault(prompt_key(pair.prompt), []).append(pair)
    keys = sorted(by_prompt)  # of hashes, so in an order of chance
    paired = zip(keys[::2], keys[1::2], strict=False)
    pairs = [_pair(by_prompt[one], by_prompt[other]) for one, other in paired]
    if not pairs:
        raise SubmitterError(
            "too_little_data", f"{table} has fewer than two prompts.", "Bring more."
        )
    return _of_pairs(folder, found, pairs)


def _pair(one: Sequence[ImagePair], other: Sequence[ImagePair]) -> PromptPair:
    return PromptPair(
        prompt_key(one[0].prompt),
        "all",
        one[0].prompt,
        other[0].prompt,
        tuple(pair.image for pair in one),
        tuple(pair.image for pair in other),
    )


def _of_pairs(folder: Path, found: MatchedImages, pairs: Sequence[PromptPair]) -> TrainingData:
    asked = [
        Pair(f"{image}@{pair.id}|{text}", image, f"{pair.id}|{text}")
        for pair in pairs
        for image in pair.images
        for text in TEXTS
    ]
    named = [
        replace(
            pair,
            original_images=tuple(f"{image}@{pair.id}" for image in pair.original_images),
            contrast_images=tuple(f"{image}@{pair.id}" for image in pair.contrast_images),
        )
        for pair in pairs
    ]
    questions = Questions(
        {pair.image_id: found.places[pair.image_id].read_bytes for pair in asked},
        {
            pair_id(p.id, t): s
            for p in pairs
            for t, s in zip(TEXTS, (p.prompt, p.contrast), strict=True)
        },
        tuple(asked),
    )
    answers = CrocAnswers(
        tuple(pair.pair_id for pair in asked), tuple(pair.id for pair in pairs), tuple(named)
    )
    name = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_") or "folder"
    revision = hashlib.sha256(repr(pairs).encode()).hexdigest()[:12]
    card = CARD.model_copy(
        update={"name": name[:60], "title": folder.name, "family": name[:60], "revision": revision}
    )
    return TrainingData(CrocHum(card), questions, answers, "folder")


def prepare(
    recipe: Recipe,
    data: TrainingData,
    registry: Mapping[str, Benchmark],
    files: Path | None,
    *,
    seed: int,
    overlap: Sequence[str] = (),
    listener: Listener | None = None,
) -> Preparation:
    """Split data, make examples of the training part, and drop what any benchmark at hand holds out.

    `overlap`: benchmarks that may be trained on; they are not compared.

    Raises:
        SubmitterError: `unknown_benchmark`; what the recipe and the guard raise.
    """
    for name in overlap:
        find(registry, name)
    training, held_out = data.split(recipe.settings.held_out, seed, recipe.settings.held_out_most)
    made = recipe.examples(training)
    without = (*overlap, data.name) if data.origin == "board" else overlap
    others = list(held_out_of(registry, files, without))
    compared = {*without, *(one.name for one in others)}
    guarded = guard(made.examples, [HeldOut.of_part(held_out), *others], listener)
    return Preparation(
        Prepared(guarded.examples, held_out, guarded.digest, guarded.held_out_images),
        data,
        {**made.dropped, **guarded.dropped},
        guarded.comparisons,
        tuple(overlap),
        tuple(name for name in registry if name not in compared),
    )
