"""Reading Gecko2K: the released prompts, supplied ratings, and what is said about wrong ones."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.gecko.load import MODELS, reliable_prompts, split_id
from benchmarks.gecko.protocol import CARD, Gecko
from benchmarks.registry import load_registry
from tests.benchmarks.gecko.gecko_tree import (
    FLAG,
    N_PROMPTS,
    gecko,
    prompts_table,
    ratings_table,
    write_tree,
)

Change = Callable[[pd.DataFrame], pd.DataFrame]


def test_prompts_and_ratings_become_answers(tmp_path: Path) -> None:
    answers = gecko().answers(write_tree(tmp_path))
    assert answers.clusters == tuple(map(str, range(N_PROMPTS)))
    assert answers.pair_ids[:5] == ("0/Imagen", "0/Muse", "0/SDXL", "0/SD1.5", "1/Imagen")
    assert len(answers.pair_ids) == 4 * N_PROMPTS
    prompts: Any = answers.prompts
    assert prompts.loc[0, ["split", "skill", "sub_skill", "source"]].tolist() == [
        "s", "color", "stroop", "",
    ]  # fmt: skip
    assert prompts.loc[2, ["split", "skill", "source"]].tolist() == ["r", "", "tifa"]
    assert answers.ratings["unit_index"].dtype == int
    assert set(answers.sources) == {"gecko/prompts.csv", "gecko/ratings.csv"}


def test_counts_tell_splits_sources_and_where_reliable_prompts_come_from(tmp_path: Path) -> None:
    counts = gecko().answers(write_tree(tmp_path)).counts()
    assert counts["images"] == 80
    assert (counts["s: prompts"], counts["r: prompts"]) == (14, 6)
    assert counts["tifa: prompts of this source"] == 3
    assert counts["SxS: ratings"] == N_PROMPTS * 6 * 3
    assert counts["reliable prompts (from the released flag)"] == 15


def test_reliable_prompts_come_from_the_flag_or_without_it_from_the_ratings(tmp_path: Path) -> None:
    released = gecko().answers(write_tree(tmp_path))
    assert released.prompts["reliable"].tolist() == [i % 4 != 3 for i in range(N_PROMPTS)]
    bare = gecko().answers(write_tree(tmp_path, prompts_table().drop(columns=FLAG)))
    assert bare.reliable_from == "ratings"
    kept = set(bare.prompts.loc[bare.prompts["reliable"], "prompt_id"])
    assert kept == reliable_prompts(bare.ratings)


def test_only_rated_images_are_asked_about(tmp_path: Path) -> None:
    ratings = ratings_table()
    few = ratings[(ratings["prompt_id"] == "4") & (ratings["model"] == "Muse")]
    one_side = few[few["template"] == "SxS"]
    answers = gecko().answers(write_tree(tmp_path, ratings=one_side))
    assert answers.clusters == ("4",)
    assert answers.pair_ids == ("4/Muse", "4/SDXL", "4/SD1.5")
    assert len(gecko().prompts(tmp_path)) == N_PROMPTS


def test_ratings_may_be_parquet(tmp_path: Path) -> None:
    expected = gecko().answers(write_tree(tmp_path)).ratings
    (tmp_path / "gecko" / "ratings.csv").unlink()
    table = ratings_table().astype({"prompt_id": int, "unit_index": int})
    table["model_b"] = table["model_b"].where(table["model_b"] != "", None)
    place = tmp_path / "gecko" / "ratings.parquet"
    table.to_parquet(place)
    pd.testing.assert_frame_equal(gecko().answers(tmp_path).ratings, expected, check_dtype=False)
    place.write_bytes(b"no parquet")
    with pytest.raises(SubmitterError, match=r"ratings\.parquet cannot be read"):
        gecko().answers(tmp_path)


def test_a_list_of_models_replaces_those_of_the_paper(tmp_path: Path) -> None:
    ratings = ratings_table().replace({"Imagen": "Mine"})
    with pytest.raises(SubmitterError, match="'Mine' in column model"):
        gecko().answers(write_tree(tmp_path, ratings=ratings))
    models = pd.DataFrame({"model": ["Mine", *MODELS[1:]]})
    models.to_csv(tmp_path / "gecko" / "models.csv", index=False)
    assert gecko().answers(tmp_path).pair_ids[0] == "0/Mine"
    models.assign(model="a b").to_csv(tmp_path / "gecko" / "models.csv", index=False)
    with pytest.raises(SubmitterError, match="'a b' "):
        gecko().answers(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["prompt", "prompt_id"]), "no column prompt, prompt_id"),
        (lambda t: t.iloc[:-1], "holds 19 released prompts; expected 20"),
        (lambda t: t.assign(prompt_type="Gecko"), "'Gecko' in column prompt_type (data row 1)"),
        (lambda t: t.replace("att/color:stroop", "att/color"), "'att/color' in column dataset_id"),
        (lambda t: t.replace("tifa_12", "tifa"), "'tifa' in column dataset_id (data row 3)"),
        (lambda t: t.assign(prompt_id=7), "prompt_id '7' again (data row 2)"),
        (lambda t: t.assign(prompt_id="x"), "'x' in column prompt_id"),
        (
            lambda t: t.assign(**{FLAG: 1}),
            f"'1' in column {FLAG} (data row 1); expected True or False",
        ),
        (lambda t: t.assign(**{"v1_max_disagreement_less_0.45": "no"}), "'no' in column v1_max"),
    ],
)
def test_prompts_that_are_not_as_released_are_refused(
    tmp_path: Path, change: Change, says: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        gecko().answers(write_tree(tmp_path, change(prompts_table())))
    assert caught.value.code == "data_malformed"
    assert says in caught.value.message
    assert "prompts.csv" in caught.value.message


def cell(column: str, value: str, template: str = "WL") -> Change:
    """Another value in one cell of the first row of a template."""

    def changed(table: pd.DataFrame) -> pd.DataFrame:
        found = table.copy()
        found.loc[found.index[found["template"] == template][0], column] = value
        return found

    return changed


def twice(template: str, **other: str) -> Change:
    """The first row of a template once more at the end, with some cells changed."""

    def changed(table: pd.DataFrame) -> pd.DataFrame:
        again = table[table["template"] == template].iloc[:1].assign(**other)
        return pd.concat([table, again], ignore_index=True)

    return changed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns="rater_id"), "no column rater_id"),
        (lambda t: t.iloc[:0], "no rating"),
        (cell("template", "wl"), "'wl' in column template (data row 1; 1 such"),
        (cell("prompt_id", "99"), "'99' in column prompt_id (data row 1"),
        (cell("model", "DALL-E"), "'DALL-E' in column model (data row 1"),
        (cell("model_b", "Muse"), "'Muse' in column model_b (data row 1"),
        (cell("model_b", "", "SxS"), "'' in column model_b (data row 17"),
        (cell("model_b", "Imagen", "SxS"), "'Imagen' in column model_b (data row 17"),
        (cell("rater_id", " "), "' ' in column rater_id"),
        (cell("unit_index", "-1"), "'-1' in column unit_index"),
        (cell("unit_index", "1.0"), "'1.0' in column unit_index"),
        (cell("unit_index", "1", "Likert"), "'1' in column unit_index (data row 4"),
        (
            cell("value", "yes"),
            "'yes' in column value (data row 1; 1 such ratings); expected aligned",
        ),
        (cell("value", "6", "Likert"), "'6' in column value (data row 4"),
        (cell("value", "Unsure", "SxS"), "expected a | b | unsure for SxS"),
        (cell("unit_text", "three"), "but another text before"),
        (twice("Likert"), "second answer of rater 'r1' to Likert of prompt 0 and model Imagen"),
        (twice("Likert", value="unsure"), "the first is data row 4"),
        (
            twice("SxS", model="Muse", model_b="Imagen"),
            "with the models the other way round",
        ),
    ],
)
def test_wrong_ratings_are_refused_with_their_line(
    tmp_path: Path, change: Change, says: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        gecko().answers(write_tree(tmp_path, ratings=change(ratings_table())))
    assert caught.value.code == "data_malformed"
    assert says in caught.value.message
    assert "FORMAT.md" in caught.value.hint


def test_without_ratings_the_error_says_where_they_are_described(tmp_path: Path) -> None:
    write_tree(tmp_path)
    (tmp_path / "gecko" / "ratings.csv").unlink()
    with pytest.raises(SubmitterError, match=r"gecko/ratings\.csv") as caught:
        gecko().answers(tmp_path)
    assert caught.value.code == "data_missing"
    assert "FORMAT.md" in caught.value.hint
    assert not gecko().has_answers(tmp_path)
    assert len(gecko().prompts(tmp_path)) == N_PROMPTS


def test_questions_hold_png_or_jpg_images_prompts_and_words(tmp_path: Path) -> None:
    write_tree(tmp_path)
    assert not gecko().has_questions(tmp_path)
    answers = gecko().answers(tmp_path)
    for i, pair_id in enumerate(answers.pair_ids):
        place = tmp_path / "gecko" / "images" / f"{pair_id}{('.png', '.jpg')[i % 2]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(pair_id.encode())
    assert gecko().has_questions(tmp_path)
    questions = gecko().questions(tmp_path)
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    assert questions.images["3/SD1.5"]() == b"3/SD1.5"
    assert questions.texts[questions.pairs[0].text_id] == "two cups, 0"
    assert [(e.element_id, e.text) for e in questions.elements["7"]] == [
        ("0", "two"),
        ("1", "cups"),
    ]
    (tmp_path / "gecko" / "images" / "0" / "Imagen.png").unlink()
    with pytest.raises(
        SubmitterError, match=r"lacks 1 of the 80 images.*'0/Imagen\.png'"
    ) as caught:
        gecko().questions(tmp_path)
    assert caught.value.code == "images_missing"


@pytest.mark.parametrize(
    ("dataset_id", "split", "expected"),
    [
        ("att/style_100yr:style_100yr/visual_medium", "s", ("style", "style_100yr/visual_medium")),
        ("ne/artwork:artwork", "s", ("named_entity", "artwork")),
        ("lang/compositional:compositional-2E-1A", "s", ("lang_compositional", "compositional-2E-1A")),
        ("render/text:text_font", "s", ("text", "text_font")),
    ],
)  # fmt: skip
def test_the_skill_is_before_the_colon_and_the_sub_skill_after(
    dataset_id: str, split: str, expected: tuple[str, str]
) -> None:
    found = split_id(dataset_id, split)
    assert found is not None
    assert (found["skill"], found["sub_skill"]) == expected


@pytest.mark.parametrize(
    ("dataset_id", "split"),
    [("color:x", "s"), ("att/color:", "s"), ("att/color:a b", "s"), ("tifa_1", "s"),
     ("tifa_", "r"), ("att/color:stroop", "r"), ("", "s"), ("", "r"), ("tifa_1_", "r")],
)  # fmt: skip
def test_ids_of_another_form_have_no_skill(dataset_id: str, split: str) -> None:
    assert split_id(dataset_id, split) is None


def test_the_registry_finds_gecko_with_splits_in_its_headline() -> None:
    card = load_registry()["gecko"].card
    assert (card.headline.measure, card.headline.split) == ("srcc", "all")
    assert sum(":" not in skill for skill in card.skills) == 12
    assert sum(":" in skill for skill in card.skills) == 44


def test_another_release_is_refused_by_its_hash(tmp_path: Path) -> None:
    card = CARD.model_copy(update={"counts": {}})
    with pytest.raises(SubmitterError, match="sha256"):
        Gecko(card).answers(write_tree(tmp_path))


def test_a_ratings_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    write_tree(tmp_path)
    with zipfile.ZipFile(tmp_path / "gecko" / "ratings.csv", "w") as archive:
        archive.writestr("x", b"\xff\x00")
    with pytest.raises(SubmitterError) as caught:
        gecko().answers(tmp_path)
    assert caught.value.code == "data_malformed"
