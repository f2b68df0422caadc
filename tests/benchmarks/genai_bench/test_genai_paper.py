"""Figures of GenAI-Bench that follow from the released ratings and tags alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.families.rating import LEVELS
from benchmarks.families.rating import RatingAnswers as Answers
from benchmarks.families.ratings import RatedPairs
from benchmarks.genai_bench.protocol import GENAI_527, GENAI_1600
from benchmarks.model_boards import RatedModels, rated_models
from benchmarks.schema import ScoreTable
from benchmarks.statistics.raters import krippendorff_alpha

pytestmark = [pytest.mark.paper, pytest.mark.slow]

GOLD = "alignment"
UNTAGGED = ("00719", "00721", "00730", "00733", "00739", "00743", "00951")


@pytest.fixture(scope="module")
def set_1600(assay_data: Path) -> Answers:
    return GENAI_1600.answers(assay_data)


@pytest.fixture(scope="module")
def set_527(assay_data: Path) -> Answers:
    return GENAI_527.answers(assay_data)


def models_of(answers: Answers) -> RatedModels:
    found = rated_models(answers)
    assert found is not None
    return found


def test_published_numbers_of_prompts(set_527: Answers, set_1600: Answers) -> None:
    """Tag counts of the released genai_skills.json; untagged prompts of the 1,600 set."""
    small, large = models_of(set_527), models_of(set_1600)
    assert {skill: len(prompts) for skill, prompts in large.skills.items()} == {
        "basic": 722, "advanced": 871, "attribute": 553, "scene": 360, "spatial relation": 386,
        "action relation": 467, "part relation": 195, "counting": 340, "comparison": 162,
        "differentiation": 296, "negation": 347, "universal": 147,
    }  # fmt: skip
    assert {skill: len(prompts) for skill, prompts in small.skills.items()} == {
        "basic": 214, "advanced": 313, "attribute": 143, "scene": 109, "spatial relation": 104,
        "action relation": 138, "part relation": 34, "counting": 97, "comparison": 51,
        "differentiation": 105, "negation": 101, "universal": 47,
    }  # fmt: skip
    assert sorted(set(large.prompts).difference(*large.skills.values())) == list(UNTAGGED)
    assert set(small.prompts) == set().union(*small.skills.values())
    assert "7 prompts without" in large.note and "without" not in small.note
    for answers in (set_527, set_1600):
        assert answers.counts()[f"{GOLD}: ratings outside the scale"] == 2
        assert models_of(answers).note.startswith("2 of the released ratings")


def test_tags_go_by_number(assay_data: Path, set_527: Answers, set_1600: Answers) -> None:
    """The sets share prompts under ids that differ by one, and tag most of them alike."""
    small = GENAI_527.prompts(assay_data).set_index("prompt")
    large = GENAI_1600.prompts(assay_data).set_index("prompt")
    both = small.index.intersection(large.index)
    assert len(both) == 488
    of_small, of_large = (t["skills"].loc[both].str.contains("negation") for t in (small, large))
    assert (of_small == of_large).mean() > 0.97
    [of_kites] = small.filter(regex="^Three kites", axis=0)["skills"]
    assert "counting" in of_kites


def test_agreement_of_the_raters(set_527: Answers, set_1600: Answers) -> None:
    """Krippendorff's alpha; GenAI-Bench reports 0.72 for images."""
    title = "Krippendorff's alpha of the ratings"
    small, large = (
        one.facts(of)[title] for one, of in ((GENAI_527, set_527), (GENAI_1600, set_1600))
    )
    assert small[list(LEVELS)].iloc[0].round(4).tolist() == [0.3537, 0.7145, 0.6220]
    assert large[list(LEVELS)].iloc[0].round(4).tolist() == [0.3648, 0.7147, 0.6776]
    rated = set_1600.facets[GOLD]
    cleaned = np.where(rated.outside, np.nan, rated.ratings)
    found = [round(krippendorff_alpha(cleaned, level), 4) for level in LEVELS]
    assert found == [0.3648, 0.7148, 0.7137]


def test_the_protocol_gives_the_figures_of_one_rater_as_a_metric(set_1600: Answers) -> None:
    """The first rating as metric, the mean of the other two as label: the large-scale check."""
    ratings = set_1600.facets[GOLD].ratings
    others = RatedPairs(ratings[:, 1:].mean(axis=1), ratings[:, 1:])
    one_left_out = replace(set_1600, facets={GOLD: others})
    scores = pd.DataFrame({"rater": ratings[:, 0]}, index=list(set_1600.pair_ids))
    found = GENAI_1600.evaluate(ScoreTable(scores), one_left_out, n_resamples=20)
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
