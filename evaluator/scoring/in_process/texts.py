"""Notes on the texts of a run: truncated, or empty."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from evaluator.scoring.asking import Asked, Finding, Item
from evaluator.scoring.in_process.device import is_out_of_memory
from evaluator.scoring.in_process.paths import Meter, checked, offers

_LOG = logging.getLogger(__name__)


class TextNotes:
    """Says of each text once what there is to say."""

    def __init__(self, scorer: Any, meter: Meter) -> None:
        self._scorer = scorer
        self._meter = meter
        self._seen: set[str] = set()
        self._cut: dict[str, bool] = {}

    def about(self, items: Sequence[Item]) -> list[Finding]:
        """Findings on the texts of a batch that no earlier batch had."""
        new = {
            asked.text_id: asked
            for item in items
            for asked in item.asked
            if asked.text_id not in self._seen
        }
        cut = self._truncated({asked.prompt for asked in new.values()})
        self._seen |= new.keys()
        return [finding for asked in new.values() for finding in _findings(asked, cut)]

    def _truncated(self, prompts: set[str]) -> set[str]:
        """Those of the prompts that are not read to their end; each is looked at once in a run."""
        missing = sorted(prompts - self._cut.keys())
        if missing and offers(self._scorer, "truncated"):
            self._cut.update(zip(missing, self._flags(missing), strict=True))
        return {prompt for prompt in prompts if self._cut.get(prompt, False)}

    def _flags(self, prompts: Sequence[str]) -> list[bool]:
        try:
            flags = self._meter.call(self._scorer.truncated, prompts)
        except Exception as error:  # whatever a model's code raises
            if is_out_of_memory(error):
                raise
            if len(prompts) == 1:
                # What the scorer cannot read has no score either, and the reason is told there.
                _LOG.warning("Whether a prompt is read to its end is not known.", exc_info=True)
                return [False]
            return [flag for prompt in prompts for flag in self._flags([prompt])]
        return [bool(flag) for flag in checked(flags, len(prompts), "truncated")]


def _findings(asked: Asked, cut: set[str]) -> Iterator[Finding]:
    if not asked.prompt.strip():
        message = "The prompt is empty; it is asked as it is."
        yield Finding("text_empty", "text", asked.text_id, message, scored=True)
    if asked.prompt in cut:
        words = len(asked.prompt.split())
        message = f"The metric does not read this prompt of {words} words to its end."
        yield Finding("text_truncated", "text", asked.text_id, message, scored=True)
