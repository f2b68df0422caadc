"""Images of a folder with the prompts of a table: which image goes with which prompt, and what is wrong.

The table is CSV, JSON Lines or a data set of the Hub, with a column `prompt`, and

    `file` or `image`   the image's path in the folder; in JSON Lines also a list of paths, or
    `prompt_id` or `id` the images are `<id>.<ending>` or lie in the folder `<id>/`.

An image that several rows name is scored with each of their prompts. No image is scored with a prompt
that no row gives it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.parsing import parse_json
from benchmarks.problems import Problem, one_error
from benchmarks.schema import Element, Pair, Questions
from evaluator.scoring.images import ImageError, decode
from leaderboard.text import clean

ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
"""Of files that are taken for images."""
FILE_COLUMNS = ("file", "image")
ID_COLUMNS = ("prompt_id", "id")
PROMPT_COLUMN = "prompt"
_THREADS = 4

_PROMPT_UNMATCHED = Problem(
    "prompt_unmatched",
    "No image goes by the id of a row: none is named so but for its ending, or lies in a folder "
    "named so",
    "Name the images in a column `file`, or leave the row out. Ids are of names below the folder, or of "
    "the paths by which images were named one by one.",
)
_IMAGE_MISSING = Problem(
    "image_missing",
    "A row names an image that is not in the folder",
    "Paths are relative to the folder of images, or as images were named one by one; the names of "
    f"images end in {', '.join(sorted(ENDINGS))}.",
)
_FILES_ALIKE = Problem(
    "files_alike",
    "Several files are named by one id and differ in their endings alone",
    "Remove the stale one, or put several images of a prompt into a folder named by its id.",
)
_PAIR_TWICE = Problem(
    "pair_twice",
    "A row names an image with a prompt again",
    "Leave one of the rows out.",
)
_IMAGE_UNMATCHED = Problem(
    "image_unmatched",
    "No row names an image of the folder",
    "Add a row, move the image elsewhere, or score what fits with --partial.",
)
_IMAGE_UNREADABLE = Problem(
    "image_unreadable",
    "An image cannot be scored",
    "Make or fetch it anew.",
)
_BAD_PROMPT_ROW = Problem(
    "bad_prompt_row",
    "A row of prompts says too little",
    "Each row has `prompt`, and `file` (or `image`) or `prompt_id` (or `id`).",
)

Tell = Callable[[int, int], None]
"""Told how many images were looked at, and of how many."""


@dataclass(frozen=True)
class PromptRow:
    """A row of a table of prompts."""

    where: str  # for messages: `prompts.csv, row 3`
    prompt: str
    prompt_id: str = ""  # empty where the table has none
    files: tuple[str, ...] = ()  # as the row names them


@dataclass(frozen=True)
class ImagePair:
    """An image and a prompt that are scored together."""

    image: str  # path below the folder, or as it was given
    prompt: str
    prompt_id: str = ""


@dataclass(frozen=True)
class MatchedImages:
    """What is scored, and what is not."""

    pairs: tuple[ImagePair, ...]
    places: Mapping[str, Path]  # each image's file
    problems: tuple[Problem, ...]

    def questions(self, elements: Sequence[str] = ()) -> Questions:
        """The pairs as an engine asks them; the id of a pair is its number, that of a text its prompt."""
        named = tuple(Element(str(n), text) for n, text in enumerate(elements))
        texts = {pair.prompt: pair.prompt for pair in self.pairs}
        return Questions(
            images={pair.image: self.places[pair.image].read_bytes for pair in self.pairs},
            texts=texts,
            pairs=tuple(Pair(str(n), one.image, one.prompt) for n, one in enumerate(self.pairs)),
            elements=dict.fromkeys(texts, named) if named else {},
        )

    @property
    def fingerprint(self) -> str:
        """What changes where an image, a prompt or their order does."""
        states = {image: place.stat() for image, place in self.places.items()}
        told = [
            (one.image, one.prompt, states[one.image].st_size, states[one.image].st_mtime_ns)
            for one in self.pairs
        ]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def images_below(folder: Path) -> dict[str, Path]:
    """The images of a folder and the folders in it, by path; hidden ones are left out."""
    if not folder.is_dir():
        raise SubmitterError("no_folder", f"There is no folder {folder}.", "Name one of images.")
    return {path.relative_to(folder).as_posix(): path for path in sorted(_images(folder))}


def _images(folder: Path, inside: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Linked folders too, but for those that lead back to where they lie."""
    place = os.path.realpath(folder)
    if place in inside:
        return
    try:
        found = list(folder.iterdir())
    except OSError as error:
        why = error.strerror or str(error)
        raise SubmitterError("no_folder", f"{folder} cannot be read ({why}).") from error
    for path in found:
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _images(path, inside | {place})
        elif path.suffix.lower() in ENDINGS and path.is_file():
            yield path


