"""Family of elements: people said whether parts of a prompt are in an image, and a metric should know.

A part is a word, an object, a question, or the pair of image and prompt as a whole. A metric has a
score for each part (`element_id`, `element_score` in a scores file); where each pair is one part its
score of the pair counts. From a threshold on it says that the part is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.cases import image_cases
from benchmarks.families.benchmark import CardBenchmark, Ceiling, ItemAnswers
from benchmarks.families.card import Element, FamilyCard, Search
from benchmarks.families.cuts import FOLDS, Cut, Scored
from benchmarks.families.items import Items
from benchmarks.families.measures import guesses, with_measures
from benchmarks.families.slices import slices_of
from benchmarks.pooled import MAX_MISSING
from benchmarks.rows import Measured, MeasuredBuilder, Row, notes
from benchmarks.schema import Element as QuestionElement
from benchmarks.schema import MeasureInfo, Questions, ScoreTable, scores_of_elements
from benchmarks.sources.folder import DataFolder, data_row
from benchmarks.statistics.detection import (
    AGREEMENTS,
    auroc,
    average_precision,
    expected_average_precision,
)
from benchmarks.statistics.resampling import ResamplingPlan

WHOLE = "whole"
"""Id of the part that a pair is, where the card names no parts."""
MEASURES: dict[str, MeasureInfo] = {
    "auroc": MeasureInfo.share(
        title="AUROC",
        meaning="Chance that a part that is there has a higher score than one that is not; equal "
        "scores count half.",
        chance=0.5,
        source="area under the receiver operating characteristic",
    ),
    "average_precision": MeasureInfo.share(
        title="Average precision",
        meaning="Mean, over the parts that are there, of the share of such parts among all that "
        "score at least as high. Random scores reach little more than the share of parts that are "
        "there.",
        source="step-wise area under the precision-recall curve",
    ),
    "balanced_accuracy": MeasureInfo.share(
        title="Balanced accuracy",
        meaning="Mean of two shares: of the parts that are there and of those that are not, how many "
        "the metric calls so.",
        chance=0.5,
        source="mean of sensitivity and specificity",
    ),
    "accuracy": MeasureInfo.share(
        title="Accuracy",
        meaning="Share of parts that the metric calls there or not as people do.",
        source="accuracy of a yes or no",
    ),
    "f1": MeasureInfo.share(
        title="F1",
        meaning="Harmonic mean of precision and recall for parts that are there.",
        source="van Rijsbergen 1979",
    ),
    "kappa": MeasureInfo.correlation(
        title="Cohen's κ",
        meaning="Agreement of the metric with people beyond that of a metric that says yes as often, "
        "at random.",
        source="Cohen 1960",
    ),
}
_MISSING: Mapping[str, str] = {
    "absent": "counted as not there",
    "wrong": "counted as wrong",
    "drop": "left out",
}


@dataclass(frozen=True)
class Labels:
    """Labelled parts, E of them, in the order in which they first stand."""

    keys: pd.DataFrame  # columns `pair_id`, `element_id`, `text`
    line: IntArray  # shape (E,), line of `Items.pairs`
    of_row: IntArray  # shape (rows,), part of each row
    share: FloatArray  # shape (E,), mean label, 0..1
    yes: FloatArray  # shape (E,), single labels that say that it is there
    votes: FloatArray  # shape (E,), single labels; 0 where only their share is known


@dataclass(frozen=True)
class Units:
    """What is counted, U of them: each part, or each image with all of its parts."""

    line: IntArray  # shape (U,), line of `Items.pairs`
    of_part: IntArray  # shape (E,), unit of each part
    positive: BoolArray  # shape (U,), whether people say that it is there


@dataclass(frozen=True)
class ElementAnswers(ItemAnswers):
    """What people said of the parts."""

    labels: Labels
    units: Units

    def counts(self) -> dict[str, int]:
        """Parts, and how many are there, beside the counts of the items."""
        found = {"elements": len(self.labels.line), "images or elements": len(self.units.line)}
        if len(self.labels.line) == len(self.units.line):
            found.pop("images or elements")
        found["there"] = int(self.units.positive.sum())
        return super().counts() | found


@dataclass(frozen=True)
class _Part:
    """Units that have rows of their own."""

    split: str | None
    skill: str | None
    inside: BoolArray  # shape (U,)


class ElementBenchmark(CardBenchmark):
    """Parts of prompts that people found in images, or did not."""

    infos: ClassVar[Mapping[str, MeasureInfo]] = MEASURES
    usual_missing = "absent"

    def __init__(self, card: FamilyCard, home: Path) -> None:
        super().__init__(_with_rules(card), home)
        assert card.element is not None
        self.said: Element = card.element

    def labelled(self, folder: DataFolder, items: Items) -> ElementAnswers:
        """The labels of the parts."""
        labels = _labels(folder, self.card.tables[0].paths[0], items, self.said)
        there = labels.share >= self.said.cut
        if self.said.of == "elements":
            units = Units(labels.line, np.arange(len(there)), there)
        else:
            lines, of_part = np.unique(labels.line, return_inverse=True)
            units = Units(lines, of_part, np.bincount(of_part, ~there) == 0)
        return ElementAnswers(
            items.pair_ids, items.clusters, items, labels, units, sources=folder.verified()
        )

    def measure(
        self, scores: ScoreTable, answers: ElementAnswers, plan: ResamplingPlan
    ) -> Measured:
        """All measures of every metric, overall, by split and by skill."""
        builder = MeasuredBuilder(plan.n_resamples)
        prompts = answers.items.pairs["prompt_id"].to_numpy(object)[answers.units.line]
        codes, names = pd.factorize(prompts)
        clusters = plan.positions(names)[codes]
        parts = list(self._parts(answers))
        row = self.blank_row()
        for metric in scores.metrics:
            found, note = self._scores(scores, answers, metric)
            # Of whole pairs `oriented` has scores in a unit of its own.
            unit = 1.0 if metric in scores.elements else scores.unit(metric)
            unit *= scores.directions.get(metric, 1)
            work = _Metric(
                self, answers, plan, clusters=clusters, values=found, unit=unit, note=note
            )
            for part in parts:
                named = replace(row, metric=metric, split=part.split, skill=part.skill)
                for measure in self.card.measures:
                    work.add(builder, replace(named, measure=measure), part.inside)
        return builder.build()

    def _scores(
        self, scores: ScoreTable, answers: ElementAnswers, metric: str
    ) -> tuple[FloatArray | None, str]:
        """Scores of the units, shape (U,), NaN where there is none, and what to say of them."""
        units, labels = answers.units, answers.labels
        if metric not in scores.elements:
            several = self.said.of == "elements" and len(np.unique(labels.line)) < len(labels.line)
            if several:
                return None, "gives no element scores"
            overall = scores.oriented().loc[list(answers.pair_ids), metric].to_numpy(np.float64)
            return overall[units.line], ""
        given, n_unknown = scores_of_elements(scores.oriented_elements(metric), labels.keys)
        unknown = f"element scores without a label, which are left out: {n_unknown}"
        note = unknown if n_unknown else ""
        if self.said.of == "elements":
            return given, note
        if self.said.mean == "gm" and (given < 0).any():
            return None, "a geometric mean needs element scores of at least 0"
        number = np.bincount(units.of_part, minlength=len(units.line))
        with np.errstate(divide="ignore"):
            values = np.log(given) if self.said.mean == "gm" else given
        mean = np.bincount(units.of_part, values, len(units.line)) / number
        return (np.exp(mean) if self.said.mean == "gm" else mean), note

    def searching(self, answers: ElementAnswers) -> BoolArray:
        """Shape (U,): units on which a threshold is searched, which are not evaluated."""
        rule = self.said.threshold
        if not isinstance(rule, Search):
            return np.zeros(len(answers.units.line), bool)
        rows = (answers.items.rows["split"] == rule.on).to_numpy(bool)
        return _units_of(answers, rows)

    def _parts(self, answers: ElementAnswers) -> Iterator[_Part]:
        evaluated = ~self.searching(answers)
        for part in slices_of(self.card, answers.items):
            inside = _units_of(answers, part.rows) & evaluated
            if inside.any():
                yield _Part(part.split, part.skill, inside)

    # What the labels alone say.

    def gold_of_pairs(self, answers: ElementAnswers) -> FloatArray:
        """Share of each pair's parts that are there."""
        line, size = answers.labels.line, len(answers.pair_ids)
        there = np.bincount(line, answers.labels.share >= self.said.cut, size)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = there / np.bincount(line, minlength=size)
        return found

    def chance(self, answers: ElementAnswers) -> float:
        """Expected headline of scores that know nothing; see `facts`."""
        return self._of_nothing(answers, self.card.headline.measure)

    def _of_nothing(self, answers: ElementAnswers, measure: str) -> float:
        """Random scores; of accuracy the commoner answer, of F1 always yes: the best that knows nothing."""
        positive = answers.units.positive[~self.searching(answers)]
        n, n_true = positive.size, int(positive.sum())
        if measure == "average_precision":
            return expected_average_precision(n, n_true)
        if measure in ("accuracy", "f1"):
            return max(_of_answer(measure, n, n_true, said) for said in (0, n))
        return 0.0 if measure == "kappa" else 0.5

    def ceiling(self, answers: ElementAnswers) -> Ceiling | None:
        """One rater against the others, where single labels were released."""
        measure = self.card.headline.measure
        # The area under the curve of a yes or no is its balanced accuracy.
        name = "balanced_accuracy" if measure == "auroc" else measure
        value = self._of_one_rater(answers).get(name, math.nan)
        return None if math.isnan(value) else Ceiling(value, "one rater against the others")

    def _of_one_rater(self, answers: ElementAnswers) -> dict[str, float]:
        """Each label as a verdict on what the other raters of the part say; parts weigh alike."""
        yes, votes = answers.labels.yes, answers.labels.votes
        several = votes > 1
        if self.said.of == "prompts" or not several.any():
            return {}
        yes, votes = yes[several], votes[several]
        hits = true = said = np.zeros(())
        for own, number in ((1.0, yes), (0.0, votes - yes)):
            there = (yes - own) / (votes - 1) >= self.said.cut
            weight = number / votes
            hits = hits + own * (weight * there).sum()
            said = said + own * weight.sum()
            true = true + (weight * there).sum()
        n = np.asarray(float(several.sum()))
        return {name: float(formula(hits, said, true, n)) for name, formula in AGREEMENTS.items()}

    def labels(self, answers: ElementAnswers) -> Mapping[str, int]:
        """Units that are there, and that are not."""
        n_true = int(answers.units.positive.sum())
        return {"yes": n_true, "no": len(answers.units.line) - n_true}

    def facts(self, answers: ElementAnswers) -> Mapping[str, pd.DataFrame]:
        """What is reached without a look at an image, and by people."""
        positive = answers.units.positive[~self.searching(answers)]
        n, n_true = positive.size, int(positive.sum())
        found = guesses(
            self.card,
            {
                "knowing nothing": lambda measure: self._of_nothing(answers, measure),
                "always yes": lambda measure: _of_answer(measure, n, n_true, n),
                "always no": lambda measure: _of_answer(measure, n, n_true, 0),
            },
        )
        people = self._of_one_rater(answers)
        if people:
            yes, votes = answers.labels.yes, answers.labels.votes
            alike = yes * (yes - 1) + (votes - yes) * (votes - yes - 1)
            people["share of pairs of raters who agree"] = float(
                alike.sum() / (votes * (votes - 1)).sum()
            )
            table = {"measure": list(people), "one rater": list(people.values())}
            found["How far people agree"] = pd.DataFrame(table)
        return found

    def cases(self, answers: ElementAnswers, data: Path | None) -> pd.DataFrame | None:
        """The images of each prompt; none where the prompts are not at hand."""
        if not self.card.items.text:
            return None
        pairs, labels = answers.items.pairs, answers.labels
        gold = self.gold_of_pairs(answers)
        number = np.bincount(labels.line, minlength=len(gold))
        there = np.nan_to_num(gold * number).round().astype(int)
        rows = answers.items.rows
        skills = rows.groupby("prompt_id", sort=False)["skills"].agg(";".join)
        return image_cases(
            pairs["pair_id"].tolist(),
            pairs["prompt_id"].tolist(),
            gold,
            [f"{k} of {n} there" for k, n in zip(there, number, strict=True)],
            texts=self.texts(data),
            skills={str(name): _distinct(cell) for name, cell in skills.items()},
            splits=rows.groupby("prompt_id")["split"].first().to_dict(),
        )

    def questions(self, data: Path | None) -> Questions:
        """The images with their prompts and the parts of these."""
        found = super().questions(data)
        if not self.said.element_text:
            return found
        folder = self.folder(data)
        items = self.items(folder)
        labels = _labels(folder, self.card.tables[0].paths[0], items, self.said)
        text_of = {pair.pair_id: pair.text_id for pair in found.pairs}
        named = labels.keys.assign(text_id=labels.keys["pair_id"].map(text_of))
        named = named.drop_duplicates(["text_id", "element_id"])
        elements: dict[str, tuple[QuestionElement, ...]] = {
            str(text_id): tuple(
                QuestionElement(one, text)
                for one, text in zip(part["element_id"], part["text"], strict=True)
            )
            for text_id, part in named.groupby("text_id", sort=False)
        }
        return replace(found, elements=elements)

    def elements_of_controls(
        self, overall: pd.DataFrame, answers: ElementAnswers
    ) -> Mapping[str, pd.DataFrame]:
        """To every part of a pair the control's score of the pair."""
        keys = answers.labels.keys[["pair_id", "element_id"]]
        values = overall.loc[list(answers.pair_ids)].to_numpy(np.float64)[answers.labels.line]
        return {str(name): keys.assign(score=values[:, k]) for k, name in enumerate(overall)}


