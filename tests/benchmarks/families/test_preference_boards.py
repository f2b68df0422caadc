"""Boards of preferences: released figures, and figures computed apart from the same files."""

from __future__ import annotations

import hashlib
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.families.controls import control_scores, run_controls
from benchmarks.families.preference import PreferenceAnswers, PreferenceBenchmark
from benchmarks.registry import BUILT_IN
from benchmarks.released.bundle import released_table
from benchmarks.schema import ScoreTable
from tests.benchmarks.families.cards import built_in, registry
from tests.kit.refusals import refused

BOARDS = ("genai_arena", "hpdv2", "hpdv3", "imagereward", "mj_bench", "mmrb2", "pickapic",
          "rapidata_alignment", "rapidata_coherence", "rapidata_preference")  # fmt: skip


board = partial(built_in, PreferenceBenchmark, PreferenceAnswers)


def percent(
    one: PreferenceBenchmark, answers: PreferenceAnswers, scores: pd.DataFrame
) -> dict[tuple[str, str], float]:
    """Rows over everything: metric and measure to the value in percent."""
    table = ScoreTable(scores.loc[list(answers.pair_ids)])
    rows = one.measure(table, answers, one.plan(answers, 0)).rows
    return {(row.metric, row.measure): 100 * row.value for row in rows if row.skill is None}


def test_the_arena_has_the_figures_of_its_judges() -> None:
    one, answers = board("genai_arena")
    scores = released_table("genai_arena/verdicts.parquet").set_index("pair_id")
    assert scores.shape == (3470, 18)
    found = percent(one, answers, scores)
    exact = {
        "gpt4o": 45.59, "gemini-1.5-pro": 44.67, "idefics2": 42.25, "minicpm-V-2.5": 37.81,
        "videollava": 37.75, "llava": 37.00, "blip2": 26.34, "random": 25.36, "kosmos2": 0.0,
        "idefics1": 0.8069,
    }  # fmt: skip
    for judge, value in exact.items():
        assert found[judge, "exact_match"] == pytest.approx(value, abs=0.005), judge
    decided = {
        "gpt4o": (55.44, 68.26), "gemini-1.5-pro": (56.20, 64.01), "idefics2": (56.13, 56.16),
        "llava": (49.16, 49.20),
    }  # fmt: skip
    for judge, (strict, half) in decided.items():
        assert found[judge, "accuracy_strict"] == pytest.approx(strict, abs=0.005), judge
        assert found[judge, "accuracy_half"] == pytest.approx(half, abs=0.005), judge
    rows = one.measure(ScoreTable(scores), answers, one.plan(answers, 0)).rows
    assert {row.metric for row in rows if row.n_missing} == {
        "kosmos2", "mantis-8b-idefics2", "mantis-8b-idefics2_8192", "otterimage", "ottervideo",
    }  # fmt: skip
    # The headline: a tie is a half, and no verdict is wrong.
    votes = pd.read_csv(BUILT_IN / "genai_arena" / "votes.csv", dtype=str, keep_default_na=False)
    for judge in map(str, scores):
        credit = [
            {"[[A>B]]": vote == "leftvote", "[[B>A]]": vote == "rightvote",
             "[[A=B=Good]]": 0.5, "[[A=B=Bad]]": 0.5, "[[A=B]]": 0.5}.get(verdict, 0.0)
            for vote, verdict in zip(votes["human_vote"], votes[judge], strict=True)
            if vote in ("leftvote", "rightvote")
        ]  # fmt: skip
        assert found[judge, "accuracy"] == pytest.approx(100 * np.mean(credit)), judge