def crossed(places: Mapping[str, Path], prompts: Iterable[PromptRow]) -> MatchedImages:
    """Every image with every prompt."""
    rows = list(prompts)
    pairs = [ImagePair(i, row.prompt, row.prompt_id) for i in places for row in rows]
    return MatchedImages(tuple(dict.fromkeys(pairs)), places, ())


def matched(places: Mapping[str, Path], rows: Sequence[PromptRow]) -> MatchedImages:
    """Each image with the prompts whose rows name it."""
    by_id, known = _by_id(places), {_composed(name): name for name in places}
    pairs: dict[ImagePair, str] = {}
    unmatched, missing, twice = [], [], []
    alike: dict[str, None] = {}
    for row in rows:
        files = row.files or by_id.get(_composed(row.prompt_id), ())
        if not files:
            unmatched.append(f"{row.where} ({row.prompt_id})")
        direct = (
            [] if row.files else [file for file in files if _stem(file) == _composed(row.prompt_id)]
        )
        if len(direct) > 1:
            alike |= dict.fromkeys(direct)
            files = tuple(file for file in files if file not in direct)
        for file in files:
            name = PurePosixPath(file).as_posix()
            name = name if name in places else known.get(_composed(name), name)
            pair = ImagePair(name, row.prompt, row.prompt_id)
            if name not in places:
                missing.append(f"{row.where} ({file})")
            elif pair in pairs:
                twice.append(f"{row.where} ({file}, as in {pairs[pair]})")
            else:
                pairs[pair] = row.where
    asked = {pair.image for pair in pairs}
    left = [name for name in places if name not in asked and name not in alike]
    problems = [
        *_at(_PROMPT_UNMATCHED, unmatched),
        *_at(_IMAGE_MISSING, missing),
        *_at(_FILES_ALIKE, list(alike)),
        *_at(_PAIR_TWICE, twice),
        *_at(_IMAGE_UNMATCHED, left),
    ]
    used = {name: place for name, place in places.items() if name in asked}
    return MatchedImages(tuple(pairs), used, tuple(problems))


def _at(problem: Problem, places: Sequence[str]) -> Iterator[Problem]:
    """The problem with the places where it is found; none where there is no place."""
    if places:
        yield replace(problem, count=len(places), examples=tuple(map(clean, places)))


def readable(found: MatchedImages, tell: Tell = lambda *_: None) -> MatchedImages:
    """The same without images that cannot be scored, which are problems; every one is decoded."""
    bad: dict[str, str] = {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="images") as pool:
        looked = zip(
            found.places,
            pool.map(_trouble_of, *zip(*found.places.items(), strict=True)),
            strict=True,
        )
        for number, (name, why) in enumerate(looked, start=1):
            if why:
                bad[name] = f"{name}: {why}"
            tell(number, len(found.places))
    return MatchedImages(
        tuple(pair for pair in found.pairs if pair.image not in bad),
        {name: place for name, place in found.places.items() if name not in bad},
        (*found.problems, *_at(_IMAGE_UNREADABLE, tuple(bad.values()))),
    )


def read_prompts(named: str) -> list[PromptRow]:
    """The rows of a table, all that is wrong with it told at once.

    `named`: a file that ends in .csv or .jsonl, or a data set as `datasets` names it, with
    `:SPLIT` behind it where it has several.
    """
    place = Path(named)
    ending = place.suffix.lower()
    if ending in {".csv", ".jsonl"}:
        records = _of_csv(place) if ending == ".csv" else _of_jsonl(place)
    elif place.is_file():
        raise SubmitterError(
            "unknown_format",
            f"{named} is neither CSV nor JSON Lines.",
            "Write a file that ends in .csv or .jsonl.",
        )
    else:
        records = _of_dataset(named)
    rows: list[PromptRow] = []
    wrong: list[str] = []
    for where, record in records:
        try:
            rows.append(_row(f"{place.name}, {where}", record))
        except ValueError as error:
            wrong.append(f"{place.name}, {where}: {error}")
    if wrong:
        raise one_error(list(_at(_BAD_PROMPT_ROW, wrong)))
    if not rows:
        raise SubmitterError("no_prompts", f"{named} holds no prompts.", "Write a row for each.")
    return rows


