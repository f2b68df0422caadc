"""Choices among rated images: ties, missing scores, splits, against a plain loop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.families.best_of import BestOfBenchmark, RatedGroups
from benchmarks.families.controls import run_controls
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from tests.benchmarks.families.cards import answers_as, board_of_rows
from tests.kit.refusals import refused

NAN = math.nan
N_PROMPTS, SIZE = 6, 4
RATINGS = np.random.default_rng(4).integers(1, 6, (N_PROMPTS * SIZE, 2))


def benchmark(
    folder: Path, group: Mapping[str, Any], ratings: Any = RATINGS, **more: Any
) -> BestOfBenchmark:
    """Four images of each of six prompts; prompts are of two splits and two skills by turns."""
    columns: dict[str, Any] = {key: key for key in ("id", "p", "s", "k")}
    items = {"pair": "id", "prompt": "p", "text": "p", "image": "id", "skills": "k"}
    keys = {
        "family": "group",
        "gold": {"mean": {"ratings": "ratings", "scale": [1, 5], "mean": None}},
        "group": {"rule": "best_of", "gold": "mean", **group},
        **more,
        "headline": {"measure": "top1_agreement", "facet": "best_of_4"} | more.get("headline", {}),
        "items": items | more.get("items", {}),
    }
    rows = [
        {"id": f"i{at}", "p": f"p{at // SIZE}", "s": "vw"[at // SIZE % 2],
         "k": "ab"[at // SIZE % 3 % 2], "ratings": np.array(one).tolist()}
        for at, one in enumerate(ratings)
    ]  # fmt: skip
    columns |= {"ratings": {"from": "ratings", "type": "list_float"}}
    return board_of_rows(folder, BestOfBenchmark, rows, columns, keys)


def test_every_row_is_of_images_of_one_prompt(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"size": [SIZE]})
    assert one.compares_images
    assert all(one.within_text(row) for row in measured(one, range(6 * SIZE))[1].rows)


def measured(
    one: BestOfBenchmark, scores: Any, n_resamples: int = 20
) -> tuple[RatedGroups, Measured]:
    answers = answers_as(RatedGroups, one)
    table = ScoreTable(pd.DataFrame({"m": np.array(scores, float)}, list(answers.pair_ids)))
    return answers, one.measure(table, answers, one.plan(answers, n_resamples))


def row_of(found: Measured, **fields: Any) -> Row:
    wanted = {"skill": None, **fields}
    (row,) = (
        row for row in found.rows if all(getattr(row, key) == one for key, one in wanted.items())
    )
    return row


def plain(scores: Any, labels: Any, ties: str, missing: str) -> tuple[float, float, float]:
    """Agreement, rating and weight of one group."""
    known = [at for at, one in enumerate(scores) if not math.isnan(one)]
    if not known:
        return (0.0, 0.0, 0.0) if missing == "drop" else (0.0, min(labels), 1.0)
    top = max(scores[at] for at in known)
    chosen = [at for at in known if scores[at] == top]
    chosen = chosen[:1] if ties == "first" else chosen
    agreed = float(np.mean([labels[at] == max(labels) for at in chosen]))
    return agreed, float(np.mean([labels[at] for at in chosen])), 1.0


@pytest.mark.parametrize("missing", ["wrong", "drop"])
@pytest.mark.parametrize("size", [4, 2])
def test_measures_are_those_of_a_plain_loop(tmp_path: Path, size: int, missing: str) -> None:
    scores = np.random.default_rng(1).integers(0, 3, N_PROMPTS * SIZE).astype(float)
    scores[4:9] = NAN  # All images of a prompt, and one more.
    one = benchmark(
        tmp_path, {"size": [4, 2], "ties": ["first", "average"]},
        evaluation={"missing": missing}, headline={"variant": "paper"},
    )  # fmt: skip
    answers, found = measured(one, scores)
    labels = RATINGS.mean(axis=1)
    counts = one.plan(answers, 20).counts
    for variant, ties in (("paper", "first"), ("assay", "average")):
        each = np.array([
            plain(scores[at : at + size], labels[at : at + size], ties, missing)
            for at in range(0, len(scores), size)
        ])  # fmt: skip
        of_prompt = np.arange(len(each)) * size // SIZE
        weight = each[:, 2]
        for column, measure in enumerate(("top1_agreement", "rating_of_best")):
            named = {"facet": f"best_of_{size}", "variant": variant, "measure": measure}
            row = row_of(found, **named)
            assert row.value == pytest.approx(each[:, column].sum() / weight.sum())
            assert (row.n_items, row.n_missing) == (weight.sum(), 5)
            assert "never chosen: 5" in row.note
            drawn = counts[:, of_prompt]
            assert found.resamples[found.rows.index(row)] == pytest.approx(
                drawn @ each[:, column] / (drawn @ weight)
            )
            inside = np.isin(of_prompt % 3 % 2, 1)
            part = row_of(found, **named, skill="b")
            assert part.value == pytest.approx(each[inside, column].sum() / weight[inside].sum())


@pytest.mark.slow
@pytest.mark.parametrize("ties", ["average", "first"])
def test_chance_is_what_random_scores_reach(tmp_path: Path, ties: str) -> None:
    for measure, fact in (("top1_agreement", "top1_agreement"), ("rating_of_best", "rating")):
        one = benchmark(tmp_path / measure, {"size": [4], "ties": [ties]},
                        headline={"measure": measure})  # fmt: skip
        answers = one.answers(None)
        assert isinstance(answers, RatedGroups)
        random = np.random.default_rng(3).normal(size=(len(answers.pair_ids), 2000))
        table = pd.DataFrame(random, answers.pair_ids).rename(columns=str)
        rows = one.measure(ScoreTable(table), answers, one.plan(answers, 0)).rows
        reached = [row.value for row in rows if row.measure == measure and row.skill is None]
        spread = float(np.std(reached)) / math.sqrt(len(reached))
        assert one.chance(answers) == pytest.approx(float(np.mean(reached)), abs=4 * spread)
        facts = one.facts(answers)["What a random choice and the best one reach"]
        assert facts[fact].tolist() == [one.chance(answers)]
        best = RATINGS.mean(axis=1).reshape(-1, SIZE).max(axis=1).mean()
        assert facts["best_rating"].tolist() == pytest.approx([best])


def test_equal_scores_of_a_control_count_their_mean(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"size": [4], "ties": ["first"]})
    answers = answers_as(RatedGroups, one)
    found = run_controls(one, answers, None, 0)
    constant = found.value("constant", measure="top1_agreement", facet="best_of_4")
    assert constant == pytest.approx(one.chance(answers))
    _, own = measured(one, np.zeros(N_PROMPTS * SIZE))
    labels = RATINGS.mean(axis=1).reshape(-1, SIZE)
    first = (labels[:, 0] == labels.max(axis=1)).mean()
    assert row_of(own, measure="top1_agreement").value == pytest.approx(first)


def test_splits_are_chosen_from_apart(tmp_path: Path) -> None:
    one = benchmark(
        tmp_path, {"size": [4]}, items={"split": "s", "skills": ""},
        headline={"split": "v"}, evaluation={"pooled": False},
    )  # fmt: skip
    gold = RATINGS.mean(axis=1)
    answers, found = measured(one, gold)
    assert {(row.split, row.measure, row.value) for row in found.rows if "top" in row.measure} == {
        ("v", "top1_agreement", 1.0), ("w", "top1_agreement", 1.0),
    }  # fmt: skip
    np.testing.assert_array_equal(one.gold_of_pairs(answers), gold)
    facts = one.facts(answers)["What a random choice and the best one reach"]
    assert facts["split"].tolist() == ["v", "w"]
    assert one.chance(answers) == facts["top1_agreement"].iloc[0]
    assert one.card.measures["rating_of_best"].high == 5


def test_people_choose_too(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"size": [4]})
    answers = answers_as(RatedGroups, one)
    found = one.ceiling(answers)
    assert found is not None
    values = []
    for rater in range(2):
        choice, others = (RATINGS[:, at].reshape(-1, SIZE) for at in (rater, 1 - rater))
        values.append(
            [plain(a, b, "average", "wrong")[0] for a, b in zip(choice, others, strict=True)]
        )
    assert found.value == pytest.approx(np.mean(values))
    alone = benchmark(tmp_path / "one", {"size": [4]}, RATINGS[:, :1])
    answers, _ = measured(alone, RATINGS[:, 0])
    assert alone.ceiling(answers) is None


def test_a_board_without_choices_says_so(tmp_path: Path) -> None:
    one = benchmark(tmp_path / "1", {"size": [4]}, evaluation={"missing": "drop"})
    _, found = measured(one, [NAN] * 24)
    assert {row.note for row in found.rows} == {"no group of images has a score"}
    one = benchmark(tmp_path / "2", {"size": [4]}, evaluation={"missing": "fail"})
    _, found = measured(one, [NAN] + [1.0] * 23)
    withheld = row_of(found, measure="top1_agreement")
    assert math.isnan(withheld.value) and "withheld" in withheld.note
    unrated = [[], *RATINGS[1:]]
    one = benchmark(tmp_path / "3", {"size": [4]}, unrated)
    answers, found = measured(one, range(24))
    assert row_of(found, measure="top1_agreement").n_items == N_PROMPTS - 1
    assert "of images" not in row_of(found, measure="top1_agreement").note
    none = benchmark(tmp_path / "4", {"size": [4]}, [[]] * 24)
    answers, _ = measured(none, range(24))
    assert math.isnan(none.chance(answers))
    assert none.facts(answers)["What a random choice and the best one reach"].empty


def test_lists_that_cannot_be_divided_are_refused(tmp_path: Path) -> None:
    with refused("data_malformed", "4 images of prompt 'p0'", "multiple of 3"):
        benchmark(tmp_path, {"size": [3]}).answers(None)


def test_ratings_that_are_not_declared_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match=r"gold\.other") as caught:
        benchmark(tmp_path, {"size": [4], "gold": "other"})
    assert caught.value.code == "invalid_benchmark"
