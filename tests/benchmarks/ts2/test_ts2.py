"""TS2: the released files, and the protocol on graphs small enough to compute by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2.load import Ts2Answers, split_of
from benchmarks.ts2.measures import KEYS, MEASURES, Graph, MeasureKey
from benchmarks.ts2.protocol import CARD, Ts2, graph_values, printed_delta, printed_deltas
from benchmarks_perf.ts2_protocol import plain_evaluation, random_answers, random_scores
from tests.benchmarks.ts2.ts2_tree import metadata, write
from tests.kit.checks import trial_card


def test_a_released_table_becomes_graphs_with_nodes_levels_and_splits(tmp_path: Path) -> None:
    assert set(CARD.measures) == {"rank", "sep", "delta", "rank_midrank"}
    board = Ts2(trial_card(CARD, **CARD.counts))
    answers = board.answers(write(tmp_path, metadata(165, 2840)))
    assert len(answers.clusters) == 165
    assert answers.not_in_paper == {"164"}
    assert answers.nodes["label"].tolist()[:4] == ["0", "1a", "1b", "12c"]
    assert answers.nodes["level"].tolist()[:4] == [0, 1, 1, 12]
    assert set(answers.nodes["skill"]) == {""}
    assert tuple(answers.nodes["pair_id"]) == answers.pair_ids
    splits = [split_of(graph) for graph in (0, 110, 111, 135, 136, 164)]
    assert splits == ["synth", "synth", "nat", "nat", "real", "real"]


def test_only_a_number_after_one_stray_quote_in_llmscore_over_is_mended() -> None:
    assert Ts2().repair_cell("llmscore_over", '"3') == 3.0
    for cell in ("3", '3"', '"3"', '""3', '"', '" 3', '"x', '"-3', "'3", '"3\n'):
        assert Ts2().repair_cell("llmscore_over", cell) is None
    assert Ts2().repair_cell("llmscore_ec", '"3') is None


def test_the_released_table_has_the_pinned_hash(assay_data: Path) -> None:
    assert Ts2().answers(assay_data).sources == {"ts2/metadata.csv": CARD.files[0].sha256}


NAN = math.nan
Values = dict[MeasureKey, float]
RANK, SEP, DELTA, EQ_RANK, EQ_SEP, EQ_DELTA, MIDRANK = KEYS
RANKS, SEPS, DELTAS = (RANK, EQ_RANK, MIDRANK), (SEP, EQ_SEP), (DELTA, EQ_DELTA)


def values_of(labels: Sequence[str], scores: Sequence[float]) -> Values:
    """Every measure of one metric on one graph; the level is the label's number."""
    levels = np.array([int(label.rstrip("abcdef")) for label in labels])
    found = Graph(levels, labels).measures(np.array(scores, dtype=float)[:, None])
    return {key: float(found[key][0]) for key in KEYS}


def answers_of(
    graphs: Mapping[str, tuple[str, str, Sequence[str]]], not_in_paper: Sequence[str] = ()
) -> Ts2Answers:
    """Graphs given as id to (split, skill, labels)."""
    rows = [
        (f"{graph}-{image}", graph, label, int(label.rstrip("abcdef")), split, skill)
        for graph, (split, skill, labels) in graphs.items()
        for image, label in enumerate(labels)
    ]
    names = ["pair_id", "graph", "label", "level", "split", "skill"]
    nodes = pd.DataFrame(rows, columns=names)
    return Ts2Answers(tuple(nodes["pair_id"]), tuple(graphs), nodes, frozenset(not_in_paper))


def rows_of(
    answers: Ts2Answers, scores: Mapping[str, Sequence[float]], **more: Mapping
) -> tuple[Measured, dict[tuple, Row]]:
    table = ScoreTable(pd.DataFrame(scores, index=list(answers.pair_ids), dtype=float), **more)
    plan = ResamplingPlan(answers.clusters, seed=1, n_resamples=50)
    measured = Ts2().measure(table, answers, plan)
    keyed = {(r.metric, r.split, r.skill, r.measure, r.variant): r for r in measured.rows}
    assert len(keyed) == len(measured.rows)
    return measured, keyed


