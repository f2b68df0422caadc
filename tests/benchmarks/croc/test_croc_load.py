"""Reading CROC_hum in the authors' layout, and what is said where it is not as released."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.croc.answers import CrocHumAnswers, generator
from benchmarks.croc.benchmark import CARD, CrocHum
from benchmarks.croc.load import CATEGORIES
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from tests.benchmarks.cards import trial_card

Table = pd.DataFrame
ROW_2 = "data row 2: 'negation_1'"


def image(pair: str, side: str, k: int, model: str = "FLUX_1_schnell") -> str:
    category = pair.rpartition("_")[0]
    return f"images/{category}/{side}/{pair}___{side}___{model}___image{k}.jpg"


def metadata() -> Table:
    """Three prompt pairs as the authors' table has them."""
    rows: list[dict[str, Any]] = [
        {
            "id": "body_parts_1",
            "prompt": 'A "hand" with only its index finger colored red.',
            "contrast": "A hand with only its ring finger colored red.",
            "prompt_paths": [
                image("body_parts_1", "prompt", 4, "stable_diffusion_3_5_large_turbo"),
                "images/body_parts/prompt/body_parts_1___prompt___gpt4___image1.png",
            ],
            "contrast_paths": [image("body_parts_1", "contrast", 1)],
            "alt_contrast_paths": None,
        },
        {
            "id": "negation_1",
            "prompt": "A dog and a cat.",
            "contrast": "A dog and no cat.",
            "prompt_paths": [image("negation_1", "prompt", 1)],
            "contrast_paths": [image("negation_1", "contrast", 1)],
            "alt_contrast_paths": [
                image("negation_1", "alt_contrast", 1),
                image("negation_1", "alt_contrast", 2),
            ],
        },
        {
            "id": "spacial_relation_7",
            "prompt": "A dog and a cat.",
            "contrast": "A cat left of a dog.",
            "prompt_paths": [image("spacial_relation_7", "prompt", 1)],
            "contrast_paths": [],
            "alt_contrast_paths": None,
        },
    ]
    return pd.DataFrame(rows).assign(category_name="tolerated", num=1)


def write(folder: Path, table: Table) -> Path:
    (folder / "croc_hum").mkdir()
    table.to_csv(folder / "croc_hum" / "croc_hum_metadata.tsv", sep="\t", index=False)
    return folder


def unpack(folder: Path, below: str, table: Table) -> None:
    """Every listed image, as after unpacking an archive whose root is `below`."""
    paths = [p for c in ("prompt_paths", "contrast_paths", "alt_contrast_paths") for p in table[c]]
    for path in (path for paths_ in paths for path in paths_ or []):
        place = folder / "croc_hum" / below / path.replace("images/", "")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.encode())


def benchmark(**counts: int) -> CrocHum:
    return CrocHum(trial_card(CARD, **counts))


def load(data: Path, **counts: int) -> CrocHumAnswers:
    return benchmark(**counts).answers(data)


def test_a_released_table_becomes_prompt_pairs_with_the_images_of_both_sides(
    tmp_path: Path,
) -> None:
    answers = load(write(tmp_path, metadata()), **{"prompt pairs": 3, "images": 7})
    hand, _, spatial = answers.prompt_pairs
    assert answers.clusters == ("body_parts_1", "negation_1", "spacial_relation_7")
    assert (hand.category, spatial.category) == ("body_parts", "spacial_relation")
    assert hand.prompt == 'A "hand" with only its index finger colored red.'
    assert hand.original_images == (
        "body_parts_1___prompt___stable_diffusion_3_5_large_turbo___image4",
        "body_parts_1___prompt___gpt4___image1",
    )
    assert spatial.contrast_images == ()
    assert answers.pair_ids[:2] == (
        "body_parts_1___prompt___stable_diffusion_3_5_large_turbo___image4|orig",
        "body_parts_1___prompt___stable_diffusion_3_5_large_turbo___image4|contrast",
    )
    assert len(answers.pair_ids) == len(set(answers.pair_ids)) == 14
    assert set(answers.sources) == {"croc_hum/croc_hum_metadata.tsv"}


def test_negation_is_tested_with_images_of_a_alone(tmp_path: Path) -> None:
    negation = load(write(tmp_path, metadata())).prompt_pairs[1]
    assert negation.contrast_images == (
        "negation_1___alt_contrast___FLUX_1_schnell___image1",
        "negation_1___alt_contrast___FLUX_1_schnell___image2",
    )


def test_what_it_holds_is_counted_by_category_and_generator(tmp_path: Path) -> None:
    assert load(write(tmp_path, metadata())).counts() == {
        "images": 7,
        "prompt pairs": 3,
        "unique prompts": 5,
        "body_parts: prompt pairs": 1,
        "negation: prompt pairs": 1,
        "spacial_relation: prompt pairs": 1,
        "flux: images": 5,
        "gpt: images": 1,
        "sd: images": 1,
    }


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("x___FLUX_1_schnell___image1", "flux"),
        ("x___FLUX_1_dev___image1", "flux"),
        ("x___stable_diffusion_3_5_large___image1", "sd"),
        ("x___gpt4___image1", "gpt"),
    ],
)
def test_the_generator_is_a_part_of_the_file_name(name: str, model: str) -> None:
    assert generator(name) == model


