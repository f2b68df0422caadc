"""Synthetic prompts of six kinds from word lists and templates, as EvalMuse-40K has 2,000 of.

Each tests one thing by what it combines: numbers, colours and materials, surroundings, activities
and views, writing, relations (supplement 8). Where the paper asks a language model for a material or
a verb, our word lists say what goes together. Vocabulary, order and templates are ours.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.files import Provenance, Question

WORDS = Path(__file__).with_name("words.toml")
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_BARREN = 2
"""Draws without a new prompt, for each that there is; then a kind has no further ones."""


@dataclass(frozen=True)
class Element:
    """A part of a prompt that stands in its text, and the yes-or-no question about it."""

    text: str
    type: str  # among EvalMuse's
    question: str
    expected: Literal["yes", "no"] = "yes"
    of: tuple[str, ...] = ()  # texts of the elements without which the question makes no sense


@dataclass(frozen=True)
class SyntheticPrompt:
    """A prompt with what can be asked about it.

    Attributes:
        kind: what it tests, of `KINDS`.
        text: the prompt.
        elements: its parts, in order.
    """

    kind: str
    text: str
    elements: tuple[Element, ...]

    @property
    def content(self) -> str:
        """What two prompts have in common that say the same in other words: counts in any order."""
        if self.kind != "count":
            return self.text
        said = {word: str(number) for number, word in enumerate(_NUMBERS)}
        parts = (part.split(" ", 1) for part in self.text.split(" and "))
        return str(sorted((said.get(number, number), noun) for number, noun in parts))

    @property
    def prompt_id(self) -> str:
        """The kind and the beginning of the text's SHA-256."""
        return f"{self.kind}-{hashlib.sha256(self.text.encode()).hexdigest()[:10]}"

    def questions(self) -> Iterator[Question]:
        """One for each element, in the form of question files."""
        places = {one.text: str(place) for place, one in enumerate(self.elements, start=1)}
        for place, one in enumerate(self.elements, start=1):
            yield Question(
                prompt=self.text,
                question_id=str(place),
                question=one.question,
                expected=one.expected,
                choices=("yes", "no"),
                parents=tuple(places[text] for text in one.of),
                element=one.text,
                type=one.type,
                prompt_id=self.prompt_id,
                provenance=Provenance(writer="template"),
            )


class Vocabulary:
    """Draws from the word lists."""

    def __init__(self, lists: Mapping[str, Any], draw: np.random.Generator) -> None:
        self._lists, self._draw = lists, draw

    def one(self, name: str) -> str:
        """A word of a list."""
        return self.of(list(self._lists[name]))

    def of(self, words: Sequence[str]) -> str:
        """One of some words."""
        return words[int(self._draw.integers(len(words)))]

    def two(self, name: str) -> tuple[str, str]:
        """Two different words of a list."""
        words = list(self._lists[name])
        first, second = self._draw.choice(len(words), 2, replace=False)
        return words[first], words[second]

    def activity(self, of: str) -> str:
        """What people or animals do."""
        return self.of(self._lists["activities"][of])

    def is_animal(self, name: str) -> bool:
        """Whether a word names an animal."""
        return name in self._lists["animals"]

    def thing(self, name: str) -> Mapping[str, Any]:
        """What is known of a thing."""
        found: Mapping[str, Any] = self._lists["things"][name]
        return found


def _count(words: Vocabulary) -> SyntheticPrompt:
    parts, elements = [], list[Element]()
    for name in words.two("things"):
        # No two noughts: that is an image of nothing.
        number = int(
            words.of(tuple("123456" if elements and elements[0].expected == "no" else "0123456"))
        )
        noun = name if number == 1 else words.thing(name)["plural"]
        told = f"{words.of((_NUMBERS[number], str(number)))} {noun}"
        parts.append(told)
        if number == 0:
            elements.append(Element(told, "counting", f"Are there any {noun}?", "no"))
            continue
        there = f"Is there {_with_article(noun)}?" if number == 1 else f"Are there {noun}?"
        exactly = f"{'Is' if number == 1 else 'Are'} there exactly {told}?"
        elements.append(Element(noun, "object", there))
        elements.append(Element(told, "counting", exactly, of=(noun,)))
    return SyntheticPrompt("count", " and ".join(parts), tuple(elements))


def _colour_and_material(words: Vocabulary) -> SyntheticPrompt:
    parts, elements = [], list[Element]()
    for name, colour in zip(words.two("things"), words.two("colours"), strict=True):
        material = words.of(words.thing(name)["materials"])
        parts.append(_with_article(f"{colour} {material} {name}"))
        elements.append(_there(name, "object"))
        elements.append(Element(colour, "color", f"Is the {name} {colour}?", of=(name,)))
        made_of = f"Is it {_with_article(f'{material} {name}')}?"
        elements.append(Element(f"{material} {name}", "material", made_of, of=(name,)))
    return SyntheticPrompt("colour_and_material", " and ".join(parts), tuple(elements))


