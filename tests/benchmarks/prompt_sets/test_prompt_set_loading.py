"""Reading prompt sets from small files in the released layouts, right and wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet, SetElement, SetPrompt
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.sources.folder import DataFile, DataFolder
from tests.benchmarks.cards import trial_card

SETS = load_prompt_sets()
QUESTIONS = "item_id,text,category_broad,category_detailed\n"
TSV = """id\tprompt\tcontrast\tprompt_paths\tcontrast_paths\talt_contrast_paths
counting_1\tTwo cats\tThree cats\t['images/counting/prompt/a.jpg']\t[]\t
negation_1\tTwo cats\tNo cat\t[]\t[]\t['images/negation/x/b.jpg']
"""


def trial(name: str, **counts: int) -> PromptSet:
    """The set with a card that pins nothing."""
    whole = SETS[name]
    return PromptSet(trial_card(whole.card, **counts), whole._load, whole.drawing)


def put(data: Path, name: str, content: str) -> Path:
    place = data / SETS[name].card.files[0].path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content, encoding="utf-8")
    return data


def refused(name: str, data: Path, **counts: int) -> str:
    with pytest.raises(SubmitterError) as error:
        trial(name, **counts).set_prompts(data)
    assert error.value.code == "data_malformed"
    return str(error.value)


def test_both_texts_of_croc_are_prompts_and_each_once(tmp_path: Path) -> None:
    put(tmp_path, "croc_hum_prompts", TSV)
    assert trial("croc_hum_prompts").set_prompts(tmp_path) == (
        SetPrompt("counting_1|orig", "Two cats", skills=("counting", "negation")),
        SetPrompt("counting_1|contrast", "Three cats", skills=("counting",)),
        SetPrompt("negation_1|contrast", "No cat", skills=("negation",)),
    )


def test_croc_must_hold_the_pairs_and_images_of_its_card(tmp_path: Path) -> None:
    put(tmp_path, "croc_hum_prompts", TSV)
    with pytest.raises(SubmitterError, match="holds 2 prompt pairs; expected 280"):
        SETS["croc_hum_prompts"].set_prompts(tmp_path)


def test_a_question_of_dsg_gives_its_prompt_a_broad_and_a_detailed_skill(tmp_path: Path) -> None:
    rows = "whoops_1,A red cup,entity,whole\nwhoops_1,A red cup,attribute,color\n"
    put(tmp_path, "dsg_1k", f"{QUESTIONS}{rows}vrd_2,A view,global,-\n")
    assert trial("dsg_1k").set_prompts(tmp_path) == (
        SetPrompt(
            "whoops_1",
            "A red cup",
            "defying",
            ("entity", "entity:whole", "attribute", "attribute:color"),
        ),
        SetPrompt("vrd_2", "A view", "relation", ("global",)),
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("new_1,A cup,entity,whole\n", "item_id 'new_1'"),
        ("vrd_1,A cup,entity,whole\nvrd_1,Two cups,entity,whole\n", "'vrd_1' more than one text"),
        ("vrd_1,A cup,thing,whole\n", "unknown category 'thing'"),
        ("vrd_1,A cup,entity,half\n", "unknown category 'entity:half'"),
        ("vrd_1,A cup,entity,whole\nvrd_2,,entity,whole\n", "data row 2"),
    ],
)
def test_questions_that_are_not_those_of_dsg_are_refused(
    rows: str, said: str, tmp_path: Path
) -> None:
    put(tmp_path, "dsg_1k", QUESTIONS + rows)
    assert said in refused("dsg_1k", tmp_path)


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    put(tmp_path, "dsg_1k", "item_id,text\nvrd_1,A cup\n")
    assert "no column category_broad" in refused("dsg_1k", tmp_path)


def test_reliable_prompts_need_the_flag(tmp_path: Path) -> None:
    header = "dataset_id,prompt,prompt_type,prompt_id"
    put(tmp_path, "gecko_s", f"{header}\natt/color:stroop,a blue lemon,Gecko(S),0\n")
    found = trial("gecko_s").set_prompts(tmp_path)
    assert found == (SetPrompt("0", "a blue lemon", skills=("color", "color:stroop")),)
    assert "no column max_disagreement_less_0.5" in refused("gecko_s_rel", tmp_path)


def test_elements_keep_their_key_and_lose_the_brackets_and_sub_types(tmp_path: Path) -> None:
    text = "two violet cups on a train"
    keys = ["two (Counting)", "violet (Color) ", "train (object-vehicle)", "noon (Other-time)"]
    listed = ", ".join(f'"{key}": null' for key in keys)
    content = f'{{"{text}": {{"prompt": "{text}", "element_score": {{{listed}}}}}}}'
    put(tmp_path, "evalmuse_ranking", content)
    [prompt] = trial("evalmuse_ranking").set_prompts(tmp_path)
    assert (prompt.prompt_id, prompt.split) == ("000", "real")
    assert prompt.skills == ("color", "object", "counting")
    assert prompt.elements == (
        SetElement(keys[0], "two", "counting"),
        SetElement(keys[1], "violet", "color"),
        SetElement(keys[2], "train", "object"),
        SetElement(keys[3], "noon", ""),
    )


@pytest.mark.parametrize("elements", ['{"cup": null}', "3", '"cup"', "[1]", "null"])
def test_elements_that_cannot_be_taken_apart_are_refused(elements: str, tmp_path: Path) -> None:
    put(tmp_path, "evalmuse_ranking", f'{{"a": {{"prompt": "a", "element_score": {elements}}}}}')
    assert "unusable element_score" in refused("evalmuse_ranking", tmp_path)


def test_other_counts_than_those_of_the_card_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "dsg_1k", f"{QUESTIONS}vrd_1,A cup,entity,whole\n")
    assert "holds 1 prompts; expected 2" in refused("dsg_1k", tmp_path, prompts=2)


def test_files_are_read_again_only_when_they_change(tmp_path: Path) -> None:
    calls: list[int] = []

    def load(folder: DataFolder) -> Sequence[SetPrompt]:
        calls.append(1)
        return [SetPrompt("a", folder.path("x/a.txt").read_text())]

    card = SETS["dsg_1k"].card
    files = (DataFile(path="x/a.txt", role="prompts", supplied="Ask."),)
    prompt_set = PromptSet(card.model_copy(update={"files": files, "counts": {}}), load)
    place = tmp_path / "x/a.txt"
    place.parent.mkdir()
    place.write_text("one")
    assert [prompt_set.set_prompts(tmp_path)[0].text for _ in range(3)] == ["one"] * 3
    assert len(calls) == 1
    place.write_text("three")
    assert prompt_set.set_prompts(tmp_path)[0].text == "three"
    assert len(calls) == 2
