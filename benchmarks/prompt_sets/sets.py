"""Prompt sets of benchmarks of metrics, and the bundled one that simulated models drew."""

from __future__ import annotations

from functools import partial
from typing import Literal

from benchmarks.croc.load import METADATA
from benchmarks.croc.load import load_prompts as croc_prompts
from benchmarks.croc.protocol import CARD as CROC
from benchmarks.demo.load import gecko_answers
from benchmarks.evalmuse.load import (
    PROMPTS,
    SKILLS,
    UNREPORTED_SKILL,
    RankingPrompt,
    parse_element_key,
    ranking_prompts,
)
from benchmarks.evalmuse.protocol import CARD as EVALMUSE
from benchmarks.families.benchmark import CardBenchmark
from benchmarks.gecko.load import PROMPTS as GECKO_PROMPTS
from benchmarks.gecko.load import RELIABLE_FLAG
from benchmarks.gecko.load import load_prompts as gecko_prompts
from benchmarks.gecko.protocol import CARD as GECKO
from benchmarks.genai_bench.protocol import GENAI_1600
from benchmarks.prompt_sets.prompt_set import (
    SEEDS,
    Drawing,
    PromptSet,
    SetElement,
    SetPrompt,
    card_beside,
    set_card,
    set_prompts_of,
)
from benchmarks.sources.folder import DataFolder
from benchmarks.tifa160.protocol import TIFA160

_DRAWING = Drawing(least_side=256)


def _of_croc(folder: DataFolder) -> list[SetPrompt]:
    """The prompts of CROC_hum, originals and contrasts, each text once."""
    return list(set_prompts_of(croc_prompts(folder)))


def _of_demo(_: DataFolder) -> list[SetPrompt]:
    """The prompts of `demo_gecko`."""
    return [
        SetPrompt(prompt_id, text, skills=(skill, f"{skill}:{sub_skill}"))
        for prompt_id, text, skill, sub_skill in gecko_answers().prompts.itertuples(index=False)
    ]


# EvalMuse-40K: the prompts by which it ranks text-to-image models, with their elements.


IMAGES_EACH = (*SEEDS, 7919)
"""Table 10 rests on four images of a prompt; which seeds they had, the paper does not say."""


def _of_evalmuse(folder: DataFolder) -> list[SetPrompt]:
    return list(map(_ranking_prompt, ranking_prompts(folder)))


def _ranking_prompt(one: RankingPrompt) -> SetPrompt:
    """The id of an element is its whole key, as in the element scores of the benchmark of metrics."""
    elements = []
    for key in one.elements:
        parsed = parse_element_key(key)
        skill = "" if parsed.skill == UNREPORTED_SKILL else parsed.skill
        elements.append(SetElement(key, parsed.text, skill))
    named = {element.skill for element in elements}
    skills = tuple(skill for skill in SKILLS if skill in named)
    return SetPrompt(one.prompt_id, one.text, one.split, skills, tuple(elements))


def _of_gecko(folder: DataFolder, part: Literal["s", "r"], *, reliable: bool) -> list[SetPrompt]:
    """The prompts of Gecko2K: Gecko(S) by skill, Gecko(R), and the reliable ones of each."""
    table = gecko_prompts(folder)
    if reliable:
        if "reliable" not in table:
            raise folder.malformed(GECKO_PROMPTS, f"has no column {RELIABLE_FLAG}")
        table = table[table["reliable"]]
    chosen = table[table["split"] == part]
    columns = ("prompt_id", "prompt", "skill", "sub_skill", "source")
    return [
        SetPrompt(prompt_id, text, source, (skill, f"{skill}:{sub_skill}") if skill else ())
        for prompt_id, text, skill, sub_skill, source in zip(
            *(chosen[name] for name in columns), strict=True
        )
    ]


def _gecko_set(part: Literal["s", "r"], *, reliable: bool) -> PromptSet:
    name = f"gecko_{part}{'_rel' if reliable else ''}"
    return PromptSet(
        card_beside(name, GECKO, (GECKO_PROMPTS,), skills=part == "s"),
        partial(_of_gecko, part=part, reliable=reliable),
        _DRAWING,
        rated_by="gecko",
    )


def _of_card(folder: DataFolder, benchmark: CardBenchmark) -> list[SetPrompt]:
    """The prompts of a benchmark that its card says, with their skills."""
    return list(set_prompts_of(benchmark.items(folder).prompts()))


PROMPT_SETS = (
    PromptSet(card_beside("croc_hum_prompts", CROC, (METADATA,)), _of_croc, _DRAWING),
    PromptSet(
        set_card("demo_prompts"),
        _of_demo,
        Drawing(seeds=(1, 2), least_side=64, most_side=1024),
        rated_by="demo_gecko",
    ),
    PromptSet(
        card_beside("evalmuse_ranking", EVALMUSE, (PROMPTS,)),
        _of_evalmuse,
        Drawing(seeds=IMAGES_EACH, least_side=256),
    ),
    *(_gecko_set(part, reliable=reliable) for part in ("s", "r") for reliable in (False, True)),
    PromptSet(
        card_beside("genai_prompts", GENAI_1600.card, GENAI_1600.asked_from),
        partial(_of_card, benchmark=GENAI_1600),
        _DRAWING,
        rated_by=GENAI_1600.name,
    ),
    PromptSet(
        card_beside("tifa160_prompts", TIFA160.card, TIFA160.asked_from),
        partial(_of_card, benchmark=TIFA160),
        _DRAWING,
        rated_by=TIFA160.name,
    ),
)
