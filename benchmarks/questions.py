"""Question side of a benchmark as a folder, for a host that holds no answers.

    <out>/<benchmark>/benchmark.json     name, revision, tag of the export, counts, hashes of tables
                      pairs.parquet      pair_id, image_id, text_id
                      texts.parquet      text_id, prompt
                      elements.parquet   element_id, text_id, element; where there are any
                      lists.parquet      list, pair_id
                      images.parquet     image_id, file, sha256, n_bytes
                      images/000001 ...  the encoded images
    <out>/<benchmark>.key.parquet        the ids behind the opaque ones: stays with the judge

Ids of a benchmark may tell labels (`000-03` has three errors), so the host gets opaque ones. Tables
are in the order of their ids, a secret shuffle; only the elements of one text keep the order in
which a scorer is asked about them.
"""

from __future__ import annotations

import hashlib
import io
import random
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Self, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.parquet import parquet_frame, parquet_table
from benchmarks.parsing import parse_json
from benchmarks.schema import Benchmark, Element, Pair, Questions, ScoreTable
from benchmarks.sources.output import write_whole

PAIRS = "pairs.parquet"
TEXTS = "texts.parquet"
IMAGE_TABLE = "images.parquet"
ELEMENTS = "elements.parquet"
LISTS = "lists.parquet"
BETWEEN_PAIRS = " > "
"""Between the ids of the pairs of a comparison, in the id that it is asked by."""

ImageRow = tuple[str, str, str, int]
"""image_id, file, SHA-256, bytes."""


def damaged(place: Path, what: str) -> PlatformError:
    """The error for a file of an exported folder that is not as it was exported."""
    return PlatformError(
        "questions_damaged",
        f"{place} is not as it was exported: {what}.",
        "Copy the folder again from where `python -m benchmarks questions` wrote it.",
    )


def sha256(content: bytes) -> str:
    """The hash as the tables hold it."""
    return hashlib.sha256(content).hexdigest()


def to_tables(questions: Questions, images: list[ImageRow]) -> dict[str, pd.DataFrame]:
    """The tables by file name; that of elements only where there are any."""
    pairs = [(pair.pair_id, pair.image_id, pair.text_id) for pair in questions.pairs]
    elements = [(e.element_id, t, e.text) for t, many in questions.elements.items() for e in many]
    tables = {
        PAIRS: pd.DataFrame(pairs, columns=["pair_id", "image_id", "text_id"]),
        TEXTS: pd.DataFrame(list(questions.texts.items()), columns=["text_id", "prompt"]),
        IMAGE_TABLE: pd.DataFrame(images, columns=["image_id", "file", "sha256", "n_bytes"]),
    }
    if elements:
        tables[ELEMENTS] = pd.DataFrame(elements, columns=["element_id", "text_id", "element"])
    if questions.lists is not None:
        of_lists = [(n, pair) for n, pairs in enumerate(questions.lists) for pair in pairs]
        tables[LISTS] = pd.DataFrame(of_lists, columns=["list", "pair_id"])
    return tables


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Write each table below a folder; returns the SHA-256 of each file."""
    digests = {}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        (folder / name).write_bytes(buffer.getvalue())
        digests[name] = sha256(buffer.getvalue())
    return digests


def read_tables(folder: Path, digests: Mapping[str, str]) -> Questions:
    """The questions of a folder; each image is read, and checked, when it is asked for."""
    needed = {PAIRS, TEXTS, IMAGE_TABLE}
    if not needed <= set(digests) <= needed | {ELEMENTS, LISTS}:
        raise damaged(folder, f"its tables are {', '.join(sorted(digests))}")
    tables = {name: _table(folder / name, digest) for name, digest in digests.items()}
    texts, pairs, images = tables[TEXTS], tables[PAIRS], tables[IMAGE_TABLE]
    return Questions(
        images=_readers(folder / "images", list(images.itertuples(index=False, name=None))),
        texts=dict(zip(texts["text_id"], texts["prompt"], strict=True)),
        pairs=tuple(Pair(*row) for row in pairs.itertuples(index=False, name=None)),
        elements=_by_text(tables[ELEMENTS]) if ELEMENTS in tables else {},
        lists=_lists(tables[LISTS]) if LISTS in tables else None,
    )


def _table(path: Path, digest: str) -> pd.DataFrame:
    content = _checked_bytes(path, digest)
    try:
        return parquet_frame(content)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise damaged(path, str(error)) from error


def _by_text(table: pd.DataFrame) -> dict[str, tuple[Element, ...]]:
    found: dict[str, list[Element]] = {}
    for element_id, text_id, text in table.itertuples(index=False, name=None):
        found.setdefault(text_id, []).append(Element(element_id, text))
    return {text_id: tuple(many) for text_id, many in found.items()}


def _lists(table: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pairs) for _, pairs in table.groupby("list", sort=True)["pair_id"])


def _readers(folder: Path, images: list[ImageRow]) -> dict[str, Callable[[], bytes]]:
    """Readers of the images, once all of them are known to be there."""
    sizes = dict(_sizes(folder))
    odd = [file for _, file, _, size in images if sizes.get(file) != size]
    if odd:
        raise damaged(
            folder,
            f"{len(odd)} of {len(images)} images are missing or of another size, the first is "
            f"{odd[0]}",
        )
    return {
        image: partial(_checked_bytes, folder / file, digest) for image, file, digest, _ in images
    }


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    try:
        for file in folder.iterdir():
            yield file.name, file.stat().st_size
    except OSError as error:
        raise damaged(folder, str(error.strerror or error)) from error


def _checked_bytes(path: Path, digest: str) -> bytes:
    """A file that is as it was exported."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise damaged(path, str(error.strerror or error)) from error
    if sha256(content) != digest:
        raise damaged(path, "its SHA-256 is another")
    return content


