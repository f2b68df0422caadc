"""Simulated language model that writes prompt pairs, now and then as language models fail to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from evaluator.scorers.models.sampling import Sampled, Sampling

FAULTS = 10
"""One of so many replies is of each of four failures."""


def pair_for(instruction: str, seed: int) -> dict[str, str]:
    """A prompt pair about what an instruction names."""
    named = dict(re.findall(r"^(\w[\w ]*): ([^.]+)\.", instruction, re.M))
    entity, varied = named.get("Entity", "thing"), named.get("Property", "odd")
    scene = named.get("Subject") or named.get("Subject of the scene") or named["First scene"]
    other = named.get("Second scene", scene)
    found = {
        "prompt": f"A {entity} number {seed} that is {varied}, in {scene}.",
        "contrast_prompt": f"A {entity} number {seed} that is not {varied}, in {other}.",
    }
    if "varied_definition" in instruction:
        found["varied_definition"] = f"A {entity} with one part more."
    return found


def reply_for(instruction: str, seed: int, *, faulty: bool = True) -> Sampled:
    """What it says, the same each time."""
    pair = pair_for(instruction, seed)
    good = f"Let me think {{about}} it.\n```json\n{json.dumps(pair)}\n```"
    digest = hashlib.sha256(f"{seed}/{instruction}".encode()).digest()
    match digest[0] % FAULTS if faulty else FAULTS:
        case 0:
            return Sampled("I would rather talk about the weather.")
        case 1:
            return Sampled(good[: len(good) // 2], cut=True)
        case 2:
            return Sampled("", refusal="content_filter")
        case 3:
            same = {**pair, "contrast_prompt": pair["prompt"].upper()}
            return Sampled(json.dumps(same))
    return Sampled(good)


class SimulatedWriter:
    """Writes what `reply_for` says; may be stopped after so many calls."""

    def __init__(self, calls: int | None = None, *, faulty: bool = True) -> None:
        self.left, self.faulty = calls, faulty
        self.asked: list[tuple[str, int]] = []

    def sample(
        self, prompts: Sequence[str], seeds: Sequence[int], max_new_tokens: int, how: Sampling
    ) -> list[Sampled]:
        """See `SamplingModel`."""
        del max_new_tokens, how
        if self.left is not None:
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
        asked = list(zip(prompts, seeds, strict=True))
        self.asked += asked
        return [reply_for(*one, faulty=self.faulty) for one in asked]

    def fits(self, prompt: str, max_new_tokens: int) -> bool:
        """See `SamplingModel`."""
        del prompt, max_new_tokens
        return True