@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        # Scores that fall with every error are perfect; rising ones are wrong, but separate.
        ("0 1a 2a", [3, 2, 1], dict.fromkeys(KEYS, 1.0)),
        ("0 1a 2a", [1, 2, 3], dict.fromkeys([*RANKS, *DELTAS], -1.0) | dict.fromkeys(SEPS, 1.0)),
        # Section 6.4 is perfect with average ranks only. Eq. 1: ranks of the errors 0 1 1 3, of the
        # scores 3 1 1 0. These lower ranks are not symmetric under negation.
        ("0 1a 1a 2a", [1, 0.5, 0.5, 0], {MIDRANK: 1.0, EQ_RANK: 17 / 19}),
        ("0 1 1 2", [2, 1, 1, 0], {EQ_RANK: 17 / 19}),
        ("0 1 1 2", [-2, -1, -1, 0], {EQ_RANK: -1.0}),
        # The root enters a walk of the paper twice: the sample is 0, 0, 1, 2 with scores 2, 2, 3, 1;
        # centred ranks of the errors are -1 -1 .5 1.5 and of the scores 0 0 1.5 -1.5.
        ("0 1a 2a", [2, 3, 1], {RANK: 1.5 / math.sqrt(4.5 * 4.5), MIDRANK: 0.5}),
        # Root pairs aa, ab, ba, bb with root means 4, 3, 3, 2, each with two root images.
        ("0a 0b 1", [4, 2, 1], {DELTA: (3 + 2 + 2 + 1) / 4, EQ_DELTA: (3 + 1) / 2}),
        # Longer walks weigh more in the paper: node 1a has one image (walk size 2 + 1), 1b three.
        ("0 1a 1b 1b 1b", [1, 0, 2, 2, 2], {DELTA: (3 * 1 + 5 * -1) / 8, EQ_DELTA: 0.0}),
        # Separation of the paper compares all levels: KS of levels 0-1: 1/2, 1-2: 1/2, 0-2: 1.
        ("0 0 1 1 2 2", [4, 3, 3, 2, 2, 1], {SEP: (0.5 + 0.5 + 1) / 3, EQ_SEP: 0.5}),
        # A missing level makes its neighbours adjacent.
        ("0 2a 3a", [5, 3, 2], dict.fromkeys(DELTAS, 1.5)),
        # One level, and constant scores, count as zero.
        ("0 0 0", [1, 2, 3], dict.fromkeys(KEYS, 0.0)),
        ("0 1a 1b 2", [0.1] * 4, dict.fromkeys(KEYS, 0.0)),
        # Nodes of one level are alternatives: one walk is perfect, one inverted.
        ("0 1a 1b", [2, 1, 3], {EQ_RANK: 0.0, EQ_SEP: 1.0}),
        # A node without any score is skipped in the walks through it.
        ("0 1a 2a", [5, NAN, 1], dict.fromkeys(DELTAS, 4.0) | {RANK: 1.0}),
        ("0 1", [NAN, NAN], dict.fromkeys(KEYS, NAN)),
        # A single score is no walk for the rank of the paper.
        ("0 1 2", [NAN, 3, NAN], {RANK: NAN, SEP: 0.0, DELTA: 0.0, EQ_RANK: 0.0}),
    ],
)
def test_measures_of_one_graph(labels: str, scores: list[float], expected: Values) -> None:
    found = values_of(labels.split(), scores)
    assert {key: found[key] for key in expected} == pytest.approx(expected, nan_ok=True)


TOY = {
    "a": ("easy", "count", ["0", "1", "2"]),
    "b": ("easy", "colour", ["0", "1"]),
    "c": ("hard", "count", ["0", "1"]),
}
TOY_SCORES = [3.0, 2.0, 1.0, 2.0, 1.0, 1.0, 2.0]


def test_rows_are_plain_means_over_the_graphs_of_each_split_and_skill() -> None:
    _, rows = rows_of(answers_of(TOY), {"m": TOY_SCORES})
    assert {key[3:] for key in rows} == set(KEYS)
    assert {row.measure for row in rows.values()} == set(MEASURES)
    assert {(r.benchmark, r.revision, r.metric) for r in rows.values()} == {
        ("ts2", CARD.revision, "m")
    }
    value = {key[1:3]: row.value for key, row in rows.items() if key[3:] == EQ_RANK}
    assert {key[1:3] for key in rows} == value.keys()
    assert value == pytest.approx(
        {
            ("all", None): 1 / 3,
            ("easy", None): 1.0,
            ("hard", None): -1.0,
            ("all", "count"): 0.0,
            ("all", "colour"): 1.0,
        }
    )
    sigma = float(np.std(TOY_SCORES, ddof=1))  # over all images, in every part
    assert rows["m", "easy", None, "delta", "paper"].value == pytest.approx(1 / sigma)
    assert rows["m", "hard", None, "delta", "equation"].value == pytest.approx(-1 / sigma)
    alone = rows["m", "hard", None, "rank", "paper"]
    assert (alone.value, math.isnan(alone.ci_low)) == (-1.0, True)
    assert alone.note
    assert rows_of(answers_of(TOY), {})[0].rows == ()


def test_mended_cells_are_left_out_of_sigma_in_the_paper_variant_only() -> None:
    answers = answers_of(TOY)
    _, rows = rows_of(answers, {"m": TOY_SCORES}, repaired={"m": frozenset({"a-0"})})
    paper, equation = (float(np.std(part, ddof=1)) for part in (TOY_SCORES[1:], TOY_SCORES))
    assert rows["m", "easy", None, "delta", "paper"].value == pytest.approx(1 / paper)
    assert rows["m", "easy", None, "delta", "equation"].value == pytest.approx(1 / equation)