class _Metric:
    """What one metric says of all units, and its measures."""

    def __init__(
        self,
        benchmark: ElementBenchmark,
        answers: ElementAnswers,
        plan: ResamplingPlan,
        *,
        clusters: IntArray,
        values: FloatArray | None,
        unit: float,
        note: str,
    ) -> None:
        self._mode, self._clusters, self._plan = benchmark.missing, clusters, plan
        self._unsaid = benchmark.card.evaluation.missing is None
        self._unit, self._note, self._absent = unit, note, values is None
        self._rule = benchmark.said.threshold
        size = len(answers.units.line)
        self._values = np.full(size, np.nan) if values is None else values
        self._none = np.isnan(self._values)
        self._kept = ~self._none | (self._mode != "drop")
        self._positive = answers.units.positive
        self._searching = benchmark.searching(answers)
        self._cuts: dict[str, Cut] = {}

    def _cut(self, mode: str) -> Cut:
        """The cut of all elements, with those without a score as a mode has them."""
        if mode not in self._cuts:
            worst = np.where(self._positive, -np.inf, np.inf) if mode == "wrong" else -np.inf
            filled = np.where(self._none, worst, self._values)
            rule = self._rule
            if isinstance(rule, float | int):
                rule = float(rule) / self._unit
            kept = self._kept
            items = Scored(filled[kept], self._positive[kept], self._clusters[kept])
            self._cuts[mode] = Cut.of(items, self._searching[kept], rule, self._plan)
        return self._cuts[mode]

    def _mode_of(self, inside: BoolArray, n_missing: int) -> str:
        """What becomes of elements without a score; few are wrong unless the card says otherwise.

        Else who has a rank would choose the elements that it is ranked by.
        """
        few = 0 < n_missing <= MAX_MISSING * (np.count_nonzero(inside) + n_missing)
        return "wrong" if few and self._unsaid else self._mode

    def add(self, builder: MeasuredBuilder, row: Row, inside: BoolArray) -> None:
        """The row of one measure in one slice."""
        used = inside & self._kept
        n_missing = int(self._none[inside].sum())
        row = replace(
            row,
            n_items=int(used.sum()),
            n_clusters=np.unique(self._clusters[used]).size,
            n_missing=n_missing,
        )
        members = np.unique(self._clusters[inside])
        if self._absent:
            builder.add(replace(row, note=self._note), members=members)
            return
        if n_missing and self._mode == "fail":
            note = f"withheld: elements without a score: {n_missing}"
            builder.add(replace(row, note=note), members=members)
            return
        mode = self._mode_of(inside, n_missing)
        drawn = self._drawn(row.measure, used, self._cut(mode))
        value = float(drawn[0])
        row = replace(row, value=value, note=self._row_note(row, n_missing, mode))
        builder.add(row, None if math.isnan(value) else drawn[1:], members=members)

    def _drawn(self, measure: str, used: BoolArray, cut: Cut) -> FloatArray:
        """The sample, then each resample, shape (1 + B,)."""
        chosen = used[self._kept & ~self._searching]
        if measure in AGREEMENTS:
            return cut.values(measure, chosen)
        area = auroc if measure == "auroc" else average_precision
        items = cut.items.chosen(chosen)
        return area(items.scores, items.positive, items.clusters, self._plan.draws)

    def _row_note(self, row: Row, n_missing: int, mode: str) -> str:
        missing = f"elements without a score, {_MISSING.get(mode, '')}: {n_missing}"
        of_all = row.skill is None and row.split in (None, "all")
        return notes(
            "all are there, or none is" if math.isnan(row.value) and row.n_items else "",
            self._threshold_note(row.measure, self._cut(mode)),
            missing if n_missing else "",
            self._note if of_all else "",
        )

    def _threshold_note(self, measure: str, cut: Cut) -> str:
        if measure not in AGREEMENTS or isinstance(self._rule, float | int):
            return ""
        found = cut.thresholds(measure)
        if found is None:
            return "no other prompts to find a threshold on"
        low, high = sorted(self._unit * one for one in found)
        return f"threshold {low:.4g}" if low == high else f"thresholds {low:.4g} to {high:.4g}"


