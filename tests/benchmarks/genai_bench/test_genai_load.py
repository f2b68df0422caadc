"""Reader of GenAI-Bench: the released files, and what is said where they are not as released."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.genai_bench.load import MODELS, SKILLS
from benchmarks.genai_bench.protocol import CARD_527, CARD_1600, GenAiBench
from benchmarks.registry import load_registry
from tests.benchmarks.cards import trial_card
from tests.benchmarks.checks import refused

N_PROMPTS = 4
Json = Any
Change = Callable[[Json, Json], object]


def write(root: Path, first: int = 0, change: Change = lambda prompts, tags: None) -> Path:
    """Made-up content in the released layout; ids start at `first`."""
    prompts = {
        f"{first + k:05d}": {
            "id": str(first + k),
            "prompt": f"prompt {k}",
            "prompt in Chinese": "提示",
            "models": {model: [1 + k, 5, (k + n) % 5 + 1] for n, model in enumerate(MODELS)},
        }
        for k in range(N_PROMPTS)
    }
    tags = {skill: [first, first + 1] if skill == "basic" else [first + 1] for skill in SKILLS}
    change(prompts, tags)
    folder = root / "genai_1600"
    folder.mkdir()
    (folder / "genai_image.json").write_text(json.dumps(prompts), encoding="utf-8")
    (folder / "genai_skills.json").write_text(json.dumps(tags), encoding="utf-8")
    return root


def small() -> GenAiBench:
    return GenAiBench(trial_card(CARD_1600, prompts=N_PROMPTS, images=6 * N_PROMPTS))


@pytest.mark.parametrize("first", [0, 1])
def test_images_have_their_ratings_and_prompts_the_tags_of_their_number(
    tmp_path: Path, first: int
) -> None:
    answers = small().answers(write(tmp_path, first))
    ids = tuple(f"{first + k:05d}" for k in range(N_PROMPTS))
    assert answers.pair_ids[:2] == (f"{ids[0]}/DALLE_3", f"{ids[0]}/SDXL_Turbo")
    assert answers.clusters == ids
    assert answers.ratings[0].tolist() == [1, 5, 1]
    assert answers.labels[0] == 7 / 3
    assert answers.skills["basic"] == {ids[0], ids[1]}
    assert answers.skills["counting"] == {ids[1]}
    assert set(answers.sources) == {"genai_1600/genai_image.json", "genai_1600/genai_skills.json"}
    counts = {"images": 24, "prompts": 4, "ratings": 72, "untagged prompts": 2, "basic: prompts": 2}
    assert counts.items() <= answers.counts().items()
    prompts = small().prompts(tmp_path)
    assert prompts["prompt_id"].tolist() == list(ids)
    assert prompts["prompt"][3] == "prompt 3"
    assert prompts["skills"].tolist() == ["basic", ";".join(SKILLS), "", ""]


def test_ratings_outside_the_scale_are_kept_and_can_be_left_out(tmp_path: Path) -> None:
    def slip(prompts: Json, tags: Json) -> None:
        prompts["00001"]["models"]["DALLE_3"] = [5, 41, 4]
        prompts["00002"]["models"]["DALLE_3"] = [0, 6, 33]

    answers = small().answers(write(tmp_path, change=slip))
    one, other = (answers.pair_ids.index(f"0000{k}/DALLE_3") for k in (1, 2))
    assert answers.n_outside == 4
    assert (answers.labels[one], answers.cleaned_labels[one]) == (50 / 3, 4.5)
    assert np.isnan(answers.cleaned_labels[other])  # nothing is left


def record(value: Json) -> Change:
    return lambda prompts, tags: prompts.update({"00002": value})


def ratings(value: Json) -> Change:
    return lambda prompts, tags: prompts["00002"]["models"].update(SDXL_Base=value)


def tag(numbers: Json) -> Change:
    return lambda prompts, tags: tags.update(negation=numbers)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p, t: p.pop("00003"), "expected 4"),
        (lambda p, t: p.update(x={}), "id 'x'"),
        (lambda p, t: p.clear(), "object of"),
        (record([]), "record under '00002'"),
        (record({"prompt": " "}), "prompt under '00002'"),
        (record({"prompt": "a"}), "None under '00002'"),
        (record({"prompt": "a", "models": {"DALLE_3": []}}), "models DALLE_3 under"),
        (ratings([1, 2]), "'[1, 2]' for 00002/SDXL_Base"),
        (ratings([1, 2, 3.5]), "'[1, 2, 3.5]' for 00002/SDXL_Base"),
        (ratings([1, 2, True]), "'[1, 2, True]' for 00002/SDXL_Base"),
        (ratings("123"), "'123' for 00002/SDXL_Base"),
        (lambda p, t: t.pop("scene"), "genai_skills.json"),
        (lambda p, t: t.update(other=[]), "genai_skills.json"),
        (tag(["1"]), "under 'negation'"),
        (tag([4]), "4 as 'negation'"),
        (tag([1, 1]), "twice under 'negation'"),
    ],
)
def test_files_that_are_not_as_released_are_refused(
    tmp_path: Path, change: Change, says: str
) -> None:
    with refused("data_malformed", says):
        small().answers(write(tmp_path, change=change))


def test_absent_files_what_is_no_json_and_another_release_are_refused(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with refused("data_missing", "genai_1600/genai_image.json"):
            small().prompts(data)
        assert not small().has_questions(data)
    place = write(tmp_path) / "genai_1600" / "genai_image.json"
    with refused("data_malformed", "sha256"):
        GenAiBench(CARD_1600.model_copy(update={"counts": {}})).answers(tmp_path)
    place.write_text("{", encoding="utf-8")
    with refused("data_malformed", "JSON"):
        small().answers(tmp_path)


def pack(folder: Path, without: str = "") -> None:
    for model in MODELS:
        with zipfile.ZipFile(folder / f"{model}.zip", "w") as archive:
            for k in range(N_PROMPTS):
                name = f"{model}/{k:05d}.jpeg"
                if name != without:
                    archive.writestr(name, name)


def test_images_are_read_from_the_archives_of_the_models_or_unpacked(tmp_path: Path) -> None:
    folder = write(tmp_path) / "genai_1600"
    assert not small().has_questions(tmp_path)
    with refused("images_missing"):
        small().questions(tmp_path)
    pack(folder, without="SDXL_Base/00002.jpeg")
    with refused("images_missing", "1 of the 4", "SDXL_Base/00002"):
        small().questions(tmp_path)
    pack(folder)
    assert small().has_questions(tmp_path)
    questions = small().questions(tmp_path)
    assert [pair.pair_id for pair in questions.pairs] == list(small().answers(tmp_path).pair_ids)
    pair = questions.pairs[7]
    assert questions.images[pair.image_id]() == b"SDXL_Turbo/00001.jpeg"
    assert questions.texts[pair.text_id] == "prompt 1"
    for path in folder.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        path.unlink()
    assert small().has_questions(tmp_path)
    assert small().questions(tmp_path).images["00003/SDXL_Base"]() == b"SDXL_Base/00003.jpeg"


@pytest.mark.parametrize("card", [CARD_527, CARD_1600], ids=lambda card: card.name)
def test_both_sets_are_registered_with_calibrated_accuracy_as_headline(card: Any) -> None:
    assert load_registry()[card.name].card == card
    assert (card.headline.measure, card.headline.variant) == ("pairwise_accuracy", "paper")
    assert tuple(card.skills) == SKILLS
