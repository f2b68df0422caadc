"""The prompt sets on the released files: as many prompts, skills and elements as were counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.evalmuse.protocol import EvalMuse
from benchmarks.genai_bench.protocol import CARD_1600, GenAiBench
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.sources.folder import DataFile

pytestmark = [pytest.mark.paper, pytest.mark.slow]

COUNTED = {
    "gecko_s": 930,
    "gecko_s_rel": 648,
    "gecko_r": 616,
    "gecko_r_rel": 389,
    "evalmuse_ranking": 199,
    "genai_prompts": 1600,
    "tifa160_prompts": 160,
    "dsg_1k": 1060,
}
SETS = load_prompt_sets()


def prompts(name: str, data: Path) -> tuple[SetPrompt, ...]:
    return SETS[name].set_prompts(data)


def by_skill(found: tuple[SetPrompt, ...]) -> Counter[str]:
    return Counter(skill for one in found for skill in one.skills)


@pytest.mark.parametrize("name", COUNTED)
def test_a_set_has_the_released_number_of_prompts(name: str, assay_data: Path) -> None:
    found = prompts(name, assay_data)
    assert len(found) == COUNTED[name]
    assert SETS[name].card.counts["prompts"] == len(found)
    assert len({one.prompt_id for one in found}) == len(found)
    assert all(one.text.strip() for one in found)


@pytest.mark.parametrize("name", COUNTED)
def test_skills_and_parts_are_those_of_the_card_and_none_is_empty(
    name: str, assay_data: Path
) -> None:
    found, card = prompts(name, assay_data), SETS[name].card
    assert set(by_skill(found)) == set(card.skills)
    assert {one.split for one in found} - {""} == set(card.splits)


@pytest.mark.parametrize("name", COUNTED)
def test_every_result_names_the_hash_of_the_file_it_was_read_from(
    name: str, assay_data: Path
) -> None:
    prompt_set = SETS[name]
    pinned = {file.path: file.sha256 for file in prompt_set.card.files}
    assert all(pinned.values())
    assert prompt_set.answers(assay_data).sources == pinned
    assert prompt_set.has_answers(assay_data)


def test_the_reliable_prompts_are_among_the_others_with_the_same_skills(assay_data: Path) -> None:
    for name in ("gecko_s", "gecko_r"):
        everything = set(prompts(name, assay_data))
        assert set(prompts(f"{name}_rel", assay_data)) < everything
    assert by_skill(prompts("gecko_s", assay_data))["count"] == 128
    assert by_skill(prompts("gecko_s_rel", assay_data))["count"] == 78
    assert by_skill(prompts("gecko_s_rel", assay_data))["count:simple_numeric"] == 56


def test_a_prompt_of_gecko_s_has_one_skill_and_one_sub_skill_of_it(assay_data: Path) -> None:
    for one in prompts("gecko_s", assay_data):
        skill, sub_skill = one.skills
        assert sub_skill.startswith(f"{skill}:")
    found = by_skill(prompts("gecko_s", assay_data))
    assert sum(":" in skill for skill in found) == 44
    assert sum(":" not in skill for skill in found) == 12


def test_prompts_of_gecko_r_stand_by_source(assay_data: Path) -> None:
    found = Counter(one.split for one in prompts("gecko_r", assay_data))
    assert (found["tifa"], found["diffusiondb"]) == (192, 30)
    reliable = Counter(one.split for one in prompts("gecko_r_rel", assay_data))
    assert (reliable["tifa"], reliable["diffusiondb"]) == (163, 9)


def test_the_ranking_prompts_of_evalmuse_come_with_their_elements(assay_data: Path) -> None:
    found = prompts("evalmuse_ranking", assay_data)
    elements = [element for one in found for element in one.elements]
    assert len(elements) == 970
    assert Counter(one.split for one in found) == {"real": 100, "synth": 99}
    # Types as released, normalised: specification of the protocols, 3.3.
    assert Counter(element.skill for element in elements) == {
        "attribute": 185 + 12,
        "object": 154 + 16 + 15 + 9 + 6 + 5,
        "activity": 87,
        "a./h.": 60 + 45 + 3,
        "location": 51,
        "color": 36 + 24,
        "material": 36 + 13,
        "counting": 30 + 14,
        "spatial": 27 + 10,
        "food": 17,
        "shape": 1,
        "": 55 + 17 + 16 + 12 + 12 + 1 + 1,
    }
    for one in found:
        assert set(one.skills) == {element.skill for element in one.elements} - {""}
        assert len({element.element_id for element in one.elements}) == len(one.elements)


def test_a_metric_is_asked_about_elements_by_the_ids_of_the_benchmark_of_metrics(
    assay_data: Path,
) -> None:
    elements = {
        e.element_id: e for p in prompts("evalmuse_ranking", assay_data) for e in p.elements
    }
    spaced = [key for key in elements if key.endswith(" ")]
    assert len(spaced) > 0  # as released: ids are whole keys
    assert all(elements[key].skill in ("color", "material") for key in spaced)
    assert not any(elements[key].text.endswith(" ") for key in spaced)


def test_prompts_and_skills_are_those_that_the_benchmark_of_metrics_exports(
    assay_data: Path,
) -> None:
    for name, benchmark in (
        ("evalmuse_ranking", EvalMuse()),
        ("genai_prompts", GenAiBench(CARD_1600)),
    ):
        theirs = benchmark.prompts(assay_data)
        ours = prompts(name, assay_data)
        assert [one.prompt_id for one in ours] == list(theirs["prompt_id"])
        assert [one.text for one in ours] == list(theirs["prompt"])
        assert [set(one.skills) for one in ours] == [
            set(filter(None, cell.split(";"))) for cell in theirs["skills"]
        ]


def test_seven_prompts_of_genai_bench_have_no_skill(assay_data: Path) -> None:
    bare = [one.prompt_id for one in prompts("genai_prompts", assay_data) if not one.skills]
    assert bare == ["00719", "00721", "00730", "00733", "00739", "00743", "00951"]
    assert by_skill(prompts("genai_prompts", assay_data))["negation"] == 347


def test_dsg_1k_has_eight_categories_and_a_prompt_the_kinds_of_its_questions(
    assay_data: Path,
) -> None:
    found = prompts("dsg_1k", assay_data)
    assert Counter(one.split for one in found) == {
        "tifa": 160, "paragraph": 200, "relation": 100, "count": 100,
        "real_user": 200, "pose": 100, "defying": 100, "text": 100,
    }  # fmt: skip
    rubix = next(one for one in found if one.prompt_id == "whoops_5")
    assert rubix.text == "A rubix cube with ten squares of purple"
    assert rubix.skills == (
        "entity",
        "entity:whole",
        "attribute",
        "attribute:color",
        "attribute:shape",
    )
    assert not any(one.elements for one in found)


def test_tifa160_prompts_stand_by_collection(assay_data: Path) -> None:
    found = by_skill(prompts("tifa160_prompts", assay_data))
    assert found == {"coco": 84, "partiprompt": 51, "paintskill": 15, "drawbench": 10}


@pytest.mark.parametrize("name", COUNTED)
def test_a_changed_file_is_refused(name: str, assay_data: Path, tmp_path: Path) -> None:
    prompt_set = SETS[name]
    for file in prompt_set.card.files:
        copied(file, assay_data, tmp_path)
    assert prompt_set.has_answers(tmp_path)
    path = tmp_path / prompt_set.card.files[0].path
    path.write_bytes(path.read_bytes().replace(b"a", b"o", 1))
    fresh = PromptSet(prompt_set.card, prompt_set._load, prompt_set.drawing)
    assert not fresh.has_answers(tmp_path)


def copied(file: DataFile, data: Path, to: Path) -> None:
    source = next(data / name for name in (file.path, *file.also) if (data / name).is_file())
    (to / file.path).parent.mkdir(parents=True, exist_ok=True)
    (to / file.path).write_bytes(source.read_bytes())