def cell(column: str, value: object) -> Callable[[Table], Table]:
    """Put a value into the second row (data row 2, negation_1)."""

    def change(table: Table) -> Table:
        values = table[column].astype(object).tolist()
        return table.assign(**{column: [values[0], value, values[2]]})

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["contrast", "alt_contrast_paths"]), "contrast, alt_contrast"),
        (lambda t: t.iloc[:2], "2 prompt pairs; expected 3"),
        (cell("alt_contrast_paths", ["images/negation/alt/y.png"]), "6 images; expected 7"),
        (cell("id", "numbers_1"), "data row 2: 'numbers_1' is of no known category"),
        (cell("id", "body_parts_1"), "data row 2: 'body_parts_1' stands for the second time"),
        (cell("prompt", " "), f"{ROW_2} has an empty prompt"),
        (cell("prompt_paths", "images/x.jpg"), f"{ROW_2} has 'images/x.jpg' in column prompt_"),
        (cell("prompt_paths", "[1, 2]"), f"{ROW_2} has '[1, 2]' in column prompt_paths"),
        (cell("prompt_paths", "('a.jpg',)"), f"{ROW_2} has \"('a.jpg',)\""),
        (cell("prompt_paths", "__import__('os').getcwd()"), f'{ROW_2} has "__import__'),
        (cell("prompt_paths", "[" * 5000), f"{ROW_2} has '[[["),
        (cell("prompt_paths", "['" + "x" * (1 << 20) + "']"), f"{ROW_2} has \"['xxx"),
        (cell("prompt_paths", "{[]: 1}"), f"{ROW_2} has '{{[]: 1}}' in column prompt_paths"),
        (cell("prompt_paths", "1if 2"), f"{ROW_2} has '1if 2' in column prompt_paths"),
        (cell("prompt_paths", r"['x\\d.jpg']"), f"{ROW_2} has a backslash in column prompt_paths"),
        (cell("prompt_paths", r"['x\0.jpg']"), f"{ROW_2} has a backslash in column prompt_paths"),
        (cell("prompt_paths", "['x\x01y.jpg']"), f"{ROW_2} lists 'x\\x01y.jpg' in prompt_paths"),
        (cell("prompt_paths", "['C:/x/a.jpg']"), f"{ROW_2} lists 'C:/x/a.jpg' in prompt_paths"),
        (cell("prompt_paths", "['a', 'images/../../b.jpg']"), "expected a path below"),
        (cell("prompt_paths", "['/a/b.jpg']"), "expected a path below"),
        (cell("prompt_paths", "['a.jpg', 'a.jpg']"), "lists 'a.jpg', but an image 'a.jpg'"),
        (cell("prompt_paths", "['x/a.jpg', 'y/a.png']"), "lists 'y/a.png', but an image 'x/a.j"),
    ],
)
def test_a_table_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[Table], Table], says: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        load(write(tmp_path, change(metadata())), **{"prompt pairs": 3, "images": 7})
    assert caught.value.code == "data_malformed"
    assert "croc_hum_metadata.tsv" in caught.value.message
    assert says in caught.value.message


def with_two_of_negation(shared: list[str]) -> Table:
    """The table with a second prompt pair of negation that lists the same images of "A"."""
    records = metadata().to_dict("records")
    again = {
        **records[1],
        "id": "negation_2",
        "contrast": "A dog without a cat.",
        "prompt_paths": [image("negation_2", "prompt", 1)],
        "alt_contrast_paths": shared,
    }
    return pd.DataFrame([*records, again])


ALONE = image("negation_1", "alt_contrast", 1)


def test_pairs_of_negation_may_share_images_which_count_for_each(tmp_path: Path) -> None:
    table = with_two_of_negation([ALONE, image("negation_2", "alt_contrast", 9)])
    data = write(tmp_path, table)
    answers = load(data, **{"prompt pairs": 4, "images": 10})
    stem = "negation_1___alt_contrast___FLUX_1_schnell___image1"
    assert answers.prompt_pairs[1].contrast_images[0] == stem
    assert answers.prompt_pairs[3].contrast_images[0] == f"{stem}@negation_2"
    assert len(answers.pair_ids) == len(set(answers.pair_ids)) == 20
    assert answers.counts()["images"] == answers.counts()["flux: images"] + 2 == 10
    unpack(data, "", table)
    questions = benchmark().questions(data)
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    asked = {pair.pair_id: pair for pair in questions.pairs}
    first, further = asked[f"{stem}|contrast"], asked[f"{stem}@negation_2|contrast"]
    assert first.image_id == further.image_id == stem
    assert questions.texts[first.text_id] == "A dog and no cat."
    assert questions.texts[further.text_id] == "A dog without a cat."
    assert len(questions.images) == 9


