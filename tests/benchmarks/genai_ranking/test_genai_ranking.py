"""Ranking set of GenAI-Bench: its reader, and choosing one image of nine or of three."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.genai_bench.load import SKILLS
from benchmarks.genai_ranking.load import MODELS, RankingAnswers
from benchmarks.genai_ranking.protocol import CARD, GenAiRanking, chance, choose, random_choice
from benchmarks.registry import load_registry
from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
from tests.benchmarks.cards import trial_card
from tests.benchmarks.checks import refused, row_of

Json = Any
PROMPTS = ("7", "12", "305")


def small() -> GenAiRanking:
    return GenAiRanking(trial_card(CARD, prompts=3, images=54))


def write(root: Path, change: Callable[[Json, Json], object] | None = None) -> Path:
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
    if change is not None:
        change(prompts, tags)
    folder = root / "genai_ranking"
    folder.mkdir()
    (folder / "human_rating.json").write_text(json.dumps(prompts), encoding="utf-8")
    (folder / "genai_skills.json").write_text(json.dumps(tags), encoding="utf-8")
    return root


def test_facts_and_cases_are_tables_of_the_ratings_alone(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    (table,) = small().facts(answers).values()
    assert set(table["split"]) >= set(MODELS)
    assert len(small().cases(answers, tmp_path))


def test_every_image_is_named_by_prompt_model_and_number(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    assert answers.pair_ids[:2] == ("7/DALLE_3/1", "7/DALLE_3/2")
    assert answers.pair_ids[9] == "7/SDXL_Base/1"
    assert answers.clusters == PROMPTS
    assert answers.models == MODELS
    assert answers.rows_of("SDXL_Base")[1].tolist() == list(range(27, 36))
    assert answers.labels[0] == pytest.approx((3 + 3 + 4) / 3)
    assert answers.skills["basic"] == {"7", "305"}, "prompts outside the set are passed over"
    assert small().prompts(tmp_path)["skills"].tolist()[0] == "basic"


def test_images_may_have_different_numbers_of_ratings(tmp_path: Path) -> None:
    def change(prompts: Json, tags: Json) -> None:
        prompts["12"]["models"]["DALLE_3"]["4"] = [2]

    answers = small().answers(write(tmp_path, change))
    assert answers.labels[answers.pair_ids.index("12/DALLE_3/4")] == 2.0
    assert answers.counts()["ratings"] == 54 * 3 - 2
    assert answers.n_outside == 0


def ninth(ratings: Json) -> Callable[[Json, Json], object]:
    return lambda prompts, tags: prompts["12"]["models"]["DALLE_3"].update({"9": ratings})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p, t: p.pop("7"), "holds 2 prompts; expected 3"),
        (lambda p, t: p["12"]["models"].pop("SDXL_Base"), "models DALLE_3 under '12'"),
        (lambda p, t: p["12"]["models"]["DALLE_3"].pop("9"), "for 12/DALLE_3; expected 1 to 9"),
        (lambda p, t: p["12"]["models"].update(DALLE_3=[1]), "images [1] for 12/DALLE_3"),
        (ninth([]), "ratings '[]' for 12/DALLE_3/9"),
        (ninth(["5"]), "expected some whole"),
        (ninth([10**400]), "at '12' 'models' 'DALLE_3' '9' [0] is no finite number"),
        (ninth([10**22]), "10000000000000000000000 at '12' 'models' 'DALLE_3' '9' [0]"),
        (ninth([100]), "ratings '[100]' for 12/DALLE_3/9; expected some whole numbers"),
        (ninth([-1]), "ratings '[-1]' for 12/DALLE_3/9"),
        (lambda p, t: p.update({"0012": p["12"]}), "prompts '12' and '0012': the same number"),
        (lambda p, t: p.update({"9" * 5000: p["12"]}), "expected digits, such as 00012"),
        (lambda p, t: t.pop("negation"), "genai_skills.json has tags"),
    ],
)
def test_files_that_are_not_as_released_are_refused(
    tmp_path: Path, change: Callable[[Json, Json], object], says: str
) -> None:
    with refused("data_malformed", says):
        small().answers(write(tmp_path, change))


def test_images_come_from_two_archives(tmp_path: Path) -> None:
    write(tmp_path)
    assert not small().has_questions(tmp_path)
    for model in MODELS:
        with zipfile.ZipFile(tmp_path / "genai_ranking" / f"{model}.zip", "w") as archive:
            for key in PROMPTS:
                for k in range(1, 10):
                    name = f"{model}/{int(key):05d}_{k:02d}.jpeg"
                    archive.writestr(name, name)
    assert small().has_questions(tmp_path)
    questions = small().questions(tmp_path)
    assert tuple(pair.pair_id for pair in questions.pairs) == small().answers(tmp_path).pair_ids
    assert questions.images["12/SDXL_Base/3"]() == b"SDXL_Base/00012_03.jpeg"
    assert questions.texts["12"] == "prompt 12"


def test_without_files_the_error_names_them(tmp_path: Path) -> None:
    with refused("data_missing", "genai_ranking/human_rating.json"):
        small().answers(tmp_path)


CELLS = st.one_of(st.integers(0, 3).map(float), st.just(math.nan))


@given(
    st.lists(st.tuples(CELLS, st.integers(1, 5).map(float)), min_size=9, max_size=9),
    st.sampled_from([3, 9]),
)
def test_a_choice_is_one_of_the_best_scored_images(
    images: list[tuple[float, float]], size: int
) -> None:
    scores, labels = np.array(images).T
    expected: dict[str, list[float]] = {"paper": [], "assay": []}
    ratings: dict[str, list[float]] = {"paper": [], "assay": []}
    for start in range(0, 9, size):
        group = [k for k in range(start, start + size) if not math.isnan(scores[k])]
        if not group:
            continue
        top = [k for k in group if scores[k] == max(scores[group])]
        best = labels[start : start + size].max()
        for variant, chosen in (("paper", top[:1]), ("assay", top)):
            expected[variant].append(float(np.mean([labels[k] == best for k in chosen])))
            ratings[variant].append(float(np.mean(labels[chosen])))
    for variant in ("paper", "assay"):
        found = choose(scores[None], labels[None], size, variant)
        assert found.groups[0] == len(expected[variant])
        assert found.agreed[0] == pytest.approx(sum(expected[variant]))
        assert found.rating[0] == pytest.approx(sum(ratings[variant]))


def test_a_random_choice_is_right_as_often_as_images_are_best() -> None:
    labels = np.array([[1.0, 2, 3, 3, 2, 1, 1, 1, 1]])
    assert random_choice(labels, 9)["top1_agreement"] == pytest.approx(2 / 9)
    by_three = random_choice(labels, 3)
    assert by_three["top1_agreement"] == pytest.approx((1 + 1 + 3) / 9)
    assert by_three["best_rating"] == pytest.approx(7 / 3)
    assert by_three["rating"] == pytest.approx(labels.mean())


DALLE = {"split": "DALLE_3", "facet": "best_of_9"}


def evaluate(answers: RankingAnswers, scores: Any) -> Measured:
    table = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    return small().evaluate(table, answers, n_resamples=30)


def test_a_perfect_metric_always_chooses_one_of_the_best(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    rows = evaluate(answers, answers.labels)
    best = chance(answers)
    for split in MODELS:
        for facet, groups in (("best_of_9", 3), ("best_of_3", 9)):
            for variant in ("paper", "assay"):
                where = {"split": split, "facet": facet, "variant": variant}
                row = row_of(rows, measure="top1_agreement", **where)
                assert (row.value, row.n_items, row.n_clusters) == (1.0, groups, 3)
                assert (row.ci_low, row.ci_high) == (1.0, 1.0)
                row = row_of(rows, measure="rating_of_best", **where)
                assert row.value == pytest.approx(best[split, facet]["best_rating"])
    tagged = row_of(rows, measure="top1_agreement", skill="basic", **DALLE)
    assert (tagged.n_items, tagged.n_clusters) == (2, 2)


def test_equal_scores_take_the_first_image_or_the_average(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    rows = evaluate(answers, np.zeros(54))
    labels = answers.labels[answers.rows_of("DALLE_3")]
    paper = row_of(rows, measure="rating_of_best", **DALLE)
    assert paper.value == pytest.approx(labels[:, 0].mean())
    even = row_of(
        rows, measure="top1_agreement", split="DALLE_3", facet="best_of_3", variant="assay"
    )
    assert even.value == pytest.approx(chance(answers)["DALLE_3", "best_of_3"]["top1_agreement"])


def test_each_model_has_a_pool_of_its_own(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    scores = np.random.default_rng(0).normal(size=54)
    row = row_of(
        evaluate(answers, scores), facet=None, measure="pairwise_accuracy", split="SDXL_Base"
    )
    images = answers.rows_of("SDXL_Base").ravel()
    assert row.value == tie_calibrated(scores[images], answers.labels[images]).accuracy
    assert row.n_items == 27


def test_images_without_a_score_are_never_chosen(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    scores = np.array(answers.labels)
    scores[answers.rows_of("DALLE_3")[0]] = math.nan
    rows = evaluate(answers, scores)
    row = row_of(rows, measure="top1_agreement", **DALLE)
    assert (row.value, row.n_items, row.n_missing) == (1.0, 2, 9)
    assert "never chosen: 9" in row.note
    scores[:] = math.nan
    for row in evaluate(answers, scores).rows:
        assert math.isnan(row.value)
        assert row.note


def test_the_board_is_ordered_by_the_best_of_nine() -> None:
    card = load_registry()["genai_ranking"].card
    headline = card.headline
    assert (headline.measure, headline.split) == ("top1_agreement", "DALLE_3")
    assert (headline.variant, headline.facet) == ("paper", "best_of_9")
