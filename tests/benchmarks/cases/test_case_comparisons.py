"""Comparing pairs within cases: the rules, a slow implementation of them, and the file."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cases import (
    SCHEMA,
    Comparisons,
    cases_path,
    image_cases,
    read_cases,
    write_cases,
)
from benchmarks.errors import PlatformError
from tests.benchmarks.checks import agreement

NAN = float("nan")
Pair = tuple[str, str, str, float]


def frame(*pairs: Pair) -> pd.DataFrame:
    """Pairs of (case, image, prompt, expected); the pair id is their number."""
    rows = [
        (case, case, "", "", str(k), image, prompt, expected, "")
        for k, (case, image, prompt, expected) in enumerate(pairs)
    ]
    return pd.DataFrame(rows, columns=SCHEMA.names).astype({"expected": float})


def scores(*values: float) -> pd.Series:
    return pd.Series(values, index=[str(k) for k in range(len(values))])


def slowly(cases: pd.DataFrame, given_: pd.Series) -> list[tuple[str, int, float, int]]:
    """What the documentation of `agreement` says, pair by pair."""
    found = []
    for name, case in cases.groupby("case_id", sort=False):
        right, compared = 0.0, 0
        for (_, one), (_, other) in combinations(case.iterrows(), 2):
            shared = one["image_id"] == other["image_id"] or one["prompt"] == other["prompt"]
            people = np.sign(one["expected"] - other["expected"])
            metric = np.sign(given_.get(one["pair_id"], NAN) - given_.get(other["pair_id"], NAN))
            if not shared or people == 0 or np.isnan(people) or np.isnan(metric):
                continue
            compared += 1
            right += 1.0 if metric == people else 0.5 if metric == 0 else 0.0
        missing = int(sum(np.isnan(given_.get(pair, NAN)) for pair in case["pair_id"]))
        found.append((str(name), compared, right, missing))
    return found


PAIRS = st.tuples(
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from(["i", "j", "k"]),
    st.sampled_from(["p", "q"]),
    st.sampled_from([0.0, 1.0, 2.5, NAN]),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(PAIRS, st.sampled_from([0.0, 0.5, 1.0, NAN])), max_size=14))
def test_every_case_counts_as_a_slow_loop_over_its_pairs_does(
    drawn: list[tuple[Pair, float]],
) -> None:
    cases = frame(*(pair for pair, _ in drawn))
    given_ = scores(*(score for _, score in drawn))
    found = agreement(cases, given_)
    rows = found[["case_id", "n_compared", "n_right", "n_missing"]].itertuples(index=False)
    assert [tuple(row) for row in rows] == slowly(cases, given_)
    share = found["n_right"] / found["n_compared"]
    assert np.array_equal(found["share"], share, equal_nan=True)


@pytest.mark.parametrize(
    ("pairs", "given_", "counts"),
    [  # Equal scores count a half, and missing ones are not compared.
        ([("i", "p", 3.0), ("j", "p", 2.0), ("k", "p", 1.0)], (0.5, 0.5, NAN), (1, 0.5, 1)),
        ([("i", "p", 1.0), ("j", "q", 0.0)], (1.0, 0.0), (0, 0.0, 0)),  # nothing is shared
    ],
)
def test_what_is_compared_within_a_case(
    pairs: list[tuple[str, str, float]], given_: tuple[float, ...], counts: tuple[float, ...]
) -> None:
    found = agreement(frame(*(("x", *pair) for pair in pairs)), scores(*given_)).iloc[0]
    assert (found["n_compared"], found["n_right"], found["n_missing"]) == counts
    assert np.isnan(found["share"]) == (counts[0] == 0)


def test_a_pair_may_be_in_several_cases() -> None:
    cases = frame(("x", "i", "p", 1.0), ("x", "j", "p", 0.0), ("y", "j", "p", 1.0))
    again = pd.concat([cases, cases.iloc[:1].assign(case_id="y", expected=0.0)])
    found = agreement(again, scores(0.9, 0.1, 0.1))
    assert found["n_right"].tolist() == [1.0, 0.0]


def test_forty_thousand_pairs_are_compared() -> None:
    rng = np.random.default_rng(0)
    prompts = np.repeat([f"p{k}" for k in range(2000)], 20).tolist()
    pairs = [f"i{k}" for k in range(len(prompts))]
    texts = dict(zip(prompts, prompts, strict=True))
    rated = rng.integers(1, 6, len(pairs)).astype(float)
    cases = image_cases(pairs, prompts, rated, [""] * len(pairs), texts=texts)
    comparisons = Comparisons.of(cases)
    found = comparisons.agreement(rng.random(len(pairs)))
    assert found["share"].mean() == pytest.approx(0.5, abs=0.01)


def test_a_file_of_cases_gives_back_what_was_written_and_is_the_same_each_time() -> None:
    cases = frame(("x", "i", "p", 1.0), ("x", "j", "p", NAN))
    content = write_cases(cases)
    assert content == write_cases(cases.sample(frac=1, random_state=0).sort_index())
    read = read_cases(content)
    assert read.columns.tolist() == SCHEMA.names
    assert read["expected"].isna().tolist() == [False, True]
    assert read.drop(columns="expected").to_dict("list") == cases.drop(columns="expected").to_dict(
        "list"
    )


def test_what_is_no_case_is_refused_and_each_revision_has_a_file_of_its_own() -> None:
    good = frame(("x", "i", "p", 1.0))
    other = good.drop(columns="said")
    for refuse in (
        lambda: write_cases(other),
        lambda: write_cases(good.assign(expected="much")),
        lambda: read_cases(other.to_parquet()),
    ):
        with pytest.raises(PlatformError) as caught:
            refuse()
        assert caught.value.code == "bad_cases"
    assert cases_path("ts2", "r1") == "cases/ts2/r1.parquet"