def test_imagereward_against_a_plain_loop() -> None:
    one, answers = board("imagereward")
    rankings = json.loads((BUILT_IN / "imagereward" / "test.json").read_text())
    right, total, of_prompt, kept = 0, 0, [], []
    sha = {
        name: int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
        for ranking in rankings
        for name in ranking["generations"]
    }
    for ranking in rankings:
        named = list(zip(ranking["generations"], ranking["ranking"], strict=True))
        pairs = list(itertools.combinations(named, 2))
        hits = [(r < q) == (sha[a] > sha[b]) for (a, r), (b, q) in pairs if r != q]
        right, total = right + sum(hits), total + len(hits)
        of_prompt += [np.mean(hits)] if hits else []
        kept.append(1 - (len(hits) - sum(hits)) / len(pairs))
    found = percent(one, answers, pd.DataFrame({"sha": pd.Series(sha, dtype=float)}))
    assert (right, total) == (3217, 6399)
    assert found["sha", "accuracy"] == pytest.approx(100 * right / total)
    assert found["sha", "accuracy_macro"] == pytest.approx(100 * np.mean(of_prompt))
    assert found["sha", "inversions"] == pytest.approx(100 * np.mean(kept))
    assert [round(one, 2) for one in (100 * float(np.mean(of_prompt)), 100 * float(np.mean(kept)))] == [
        51.42, 56.29,
    ]  # fmt: skip


@pytest.mark.paper
@pytest.mark.parametrize("name", ["genai_arena", "imagereward", "mmrb2"])
def test_controls_reach_the_figures_of_the_card(assay_data: Path, name: str) -> None:
    one, answers = board(name, assay_data)
    found = {
        (row.metric, row.measure): row.value
        for row in run_controls(one, answers, None, 0).measured.rows
        if row.skill is None
    }
    for label, golden in one.card.golden.items():
        value = found[golden.metric, golden.measure]
        assert value == pytest.approx(golden.value, abs=golden.tol), label


@pytest.mark.paper
def test_mmrb2_has_the_figures_of_its_raters_and_of_its_judge(assay_data: Path) -> None:
    one, answers = board("mmrb2", assay_data)
    people = one.facts(answers)["How far people agree"].set_index("who")
    found = sorted((round(100 * v, 2), n) for v, n in people.itertuples(index=False))
    assert found == [(91.82, 2578), (92.38, 3000), (92.97, 3000)]
    verdicts: dict[str, Any] = json.loads(
        (assay_data / "mmrb2" / "sample_task1_image.json").read_text()
    )
    pairs = answers.items.pairs
    chosen: dict[str, float] = dict.fromkeys(pairs["pair_id"], 0.0)
    side = {
        (pair.rsplit("/", 1)[0], int(place)): pair
        for pair, place in zip(pairs["pair_id"], pairs["position"], strict=True)
    }
    for pair, orders in verdicts.items():
        for order, names in (("forward", "AB"), ("reverse", "BA")):
            chosen[side[pair, names.index(orders[order][0]["judgement"])]] += 0.5
    first_shown = pd.Series(0.5, list(chosen))
    scores = pd.DataFrame({"judge": pd.Series(chosen), "first": first_shown})
    result = percent(one, answers, scores)
    assert result["judge", "accuracy_half"] == pytest.approx(53.20)
    assert result["first", "accuracy_half"] == 50.0
    rows = one.measure(
        ScoreTable(scores.loc[list(answers.pair_ids)]), answers, one.plan(answers, 0)
    ).rows
    by_source = {
        row.skill: round(100 * row.value, 2)
        for row in rows
        if row.skill and (row.metric, row.measure) == ("judge", "accuracy_half")
    }
    assert by_source == {
        "oneigbench": 60.79, "r2ibench": 50.00, "evalmuse": 51.28, "wise": 49.55,
        "realunify_ueg": 47.31,
    }  # fmt: skip


@pytest.mark.paper
def test_knowing_the_model_tells_most_where_the_models_differ(assay_data: Path) -> None:
    one, answers = board("mmrb2", assay_data)
    identity = control_scores(one, answers).overall["model_identity"].to_numpy(np.float64)
    said, model = answers.compared, answers.items.pairs["model"].to_numpy(object)
    margin = ((identity[said.a] - identity[said.b]) * said.gold)[model[said.a] != model[said.b]]
    assert margin.size == 427
    assert 50 + 50 * np.sign(margin).mean() == pytest.approx(70.26, abs=0.005)


