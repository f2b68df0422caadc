"""Numbers and choices in what a model was asked to write in a given form; none is ever made up.

What is said more than once must be said alike. Authors mostly take the first or the last number that
stands anywhere, and put a number of their own where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluator.scorers.models.judge_replies import Reading

_NUMBER = r"-?[0-9]++(?:\.[0-9]++)?+"
_SAID = re.compile(
    rf"(?<![\w.])({_NUMBER})(?:[ \t]*(?:/|\(?out of)[ \t]*({_NUMBER})\)?)?(?=(.{{0,120}}))"
)
_NOT_ALL = re.compile(r"\w|\s*[/%]|[^.]*\bof\b|\s*:?[^:]*[\d¼-¾]", re.IGNORECASE)
"""What follows a number that is a part of something else: `4,5`, `3 and 4`, `80 %`, `4 of ten`.

A further number on the line counts up to a colon, which ends the next label.
"""
_NEXT_LABEL = re.compile(r"\s*[,;|]\s*[A-Z][A-Za-z -]{0,40}\(([^()]{1,20})\)\s*:")
"""With its scale, whose numbers are not a further one: `, Style Score (1-5):`."""
_CONCLUDING = r"(?:(?:therefore|thus|hence|so|overall|in conclusion|in summary) ?, ?)?"
_BECAUSE = r"(?:,? (?:because|since|as) (?:(?!\bbut\b)[^.;!?\n]){1,300}+)?"
_END_OF_VERDICT = rf"(?: overall)?(?: than [^.,;!?\n]{{1,30}})?{_BECAUSE}[ \"']*+(?:[.!\n]|$)"
"""What may follow a verdict in its sentence: more would qualify it, or take it back."""
_DASH = r"(?:-[ \t]{1,8})?"
_START = r"(?<!\w)(?<!\w-)"
_BETWEEN = r"[\s\"'\[]{0,8}"
_THINKING = "think"


def final_text(reply: str, tag: str = "") -> tuple[str, str]:
    """The part of a reply that counts, and why there is none: what follows its thinking.

    `tag`: of XML, whose content alone counts; empty: all does.
    """
    _, _, text = reply.rpartition(f"</{_THINKING}>")
    if f"<{_THINKING}>" in text:
        return "", "its thinking does not end"
    if not tag:
        return text, ""
    found = set(_contents(text, tag))
    if len(found) > 1:
        return "", f"the reply has more than one <{tag}>, and they differ"
    if not found:
        return "", f"the reply has no <{tag}> that ends"
    return found.pop(), ""


def read_labelled(text: str, label: str, low: float, high: float) -> Reading:
    """The number after a label and a colon: `Final Score: 4`, `Alignment Score (1-5): 2.69`."""
    text = _without_markup(text)
    scale = rf"(?:\(([^()\n]{{0,20}})\))?{_BETWEEN}"
    pattern = rf"{_START}{re.escape(label)}{_BETWEEN}{scale}:{_BETWEEN}"
    labels = list(re.finditer(pattern, text, re.IGNORECASE))
    if not all(_is_scale(found[1] or "", low, high) for found in labels):
        return _on_another_scale(repr(label), low, high)
    said = [number for found in labels if (number := _SAID.match(text, found.end()))]
    return _agreed(said, repr(label), low, high)


def read_only_number(text: str, low: float, high: float) -> Reading:
    """The number of a text that holds no other one."""
    return _agreed(list(_SAID.finditer(_without_markup(text))), "the answer", low, high)


def read_phrase(text: str, choices: Mapping[str, float], *, whole: bool) -> Reading:
    """What the one phrase counts that is a line or sentence; `whole`: that is all of the text."""
    lines = _without_markup(text).casefold().splitlines()
    heard = "\n".join(" ".join(line.split()) for line in lines)
    bare = heard.strip(".!\"' \n")
    found = [
        phrase
        for phrase in choices
        if (bare == phrase.casefold() if whole else phrase.casefold() in heard)
    ]
    if len(found) == 1:
        begun = rf"(?:^|[.!?:\n])[ \"'#>-]{{0,8}}{_CONCLUDING}"
        if whole or re.search(f"{begun}{re.escape(found[0].casefold())}{_END_OF_VERDICT}", heard):
            return Reading((choices[found[0]],))
        return Reading(problem=f"no line or sentence of the reply is {found[0]}")
    what = f"more than one of {', '.join(found)}" if found else f"none of {', '.join(choices)}"
    return Reading(problem=f"the reply holds {what}")


@dataclass(frozen=True, slots=True)
class Word:
    """The one of a few answers that a reply begins with."""

    word: str  # empty where it cannot be told
    problem: str  # why it cannot; empty where it can


def read_first(reply: str, words: Sequence[str]) -> Word:
    """The answer that a reply begins with, if it names no other: `3. The hand is fine`."""
    named = [re.escape(word) for word in sorted(words, key=len, reverse=True)]
    told_apart = rf"(?P<word>{'|'.join(named)})(?!\w|[.,/]\d|[ \t]*(?:-|–|to|or)[ \t]*\d)"
    first = re.match(rf"[\s\"'*(]*{told_apart}", reply, re.IGNORECASE)
    if first is None:
        return Word("", f"the reply begins with none of {', '.join(words)}")
    said = first["word"].casefold()
    others = re.finditer(rf"(?<![\w-]){told_apart}", reply[first.end() :], re.IGNORECASE)
    if any(other["word"].casefold() != said for other in others):
        return Word("", f"the reply names more than one of {', '.join(words)}")
    return Word(next(word for word in words if word.casefold() == said), "")


def read_shares(text: str, label: str, names: tuple[str, str], tolerance: float) -> Reading:
    """Two numbers in 0..1 that add up to 1, after a label and the names of what they belong to."""
    said = rf"{_BETWEEN}:{_BETWEEN}({_NUMBER})(?![\w.,/%]{{0,2}}\d)[\s,;]{{0,8}}"
    first, second = (f"{_DASH}{re.escape(name)}{said}" for name in names)
    pattern = rf"{_START}{re.escape(label)}{_BETWEEN}:{_BETWEEN}{first}{second}"
    both = re.findall(pattern, _without_markup(text), re.IGNORECASE)
    found = {(float(a), float(b)) for a, b in both}
    if not found:
        return Reading(problem=f"the reply does not say {label!r} of both images")
    if len(found) > 1:
        return Reading(problem=f"the reply gives {label!r} more than once, and differently")
    shares = found.pop()
    if not all(0 <= share <= 1 for share in shares) or abs(sum(shares) - 1) > tolerance:
        return Reading(problem=f"{label!r} is not shared between both images")
    return Reading(shares)


def read_flags(text: str, count: int) -> Reading:
    """A list of as many zeros and ones, in brackets."""
    listed = re.fullmatch(r"\s*\[([\s01,]*)\]\s*", text)
    flags = listed[1].replace(" ", "").split(",") if listed else []
    if not all(flag.strip() in {"0", "1"} for flag in flags) or not flags:
        return Reading(problem="it is no list of zeros and ones")
    if len(flags) != count:
        return Reading(problem=f"it lists {len(flags)} values and not {count}")
    return Reading(tuple(map(float, flags)))


def _contents(text: str, tag: str) -> Iterator[str]:
    """What stands in each element of a tag that ends; elements within it are not looked into."""
    for piece in text.split(f"</{tag}>")[:-1]:
        _, opened, content = piece.rpartition(f"<{tag}>")
        if opened:
            yield content.strip()


def _without_markup(text: str) -> str:
    return re.sub(r"[*_`]", " ", text)


def _is_scale(told: str, low: float, high: float) -> bool:
    """Whether what stands in brackets after a label names the scale asked for, or none."""
    ends = [float(end) for end in re.findall(rf"(?<!\d){_NUMBER}", told)]
    return ends in ([low, high], [high]) or not re.search(r"\d|\bof\b", told, re.IGNORECASE)


def _on_another_scale(what: str, low: float, high: float) -> Reading:
    return Reading(problem=f"{what} is on another scale than {low:g} to {high:g}")


def _goes_on(rest: str, low: float, high: float) -> bool:
    """Whether what follows a number makes it a part of something else."""
    label = _NEXT_LABEL.match(rest)
    return bool(_NOT_ALL.match(rest)) and not (label and _is_scale(label[1], low, high))


def _agreed(said: Sequence[re.Match[str]], what: str, low: float, high: float) -> Reading:
    if not said:
        return Reading(problem=f"the reply gives no number for {what}")
    if any(_goes_on(one[3], low, high) for one in said):
        return Reading(problem=f"{what} is given as something else than one number")
    if any(one[2] and float(one[2]) != high for one in said):
        return _on_another_scale(what, low, high)
    values = {float(one[1]) for one in said}
    if len(values) > 1:
        return Reading(problem=f"the reply gives {what} more than once, and differently")
    if not all(low <= value <= high for value in values):
        return Reading(problem=f"{what} lies outside {low:g} to {high:g}")
    return Reading((values.pop(),))
