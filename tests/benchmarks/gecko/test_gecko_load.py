"""Reading Gecko2K, its raw ratings in worked examples, and what is said about wrong files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.gecko.load import (
    COLUMNS,
    MODELS,
    disagreements,
    load_prompts,
    majority,
    preferences,
    reliable_prompts,
    split_id,
    template_scores,
)
from benchmarks.gecko.protocol import CARD, Gecko
from tests.benchmarks.gecko.gecko_tree import (
    FLAG,
    N_PROMPTS,
    OTHER_FLAG,
    draw,
    gecko,
    prompts_table,
    ratings_table,
    write_tree,
)
from tests.kit.refusals import refused


def test_an_id_gives_split_skill_and_source_and_a_flag_what_is_reliable(tmp_path: Path) -> None:
    answers = gecko().answers(write_tree(tmp_path))
    prompts: Any = answers.prompts[["split", "skill", "sub_skill", "source"]]
    assert prompts.loc[0].tolist() == ["s", "color", "stroop", ""]
    assert prompts.loc[2].tolist() == ["r", "", "", "tifa"]
    assert answers.prompts["reliable"].tolist() == [i % 4 != 3 for i in range(N_PROMPTS)]
    assert answers.ratings["unit_index"].dtype == int


def test_without_a_flag_reliable_prompts_come_from_the_ratings(tmp_path: Path) -> None:
    bare = gecko().answers(write_tree(tmp_path, prompts_table().drop(columns=FLAG)))
    assert bare.reliable_from == "ratings"
    kept = set(bare.prompts.loc[bare.prompts["reliable"], "prompt_id"])
    assert kept == reliable_prompts(bare.ratings)


def test_only_rated_images_are_asked_about(tmp_path: Path) -> None:
    one_side = ratings_table().query("prompt_id == '4' and model == 'Muse' and template == 'SxS'")
    answers = gecko().answers(write_tree(tmp_path, ratings=one_side))
    assert answers.clusters == ("4",)
    assert answers.pair_ids == ("4/Muse", "4/SDXL", "4/SD1.5")
    assert len(gecko().prompts(tmp_path)) == N_PROMPTS


def test_ratings_may_be_parquet_but_must_be_a_table(tmp_path: Path) -> None:
    expected = gecko().answers(write_tree(tmp_path)).ratings
    csv = tmp_path / "gecko" / "ratings.csv"
    csv.write_bytes(b"PK\x03\x04\xff\x00")
    with refused("data_malformed"):
        gecko().answers(tmp_path)
    csv.unlink()
    table = ratings_table().astype({"prompt_id": int, "unit_index": int})
    place = csv.with_suffix(".parquet")
    table.assign(model_b=table["model_b"].replace("", None)).to_parquet(place)
    pd.testing.assert_frame_equal(gecko().answers(tmp_path).ratings, expected, check_dtype=False)
    place.write_bytes(b"no parquet")
    with refused("data_malformed", "ratings.parquet"):
        gecko().answers(tmp_path)


def test_a_list_of_models_replaces_those_of_the_paper(tmp_path: Path) -> None:
    ratings = ratings_table().replace({"Imagen": "Mine"})
    with refused("data_malformed", "'Mine' in column model"):
        gecko().answers(write_tree(tmp_path, ratings=ratings))
    models = pd.DataFrame({"model": ["Mine", *MODELS[1:]]})
    models.to_csv(tmp_path / "gecko" / "models.csv", index=False)
    assert gecko().answers(tmp_path).pair_ids[0] == "0/Mine"
    models.assign(model="a b").to_csv(tmp_path / "gecko" / "models.csv", index=False)
    with refused("data_malformed", "'a b'"):
        gecko().answers(tmp_path)


def test_questions_hold_the_words_that_were_rated(tmp_path: Path) -> None:
    draw(write_tree(tmp_path))
    words = gecko().questions(tmp_path).elements["7"]
    assert [(word.element_id, word.text) for word in words] == [("0", "two"), ("1", "cups")]


@pytest.mark.parametrize(
    ("dataset_id", "split", "skill"),
    [
        ("att/style_100yr:style_100yr/visual_medium", "s", ("style", "style_100yr/visual_medium")),
        ("ne/artwork:artwork", "s", ("named_entity", "artwork")),
        ("lang/compositional:compositional-2E-1A", "s",
         ("lang_compositional", "compositional-2E-1A")),
        ("render/text:text_font", "s", ("text", "text_font")),
        *(
            (unreadable, split, None)
            for split, several in {
                "s": ("color:x", "att/color:", "att/color:a b", "tifa_1", ""),
                "r": ("tifa_", "att/color:stroop", "", "tifa_1_"),
            }.items()
            for unreadable in several
        ),
    ],
)  # fmt: skip
def test_an_id_names_skill_and_sub_skill(dataset_id: str, split: str, skill: object) -> None:
    found = split_id(dataset_id, split)
    assert (found and (found["skill"], found["sub_skill"])) == skill


def test_the_card_names_12_skills_and_44_sub_skills() -> None:
    assert sum(":" not in skill for skill in CARD.skills) == 12
    assert sum(":" in skill for skill in CARD.skills) == 44


def rated(template: str, prompt: str, *by_rater: list[str], model: str = "a") -> pd.DataFrame:
    """One image: each rater's values for its units (words, questions or the one rating)."""
    rows = [
        (template, prompt, model, "", f"r{r}", unit, "", value)
        for r, values in enumerate(by_rater)
        for unit, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def votes(*values: str, models: tuple[str, str] = ("a", "b")) -> pd.DataFrame:
    rows = [("SxS", "p", *models, f"r{r}", 0, "", value) for r, value in enumerate(values)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


A, N, U = "aligned", "not_aligned", "unsure"


@pytest.mark.parametrize(
    ("template", "by_rater", "expected"),
    [
        ("Likert", [["5"], ["4"], ["4"]], 13 / 15),
        ("Likert", [["5"], ["4"], ["unsure"]], 0.9),
        ("Likert", [["1"], ["1"], ["1"]], 0.2),
        ("WL", [[A, A, N], [A, U, N], [A, A, A]], (2 / 3 + 1 / 2 + 1) / 3),
        ("WL", [[A, N], [U, U]], 0.5),
        ("DSGH", [["yes", "no", "invalid"], ["yes", "unsure", "yes"]], 0.75),
        # Nothing but unsure answers.
        ("Likert", [["unsure"]] * 2, np.nan),
        ("WL", [[U]] * 2, np.nan),
        ("DSGH", [["invalid"]] * 2, np.nan),
    ],
)
def test_units_are_averaged_by_rater_first(
    template: str, by_rater: list[Any], expected: float
) -> None:
    [score] = template_scores(rated(template, "p", *by_rater))["score"]
    assert score == pytest.approx(expected, nan_ok=True)


def test_each_image_and_template_has_its_own_score() -> None:
    parts = [rated("Likert", "p", ["5"]), rated("Likert", "p", ["1"], model="b")]
    found = template_scores(pd.concat([*parts, rated("WL", "p", [N]), votes("a")]))
    expected = [["Likert", "p", "a", 1.0], ["Likert", "p", "b", 0.2], ["WL", "p", "a", 0.0]]
    assert found.to_numpy().tolist() == expected
    nothing = rated("Likert", "p")
    assert template_scores(nothing).empty
    assert preferences(nothing).empty


def test_equal_means_are_equal_numbers_whoever_gave_which_rating() -> None:
    """The last bits must not tell them apart."""
    groups = ["444", "543", "354", "435", "345"]
    tables = [rated("Likert", f"p{i}", *map(list, group)) for i, group in enumerate(groups)]
    assert set(template_scores(pd.concat(tables))["score"]) == {0.8}
    words = [[[A, N, N], [A, A, N]], [[A, A, N], [N, A, N]], [[N, A, A], [N, N, A]]]
    tables = [rated("WL", f"p{i}", *group) for i, group in enumerate(words)]
    assert template_scores(pd.concat(tables))["score"].nunique() == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [("aab", 1), ("bub", -1), ("abu", 0), ("ab", 0), ("auu", 0), ("aabu", 0)],
)
def test_the_majority_wins_and_a_tie_is_unsure(values: str, expected: int) -> None:
    voted = [{"u": "unsure"}.get(letter, letter) for letter in values]
    assert preferences(votes(*voted))["preference"].tolist() == [expected]
    assert majority(*(values.count(letter) for letter in "abu")) == expected


def test_raters_who_saw_the_models_in_the_other_order_vote_on_the_same_comparison() -> None:
    found = preferences(pd.concat([votes("a"), votes("b", "b", models=("b", "a"))]))
    assert found.to_numpy().tolist() == [["p", "a", "b", 1]]


def test_an_unknown_value_is_refused_by_name() -> None:
    with pytest.raises(SubmitterError, match=r"'6' .* Likert"):
        template_scores(rated("Likert", "p", ["6"]))
    with pytest.raises(SubmitterError, match="SxS"):
        preferences(votes("left"))


def test_disagreement_is_the_variance_over_raters_averaged_over_words() -> None:
    likert = rated("Likert", "p", ["1"], ["5"], ["unsure"])
    words = rated("WL", "p", [A, A, U], [A, N, A], [A, N, U])
    found = [disagreements(table)["disagreement"].item() for table in (likert, words)]
    assert found == pytest.approx([np.var([0.2, 1.0]), (0 + 2 / 9 + 0) / 3])


def likert(prompt: str, *values: str, model: str = "x") -> pd.DataFrame:
    return rated("Likert", prompt, *([value] for value in values), model=model)


@pytest.mark.parametrize(
    ("ratings", "kept"),
    [
        # Below half of the largest disagreement; exactly half is not below.
        ([likert("wide", "1", "5"), likert("near", "1", "3"), likert("same", "2", "2")],
         {"near", "same"}),
        ([rated("WL", "all", [A, A], [N, N]), rated("WL", "half", [A, A], [N, A])], set()),
        # Every model and every template must agree.
        ([likert("a", "1", "5"), likert("b", "2", "2"), likert("c", "2", "2"),
          likert("a", "3", "3", model="y"), rated("DSGH", "b", ["yes"], ["no"], model="y"),
          rated("DSGH", "c", ["yes"], ["yes"], model="y")], {"c"}),
        # A prompt with nothing but unsure Likert ratings is dropped.
        ([likert("p", U, U), likert("p", U, U, model="y"), rated("WL", "p", [A], [A], model="x"),
          likert("q", U, U), likert("q", "3", U, model="y")], {"q"}),
        ([rated("WL", "p", [A], [A])], {"p"}),  # nobody disagrees
        ([rated("WL", "p")], set()),  # nobody rates
    ],
)  # fmt: skip
def test_prompts_raters_agree_on_are_reliable(ratings: list[pd.DataFrame], kept: set[str]) -> None:
    assert reliable_prompts(pd.concat(ratings, ignore_index=True)) == kept


# The public prompts.csv, as counted in 4.2 of the specification of the protocols: count/reliable.
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


def pairs(text: str) -> dict[str, str]:
    return dict(part.rsplit(" ", 1) for part in text.split(", "))


def counted(table: pd.DataFrame, by: str) -> dict[str, str]:
    reliable = {str(name): rows["reliable"] for name, rows in table.groupby(by)}
    return {name: f"{len(flags)}/{flags.sum()}" for name, flags in reliable.items()}


@pytest.mark.paper
@pytest.mark.slow
def test_released_prompts_have_the_counts_of_the_specification(assay_data: Path) -> None:
    folder = Gecko().folder(assay_data)
    prompts = load_prompts(folder)
    assert folder.verified() == {"gecko/prompts.csv": CARD.files[0].sha256}
    assert counted(prompts, "split") == {"s": "930/648", "r": "616/389"}
    synthetic, real = (prompts[prompts["split"] == split] for split in "sr")
    assert counted(synthetic, "skill") == {k: total for k, (_, total) in COUNTED.items()}
    for skill, (parts, _) in COUNTED.items():
        assert counted(synthetic[synthetic["skill"] == skill], "sub_skill") == pairs(parts)
    keys = set(synthetic["skill"] + ":" + synthetic["sub_skill"])
    assert len(keys) == 44
    assert keys | set(COUNTED) == set(CARD.skills)
    assert counted(real, "source") == pairs(SOURCES)
    assert set(real["skill"]) == {""}


@pytest.mark.paper
@pytest.mark.slow
def test_flags_are_monotone_and_all_prompts_are_given_out(assay_data: Path) -> None:
    table = pd.read_csv(assay_data / "gecko" / "prompts.csv")
    for lower, higher in pairwise(["0.3", "0.35", "0.4", "0.45", "0.5"]):
        below = table[f"max_disagreement_less_{lower}"]
        assert not (below & ~table[f"max_disagreement_less_{higher}"]).any()
    assert not (table[OTHER_FLAG] & ~table["max_disagreement_less_0.45"]).any()
    prompts: Any = Gecko().prompts(assay_data).set_index("prompt_id")
    assert len(prompts) == 1546
    assert prompts.loc["981", "prompt"] == prompts.loc["1525", "prompt"]  # and stay two
    assert prompts["prompt"].duplicated().sum() == 1
    assert prompts.loc["0", "skills"] == "named_entity;named_entity:landmarks"
    assert prompts.loc["1545", "split"] == "r"
