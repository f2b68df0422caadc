"""Opaque names for all that a scoring host sees, and the key that turns them back.

Ids of a benchmark may tell labels (`000-03` has three errors, `...|contrast` is the wrong prompt),
so a scoring host gets numbers in a secret order instead. The key stays with the judge.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import PlatformError
from benchmarks.parquet import parquet_table
from benchmarks.schema import Benchmark, Element, Pair, Questions, ScoreTable
from benchmarks.sources.output import write_whole

Id = TypeVar("Id", str, tuple[str, str])

_COLUMNS = ("kind", "opaque_id", "id", "text_id")
_ABOUT = ("benchmark", "revision", "tag")


def key_path(out: Path, name: str) -> Path:
    """Where the key of a benchmark is written: beside its exported folder, not in it."""
    return out / f"{name}.key.parquet"


@dataclass(frozen=True)
class Key:
    """What the opaque ids of one export stand for.

    Every opaque id ends in the tag of its export, so scores that belong to another key are
    refused, not given to the wrong pairs.

    Attributes:
        benchmark: registry name.
        revision: of the benchmark's data.
        tag: of the export, eight hexadecimal digits.
        pairs: opaque id to pair_id, in the benchmark's order.
        images: opaque id to image_id.
        texts: opaque id to text_id.
        elements: opaque id to (text_id, element_id); an element_id is unique within its text only.
    """

    benchmark: str
    revision: str
    tag: str
    pairs: Mapping[str, str]
    images: Mapping[str, str]
    texts: Mapping[str, str]
    elements: Mapping[str, tuple[str, str]]

    @classmethod
    def drawn(cls, benchmark: Benchmark, questions: Questions, rng: random.Random) -> Self:
        """A new key: every kind of id is numbered in an order of its own.

        Args:
            benchmark: whose questions they are.
            questions: as the benchmark gives them.
            rng: `random.SystemRandom()`, except in tests.

        Raises:
            PlatformError: `questions_inconsistent`, a pair or element is there twice.
        """
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
        )

    def restore(self, scores: Mapping[str, float]) -> dict[str, float]:
        """Scores by pair_id, in the benchmark's order; pairs without a score stay absent.

        Args:
            scores: by opaque id of the pair.

        Raises:
            PlatformError: `key_mismatch`, an id is not of this key.
        """
        self._check(scores, self.pairs, "pair")
        return {name: scores[opaque] for opaque, name in self.pairs.items() if opaque in scores}

    def restore_elements(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table with columns `pair_id`, `element_id`, under its own names, in the order of pairs.

        Raises:
            PlatformError: `key_mismatch`.
        """
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
        """Scores of whole metrics, with their elements, under the names of the benchmark.

        Raises:
            PlatformError: `key_mismatch`.
        """
        there = set(table.overall.index)
        self._check(there, self.pairs, "pair")
        opaque = [one for one in self.pairs if one in there]
        overall = table.overall.loc[opaque]
        overall.index = pd.Index([self.pairs[one] for one in opaque], name="pair_id")
        return ScoreTable(
            overall,
            elements={name: self.restore_elements(one) for name, one in table.elements.items()},
            directions=table.directions,
            repaired={
                name: frozenset(self.original(one) for one in ids)
                for name, ids in table.repaired.items()
            },
        )

    def original(self, opaque: str) -> str:
        """The benchmark's own id of a pair, image, text or element, e.g. of a finding.

        Raises:
            PlatformError: `key_mismatch`.
        """
        for names in (self.pairs, self.images, self.texts):
            if opaque in names:
                return names[opaque]
        self._check((opaque,), self.elements, "question")
        return self.elements[opaque][1]

    def write(self, path: Path) -> None:
        """Write the key, for its owner alone.

        Raises:
            SubmitterError: `cannot_write`.
        """
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
        """Read a key.

        Raises:
            PlatformError: `key_unreadable`, it is missing or not a key.
        """
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
