"""Replies of the language model: the prompt pair in one, or why it is dropped.

A reply ends with an object; the last whole one counts, read as JSON or else as a literal of Python,
whatever is said before it. Nothing is mended beyond that: a pair that could be something else than
what the model meant is no use in a test of metrics.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from benchmarks.parsing import folded
from evaluator.croc.instructions import CONTRAST, PROMPT, VARIED

Reason = Literal[
    "refused",
    "cut",
    "no_object",
    "unreadable",
    "not_text",
    "blank",
    "same",
    "too_long",
    "duplicate",
    "image_withheld",
]
REASONS: tuple[Reason, ...] = get_args(Reason)
LONGEST_KEPT = 40_000
"""Characters of a reply that are kept: its end, where the object is."""
_LONGEST_OBJECT = 20_000
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: no spaces stand between their words."""
_MOST_OPEN = 30
"""Braces that are never closed; after so many, nothing more is looked for."""


@dataclass(frozen=True, slots=True)
class WrittenPair:
    """A prompt pair of a reply."""

    prompt: str  # T_O
    contrast: str  # T_C
    varied_definition: str = ""  # of the entity, where one was asked for and given

    @property
    def key(self) -> tuple[str, str]:
        """What two pairs share that look the same but for case and spaces."""
        return _key(self.prompt), _key(self.contrast)


def _key(text: str) -> str:
    return folded("".join(sign for sign in text if unicodedata.category(sign) != "Cf"))


def _count_words(text: str) -> int:
    return len(_UNSPACED.sub(" x ", text).split())


def encodable(text: str) -> str:
    """A text with `?` for what UTF-8 has not: halves of pairs of surrogates."""
    return text.encode("utf-8", "replace").decode()


def bounded(reply: str) -> str:
    """A reply as it is kept: of a longer one the end, with the hash of the whole; see `encodable`."""
    reply = encodable(reply)
    if len(reply) <= LONGEST_KEPT:
        return reply
    digest = hashlib.sha256(reply.encode()).hexdigest()
    return f"[cut; sha256:{digest}] {reply[-LONGEST_KEPT:]}"


def read_pair(reply: str, most_words: int, *, cut: bool = False) -> WrittenPair | Reason:
    """The prompt pair of a reply, or why there is none.

    `most_words`: of either prompt, as spaces divide it, and one for each character of a script that
    has none; `cut`: whether the model was stopped for its
    length, which is the reason then.
    """
    told = last_object(reply)
    found = None if told is None else _read(told)
    texts = [] if found is None else [found.get(PROMPT), found.get(CONTRAST)]
    if found is None or not all(isinstance(text, str) for text in texts):
        missing: Reason = (
            "no_object" if told is None else "not_text" if found is not None else "unreadable"
        )
        return "cut" if cut else missing
    prompt, contrast = (" ".join(str(text).split()) for text in texts)
    if fault := _fault(prompt, contrast, most_words):
        return fault
    varied = found.get(VARIED)
    usable = isinstance(varied, str) and encodable(varied) == varied
    return WrittenPair(prompt, contrast, str(varied).strip() if usable else "")


def _fault(prompt: str, contrast: str, most_words: int) -> Reason | None:
    if encodable(prompt + contrast) != prompt + contrast:
        return "unreadable"
    if not _key(prompt) or not _key(contrast):
        return "blank"
    if _key(prompt) == _key(contrast):
        return "same"
    if max(map(_count_words, (prompt, contrast))) > most_words:
        return "too_long"
    return None


def last_object(text: str) -> str | None:
    """The last outermost `{...}` whose braces balance, those inside of quotes left out."""
    found, at, left_open = None, text.find("{"), 0
    while at >= 0 and left_open < _MOST_OPEN:
        end = _end(text, at)
        if end is None:
            left_open += 1
        else:
            found = text[at:end]
        at = text.find("{", at + 1 if end is None else end)
    return found


def _end(text: str, start: int) -> int | None:
    """Where the object that begins at `start` ends; where a quote stays open, by its braces alone."""
    for mindful in (True, False):
        depth, quoted, escaped = 0, False, False
        for at in range(start, min(len(text), start + _LONGEST_OBJECT)):
            sign = text[at]
            if escaped:
                escaped = False
            elif sign == "\\":
                escaped = quoted
            elif sign == '"' and mindful:
                quoted = not quoted
            elif not quoted and sign in "{}":
                depth += 1 if sign == "{" else -1
                if depth == 0:
                    return at + 1
    return None


def _read(told: str) -> dict[Any, Any] | None:
    try:
        found = json.loads(told, strict=False, object_pairs_hook=_once_each)
    except _TwiceError:
        return None
    except (ValueError, RecursionError):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # of escapes in what is untrusted
                found = ast.literal_eval(told)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return None
    return found if isinstance(found, dict) else None


class _TwiceError(Exception):
    """A key stands twice in an object."""


def _once_each(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found
