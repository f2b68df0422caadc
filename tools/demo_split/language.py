"""A small grammar: from a scene to sentences, elements and yes/no questions.

A sentence is a row of `Word`s, each of which knows the claim (`scenes.Aspect`) it makes, so that a
word-level rating can tell which words a picture gets wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.demo_split.scenes import SPATIAL, Aspect, Group, Scene

NUMBERS: tuple[str, ...] = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip
_PLURAL: dict[str, str] = {"cross": "crosses", "fish": "fish"}
_RELATION_WORDS: dict[str, tuple[str, ...]] = {
    "left of": ("to the left of", "on the left of"),
    "right of": ("to the right of", "on the right of"),
    "above": ("above", "directly above"),
    "below": ("below", "underneath"),
    "inside": ("inside", "in the middle of"),
    "bigger than": ("that is bigger than", "larger than"),
    "smaller than": ("that is smaller than", "much smaller than"),
}
_PLACE_WORDS: dict[str, str] = {
    "meadow": "on a meadow",
    "beach": "at the beach",
    "night": "at night",
}
_OPENINGS: tuple[str, ...] = ("", "a picture of", "an image that shows", "a drawing of")
WORDINGS = len(_OPENINGS)
"""How many wordings a scene has; the first one is the plainest."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a sentence."""

    text: str  # the word, with the comma that may follow it
    aspect: str = ""  # id of the claim it makes; empty for words that claim nothing (`a`, `and`)


Words = tuple[Word, ...]


def prompt(scene: Scene, wording: int = 0) -> str:
    """The scene as a sentence; `wording` 0..WORDINGS-1 chooses among equal ones."""
    return spell(words(scene, wording))


def prompts(scene: Scene) -> tuple[str, ...]:
    """All wordings of a scene and its list form; they all mean the same."""
    found = [prompt(scene, wording) for wording in range(WORDINGS)]
    return tuple(dict.fromkeys([*found, listing(scene)]))


def spell(sentence: Sequence[Word]) -> str:
    """The text of a sentence."""
    return " ".join(word.text for word in sentence)


def words(scene: Scene, wording: int = 0) -> Words:
    """The sentence of `prompt`, word by word."""
    opening = _say(_OPENINGS[wording % WORDINGS], "")
    phrases = [_group_words(i, group) for i, group in enumerate(scene.groups)]
    if scene.relation is not None:
        variants = _RELATION_WORDS[scene.relation]
        link = _say(variants[wording % len(variants)], "relation")
        phrases = [(*phrases[0], *link, *phrases[1]), *phrases[2:]]
    body = _join(phrases)
    for i, kind in enumerate(scene.absent):
        body += _denial(f"absent.{i}", kind, wording)
    if scene.place is not None:
        body += _say(_PLACE_WORDS[scene.place], "place")
    return opening + body


def listing(scene: Scene) -> str:
    """The scene as a list of keywords, as people write prompts in a hurry."""
    items = [_listed(group) for group in scene.groups]
    if scene.relation is not None:
        first, second = (_name(group) for group in scene.groups[:2])
        items.append(f"{first} {scene.relation} {second}")
    items += [f"no {plural(kind)}" for kind in scene.absent]
    items += [scene.place] if scene.place is not None else []
    return ", ".join(items)


def element(scene: Scene, aspect: Aspect) -> str:
    """A claim as a short phrase, e.g. `three circles`, `red circle`, `circle above star`."""
    if aspect.group is not None:
        return _group_element(scene.groups[aspect.group], aspect)
    if aspect.skill == "negation":
        return f"no {plural(aspect.detail)}"
    if aspect.skill == "place":
        return _PLACE_WORDS[aspect.detail]
    first, second = (_name(group) for group in scene.groups[:2])
    return f"{first} {_RELATION_WORDS[aspect.detail][0]} {second}"


