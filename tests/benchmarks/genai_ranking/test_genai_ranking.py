"""Ranking set of GenAI-Bench: its reader, and choosing one image of nine or of three."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.genai_bench.load import SKILLS
from benchmarks.genai_ranking.load import MODELS
from benchmarks.genai_ranking.load import RankingAnswers as Answers
from benchmarks.genai_ranking.protocol import CARD, GenAiRanking, chance, choose, random_choice
from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
from tests.benchmarks.checks import refused, row_of, trial_card

Json = Any
Change = Callable[[Json, Json], object]
PROMPTS = ("7", "12", "305")


def small() -> GenAiRanking:
    return GenAiRanking(trial_card(CARD, prompts=3, images=54))


def write(root: Path, change: Change = lambda prompts, tags: None) -> Path:
    prompts = {
        key: {
            "id": key,
            "prompt": f"prompt {key}",
            "models": {
                model: {str(k): [1 + (k * (p + 2) + m) % 5, 3, 4] for k in range(1, 10)}
                for m, model in enumerate(MODELS)
            },
        }
        for p, key in enumerate(PROMPTS)
    }
    tags: Json = {skill: [12] for skill in SKILLS} | {"basic": [7, 305, 1500], "more": []}
    change(prompts, tags)
    folder = root / "genai_ranking"
    folder.mkdir()
    (folder / "human_rating.json").write_text(json.dumps(prompts), encoding="utf-8")
    (folder / "genai_skills.json").write_text(json.dumps(tags), encoding="utf-8")
    return root


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return small().answers(write(tmp_path))


def test_images_are_named_by_prompt_model_and_number(answers: Answers, tmp_path: Path) -> None:
    assert answers.pair_ids[:2] == ("7/DALLE_3/1", "7/DALLE_3/2")
    assert answers.pair_ids[9] == "7/SDXL_Base/1"
    assert (answers.clusters, answers.models) == (PROMPTS, MODELS)
    assert answers.rows_of("SDXL_Base")[1].tolist() == list(range(27, 36))
    assert answers.labels[0] == pytest.approx((3 + 3 + 4) / 3)
    assert answers.skills["basic"] == {"7", "305"}, "prompts outside the set are passed over"
    assert small().prompts(tmp_path)["skills"].tolist()[0] == "basic"
    (table,) = small().facts(answers).values()
    assert set(table["split"]) >= set(MODELS)


def ninth(ratings: Json, image: str = "9") -> Change:
    return lambda prompts, tags: prompts["12"]["models"]["DALLE_3"].update({image: ratings})


def test_images_may_have_different_numbers_of_ratings(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path, ninth([2])))
    assert answers.labels[answers.pair_ids.index("12/DALLE_3/9")] == 2.0
    assert (answers.counts()["ratings"], answers.n_outside) == (54 * 3 - 2, 0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p, t: p.pop("7"), ["expected 3"]),
        (lambda p, t: p["12"]["models"].pop("SDXL_Base"), ["DALLE_3 under '12'"]),
        (lambda p, t: p["12"]["models"]["DALLE_3"].pop("9"), ["12/DALLE_3;", "1 to 9"]),
        (lambda p, t: p["12"]["models"].update(DALLE_3=[1]), ["[1] for 12/DALLE_3"]),
        (ninth([]), ["'[]' for 12/DALLE_3/9"]),
        (ninth(["5"]), ["whole"]),
        (ninth([10**400]), ["'12' 'models' 'DALLE_3' '9' [0]", "finite"]),
        (ninth([10**22]), ["1" + "0" * 22, "'12' 'models' 'DALLE_3' '9' [0]"]),
        (ninth([100]), ["'[100]' for 12/DALLE_3/9"]),
        (ninth([-1]), ["'[-1]' for 12/DALLE_3/9"]),
        (lambda p, t: p.update({"0012": p["12"]}), ["'12' and '0012'"]),
        (lambda p, t: p.update({"9" * 5000: p["12"]}), ["digits"]),
        (lambda p, t: t.pop("negation"), ["genai_skills.json"]),
    ],
)
def test_files_of_another_form_are_refused(tmp_path: Path, change: Change, says: list[str]) -> None:
    with refused("data_malformed", *says):
        small().answers(write(tmp_path, change))


def test_images_come_from_two_archives(answers: Answers, tmp_path: Path) -> None:
    assert not small().has_questions(tmp_path)
    for model in MODELS:
        with zipfile.ZipFile(tmp_path / "genai_ranking" / f"{model}.zip", "w") as archive:
            for key, k in product(PROMPTS, range(1, 10)):
                name = f"{model}/{int(key):05d}_{k:02d}.jpeg"
                archive.writestr(name, name)
    assert small().has_questions(tmp_path)
    questions = small().questions(tmp_path)
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    assert questions.images["12/SDXL_Base/3"]() == b"SDXL_Base/00012_03.jpeg"
    assert questions.texts["12"] == "prompt 12"


CELLS = st.one_of(st.integers(0, 3).map(float), st.just(math.nan))


@given(
    st.lists(st.tuples(CELLS, st.integers(1, 5).map(float)), min_size=9, max_size=9),
    st.sampled_from([3, 9]),
)
def test_a_choice_is_one_of_the_best_scored(images: list[Any], size: int) -> None:
    scores, labels = np.array(images).T
    for variant in ("paper", "assay"):  # the first of the best, or their mean
        agreed, ratings = [], []
        for start in range(0, 9, size):
            group = [k for k in range(start, start + size) if not math.isnan(scores[k])]
            top = [k for k in group if scores[k] == max(scores[group])]
            chosen = labels[top[:1] if variant == "paper" else top]
            if group:
                agreed.append(np.mean(chosen == labels[start : start + size].max()))
                ratings.append(np.mean(chosen))
        found = choose(scores[None], labels[None], size, variant)
        assert found.groups[0] == len(agreed)
        assert (found.agreed[0], found.rating[0]) == pytest.approx((sum(agreed), sum(ratings)))


def test_a_random_choice_is_right_as_often_as_images_are_best() -> None:
    labels = np.array([[1.0, 2, 3, 3, 2, 1, 1, 1, 1]])
    assert random_choice(labels, 9)["top1_agreement"] == pytest.approx(2 / 9)
    expected = {"top1_agreement": (1 + 1 + 3) / 9, "best_rating": 7 / 3, "rating": labels.mean()}
    assert random_choice(labels, 3) == pytest.approx(expected)


DALLE = {"split": "DALLE_3", "facet": "best_of_9"}


def evaluate(answers: Answers, scores: Any) -> Measured:
    table = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    return small().evaluate(table, answers, n_resamples=30)


def test_a_perfect_metric_always_chooses_one_of_the_best(answers: Answers) -> None:
    rows, best = evaluate(answers, answers.labels), chance(answers)
    for split, facet, variant in product(MODELS, ("best_of_9", "best_of_3"), ("paper", "assay")):
        where = {"split": split, "facet": facet, "variant": variant}
        row = row_of(rows, measure="top1_agreement", **where)
        assert (row.value, row.ci_low, row.ci_high) == (1.0, 1.0, 1.0)
        assert (row.n_items, row.n_clusters) == (3 if facet == "best_of_9" else 9, 3)
        row = row_of(rows, measure="rating_of_best", **where)
        assert row.value == pytest.approx(best[split, facet]["best_rating"])
    tagged = row_of(rows, measure="top1_agreement", skill="basic", **DALLE)
    assert (tagged.n_items, tagged.n_clusters) == (2, 2)


def test_equal_scores_take_the_first_image_or_the_average(answers: Answers) -> None:
    rows = evaluate(answers, np.zeros(54))
    paper = row_of(rows, measure="rating_of_best", **DALLE)
    assert paper.value == pytest.approx(answers.labels[answers.rows_of("DALLE_3")][:, 0].mean())
    of_three = DALLE | {"facet": "best_of_3"}
    even = row_of(rows, measure="top1_agreement", variant="assay", **of_three)
    assert even.value == pytest.approx(chance(answers)["DALLE_3", "best_of_3"]["top1_agreement"])


def test_each_model_has_a_pool_of_its_own(answers: Answers) -> None:
    scores = np.random.default_rng(0).normal(size=54)
    where = {"facet": None, "measure": "pairwise_accuracy", "split": "SDXL_Base"}
    row = row_of(evaluate(answers, scores), **where)
    images = answers.rows_of("SDXL_Base").ravel()
    assert row.value == tie_calibrated(scores[images], answers.labels[images]).accuracy
    assert row.n_items == 27


def test_images_without_a_score_are_never_chosen(answers: Answers) -> None:
    scores = np.array(answers.labels)
    scores[answers.rows_of("DALLE_3")[0]] = math.nan
    row = row_of(evaluate(answers, scores), measure="top1_agreement", **DALLE)
    assert (row.value, row.n_items, row.n_missing) == (1.0, 2, 9)
    assert "chosen: 9" in row.note
    for row in evaluate(answers, np.full(54, math.nan)).rows:
        assert math.isnan(row.value)
        assert row.note
