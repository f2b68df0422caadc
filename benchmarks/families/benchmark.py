"""A benchmark that its card says in full; each family computes its own measures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.families.card import CardText, FamilyCard, FamilyName, family_card
from benchmarks.families.images import has_images, image_readers, names_at_url
from benchmarks.families.items import Items, items_of, questions_of
from benchmarks.families.tables import JoinedTable, read_tables
from benchmarks.released.bundle import sources_of
from benchmarks.rows import Row
from benchmarks.schema import Answers, Benchmark, MeasureInfo, Questions
from benchmarks.sources.folder import DataFolder


@dataclass(frozen=True)
class ItemAnswers(Answers):
    """Answers of a card; a family adds what people said of its rows."""

    items: Items

    def counts(self) -> dict[str, int]:
        """Pairs, prompts, images and models, and the rows of each skill."""
        pairs = self.items.pairs
        found = {"pairs": len(pairs), "prompts": len(self.clusters)}
        found["images"] = pairs["image"].nunique()
        models = pairs.loc[pairs["model"] != "", "model"].nunique()
        if models:
            found["models"] = models
        dropped = sum(self.items.dropped.values())
        if dropped:
            found["rows left out"] = dropped
        return found | {name: int(rows.sum()) for name, rows in self.items.skills().items()}


@dataclass(frozen=True)
class Ceiling:
    """What people reach in the headline measure, and how that is known."""

    value: float  # in the unit of the headline
    meaning: str  # in a sentence


class CardBenchmark(Benchmark):
    """A benchmark whose data, protocol and measures its card says; a family is a subclass."""

    infos: ClassVar[Mapping[str, MeasureInfo]]
    """Measures of the family."""
    usual_missing: ClassVar[str] = "wrong"
    """What becomes of what has no score, where the card does not say it."""
    family: ClassVar[FamilyName]
    """Whose protocol a subclass with code of its own follows; its card may name another family."""
    released: tuple[str, ...] = ()
    """Tables of the bundle of released results that stand in for files that are not at hand."""
    card: FamilyCard
    home: Path

    def __init__(self, card: FamilyCard, home: Path) -> None:
        super().__init__(card, home)
        self.asked_from = card.of_items.paths

    @classmethod
    def of(cls, card: FamilyCard, home: Path) -> CardBenchmark:
        """The benchmark of a card, with the folder of files that may lie beside it."""
        return cls(card, home)

    @classmethod
    def read(cls, path: Path) -> Self:
        """A benchmark with code of its own, from the card beside it; see `family_card`."""
        card = family_card(CardText.read(path), lambda _, given: cls.infos_of(given), cls.family)
        return cls(card, path.parent)

    @classmethod
    def infos_of(cls, given: Mapping[str, Any]) -> Mapping[str, MeasureInfo]:
        """Measures that a card may choose, from its content as it was read; all where nothing tells."""
        del given
        return cls.infos

    def link(self, known: Mapping[str, Benchmark]) -> None:
        """Look up the benchmarks that the card names; the default names none.

        `known`: all benchmarks, by name.
        """
        del known

    def items(self, folder: DataFolder) -> Items:
        """The items, from the tables that name them: none that only says what people said."""
        return items_of(folder, self.card, read_tables(folder, self.card.of_items))

    def answers(self, data: Path | None) -> ItemAnswers:
        """Read the tables of the card, or of the bundle, and what people said of each row."""
        folder = self.folder(data)
        if self._is_released(folder):
            rows = JoinedTable(self.released_rows())
            found = self.labelled(folder, items_of(folder, self.card, rows))
            return replace(found, sources=sources_of(*self.released))
        tables = read_tables(folder, self.card)
        found = self.labelled(folder, items_of(folder, self.card, tables))
        path = self.asked_from[0]
        counted = found.counts()
        for what in self.card.counts:
            folder.check_count(path, what, counted.get(what, 0))
        return found

    def released_rows(self) -> pd.DataFrame:
        """The joined rows of the card's tables, made of the tables `released`; empty without any."""
        return pd.DataFrame()

    def _is_released(self, folder: DataFolder) -> bool:
        """Whether the bundle stands in for files of the tables."""
        return bool(self.released) and not all(map(folder.has, self.card.paths))

    @abstractmethod
    def labelled(self, folder: DataFolder, items: Items) -> ItemAnswers:
        """The answers of the family: what people said, row by row.

        Raises:
            SubmitterError: `data_malformed`, naming file, row and column.
        """

    @abstractmethod
    def gold_of_pairs(self, answers: Any) -> FloatArray:
        """What people said of each pair on the headline's facet, a better one higher.

        A mean rating, the share of comparisons won (a tie is half), the share of true elements.

        Returns: shape (pairs,), in the order of `items.pairs`; NaN where nobody said anything.
        """

    def blank_row(self) -> Row:
        """A row of the card's variant without metric, measure and value."""
        row = Row(self.name, self.card.revision, "", "", np.nan)
        return replace(row, variant=self.card.evaluation.variant)

    @property
    def missing(self) -> str:
        """What becomes of what has no score."""
        return self.card.evaluation.missing or self.usual_missing

    def chance(self, answers: Any) -> float:
        """Expected headline of random scores, which may depend on the labels; NaN where unknown."""
        del answers
        known = self.card.measures[self.card.headline.measure].chance
        return np.nan if known is None else known

    def ceiling(self, answers: Any) -> Ceiling | None:
        """What people reach in the headline; None where the labels do not tell."""
        del answers
        return None

    def labels(self, answers: Any) -> Mapping[str, int]:
        """Labels by kind, e.g. `a`, `b`, `tie` or `yes`, `no`; none where there are no kinds."""
        del answers
        return {}

    def with_half_credit(self) -> Self:
        """This benchmark with half credit for a metric's ties, for controls; itself as a rule."""
        return self

    def elements_of_controls(
        self, overall: pd.DataFrame, answers: Any
    ) -> Mapping[str, pd.DataFrame]:
        """Element scores of controls, from their scores of pairs; see `ScoreTable.elements`."""
        del overall, answers
        return {}

    def has_images(self, data: Path | None) -> bool:
        """Whether the images are there, as far as their files tell; cheap."""
        return has_images(self.folder(data), self.card)

    def remote_names(self, path: str, data: Path | None) -> tuple[str, ...]:
        """Names of the images behind a declared address; see `Benchmark.remote_names`."""
        images = self.card.images
        if images is None or images.source != "url" or images.path != path:
            return ()
        return names_at_url(self.card, self.items(self.folder(data)))

    def questions(self, data: Path | None) -> Questions:
        """The images with their prompts, from where the card says that they are."""
        folder = self.folder(data)
        if self.card.images is None:
            raise SubmitterError(
                "images_missing",
                f"The card of {self.name} does not say where its images are.",
                f"Submit a scores file for {self.name} instead.",
            )
        items = self.items(folder)
        return questions_of(items, image_readers(folder, self.card, items))

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts, each once; see `Benchmark.prompts`."""
        if not self.card.items.text:
            return super().prompts(data)
        return self.items(self.folder(data)).prompts()

    def texts(self, data: Path | None) -> Mapping[str, str]:
        """Prompt id to the prompt; none where the card has no texts, as the bundle has none."""
        if not self.card.items.text or self._is_released(self.folder(data)):
            return {}
        found: dict[Any, str] = self.prompts(data).set_index("prompt_id")["prompt"].to_dict()
        return found
