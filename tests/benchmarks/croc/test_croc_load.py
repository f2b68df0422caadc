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
TABLE = "croc_hum/croc_hum_metadata.tsv"
SD = "stable_diffusion_3_5_large_turbo"


def image(pair: str, side: str, k: int, model: str = "FLUX_1_schnell", end: str = "jpg") -> str:
    category = pair.rpartition("_")[0]
    return f"images/{category}/{side}/{pair}___{side}___{model}___image{k}.{end}"


ALONE = image("negation_1", "alt_contrast", 1)


def metadata() -> Table:
    """Three prompt pairs as the authors' table has them."""
    hands = ["A hand with only its index finger red.", "A hand with only its ring finger red."]
    pets = ["A dog and a cat.", "A dog and no cat."]
    of_hands = (
        image("body_parts_1", "prompt", 4, SD),
        image("body_parts_1", "prompt", 1, "gpt4", "png"),
    )
    of_pets = [[image("negation_1", side, 1)] for side in ("prompt", "contrast")]
    alone = [ALONE, image("negation_1", "alt_contrast", 2)]
    left = [image("spacial_relation_7", "prompt", 1)]
    names = ("id", "prompt", "contrast", "prompt_paths", "contrast_paths", "alt_contrast_paths")
    rows: list[list[Any]] = [
        ["body_parts_1", *hands, list(of_hands), [image("body_parts_1", "contrast", 1)], None],
        ["negation_1", *pets, *of_pets, alone],
        ["spacial_relation_7", pets[0], "A cat left of a dog.", left, [], None],
    ]
    return pd.DataFrame(rows, columns=names).assign(category_name="tolerated", num=1)


def write(folder: Path, table: Table) -> Path:
    (folder / TABLE).parent.mkdir()
    table.to_csv(folder / TABLE, sep="\t", index=False)
    return folder


def unpack(folder: Path, below: str, table: Table) -> None:
    """Every listed image, as after unpacking an archive whose root is `below`."""
    for column in ("prompt_paths", "contrast_paths", "alt_contrast_paths"):
        for path in (path for paths in table[column] for path in paths or []):
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
    assert hand.prompt.startswith("A hand with")
    stems = (f"body_parts_1___prompt___{SD}___image4", "body_parts_1___prompt___gpt4___image1")
    assert hand.original_images == stems
    alone = tuple(f"negation_1___alt_contrast___FLUX_1_schnell___image{k}" for k in (1, 2))
    assert negation.contrast_images == alone  # of "A" alone
    assert spatial.contrast_images == ()
    assert answers.pair_ids[:2] == (f"{stems[0]}|orig", f"{stems[0]}|contrast")
    assert len(answers.pair_ids) == len(set(answers.pair_ids)) == 14
    assert set(answers.sources) == {TABLE}
    assert answers.counts() == {
        "images": 7, "prompt pairs": 3, "unique prompts": 5, "body_parts: prompt pairs": 1,
        "negation: prompt pairs": 1, "spacial_relation: prompt pairs": 1,
        "flux: images": 5, "gpt: images": 1, "sd: images": 1,
    }  # fmt: skip
    assert generator("x___FLUX_1_dev___image1") == "flux"
    assert benchmark().prompts(tmp_path)[["prompt_id", "skills"]].to_numpy().tolist() == [
        ["body_parts_1|orig", "body_parts"],
        ["body_parts_1|contrast", "body_parts"],
        ["negation_1|orig", "negation;spacial_relation"],  # each text once
        ["negation_1|contrast", "negation"],
        ["spacial_relation_7|contrast", "spacial_relation"],
    ]
    values = np.random.default_rng(0).random(14)
    scores = ScoreTable(pd.DataFrame({"m": values}, index=list(answers.pair_ids)))
    rows = benchmark().evaluate(scores, answers, 10).rows
    assert {(row.benchmark, row.revision) for row in rows} == {("croc_hum", CARD.revision)}
    assert sum(map(CARD.headline.matches, rows)) == 4  # the total and three categories


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
        (lambda t: t.iloc[:2], "expected 3"),
        (cell("alt_contrast_paths", ["images/negation/alt/y.png"]), "expected 7"),
        (cell("id", "numbers_1"), "row 2: 'numbers_1'"),
        (cell("id", "body_parts_1"), "row 2: 'body_parts_1'"),
        (cell("prompt", " "), "row 2: 'negation_1'"),
    ],
)
def test_a_table_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[Table], Table], says: str
) -> None:
    with refused("data_malformed", "croc_hum_metadata.tsv", says):
        load(write(tmp_path, change(metadata())), **{"prompt pairs": 3, "images": 7})


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("images/x.jpg", "has 'images/x.jpg'"),
        ("[1, 2]", "has '[1, 2]'"),
        ("('a.jpg',)", "has \"('a.jpg',)\""),
        ("__import__('os').getcwd()", 'has "__import__'),
        ("[" * 5000, "has '[[["),
        ("['" + "x" * (1 << 20) + "']", "has \"['xxx"),
        ("{[]: 1}", "has '{[]: 1}'"),
        ("1if 2", "has '1if 2'"),
        (r"['x\\d.jpg']", "has a backslash"),
        (r"['x\0.jpg']", "has a backslash"),
        ("['x\x01y.jpg']", "lists 'x\\x01y.jpg'"),
        ("['C:/x/a.jpg']", "lists 'C:/x/a.jpg'"),
        ("['a', 'images/../../b.jpg']", "lists '../../b.jpg'"),
        ("['/a/b.jpg']", "lists '/a/b.jpg'"),
        ("['a.jpg', 'a.jpg']", "lists 'a.jpg'"),
        ("['x/a.jpg', 'y/a.png']", "lists 'y/a.png'"),
    ],
)
def test_what_is_no_list_of_images_is_refused_in_its_row(
    tmp_path: Path, listed: str, says: str
) -> None:
    data = write(tmp_path, cell("prompt_paths", listed)(metadata()))
    place = data / TABLE
    place.write_text(place.read_text().replace("\n", "\n\n\n", 1))  # rows are counted, not lines
    with refused("data_malformed", f"data row 2: 'negation_1' {says}"):
        load(data)