def _by_id(places: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Prompt id to the images that go by it: `<id>.png`, and those in the folder `<id>/`."""
    found: dict[str, list[str]] = {}
    for name in places:
        path = PurePosixPath(name)
        for prompt_id in {_stem(name), *(_composed(str(up)) for up in path.parents)} - {"."}:
            found.setdefault(prompt_id, []).append(name)
    return {prompt_id: tuple(names) for prompt_id, names in found.items()}


def _stem(name: str) -> str:
    return _composed(PurePosixPath(name).with_suffix("").as_posix())


def _composed(name: str) -> str:
    """Accents are one character or two, as the system that wrote a name has it."""
    return unicodedata.normalize("NFC", name)


def _trouble_of(name: str, place: Path) -> str:
    try:
        name.encode()
        decode(place.read_bytes())
    except OSError as error:
        return error.strerror or str(error)
    except ImageError as error:
        return str(error)
    except UnicodeEncodeError:
        return "its name is not UTF-8; rename it"
    return ""


def _row(where: str, record: Mapping[str, Any]) -> PromptRow:
    prompt = record.get(PROMPT_COLUMN)
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError("there is no prompt")
    given: Any = next((record[name] for name in FILE_COLUMNS if record.get(name)), [])
    files = [given] if isinstance(given, str) else given
    if not isinstance(files, list) or not all(isinstance(file, str) and file for file in files):
        raise ValueError("its images are no paths")
    prompt_id = next((str(record[n]) for n in ID_COLUMNS if record.get(n) not in (None, "")), "")
    if not files and not prompt_id:
        raise ValueError("it names no image, and no id that images go by")
    return PromptRow(where, prompt, prompt_id, tuple(files))


Record = tuple[str, Mapping[str, Any]]


def _of_csv(place: Path) -> Iterator[Record]:
    rows = csv.DictReader(io.StringIO(_text(place), newline=""), strict=True)
    try:
        _check_columns(place, rows.fieldnames or ())
        for number, record in enumerate(rows, start=1):
            if None in record:
                raise csv.Error("it has more cells than the header; texts with commas are quoted")
            yield f"row {number}", record
    except csv.Error as error:
        raise SubmitterError("bad_prompts", f"{place}, line {rows.line_num}: {error}.") from error


def _check_columns(place: Path, columns: Sequence[str]) -> None:
    told = ", ".join(f"`{clean(name)}`" for name in columns)
    if columns and PROMPT_COLUMN not in columns:
        raise SubmitterError(
            "bad_prompts",
            f"{place} has no column `{PROMPT_COLUMN}`; it has {told}.",
            "Its first line names the columns, with commas between them.",
        )
    if len(set(columns)) < len(columns):
        raise SubmitterError(
            "bad_prompts", f"Columns of {place} have one name: {told}.", "Name each once."
        )


def _of_jsonl(place: Path) -> Iterator[Record]:
    for number, line in enumerate(_text(place).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line.encode())
        except ValueError as error:
            raise SubmitterError(
                "bad_prompts", f"{place}, line {number} is no JSON: {error}."
            ) from error
        if not isinstance(record, dict):
            raise SubmitterError("bad_prompts", f"{place}, line {number} is no JSON object.")
        yield f"line {number}", record


def _text(place: Path) -> str:
    try:
        return place.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise SubmitterError("no_prompts", f"There is no file {place}.") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise SubmitterError("no_prompts", f"{place} cannot be read ({why}).") from error
    except UnicodeDecodeError as error:
        raise SubmitterError(
            "bad_prompts", f"{place} is not UTF-8.", "Save it as UTF-8."
        ) from error


def _of_dataset(named: str) -> Iterator[Record]:
    try:
        # Only where it is wanted: it takes seconds to import, and comes with an extra.
        from datasets import load_dataset  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise PlatformError(
            "libraries_missing",
            f"{named} is no file, and the package `datasets` is not installed.",
            "Name a .csv or .jsonl file, or install the extra: pip install 'assay[metrics]'.",
        ) from error
    name, _, split = named.partition(":")
    try:
        splits = load_dataset(name)
    except Exception as error:  # whatever that library, its scripts and its client raise
        why = str(error).strip().splitlines()
        raise SubmitterError(
            "no_prompts",
            f"{name} is no file, and no data set that can be loaded: {why[0] if why else error!r}",
            "Name a .csv or .jsonl file, or a data set as OWNER/NAME or OWNER/NAME:SPLIT.",
        ) from error
    chosen = split or (next(iter(splits)) if len(splits) == 1 else "")
    if chosen not in splits:
        known = ", ".join(splits)
        raise SubmitterError(
            "unknown_split", f"{name} has the splits {known}.", f"Say which: {name}:SPLIT."
        )
    table = splits[chosen]
    # Pictures in the table itself are not those of the folder.
    held = {name for name, of in table.features.items() if type(of).__name__ != "Image"}
    if PROMPT_COLUMN not in held:
        raise SubmitterError(
            "bad_prompts",
            f"{named} has no column `{PROMPT_COLUMN}`.",
            "Write its prompts into a .csv or .jsonl file.",
        )
    wanted = [name for name in (PROMPT_COLUMN, *FILE_COLUMNS, *ID_COLUMNS) if name in held]
    for number, record in enumerate(table.select_columns(wanted), start=1):
        yield f"row {number}", record
