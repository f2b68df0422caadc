"""Numbers from what a language model was asked to write as JSON; none is ever made up.

A reply that does not say what was asked for gives no number and the reason, so that failures are
counted. The references differ: VIEScore's code draws a random integer where it cannot read a
reply, LLMScore's takes whatever stands on a given line.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evaluator.scoring.contract import Answer, Verdict

LONGEST_KEPT = 2_000
"""Characters of a reply that are kept as evidence; its hash tells of the rest."""
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says."""

    numbers: tuple[float, ...] = ()  # in the order asked for; empty where it cannot be told
    problem: str = ""  # why it cannot; empty where it can


def read_list(reply: str, key: str, count: int, low: float, high: float) -> Reading:
    """The list of numbers under a key of the reply's JSON object."""
    found = _one_value(reply, key)
    if isinstance(found, Reading):
        return found
    if not isinstance(found.value, list):
        return Reading(problem=f"{key!r} is not a list of numbers")
    if len(found.value) != count:
        return Reading(problem=f"{key!r} holds {len(found.value)} numbers and not {count}")
    return _checked(found.value, key, low, high)


def read_number(reply: str, key: str, low: float, high: float) -> Reading:
    """The number under a key of the reply's JSON object."""
    found = _one_value(reply, key)
    return found if isinstance(found, Reading) else _checked([found.value], key, low, high)


def read_integer(reply: str, key: str, low: int, high: int) -> Reading:
    """The whole number under a key of the reply's JSON object, or on a line that begins with it."""
    found = read_number(reply, key, low, high)
    if not any(key in one for one in _objects(reply)):
        line = _one_line(reply, key)
        found = found if line is None else _checked([line.value], key, low, high)
    if found.numbers and not found.numbers[0].is_integer():
        return Reading(problem=f"{key!r} is not a whole number")
    return found


def answer_of(name: str, asked: str, reply: str, reading: Reading) -> Answer:
    """A reply as an answer: its value is the least of the numbers read, NaN without any."""
    value = min(reading.numbers, default=math.nan)
    return Answer(name, asked, "", reply, value, not reading.problem)


def with_evidence(
    asked: str, reply: str, value: float, problem: str = "", counts: str = ""
) -> Verdict:
    """A verdict with the words of its reply, bounded; `counts`: the answer that counts."""
    answer = Answer("judge", asked, counts, bounded(reply), value, not problem)
    return Verdict(value, problem, (answer,))


def bounded(reply: str) -> str:
    """A reply as it is kept: what is longer is cut, with the hash of the whole."""
    if len(reply) <= LONGEST_KEPT:
        return reply
    digest = hashlib.sha256(reply.encode()).hexdigest()
    return f"{reply[:LONGEST_KEPT]} [cut; sha256:{digest}]"


def wording(*texts: str) -> str:
    """What tells apart results that were asked for in other words: 12 digits of their SHA-256."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any


def _one_value(reply: str, key: str) -> _Value | Reading:
    """What stands under a key of the reply's objects, if all that have it agree."""
    values = [value for found in _objects(reply) for value in found.get(key, ())]
    if not values:
        return Reading(problem=f"the reply holds no JSON object with {key!r}")
    if any(value != values[0] for value in values):
        return Reading(problem=f"the reply gives {key!r} more than once, and differently")
    return _Value(values[0])


def _one_line(reply: str, key: str) -> _Value | None:
    """The number after a key at the beginning of a line: `Overall: 85/100`."""
    pattern = rf"^\W*{re.escape(key)}\b[^\d\n-]*(-?\d+(?:\.\d+)?)"
    values = {float(each) for each in re.findall(pattern, reply, re.IGNORECASE | re.MULTILINE)}
    return _Value(values.pop()) if len(values) == 1 else None


def _objects(reply: str) -> Iterator[dict[str, list[Any]]]:
    """The JSON objects of a text, outermost ones only: all that stands there under each key."""
    at = reply.find("{")
    while at >= 0:
        try:
            found, end = _DECODER.raw_decode(reply, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = reply.find("{", end)


def _by_key(pairs: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_by_key, parse_constant=str)  # NaN is no number.


def _checked(values: list[Any], key: str, low: float, high: float) -> Reading:
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return Reading(problem=f"{key!r} holds something else than numbers")
    if not all(low <= value <= high for value in values):
        return Reading(problem=f"{key!r} lies outside {low:g} to {high:g}")
    return Reading(tuple(map(float, values)))
