"""Which question depends on which: cells of parents read, and checked as a graph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import IntArray
from benchmarks.errors import SubmitterError

_MOST_DIGITS = 18  # fits into 64 bits
Notation = Literal["dsg", "ts2"]
"""How a cell lists parents. `dsg`: ids joined by `,`, and 0 is no parent (ids count from 1).
`ts2`: ids joined by `-`, and -1 is no parent (ids count from 0)."""
Unparsable = Literal["independent", "repair", "refuse"]
"""What is done about a cell that holds anything else. `independent`: no question of that prompt
depends on another (DSG, released evaluation). `repair`: the numbers in the cell are used, the rest
is not. `refuse`: an error."""


def parse_parents(cell: str, notation: Notation) -> tuple[tuple[int, ...], bool]:
    """Read the parents of one question; an empty cell has none.

    Args:
        cell: e.g. `1,2` (`dsg`) or `1-0` (`ts2`).
        notation: see `Notation`.

    Returns:
        The parents' ids, in the order of the cell, and whether every part of the cell was one.
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
    """The questions of many prompts and their dependencies; Q questions, E dependencies.

    Attributes:
        keys: unique pairs of `text_id` (str) and `question_id` (int), length Q.
        child: shape (E,), position in `keys` of a question that depends on
        parent: shape (E,), the question at this position, of the same prompt.
        unparsable: prompts with a cell of parents that could not be read as it stands, in the
            order of the questions.
    """

    keys: pd.MultiIndex
    child: IntArray
    parent: IntArray
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

        Args:
            questions: one row per question, columns `text_id` (str), `question_id` (str, a whole
                number) and, unless no question depends on another, `parents` (str).
            notation: how `parents` is written.
            unparsable: what is done about a cell of parents that is not so written.
            source: how messages name the table.

        Raises:
            SubmitterError: `bad_question_id`, `duplicate_questions`, `bad_parents` (only with
                `refuse`) or `unknown_parents`, with the first offender.
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
            raise _bad_parents(keys, list(cells), odd, source)
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
        """Shape (Q,): 0 without parents, else one more than the deepest parent.

        Raises:
            SubmitterError: `cyclic_questions`, where questions depend on each other.
        """
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
    """`text_id` and `question_id` (int) of each row.

    Raises:
        SubmitterError: `bad_question_id`, where an id is no whole number.
    """
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


def _bad_parents(
    keys: pd.MultiIndex, cells: Sequence[str], odd: NDArray[np.bool_], source: str
) -> SubmitterError:
    row = int(np.flatnonzero(odd)[0])
    return SubmitterError(
        "bad_parents",
        f"{source} has {int(odd.sum())} cells of parents that cannot be read, the first is "
        f"{cells[row]!r} at {_named(keys[row])}.",
        "Write question ids only, or choose what is done about such cells.",
    )
