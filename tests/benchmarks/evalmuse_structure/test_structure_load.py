"""The operator's table of the structure test: questions of two tests, clusters, words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse_structure.load import PROBLEM_LABELS
from benchmarks.evalmuse_structure.protocol import CARD, EvalMuseStructure
from benchmarks.schema import ScoreTable
from tests.benchmarks.evalmuse_structure.structure_tree import ASKED, IMAGES, RELEASED, write


def test_a_table_becomes_questions_of_two_tests(tmp_path: Path) -> None:
    assert len(PROBLEM_LABELS) == 11
    board = EvalMuseStructure()
    answers = board.answers(write(tmp_path))
    assert answers.categories["category"].tolist() == ["human", "animal", "animal", "object"]
    assert answers.categories["yes"].tolist() == [True, False, True, False]
    parts = ["human:palm_deformed", "human:limb_missing_extra", "animal"]
    assert answers.problems["skill"].tolist() == parts
    # One score answers both rows of a question.
    scores = pd.DataFrame({"m": np.linspace(0, 0.5, 6)}, index=list(answers.pair_ids))
    measured = board.evaluate(ScoreTable(scores), answers, 20)
    assert {row.measure for row in measured.rows} == set(CARD.measures)


def test_images_are_the_clusters_where_no_prompt_is_given(tmp_path: Path) -> None:
    answers = EvalMuseStructure().answers(write(tmp_path, RELEASED.drop(columns="prompt_id")))
    assert answers.clusters == ("SDXL/00805.png", "Kolors/02210.png", "Kolors/02210_1.png")


@pytest.mark.parametrize("folder", [IMAGES, "evalmuse/images"])
def test_the_operators_words_are_asked_and_images_may_be_those_of_evalmuse(
    tmp_path: Path, folder: str
) -> None:
    words = RELEASED["label"].map({"animal": "the animal's limbs"}).fillna("")
    data = write(tmp_path, RELEASED.assign(cls_prompt=words), images=folder)
    assert EvalMuseStructure().has_questions(data)
    texts = EvalMuseStructure().questions(data).texts
    assert texts["animal"] == ASKED.format("the animal's limbs")
