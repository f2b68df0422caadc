"""Images of two models by prompt: found in their folders, known by their content."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem
from benchmarks.schema import Pair, Questions
from evaluator.generation.manifest import TABLE, read_rows
from evaluator.generation.prompts import Prompt
from evaluator.image_folder import PromptRow, images_below, matched
from evaluator.scoring.images import ImageError, decode
from leaderboard.text import clean

_THREADS = 4
_NO_IMAGE = Problem(
    "prompt_unmatched",
    "A prompt has no image of a model",
    "Draw it, leave its row out, or compare what there is with --partial.",
)
_UNREADABLE = Problem(
    "image_unreadable",
    "An image cannot be scored",
    "Draw it anew, or compare what there is with --partial.",
)
_OTHER_PROMPT = Problem(
    "other_prompt",
    "An image was drawn for another prompt than the table has under its id",
    "Name the table that was drawn from.",
)
_FEWER_IMAGES = Problem(
    "fewer_images",
    "A prompt that screens has fewer images of the candidate than of the baseline",
    "Draw the others first: with --batches a prompt counts when all its images are there.",
)
_AWAITED = "A held-out prompt waits for another image, as one cannot be scored"
WITHHELD = "images_withheld"
_WITHHELD = Problem(
    WITHHELD,
    "A prompt has images that a model's own table withholds: rows without a file, as of a refusal",
    "Draw them, leave the prompt out, or compare what there is with --partial.",
)
_PASSED_OVER = Problem(
    WITHHELD,
    "A held-out prompt is passed over as missing: the candidate's table says it has no image",
)
_OF_FILES = {"image_missing", "files_alike"}
"""Problems of matching that are told of a model; images of other prompts are none."""


@dataclass(frozen=True)
class ModelImages:
    """Images of one model."""

    name: str  # of its folder
    # prompt id to its images, each with the hash of its content; no prompt without one
    files: Mapping[str, tuple[tuple[Path, str], ...]]
    problems: tuple[Problem, ...]
    # prompt id to how many images will not come: rows of the table without a file, as of a refusal
    withheld: Mapping[str, int] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()  # prompts with an image that cannot be scored
    missing: frozenset[str] = frozenset()  # prompts without any image to come, that count as such
    notes: tuple[Problem, ...] = ()  # what is told, and refuses nothing


def model_images(folder: Path, prompts: Sequence[Prompt]) -> ModelImages:
    """Find the images of a folder, be it one of `generate` or of files named by prompt id.

    Images of other prompts are no problem.

    Raises:
        SubmitterError: there is no folder, or its table of images cannot be read.
    """
    places = images_below(folder)
    rows = read_rows(folder)
    known = {one.prompt_id: one.text for one in prompts}
    withheld = Counter(r.prompt_id for r in rows if r.file is None and r.prompt_id in known)
    if (folder / TABLE).exists():
        drawn: dict[str, list[str]] = {}
        other = []
        for row in rows:
            if row.prompt_id not in known or row.file is None:
                continue
            if row.prompt is not None and row.prompt != known[row.prompt_id]:
                other.append(f"{folder.name}/{row.prompt_id}")
            drawn.setdefault(row.prompt_id, []).append(row.file)
        asked = [
            PromptRow(one.prompt_id, one.text, one.prompt_id, tuple(drawn[one.prompt_id]))
            for one in prompts
            if one.prompt_id in drawn
        ]
    else:
        other = []
        asked = [PromptRow(one.prompt_id, one.text, one.prompt_id) for one in prompts]
    found = matched(places, asked)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="images") as pool:
        looked = dict(zip(found.places, pool.map(_looked_at, found.places.values()), strict=True))
    bad = {name: why for name, (_, why) in looked.items() if why}
    unreadable = frozenset(pair.prompt_id for pair in found.pairs if pair.image in bad)
    files: dict[str, tuple[tuple[Path, str], ...]] = {}
    for pair in found.pairs:
        if pair.image not in bad:
            one = places[pair.image], looked[pair.image][0]
            files[pair.prompt_id] = (*files.get(pair.prompt_id, ()), one)
    told_of = {pair.prompt_id for pair in found.pairs} | withheld.keys()
    lacking = [f"{folder.name}/{one.prompt_id}" for one in prompts if one.prompt_id not in told_of]
    missing = [one for one in found.problems if one.code in _OF_FILES]
    told = [f"{folder.name}/{name}: {why}" for name, why in bad.items()]
    problems = (
        *missing,
        *_at(_UNREADABLE, told),
        *_at(_OTHER_PROMPT, other),
        *_at(_NO_IMAGE, lacking),
        *_at(_WITHHELD, [f"{folder.name}/{name}" for name in withheld]),
    )
    return ModelImages(folder.name, files, problems, withheld, unreadable)


def _looked_at(file: Path) -> tuple[str, str]:
    """Hash of a file's content, and why it is no image that can be scored; empty where it is one."""
    try:
        content = file.read_bytes()
        decode(content)
    except (OSError, ImageError) as error:
        return "", str(error)
    return hashlib.sha256(content).hexdigest(), ""


def _at(problem: Problem, places: Sequence[str]) -> Iterator[Problem]:
    if places:
        yield replace(problem, count=len(places), examples=tuple(map(clean, places)))


