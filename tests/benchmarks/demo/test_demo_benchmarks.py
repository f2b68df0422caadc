"""In every protocol the truth scores high and a guess does not; pages say what is simulated."""

from __future__ import annotations

import math

import pytest

from benchmarks.demo.fingerprint import pinned_revision
from benchmarks.registry import load_registry
from benchmarks.rows import Measured, Row
from benchmarks.schema import Benchmark, Questions
from tests.benchmarks.demo.demo_oracle import scores_of

NAMES = ("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")


@pytest.fixture(scope="module")
def benchmarks() -> dict[str, Benchmark]:
    return dict(load_registry())


@pytest.fixture(scope="module")
def measured(benchmarks: dict[str, Benchmark]) -> dict[str, Measured]:
    found = {}
    for name in NAMES:
        answers = benchmarks[name].answers(None)
        found[name] = benchmarks[name].evaluate(scores_of(name, answers), answers, 200)
    return found


def headline(benchmark: Benchmark, measured: Measured, metric: str) -> Row:
    (row,) = (
        row
        for row in measured.rows
        if row.metric == metric and row.skill is None and benchmark.card.headline.matches(row)
    )
    return row


@pytest.mark.parametrize(
    ("name", "least"),
    [("demo_croc", 1.0), ("demo_ts2", 0.999), ("demo_evalmuse", 0.9), ("demo_gecko", 0.8)],
)
def test_who_knows_the_errors_is_at_the_top(
    name: str, least: float, benchmarks: dict[str, Benchmark], measured: dict[str, Measured]
) -> None:
    assert headline(benchmarks[name], measured[name], "oracle").value >= least


@pytest.mark.parametrize("name", NAMES)
def test_who_guesses_is_at_chance(
    name: str, benchmarks: dict[str, Benchmark], measured: dict[str, Measured]
) -> None:
    row = headline(benchmarks[name], measured[name], "guess")
    assert abs(row.value) < 0.2
    assert row.ci_low < 0.05
    assert row.ci_high > -0.05


@pytest.mark.parametrize(
    ("name", "value"),
    [("demo_croc", -1.0), ("demo_ts2", 0.0), ("demo_evalmuse", math.nan), ("demo_gecko", math.nan)],
)  # fmt: skip
def test_who_always_says_the_same_earns_nothing(
    name: str, value: float, benchmarks: dict[str, Benchmark], measured: dict[str, Measured]
) -> None:
    found = headline(benchmarks[name], measured[name], "constant").value
    assert found == pytest.approx(value, nan_ok=True)  # in CROC a tie is a failure


def test_the_oracle_knows_every_element(measured: dict[str, Measured]) -> None:
    rows = [
        row
        for row in measured["demo_evalmuse"].rows
        if row.metric == "oracle" and row.measure == "element_accuracy"
    ]
    assert len(rows) > 7
    assert min(row.value for row in rows) > 0.95


@pytest.mark.parametrize("name", NAMES)
def test_the_skills_of_the_card_are_those_of_the_rows(
    name: str, benchmarks: dict[str, Benchmark], measured: dict[str, Measured]
) -> None:
    skills = {row.skill for row in measured[name].rows if row.skill is not None}
    assert skills == set(benchmarks[name].card.skills)
    facets = {row.facet for row in measured[name].rows if row.facet is not None}
    assert facets <= set(benchmarks[name].card.facets)


@pytest.mark.parametrize("name", NAMES)
def test_the_card_says_in_words_that_the_data_are_simulated(
    name: str, benchmarks: dict[str, Benchmark]
) -> None:
    card = benchmarks[name].card
    assert card.simulated
    assert card.revision == pinned_revision()
    assert card.title.startswith("Demo · ")
    assert "imulated" in card.summary
    assert "drawn by a program" in card.description
    assert "nobody" in card.description or "no person" in card.description


@pytest.mark.parametrize("name", NAMES)
def test_questions_need_no_data_folder(name: str, benchmarks: dict[str, Benchmark]) -> None:
    questions = benchmarks[name].questions(None)
    assert isinstance(questions, Questions)
    assert len(questions.pairs) == len(benchmarks[name].answers(None).pair_ids)
