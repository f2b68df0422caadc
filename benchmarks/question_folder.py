"""The question side of a benchmark as a folder of its own, for a host that holds no answers.

    <out>/<benchmark>/benchmark.json     name, revision, tag of the export, counts, hashes of tables
                      pairs.parquet      pair_id, image_id, text_id
                      texts.parquet      text_id, prompt
                      elements.parquet   element_id, text_id, element; where there are any
                      images.parquet     image_id, file, sha256, n_bytes
                      images/000001 ...  the encoded images
    <out>/<benchmark>.key.parquet        what the ids stand for: stays with the judge

All ids are opaque, and tables are in the order of their ids, a secret shuffle; only the elements
of one text keep the order in which a scorer is asked about them.
"""

from __future__ import annotations

import random
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.question_key import Key, key_path
from benchmarks.question_tables import (
    ImageRow,
    damaged,
    read_tables,
    sha256,
    to_tables,
    write_tables,
)
from benchmarks.schema import Benchmark, Questions
from benchmarks.sources.strict_json import parse_json

__all__ = ["About", "Key", "QuestionFolder", "Tell", "export_questions", "key_path"]

ABOUT = "benchmark.json"
IMAGES = "images"

Tell = Callable[[int, int], None]
"""Called with the images that are written and all of them."""


