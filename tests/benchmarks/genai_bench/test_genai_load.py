"""Reader of GenAI-Bench: the released files, and what is said where they are not as released."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.genai_bench.load import MODELS, SKILLS
from benchmarks.genai_bench.protocol import CARD_527, CARD_1600, GenAiBench
from benchmarks.registry import load_registry
from tests.benchmarks.cards import trial_card
from tests.benchmarks.checks import refused

N_PROMPTS = 4
Json = Any


def released(first: int) -> tuple[Json, Json]:
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
    return prompts, tags


def write(root: Path, first: int = 0, change: Callable[[Json, Json], object] | None = None) -> Path:
    prompts, tags = released(first)
    if change is not None:
        change(prompts, tags)
    folder = root / "genai_1600"
    folder.mkdir()
    (folder / "genai_image.json").write_text(json.dumps(prompts), encoding="utf-8")
    (folder / "genai_skills.json").write_text(json.dumps(tags), encoding="utf-8")
    return root


def small() -> GenAiBench:
    return GenAiBench(trial_card(CARD_1600, prompts=N_PROMPTS, images=6 * N_PROMPTS))


def test_every_image_has_its_ratings_under_prompt_and_model(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    assert answers.pair_ids[:2] == ("00000/DALLE_3", "00000/SDXL_Turbo")
    assert answers.clusters == ("00000", "00001", "00002", "00003")
    assert answers.ratings[0].tolist() == [1, 5, 1]
    assert answers.labels[0] == 7 / 3
    assert set(answers.sources) == {"genai_1600/genai_image.json", "genai_1600/genai_skills.json"}
    counts = answers.counts()
    assert (counts["images"], counts["prompts"], counts["ratings"]) == (24, 4, 72)
    assert (counts["untagged prompts"], counts["basic: prompts"]) == (2, 2)


@pytest.mark.parametrize("first", [0, 1])
def test_tags_name_prompts_by_the_number_of_their_id(tmp_path: Path, first: int) -> None:
    answers = small().answers(write(tmp_path, first))
    assert answers.skills["basic"] == {f"{first:05d}", f"{first + 1:05d}"}
    assert answers.skills["counting"] == {f"{first + 1:05d}"}


def test_ratings_outside_the_scale_are_kept_and_can_be_left_out(tmp_path: Path) -> None:
    def slip(prompts: Json, tags: Json) -> None:
        prompts["00001"]["models"]["DALLE_3"] = [5, 41, 4]
        prompts["00002"]["models"]["DALLE_3"] = [0, 6, 33]

    answers = small().answers(write(tmp_path, change=slip))
    row = answers.pair_ids.index("00001/DALLE_3")
    assert answers.n_outside == 4
    assert answers.labels[row] == 50 / 3
    assert answers.cleaned_labels[row] == 4.5
    nothing_left = answers.pair_ids.index("00002/DALLE_3")
    assert answers.cleaned_labels[nothing_left] != answers.cleaned_labels[nothing_left]


def record(value: Json) -> Callable[[Json, Json], object]:
    return lambda prompts, tags: prompts.update({"00002": value})


def ratings(value: Json) -> Callable[[Json, Json], object]:
    return lambda prompts, tags: prompts["00002"]["models"].update(SDXL_Base=value)


def tag(numbers: Json) -> Callable[[Json, Json], object]:
    return lambda prompts, tags: tags.update(negation=numbers)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p, t: p.pop("00003"), "genai_image.json holds 3 prompts; expected 4"),
        (lambda p, t: p.update(x={}), "prompt id 'x'"),
        (lambda p, t: p.clear(), "not an object of prompts"),
        (record([]), "no record under '00002'"),
        (record({"prompt": " "}), "no prompt under '00002'"),
        (record({"prompt": "a"}), "models None under '00002'; expected DALLE_3"),
        (record({"prompt": "a", "models": {"DALLE_3": []}}), "models DALLE_3 under"),
        (ratings([1, 2]), "ratings '[1, 2]' for 00002/SDXL_Base; expected 3 whole"),
        (ratings([1, 2, 3.5]), "'[1, 2, 3.5]' for 00002/SDXL_Base"),
        (ratings([1, 2, True]), "'[1, 2, True]' for 00002/SDXL_Base"),
        (ratings("123"), "'123' for 00002/SDXL_Base"),
        (lambda p, t: t.pop("scene"), "genai_skills.json has tags basic"),
        (lambda p, t: t.update(other=[]), "has tags basic"),
        (tag(["1"]), "whole numbers under 'negation'"),
        (tag([4]), "tags prompt 4 as 'negation'; no prompt has this number"),
        (tag([1, 1]), "twice under 'negation'"),
    ],
)
def test_files_that_are_not_as_released_are_refused(
    tmp_path: Path, change: Callable[[Json, Json], object], says: str
) -> None:
    with refused("data_malformed", says):
        small().answers(write(tmp_path, change=change))


def test_what_is_no_json_and_another_release_are_refused(tmp_path: Path) -> None:
    place = write(tmp_path) / "genai_1600" / "genai_image.json"
    with refused("data_malformed", "sha256"):
        GenAiBench(CARD_1600.model_copy(update={"counts": {}})).answers(tmp_path)
    place.write_text("{", encoding="utf-8")
    with refused("data_malformed", "not JSON"):
        small().answers(tmp_path)


def pack(folder: Path, without: str = "") -> None:
    for model in MODELS:
        with zipfile.ZipFile(folder / f"{model}.zip", "w") as archive:
            for k in range(N_PROMPTS):
                name = f"{model}/{k:05d}.jpeg"
                if name != without:
                    archive.writestr(name, name)


def test_images_are_read_from_the_archives_of_the_models_or_unpacked(tmp_path: Path) -> None:
    write(tmp_path)
    assert not small().has_questions(tmp_path)
    with refused("images_missing"):
        small().questions(tmp_path)
    pack(tmp_path / "genai_1600", without="SDXL_Base/00002.jpeg")
    with refused("images_missing", "lacks 1 of the 4 images", "SDXL_Base/00002"):
        small().questions(tmp_path)
    pack(tmp_path / "genai_1600")
    assert small().has_questions(tmp_path)
    questions = small().questions(tmp_path)
    assert [pair.pair_id for pair in questions.pairs] == list(small().answers(tmp_path).pair_ids)
    pair = questions.pairs[7]
    assert questions.images[pair.image_id]() == b"SDXL_Turbo/00001.jpeg"
    assert questions.texts[pair.text_id] == "prompt 1"
    for model in MODELS:
        path = tmp_path / "genai_1600" / f"{model}.zip"
        with zipfile.ZipFile(path) as archive:
            archive.extractall(path.parent)
        path.unlink()
    assert small().has_questions(tmp_path)
    assert small().questions(tmp_path).images["00003/SDXL_Base"]() == b"SDXL_Base/00003.jpeg"


def test_without_files_the_error_names_them(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with refused("data_missing", "genai_1600/genai_image.json"):
            small().prompts(data)
        assert not small().has_questions(data)


def test_the_prompt_set_comes_with_its_tags(tmp_path: Path) -> None:
    prompts = small().prompts(write(tmp_path))
    assert prompts["prompt_id"].tolist() == ["00000", "00001", "00002", "00003"]
    assert prompts["prompt"][3] == "prompt 3"
    assert prompts["skills"][0] == "basic"
    assert prompts["skills"][1].split(";") == list(SKILLS)
    assert prompts["skills"][2] == ""


def test_both_sets_are_registered_with_calibrated_accuracy_as_headline() -> None:
    for name, card in (("genai_527", CARD_527), ("genai_1600", CARD_1600)):
        found = load_registry()[name].card
        assert found == card
        assert (card.headline.measure, card.headline.variant) == ("pairwise_accuracy", "paper")
        assert tuple(card.skills) == SKILLS
