"""The answer side of CROC_hum and of any benchmark with its structure."""

from __future__ import annotations

from collections import Counter
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

    @property
    def images(self) -> tuple[str, ...]:
        """Stems of all its images, each of which is scored with both prompts."""
        return (*self.original_images, *self.contrast_images)


TEXTS: tuple[str, str] = ("orig", "contrast")
"""Whose text a pair id names: that of T_O or that of T_C."""


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

    def counts(self) -> dict[str, int]:
        """Images and prompt pairs, in all and by category."""
        categories = Counter(pair.category for pair in self.prompt_pairs)
        return {
            "images": sum(len(pair.images) for pair in self.prompt_pairs),
            "prompt pairs": len(self.prompt_pairs),
            "unique prompts": len({t for p in self.prompt_pairs for t in (p.prompt, p.contrast)}),
            **{f"{category}: prompt pairs": n for category, n in categories.items()},
        }


@dataclass(frozen=True)
class CrocHumAnswers(CrocAnswers):
    """The answer side of CROC_hum, whose file names tell which model made an image."""

    def counts(self) -> dict[str, int]:
        """As for any CROC benchmark, and the images of each generator."""
        made = Counter(generator(stem) for pair in self.prompt_pairs for stem in pair.images)
        return {**super().counts(), **{f"{name}: images": n for name, n in sorted(made.items())}}


def generator(name: str) -> str:
    """Which model made an image, by its file name: `flux`, `sd` or `gpt`.

    The releases spell the models differently (`FLUX_1_schnell`, `FLUX_1_dev`, ...), so the authors
    look for a part of the name, and what is neither Flux nor Stable Diffusion is GPT-4o.
    """
    if "flux" in name.lower():
        return "flux"
    return "sd" if "stable_diffusion" in name else "gpt"