def _of_answer(measure: str, n: int, n_true: int, n_said: int) -> float:
    """What the same answer to everything reaches: yes (`n_said` = n) or no (0)."""
    if measure == "auroc":
        return 0.5
    if measure == "average_precision":
        return n_true / n if n else math.nan
    given = (n_true if n_said else 0, n_said, n_true, n)
    hits, said, true, number = (np.asarray(float(one)) for one in given)
    return float(np.nan_to_num(AGREEMENTS[measure](hits, said, true, number)))


def _units_of(answers: ElementAnswers, rows: BoolArray) -> BoolArray:
    """Shape (U,): units with a part in some rows."""
    found = np.zeros(len(answers.units.line), bool)
    parts = answers.labels.of_row[rows]
    found[answers.units.of_part[parts[parts >= 0]]] = True
    return found


def _labels(folder: DataFolder, path: str, items: Items, said: Element) -> Labels:
    """The parts, each once, with the mean of its labels.

    Raises:
        SubmitterError: `data_malformed`: a label is no share, or a part has none.
    """
    rows, line = items.rows, items.cells[:, 2]
    if len(line) != len(rows):
        raise folder.malformed(path, "has rows with several images; an element is in one")
    ids = rows[said.element].astype(str) if said.element else pd.Series([WHOLE] * len(rows))
    given = rows[said.label]
    lists = bool(len(given)) and isinstance(given.iloc[0], list)
    flat = given.explode() if lists else given
    values = flat.astype(np.float64)
    folder.check_cells(path, flat, values.between(0, 1) | values.isna(), "labels from 0 to 1")
    row = flat.index.to_numpy(np.intp)
    known = np.isfinite(values.to_numpy())
    text = rows[said.element_text].astype(str) if said.element_text else ids
    keys = pd.DataFrame(
        {
            "line": line,
            "pair_id": items.pairs["pair_id"].to_numpy(object)[line],
            "element_id": ids.to_numpy(object),
            "text": text.to_numpy(object),
        }
    )
    part, n = _numbered(keys[["line", "element_id"]])
    number = np.bincount(part[row][known], minlength=n)
    if (number == 0).any():
        first = int(np.flatnonzero(number[part] == 0)[0])
        raise folder.malformed(
            path, f"has no label of an element ({data_row(first)}; {int((number == 0).sum())} such)"
        )
    share = np.bincount(part[row][known], values.to_numpy()[known], n) / number
    single = bool(np.isin(values.to_numpy()[known], (0.0, 1.0)).all())
    first_rows = np.unique(part, return_index=True)[1]
    return Labels(
        keys.iloc[first_rows].reset_index(drop=True)[["pair_id", "element_id", "text"]],
        line[first_rows],
        part,
        share,
        share * number,
        number.astype(np.float64) if single else np.zeros(n),
    )