@pytest.mark.parametrize("empty", ["", "nan", "NaN", "[]", "['']"])
def test_a_missing_list_and_an_empty_one_are_no_images(tmp_path: Path, empty: str) -> None:
    table = cell("prompt_paths", empty)(metadata())
    assert load(write(tmp_path, table)).prompt_pairs[1].original_images == ()


def with_two_of_negation(shared: list[str]) -> Table:
    """The table with a second prompt pair of negation that lists the same images of "A"."""
    records = metadata().to_dict("records")
    again = {
        "id": "negation_2",
        "contrast": "A dog without a cat.",
        "prompt_paths": [image("negation_2", "prompt", 1)],
        "alt_contrast_paths": shared,
    }
    return pd.DataFrame([*records, records[1] | again])


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
    texts = [questions.texts[pair.text_id] for pair in (first, further)]
    assert texts == ["A dog and no cat.", "A dog without a cat."]
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
    with refused("data_malformed", "'negation_2' lists", "before"):
        load(write(tmp_path, with_two_of_negation(shared)))


@pytest.mark.parametrize("below", ["", "croc_hum", "some_archive_root", "images"])
def test_images_are_found_beside_the_table_or_below_one_folder_of_the_archive(
    tmp_path: Path, below: str
) -> None:
    data = tmp_path / "images" / "here"  # such a folder of data must not matter
    for missing in (None, tmp_path):
        with refused("data_missing", TABLE):
            CrocHum().answers(missing)
        assert not CrocHum().has_questions(missing)
    data.mkdir(parents=True)
    write(data, metadata())
    assert not benchmark().has_questions(data)
    with refused("images_missing", "7 of the 7"):
        benchmark().questions(data)
    unpack(data, below, metadata())
    (data / "croc_hum" / ".croc_hum.tar.gz.unpacking" / "counting").mkdir(parents=True)
    assert benchmark().has_questions(data)
    questions = benchmark().questions(data)
    assert [pair.pair_id for pair in questions.pairs] == list(load(data).pair_ids)
    first, second = questions.pairs[:2]
    path = image("body_parts_1", "prompt", 4, SD)
    assert questions.images[first.image_id]() == path.encode()
    assert first.image_id == second.image_id
    texts = [questions.texts[pair.text_id] for pair in (first, second)]
    assert texts == metadata().loc[0, ["prompt", "contrast"]].tolist()
    next((data / "croc_hum" / below / "negation" / "alt_contrast").iterdir()).unlink()
    with refused("images_missing", "1 of the 7"):
        benchmark().questions(data)


def test_the_registry_finds_it_with_eight_categories_and_the_papers_counts() -> None:
    card = load_registry()["croc_hum"].card
    assert tuple(card.skills) == CATEGORIES
    assert card.counts == {"prompt pairs": 280, "images": 28733}
    assert {file.path for file in card.files if file.unpack} == {"croc_hum/croc_hum.tar.gz"}


ORIG, CONTRAST = "VQAScore___orig_text___orig_img", "VQAScore___contrast_text___orig_img"


def prompt_table(category: str, scores: list[float | None]) -> Table:
    paths = [f"data/{category}/prompt/{category}_1___prompt___m___image{k}.jpg" for k in (1, 2)]
    cells = {"prompt_paths": paths, ORIG: scores, CONTRAST: [0.25, 0.5]}
    return pd.DataFrame({"id": f"{category}_1", **cells})


def contrast_table(category: str) -> Table:
    cells = {
        "contrast_paths": [f"{category}/contrast/{category}_1___contrast___m___image1.png"],
        "VQAScore___contrast_text___contrast_img": [3.0],
        "VQAScore___orig_text___contrast_img": [4.0],
    }
    return pd.DataFrame({"id": f"{category}_1", **cells})


