"""Element keys such as `two cups (counting)`: the element's text and its type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

SKILLS: tuple[str, ...] = (
    "attribute",
    "material",
    "color",
    "location",
    "object",
    "a./h.",
    "food",
    "spatial",
    "activity",
    "shape",
    "counting",
)
"""Element types with a column in the paper's Table 6, in its order; `a./h.` is animal or human."""
UNREPORTED_SKILL = "other"
"""Type of all remaining elements, which the paper counts in the overall accuracy only."""
_ANIMAL_OR_HUMAN = frozenset({"animal", "human", "animal/human"})


@dataclass(frozen=True, slots=True)
class ElementKey:
    """A key taken apart.

    Attributes:
        text: the element as it stands in the prompt, e.g. `two cups`.
        kind: its type as annotated, without spaces and brackets around it, e.g. `object-vehicle`.
    """

    text: str
    kind: str

    @property
    def skill(self) -> str:
        """One of `SKILLS`, or `other`."""
        group = self.kind.lower().partition("-")[0].strip()
        if group in _ANIMAL_OR_HUMAN:
            return "a./h."
        return group if group in SKILLS else UNREPORTED_SKILL


@lru_cache(maxsize=1 << 16)  # the images of one prompt repeat its keys
def parse_element_key(key: str) -> ElementKey:
    """Take a key apart at its last opening bracket.

    The released types differ in capitals, have sub-types after a hyphen, and in part a space
    after the closing bracket.

    Raises:
        ValueError: there is no bracket, or no text before it.
    """
    text, bracket, kind = key.rpartition("(")
    if not bracket or not text.strip():
        raise ValueError(f"{key!r} is no element with a type in brackets, such as 'cup (object)'")
    return ElementKey(text.strip(), kind.strip(" \t\n)"))
