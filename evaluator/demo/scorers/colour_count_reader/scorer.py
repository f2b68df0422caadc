"""Reads colours and numbers from a prompt and counts the spots of each colour in the picture."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

NUMBERS: dict[str, int] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
PATTERNS = frozenset({"striped", "dotted", "checked"})
COLOURS: dict[str, tuple[int, int, int, int, int, int]] = {
    "red": (243, 9, 140, 255, 140, 255),
    "orange": (14, 29, 140, 255, 190, 255),
    "yellow": (30, 45, 120, 255, 190, 255),
    "green": (70, 115, 125, 255, 100, 220),
    "blue": (143, 170, 150, 255, 150, 255),
    "purple": (185, 210, 110, 255, 120, 220),
    "pink": (222, 242, 80, 175, 190, 255),
    "brown": (10, 29, 135, 255, 90, 160),
    "black": (0, 255, 0, 90, 0, 68),
    "white": (0, 255, 0, 5, 246, 255),
}
"""Name to the limits of hue (which may run over 255 to 0), saturation and value, each 0..255."""
SMALLEST = 0.0007
"""Spots that cover less of the picture are specks or remains of outlines."""
SAYS_NOTHING = 0.5
_TOKEN = re.compile(r"[a-z]+|[0-9]+|[,(]")
_CROSS = ndimage.generate_binary_structure(2, 1)
_GAP = np.ones((7, 7), np.bool_)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a phrase says about colour and number.

    Attributes:
        colour: a name of COLOURS, or empty.
        number: how many; 0 where nothing is said.
        words: the words of the phrase.
    """

    colour: str
    number: int
    words: frozenset[str]


class Scorer:
    """How well the spots of each colour agree in number with what the prompt says."""

    def score(self, images: list[Image.Image], prompts: list[str]) -> list[float]:
        """0..1 per pair; 0.5 where the prompt says nothing of colour or number."""
        spots = _Spots.of(images)
        return [
            _mean([_agreement(spots[id(image)], claim, prompt) for claim in claims(prompt)])
            for image, prompt in zip(images, prompts, strict=True)
        ]

    def score_elements(
        self, images: list[Image.Image], prompts: list[str], elements: list[list[str]]
    ) -> list[list[float]]:
        """0..1 per element; 0.5 for elements that say nothing of colour or number."""
        spots = _Spots.of(images)
        return [
            [_element(spots[id(image)], text, prompt) for text in texts]
            for image, prompt, texts in zip(images, prompts, elements, strict=True)
        ]


class _Spots:
    """Spots of one picture, counted when asked for and remembered."""

    def __init__(self, image: Image.Image) -> None:
        self._hsv = np.asarray(image.convert("RGB").convert("HSV"), np.uint8)
        self._counts: dict[tuple[str, bool], int] = {}

    @classmethod
    def of(cls, images: list[Image.Image]) -> dict[int, _Spots]:
        """By the identity of the image: each is looked at once."""
        return {key: cls(image) for key, image in {id(image): image for image in images}.items()}

    def count(self, colour: str, patterned: bool) -> int:
        """Number of spots; with a pattern, pieces that lie close together are one spot."""
        key = (colour, patterned)
        if key not in self._counts:
            self._counts[key] = self._counted(colour, patterned)
        return self._counts[key]

    def _counted(self, colour: str, patterned: bool) -> int:
        found = _mask(self._hsv, colour)
        if not found.any():
            return 0
        # Opening takes away outlines, which are a darker tone and can look like another colour.
        found = ndimage.binary_opening(found, _CROSS)
        if patterned:
            found = ndimage.binary_closing(np.pad(found, 4), _GAP)
        labels, _ = ndimage.label(found)
        sizes = np.bincount(labels.ravel())[1:]
        return int(np.count_nonzero(sizes >= SMALLEST * self._hsv[:, :, 0].size))


def claims(prompt: str) -> list[Claim]:
    """The phrases that say something: those with a colour, or with a number above one."""
    phrases: list[list[str]] = [[]]
    for token in _TOKEN.findall(prompt.lower()):
        if token in NUMBERS or token.isdigit() or token in {",", "(", "and", "with"}:
            phrases.append([])
        phrases[-1].append(token)
    found = [_claim(phrase, _inside_thing(phrases[:i])) for i, phrase in enumerate(phrases)]
    return [claim for claim in found if claim.colour or claim.number > 1]


def _inside_thing(before: list[list[str]]) -> bool:
    """Whether a phrase lists parts of a thing: their number is not what is said."""
    return any(phrase[:1] in (["with"], ["("]) for phrase in before)


def _claim(phrase: list[str], is_part: bool) -> Claim:
    number = NUMBERS.get(phrase[0], 0) if phrase else 0
    if phrase and phrase[0].isdigit():
        number = min(int(phrase[0]), 99)
    colour = next((word for word in phrase if word in COLOURS), "")
    part = is_part or phrase[:1] in (["with"], ["("])
    return Claim(colour, 0 if part else number, frozenset(phrase[number > 0 :]))


def _element(spots: _Spots, text: str, prompt: str) -> float:
    said = claims(prompt)
    found = []
    for claim in claims(text):
        if not claim.colour:  # `three circles`: the prompt may say of which colour
            known = (s for s in said if s.number == claim.number and s.words & claim.words)
            claim = next(known, claim)  # noqa: PLW2901 - the same claim, told in full
        found.append(_agreement(spots, claim, prompt))
    return _mean(found)


def _agreement(spots: _Spots, claim: Claim, prompt: str) -> float:
    """1 if the number is right, falling with the ratio of the numbers; 0 if the colour is absent."""
    patterned = any(pattern in prompt.lower() for pattern in PATTERNS)
    if claim.colour:
        seen = spots.count(claim.colour, patterned)
    else:  # all that has no colour of its own in the prompt
        named = {said.colour for said in claims(prompt)}
        seen = sum(spots.count(c, patterned) for c in COLOURS if c not in named)
    if claim.number == 0:
        return float(seen > 0)
    return min(seen, claim.number) / max(seen, claim.number)


def _mask(hsv: NDArray[np.uint8], colour: str) -> Mask:
    low, high, *limits = COLOURS[colour]
    hue, saturation, value = (hsv[:, :, i] for i in range(3))
    above, below = hue >= low, hue <= high
    right_hue = above & below if low <= high else above | below
    right_saturation = (saturation >= limits[0]) & (saturation <= limits[1])
    return np.asarray(right_hue & right_saturation & (value >= limits[2]) & (value <= limits[3]))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else SAYS_NOTHING