def write_scores(folder: Path, tables: dict[str, Table]) -> Path:
    for name, table in tables.items():
        table.to_csv(folder / f"{name}_img_scores.tsv", sep="\t", index=False)
    return folder


def both(category: str, *scores: float | None) -> dict[str, Table]:
    prompt, contrast = prompt_table(category, list(scores)), contrast_table(category)
    return {f"{category}_prompt": prompt, f"{category}_contrast": contrast}


def test_each_score_finds_its_image_and_text(tmp_path: Path) -> None:
    write_scores(tmp_path, {**both("counting", 1.0, None), **both("body_parts", 5.0, 6.0)})
    (tmp_path / "notes.tsv").write_text("nothing of interest")
    table = read_score_files(tmp_path).set_index("pair_id")
    assert list(table.columns) == ["VQAScore"]
    found = table["VQAScore"].to_dict()
    assert len(found) == 12
    expected = {
        "counting_1___prompt___m___image1|orig": 1.0,
        "counting_1___prompt___m___image1|contrast": 0.25,
        "counting_1___contrast___m___image1|contrast": 3.0,
        "counting_1___contrast___m___image1|orig": 4.0,
        "body_parts_1___prompt___m___image2|orig": 6.0,
    }
    assert expected.items() <= found.items()
    assert np.isnan(found["counting_1___prompt___m___image2|orig"])


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv"])
def test_the_command_writes_a_scores_file_but_over_no_other_and_no_input(
    tmp_path: Path, name: str
) -> None:
    write_scores(tmp_path, both("counting", 1.0, 2.0))
    out, given = tmp_path / name, tmp_path / "counting_prompt_img_scores.tsv"
    out.write_text("mine")
    before = given.read_bytes()
    for words, code in (([out], "file_exists"), ([given, "--force"], "output_is_input")):
        result = CliRunner().invoke(app, [str(tmp_path), "--out", *map(str, words)])
        assert isinstance(result.exception, SubmitterError)
        assert result.exception.code == code
    assert (out.read_text(), given.read_bytes()) == ("mine", before)
    result = CliRunner().invoke(app, [str(tmp_path), "--out", str(out), "--force"])
    assert result.exit_code == 0
    assert "6 pairs" in result.output
    written = pd.read_csv(out) if name.endswith("csv") else pd.read_parquet(out)
    assert list(written.columns) == ["pair_id", "VQAScore"]
    pd.testing.assert_frame_equal(written, read_score_files(tmp_path))


def test_an_image_shared_by_pairs_of_negation_has_a_name_for_each(tmp_path: Path) -> None:
    stem = "negation_1___alt___m___image1"
    shared = pd.concat([contrast_table("negation")] * 2).assign(
        id=["negation_1", "negation_2"], contrast_paths=f"negation/alt/{stem}.png"
    )
    tables = both("negation", 1.0, 2.0) | {"negation_contrast": shared}
    found = set(read_score_files(write_scores(tmp_path, tables))["pair_id"])
    assert {f"{stem}|orig", f"{stem}|contrast", f"{stem}@negation_2|orig"} < found
    write_scores(tmp_path, {"negation_contrast": shared.assign(id="negation_1")})
    with refused("duplicate_pairs"):
        read_score_files(tmp_path)


PROMPT = prompt_table("counting", [1.0, 2.0])
OTHER = PROMPT.rename(columns=lambda c: c.replace("VQAScore", "Clip"))


@pytest.mark.parametrize(
    ("prompt", "code", "says"),
    [
        (PROMPT.drop(columns=ORIG), "no_scores", ORIG),
        (PROMPT.drop(columns=[ORIG, CONTRAST]), "no_scores", "score column"),
        (OTHER, "no_scores", "counting_contrast"),
        (PROMPT.drop(columns="prompt_paths"), "unreadable_scores", "prompt_paths"),
        (b"\xff\xfe", "unreadable_scores", "counting_prompt"),
        (PROMPT.iloc[[0, 0]], "duplicate_pairs", "image1|orig"),
        (PROMPT.assign(**{ORIG: ["1.0", "much"]}), "not_numeric", "'much'"),
        (PROMPT.assign(**{ORIG: ["inf", "1"]}), "not_numeric", "'inf'"),
    ],
)
def test_what_is_wrong_with_a_score_file_is_named(
    tmp_path: Path, prompt: Table | bytes, code: str, says: str
) -> None:
    write_scores(tmp_path, both("counting", 1.0, 2.0))
    if isinstance(prompt, bytes):
        (tmp_path / "counting_prompt_img_scores.tsv").write_bytes(prompt)
    else:
        write_scores(tmp_path, {"counting_prompt": prompt})
    with refused(code, says):
        read_score_files(tmp_path)


def test_an_absent_score_file_is_named(tmp_path: Path) -> None:
    with refused("file_missing", str(tmp_path)):
        read_score_files(tmp_path)
    with refused("file_missing", "counting_contrast_img_scores.tsv"):
        read_score_files(write_scores(tmp_path, {"counting_prompt": PROMPT}))