Id = TypeVar("Id", str, tuple[str, str])

_COLUMNS = ("kind", "opaque_id", "id", "text_id")
_ABOUT = ("benchmark", "revision", "tag")


def key_path(out: Path, name: str) -> Path:
    """Path of a benchmark's key: beside its exported folder, not in it."""
    return out / f"{name}.key.parquet"


@dataclass(frozen=True)
class Key:
    """Key of one export: the benchmark's own ids behind the opaque ones.

    Every opaque id ends in the tag of its export, so scores that belong to another key are
    refused, not given to the wrong pairs.
    """

    benchmark: str  # registry name
    revision: str  # of the benchmark's data
    tag: str  # of the export, eight hexadecimal digits
    pairs: Mapping[str, str]  # opaque id to pair_id, in the benchmark's order
    images: Mapping[str, str]  # opaque id to image_id
    texts: Mapping[str, str]  # opaque id to text_id
    # opaque id to (text_id, element_id); an element_id is unique within its text only
    elements: Mapping[str, tuple[str, str]]

    @classmethod
    def drawn(cls, benchmark: Benchmark, questions: Questions, rng: random.Random) -> Self:
        """A new key: every kind of id is numbered in an order of its own."""
        tag = f"{rng.getrandbits(32):08x}"
        parts = _elements(questions)
        return cls(
            benchmark=benchmark.name,
            revision=benchmark.card.revision,
            tag=tag,
            pairs=dict(_numbered("p", [pair.pair_id for pair in questions.pairs], tag, rng)),
            images=dict(_numbered("i", list(questions.images), tag, rng)),
            texts=dict(_numbered("t", list(questions.texts), tag, rng)),
            elements=dict(_numbered("e", parts, tag, rng)),
        )

    def fits(self, benchmark: Benchmark, questions: Questions) -> bool:
        """Whether the key names exactly these questions, of this revision."""
        return (
            (self.benchmark, self.revision) == (benchmark.name, benchmark.card.revision)
            and set(self.pairs.values()) == {pair.pair_id for pair in questions.pairs}
            and set(self.images.values()) == set(questions.images)
            and set(self.texts.values()) == set(questions.texts)
            and set(self.elements.values()) == set(_elements(questions))
        )

    def hide(self, questions: Questions) -> Questions:
        """The same questions under opaque ids, each kind in the order of its numbers.

        The elements of a text keep their order: scorers may depend on it, and it tells nothing
        that their words do not.
        """
        pair, image, text = (_turned(one) for one in (self.pairs, self.images, self.texts))
        part = _turned(self.elements)
        pairs = (Pair(pair[p.pair_id], image[p.image_id], text[p.text_id]) for p in questions.pairs)
        elements = {
            text[of]: tuple(Element(part[of, one.element_id], one.text) for one in many)
            for of, many in questions.elements.items()
        }
        return Questions(
            images={image[name]: questions.images[name] for name in _by_opaque(self.images)},
            texts={text[name]: questions.texts[name] for name in _by_opaque(self.texts)},
            pairs=tuple(sorted(pairs, key=lambda pair: pair.pair_id)),
            elements={name: elements[name] for name in sorted(elements)},
            lists=None
            if questions.lists is None
            else tuple(
                sorted(tuple(sorted(pair[one] for one in pairs)) for pairs in questions.lists)
            ),
        )

    def restore_elements(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table with columns `pair_id`, `element_id`, under its own names, in the order of pairs."""
        self._check(table["pair_id"].unique(), self.pairs, "pair")
        self._check(table["element_id"].unique(), self.elements, "element")
        place = {opaque: at for at, opaque in enumerate(self.pairs)}
        order = table["pair_id"].map(place).argsort(kind="stable")
        sorted_table = table.iloc[order].reset_index(drop=True)
        return sorted_table.assign(
            pair_id=sorted_table["pair_id"].map(self.pairs),
            element_id=[self.elements[opaque][1] for opaque in sorted_table["element_id"]],
        )

    def restore_table(self, table: ScoreTable) -> ScoreTable:
        """Scores of whole metrics, with their elements, under the names of the benchmark."""
        there = set(table.overall.index)
        self._check(there, self.pairs, "pair")
        opaque = [one for one in self.pairs if one in there]
        overall = table.overall.loc[opaque]
        overall.index = pd.Index([self.pairs[one] for one in opaque], name="pair_id")
        return ScoreTable(
            overall,
            elements={name: self.restore_elements(one) for name, one in table.elements.items()},
            directions=table.directions,
            margins={name: self._restore_margins(one) for name, one in table.margins.items()},
            repaired={
                name: frozenset(self.original(one) for one in ids)
                for name, ids in table.repaired.items()
            },
        )

    def _restore_margins(self, table: pd.DataFrame) -> pd.DataFrame:
        names = ["pair_id", "other_id"]
        self._check(pd.unique(table[names].to_numpy().ravel()), self.pairs, "pair")
        return table.assign(**{name: table[name].map(self.pairs) for name in names})

    def original(self, opaque: str) -> str:
        """The benchmark's own id of a pair, image, text or element, e.g. of a finding.

        A comparison is named by two pairs, and so by both of theirs.
        """
        if BETWEEN_PAIRS in opaque:
            first, _, second = opaque.partition(BETWEEN_PAIRS)
            return f"{self.original(first)}{BETWEEN_PAIRS}{self.original(second)}"
        for names in (self.pairs, self.images, self.texts):
            if opaque in names:
                return names[opaque]
        self._check((opaque,), self.elements, "question")
        return self.elements[opaque][1]

    def write(self, path: Path) -> None:
        """Write the key, for its owner alone."""
        rows = [
            *(("pair", opaque, name, "") for opaque, name in self.pairs.items()),
            *(("image", opaque, name, "") for opaque, name in self.images.items()),
            *(("text", opaque, name, "") for opaque, name in self.texts.items()),
            *(("element", opaque, name, text) for opaque, (text, name) in self.elements.items()),
        ]
        schema = pa.schema(
            [(name, pa.string()) for name in _COLUMNS],
            metadata={name: str(getattr(self, name)) for name in _ABOUT},
        )
        table = pa.table([[row[n] for row in rows] for n in range(len(_COLUMNS))], schema=schema)

        def write(place: Path) -> None:
            place.unlink(missing_ok=True)
            place.touch(mode=0o600)
            pq.write_table(table, place)

        write_whole(path, write)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key."""
        try:
            table = parquet_table(path.read_bytes(), list(_COLUMNS))
            about = {name: table.schema.metadata[name.encode()].decode() for name in _ABOUT}
            rows = list(zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True))
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise PlatformError(
                "key_unreadable",
                f"{path} cannot be read as the key of exported questions: {error}.",
                "Copy it again from where `python -m benchmarks questions` wrote it.",
            ) from error

        def named(kind: str) -> dict[str, str]:
            return {opaque: name for of, opaque, name, _ in rows if of == kind}

        return cls(
            **about,
            pairs=named("pair"),
            images=named("image"),
            texts=named("text"),
            elements={o: (text, name) for of, o, name, text in rows if of == "element"},
        )

    def _check(self, found: Iterable[str], known: Mapping[str, object], what: str) -> None:
        foreign = [one for one in found if one not in known]
        if foreign:
            raise PlatformError(
                "key_mismatch",
                f"{len(foreign)} {what} ids, e.g. {str(foreign[0])[:60]!a}, are not of the "
                f"key of {self.benchmark} with tag {self.tag}.",
                "Give the scoring host the folder that was exported with this key.",
            )


