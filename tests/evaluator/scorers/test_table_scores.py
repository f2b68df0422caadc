from __future__ import annotations

import math
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.pixel_hash import pixel_hash
from evaluator.scorers.registry import load_rows, load_scorer
from evaluator.scorers.runtime import Runtime

IMAGE = Image.new("RGB", (2, 2), "green")
ROW = load_rows()["score-table"]


def table(folder: Path, *rows: str) -> Runtime:
    path = folder / "scores.csv"
    path.write_text("\n".join(["image,prompt,score", *rows]) + "\n", encoding="utf-8")
    return Runtime(folders={"table": path})


def test_scores_are_looked_up_by_pixels_and_prompt(tmp_path: Path) -> None:
    image = pixel_hash(IMAGE)
    loaded = load_scorer(ROW, table(tmp_path, f"{image},a leaf,0.25", f"{image},a frog,"))
    prepared = loaded.scorer.prepare(IMAGE)  # type: ignore[attr-defined]
    found = loaded.scorer.score([prepared] * 3, ["a leaf", "a frog", "a tree"])
    assert found[0] == 0.25
    assert all(math.isnan(score) for score in found[1:])
    (verdict,) = loaded.scorer.score_texts([prepared], [["a tree"]])[0]  # type: ignore[attr-defined]
    assert "no score of this image" in verdict.problem


@pytest.mark.parametrize("score", ["inf", "nan", "high"])
def test_a_score_that_is_no_finite_number_is_refused(tmp_path: Path, score: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        load_scorer(ROW, table(tmp_path, f"{pixel_hash(IMAGE)},a leaf,{score}"))
    assert caught.value.code == "bad_score"


def test_without_another_the_table_is_the_one_that_the_row_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SubmitterError, match=r"scores\.csv") as caught:
        load_scorer(ROW, Runtime())
    assert caught.value.code == "file_missing"
    table(tmp_path, f"{pixel_hash(IMAGE)},a leaf,0.5")
    assert load_scorer(ROW, Runtime()).scorer.score([pixel_hash(IMAGE)], ["a leaf"]) == [0.5]  # type: ignore[list-item]
