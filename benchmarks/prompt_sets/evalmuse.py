"""The prompts by which EvalMuse-40K ranks text-to-image models, with their elements."""

from __future__ import annotations

from benchmarks.evalmuse.load import (
    PROMPTS,
    SKILLS,
    UNREPORTED_SKILL,
    RankingPrompt,
    parse_element_key,
    ranking_prompts,
)
from benchmarks.evalmuse.protocol import CARD
from benchmarks.prompt_sets.prompt_set import (
    SEEDS,
    Drawing,
    PromptSet,
    SetElement,
    SetPrompt,
    card_beside,
)
from benchmarks.sources.folder import DataFolder

IMAGES_EACH = (*SEEDS, 7919)
"""Table 10 rests on four images of a prompt; which seeds they had, the paper does not say."""


def _prompts(folder: DataFolder) -> list[SetPrompt]:
    return [_prompt(one) for one in ranking_prompts(folder)]


def _prompt(one: RankingPrompt) -> SetPrompt:
    elements = tuple(map(_element, one.elements))
    named = {element.skill for element in elements}
    skills = tuple(skill for skill in SKILLS if skill in named)
    return SetPrompt(one.prompt_id, one.text, one.split, skills, elements)


def _element(key: str) -> SetElement:
    """Its id is the whole key, as in the element scores of the benchmark of metrics."""
    parsed = parse_element_key(key)
    skill = "" if parsed.skill == UNREPORTED_SKILL else parsed.skill
    return SetElement(key, parsed.text, skill)


PROMPT_SETS = (
    PromptSet(
        card_beside("evalmuse_ranking", CARD, (PROMPTS,)),
        _prompts,
        Drawing(seeds=IMAGES_EACH, least_side=256),
    ),
)
