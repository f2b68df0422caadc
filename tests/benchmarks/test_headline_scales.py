"""Chance and ceiling of each headline: a guess gets the one, and the other is where it says."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from benchmarks.genai_bench.measures import one_rater
from benchmarks.published import published
from benchmarks.registry import load_registry
from benchmarks.schema import Card, Scale, ScoreTable
from benchmarks.tifa160.protocol import one_rater as one_tifa_rater
from tests.benchmarks.toy import Toy
from tools.index_chance import guessed, headlines

REGISTRY = load_registry()
WITHOUT = {"genai_ranking"}
"""A guess there depends on ratings that have not been at hand; its card says so."""
each_genai = pytest.mark.parametrize("name", ["genai_527", "genai_1600"])


def scale_of(name: str) -> Scale:
    scale = REGISTRY[name].card.headline_scale
    assert scale is not None
    return scale


def card_with(*, higher_is_better: bool = True, **scale: Any) -> Card:
    rising = {"higher_is_better": higher_is_better}
    measures = {"mean": Toy.card.measures["mean"].model_dump() | rising}
    fields = {"chance": 0.0, "ceiling": 1.0, "ceiling_is": "People.", "source": "A paper."}
    given = {"measures": measures, "headline_scale": fields | scale}
    return Card.model_validate(Toy.card.model_dump() | given)


def printed(table: str, benchmark: str, measure: str, metric: str = "human") -> list[float]:
    return [
        cell.value
        for cell in published(benchmark)
        if (cell.table, cell.measure, cell.metric) == (table, measure, metric)
    ]


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ({"chance": 0.9, "ceiling": 0.1}, "larger"),
        ({"chance": 0.9, "ceiling": 1.5, "higher_is_better": False}, "smaller"),
        ({"chance": 0.5, "ceiling": 0.5}, "between"),
        ({"ceiling": math.nan}, "finite"), ({"ceiling": math.inf}, "finite"),
        ({"ceiling_is": ""}, "ceiling_is"), ({"source": ""}, "source"),
    ],
)  # fmt: skip
def test_a_ceiling_is_better_than_chance_and_sourced(scale: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        card_with(**scale)
    falling = card_with(chance=0.9, ceiling=0.1, higher_is_better=False)
    assert Toy.card.headline_scale is None
    assert card_with(chance=0.1, ceiling=0.9).headline_scale and falling.headline_scale


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - WITHOUT))
def test_every_headline_has_a_scale_inside_its_measure(name: str) -> None:
    card, scale = REGISTRY[name].card, scale_of(name)
    info = card.measures[card.headline.measure]
    low, high = (-math.inf if info.low is None else info.low), info.high
    for end in (scale.chance, scale.ceiling):
        assert low <= end <= (math.inf if high is None else high)
    assert scale.ceiling_is.endswith(".") and scale.source.endswith(".")
    assert info.chance in (None, scale.chance)
    if scale.ceiling == info.high:
        assert "largest" in scale.ceiling_is
    if card.simulated:  # it claims no people
        assert (scale.chance, scale.ceiling) == (0.0, 1.0) and "simulated" in scale.ceiling_is


def test_ceilings_from_papers_are_the_printed_figures() -> None:
    assert [scale_of("croc_hum").ceiling] == printed("Human check", "croc_hum", "scaled_accuracy")
    directions = printed("Table 3", "croc_syn", "scaled_accuracy")
    templates = printed("Template correlations", "gecko", "srcc")
    assert (len(directions), len(templates)) == (4, 24)
    assert scale_of("croc_syn").ceiling == pytest.approx(mean(directions))
    assert scale_of("gecko").ceiling == pytest.approx(mean(templates))
    elements = printed("Table 3", "evalmuse", "srcc", metric="human_elements")
    assert scale_of("evalmuse").ceiling in elements


def guesses_get_chance(name: str, data: Path | None, draws: int) -> None:
    found = guessed(REGISTRY[name], data, draws=draws, seed=5)
    off = abs(found.mean() - scale_of(name).chance)
    assert 0 <= off < 4.0 * found.std(ddof=1) / math.sqrt(found.size)


@pytest.mark.parametrize("name", ["demo_croc", "demo_ts2"])
def test_guessing_metrics_get_chance_on_the_demo(name: str) -> None:
    guesses_get_chance(name, None, 30)


def test_ties_are_failures_so_a_constant_metric_is_far_below_a_guess_on_croc() -> None:
    benchmark = REGISTRY["demo_croc"]
    answers = benchmark.answers(None)
    constant = ScoreTable(pd.DataFrame({"same": 1.0}, index=list(answers.pair_ids)))
    assert headlines(benchmark, answers, constant).tolist() == [-1.0]


def by_errors(name: str, data: Path | None) -> float:
    """Headline of a metric that knows the number of errors."""
    answers: Any = REGISTRY[name].answers(data)
    scores = -answers.nodes["level"].to_numpy(np.float64)
    table = ScoreTable(pd.DataFrame({"errors": scores}, index=list(answers.pair_ids)))
    return float(headlines(REGISTRY[name], answers, table)[0])


def test_the_ceiling_of_demo_ts2_is_what_the_number_of_errors_reaches() -> None:
    assert by_errors("demo_ts2", None) == pytest.approx(scale_of("demo_ts2").ceiling)


@pytest.mark.paper
def test_chance_and_ceiling_of_ts2_are_a_guess_and_the_number_of_errors(assay_data: Path) -> None:
    reached = by_errors("ts2", assay_data)
    assert reached == pytest.approx(163 / 164)
    assert scale_of("ts2").ceiling == pytest.approx(reached, abs=5e-7)
    guesses_get_chance("ts2", assay_data, 40)


@pytest.mark.paper
@each_genai
def test_on_genai_bench_a_guess_loses_tied_pairs_and_the_ceiling_is_one_rating_against_the_others(
    name: str, assay_data: Path
) -> None:
    """Pairwise accuracy with tie calibration: chance is not 0.5, since a guess never ties."""
    answers: Any = REGISTRY[name].answers(assay_data)
    labels = answers.labels
    _, sizes = np.unique(labels, return_counts=True)
    tied = (sizes * (sizes - 1)).sum() / (labels.size * (labels.size - 1))
    assert tied < 1 / 3  # else calling everything tied would be the better guess
    assert scale_of(name).chance == pytest.approx((1 - tied) / 2, abs=5e-5)
    found = one_rater(answers).set_index("rating")["pairwise_accuracy"]
    assert list(found.index) == ["1", "2", "3", "mean"]
    assert found["mean"] == pytest.approx(found[["1", "2", "3"]].mean())
    assert scale_of(name).ceiling == pytest.approx(found["mean"], abs=5e-7)
    assert name == "genai_527" or found["1"] == pytest.approx(0.641777, abs=5e-7)


@pytest.mark.paper
def test_the_ceiling_of_tifa160_is_one_rating_against_the_others(assay_data: Path) -> None:
    answers: Any = REGISTRY["tifa160"].answers(assay_data)
    found = one_tifa_rater(answers).set_index(["gold", "rating"])["srcc"]
    table = pd.DataFrame(answers.ratings["dsg_likert"])
    each = [
        table[k].corr(table.drop(columns=k).mean(axis=1), method="spearman") for k in table.columns
    ]
    assert found["dsg_likert"].tolist() == pytest.approx([*each, mean(each)])
    assert scale_of("tifa160").ceiling == pytest.approx(mean(each), abs=5e-7)
    assert found["human_avg", "1"] == pytest.approx(found["human_avg", "2"])
