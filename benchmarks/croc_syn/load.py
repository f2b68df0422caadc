"""Reads the prompt files of CROC_syn line by line into the answer side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.croc.answers import TEXTS
from benchmarks.croc.lengths import length_split
from benchmarks.croc_syn.answers import (
    IMAGE_MODELS,
    MODES,
    PROPERTIES,
    TEXT_MODELS,
    CrocSynAnswers,
)
from benchmarks.croc_syn.taxonomy import node_of
from benchmarks.sources.folder import DataFolder
from benchmarks.sources.strict_json import parse_json

FILES: dict[str, tuple[str, str]] = {
    f"croc_syn/3_extracted_prompts_{image}_{text}.jsonl": (image, text)
    for image in IMAGE_MODELS
    for text in TEXT_MODELS
}
"""Prompt file to its image model and its text model."""
SEPARATOR = "|||"
SIDES: tuple[tuple[str, str], ...] = (("prompts", "prompt"), ("contrast_prompts", "contrast"))
"""Folder of the images of a side, and the word in their names."""
_LONGEST_LINE = 1 << 24


@dataclass(frozen=True, slots=True)
class PromptPair:
    """One prompt pair of one prompt file.

    Attributes:
        image_model: `flux` or `sd`.
        text_model: `ds` or `qwen`.
        prompt_id: parts joined by `|||`.
        number: place in the lists of its line, from 0; part of the image names.
        prompt: the original T_O; empty where it could not be read.
        contrast: the contrast T_C; empty where it could not be read.
    """

    image_model: str
    text_model: str
    prompt_id: str
    number: int
    prompt: str
    contrast: str

    @property
    def is_whole(self) -> bool:
        """Whether both texts are there; otherwise nobody made its images."""
        return bool(self.prompt.strip() and self.contrast.strip())

    @property
    def parts(self) -> list[str]:
        """Mode, subject, property and so on, as far as the prompt has them."""
        return self.prompt_id.split(SEPARATOR)

    def image_ids(self, side: int, n_images: int) -> list[str]:
        """Path of each image below the folder of images, without `.png`; side 0 is the original."""
        folder, word = SIDES[side]
        stem = f"{self.prompt_id.replace(SEPARATOR, '_____')}_{word}_{self.number}"
        place = f"{self.image_model}/{self.text_model}/{folder}/{stem}_image_"
        return [f"{place}{k}" for k in range(n_images)]

    def text_id(self, text: str) -> str:
        """Id of one of its texts; `text` as in TEXTS."""
        stem = f"{self.image_model}/{self.text_model}/{self.prompt_id}/{self.number}"
        return f"{stem}|{text}"


def load_answers(folder: DataFolder, n_images: int) -> CrocSynAnswers:
    """Read the four prompt files.

    Args:
        folder: where they lie.
        n_images: images per prompt.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`, naming file, line and what was expected.
    """
    table = _Table()
    pair_ids: list[str] = []
    dropped = 0
    bare = {models: path for path, models in FILES.items()}
    for pair in prompt_pairs(folder):
        if not pair.is_whole:
            dropped += 1
            continue
        table.add(pair)
        bare.pop((pair.image_model, pair.text_model), None)
        for side in range(len(SIDES)):
            pair_ids += [f"{i}|{text}" for i in pair.image_ids(side, n_images) for text in TEXTS]
    needed = folder.expected("prompt files with prompt pairs") or 1
    if len(FILES) - len(bare) < needed:
        raise folder.malformed(
            next(iter(bare.values())),
            "holds no prompt pair with both texts; each of the four prompt files is needed",
        )
    last = next(reversed(FILES))
    folder.check_count(last, "prompt pairs", len(table.clusters))
    return CrocSynAnswers(
        pair_ids=tuple(pair_ids),
        clusters=tuple(table.clusters.values()),
        prompts=table.frame(),
        images_per_prompt=n_images,
        dropped=dropped,
        sources=folder.verified(),
    )


def prompt_pairs(folder: DataFolder) -> Iterator[PromptPair]:
    """All prompt pairs of the four files in their order, one line in memory at a time.

    Raises:
        SubmitterError: as for `load_answers`.
    """
    for path, models in FILES.items():
        seen: set[str] = set()
        with folder.path(path).open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if line.strip():
                    yield from _Line(folder, path, number, line).pairs(*models, seen)


class _Table:
    """The columns of `CrocSynAnswers.prompts`, filled row by row."""

    def __init__(self) -> None:
        self.clusters: dict[tuple[str, str], str] = {}
        self._positions: dict[tuple[str, str], int] = {}
        self._groups: dict[tuple[str, str, int], int] = {}
        self._rows: list[tuple[int, int, str, str, str, str, str, str]] = []

    def add(self, pair: PromptPair) -> None:
        key = (pair.prompt_id, pair.prompt)
        if key not in self.clusters:
            digest = hashlib.blake2b(pair.prompt.encode(), digest_size=6).hexdigest()
            self.clusters[key] = f"{pair.prompt_id}{SEPARATOR}{digest}"
        cluster = self._positions.setdefault(key, len(self._positions))
        # The same text twice under one id is one group with twice the images, as for the authors.
        group = self._groups.setdefault(
            (pair.image_model, pair.text_model, cluster), len(self._groups)
        )
        mode = pair.parts[0]
        leaf = pair.parts[2] if mode == PROPERTIES else ""
        self._rows.append(
            (
                cluster,
                group,
                mode,
                pair.image_model,
                pair.text_model,
                leaf,
                (node_of(leaf) or "") if leaf else "",
                length_split(pair.prompt),
            )
        )

    def frame(self) -> pd.DataFrame:
        names = ["mode", "image_model", "text_model", "property", "skill", "length"]
        frame = pd.DataFrame(self._rows, columns=["cluster", "group", *names])
        return frame.astype(dict.fromkeys(names, "category"))


class _Line:
    """One line of a prompt file; every error names the line."""

    def __init__(self, folder: DataFolder, path: str, number: int, line: bytes) -> None:
        self._folder, self._path, self._number = folder, path, number
        if len(line) == _LONGEST_LINE:
            raise self._error(f"is longer than {_LONGEST_LINE} bytes")
        try:
            self._record = parse_json(line)
        except ValueError as error:
            raise self._error(f"is not JSON ({error})") from error
        if not isinstance(self._record, dict):
            raise self._error("is no JSON object")

    def pairs(self, image_model: str, text_model: str, seen: set[str]) -> Iterator[PromptPair]:
        prompt_id = self._prompt_id()
        if prompt_id in seen:  # its images would have the names of the earlier ones
            raise self._error(f"repeats prompt_id {prompt_id!r}; expected each once in a file")
        seen.add(prompt_id)
        prompts, contrasts = self._texts("prompts"), self._texts("contrast_prompts")
        if len(prompts) != len(contrasts):
            raise self._error(
                f"has {len(prompts)} prompts and {len(contrasts)} contrast_prompts; expected as "
                "many of both"
            )
        for number, (prompt, contrast) in enumerate(zip(prompts, contrasts, strict=True)):
            yield PromptPair(image_model, text_model, prompt_id, number, prompt, contrast)

    def _prompt_id(self) -> str:
        prompt_id, mode = self._field("prompt_id", str), self._field("mode", str)
        parts = prompt_id.split(SEPARATOR)
        if mode not in MODES:
            raise self._error(f"has mode {mode!r}; expected one of {', '.join(MODES)}")
        if parts[0] != mode or "/" in prompt_id or "\0" in prompt_id:
            raise self._error(
                f"has prompt_id {prompt_id[:80]!r}; expected {mode} and further parts joined by "
                f"{SEPARATOR}, without a slash, since images are named after it"
            )
        if mode == PROPERTIES and (len(parts) < 3 or node_of(parts[2]) is None):
            raise self._error(
                f"has prompt_id {prompt_id[:80]!r}; expected its third part to be a property of "
                "the taxonomy, such as Rule_of_Thirds"
            )
        return str(prompt_id)

    def _texts(self, name: str) -> list[str]:
        texts = self._field(name, list)
        if not all(isinstance(text, str) for text in texts):
            raise self._error(f"has something else than text in {name}")
        return list(texts)

    def _field(self, name: str, kind: type) -> Any:
        value = self._record.get(name)
        if not isinstance(value, kind):
            what = "no" if name not in self._record else f"a {type(value).__name__} as"
            raise self._error(f"has {what} {name}; expected a {kind.__name__}")
        return value

    def _error(self, what: str) -> Exception:
        return self._folder.malformed(self._path, f"line {self._number} {what}")
