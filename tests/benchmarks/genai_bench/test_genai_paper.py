"""Figures of GenAI-Bench that follow from the released ratings and tags alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.genai_bench.load import GenAiAnswers as Answers
from benchmarks.genai_bench.protocol import (
    ALL_PROMPTS,
    CARD_527,
    CARD_1600,
    TAGGED_PROMPTS,
    GenAiBench,
    model_means,
    model_tests,
    rater_agreement,
)
from benchmarks.schema import ScoreTable

pytestmark = [pytest.mark.paper, pytest.mark.slow]

ORDER = ("SDXL_2_1", "SDXL_Turbo", "SDXL_Base", "DeepFloyd_I_XL_v1", "Midjourney_6", "DALLE_3")
UNTAGGED = ("00719", "00721", "00730", "00733", "00739", "00743", "00951")


@pytest.fixture(scope="module")
def set_1600(assay_data: Path) -> Answers:
    return GenAiBench(CARD_1600).answers(assay_data)


@pytest.fixture(scope="module")
def set_527(assay_data: Path) -> Answers:
    return GenAiBench(CARD_527).answers(assay_data)


def test_published_numbers_of_prompts(set_527: Answers, set_1600: Answers) -> None:
    """Tag counts of the released genai_skills.json; untagged prompts of the 1,600 set."""
    large = {skill: len(prompts) for skill, prompts in set_1600.skills.items()}
    assert large == {
        "basic": 722, "advanced": 871, "attribute": 553, "scene": 360, "spatial relation": 386,
        "action relation": 467, "part relation": 195, "counting": 340, "comparison": 162,
        "differentiation": 296, "negation": 347, "universal": 147,
    }  # fmt: skip
    small = {skill: len(prompts) for skill, prompts in set_527.skills.items()}
    assert small == {
        "basic": 214, "advanced": 313, "attribute": 143, "scene": 109, "spatial relation": 104,
        "action relation": 138, "part relation": 34, "counting": 97, "comparison": 51,
        "differentiation": 105, "negation": 101, "universal": 47,
    }  # fmt: skip
    assert set_1600.untagged == UNTAGGED
    assert set_527.untagged == ()
    assert (set_527.n_outside, set_1600.n_outside) == (2, 2)


def test_tags_go_by_number(assay_data: Path, set_527: Answers, set_1600: Answers) -> None:
    """The sets share prompts under ids that differ by one, and tag most of them alike."""
    small = GenAiBench(CARD_527).prompts(assay_data).set_index("prompt")
    large = GenAiBench(CARD_1600).prompts(assay_data).set_index("prompt")
    both = small.index.intersection(large.index)
    assert len(both) == 488
    of_small, of_large = (t["skills"].loc[both].str.contains("negation") for t in (small, large))
    assert (of_small == of_large).mean() > 0.97
    [of_kites] = small.filter(regex="^Three kites", axis=0)["skills"]
    assert "counting" in of_kites


def test_mean_ratings_of_the_models(set_527: Answers, set_1600: Answers) -> None:
    """GenAI-Bench, human ratings of the six models by skill, recomputed from the release."""
    large = model_means(set_1600).loc[list(ORDER)]
    everything = [3.0227, 3.1981, 3.2602, 3.3588, 3.6383, 3.8196]
    # DeepFloyd's mean, 3.35875, lies between two printed figures.
    assert large[ALL_PROMPTS].tolist() == pytest.approx(everything, abs=5.1e-5)
    assert large["basic"].round(2).tolist() == [3.20, 3.50, 3.60, 3.63, 3.97, 4.29]
    assert large["advanced"].round(2).tolist() == [2.87, 2.95, 2.98, 3.13, 3.36, 3.43]
    assert large["negation"].round(2).tolist() == [2.91, 2.92, 2.90, 2.92, 3.00, 2.98]
    tagged = set_1600.images["prompt_id"].isin(UNTAGGED).to_numpy()
    of_model = (set_1600.images["model"] == "DALLE_3").to_numpy()
    expected = set_1600.labels[of_model & ~tagged].mean()
    assert large.loc["DALLE_3", TAGGED_PROMPTS] == pytest.approx(expected)
    small = model_means(set_527).loc[list(ORDER)]
    everything = [2.8514, 3.0835, 3.1094, 3.2277, 3.4908, 3.7217]
    assert small[ALL_PROMPTS].round(4).tolist() == everything


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("SDXL_Turbo", "SDXL_Base", (-2.9473, 3.252e-3, 244045.5, 1.648e-3, 0.2963, 0.3588)),
        ("DeepFloyd_I_XL_v1", "SDXL_Base", (3.7913, 1.554e-4, 302476.0, 8.712e-4, 0.3775, 0.3519)),
        ("DALLE_3", "Midjourney_6", (6.5978, 5.659e-11, 243906.0, 6.364e-13, 0.4281, 0.2825)),
    ],
)  # fmt: skip
def test_paired_tests(set_1600: Answers, a: str, b: str, expected: tuple[float, ...]) -> None:
    """Mean ratings of the 1,600 set, recomputed with scipy; the sign goes by the order."""
    tests = {(row[0], row[1]): row[2:] for row in model_tests(set_1600).itertuples(index=False)}
    t, t_p, w, w_p, wins, losses = map(float, tests[a, b])
    found = (round(t, 4), float(f"{t_p:.3e}"), w, float(f"{w_p:.3e}"))
    assert found == expected[:4]
    assert (wins, losses) == pytest.approx(expected[4:], abs=5.1e-5)


def test_agreement_of_the_raters(set_527: Answers, set_1600: Answers) -> None:
    """Krippendorff's alpha; GenAI-Bench reports 0.72 for images."""
    small, large = rater_agreement(set_527).round(4), rater_agreement(set_1600).round(4)
    assert list(small.loc["raw"]) == [0.3537, 0.7145, 0.6220]
    assert list(large.loc["raw"]) == [0.3648, 0.7147, 0.6776]
    assert list(large.loc["cleaned"]) == [0.3648, 0.7148, 0.7137]


def test_the_protocol_gives_the_figures_of_one_rater_as_a_metric(set_1600: Answers) -> None:
    """The first rating as metric, the mean of the other two as label: the large-scale check."""
    skills = {skill: set_1600.skills[skill] for skill in ("basic", "advanced")}
    one_left_out = replace(set_1600, ratings=set_1600.ratings[:, 1:], skills=skills)
    scores = pd.DataFrame({"rater": set_1600.ratings[:, 0]}, index=list(set_1600.pair_ids))
    found = GenAiBench(CARD_1600).evaluate(ScoreTable(scores), one_left_out, n_resamples=20)
    values = {(r.skill, r.measure): r for r in found.rows if r.variant == "paper"}
    expected = {
        "basic": (4332, 0.661736, 0.664844, 0.557615, 0.609944),
        "advanced": (5226, 0.714256, 0.712447, 0.605089, 0.631618),
        None: (9600, 0.709422, 0.725841, 0.609566, 0.641777),
    }
    for skill, (n, *numbers) in expected.items():
        rows = [values[skill, m] for m in ("pearson", "srcc", "krcc", "pairwise_accuracy")]
        assert [row.n_items for row in rows] == [n] * 4
        assert [round(row.value, 6) for row in rows] == numbers
        assert rows[-1].note.endswith("difference of 0")
        assert np.isfinite([row.ci_low for row in rows]).all()