@dataclass(frozen=True)
class DrawnImages:
    """Images of both models that are to be scored, each content once for each prompt."""

    prompts: tuple[Prompt, ...]
    # prompt id to the hashes of its images, of the first model and of the second
    digests: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    places: Mapping[str, Path]  # hash to one of the files that have it
    missing: frozenset[str] = frozenset()  # prompts of which the second model will have no image
    withheld: tuple[int, int] = (0, 0)  # images of either model that its own table withholds

    def only(self, prompts: Sequence[Prompt]) -> DrawnImages:
        """The same of some of the prompts."""
        return replace(
            self,
            prompts=tuple(prompts),
            digests={one.prompt_id: self.digests[one.prompt_id] for one in prompts},
        )

    def awaits(self, prompt: Prompt) -> bool:
        """Whether the second model's images of a prompt are still to come."""
        return not self.digests[prompt.prompt_id][1] and prompt.prompt_id not in self.missing

    def pairs(self) -> list[tuple[str, str]]:
        """Hash of an image and its prompt, each once."""
        texts = {one.prompt_id: one.text for one in self.prompts}
        found = [
            (digest, texts[name])
            for name, models in self.digests.items()
            for of_model in models
            for digest in of_model
        ]
        return list(dict.fromkeys(found))

    def questions(self, pairs: Sequence[tuple[str, str]]) -> Questions:
        """Some of the pairs, as an engine asks them; the id of a pair is its place."""
        return Questions(
            images={
                digest: partial(_unchanged, self.places[digest], digest) for digest, _ in pairs
            },
            texts={text: text for _, text in pairs},
            pairs=tuple(Pair(str(n), *pair) for n, pair in enumerate(pairs)),
        )

    def same_images(self, prompts: Iterable[Prompt]) -> bool:
        """Whether both models have the very same images of these prompts."""
        return all(
            len({tuple(sorted(of)) for of in self.digests[one.prompt_id]}) == 1 for one in prompts
        )


def _unchanged(file: Path, digest: str) -> bytes:
    """Content of a file, which is still the one that was looked at."""
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise SubmitterError("image_changed", f"{file.name} changed while it was compared.")
    return content


def fingerprint(parts: Iterable[object]) -> str:
    """Hash of what has to stay the same, as JSON has it."""
    return hashlib.sha256(json.dumps(list(parts), sort_keys=True).encode()).hexdigest()[:32]


def drawn_images(
    first: ModelImages, second: ModelImages, prompts: Sequence[Prompt], *, growing: bool = False
) -> DrawnImages:
    """The images of the prompts that both models drew; ids of one text are one prompt.

    `growing`: of all that the first drew; where the second lacks one of a text's ids, and does not
    say that it is missing, it has no image.
    """
    lacking = first.files.keys() - second.files.keys() - second.missing
    not_yet = {one.text for one in prompts if growing and one.prompt_id in lacking}
    places: dict[str, Path] = {}
    by_text: dict[str, Prompt] = {}
    digests: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for one in prompts:
        if one.prompt_id not in first.files:
            continue
        if one.prompt_id not in second.files and not growing:
            continue
        before = by_text.get(one.text)
        name = one.prompt_id if before is None else before.prompt_id
        skills = (*(before.skills if before else ()), *one.skills)
        by_text[one.text] = Prompt(name, one.text, tuple(dict.fromkeys(skills)))
        sides = [
            first.files[one.prompt_id],
            () if one.text in not_yet else second.files.get(one.prompt_id, ()),
        ]
        places |= {digest: file for side in sides for file, digest in side}
        a, b = (tuple(digest for _, digest in side) for side in sides)
        there = digests.get(name, ((), ()))
        digests[name] = (there[0] + a, there[1] + b)
    missing = {one.prompt_id for text, one in by_text.items() if text not in not_yet}
    missing -= {name for name, of in digests.items() if of[1]}
    withheld = sum(first.withheld.values()), sum(second.withheld.values())
    return DrawnImages(tuple(by_text.values()), digests, places, frozenset(missing), withheld)


def growing_model(
    folder: Path, baseline: ModelImages, screening: Sequence[Prompt], held_out: Sequence[Prompt]
) -> ModelImages:
    """Images of a model that has drawn the screening prompts, and some of the others so far.

    A held-out prompt has images once they are as many as the baseline's, those that its table says
    are withheld included, and none is unreadable.
    """
    first, more = (model_images(folder, prompts) for prompts in (screening, held_out))

    def whole(name: str, of: ModelImages) -> bool:
        there = len(of.files.get(name, ())) + of.withheld.get(name, 0)
        return there >= len(baseline.files.get(name, ()))

    fewer = [f"{first.name}/{name}" for name in first.files if not whole(name, first)]
    drawn = {
        one.prompt_id
        for one in held_out
        if one.prompt_id in baseline.files
        and one.prompt_id not in more.unreadable
        and whole(one.prompt_id, more)
    }
    missing = frozenset(drawn - more.files.keys())
    gone = [f"{first.name}/{name}" for name in first.withheld if name not in first.files]
    other = [one for one in more.problems if one.code in {_OTHER_PROMPT.code, "files_alike"}]
    awaited = [
        replace(one, message=_AWAITED) for one in more.problems if one.code == _UNREADABLE.code
    ]
    return ModelImages(
        first.name,
        {**first.files, **{name: of for name, of in more.files.items() if name in drawn}},
        (*first.problems, *_at(_NO_IMAGE, gone), *_at(_FEWER_IMAGES, fewer), *other),
        withheld={**first.withheld, **more.withheld},
        missing=missing,
        notes=(*awaited, *_at(_PASSED_OVER, sorted(missing))),
    )


def single_model(model: ModelImages, prompts: Sequence[Prompt]) -> DrawnImages:
    """The images of one model alone."""
    drawn = drawn_images(model, model, prompts)
    return replace(drawn, digests={name: (of[0], ()) for name, of in drawn.digests.items()})
