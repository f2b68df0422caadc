"""`bench check`: what a card's data hold, controls, golden figures, warnings, power, and every problem."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from benchmarks.__main__ import main
from benchmarks.card_report import CardReport, report_of
from benchmarks.published import PublishedCell
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.families.cards import LABELS, RATED, benchmark_of, with_keys, write_card
from tests.kit.checks import Command

N = 60
VOTES: dict[str, Any] = {
    **{key: RATED[key] for key in ("title", "summary", "description", "revision", "cluster")},
    "name": "votes",
    "family": "preference",
    "kind": "preference",
    "headline": {"measure": "accuracy", "variant": "assay"},
    "tables": [
        {
            "name": "t",
            "path": "votes.csv",
            "where": {"kept": ["yes"]},
            "columns": {one: one for one in ("id", "prompt", "a", "b", "better")},
        }
    ],
    "items": {"pair": "id", "text": "prompt", "image": ["a", "b"]},
    "preference": {"label": "better", "values": {"a": "l", "b": "r", "tie": "t"}, "sides": "given"},
    "evaluation": {"measures": ["accuracy"]},
    "files": [{"path": "votes.csv", "role": "answers", "beside": True, "supplied": "By hand."}],
}


def votes(*, left: int, tied: int = 0, dropped: int = 0) -> str:
    """N comparisons that are kept, and further ones that are not."""
    said = ["l"] * left + ["t"] * tied + ["r"] * (N - left - tied)
    lines = [f"{k},prompt {k},{k}a,{k}b,{one},yes" for k, one in enumerate(said)]
    lines += [f"x{k},prompt x{k},x{k}a,x{k}b,l,no" for k in range(dropped)]
    return "\n".join(["id,prompt,a,b,better,kept", *lines, ""])


def reported(
    folder: Path, content: str, scores: dict[str, np.ndarray] | None = None, **keys: Any
) -> CardReport:
    benchmark = benchmark_of(folder, with_keys(VOTES, keys), votes_csv=content)
    answers = benchmark.answers(None)
    frame = pd.DataFrame(scores, index=pd.Index(answers.pair_ids)) if scores else None
    return report_of(benchmark, answers, None if frame is None else ScoreTable(frame))


def golden(**figures: tuple[str, float]) -> dict[str, Any]:
    keys = {"measure": "accuracy", "tol": 0.001}
    return {key: {**keys, "metric": m, "value": v} for key, (m, v) in figures.items()}


def test_counts_labels_chance_and_controls_are_those_of_the_data(tmp_path: Path) -> None:
    report = reported(tmp_path, votes(left=40, tied=10, dropped=3))
    assert report.labels == {"a": 40, "b": 10, "tie": 10}
    assert (report.counts["comparisons"], report.counts["rows left out"]) == (N, 3)
    assert report.chance == 0.5 and report.ceiling is None and report.half_credit
    found = {one.name: one.value for one in report.controls}
    assert found["position"] == pytest.approx(0.8)
    assert found["-position"] == pytest.approx(0.2)
    assert found["constant"] == pytest.approx(0.5)
    assert report.warnings == () and report.right


@pytest.mark.parametrize(
    ("content", "keys", "code"),
    [
        (votes(left=30, dropped=4), {}, "rows_dropped"),
        (votes(left=55), {}, "one_sided_labels"),
        (votes(left=40), {"golden": golden(x=("CLIP", 0.6))}, "control_above_metric"),
        (votes(left=30, dropped=3), {"golden": golden(x=("CLIP", 0.99))}, None),
    ],
)
def test_what_a_reader_of_the_board_must_know_is_a_warning(
    tmp_path: Path, content: str, keys: dict[str, Any], code: str | None
) -> None:
    report = reported(tmp_path, content, **keys)
    assert [one.code for one in report.warnings] == ([code] if code else [])


def test_a_control_above_a_figure_of_a_paper_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = dict.fromkeys(("split", "skill", "facet", "model"))
    cell = PublishedCell(
        paper="p", table="t", benchmark="votes", metric="CLIP", measure="accuracy", value=0.51,
        variant="assay", printed="51", **fields,
    )  # fmt: skip
    human = cell.model_copy(update={"metric": "human", "value": 0.1, "printed": "10"})
    monkeypatch.setattr("benchmarks.card_report.published", lambda name: (cell, human))
    (warning,) = reported(tmp_path, votes(left=40)).warnings
    assert warning.code == "control_above_metric" and "CLIP" in warning.message


def test_golden_figures_are_right_wrong_or_not_checked_for_want_of_scores(tmp_path: Path) -> None:
    figures = golden(
        a=("position", 40 / 60), b=("-position", 0.9), c=("knows", 1.0), d=("prompt_length", 0.5)
    )
    content = votes(left=40)
    status = {one.label: one.status for one in reported(tmp_path, content, golden=figures).golden}
    # Words of the prompt tell no two images of it apart, so this control does not apply.
    assert status == {"a": "right", "b": "wrong", "c": "not checked", "d": "wrong"}
    scores = {"knows": np.array([1.0, 0.0] * 40 + [0.0, 1.0] * 20)}
    with_scores = reported(tmp_path, content, scores, golden=figures)
    assert with_scores.golden[2].status == "right" and not with_scores.right
    facets = {"e": {**figures["a"], "facet": "no such facet"}}
    assert reported(tmp_path, content, golden=facets).golden[0].status == "wrong"


def test_power_without_scores_is_that_of_two_accuracies(tmp_path: Path) -> None:
    power = reported(tmp_path, votes(left=30, tied=10)).power
    assert power.se == pytest.approx(math.sqrt(0.3 / 50))
    assert power.n_clusters == N
    assert power.detectable == pytest.approx(2.802 * power.se, rel=1e-3)
    line = power.lines[2]
    assert line.difference == 0.05
    ratio = 0.05 / power.se
    assert line.probability == pytest.approx(
        norm.sf(1.96 - ratio) + norm.cdf(-1.96 - ratio), abs=1e-4
    )
    assert line.more == math.ceil(N * (power.detectable / 0.05) ** 2) - N
    assert power.lines[-1].more == pytest.approx(
        max(0, math.ceil(N * (power.detectable / 0.1) ** 2) - N)
    )


def test_power_of_a_board_of_correlations_is_that_of_two_correlations(tmp_path: Path) -> None:
    benchmark = benchmark_of(tmp_path, RATED, labels_csv=LABELS)
    power = report_of(benchmark, benchmark.answers(None)).power
    assert power.se == pytest.approx(math.sqrt(1.125 / (4 - 3) * 2 * 0.5) * 0.75)


def test_power_with_scores_is_that_of_their_resamples_pair_by_pair(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scores = {name: rng.normal(size=2 * N) for name in ("one", "two")} | {"same": np.zeros(2 * N)}
    scores["two again"] = scores["two"]
    report = reported(tmp_path, votes(left=30), scores)
    of_pairs = [line for line in report.power.lines if " over " in line.what]
    assert len(of_pairs) == 3
    benchmark = benchmark_of(tmp_path, VOTES, votes_csv=votes(left=30))
    answers = benchmark.answers(None)
    right = {
        name: (np.sign(values[::2] - values[1::2]) == np.repeat([1, -1], 30)).astype(float)
        for name, values in scores.items()
    }
    value = {name: one.mean() for name, one in right.items()}
    order = sorted(scores, key=lambda name: -value[name])
    counts = ResamplingPlan.for_revision("votes", "1", answers.clusters, 1000).counts
    for line, first, second in zip(of_pairs, order, order[1:], strict=False):
        assert line.difference == pytest.approx(value[first] - value[second])
        gap = right[first] - right[second]
        se = (counts @ gap / counts.sum(axis=1)).std(ddof=1)
        if se:
            ratio = line.difference / se
            expected = norm.sf(1.959964 - ratio) + norm.cdf(-1.959964 - ratio)
            assert line.probability == pytest.approx(expected, abs=1e-6)
        else:
            assert math.isnan(line.probability) and math.isnan(line.more)


# The command.


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("COLUMNS", "120")
    return Command(main, monkeypatch, capsys)


@pytest.mark.slow
def test_it_prints_what_the_board_will_rest_on(tmp_path: Path, check: Command) -> None:
    figures = golden(right=("position", 55 / 60))
    write_card(tmp_path, with_keys(VOTES, {"golden": figures}), votes_csv=votes(left=55))
    for place in (tmp_path, tmp_path / "card.toml"):
        assert check("check", place) == 0
        for word in (
            "comparisons",
            "chance",
            "position",
            "right",
            "one_sided_labels",
            "found in 80 %",
        ):
            assert word in check.out, word
    assert check("check", tmp_path, "--json") == 0
    found = json.loads(check.out)
    assert (found["valid"], found["problems"], found["labels"]["a"]) == (True, [], 55)


def test_ceilings_are_printed_with_what_they_are(tmp_path: Path, check: Command) -> None:
    of_votes = {
        "tables": [with_keys(VOTES["tables"][0], {
            "where": None,
            "columns": {"p": {"from": "p", "type": "float"}, "q": {"from": "q", "type": "float"}},
        })],
        "preference": {"label": None, "values": None, "votes": ["p", "q"]},
    }  # fmt: skip
    lines = [f"{k},prompt {k},{k}a,{k}b,l,{2 + k % 3},1" for k in range(9)]
    content = "\n".join(["id,prompt,a,b,better,p,q", *lines, ""])
    write_card(tmp_path, with_keys(VOTES, of_votes), votes_csv=content)
    assert check("check", tmp_path) == 0
    assert "people" in check.out and "one voter" in check.out


def test_a_golden_figure_that_does_not_come_out_ends_it_with_1(
    tmp_path: Path, check: Command
) -> None:
    figures = golden(odd=("position", 0.1))
    write_card(tmp_path, with_keys(VOTES, {"golden": figures}), votes_csv=votes(left=40))
    assert check("check", tmp_path) == 1
    assert "wrong" in check.out


WRONG: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "card": ({"kind": "beauty", "titel": "x"}, votes(left=9), ["invalid_benchmark"] * 2),
    "protocol": (
        {"evaluation": {"measures": ["accuracy", "regret"]}}, votes(left=9), ["invalid_benchmark"],
    ),
    "data": ({}, "id,prompt,a,b,better,kept\n1,p,a,b,?,yes\n", ["data_malformed"]),
    "no data": ({"files": [{**VOTES["files"][0], "beside": False}]}, "x", ["data_missing"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_every_problem_is_a_line_and_ends_it_with_1(
    tmp_path: Path, check: Command, case: str
) -> None:
    keys, content, codes = WRONG[case]
    write_card(tmp_path, with_keys(VOTES, keys), votes_csv=content)
    assert check("check", tmp_path) == 1
    assert check.err.count("error [") == len(codes)
    assert check("check", tmp_path, "--json") == 1
    found = json.loads(check.out)
    assert not found["valid"] and [one["code"] for one in found["problems"]] == codes
    assert (case == "card") is all(one["line"] for one in found["problems"])


@pytest.mark.parametrize(
    ("words", "code"), [(("check", "ts2"), 1), (("check", "nowhere"), 1), (("check",), 2)]
)
def test_what_is_no_card_is_refused(check: Command, words: tuple[str, ...], code: int) -> None:
    assert check(*words) == code


@pytest.mark.slow
def test_a_benchmark_with_a_card_is_checked_by_its_name_with_scores_and_images(
    check: Command, tmp_path: Path
) -> None:
    assert check("check", "genai_arena", "--images") == 1
    assert "images_missing" in check.err
    assert check("check", "genai_arena", "--json") == 0
    assert json.loads(check.out)["labels"] == {"a": 643, "b": 663, "tie": 156, "bad": 273}
    assert check("pairs", "genai_arena", "--out", tmp_path / "pairs.csv") == 0
    frame = pd.read_csv(tmp_path / "pairs.csv")[["pair_id"]]
    frame.assign(one=range(len(frame)), two=0).to_csv(tmp_path / "scores.csv", index=False)
    assert check("check", "genai_arena", "--scores", tmp_path / "scores.csv") == 0
    assert "one over two" in check.out or "two over one" in check.out
