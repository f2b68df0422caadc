"""Exported questions of a toy whose texts have elements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.question_folder import Key, QuestionFolder, export_questions, key_path
from benchmarks.schema import Benchmark, Element, Pair, Questions
from tests.benchmarks.toy import Toy


class Parted(Toy):
    """Two texts that name an element alike, as `1` in the first and `1` in the second."""

    def questions(self, data: Path | None) -> Questions:
        toy = super().questions(data)
        one = (Element("1", "pixel"), Element("0", "grey"))
        return Questions(
            toy.images,
            {"text": "a grey pixel", "other": "a pixel"},
            (*toy.pairs[:2], Pair("c", "image c", "other")),
            {"text": one, "other": (Element("1", "pixel"),)},
        )


@dataclass(frozen=True)
class Exported:
    benchmark: Benchmark
    out: Path

    @property
    def folder(self) -> Path:
        return self.out / self.benchmark.name

    @property
    def key(self) -> Key:
        return Key.read(key_path(self.out, self.benchmark.name))

    @property
    def questions(self) -> Questions:
        return QuestionFolder(self.out).questions(self.benchmark)


def exported_to(out: Path) -> Exported:
    export_questions(Parted(), None, out)
    return Exported(Parted(), out)


def of_revision(revision: str) -> Benchmark:
    other = Parted()
    other.card = other.card.model_copy(update={"revision": revision})
    return other
