"""Short and long prompts: the two halves of the length view of CROC (Figures 8 and 9)."""

from __future__ import annotations

LONGEST_SHORT = 280
"""Characters of the longest prompt that counts as short."""
SHORT, LONG = f"up_to_{LONGEST_SHORT}", f"over_{LONGEST_SHORT}"
LENGTHS: tuple[str, str] = (SHORT, LONG)
"""Names of the splits by the length of the original prompt T_O."""


def length_split(prompt: str) -> str:
    """The split of a prompt by its number of characters."""
    return SHORT if len(prompt) <= LONGEST_SHORT else LONG