def _surroundings(words: Vocabulary) -> SyntheticPrompt:
    name, location = words.one("things"), words.one("locations")
    condition, style = words.one(words.of(("weathers", "times"))), words.one("styles")
    elements = (
        _there(name, "object"),
        Element(location, "location", f"Is the {name} {location}?", of=(name,)),
        Element(condition, "attribute", f"Is the scene {condition}?"),
        Element(style, "attribute", f"Is the style of the image {style}?"),
    )
    text = f"{_with_article(name)} {location} {condition}, {style}"
    return SyntheticPrompt("surroundings", text, elements)


def _activity_and_view(words: Vocabulary) -> SyntheticPrompt:
    of = words.of(("people", "animals"))
    who, does, view = words.one(of), words.activity(of), words.one("views")
    elements = (
        _there(who, "human" if of == "people" else "animal"),
        Element(does, "activity", f"Is the {who} {does}?", of=(who,)),
        Element(view, "attribute", f"Is the {who} shown {view}?", of=(who,)),
    )
    text = f"{_with_article(who)} {does}, shown {view}"
    return SyntheticPrompt("activity_and_view", text, elements)


def _writing(words: Vocabulary) -> SyntheticPrompt:
    surface, text, script = words.one("surfaces"), words.one("written"), words.one("scripts")
    plain, quoted = surface.removeprefix("a "), f'"{text}"'
    elements = (
        Element(plain, "object", f"Is there {surface}?"),
        Element(quoted, "other", f"Does it say {quoted} on the {plain}?", of=(plain,)),
        Element(f"{script} letters", "attribute", f"Are there {script} letters?"),
    )
    return SyntheticPrompt(
        "writing", f"{surface} with the words {quoted} in {script} letters", elements
    )


def _relation(words: Vocabulary) -> SyntheticPrompt:
    first, second = words.two(words.of(("things", "animals")))
    relation = words.one(words.of(("relations", "comparisons")))
    compared = relation.endswith(" than")
    of = "animal" if words.is_animal(first) else "object"
    question = f"Is the {first} {relation} the {second}?"
    elements = (
        _there(first, of),
        _there(second, of),
        Element(relation, "attribute" if compared else "spatial", question, of=(first, second)),
    )
    link = "that is " if compared else ""
    text = f"{_with_article(first)} {link}{relation} {_with_article(second)}"
    return SyntheticPrompt("relation", text, elements)


def _there(name: str, kind: str) -> Element:
    return Element(name, kind, f"Is there {_with_article(name)}?")


KINDS: Mapping[str, Callable[[Vocabulary], SyntheticPrompt]] = {
    "count": _count,
    "colour_and_material": _colour_and_material,
    "surroundings": _surroundings,
    "activity_and_view": _activity_and_view,
    "writing": _writing,
    "relation": _relation,
}
"""Name to what draws a prompt."""


def synthesised(n: int, seed: int, kinds: Sequence[str] = tuple(KINDS)) -> list[SyntheticPrompt]:
    """N different prompts, as many of each kind as of every other or one more.

    Args:
        n: how many.
        seed: the same gives the same prompts.
        kinds: of `KINDS`, each once.

    Raises:
        SubmitterError: `unknown_kind`; `too_many_prompts`, a kind has not so many.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise SubmitterError(
            "unknown_kind", f"There is no kind {', '.join(unknown)}.", f"Known: {', '.join(KINDS)}."
        )
    whole, more = divmod(n, len(kinds))
    return [
        prompt
        for place, kind in enumerate(kinds)
        for prompt in _of_kind(kind, whole + (place < more), seed)
    ]


def _of_kind(kind: str, n: int, seed: int) -> Iterator[SyntheticPrompt]:
    # Each kind has draws of its own, so that asking for others does not change it.
    draw = np.random.default_rng([seed, *kind.encode()])
    words, seen = Vocabulary(_lists(), draw), set[str]()
    barren = 0
    while len(seen) < n and barren < _BARREN * (len(seen) + 50):
        prompt = KINDS[kind](words)
        barren = barren + 1 if prompt.content in seen else 0
        if not barren:
            seen.add(prompt.content)
            yield prompt
    if len(seen) < n:
        raise SubmitterError(
            "too_many_prompts",
            f"Of the kind {kind} there are hardly more than {len(seen)} prompts, and {n} are wanted.",
            "Ask for fewer, or for other kinds beside it.",
        )


@cache
def _lists() -> Mapping[str, Any]:
    return tomllib.loads(WORDS.read_text(encoding="utf-8"))


def _with_article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
