"""Whether a folder holds every image that is wanted: all that is wrong, at once."""

from __future__ import annotations

import hashlib
import io
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from PIL import Image, UnidentifiedImageError

from evaluator.generation.names import IMAGES
from evaluator.generation.prompts import Prompt
from evaluator.generation.rows import TABLE, ImageRow, parse_rows
from evaluator.scoring.images.canonical import MAX_PIXELS

FORMATS = ("PNG", "JPEG", "WEBP")
MAX_FILE_BYTES = 64 << 20
Kind = Literal["missing", "extra", "corrupt", "wrong_size", "wrong_prompt", "bad_row"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        kind: `missing` (no row, or no file), `extra` (a row or a file nobody asked for),
            `corrupt` (not the bytes the row names, or no image), `wrong_size` (other than the row
            says or than is allowed), `wrong_prompt` (drawn for another text), `bad_row` (a line of
            the table that cannot be used).
        where: file, or prompt id and seed, or line of the table.
        message: what is wrong, in words.
    """

    kind: Kind
    where: str
    message: str


@dataclass(frozen=True)
class FolderReport:
    """What a check found.

    Attributes:
        wanted: images that should be there.
        usable: images that are, and are right.
        withheld: key to why the maker withheld the image: stated, hence no problem of the folder.
        problems: everything that is wrong, in the order of the wanted images, extras last.
    """

    wanted: int
    usable: int
    withheld: Mapping[tuple[str, int], str]
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def counts(self) -> dict[str, int]:
        """How many problems of each kind."""
        kinds = [problem.kind for problem in self.problems]
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def check_folder(
    folder: Path, prompts: Sequence[Prompt], seeds: Sequence[int], table: str = TABLE
) -> FolderReport:
    """Check a folder of generations against what is wanted, reading every image whole.

    The folder may be anyone's: nothing outside of it is read, links are not followed, and no
    image is decoded that says to be huge.

    Args:
        folder: with the table and the images.
        prompts: every prompt that must have been drawn.
        seeds: every seed it must have been drawn with.
        table: the table's path inside the folder.
    """
    content = _bytes_inside(folder, table)
    if isinstance(content, str):
        missing = Problem("missing", table, content)
        return FolderReport(len(prompts) * len(seeds), 0, {}, (missing,))
    rows, broken = parse_rows(content)
    problems = [Problem("bad_row", f"{table}, line {b.line}", b.reason) for b in broken]
    by_key: dict[tuple[str, int], ImageRow] = {}
    named: set[str | None] = set()
    for row in rows:
        if row.key in by_key:
            problems.append(Problem("bad_row", _name(row.key), "there are two rows of it"))
        elif row.file is not None and row.file in named:
            problems.append(Problem("bad_row", _name(row.key), f"{row.file} is another row's too"))
        by_key.setdefault(row.key, row)
        named.add(row.file)
    wanted = {(p.prompt_id, seed): p.text for p in prompts for seed in seeds}
    usable, withheld = 0, {}
    for key, text in wanted.items():
        found = by_key.get(key)
        if found is not None and found.file is None and found.problem:
            withheld[key] = found.problem
            continue
        wrong = list(_check_image(folder, key, text, found))
        problems += wrong
        usable += not wrong
    problems += _extras(folder, by_key, wanted)
    return FolderReport(len(wanted), usable, withheld, tuple(problems))


def _check_image(
    folder: Path, key: tuple[str, int], text: str, row: ImageRow | None
) -> Iterator[Problem]:
    if row is None or row.file is None:
        said = (
            "the table has no row of it" if row is None else "its row names no file and no reason"
        )
        yield Problem("missing", _name(key), said)
        return
    if row.prompt is not None and row.prompt != text:
        yield Problem("wrong_prompt", _name(key), f"it was drawn for {row.prompt[:80]!r}")
    data = _bytes_inside(folder, row.file)
    if isinstance(data, str):
        yield Problem("missing", row.file, f"{data} (for {_name(key)})")
        return
    if row.sha256 is not None and hashlib.sha256(data).hexdigest() != row.sha256:
        yield Problem("corrupt", row.file, "its bytes are not those that the table names")
        return
    yield from _check_pixels(row, data)


def _check_pixels(row: ImageRow, data: bytes) -> Iterator[Problem]:
    where = row.file or ""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            size = image.size
            if size[0] * size[1] > MAX_PIXELS:
                yield Problem("wrong_size", where, f"{size[0]} x {size[1]} pixels are too many")
                return
            image.load()
    except (UnidentifiedImageError, Image.DecompressionBombError):
        yield Problem("corrupt", where, f"not an image as {', '.join(FORMATS)}")
        return
    except (OSError, SyntaxError, EOFError, ValueError) as error:
        yield Problem("corrupt", where, f"a damaged image ({error})")
        return
    if (row.width or size[0], row.height or size[1]) != size:
        said = f"{size[0]} x {size[1]} pixels, and the table says {row.width} x {row.height}"
        yield Problem("wrong_size", where, said)


def _extras(
    folder: Path, rows: Mapping[tuple[str, int], ImageRow], wanted: Iterable[tuple[str, int]]
) -> Iterator[Problem]:
    asked = frozenset(wanted)
    for key in rows:
        if key not in asked:
            yield Problem("extra", _name(key), "nobody asked for this prompt and seed")
    named = {row.file for row in rows.values()}
    for path in sorted((folder / IMAGES).rglob("*")):
        file = path.relative_to(folder).as_posix()
        if not path.is_dir() and file not in named:
            yield Problem("extra", file, "no row names this file")


def _bytes_inside(folder: Path, file: str) -> bytes | str:
    """The bytes of a file of the folder, or why there are none."""
    parts = PurePosixPath(file).parts
    if not parts or file.startswith("/") or ".." in parts or "\\" in file or "\0" in file:
        return "its path does not stay inside the folder"
    places = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    try:
        if any(place.is_symlink() for place in places):
            return "it is a link"
        found = places[-1].stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
            return f"it is no file of at most {MAX_FILE_BYTES >> 20} MB"
        return places[-1].read_bytes()
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def _name(key: tuple[str, int]) -> str:
    return f"{key[0][:80]}, seed {key[1]}"