def _numbered(keys: pd.DataFrame) -> tuple[IntArray, int]:
    """Number of each row's key, in the order in which keys first stand; and how many there are."""
    found = keys.groupby(list(keys.columns), sort=False).ngroup()
    numbers = np.asarray(found.to_numpy(), np.intp)
    return numbers, int(numbers.max(initial=-1)) + 1


def _distinct(joined: str) -> list[str]:
    return [one for one in dict.fromkeys(joined.split(";")) if one]


def _with_rules(card: FamilyCard) -> FamilyCard:
    """The card with the rule for thresholds, and what is counted, in the meaning of its measures."""
    said = card.element
    assert said is not None
    if said.threshold == "held_out":
        rule = (
            f"It says yes from a threshold on that is best, for each of {FOLDS} parts of the prompts, "
            "on all the others."
        )
    elif isinstance(said.threshold, Search):
        rule = f"It says yes from the threshold on that is best on split {said.threshold.on}."
    else:
        rule = f"It says yes from {said.threshold:g} on."
    whole = ""
    if said.of == "prompts":
        mean = "geometric" if said.mean == "gm" else "arithmetic"
        whole = (
            f"Images are counted: each has the {mean} mean of the scores of its parts, and is "
            "there where all of them are."
        )
    return with_measures(
        card, rule=lambda name: f"{rule if name in AGREEMENTS else ''} {whole}".strip()
    )


FAMILY = ElementBenchmark
