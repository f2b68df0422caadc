"""Released answers, put through the scorers, give the released scores and printed correlations.

Sources: Saxon et al. 2024 (T2IScoreScore), release 93ebf89; Cho et al. 2024 (DSG), release
7330119. Each released answer lies in a table that stands for the model; an image is known there by
a number of its own in place of its pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from benchmarks.statistics.correlation import kendall, spearman
from benchmarks.tifa160.protocol import LIKERT, MODEL_NAMES, TIFA160
from benchmarks.ts2.protocol import Ts2
from evaluator.scorers.questions.files import Line, Question, QuestionFile
from evaluator.scorers.questions.metric import QuestionScorer
from evaluator.scorers.questions.readers import Released, checked, read_dsg, read_ts2, with_prompts
from evaluator.scorers.questions.table import TableAnswers
from evaluator.scorers.questions.writing import prompts_by_id
from evaluator.scorers.registry import load_rows
from tests.evaluator.scorers.common import later

answering = later("evaluator.scorers.families.question_answering")
pytestmark = [pytest.mark.paper, pytest.mark.slow]

PRINTED = {"mplug": (0.463, 0.380), "instructblip": (0.442, 0.364), "pali17b": (0.571, 0.458)}


def read(path: Path, **more: Any) -> pd.DataFrame:
    table: pd.DataFrame = pd.read_csv(path, dtype=str, keep_default_na=False, **more)
    return table


def metric_of(row: str, similarity: Any = None, **options: Any) -> Any:
    found = answering.Options.model_validate(load_rows()[row].options)
    asked = found.model_copy(update={"template": "{question}", **options})
    return answering.QuestionAnswering(asked, similarity)


@pytest.fixture(scope="module")
def ts2(assay_data: Path) -> Path:
    return assay_data / "ts2"


@pytest.fixture(scope="module")
def pairs(assay_data: Path, ts2: Path) -> pd.DataFrame:
    """The 2,840 images with the exact text of their prompts."""
    nodes = Ts2().answers(assay_data).nodes
    table = nodes.rename(columns={"graph": "text_id"})[["pair_id", "text_id"]]
    return table.assign(prompt=table["text_id"].map(prompts_by_id(ts2 / "metadata.csv")))


@pytest.fixture(scope="module")
def scores(ts2: Path) -> pd.DataFrame:
    return read(ts2 / "scores.csv").set_index("pair_id")


def ts2_questions(ts2: Path, name: str) -> Released:
    released = with_prompts(read_ts2(ts2 / name), prompts_by_id(ts2 / "metadata.csv"))
    found = checked(released)
    assert len(found.lines) == len(released.lines)
    return found


def score(
    metric: Any, questions: Released, answers: Any, images: Iterable[str], prompts: Iterable[str]
) -> pd.Series:
    """The scores of all images in one batch.

    `answers` has the columns pair_id, question_id and answer. Each question is put as its id: some
    questions of a prompt have one text, and different answers about the same image.
    """
    lines = [
        Line(line.number, line.record.model_copy(update={"question": line.record.question_id}))
        for line in questions.lines
        if isinstance(line.record, Question)
    ]
    table = answers[["pair_id", "question_id", "answer"]]
    assert not table.duplicated(["pair_id", "question_id"]).any()
    known = {(pair, key): answer for pair, key, answer in table.itertuples(index=False, name=None)}
    scorer = QuestionScorer(metric, TableAnswers(known), QuestionFile(lines))
    names = list(images)
    verdicts = scorer.score_texts(names, [[prompt] for prompt in prompts])
    return pd.Series([of_image[0].score for of_image in verdicts], index=names)


def per_question(path: Path, pairs: pd.DataFrame) -> pd.DataFrame:
    """A released per-question file; it names no image: each begins with question 0."""
    table = read(path)
    image = (table["question_id"] == "0").cumsum() - 1
    return table.assign(pair_id=pairs["pair_id"].to_numpy()[image], answer=table["vqa_answer"])


class ReleasedChoices:
    """The released choice nearest to each answer, in place of a sentence encoder."""

    def __init__(
        self, table: pd.DataFrame, choices: dict[tuple[str, str], tuple[str, ...]]
    ) -> None:
        self.nearest: dict[tuple[str, tuple[str, ...]], str] = {}
        rows = table[["id", "question_id", "answer", "mc_answer"]]
        for text, question, answer, chosen in rows.itertuples(index=False, name=None):
            key = (answer, choices[text, question])
            assert self.nearest.setdefault(key, chosen) == chosen  # it depends on nothing else

    def cosines(self, text: str, others: Sequence[str]) -> NDArray[np.float64]:
        chosen = self.nearest[text, tuple(others)]
        return np.array([float(other == chosen) for other in others])


def test_tifa_with_instructblip_gives_all_2840_released_scores(
    ts2: Path, pairs: pd.DataFrame, scores: pd.DataFrame
) -> None:
    questions = ts2_questions(ts2, "TS2_TIFA_Q.csv")
    table = per_question(ts2 / "per_question_tifa_instruct_blip.csv", pairs)
    choices = {
        (line.record.prompt_id, line.record.question_id): line.record.choices
        for line in questions.lines
        if isinstance(line.record, Question)
    }
    metric = metric_of("tifa-ts2-instructblip", ReleasedChoices(table, choices))
    found = score(metric, questions, table, pairs["pair_id"], pairs["prompt"])
    released = scores["instruct_blip_tifa"].astype(float)
    assert len(found) == 2840
    assert int((found - released).abs().lt(5.1e-10).sum()) == 2840  # nine digits


def test_dsg_with_blip1_gives_2835_released_scores_and_all_with_the_older_graph(
    ts2: Path, pairs: pd.DataFrame, scores: pd.DataFrame
) -> None:
    questions = ts2_questions(ts2, "T2S_DSG_Q_dependency.csv")
    columns = ["id", "file", "question_id", "answer"]
    raw = read(ts2 / "raw_answers_dsg_blip1.csv", header=None, names=columns)
    raw["pair_id"] = raw["file"].str.removesuffix(".jpg")
    metric = metric_of("dsg-ts2-blip")
    released = scores["blip1_dsg"].astype(float)
    found = score(metric, questions, raw, pairs["pair_id"], pairs["prompt"])
    off = (found - released).abs() > 5.1e-10
    assert int((~off).sum()) == 2835
    assert {pair.split("-")[0] for pair in off.index[off]} == {"065"}
    older = {("65", "2"): ("0",), ("65", "3"): ()}
    lines = []
    for line in questions.lines:
        record = line.record
        key = (record.prompt_id or "", getattr(record, "question_id", ""))
        if key in older:
            record = record.model_copy(update={"parents": older[key]})
        lines.append(Line(line.number, record))
    mended = score(metric, Released(tuple(lines)), raw, pairs["pair_id"], pairs["prompt"])
    assert int((mended - released).abs().lt(5.1e-10).sum()) == 2840


@pytest.mark.parametrize("model", PRINTED)
def test_official_dsg_on_tifa160_gives_the_printed_correlations(
    assay_data: Path, model: str
) -> None:
    """800 images; the prompt that lacks its first question has no score, which was printed as 0."""
    folder = assay_data / "dsg_tifa160"
    likert = TIFA160.answers(assay_data).images.set_index("pair_id")["dsg_likert"]
    names = read(assay_data / LIKERT)[["source_id", "item_id", "t2i_model"]].drop_duplicates()
    images = names["item_id"] + " " + names["t2i_model"]
    gold = likert[names["source_id"] + "_" + names["t2i_model"].map(MODEL_NAMES)].to_numpy()
    texts = read(folder / "dsg-1k-anns.csv")
    text = texts.drop_duplicates("item_id").set_index("item_id")["text"]
    answers = read(folder / "vqa_answers" / f"{model}_dsg.csv")
    answers = answers[answers["dsg_prompt_split"] == "tifa160"]
    answers = answers.assign(pair_id=answers["item_id"] + " " + answers["t2i_model"])
    prompts = text[names["item_id"]].tolist()
    official = metric_of("dsg-blip", parse="exact")
    questions = checked(read_dsg(folder / "dsg-1k-anns.csv"))
    found = score(official, questions, answers, images.tolist(), prompts)
    assert len(found) == 800
    unscored = found.index[found.isna()]
    assert {name.split(" ")[0] for name in unscored} == {"tifa160_134"}
    filled = found.fillna(0).to_numpy()
    assert (round(spearman(filled, gold), 3), round(kendall(filled, gold), 3)) == PRINTED[model]
