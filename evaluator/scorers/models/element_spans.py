"""Places of elements in prompts, as FGA-BLIP2 reads prompts.

Only the standard library is imported: the file goes into submissions too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Tokenize = Callable[[str], list[int]]  # Text to the ids of its tokens, without [CLS] and [SEP]


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens of an element, counted from the prompt's first token after [CLS]."""

    start: int = 0  # its first token
    stop: int = 0  # the one after its last; equal to `start` where it has none
    problem: str = ""  # why it has none


def clean_caption(caption: str, max_words: int) -> str:
    """What LAVIS' caption processor makes of a prompt; 0 words for no limit.

    Lower case; . ! " ( ) * # : ; ~ become spaces; runs of white space become one space; words past
    the limit are dropped (LAVIS, `blip_processors.BlipCaptionProcessor`).
    """
    text = re.sub(r'[.!"()*#:;~]', " ", caption.lower())
    text = re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ")
    words = text.split(" ")
    return " ".join(words[:max_words]) if max_words else text


def element_text(element: str, *, reference: bool = False) -> str:
    """An element without its kind: `man (human)` is `man`."""
    before, bracket, _ = element.rpartition("(")
    return before if bracket or reference else element


@dataclass(frozen=True)
class ElementFinder:
    """Finds elements in prompts as FGA-BLIP2's evaluation does: the first run of equal tokens."""

    tokenize: Tokenize  # the model's
    max_words: int  # words of a prompt that are read
    reference: bool = False  # see `element_text`

    def read(self, prompt: str) -> str:
        """What the model is given of a prompt."""
        return clean_caption(prompt, self.max_words)

    def find(self, prompt: str, element: str) -> Span:
        """Where an element lies in what is read of a prompt."""
        wanted = self.tokenize(element_text(element, reference=self.reference))
        if not wanted:
            return Span(problem="nothing is left of its text before its last bracket")
        start = _first(wanted, self.tokenize(self.read(prompt)))
        if start is None:
            return Span(problem=self._why_not(prompt, wanted))
        return Span(start, start + len(wanted))

    def _why_not(self, prompt: str, wanted: list[int]) -> str:
        if _first(wanted, self.tokenize(clean_caption(prompt, 0))) is not None:
            return f"it lies past word {self.max_words} of the prompt, where reading stops"
        if _first(wanted, self.tokenize(prompt)) is not None:
            return "it holds punctuation that is taken out of prompts"
        return "the prompt does not hold it word for word"


def _first(wanted: Sequence[int], tokens: Sequence[int]) -> int | None:
    starts = range(len(tokens) - len(wanted) + 1)
    return next((at for at in starts if list(tokens[at : at + len(wanted)]) == list(wanted)), None)
