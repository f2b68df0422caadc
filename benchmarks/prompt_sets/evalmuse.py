"""The prompts by which EvalMuse-40K ranks text-to-image models, with their elements."""

from __future__ import annotations

from benchmarks.evalmuse.benchmark import CARD
from benchmarks.evalmuse.element_keys import SKILLS, UNREPORTED_SKILL, parse_element_key
from benchmarks.evalmuse.load import PROMPTS, RankingPrompt, ranking_prompts
from benchmarks.prompt_sets.prompt_set import SEEDS, Drawing, PromptSet, SetElement, SetPrompt
from benchmarks.prompt_sets.set_cards import card_beside
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