def _elements(questions: Questions) -> list[tuple[str, str]]:
    return [(text, one.element_id) for text, many in questions.elements.items() for one in many]


def _numbered(
    prefix: str, ids: Sequence[Id], tag: str, rng: random.Random
) -> Iterator[tuple[str, Id]]:
    """Each id with its opaque one, in the order of the ids."""
    if len(set(ids)) < len(ids):
        raise PlatformError(
            "questions_inconsistent", "The benchmark's questions do not fit: an id is there twice."
        )
    numbers = list(range(1, len(ids) + 1))
    rng.shuffle(numbers)
    for number, name in zip(numbers, ids, strict=True):
        yield f"{prefix}{number:06d}-{tag}", name


def _turned(names: Mapping[str, Id]) -> dict[Id, str]:
    return {name: opaque for opaque, name in names.items()}


def _by_opaque(names: Mapping[str, str]) -> list[str]:
    """The benchmark's ids in the order of their opaque ones."""
    return [names[opaque] for opaque in sorted(names)]


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
    """

    root: Path  # holds one folder per benchmark

    def has(self, benchmark: Benchmark) -> bool:
        """Whether the questions of this benchmark are there, in this revision."""
        return (self.root / benchmark.name / ABOUT).is_file() and _is_of(
            self.about(benchmark.name), benchmark
        )

    def about(self, name: str) -> About:
        """The `benchmark.json` of a benchmark."""
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
        """The questions under opaque ids; each image is read, and checked, when it is asked for."""
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

    `rng`: of the shuffle; None: the random numbers of the operating system.
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
