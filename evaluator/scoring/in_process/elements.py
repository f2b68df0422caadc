"""Asks a scorer for the named parts of prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.scoring.asking import Asked, Finding, Item
from evaluator.scoring.in_process.device import in_one_line
from evaluator.scoring.in_process.paths import Meter, checked

Elements = tuple[NDArray[np.float64], ...]


class ElementAsker:
    """Asks for all elements of a batch at once, and by pair where that fails.

    Args:
        scorer: has `score_elements`.
        meter: counts the calls.
        raise_if_final: raises errors that another request would not mend.
    """

    def __init__(
        self, scorer: Any, meter: Meter, raise_if_final: Callable[[Exception], None]
    ) -> None:
        self._scorer = scorer
        self._meter = meter
        self._raise_if_final = raise_if_final

    def scores(self, items: Sequence[Item]) -> tuple[tuple[Elements, ...], list[Finding]]:
        """For each item and prompt, one score per element; and what there is to say of them."""
        able = [
            (item, asked)
            for item in items
            for asked in item.asked
            if asked.elements and not item.image.content.problem
        ]
        findings: list[Finding] = []
        found = self._scores(able, findings) if able else []
        values = {asked.pair_id: one for (_, asked), one in zip(able, found, strict=True)}
        nothing = {
            asked.pair_id: np.full(len(asked.elements), np.nan)
            for item in items
            for asked in item.asked
        }
        of_pair = {**nothing, **values}
        return (
            tuple(tuple(of_pair[asked.pair_id] for asked in item.asked) for item in items),
            findings,
        )

    def _scores(
        self, asked: Sequence[tuple[Item, Asked]], findings: list[Finding]
    ) -> list[NDArray[np.float64]]:
        try:
            return self._call(asked)
        except Exception as error:  # noqa: BLE001  # whatever a model's code raises
            self._raise_if_final(error)
            problem = in_one_line(error)
        if len(asked) > 1:
            return [scores for one in asked for scores in self._scores([one], findings)]
        _, one = asked[0]
        message = f"No scores of its elements: {problem.rstrip('.')}."
        findings.append(Finding("no_element_scores", "pair", one.pair_id, message, scored=True))
        return [np.full(len(one.elements), np.nan)]

    def _call(self, asked: Sequence[tuple[Item, Asked]]) -> list[NDArray[np.float64]]:
        found = self._meter.call(
            self._scorer.score_elements,
            [item.image.content.prepared for item, _ in asked],
            [one.prompt for _, one in asked],
            [[element.text for element in one.elements] for _, one in asked],
        )
        rows = checked(found, len(asked), "score_elements")
        return [
            np.array(checked(row, len(one.elements), "score_elements"), dtype=np.float64)
            for row, (_, one) in zip(rows, asked, strict=True)
        ]
