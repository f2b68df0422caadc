"""Controls: what each scores by, which apply, and their figures on real data."""

from __future__ import annotations

import hashlib
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from benchmarks.families.controls import CONTROLS, control_scores, run_controls
from benchmarks.registry import load_registry
from tests.benchmarks.families.cards import RATED, benchmark_of, with_keys
from tests.kit.refusals import refused

MODELS = with_keys(
    RATED,
    {
        "tables": [
            with_keys(RATED["tables"][0], {"columns": {"model": "model", "id": "id"}}),
        ],
        "items": {"pair": "id", "model": "model"},
    },
)
LABELS = """id,image,prompt,model,mean
0,a.png,a cat,x,1
1,b.png,a cat,y,2
2,c.png,a red dog,x,5
3,d.png,a red dog,y,4
4,e.png,one two three four,x,3
5,f.png,one two three four,z,2
"""


def scores_of(folder: Path, images: Any = None, **keys: Any) -> pd.DataFrame:
    board = benchmark_of(folder, with_keys(MODELS, keys), labels_csv=LABELS)
    return control_scores(board, board.answers(folder), images).overall


def encoded(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, "PNG")
    return buffer.getvalue()


def test_every_control_has_its_score_and_either_sign(tmp_path: Path) -> None:
    found = scores_of(tmp_path)
    digits = [float(int(hashlib.sha256(str(i).encode()).hexdigest()[:8], 16)) for i in range(6)]
    expected: dict[str, list[float]] = {
        "constant": [0] * 6,
        "random": digits,
        "prompt_length": [2, 2, 3, 3, 4, 4],
        "position": [0, -1, 0, -1, 0, -1],
        # Of all other prompts: x has 1, 5, 3 and y has 2, 4; z made one image only.
        "model_identity": [4, 4, 2, 2, 3, math.nan],
    }
    signed = {name for name in expected if name != "constant"}
    assert set(found) == {*expected, *(f"-{name}" for name in signed)}
    for name, scores in expected.items():
        np.testing.assert_array_equal(found[name], scores)
        if name in signed:
            np.testing.assert_array_equal(found[f"-{name}"], -np.array(scores))


def test_encoded_images_have_a_size_and_a_shape(tmp_path: Path) -> None:
    shapes = {f"{name}.png": (8 * (i + 1), 8) for i, name in enumerate("abcdef")}
    contents = {name: encoded(*shape) for name, shape in shapes.items()}
    found = scores_of(tmp_path, {name: lambda n=name: contents[n] for name in contents})
    np.testing.assert_allclose(found["image_size"], [w * h for w, h in shapes.values()])
    np.testing.assert_allclose(found["aspect"], [math.log(w / h) for w, h in shapes.values()])
    np.testing.assert_allclose(found["file_size"], [len(one) for one in contents.values()])


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with refused("data_malformed", "'a.png'"):
        scores_of(tmp_path, dict.fromkeys([f"{n}.png" for n in "abcdef"], lambda: b"no image"))


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ({"controls": {"run": ["random"]}}, {"random"}),
        ({"items": {"model": ""}}, set(CONTROLS) - {"model_identity"}),
        # All images of one prompt: nothing but the pair and its place tells them apart.
        ({"items": {"text": "none"}}, set(CONTROLS) - {"prompt_length"}),
    ],
)
def test_a_control_that_says_nothing_or_is_not_wanted_is_left_out(
    tmp_path: Path, keys: dict[str, Any], left: set[str]
) -> None:
    columns = {"columns": {"none": {"const": "same"}}}
    tables = [with_keys(MODELS["tables"][0], columns)]
    found = scores_of(tmp_path, tables=tables, **keys)
    images = {"image_size", "file_size", "aspect"}
    assert {name for name in map(str, found) if name[0] != "-"} == left - images


def test_a_control_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with refused("invalid_benchmark", "controls.run"):
        scores_of(tmp_path, controls={"run": ["moon_phase"]})


@pytest.mark.slow
def test_agiqa_3k_has_the_figures_of_its_controls() -> None:
    board: Any = load_registry()["agiqa3k"]
    found = run_controls(board, board.answers(None), n_resamples=50)
    wanted = {"prompt_length": -0.0959, "model_identity": 0.4203, "-model_identity": -0.4203}
    for control, value in wanted.items():
        assert found.value(control, measure="srcc", facet="align") == pytest.approx(value, abs=5e-5)
    assert abs(found.value("random", measure="srcc", facet="align")) < 0.05
    assert math.isnan(found.value("constant", measure="srcc", facet="align"))