def question(scene: Scene, aspect: Aspect) -> str:
    """A claim as a question whose answer is yes if the picture is right."""
    if aspect.group is not None:
        return _group_question(scene.groups[aspect.group], aspect)
    if aspect.skill == "negation":
        return f"Is the picture free of {plural(aspect.detail)}?"
    if aspect.skill == "place":
        return f"Is the scene {_PLACE_WORDS[aspect.detail]}?"
    (first, one), (second, _) = ((_name(g), g.count == 1) for g in scene.groups[:2])
    verb = "Is" if one else "Are"
    link = _RELATION_WORDS[aspect.detail][0] if aspect.detail in SPATIAL else aspect.detail
    return f"{verb} the {first} {link} the {second}?"


def plural(kind: str) -> str:
    """Several of a kind."""
    return _PLURAL.get(kind, f"{kind}s")


def _article(following: str) -> str:
    return "an" if following[0] in "aeiou" else "a"


def _say(text: str, aspect: str) -> Words:
    return tuple(Word(part, aspect) for part in text.split())


def _name(group: Group) -> str:
    return group.kind if group.count == 1 else plural(group.kind)


def _group_words(i: int, group: Group) -> Words:
    described = (
        (group.size, "scale"),
        (group.pattern, "texture"),
        (group.colour, "color"),
        (_name(group), "object"),
    )
    phrase = tuple(Word(text, f"{i}.{skill}") for text, skill in described if text)
    if group.count > 1:
        first = Word(NUMBERS[group.count], f"{i}.counting")
    else:
        first = Word(_article(phrase[0].text))
    said = (first, *phrase)
    if not group.parts:
        return said
    parts = [_part_words(f"{i}.part.{part}", part, colour) for part, colour in group.parts]
    return (*said, Word("with"), *_join(parts))


def _part_words(aspect: str, part: str, colour: str) -> Words:
    named = _say(f"{colour} {part}", aspect)
    if part in ("wheels", "petals"):
        return named
    return (Word(_article(colour)), *named)


def _join(phrases: Sequence[Words]) -> Words:
    """`A`, `A and B`, `A, B and C`."""
    said: Words = ()
    for i, phrase in enumerate(phrases):
        if i and i == len(phrases) - 1:
            said += (Word("and"),)
        elif i:
            said = (*said[:-1], Word(said[-1].text + ",", said[-1].aspect))
        said += phrase
    return said


def _denial(aspect: str, kind: str, wording: int) -> Words:
    variants = (
        (Word("and"), Word("no", aspect), Word(kind, aspect)),
        (Word("but"), Word("no", aspect), Word(kind, aspect)),
        (Word("without", aspect), Word("a"), Word(kind, aspect)),
    )
    return variants[wording % len(variants)]


def _listed(group: Group) -> str:
    parts = [str(group.count) if group.count > 1 else "", group.size, group.pattern, group.colour]
    text = " ".join([*(part for part in parts if part), _name(group)])
    extras = [f"{colour} {part}" for part, colour in group.parts]
    return f"{text} ({', '.join(extras)})" if extras else text


def _group_element(group: Group, aspect: Aspect) -> str:
    name = _name(group)
    before = {
        "counting": NUMBERS[group.count],
        "scale": group.size,
        "texture": group.pattern,
        "color": group.colour,
    }.get(aspect.skill)
    if aspect.skill == "part":
        return f"{dict(group.parts)[aspect.detail]} {aspect.detail}"
    return f"{before} {name}" if before else name


def _group_question(group: Group, aspect: Aspect) -> str:
    name, one = _name(group), group.count == 1
    verb = "Is" if one else "Are"
    if aspect.skill == "part":
        is_ = "Are" if aspect.detail in ("wheels", "petals") else "Is"
        return f"{is_} the {aspect.detail} of the {group.kind} {dict(group.parts)[aspect.detail]}?"
    if aspect.skill == "counting":
        return f"Are there exactly {NUMBERS[group.count]} {name}?"
    if aspect.skill in ("object", "shape"):
        return f"{verb} there {_article(name) + ' ' + name if one else name}?"
    said = {"scale": group.size, "texture": group.pattern, "color": group.colour}[aspect.skill]
    return f"{verb} the {name} {said}?"
