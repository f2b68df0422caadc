"""The answer side of CROC_hum and of any benchmark with its structure."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.schema import Answers


@dataclass(frozen=True)
class PromptPair:
    """One contrast pair of prompts with its images (a cluster).

    Attributes:
        id: `<category>_<num>`.
        category: the CROC category, e.g. `counting`, `spacial_relation` (sic).
        prompt: the original prompt T_O.
        contrast: the contrast prompt T_C.
        original_images: stems of I_O, images of T_O.
        contrast_images: stems of I_C, images of T_C (for negation: images of "A" alone).
    """

    id: str
    category: str
    prompt: str
    contrast: str
    original_images: tuple[str, ...]
    contrast_images: tuple[str, ...]


def pair_id(stem: str, text: str) -> str:
    """Public id of (image, whose text): `<stem>|orig` or `<stem>|contrast`."""
    return f"{stem}|{text}"


@dataclass(frozen=True)
class CrocAnswers(Answers):
    """Contrast pairs; every image is scored with both prompts of its pair.

    Attributes:
        prompt_pairs: the clusters, in the order of `clusters`.
    """

    prompt_pairs: tuple[PromptPair, ...]
