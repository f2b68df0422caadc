"""The public prompts.csv of Gecko2K: skills, sub-skills, sources and flags as counted in 4.2 of
the specification of the protocols (count/reliable)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.gecko.load import load_prompts
from benchmarks.gecko.protocol import CARD, Gecko

pytestmark = [pytest.mark.paper, pytest.mark.slow]

COUNTED = {
    "color": ("abstract 8/7, composed 13/9, descriptive 11/10, simple_everyday 22/16, stroop 10/9", "64/51"),
    "count": ("additive_2 11/7, additive_3 11/8, quant_and_neg 13/7, simple_numeric 93/56", "128/78"),
    "shape": ("basic_shape 10/3, hierarchical_shape 10/4, shape_rendering 22/14", "42/21"),
    "style": ("style_100yr 26/21, style_100yr/visual_medium 22/13, visual_medium 26/22", "74/56"),
    "texture": ("material 16/13, material_texture 4/2, texture 9/7", "29/22"),
    "lang_complexity": ("complexity_false_paraphrase 58/46, complexity_long_prompt 38/26, "
                        "complexity_negation 19/8, complexity_true_paraphrase 58/43", "173/123"),
    "lang_compositional": ("compositional-2E-1A 10/8, compositional-2E-2A 10/8, compositional-3E-1A 10/9, "
                           "compositional-3E-2A 10/9, negatives 15/6", "55/40"),
    "named_entity": ("artwork 21/13, landmarks 59/36", "80/49"),
    "action": ("action/1 18/14, action/2 19/15, action/3 10/7, action_rev/2 19/15, action_rev/3 8/6", "74/57"),
    "scale": ("comparative 7/3, comparative_rev 12/10, same_size 6/3, single_object 10/9", "35/25"),
    "spatial": ("spatial_basic 33/21, spatial_basic_rev 28/19, spatial_complex 20/12", "81/52"),
    "text": ("text_font 23/22, text_numerical 30/19, text_rendering 42/33", "95/74"),
}  # fmt: skip
SOURCES = (
    "tifa 192/163, drawtext 110/61, stanford_paragraph 82/55, countbench 63/30, posescript 61/18, "
    "whoops 47/32, localized_narratives 31/21, diffusiondb 30/9"
)


def pair(text: str) -> tuple[int, int]:
    count, reliable = text.split("/")
    return int(count), int(reliable)


def pairs(text: str) -> dict[str, tuple[int, int]]:
    return {name: pair(both) for name, both in (part.rsplit(" ", 1) for part in text.split(", "))}


def counted(table: pd.DataFrame, by: str) -> dict[str, tuple[int, int]]:
    sizes = table.groupby(by)["reliable"].agg(["size", "sum"])
    return {str(name): (int(row["size"]), int(row["sum"])) for name, row in sizes.iterrows()}


@pytest.fixture(scope="module")
def prompts(assay_data: Path) -> pd.DataFrame:
    return load_prompts(Gecko().folder(assay_data))


def test_forty_four_ids_in_twelve_skills(prompts: pd.DataFrame) -> None:
    synthetic = prompts[prompts["split"] == "s"]
    assert counted(synthetic, "skill") == {k: pair(total) for k, (_, total) in COUNTED.items()}
    for skill, (parts, _) in COUNTED.items():
        assert counted(synthetic[synthetic["skill"] == skill], "sub_skill") == pairs(parts)
    keys = set(synthetic["skill"] + ":" + synthetic["sub_skill"])
    assert len(keys) == 44
    assert keys | set(COUNTED) == set(CARD.skills)


def test_sources_of_the_real_prompts(prompts: pd.DataFrame) -> None:
    real = prompts[prompts["split"] == "r"]
    assert counted(real, "source") == pairs(SOURCES)
    assert set(real["skill"]) == {""}


def test_sizes_and_reliable_prompts(prompts: pd.DataFrame) -> None:
    assert counted(prompts, "split") == {"s": (930, 648), "r": (616, 389)}


def test_flags_are_monotone_and_the_first_version_is_a_subset(assay_data: Path) -> None:
    table = pd.read_csv(assay_data / "gecko" / "prompts.csv")
    steps = ["0.3", "0.35", "0.4", "0.45", "0.5"]
    for lower, higher in pairwise(steps):
        below = table[f"max_disagreement_less_{lower}"]
        assert not (below & ~table[f"max_disagreement_less_{higher}"]).any()
    first = table["v1_max_disagreement_less_0.45"]
    assert not (first & ~table["max_disagreement_less_0.45"]).any()


def test_all_prompts_are_given_out_and_equal_texts_stay_two(assay_data: Path) -> None:
    table: Any = Gecko().prompts(assay_data).set_index("prompt_id")
    assert len(table) == 1546
    assert table.loc["981", "prompt"] == table.loc["1525", "prompt"]
    assert table["prompt"].duplicated().sum() == 1
    assert table.loc["0", "skills"] == "named_entity;named_entity:landmarks"
    assert table.loc["1545", "split"] == "r"


def test_the_pinned_hash_is_that_of_the_release(assay_data: Path) -> None:
    folder = Gecko().folder(assay_data)
    load_prompts(folder)
    assert folder.verified() == {"gecko/prompts.csv": CARD.files[0].sha256}