@pytest.mark.parametrize(
    "shared",
    [
        [ALONE, ALONE],
        [ALONE.replace("negation/", "elsewhere/")],
        [image("negation_1", "prompt", 1)],
        [image("body_parts_1", "contrast", 1)],
    ],
)
def test_no_other_image_may_stand_twice(tmp_path: Path, shared: list[str]) -> None:
    with pytest.raises(SubmitterError, match=r"'negation_2' lists .* came before"):
        load(write(tmp_path, with_two_of_negation(shared)))


def test_rows_are_counted_not_lines(tmp_path: Path) -> None:
    data = write(tmp_path, cell("prompt", " ")(metadata()))
    place = data / "croc_hum" / "croc_hum_metadata.tsv"
    place.write_text(place.read_text().replace("\n", "\n\n\n", 1))
    with pytest.raises(SubmitterError, match=ROW_2):
        load(data)


@pytest.mark.parametrize("empty", ["", "nan", "NaN", "[]", "['']"])
def test_a_missing_list_and_an_empty_one_are_no_images(tmp_path: Path, empty: str) -> None:
    table = cell("prompt_paths", empty)(metadata())
    assert load(write(tmp_path, table)).prompt_pairs[1].original_images == ()


def test_without_the_file_the_error_names_it(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(SubmitterError, match=r"croc_hum/croc_hum_metadata\.tsv") as caught:
            CrocHum().answers(data)
        assert caught.value.code == "data_missing"
        assert not CrocHum().has_questions(data)


@pytest.mark.parametrize("below", ["", "croc_hum", "some_archive_root", "images"])
def test_images_are_found_beside_the_table_or_below_one_folder_of_the_archive(
    tmp_path: Path, below: str
) -> None:
    # A folder of data that is itself called images/ must not matter.
    data = tmp_path / "images" / "here"
    data.mkdir(parents=True)
    unpack(write(data, metadata()), below, metadata())
    (data / "croc_hum" / ".croc_hum.tar.gz.unpacking" / "counting").mkdir(parents=True)
    assert benchmark().has_questions(data)
    questions = benchmark().questions(data)
    assert [pair.pair_id for pair in questions.pairs] == list(load(data).pair_ids)
    first, second = questions.pairs[:2]
    path = image("body_parts_1", "prompt", 4, "stable_diffusion_3_5_large_turbo")
    assert questions.images[first.image_id]() == path.encode()
    assert first.image_id == second.image_id
    assert questions.texts[first.text_id].startswith('A "hand" with only its index')
    assert questions.texts[second.text_id].startswith("A hand with only its ring")


def test_without_images_no_code_can_be_run(tmp_path: Path) -> None:
    folder = write(tmp_path, metadata())
    assert not benchmark().has_questions(folder)
    with pytest.raises(SubmitterError, match="lacks 7 of the 7 images") as caught:
        benchmark().questions(folder)
    assert caught.value.code == "images_missing"


def test_a_short_archive_says_how_many_images_are_missing(tmp_path: Path) -> None:
    folder = write(tmp_path, metadata())
    unpack(folder, "top", metadata())
    next((folder / "croc_hum" / "top" / "negation" / "alt_contrast").iterdir()).unlink()
    with pytest.raises(SubmitterError, match="lacks 1 of the 7 images") as caught:
        benchmark().questions(folder)
    assert caught.value.code == "images_missing"


def test_model_developers_get_each_text_once(tmp_path: Path) -> None:
    prompts = benchmark().prompts(write(tmp_path, metadata()))
    assert prompts["prompt_id"].tolist() == [
        "body_parts_1|orig",
        "body_parts_1|contrast",
        "negation_1|orig",
        "negation_1|contrast",
        "spacial_relation_7|contrast",
    ]
    assert prompts["prompt"].is_unique
    assert prompts["skills"].iloc[2] == "negation;spacial_relation"


def test_rows_come_from_the_croc_protocol_with_the_name_of_the_benchmark(tmp_path: Path) -> None:
    answers = load(write(tmp_path, metadata()))
    values = np.random.default_rng(0).random(len(answers.pair_ids))
    scores = ScoreTable(pd.DataFrame({"m": values}, index=list(answers.pair_ids)))
    rows = benchmark().evaluate(scores, answers, 10).rows
    assert {(row.benchmark, row.revision) for row in rows} == {("croc_hum", CARD.revision)}
    assert sum(map(CARD.headline.matches, rows)) == 4  # the total and three categories


def test_the_registry_finds_it_with_eight_categories_and_the_papers_counts() -> None:
    card = load_registry()["croc_hum"].card
    assert tuple(card.skills) == CATEGORIES
    assert card.counts == {"prompt pairs": 280, "images": 28733}
    assert {file.path for file in card.files if file.unpack} == {"croc_hum/croc_hum.tar.gz"}
