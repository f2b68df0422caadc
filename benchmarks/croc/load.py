"""Reads the released files of CROC_hum: a table of prompt pairs, and the images it lists."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pandas as pd

from benchmarks.croc.answers import TEXTS, CrocHumAnswers, PromptPair, pair_id
from benchmarks.schema import Pair, Questions
from benchmarks.sources.folder import DataFolder, data_row
from benchmarks.sources.images import folder_images

METADATA = "croc_hum/croc_hum_metadata.tsv"
IMAGES = "croc_hum/croc_hum.tar.gz"
CATEGORIES: tuple[str, ...] = (
    "shapes",
    "spacial_relation",
    "size_relation",
    "counting",
    "body_parts",
    "action",
    "things_parts",
    "negation",
)
"""As they are spelt in the ids of prompt pairs."""
SHARED = "negation"
"""The category whose prompt pairs may list the same images of "A" as others do."""

_LISTS = ("prompt_paths", "contrast_paths", "alt_contrast_paths")
_COLUMNS = ("id", "prompt", "contrast", *_LISTS)
_LONGEST_CELL = 1 << 20
_EMPTY = frozenset({"", "nan", "NaN", "NA", "N/A", "null", "NULL", "None"})
"""Cells that the authors' reader takes for missing: then a pair has no images on that side."""


def load_answers(folder: DataFolder) -> CrocHumAnswers:
    """Read the metadata: prompt pairs with the images of either side.

    Raises:
        SubmitterError: `data_missing` (no folder, no file) or `data_malformed` (a column is
            missing, a cell is no list of paths, an unknown category, a repeated id, an image
            that stands twice other than shared by pairs of negation, other counts than the
            card's).
    """
    pairs, _ = _read(folder)
    return CrocHumAnswers(
        pair_ids=tuple(pair_id(s, text) for pair in pairs for s in pair.images for text in TEXTS),
        clusters=tuple(pair.id for pair in pairs),
        prompt_pairs=pairs,
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder) -> Questions:
    """Every image with both prompts of its pair.

    Raises:
        SubmitterError: `images_missing`, and what `load_answers` raises.
    """
    pairs, paths = _read(folder)
    base = folder.beside(IMAGES)
    root = _root_of_images(base) or base
    image = {name: PurePosixPath(path).stem for name, path in paths.items()}
    return Questions(
        images=folder_images("croc_hum", root, {image[name]: paths[name] for name in paths}),
        texts={
            pair_id(pair.id, text): said
            for pair in pairs
            for text, said in zip(TEXTS, (pair.prompt, pair.contrast), strict=True)
        },
        pairs=tuple(
            Pair(pair_id(name, text), image[name], pair_id(pair.id, text))
            for pair in pairs
            for name in pair.images
            for text in TEXTS
        ),
    )


def has_images(folder: DataFolder) -> bool:
    """Whether the archive was unpacked; that each image is there, `load_questions` checks."""
    return folder.has(METADATA) and _root_of_images(folder.beside(IMAGES)) is not None


