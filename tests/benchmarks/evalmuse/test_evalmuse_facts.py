"""Facts of the labels alone, and competition ranks of models."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.measures import align_scores, human_ceiling
from benchmarks.statistics.seeds import competition_ranks


def test_values_that_print_alike_share_a_rank() -> None:
    assert competition_ranks([2.934, 3.1, 2.926, 2.5], 2).tolist() == [2, 1, 2, 4]
    assert competition_ranks([2.934, 3.1, 2.926, 2.5], 3).tolist() == [2, 1, 3, 4]
    assert competition_ranks([], 2).tolist() == []


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_model_without_a_value_has_no_rank(value: float) -> None:
    with pytest.raises(ValueError, match="finite scores"):
        competition_ranks([1.0, value], 2)


def make_answers() -> EvalMuseAnswers:
    rng = np.random.default_rng(4)
    pairs = [f"m/{n}" for n in range(30)]
    images = pd.DataFrame(
        {
            "pair_id": pairs,
            "prompt_id": [f"p{n % 10}" for n in range(30)],
            "prompt": "t",
            "split": ["real", "synth"] * 15,
            "label": rng.integers(3, 16, 30) / 3.0,
        }
    )
    members = np.repeat(np.array(pairs[:28], object), 3)  # two images have no elements
    elements = pd.DataFrame(
        {
            "pair_id": members,
            "element_id": ["a", "b", "c"] * 28,
            "skill": ["counting", "color", "other"] * 28,
            "label": rng.integers(0, 4, members.size) / 3.0,
        }
    )
    return EvalMuseAnswers(tuple(pairs), tuple(f"p{n}" for n in range(10)), images, elements)


def test_the_human_ceiling_is_srcc_of_mean_element_label_and_rating() -> None:
    answers = make_answers()
    found = human_ceiling(answers)
    means = answers.elements.groupby("pair_id", sort=False)["label"].mean().to_numpy()
    images = answers.images.iloc[:28]
    assert list(found) == ["all", "real", "synth"]
    assert found["all"] == pytest.approx(spearmanr(means, images["label"])[0])
    real = (images["split"] == "real").to_numpy()
    assert found["real"] == pytest.approx(spearmanr(means[real], images["label"][real])[0])


def test_constant_labels_have_no_ceiling() -> None:
    answers = make_answers()
    flat = EvalMuseAnswers(
        answers.pair_ids, answers.clusters, answers.images.assign(label=2.0), answers.elements
    )
    assert math.isnan(human_ceiling(flat)["all"])


def test_align_scores_are_mean_labels_of_the_reported_skills() -> None:
    answers = make_answers()
    labels = answers.elements.groupby("skill")["label"].mean()
    assert align_scores(answers) == pytest.approx(
        {"color": labels["color"], "counting": labels["counting"]}
    )