class About(BaseModel):
    """The `benchmark.json` of an exported folder."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1]
    name: str
    revision: str
    tag: str
    """Of the export; every id ends in it, and the key has the same."""
    counts: dict[str, int]
    """`pairs`, `texts`, `images`, `elements`, `bytes`."""
    tables: dict[str, str]
    """File name to SHA-256."""


@dataclass(frozen=True)
class QuestionFolder:
    """Exported questions of some benchmarks.

    Whatever is wrong with it is no fault of a submitter, so it raises `PlatformError` alone.

    Attributes:
        root: holds one folder per benchmark.
    """

    root: Path

    def has(self, benchmark: Benchmark) -> bool:
        """Whether the questions of this benchmark are there, in this revision.

        Raises:
            PlatformError: `questions_damaged`, its `benchmark.json` is not one.
        """
        return (self.root / benchmark.name / ABOUT).is_file() and _is_of(
            self.about(benchmark.name), benchmark
        )

    def about(self, name: str) -> About:
        """What is there of a benchmark.

        Raises:
            PlatformError: `questions_missing` or `questions_damaged`.
        """
        place = self.root / name / ABOUT
        if not place.is_file():
            raise _missing(place.parent, f"there is no {ABOUT}")
        try:
            return About.model_validate(parse_json(place.read_bytes()))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise damaged(place, f"{where}: {first['msg']}") from error
        except (OSError, ValueError) as error:
            raise damaged(place, str(error)) from error

    def questions(self, benchmark: Benchmark) -> Questions:
        """The questions under opaque ids; each image is read, and checked, when it is asked for.

        Raises:
            PlatformError: `questions_missing` (not there, or of another revision) or
                `questions_damaged`; readers of images raise the latter.
        """
        about, folder = self.about(benchmark.name), self.root / benchmark.name
        if not _is_of(about, benchmark):
            raise _missing(
                folder, f"it is of {about.name} {about.revision}, not {benchmark.card.revision}"
            )
        return read_tables(folder, about.tables)


def export_questions(
    benchmark: Benchmark,
    data: Path | None,
    out: Path,
    tell: Tell = lambda _done, _total: None,
    *,
    force: bool = False,
    rng: random.Random | None = None,
) -> Path:
    """Write the questions of a benchmark to `out/<name>/`, and their key beside it.

    Where the key of this revision is there already, it is used again, so that hosts with an
    earlier copy of the folder, and scores under way, stay valid.

    Args:
        benchmark: whose questions.
        data: folder of data files, if any.
        out: holds the exported folders and their keys; made if needed.
        tell: progress.
        force: replace what is there of another revision, and draw a new key.
        rng: of the shuffle; None: the random numbers of the operating system.

    Returns:
        The folder.

    Raises:
        SubmitterError: `not_a_question_folder`, `other_revision`, `other_questions`,
            `key_unreadable` or `cannot_write`; what `Benchmark.questions` raises.
    """
    target = out / benchmark.name
    _check_target(target, benchmark, force=force)
    questions = benchmark.questions(data)
    key = None if force else _key_there(key_path(out, benchmark.name), benchmark, questions)
    key = key or Key.drawn(benchmark, questions, rng or random.SystemRandom())
    draft = out / f".draft-{benchmark.name}-{secrets.token_hex(4)}"
    with _writing(draft):
        (draft / IMAGES).mkdir(parents=True)
        _write(draft, benchmark, key, key.hide(questions), tell)
        key.write(key_path(out, benchmark.name))
        _move(draft, target)
    return target


def _check_target(target: Path, benchmark: Benchmark, *, force: bool) -> None:
    """Refuse before any work is done."""
    if not target.exists():
        return
    if not (target / ABOUT).is_file():
        raise SubmitterError(
            "not_a_question_folder",
            f"{target} exists and holds no exported questions.",
            "Choose another folder with --out.",
        )
    if force:
        return
    try:
        found = QuestionFolder(target.parent).about(benchmark.name)
    except PlatformError as error:
        raise SubmitterError(error.code, error.message, "Replace it with --force.") from error
    if not _is_of(found, benchmark):
        raise SubmitterError(
            "other_revision",
            f"{target} holds {found.name} {found.revision}, not {benchmark.card.revision}.",
            "Replace it, and its key, with --force, or choose another folder with --out.",
        )


def _key_there(path: Path, benchmark: Benchmark, questions: Questions) -> Key | None:
    """The key of an earlier export, or None where there was none."""
    if not path.exists():
        return None
    replace = "Replace it with --force; scores under way are then lost."
    try:
        key = Key.read(path)
    except PlatformError as error:
        raise SubmitterError(error.code, error.message, replace) from error
    if not key.fits(benchmark, questions):
        raise SubmitterError(
            "other_questions",
            f"{path} is the key of other questions than {benchmark.name} now has in revision "
            f"{benchmark.card.revision}.",
            replace,
        )
    return key


@contextmanager
def _writing(draft: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SubmitterError(
            "cannot_write",
            f"The questions cannot be written to {draft.parent}: {error.strerror or error}.",
            "Choose another folder with --out.",
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(draft: Path, benchmark: Benchmark, key: Key, questions: Questions, tell: Tell) -> None:
    images: list[ImageRow] = []
    for number, (image, read) in enumerate(questions.images.items(), start=1):
        content, name = _bytes_of(key.original(image), read), f"{number:06d}"
        (draft / IMAGES / name).write_bytes(content)
        images.append((image, name, sha256(content), len(content)))
        tell(number, len(questions.images))
    tables = to_tables(questions, images)
    about = About(
        format=1,
        name=benchmark.name,
        revision=benchmark.card.revision,
        tag=key.tag,
        counts={
            **{Path(name).stem: len(table) for name, table in tables.items()},
            "bytes": sum(size for *_, size in images),
        },
        tables=write_tables(draft, tables),
    )
    (draft / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", "utf-8")


def _bytes_of(image: str, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except OSError as error:
        raise SubmitterError(
            "images_missing",
            f"Image {image!a} cannot be read: {error.strerror or error}.",
            "See `python -m benchmarks describe` for what should be there.",
        ) from error


def _move(draft: Path, target: Path) -> None:
    """Put the draft in place; what was there goes last, so that it is never half there."""
    if not target.exists():
        draft.rename(target)
        return
    old = draft.with_name(f"{draft.name}-old")
    target.rename(old)
    try:
        draft.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _is_of(about: About, benchmark: Benchmark) -> bool:
    return (about.name, about.revision) == (benchmark.name, benchmark.card.revision)


def _missing(folder: Path, why: str) -> PlatformError:
    return PlatformError(
        "questions_missing",
        f"{folder} does not hold the questions that are needed: {why}.",
        "Export them with `python -m benchmarks questions`, and copy the folder here.",
    )