def load_prompts(folder: DataFolder) -> pd.DataFrame:
    """Both prompts of every pair, each text once under the id of its first appearance.

    Returns:
        Columns `prompt_id` (`<id>|orig` or `<id>|contrast`), `prompt`, `split` (empty), `skills`
        (categories, joined by `;`).

    Raises:
        SubmitterError: what `load_answers` raises.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for pair in _read(folder)[0]:
        for text, said in zip(TEXTS, (pair.prompt, pair.contrast), strict=True):
            _, categories = found.setdefault(said, (pair_id(pair.id, text), []))
            if pair.category not in categories:
                categories.append(pair.category)
    return pd.DataFrame(
        [(name, said, "", ";".join(skills)) for said, (name, skills) in found.items()],
        columns=["prompt_id", "prompt", "split", "skills"],
    )


def _read(folder: DataFolder) -> tuple[tuple[PromptPair, ...], dict[str, str]]:
    """The prompt pairs, and the path of each image by its name in pair ids."""
    table = folder.read_table(METADATA, _COLUMNS, separator="\t")
    folder.check_count(METADATA, "prompt pairs", len(table))
    paths: dict[str, str] = {}
    alone: dict[str, str] = {}
    pairs: dict[str, PromptPair] = {}
    for row in _rows(folder, table):
        if row.id in pairs:
            raise row.error("stands for the second time; expected each id once")
        category = row.category()
        # Images of "A and no B" often show B, so negation is tested with images of "A" alone.
        original = row.names(row.images("prompt_paths"), paths)
        if category == SHARED:
            contrast = row.names(row.images("alt_contrast_paths"), paths, alone)
        else:
            contrast = row.names(row.images("contrast_paths"), paths)
        texts = row.text("prompt"), row.text("contrast")
        pairs[row.id] = PromptPair(row.id, category, *texts, original, contrast)
    folder.check_count(METADATA, "images", len(paths))
    return tuple(pairs.values()), paths


def shared_name(stem: str, pair: str) -> str:
    """Name, in the pair ids of a prompt pair, of an image that an earlier prompt pair lists too."""
    return f"{stem}@{pair}"


def _rows(folder: DataFolder, table: pd.DataFrame) -> Iterator[_Row]:
    for number, cells in enumerate(table[list(_COLUMNS)].to_dict("records")):
        yield _Row(folder, data_row(number), cells)


class _Row:
    """One row of the metadata; every error says which row it is, and its id."""

    def __init__(self, folder: DataFolder, place: str, cells: dict[Any, str]) -> None:
        self._folder, self._place, self._cells = folder, place, cells
        self.id = cells["id"]

    def error(self, what: str) -> Exception:
        return self._folder.malformed(METADATA, f"{self._place}: {self.id!r} {what}")

    def category(self) -> str:
        """By the start of the id, as the authors choose the rows of a category."""
        for category in CATEGORIES:
            if self.id.startswith(category):
                return category
        raise self.error(f"is of no known category; expected one of {', '.join(CATEGORIES)}")

    def text(self, column: str) -> str:
        if not self._cells[column].strip():
            raise self.error(f"has an empty {column}")
        return self._cells[column]

    def images(self, column: str) -> tuple[str, ...]:
        """Paths below the folder of the unpacked archive."""
        # The released lists say `images/<category>/...`, the archive holds `<category>/...`, and
        # the authors delete every `images/` from the joined path. That would also cut it out of the
        # folder a user chose for the data, so here it is taken from the listed path alone.
        paths = [path.replace("images/", "") for path in self._list(column) if path]
        for path in paths:
            if not _is_below(path):
                raise self.error(f"lists {path!r} in {column}; expected a path below the archive")
        return tuple(paths)

    def names(
        self, listed: tuple[str, ...], paths: dict[str, str], shared: dict[str, str] | None = None
    ) -> tuple[str, ...]:
        """Names of listed images in pair ids: the stems of their files.

        Args:
            listed: their paths.
            paths: path of every image so far, by name; those listed are added.
            shared: path to the prompt pair that listed it first, for images that several prompt
                pairs may list; those listed are added. Their text depends on the prompt pair, so
                each further one names the image anew; see `shared_name`.
        """
        names = []
        for path in listed:
            name = PurePosixPath(path).stem
            if shared is not None and shared.setdefault(path, self.id) != self.id:
                name = shared_name(name, self.id)
            if name in paths:  # its scores could not be told from those of the other one
                raise self.error(f"lists {path!r}, but an image {paths[name]!r} came before")
            paths[name] = path
            names.append(name)
        return tuple(names)

    def _list(self, column: str) -> list[str]:
        cell = self._cells[column]
        if cell.strip() in _EMPTY:
            return []
        if "\\" in cell:
            raise self.error(f"has a backslash in column {column}: {cell[:60]!r}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of Python's parser, about what is no list anyway
                found = ast.literal_eval(cell) if len(cell) <= _LONGEST_CELL else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, Warning):
            found = None
        if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
            raise self.error(
                f"has {cell[:60]!r} in column {column}; expected a list of paths, such as "
                "['images/counting/prompt/x.jpg']"
            )
        return found


def _is_below(path: str) -> bool:
    """Whether a listed path leads to a file below the archive, on any system."""
    pure = PurePosixPath(path)
    leaves = pure.is_absolute() or ".." in pure.parts or bool(PureWindowsPath(path).drive)
    return bool(pure.stem) and not leaves and path.isprintable()


def _root_of_images(base: Path) -> Path | None:
    """The folder that holds the category folders: beside the archive, or one below."""
    if not base.is_dir():
        return None
    # A hidden folder is what an interrupted unpacking left behind.
    below = sorted(p for p in base.iterdir() if p.is_dir() and not p.name.startswith("."))
    return next(
        (
            root
            for root in (base, *below)
            if any((root / category).is_dir() for category in CATEGORIES)
        ),
        None,
    )
