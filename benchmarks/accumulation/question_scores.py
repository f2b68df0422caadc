"""Accumulation of correct and wrong answers into one score per image."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, IntArray
from benchmarks.errors import SubmitterError

# Rules for a correct answer, by name.


Correctness = Literal["equals_yes", "contains_yes", "tifa", "given"]


def equals_yes(answers: pd.Series) -> BoolArray:
    """The answer is exactly `yes` (DSG, Cho et al. 2024, released evaluation)."""
    return np.asarray(answers == "yes", bool)


def contains_yes(answers: pd.Series) -> BoolArray:
    """The answer has the letters `yes` in it, in any case (T2IScoreScore, its DSG metrics).

    So `Yes, there is` is correct, but `her eyes` too: the published scores count it.
    """
    return np.asarray(answers.str.lower().str.contains("yes", regex=False), bool)


def tifa(
    answers: pd.Series, mc_answers: pd.Series, choices: pd.Series, expected: pd.Series
) -> BoolArray:
    """The rules of the TIFA metrics of T2IScoreScore.

    With two choices the answer must contain `yes`, whatever was expected: so the published scores
    are computed, although a few of these questions expect `no` or have other choices. With more,
    the choice nearest to the answer must be the expected one, apart from case and spaces.

    `answers` (n,), free answers; `mc_answers` (n,), the choice that was found nearest to each
    answer; `choices` (n,), the choices, joined by `|`; `expected` (n,), the right choice.
    """
    n_choices = choices.str.count(r"\|").to_numpy() + 1
    wanted = _bare(expected)
    unclear = (n_choices < 2) | ((n_choices > 2) & np.asarray(wanted == "", bool))
    if unclear.any():
        row = int(np.flatnonzero(unclear)[0])
        raise SubmitterError(
            "bad_choices",
            f"{int(unclear.sum())} answers belong to questions without choices or without an "
            f"expected answer; the first has the choices {choices.iloc[row]!r} and the expected "
            f"answer {expected.iloc[row]!r}.",
            "Give every question two or more choices, joined by '|', and the right one.",
        )
    chosen = np.asarray(_bare(mc_answers) == wanted, bool)
    return np.where(n_choices == 2, contains_yes(answers), chosen)


def stated_correctness(cells: pd.Series) -> BoolArray:
    """Correctness that the file states itself: `1` or `0` in each cell."""
    bad = ~cells.isin(["0", "1"]).to_numpy(bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise SubmitterError(
            "bad_correct",
            f"Column correct has {int(bad.sum())} cells that are neither 0 nor 1; the first is "
            f"{cells.iloc[row]!r} in line {row + 2}.",
            "Write 1 for a correct answer and 0 for any other.",
        )
    return np.asarray(cells == "1", bool)


def _bare(cells: pd.Series) -> pd.Series:
    return cells.str.lower().str.replace(r"\s", "", regex=True)


# Dependencies of questions.


_MOST_DIGITS = 18  # fits into 64 bits
Notation = Literal["dsg", "ts2"]
"""Notation of parents in a cell. `dsg`: ids joined by `,`, and 0 is no parent (ids count from 1).
`ts2`: ids joined by `-`, and -1 is no parent (ids count from 0)."""
Unparsable = Literal["independent", "repair", "refuse"]
"""Treatment of a cell that holds anything else. `independent`: no question of that prompt
depends on another (DSG, released evaluation). `repair`: the numbers in the cell are used, the rest
is not. `refuse`: an error."""


def parse_parents(cell: str, notation: Notation) -> tuple[tuple[int, ...], bool]:
    """Read the parents of one question; an empty cell has none.

    Returns: The parents' ids, in the order of the cell, and whether every part of the cell was one.
    """
    text = cell.strip()
    if not text or (notation == "ts2" and text == "-1"):
        return (), True
    parts = [part.strip() for part in text.split("," if notation == "dsg" else "-")]
    ids = [int(part) for part in parts if _is_id(part)]
    parents = tuple(number for number in ids if number or notation == "ts2")
    return parents, len(ids) == len(parts)


@dataclass(frozen=True)
class QuestionGraph:
    """The questions of many prompts and their dependencies; Q questions, E dependencies."""

    keys: pd.MultiIndex  # unique pairs of `text_id` (str) and `question_id` (int), length Q
    child: IntArray  # shape (E,), position in `keys` of a question that depends on
    parent: IntArray  # shape (E,), the question at this position, of the same prompt
    # prompts with a cell of parents that could not be read as it stands, in the order of the
    # questions
    unparsable: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        questions: pd.DataFrame,
        *,
        notation: Notation = "dsg",
        unparsable: Unparsable = "independent",
        source: str = "The table of questions",
    ) -> QuestionGraph:
        """Read and check a table of questions.

        A question that names itself as a parent has that parent left out: its own answer decides
        already. (The released DSG questions have such ones, and one circle of two questions.)

        `questions`: one row per question, columns `text_id` (str), `question_id` (str, a whole
        number) and, unless no question depends on another, `parents` (str).
        """
        keys = question_keys(questions, source)
        if keys.has_duplicates:
            raise SubmitterError(
                "duplicate_questions",
                f"{source} has {int(keys.duplicated().sum())} questions twice, the first is "
                f"{_named(keys[keys.duplicated()][0])}.",
                "Keep one row per question_id and text_id.",
            )
        cells = questions["parents"] if "parents" in questions else [""] * len(keys)
        parsed = [parse_parents(cell, notation) for cell in cells]
        odd = np.array([not whole for _, whole in parsed], bool)
        if unparsable == "refuse" and odd.any():
            row = int(np.flatnonzero(odd)[0])
            raise SubmitterError(
                "bad_parents",
                f"{source} has {int(odd.sum())} cells of parents that cannot be read, the first is "
                f"{list(cells)[row]!r} at {_named(keys[row])}.",
                "Write question ids only, or choose what is done about such cells.",
            )
        texts = keys.get_level_values("text_id")
        numbers = keys.get_level_values("question_id")
        prompts = tuple(dict.fromkeys(texts[odd]))
        dropped = set(prompts) if unparsable == "independent" else set()
        edges = [
            (row, parent)
            for row, (text, own, (parents, _)) in enumerate(
                zip(texts, numbers, parsed, strict=True)
            )
            for parent in dict.fromkeys(parents)
            if text not in dropped and parent != own
        ]
        child = np.array([row for row, _ in edges], np.intp)
        named = np.array([parent for _, parent in edges], np.int64)
        parent = keys.get_indexer(pd.MultiIndex.from_arrays([texts[child], named]))
        unknown = np.flatnonzero(parent < 0)
        if unknown.size:
            first = unknown[0]
            raise SubmitterError(
                "unknown_parents",
                f"{source} has {unknown.size} parents that are no question of their prompt, the "
                f"first is {named[first]} at {_named(keys[child[first]])}.",
                "Name question ids of the same prompt.",
            )
        return cls(keys, child, np.asarray(parent, np.intp), prompts)

    @cached_property
    def depth(self) -> IntArray:
        """Shape (Q,): 0 without parents, else one more than the deepest parent."""
        parents: dict[int, list[int]] = {int(row): [] for row in np.unique(self.child)}
        for row, above in zip(self.child.tolist(), self.parent.tolist(), strict=True):
            parents[row].append(above)
        depth = np.zeros(len(self.keys), np.intp)
        try:
            for row in TopologicalSorter(parents).static_order():
                depth[row] = 1 + max((depth[above] for above in parents.get(row, [])), default=-1)
        except CycleError as error:
            circle = [self.keys[row] for row in error.args[1]]
            raise SubmitterError(
                "cyclic_questions",
                f"Questions of prompt {circle[0][0]!r} depend on each other: "
                f"{' > '.join(str(question) for _, question in circle)}.",
                "Remove one of these parents; only rule recursive needs that.",
            ) from error
        return depth


def question_keys(table: pd.DataFrame, source: str) -> pd.MultiIndex:
    """`text_id` and `question_id` (int) of each row."""
    ids = table["question_id"].str.strip()
    bad = ~ids.map(_is_id).to_numpy(bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise SubmitterError(
            "bad_question_id",
            f"{source} has {int(bad.sum())} question ids that are no whole numbers, the first is "
            f"{ids.iloc[row]!r} (line {row + 2}).",
            "Number the questions of each prompt.",
        )
    numbers = ids.map(int).to_numpy(np.int64)
    return pd.MultiIndex.from_arrays([table["text_id"], numbers], names=["text_id", "question_id"])


def _is_id(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= _MOST_DIGITS


def _named(key: tuple[Hashable, ...]) -> str:
    return f"question {key[1]} of prompt {key[0]!r}"


# Scores of images.


Rule = Literal["mean", "dsg", "recursive"]
"""`mean`: the share of correct answers (TIFA, Hu et al. 2023). `dsg`: a question also needs a
correct answer to each question it directly depends on; their raw answers count, so what those
depend on does not matter (DSG, Cho et al. 2024, released evaluation). `recursive`: a question also
needs that every question it depends on counts by this same rule (T2IScoreScore, its DSG metrics)."""
Unanswered = Literal["zero", "empty"]
"""Score of an image without any answer: 0 (DSG, released evaluation) or none."""


@dataclass(frozen=True)
class AnsweredQuestions:
    """The answers to the questions about P images; A answers, each to another question or image.

    Every image has an answer to each question of its prompt, or none at all.
    """

    graph: QuestionGraph  # the questions
    pair_ids: tuple[str, ...]  # ids of the images, length P
    pair: IntArray  # shape (A,), position of the image in `pair_ids`
    question: IntArray  # shape (A,), position of the question in the graph
    correct: BoolArray  # shape (A,), whether the answer is correct

    @classmethod
    def of(
        cls,
        answers: pd.DataFrame,
        correct: BoolArray,
        graph: QuestionGraph,
        pairs: pd.DataFrame,
        *,
        source: str = "The table of answers",
    ) -> AnsweredQuestions:
        """Join answers with questions.

        `answers`: one row per answer, columns `pair_id`, `question_id` (str each); `correct`
        (rows,), see `benchmarks.accumulation.question_scores`; `pairs`: the images, columns
        `pair_id` (unique) and `text_id` (str each); see `pairs_of` where only the answers name
        them.
        """
        texts = pairs.set_index("pair_id")["text_id"]
        if texts.index.has_duplicates:
            raise SubmitterError(
                "duplicate_pairs",
                f"Image {texts.index[texts.index.duplicated()][0]!r} stands twice among the pairs.",
                "Keep one row per pair_id.",
            )
        pair = texts.index.get_indexer(pd.Index(answers["pair_id"]))
        if (pair < 0).any():
            first = answers["pair_id"].iloc[int(np.flatnonzero(pair < 0)[0])]
            raise SubmitterError(
                "unknown_pairs",
                f"{source} has {int((pair < 0).sum())} answers about images that are not among "
                f"the pairs, the first is {first!r}.",
                "Add the image to the pairs, or remove its answers.",
            )
        found = answers[["pair_id", "question_id"]].assign(text_id=texts.to_numpy()[pair])
        keys = question_keys(found, source)
        answered = cls(
            graph,
            tuple(map(str, texts.index)),
            np.asarray(pair, np.intp),
            np.asarray(graph.keys.get_indexer(keys), np.intp),
            np.asarray(correct, bool),
        )
        answered._check(keys, texts, source)
        return answered

    def _check(self, keys: pd.MultiIndex, texts: pd.Series, source: str) -> None:
        unknown = np.flatnonzero(self.question < 0)
        if unknown.size:
            text, question = keys[unknown[0]]
            raise SubmitterError(
                "unknown_questions",
                f"{source} has {unknown.size} answers to questions that do not exist, the first "
                f"is question {question} of prompt {text!r}, about image "
                f"{self.pair_ids[self.pair[unknown[0]]]!r}.",
                "Answer the questions of the table of questions.",
            )
        twice = np.flatnonzero(pd.Series(self._codes).duplicated())
        if twice.size:
            raise SubmitterError(
                "duplicate_answers",
                f"{source} has {twice.size} answers to a question that was answered before, the "
                f"first is to question {keys[twice[0]][1]} about image "
                f"{self.pair_ids[self.pair[twice[0]]]!r}.",
                "Keep one answer per image and question.",
            )
        asked = pd.Series(self.graph.keys.get_level_values("text_id")).value_counts()
        expected = texts.map(asked).fillna(0).to_numpy(np.intp)
        short = np.flatnonzero((self.n_answers > 0) & (self.n_answers < expected))
        if short.size:
            raise SubmitterError(
                "unanswered_questions",
                f"{source} lacks answers about {short.size} images, the first is "
                f"{self.pair_ids[short[0]]!r} with {self.n_answers[short[0]]} of "
                f"{expected[short[0]]} questions answered.",
                "Answer all questions about an image; an answer may be empty, which is wrong.",
            )

    @property
    def n_answers(self) -> IntArray:
        """Shape (P,): answers about each image."""
        return np.bincount(self.pair, minlength=len(self.pair_ids))

    @property
    def _codes(self) -> IntArray:
        """Number of each answer's image and question."""
        codes: IntArray = self.pair * len(self.graph.keys) + self.question
        return codes

    def links(self) -> tuple[IntArray, IntArray]:
        """Dependencies between answers about one image: positions of the children and parents."""
        edges = pd.DataFrame({"question": self.graph.child, "parent": self.graph.parent})
        rows = pd.DataFrame({"question": self.question, "row": np.arange(self.question.size)})
        joined = rows.merge(edges, on="question")
        child = joined["row"].to_numpy(np.intp)
        codes = self._codes
        order = np.argsort(codes)
        wanted = self.pair[child] * len(self.graph.keys) + joined["parent"].to_numpy(np.intp)
        return child, order[np.searchsorted(codes, wanted, sorter=order)]


