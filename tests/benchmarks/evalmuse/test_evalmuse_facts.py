"""Facts of the labels alone, and the ranks of models as the paper prints them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.facts import align_scores, human_ceiling
from benchmarks.statistics.seeds import competition_ranks

TABLE_10_OVERALL = (
    (3.74, 1), (3.63, 2), (3.47, 3), (3.33, 4), (3.27, 5), (3.20, 6), (3.15, 7), (3.08, 8),
    (3.08, 8), (2.99, 10), (2.98, 11), (2.93, 12), (2.93, 12), (2.93, 12), (2.88, 15), (2.77, 16),
    (2.77, 16), (2.73, 18), (2.66, 19), (2.42, 20), (2.25, 21), (2.25, 21),
)  # fmt: skip


@pytest.mark.paper
def test_competition_ranks_are_those_of_table_10() -> None:
    """EvalMuse-40K, Table 10, column overall: 22 models from Dreamina v2.0Pro to SD v1.2."""
    values, ranks = zip(*TABLE_10_OVERALL, strict=True)
    assert tuple(competition_ranks(values, 2)) == ranks


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
