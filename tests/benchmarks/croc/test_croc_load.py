"""Reader of CROC_hum: the released table, its images, and the score files of the authors' runner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.croc.load import CATEGORIES, CrocHumAnswers, app, generator, read_score_files
from benchmarks.croc.protocol import CARD, CrocHum
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from tests.benchmarks.cards import trial_card
from tests.benchmarks.checks import refused

Table = pd.DataFrame
ROW_2 = "data row 2: 'negation_1'"


def image(pair: str, side: str, k: int, model: str = "FLUX_1_schnell") -> str:
    category = pair.rpartition("_")[0]
    return f"images/{category}/{side}/{pair}___{side}___{model}___image{k}.jpg"


def pair(name: str, texts: tuple[str, str], *lists: list[str] | None) -> dict[str, Any]:
    names = ("id", "prompt", "contrast", "prompt_paths", "contrast_paths", "alt_contrast_paths")
    return dict(zip(names, (name, *texts, *lists), strict=True))


def metadata() -> Table:
    """Three prompt pairs as the authors' table has them."""
    hand = 'A "hand" with only its index finger colored red.'
    hands = [
        image("body_parts_1", "prompt", 4, "stable_diffusion_3_5_large_turbo"),
        "images/body_parts/prompt/body_parts_1___prompt___gpt4___image1.png",
    ]
    ring, pets = "A hand with only its ring finger colored red.", "A dog and a cat."
    alone = [image("negation_1", "alt_contrast", k) for k in (1, 2)]
    left = "A cat left of a dog."
    sides = {
        name: [image(name, side, 1)]
        for name, side in (("body_parts_1", "contrast"), ("spacial_relation_7", "prompt"))
    }
    negation = [[image("negation_1", side, 1)] for side in ("prompt", "contrast")]
    rows = [
        pair("body_parts_1", (hand, ring), hands, sides["body_parts_1"], None),
        pair("negation_1", (pets, "A dog and no cat."), *negation, alone),
        pair("spacial_relation_7", (pets, left), sides["spacial_relation_7"], [], None),
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
    hand, negation, spatial = answers.prompt_pairs
    assert answers.clusters == ("body_parts_1", "negation_1", "spacial_relation_7")
    assert (hand.category, spatial.category) == ("body_parts", "spacial_relation")
    assert hand.prompt.startswith('A "hand" with')
    assert hand.original_images == (
        "body_parts_1___prompt___stable_diffusion_3_5_large_turbo___image4",
        "body_parts_1___prompt___gpt4___image1",
    )
    assert negation.contrast_images == tuple(  # of "A" alone
        f"negation_1___alt_contrast___FLUX_1_schnell___image{k}" for k in (1, 2)
    )
    assert spatial.contrast_images == ()
    first = hand.original_images[0]
    assert answers.pair_ids[:2] == (f"{first}|orig", f"{first}|contrast")
    assert len(answers.pair_ids) == len(set(answers.pair_ids)) == 14
    assert set(answers.sources) == {"croc_hum/croc_hum_metadata.tsv"}
    assert answers.counts() == {
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


def test_the_generator_is_a_part_of_the_file_name() -> None:
    names = ("FLUX_1_schnell", "FLUX_1_dev", "stable_diffusion_3_5_large", "gpt4")
    assert [generator(f"x___{name}___image1") for name in names] == ["flux", "flux", "sd", "gpt"]


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
    with refused("data_malformed", "croc_hum_metadata.tsv", says):
        load(write(tmp_path, change(metadata())), **{"prompt pairs": 3, "images": 7})


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
    with refused("data_malformed", "'negation_2' lists", "came before"):
        load(write(tmp_path, with_two_of_negation(shared)))


def test_rows_are_counted_not_lines(tmp_path: Path) -> None:
    data = write(tmp_path, cell("prompt", " ")(metadata()))
    place = data / "croc_hum" / "croc_hum_metadata.tsv"
    place.write_text(place.read_text().replace("\n", "\n\n\n", 1))
    with refused("data_malformed", ROW_2):
        load(data)


@pytest.mark.parametrize("empty", ["", "nan", "NaN", "[]", "['']"])
def test_a_missing_list_and_an_empty_one_are_no_images(tmp_path: Path, empty: str) -> None:
    table = cell("prompt_paths", empty)(metadata())
    assert load(write(tmp_path, table)).prompt_pairs[1].original_images == ()


def test_without_the_file_the_error_names_it(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with refused("data_missing", "croc_hum/croc_hum_metadata.tsv"):
            CrocHum().answers(data)
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


def test_absent_images_are_counted(tmp_path: Path) -> None:
    folder = write(tmp_path, metadata())
    assert not benchmark().has_questions(folder)
    with refused("images_missing", "lacks 7 of the 7 images"):
        benchmark().questions(folder)
    unpack(folder, "top", metadata())
    next((folder / "croc_hum" / "top" / "negation" / "alt_contrast").iterdir()).unlink()
    with refused("images_missing", "lacks 1 of the 7 images"):
        benchmark().questions(folder)


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


ORIG, CONTRAST = "VQAScore___orig_text___orig_img", "VQAScore___contrast_text___orig_img"


def prompt_table(category: str, scores: list[float | None]) -> Table:
    paths = [f"data/{category}/prompt/{category}_1___prompt___m___image{k}.jpg" for k in (1, 2)]
    cells = {"prompt_paths": paths, ORIG: scores, CONTRAST: [0.25, 0.5]}
    return pd.DataFrame({"id": f"{category}_1", "prompt": "a", "contrast": "b", **cells})


def contrast_table(category: str) -> Table:
    path = f"{category}/contrast/{category}_1___contrast___m___image1.png"
    cells = {
        "contrast_paths": [path],
        "VQAScore___contrast_text___contrast_img": [3.0],
        "VQAScore___orig_text___contrast_img": [4.0],
    }
    return pd.DataFrame({"id": f"{category}_1", "prompt": "a", "contrast": "b", **cells})


def write_scores(folder: Path, tables: dict[str, Table]) -> Path:
    for name, table in tables.items():
        table.to_csv(folder / f"{name}_img_scores.tsv", sep="\t", index=False)
    return folder


def both(category: str, scores: list[float | None]) -> dict[str, Table]:
    return {
        f"{category}_prompt": prompt_table(category, scores),
        f"{category}_contrast": contrast_table(category),
    }


def test_each_score_finds_its_image_and_text(tmp_path: Path) -> None:
    write_scores(tmp_path, {**both("counting", [1.0, None]), **both("body_parts", [5.0, 6.0])})
    (tmp_path / "notes.tsv").write_text("nothing of interest")
    table = read_score_files(tmp_path).set_index("pair_id")
    assert list(table.columns) == ["VQAScore"]
    found = table["VQAScore"].to_dict()
    assert len(found) == 12
    assert found["counting_1___prompt___m___image1|orig"] == 1.0
    assert found["counting_1___prompt___m___image1|contrast"] == 0.25
    assert pd.isna(found["counting_1___prompt___m___image2|orig"])
    assert found["counting_1___contrast___m___image1|contrast"] == 3.0
    assert found["counting_1___contrast___m___image1|orig"] == 4.0
    assert found["body_parts_1___prompt___m___image2|orig"] == 6.0


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv"])
def test_the_command_writes_a_scores_file(tmp_path: Path, name: str) -> None:
    write_scores(tmp_path, both("counting", [1.0, 2.0]))
    out = tmp_path / name
    result = CliRunner().invoke(app, [str(tmp_path), "--out", str(out)])
    assert result.exit_code == 0
    assert "6 pairs, metrics VQAScore" in result.output
    written = pd.read_csv(out) if name.endswith("csv") else pd.read_parquet(out)
    assert list(written.columns) == ["pair_id", "VQAScore"]
    pd.testing.assert_frame_equal(written, read_score_files(tmp_path))


def test_a_file_that_is_there_is_replaced_only_when_told_and_an_input_never(tmp_path: Path) -> None:
    write_scores(tmp_path, both("counting", [1.0, 2.0]))
    out, given = tmp_path / "scores.csv", tmp_path / "counting_prompt_img_scores.tsv"
    out.write_text("mine")
    before = given.read_bytes()
    for words, code in (([out], "file_exists"), ([given, "--force"], "output_is_input")):
        result = CliRunner().invoke(app, [str(tmp_path), "--out", *map(str, words)])
        assert isinstance(result.exception, SubmitterError)
        assert result.exception.code == code
    assert (out.read_text(), given.read_bytes()) == ("mine", before)
    assert CliRunner().invoke(app, [str(tmp_path), "--out", str(out), "--force"]).exit_code == 0
    assert out.read_text().startswith("pair_id,")


def test_an_image_shared_by_pairs_of_negation_has_a_name_for_each(tmp_path: Path) -> None:
    image = "negation/alt/negation_1___alt___m___image1.png"
    shared = pd.concat([contrast_table("negation")] * 2).assign(
        id=["negation_1", "negation_2"], contrast_paths=image
    )
    tables = {"negation_prompt": prompt_table("negation", [1.0, 2.0]), "negation_contrast": shared}
    found = set(read_score_files(write_scores(tmp_path, tables))["pair_id"])
    stem = "negation_1___alt___m___image1"
    assert {f"{stem}|orig", f"{stem}|contrast", f"{stem}@negation_2|orig"} < found
    write_scores(tmp_path, {"negation_contrast": shared.assign(id="negation_1")})
    with refused("duplicate_pairs"):
        read_score_files(tmp_path)


PROMPT = prompt_table("counting", [1.0, 2.0])


@pytest.mark.parametrize(
    ("tables", "code", "says"),
    [
        ({}, "file_missing", "no score file"),
        ({"counting_prompt": PROMPT}, "file_missing", "counting_contrast_img_scores.tsv"),
        ({"counting_prompt": PROMPT.drop(columns=ORIG)}, "no_scores", ORIG),
        (
            {"counting_prompt": PROMPT.drop(columns=[ORIG, CONTRAST])},
            "no_scores",
            "no score column",
        ),
        (
            {"counting_prompt": PROMPT.drop(columns="prompt_paths")},
            "unreadable_scores",
            "prompt_paths",
        ),
        ({"counting_prompt": PROMPT.iloc[[0, 0]]}, "duplicate_pairs", "image1|orig"),
        (
            {"counting_prompt": PROMPT.assign(**{ORIG: ["1.0", "much"]})},
            "not_numeric",
            "'much' (data row 2)",
        ),
        ({"counting_prompt": PROMPT.assign(**{ORIG: ["inf", "1"]})}, "not_numeric", "'inf'"),
        (
            {"counting_prompt": PROMPT.rename(columns=lambda c: c.replace("VQAScore", "Clip"))},
            "no_scores",
            "no scores of",
        ),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, tables: dict[str, Table], code: str, says: str
) -> None:
    others = {} if code == "file_missing" else {"counting_contrast": contrast_table("counting")}
    with refused(code, says):
        read_score_files(write_scores(tmp_path, {**others, **tables}))


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    write_scores(tmp_path, both("counting", [1.0, 2.0]))
    (tmp_path / "counting_prompt_img_scores.tsv").write_bytes(b"\xff\xfe")
    with refused("unreadable_scores", "counting_prompt_img_scores"):
        read_score_files(tmp_path)
