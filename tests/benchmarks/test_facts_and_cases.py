"""Facts and cases of a benchmark: tables of human answers alone, made without scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable

REGISTRY = load_registry()
SAME_STRUCTURE = {
    "croc_hum": "demo_croc",
    "evalmuse": "demo_evalmuse",
    "gecko": "demo_gecko",
    "evalmuse_ntire": "demo_evalmuse",
    "genai_1600": "genai_1600",
}
"""Benchmarks, and where answers of their structure ship with Assay."""


def answers_of(name: str) -> Any:
    return REGISTRY[SAME_STRUCTURE[name]].answers(None)


@pytest.mark.parametrize("name", SAME_STRUCTURE)
def test_facts_and_cases_are_tables_of_the_answers(name: str) -> None:
    benchmark, answers = REGISTRY[name], answers_of(name)
    facts = benchmark.facts(answers)
    assert all(len(table) for table in facts.values())
    assert bool(facts) is (name != "croc_hum")
    if name in {"croc_hum", "evalmuse", "gecko"}:
        cases = benchmark.cases(answers, None)
        assert cases is not None
        assert len(cases) > 10


@pytest.mark.parametrize(
    ("name", "demo"),
    [("evalmuse", "demo_evalmuse"), ("evalmuse_ntire", "demo_evalmuse"), ("gecko", "demo_gecko")],
)
def test_a_benchmark_measures_whatever_answers_have_its_structure(name: str, demo: str) -> None:
    benchmark, answers = REGISTRY[name], REGISTRY[demo].answers(None)
    values = np.random.default_rng(3).normal(size=len(answers.pair_ids))
    overall = pd.DataFrame({"m": values}, index=pd.Index(answers.pair_ids, name="pair_id"))
    rows = benchmark.measure(ScoreTable(overall), answers, benchmark.plan(answers, 2)).rows
    assert {row.benchmark for row in rows} == {name}
    assert {row.metric for row in rows} == {"m"}