def pairs_of(answers: pd.DataFrame, *, source: str = "The table of answers") -> pd.DataFrame:
    """The images that have answers: `pair_id` (unique) and `text_id`, in the answers' order."""
    pairs = answers[["pair_id", "text_id"]].drop_duplicates(ignore_index=True)
    twice = pairs["pair_id"].duplicated()
    if twice.any():
        raise SubmitterError(
            "several_prompts",
            f"{source} names several prompts for {int(twice.sum())} images, the first is "
            f"{pairs.loc[twice, 'pair_id'].iloc[0]!r}.",
            "Give each combination of image and prompt a pair_id of its own.",
        )
    return pairs


def counted(answered: AnsweredQuestions, rule: Rule) -> BoolArray:
    """Correct answers that the rule counts, shape (A,).

    The rules differ in a question one of whose parents was answered wrong: `Is the dog brown?`
    after `Is there a dog?` with no. Questions in a circle are `cyclic_questions` under rule
    `recursive` only; the others are defined there.
    """
    counts = answered.correct.copy()
    if rule == "mean":
        return counts
    child, parent = answered.links()
    if rule == "dsg":
        counts[child[~answered.correct[parent]]] = False
        return counts
    depth = answered.graph.depth[answered.question[child]]
    for level in range(1, int(depth.max(initial=0)) + 1):
        at_level = depth == level
        counts[child[at_level & ~counts[parent]]] = False
    return counts


def image_scores(answered: AnsweredQuestions, rule: Rule, unanswered: Unanswered) -> pd.Series:
    """The share of an image's questions that count.

    Returns: Length P, index `pair_id` in the order of the pairs, named `score`: values in 0..1, NaN
    for images without answers if `unanswered` is `empty`.
    """
    n_pairs, n_answers = len(answered.pair_ids), answered.n_answers
    correct = np.bincount(answered.pair, counted(answered, rule), minlength=n_pairs)
    nothing = 0.0 if unanswered == "zero" else np.nan
    scores = np.where(n_answers > 0, correct / np.maximum(n_answers, 1), nothing)
    return pd.Series(scores, index=pd.Index(answered.pair_ids, name="pair_id"), name="score")
