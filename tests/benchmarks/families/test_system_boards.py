"""Boards of models: values of people and figures computed apart from the same ratings."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.families.controls import run_controls
from benchmarks.families.system import SystemAnswers, SystemBenchmark
from benchmarks.released.bundle import released_table
from benchmarks.schema import ScoreTable
from tests.benchmarks.families.cards import built_in

board = partial(built_in, SystemBenchmark, SystemAnswers)


def test_six_models_of_genai_bench_need_no_data() -> None:
    one, answers = board("genai_systems")
    assert one.has_answers(None)
    ratings = released_table("genai_1600/ratings.parquet")
    numbers = ratings[[name for name in ratings if name not in ("prompt_id", "model")]]
    means = numbers.mean(axis=1).groupby(ratings["model"]).mean()
    assert dict(zip(answers.models, answers.human, strict=True)) == pytest.approx(means.to_dict())
    random = np.random.default_rng(0)
    noisy = answers.rated + random.normal(0, 3, len(answers.rated))
    table = pd.DataFrame({"people": answers.rated, "noisy": noisy}, list(answers.pair_ids))
    rows = one.measure(ScoreTable(table), answers, one.plan(answers, 0)).rows
    found = {(row.metric, row.measure): row.value for row in rows}
    assert {found["people", measure] for measure in one.card.measures} == {1.0}
    by_model = table["noisy"].groupby(answers.items.pairs["model"].to_numpy()).mean()
    ordered = [
        (means[a] > means[b]) == (by_model[a] > by_model[b])
        for a, b in combinations(answers.models, 2)
    ]
    assert found["noisy", "pa"] == pytest.approx(np.mean(ordered))
    of_people, of_metric = (x.loc[list(answers.models)].to_numpy() for x in (means, by_model))
    assert found["noisy", "srcc"] == pytest.approx(stats.spearmanr(of_people, of_metric).statistic)
    # Soft pairwise accuracy against p-values of the normal distribution, pair by pair.
    distance = []
    values = pd.DataFrame(
        {"p": answers.items.pairs["prompt_id"], "m": answers.items.pairs["model"],
         "people": answers.rated, "noisy": noisy}
    )  # fmt: skip
    for a, b in combinations(answers.models, 2):
        p = []
        for name in ("people", "noisy"):
            wide = values.pivot_table(index="p", columns="m", values=name)
            d = wide[a] - wide[b]
            p.append(stats.norm.sf(d.sum() / np.sqrt((d**2).sum())))
        distance.append(abs(p[0] - p[1]))
    assert found["noisy", "spa"] == pytest.approx(1 - np.mean(distance), abs=0.01)


def test_controls_of_models_run() -> None:
    one, answers = board("genai_systems")
    found = run_controls(one, answers, None, 0)
    assert 0.0 <= found.value("random", measure="spa") <= 1.0
    assert found.value("model_identity", measure="pa") == 1.0


@pytest.mark.paper
@pytest.mark.slow
def test_the_models_of_evalmi_have_their_released_means(assay_data: Path) -> None:
    one, answers = board("evalmi_systems", assay_data)
    human = dict(zip(answers.models, answers.human, strict=True))
    assert len(human) == 24
    assert human["sd3_5_large"] == pytest.approx(58.351, abs=5e-4)
    assert human["LWM"] == pytest.approx(35.456, abs=5e-4)
    rates, of_rates = board("evalmi_rates", assay_data)
    assert all(map(rates.said.release_date, of_rates.models))
    assert set(of_rates.models) == set(answers.models)
    table = pd.read_excel(assay_data / "evalmi" / "AIGI2025_MOS_yn.xlsx", engine="calamine")
    model = table["ImageName"].str.split("/").str[0]
    means = table["Y/N"].astype(float).groupby(model).mean()
    assert dict(zip(of_rates.models, of_rates.human, strict=True)) == pytest.approx(means.to_dict())
    assert one.card.headline.measure in one.card.measures
    half = pd.DataFrame({"half": 0.5, "people": of_rates.rated}, list(of_rates.pair_ids))
    rows = rates.measure(ScoreTable(half), of_rates, rates.plan(of_rates, 0)).rows
    found = {(row.metric, row.measure): row.value for row in rows}
    errors = 100 * (means - 0.5).abs()
    assert found["half", "mae"] == pytest.approx(errors.mean())
    assert found["half", "largest_error"] == pytest.approx(errors.max())
    days = [rates.said.release_date(str(name)) for name in errors.index]
    years = [day.toordinal() / 365.25 for day in days if day]
    assert found["half", "drift"] == pytest.approx(stats.linregress(years, errors).slope)
    assert found["people", "drift"] == pytest.approx(0.0, abs=1e-9)
