"""T2IScoreScore: Table 2, Table 3 and the equations, from the released scores and answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.accumulation.accumulate import AnsweredQuestions, image_scores
from benchmarks.accumulation.correctness import given
from benchmarks.accumulation.dependencies import QuestionGraph
from benchmarks.errata.data import data_folder
from benchmarks.errata.recompute import Finding, Findings, Recompute
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.scores import read_scores
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.benchmark import Ts2
from benchmarks.ts2.errata import N_GRAPHS, PUBLISHED_DELTA
from benchmarks.ts2.protocol import GraphValues, graph_values

SCORES = "ts2/scores.csv"
DSG_BLIP1 = "ts2/per_question_dsg_blip1.csv"
SPLITS = ("all", "synth", "nat", "real")
_Key = tuple[str, str, str, str]


@cache
def _released(data: Path) -> tuple[Ts2Answers, ScoreTable]:
    answers = Ts2().answers(data)
    return answers, read_scores(data_folder(data).path(SCORES), Ts2(), answers)


def _rows(scores: ScoreTable, answers: Ts2Answers) -> Mapping[_Key, Row]:
    found = Ts2().evaluate(scores, answers, n_resamples=1).rows
    return {(r.metric, str(r.split), r.measure, str(r.variant)): r for r in found if not r.skill}


@cache
def _released_rows(data: Path) -> Mapping[_Key, Row]:
    answers, scores = _released(data)
    return _rows(scores, answers)


def delta_subsets(data: Path) -> Findings:
    """Delta over the graphs of each subset, and the cell of the slipped spreadsheet."""
    rows = _released_rows(data)
    return {
        f"{metric}, {split}": Finding(
            rows[metric, split, "delta", "paper"].value,
            rows[metric, split, "delta", "as_printed"].value,
        )
        for metric in PUBLISHED_DELTA
        for split in SPLITS[1:]
    }


def llmscore_exchange(data: Path) -> Findings:
    """Delta over all graphs of the two LLMScore columns; the mistake is to exchange them."""
    rows = _released_rows(data)
    own = {name: rows[name, "all", "delta", "paper"].value for name in _LLMSCORES}
    return {name: Finding(own[name], own[other]) for name, other in _LLMSCORES.items()}


def stray_quotes(data: Path) -> Findings:
    """Delta of `llmscore_over` with the spread over all 2,840 cells instead of 2,834."""
    values = _released_values(data)
    column = values.metrics.index("llmscore_over")
    mean = float(values.values["delta", "paper"][_published(values), column].mean())
    sigma = {variant: float(values.sigma[variant][column]) for variant in values.sigma}
    return {"llmscore_over": Finding(mean / sigma["equation"], mean / sigma["paper"])}


def last_graph(data: Path) -> Findings:
    """Rank of CLIPScore over all 165 graphs, and over the 164 of the table."""
    values = _released_values(data)
    ranks = values.values["rank", "paper"][:, values.metrics.index("clipscore")]
    return {"clipscore": Finding(float(ranks.mean()), float(ranks[_published(values)].mean()))}


def equations(data: Path) -> Findings:
    """Rank, separation and delta over all graphs by Eqs. 1-5; printed: the table's computation."""
    rows = _released_rows(data)
    return {
        f"{metric}, {measure}": Finding(
            rows[metric, "all", measure, "equation"].value,
            rows[metric, "all", measure, "paper"].value,
        )
        for metric in ("clipscore", "alignscore", "gpt4v_tifa")
        for measure in ("rank", "sep", "delta")
    }


def ranks_of_equation_1(data: Path) -> Findings:
    """The worked example with the ranks of Eq. 1 (ties: the lowest) and with average ranks."""
    del data
    scores, errors = [1.0, 0.5, 0.5, 0.0], [0.0, 1.0, 1.0, 2.0]
    lowest = np.corrcoef(stats.rankdata(scores, "min"), stats.rankdata(errors, "min"))[0, 1]
    return {"correlation": Finding(float(lowest), float(stats.spearmanr(scores, errors)[0]))}


def exchanged_halves(data: Path) -> Findings:
    """BLIP-1 on DSG questions under both rules: each half of Table 3 holds the other's figures."""
    answers, scores = _released(data)
    both = pd.DataFrame(
        {"dsg": scores.overall["blip1_dsg"], "tifa": _plain_mean(data, answers)},
        index=scores.overall.index,
    )
    rows = _rows(ScoreTable(both), answers)
    other = {"tifa": "dsg", "dsg": "tifa"}
    return {
        f"{rule.upper()} accumulation, {measure}, {split}": Finding(
            100.0 * rows[rule, split, measure, "paper"].value,
            100.0 * rows[other[rule], split, measure, "paper"].value,
        )
        for rule in other
        for measure in ("rank", "sep")
        for split in SPLITS
    }


def _plain_mean(data: Path, answers: Ts2Answers) -> pd.Series:
    """Share of correct answers of each image, by pair_id.

    The file names no images: they stand in the order of the metadata, and a new one starts at
    question 0.
    """
    table = data_folder(data).read_table(DSG_BLIP1, ("id", "question_id", "correct"))
    images = np.array(answers.pair_ids)
    table = table.assign(
        text_id=table["id"], pair_id=images[(table["question_id"] == "0").cumsum() - 1]
    )
    questions = table[["text_id", "question_id"]].drop_duplicates()
    answered = AnsweredQuestions.of(
        table,
        given(table["correct"]),
        QuestionGraph.of(questions, source=DSG_BLIP1),
        answers.nodes[["pair_id", "graph"]].rename(columns={"graph": "text_id"}),
        source=DSG_BLIP1,
    )
    return image_scores(answered, "mean", "empty")


@cache
def _released_values(data: Path) -> GraphValues:
    answers, scores = _released(data)
    return graph_values(scores, answers)


def _published(values: GraphValues) -> list[int]:
    return [values.graphs.index(str(number)) for number in range(N_GRAPHS)]


_LLMSCORES = {"llmscore_ec": "llmscore_over", "llmscore_over": "llmscore_ec"}
RECOMPUTE: dict[str, Recompute] = {
    "ts2-delta-subsets": delta_subsets,
    "ts2-llmscore-exchange": llmscore_exchange,
    "ts2-stray-quotes": stray_quotes,
    "ts2-last-graph": last_graph,
    "ts2-equations": equations,
    "ts2-ranks-of-ties": ranks_of_equation_1,
    "ts2-table-3-halves": exchanged_halves,
}