def test_graphs_the_paper_never_evaluates_count_in_the_equation_variant_only() -> None:
    _, rows = rows_of(answers_of(TOY, not_in_paper="c"), {"m": TOY_SCORES})
    assert rows["m", "all", None, "rank", "paper"].value == pytest.approx(1.0)
    assert rows["m", "all", None, "rank", "paper"].n_clusters == 2
    assert rows["m", "all", None, "rank", "equation"].n_clusters == 3
    hard = rows["m", "hard", None, "rank", "paper"]
    assert math.isnan(hard.value)
    assert (hard.n_clusters, "these graphs" in hard.note) == (0, True)


def test_rows_count_items_graphs_and_missing_scores() -> None:
    scores = [3.0, NAN, 1.0, NAN, NAN, 1.0, 2.0]
    _, rows = rows_of(answers_of(TOY), {"m": scores})
    row = rows["m", "all", None, "rank", "paper"]
    assert (row.n_items, row.n_clusters, row.n_missing) == (4, 2, 3)
    assert row.note.startswith("1 of 3")


def test_a_metric_without_scores_or_with_equal_ones_has_undefined_rows_that_say_so() -> None:
    measured, rows = rows_of(answers_of(TOY), {"m": [NAN] * 7, "flat": [0.1] * 7})
    for key, row in rows.items():
        if key[0] == "m":
            assert np.isnan([row.value, row.ci_low]).all()
            assert row.note.startswith("Undefined")
    assert not any(measured.rows[int(i)].metric == "m" for i in measured.clusters["row"])
    flat = rows["flat", "all", None, "delta", "paper"]
    assert math.isnan(flat.value)
    assert "few different" in flat.note
    assert rows["flat", "all", None, "rank", "paper"].value == 0.0


def test_resamples_are_means_over_the_drawn_graphs_with_sigma_held_fixed() -> None:
    measured, _ = rows_of(answers_of(TOY), {"m": TOY_SCORES})
    counts = ResamplingPlan(tuple(TOY), seed=1, n_resamples=50).counts
    for index, row in enumerate(measured.rows):
        if (row.split, row.skill) != ("all", None):
            continue
        behind = measured.clusters[measured.clusters["row"] == index]
        assert behind["cluster"].tolist() == list(TOY)
        assert behind["value"].mean() == pytest.approx(row.value)
        expected = counts @ behind["value"].to_numpy() / counts.sum(axis=1)
        np.testing.assert_allclose(measured.resamples[index], expected, atol=1e-6)
        assert row.ci_low <= row.value <= row.ci_high


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning:scipy")
@pytest.mark.parametrize("missing", [0.0, 0.1, 0.5])
def test_every_graph_agrees_with_a_walk_by_walk_evaluation(missing: float) -> None:
    rng = np.random.default_rng(round(missing * 10))
    answers = random_answers(rng, n_graphs=20)
    table = random_scores(rng, answers, n_metrics=2)
    overall = table.overall.mask(rng.random(table.overall.shape) < missing)
    found = graph_values(ScoreTable(overall), answers)
    for column, metric in enumerate(overall.columns):
        expected = plain_evaluation(overall[metric].to_numpy(), answers)
        for key in KEYS:
            np.testing.assert_allclose(found.values[key][:, column], expected[key], atol=1e-12)


def test_images_and_graphs_are_counted_in_all_and_by_split() -> None:
    answers = answers_of(
        {"1": ("synth", "", ["0", "1a"]), "2": ("real", "", ["0", "1a", "2b"]),
         "3": ("synth", "", ["0", "1", "1"])}
    )  # fmt: skip
    assert answers.counts() == {
        "images": 8, "graphs": 3, "synth: graphs": 2, "synth: images": 5,
        "real: graphs": 1, "real: images": 3,
    }  # fmt: skip


def test_each_cell_slides_one_row_down_over_sigma_and_the_cells_above() -> None:
    deltas = np.arange(164.0)
    cells = printed_delta(deltas, 2.0)
    total = deltas.sum()
    everything = total / 164 / 2
    synth = (total - 0 + 2) / 164 / 2
    nat = (total - 0 - 1 + 2 + everything) / 164 / 2
    real = (total - 0 - 1 - 2 + 2 + everything + synth) / 164 / 2
    assert cells == pytest.approx({"all": everything, "synth": synth, "nat": nat, "real": real})


def test_the_columns_of_the_two_llmscores_change_places() -> None:
    names = ("llmscore_ec", "llmscore_over", "clipscore")
    deltas = {name: np.full(164, value) for name, value in zip(names, (1.0, 2.0, 3.0), strict=True)}
    cells = printed_deltas(deltas, dict(zip(names, (-1.0, -1.0, 1.0), strict=True)))
    assert [cells[name]["all"] for name in names] == [-2.0, -1.0, 3.0]
    assert printed_deltas({"llmscore_ec": np.ones(164)}, {"llmscore_ec": -1.0}) == {}