SUPPLIED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "hpdv2": ("hpdv2/test.json", [
        {"prompt": "p", "image_path": ["a", "b", "c"], "rank": [1.5, 1.5, 3.0]}]),
    "hpdv3": ("hpdv3/test.json", [
        {"prompt": f"p{k}", "path1": f"a{k}", "path2": f"b{k}"} for k in range(8)]),
    "mj_bench": ("mj_bench/alignment.jsonl", [
        {"caption": "p", "image0": "a", "image1": "b", "label": 0},
        {"caption": "q", "image0": "c", "image1": "d", "label": 1}]),
    "rapidata_coherence": ("rapidata/comparisons.parquet", [
        {"prompt": f"p{k}", "model1": "m", "model2": "n",
         "weighted_results_image1_coherence": 0.5 + k / 8,
         "weighted_results_image2_coherence": 0.5 - k / 8} for k in range(4)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SUPPLIED)
def test_a_better_image_with_a_higher_score_is_all_right(tmp_path: Path, name: str) -> None:
    path, rows = SUPPLIED[name]
    (tmp_path / path).parent.mkdir()
    if path.endswith("parquet"):
        pd.DataFrame(rows).to_parquet(tmp_path / path)
    else:
        lines = [json.dumps(row) for row in rows]
        text = "\n".join(lines) if path.endswith("jsonl") else f"[{', '.join(lines)}]"
        (tmp_path / path).write_text(text)
    one, answers = board(name, tmp_path)
    gold = pd.DataFrame({"gold": one.gold_of_pairs(answers)}, list(answers.pair_ids))
    found = percent(one, answers, gold)
    assert found["gold", one.card.headline.measure] == 100.0


def test_pick_a_pic_finds_its_threshold_on_the_validation_part(tmp_path: Path) -> None:
    (tmp_path / "pickapic").mkdir()
    labels = [1.0, 0.0, 0.5, 0.5]
    for split in ("validation_unique", "test_unique"):
        pd.DataFrame(
            {
                "caption": [f"{split} {k}" for k in range(4)],
                "image_0_uid": [f"{split} a{k}" for k in range(4)],
                "image_1_uid": [f"{split} b{k}" for k in range(4)],
                "label_0": labels,
                "label_1": [1 - one for one in labels],
            }
        ).to_parquet(tmp_path / "pickapic" / f"{split}.parquet")
    one, answers = board("pickapic", tmp_path)
    assert len(answers.compared.gold) == 8
    margins = {"0": 3.0, "1": -3.0, "2": 0.3, "3": -0.3}
    scores = {
        pair: margins[image[-1]] if image.split(" ")[1][0] == "a" else 0.0
        for pair, image in zip(answers.pair_ids, answers.items.pairs["image"], strict=True)
    }
    found = percent(one, answers, pd.DataFrame({"m": pd.Series(scores)}))
    assert found["m", "accuracy"] == 100.0  # 0.3 apart is 0.15 of the softmax: a tie from 0.2 on.
    assert found["m", "accuracy_strict"] == 100.0


@pytest.mark.parametrize("name", ["genai_arena", "mmrb2"])
def test_without_prompts_there_is_nothing_to_generate(assay_data: Path, name: str) -> None:
    with refused("no_prompts"):
        registry()[name].prompts(assay_data)


def test_boards_of_preferences_are_of_their_kinds() -> None:
    kinds = {name: registry()[name].card.model_dump()["kind"] for name in BOARDS}
    assert {name for name, kind in kinds.items() if kind == "alignment"} == {
        "mj_bench", "rapidata_alignment",
    }  # fmt: skip
    assert [name for name, kind in kinds.items() if kind == "quality"] == ["rapidata_coherence"]
