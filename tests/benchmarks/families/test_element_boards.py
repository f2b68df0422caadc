"""Boards of elements: released labels, and figures computed apart from the same files."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.families.element import ElementAnswers, ElementBenchmark
from benchmarks.families.rating import RatingAnswers, RatingBenchmark
from benchmarks.registry import BUILT_IN
from benchmarks.schema import ScoreTable
from tests.benchmarks.families.cards import built_in, registry
from tools import make_geneval

board = partial(built_in, ElementBenchmark, ElementAnswers)


def test_geneval_needs_no_data_and_says_that_the_labels_of_its_successor_were_not_released() -> (
    None
):
    one, answers = board("geneval_elements")
    assert one.labels(answers) == {"yes": 2022, "no": 774}
    assert "GenEval 2 were never released" in one.card.description
    rows = pd.read_csv(BUILT_IN / "geneval" / "elements.csv")
    labels = rows["labels"].map(json.loads)
    there = labels.map(np.mean) >= 0.5
    others = [
        ((sum(votes) - one) / (len(votes) - 1) >= 0.5) == bool(one)
        for votes in labels
        for one in votes
    ]
    ceiling = one.facts(answers)["How far people agree"].set_index("measure")["one rater"]
    assert ceiling["accuracy"] == pytest.approx(np.mean(others))
    assert int(there.sum()) == 2022
    asked = rows.set_index(["image", "element"])["question"]
    assert asked["clip/220_2", "count-0"] == "Are there exactly four donuts?"
    position = asked["clip/417_0", "position-0"]
    assert position == "Is the bicycle above the parking meter?"


@pytest.mark.paper
@pytest.mark.slow
def test_the_labels_of_geneval_are_those_of_its_raters(assay_data: Path) -> None:
    for name, content in make_geneval.tables(assay_data).items():
        assert (BUILT_IN / "geneval" / name).read_text("utf-8") == content
    raw = pd.concat(
        pd.read_csv(assay_data / "geneval" / f"annotations_{model}.csv", dtype=str,
                    keep_default_na=False).assign(model=model)
        for model in make_geneval.MODELS
    )  # fmt: skip
    rows = pd.read_csv(BUILT_IN / "geneval" / "elements.csv").set_index(["image", "element"])
    for (model, index), answers in raw.groupby(["model", "Input.index"]):
        if len(answers) != 5:
            assert (f"{model}/{index}", "object-0") not in rows.index
            continue
        labels = json.loads(str(rows.loc[(f"{model}/{index}", "object-0"), "labels"]))
        assert labels == [int(count != "0") for count in answers["Answer.task-count-0"]]


@pytest.mark.paper
@pytest.mark.slow
def test_evalmi_against_a_plain_computation(assay_data: Path) -> None:
    one, answers = board("evalmi_elements", assay_data)
    table = pd.read_excel(assay_data / "evalmi" / "AIGI2025_MOS_yn.xlsx", engine="calamine")
    table = table.set_index("ImageName").loc[list(answers.pair_ids)]
    yes = table["Y/N"].to_numpy(bool)
    assert one.labels(answers) == {"yes": 28931, "no": 21469}
    assert stats.spearmanr(table["MOS2"], yes).statistic == pytest.approx(0.851358, abs=5e-7)
    scores = ScoreTable(table[["MOS2"]].astype(float))
    rows = one.measure(scores, answers, one.plan(answers, 0)).rows
    found = {row.measure: row.value for row in rows if row.skill is None}
    ranks = stats.rankdata(table["MOS2"])
    u = ranks[yes].sum() - yes.sum() * (yes.sum() + 1) / 2
    assert found["auroc"] == pytest.approx(u / (yes.sum() * (~yes).sum()))
    best = max(((table["MOS2"] >= limit) == yes).mean() for limit in np.arange(45, 56, 0.05))
    assert best - 0.002 < found["accuracy"] <= best + 1e-9
    skills = {row.skill for row in rows if row.skill}
    assert skills == set(one.card.skills)


def test_prompts_of_evalmi_are_numbered_as_its_images() -> None:
    prompts = pd.read_csv(BUILT_IN / "evalmi" / "prompts.csv", dtype=str)
    assert prompts["number"].tolist() == [f"{k:03d}" for k in range(1, 2101)]
    assert prompts["prompt"].nunique() == 2090
    named = {skill for cell in prompts["skills"] for skill in json.loads(cell)}
    assert (
        named
        == set(registry()["evalmi_elements"].card.skills)
        == set(registry()["evalmi"].card.skills)
    )


def test_the_fit_of_geneval_has_its_released_means_and_its_one_rater() -> None:
    one = registry()["geneval_fit"]
    assert isinstance(one, RatingBenchmark)
    answers = one.answers(None)
    assert isinstance(answers, RatingAnswers)
    means = pd.Series(answers.means["fit"]).groupby(answers.items.pairs["model"].to_numpy()).mean()
    assert means.round(4).to_dict() == {"clip": 3.1035, "if-xl": 3.5451, "sdv2": 3.3440}
    ceiling = one.ceiling(answers)
    assert ceiling is not None
    assert ceiling.value == pytest.approx(0.5285, abs=5e-5)


@pytest.mark.paper
@pytest.mark.slow
def test_perception_follows_correspondence_on_evalmi_as_released(assay_data: Path) -> None:
    one = registry()["evalmi"]
    answers = one.answers(assay_data)
    assert isinstance(answers, RatingAnswers)
    assert answers.means["correspondence"].mean() == pytest.approx(50.199, abs=5e-4)
    perception = pd.DataFrame({"mos1": answers.means["perception"]}, list(answers.pair_ids))
    rows = one.measure(ScoreTable(perception), answers, one.plan(answers, 0)).rows
    found = {r.measure: r.value for r in rows if r.facet == "correspondence" and r.skill is None}
    assert found == pytest.approx(
        {"srcc": 0.616659, "pearson": 0.591849, "krcc": 0.452303}, abs=5e-7
    )


def test_richhf_is_read_from_the_lines_that_its_document_asks_for(tmp_path: Path) -> None:
    """The scores are means that a metric follows; each word of a prompt is a part with a label."""
    rng = np.random.default_rng(3)
    features = ("misalignment_score", "artifact_score", "aesthetics_score", "overall_score")
    lines: list[dict[str, Any]] = []
    for k in range(955):
        words = [{"word": word, "shown": int(rng.random() < 0.7)} for word in ("a", "cat", str(k))]
        given = dict(zip(features, rng.random(4).round(3).tolist(), strict=True))
        prompt = " ".join(str(word["word"]) for word in words)
        lines.append({"filename": f"{k}.png", "prompt": prompt, "words": words, **given})
    (tmp_path / "richhf").mkdir()
    (tmp_path / "richhf" / "test.jsonl").write_text("\n".join(map(json.dumps, lines)))
    one = registry()["richhf"]
    assert isinstance(one, RatingBenchmark)
    rated = one.answers(tmp_path)
    assert isinstance(rated, RatingAnswers)
    table = pd.DataFrame(lines)
    assert rated.means["alignment"].tolist() == table["misalignment_score"].tolist()
    assert rated.means["artifacts"].tolist() == table["artifact_score"].tolist()
    scores = ScoreTable(table.set_index("filename")[["overall_score"]])
    rows = one.measure(scores, rated, one.plan(rated, 0)).rows
    found = {(row.facet, row.measure): row.value for row in rows}
    assert found["overall", "srcc"] == pytest.approx(1.0)
    expected = stats.spearmanr(table["overall_score"], table["misalignment_score"]).statistic
    assert found["alignment", "srcc"] == pytest.approx(expected)
    parts, labelled = board("richhf_words", tmp_path)
    shown = [word["shown"] for line in lines for word in line["words"]]
    assert parts.labels(labelled) == {"yes": sum(shown), "no": len(shown) - sum(shown)}
    assert labelled.labels.keys["text"].tolist()[:3] == ["a", "cat", "0"]
