"""Required images: every prompt of a set, once with every seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from benchmarks.errors import SubmitterError

Key = tuple[str, int]
MOST_SEEDS = 1000
"""Images of one prompt are compared with all that others gave of it."""


class PromptLike(Protocol):
    """A prompt of whatever set."""

    @property
    def prompt_id(self) -> str:
        """Stable and public."""

    @property
    def text(self) -> str:
        """What is drawn."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for. An image's place is its number, prompt by prompt, seed by seed.

    Attributes:
        texts: prompt id to text, in the order of the set; None where the text is not known.
        seeds: each once.
        least_side: of an image, in pixels.
        most_side: likewise; None: any.
    """

    texts: Mapping[str, str | None]
    seeds: tuple[int, ...]
    least_side: int = 1
    most_side: int | None = None

    @classmethod
    def of(
        cls,
        prompts: Iterable[PromptLike],
        seeds: Sequence[int],
        least_side: int = 1,
        most_side: int | None = None,
    ) -> Wanted:
        """Prompts of a set, with seeds."""
        texts = {one.prompt_id: one.text for one in prompts}
        return cls(texts, tuple(dict.fromkeys(seeds)), least_side, most_side)

    def check_number(self, most: int) -> None:
        """Whether so many images can be asked for.

        Raises:
            SubmitterError: `too_many_images`.
        """
        if len(self.seeds) > MOST_SEEDS:
            raise SubmitterError(
                "too_many_images",
                f"{len(self.seeds):,} seeds are named; {MOST_SEEDS:,} are taken.",
                "Name fewer seeds.",
            )
        if self.n_images > most:
            raise SubmitterError(
                "too_many_images",
                f"{len(self.seeds):,} seeds of {len(self.texts):,} prompts are "
                f"{self.n_images:,} images; {most:,} are taken.",
                "Name fewer seeds.",
            )

    @property
    def n_images(self) -> int:
        """How many images that are."""
        return len(self.texts) * len(self.seeds)

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        return tuple(self.texts)

    @cached_property
    def _prompt_at(self) -> dict[str, int]:
        return {prompt_id: at for at, prompt_id in enumerate(self.texts)}

    @cached_property
    def _seed_at(self) -> dict[int, int]:
        return {seed: at for at, seed in enumerate(self.seeds)}

    def place(self, key: Key) -> int | None:
        """An image's place; None where nobody asked for it."""
        prompt, seed = self._prompt_at.get(key[0]), self._seed_at.get(key[1])
        return None if prompt is None or seed is None else prompt * len(self.seeds) + seed

    def key(self, place: int) -> Key:
        """The inverse of `place`."""
        prompt, seed = divmod(place, len(self.seeds))
        return self._ids[prompt], self.seeds[seed]

    def why_not(self, key: Key) -> str:
        """Why nobody asked for an image."""
        if key[0] not in self.texts:
            return "there is no such prompt in the set"
        return f"seed {key[1]} is none of those that the manifest names"


def named(key: Key) -> str:
    """An image, for messages."""
    return f"{key[0][:80]}, seed {key[1]}"
