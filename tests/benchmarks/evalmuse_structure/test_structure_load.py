"""Reading the operator's table of structural questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse_structure.load import LABELS, PROBLEM_LABELS, SKILLS
from benchmarks.evalmuse_structure.protocol import BENCHMARKS, CARD, EvalMuseStructure
from benchmarks.scores import parse_scores
from tests.benchmarks.cards import trial_card

ROWS = [
    ("SDXL/00805.png", "human_body", "category", "yes", "00805"),
    ("SDXL/00805.png", "palm_deformed", "problem", "yes", "00805"),
    ("SDXL/00805.png", "limb_missing_extra", "problem", "yes", "00805"),
    ("SDXL/00805.png", "animal", "category", "no", "00805"),
    ("Kolors/02210.png", "animal", "category", "yes", "02210"),
    ("Kolors/02210.png", "animal", "problem", "yes", "02210"),
    ("Kolors/02210_1.png", "object", "category", "no", "02210"),
]


def released() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=["img_path", "label", "kind", "answer", "prompt_id"])


def write(root: Path, table: pd.DataFrame) -> Path:
    (root / "evalmuse_structure").mkdir(exist_ok=True)
    table.to_csv(root / "evalmuse_structure" / "structure.csv", index=False)
    return root


def add_images(root: Path, folder: str = "evalmuse_structure/images") -> None:
    for name in released()["img_path"].unique():
        place = root / folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(place)


def test_a_table_becomes_questions_of_two_tests(tmp_path: Path) -> None:
    answers = EvalMuseStructure().answers(write(tmp_path, released()))
    assert answers.pair_ids == (
        "SDXL/00805.png|human_body",
        "SDXL/00805.png|palm_deformed",
        "SDXL/00805.png|limb_missing_extra",
        "SDXL/00805.png|animal",
        "Kolors/02210.png|animal",
        "Kolors/02210_1.png|object",
    )
    assert answers.clusters == ("00805", "02210")
    assert answers.categories["category"].tolist() == ["human", "animal", "animal", "object"]
    assert answers.categories["yes"].tolist() == [True, False, True, False]
    assert answers.problems["skill"].tolist() == [
        "human:palm_deformed",
        "human:limb_missing_extra",
        "animal",
    ]
    assert answers.counts() == {
        "images": 3,
        "clusters": 2,
        "category questions": 4,
        "annotated problems": 3,
        "animal: yes": 1,
        "animal: no": 1,
        "object: yes": 0,
        "object: no": 1,
        "human: yes": 1,
        "human: no": 0,
    }
    assert list(answers.sources) == ["evalmuse_structure/structure.csv"]


def test_images_are_the_clusters_where_no_prompt_is_given(tmp_path: Path) -> None:
    answers = EvalMuseStructure().answers(write(tmp_path, released().drop(columns="prompt_id")))
    assert answers.clusters == ("SDXL/00805.png", "Kolors/02210.png", "Kolors/02210_1.png")


def test_one_score_answers_both_rows_of_a_question(tmp_path: Path) -> None:
    benchmark = EvalMuseStructure()
    answers = benchmark.answers(write(tmp_path, released()))
    lines = [f"{pair},{0.1 * n:.1f}" for n, pair in enumerate(answers.pair_ids)]
    table = parse_scores("\n".join(["pair_id,score", *lines]).encode(), "s.csv", benchmark, answers)
    measured = benchmark.evaluate(table, answers, 20)
    assert {row.measure for row in measured.rows} == set(CARD.measures)


@pytest.mark.parametrize("folder", ["evalmuse_structure/images", "evalmuse/images"])
def test_questions_hold_the_papers_question_and_no_answer(tmp_path: Path, folder: str) -> None:
    benchmark = EvalMuseStructure()
    data = write(tmp_path, released())
    assert not benchmark.has_questions(data)
    add_images(data, folder)
    assert benchmark.has_questions(data)
    questions = benchmark.questions(data)
    assert {pair.pair_id for pair in questions.pairs} == set(benchmark.answers(data).pair_ids)
    assert len(questions.pairs) == 6
    text = questions.texts["animal"]
    assert text.startswith("Does this generated image have any structural problems? Specifically, ")
    assert text.endswith("? Please answer yes or no only.")
    assert questions.images["SDXL/00805.png"]()[:4] == b"\x89PNG"


def test_an_operator_may_give_the_words_of_the_question(tmp_path: Path) -> None:
    words = released()["label"].map({"animal": "the animal's limbs"}).fillna("")
    data = write(tmp_path, released().assign(cls_prompt=words))
    add_images(data)
    texts = EvalMuseStructure().questions(data).texts
    assert "Specifically, the animal's limbs? Please" in texts["animal"]
    assert LABELS["object"].cls_prompt in texts["object"]


def change(row: int, column: str, cell: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def changed(table: pd.DataFrame) -> pd.DataFrame:
        table = table.copy()
        table.loc[row, column] = cell
        return table

    return changed


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda t: t.drop(columns=["kind", "answer"]), "no column kind, answer"),
        (lambda t: t.iloc[:0], "no rows"),
        (change(0, "kind", "catgory"), "'catgory'"),
        (change(1, "label", "palm"), "for kind problem one of animal, object, face_missing"),
        (change(1, "kind", "category"), "for kind category one of animal, object, human_body"),
        (change(0, "label", "palm_deformed"), "column label, the first is 'palm_deformed'"),
        (change(3, "answer", "maybe"), "column answer, the first is 'maybe'"),
        (change(3, "answer", "No"), "column answer, the first is 'No'"),
        (change(1, "answer", "no"), "a problem stands there only if annotated"),
        (change(4, "answer", "no"), "the same image has that problem annotated"),
        (change(2, "label", "palm_deformed"), "each label once per image and kind"),
        (change(0, "img_path", ""), "a path below images/"),
        (change(0, "img_path", "../x.png"), "a path below images/"),
        (change(0, "img_path", "/etc/x.png"), "a path below images/"),
        (change(0, "img_path", "a|b.png"), "without the sign |"),
        (change(0, "prompt_id", ""), "an id in every row"),
        (change(1, "prompt_id", "00806"), "one prompt per image"),
        (lambda t: t.assign(cls_prompt=[str(n) for n in range(len(t))]), "one per label"),
        (lambda t: t.assign(cls_prompt="x" * 501), "up to 500 characters"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_its_first_wrong_cell(
    tmp_path: Path, mistake: Callable[[pd.DataFrame], pd.DataFrame], says: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        EvalMuseStructure().answers(write(tmp_path, mistake(released())))
    assert caught.value.code == "data_malformed"
    assert says in caught.value.message
    assert "structure.csv" in caught.value.message
    assert "FORMAT.md" in caught.value.hint


def test_the_row_of_a_wrong_cell_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match=r"'SDXL/00805.png' \(data row 4\)"):
        EvalMuseStructure().answers(write(tmp_path, change(3, "answer", "x")(released())))


def test_another_count_than_the_cards_is_refused(tmp_path: Path) -> None:
    data = write(tmp_path, released())
    with pytest.raises(SubmitterError, match="holds 3 images; expected 4"):
        EvalMuseStructure(trial_card(CARD, images=4)).answers(data)
    with pytest.raises(SubmitterError, match="holds 6 questions; expected 5"):
        EvalMuseStructure(trial_card(CARD, questions=5)).answers(data)


def test_without_the_table_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match=r"structure\.csv") as caught:
        EvalMuseStructure().answers(tmp_path)
    assert caught.value.code == "data_missing"
    assert "FORMAT.md" in caught.value.hint


def test_a_missing_image_is_counted(tmp_path: Path) -> None:
    data = write(tmp_path, released())
    add_images(data)
    (data / "evalmuse_structure/images/SDXL/00805.png").unlink()
    with pytest.raises(SubmitterError, match="lacks 1 of the 3 images") as caught:
        EvalMuseStructure().questions(data)
    assert caught.value.code == "images_missing"


def test_the_card_names_the_eleven_problems_and_keeps_the_answers_back() -> None:
    (benchmark,) = BENCHMARKS
    card = benchmark.card
    assert not card.answers_public
    assert list(card.skills.items()) == list(SKILLS.items())
    assert len(PROBLEM_LABELS) == 11
    assert (card.headline.measure, card.headline.variant) == ("accuracy", "paper")
