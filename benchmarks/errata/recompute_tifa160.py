"""TIFA160: correlations of TIFA and DSG, and the PLCC of the NTIRE script on the same data."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

import pandas as pd

from benchmarks.accumulation.accumulate import AnsweredQuestions, image_scores
from benchmarks.accumulation.correctness import equals_yes
from benchmarks.accumulation.dependencies import QuestionGraph, Unparsable
from benchmarks.errata.data import data_folder
from benchmarks.errata.recompute import Finding, Findings, Recompute
from benchmarks.statistics import correlation, logistic
from benchmarks.tifa160.answers import Tifa160Answers
from benchmarks.tifa160.benchmark import Tifa160
from benchmarks.tifa160.load import HUMAN, LIKERT, MODEL_NAMES

DSG_PALI = "dsg_tifa160/vqa_answers/pali17b_dsg.csv"
_DSG_COLUMNS = (
    "dsg_prompt_split",
    "t2i_model",
    "item_id",
    "question_id",
    "dependency_id",
    "answer",
)
METRICS = (
    "meteor",
    "bleu",
    "rouge",
    "spice",
    "clipscore_vitb32",
    "tifa_vilt",
    "tifa_git-large",
    "tifa_ofa-large",
    "tifa_blip2-flant5xl",
    "tifa_mplug-large",
)


@cache
def _images(data: Path) -> pd.DataFrame:
    """Metric scores and `human_avg` of the 800 images."""
    return pd.DataFrame(data_folder(data).read_json(HUMAN).values())


def spearman_is_pearson(data: Path) -> Findings:
    """Spearman of each metric; the mistake is to correlate the raw values."""
    images = _images(data)
    gold = images["human_avg"]
    return {
        name: Finding(
            correlation.spearman(images[name], gold), correlation.pearson(images[name], gold)
        )
        for name in METRICS
    }


def rounded_twice(data: Path) -> Findings:
    """Kendall's tau-b of ROUGE; the mistake is to round to three digits, then to two."""
    images = _images(data)
    tau = correlation.kendall(images["rouge"], images["human_avg"])
    three = Decimal(tau).quantize(Decimal("0.001"), ROUND_HALF_UP)
    return {"rouge": Finding(tau, float(three.quantize(Decimal("0.01"), ROUND_HALF_UP)))}


def number_of_images(data: Path) -> Findings:
    """Image-prompt pairs of the benchmark; the mistake is to count its prompts."""
    images = _images(data)
    return {"pairs": Finding(len(images), images["text_id"].nunique())}


def exchanged_arguments(data: Path) -> Findings:
    """PLCC with the curve fitted from scores to ratings; the script fits ratings to scores."""
    images = _images(data)
    gold = images["human_avg"]
    return {
        name: Finding(
            logistic.plcc(images[name], gold).value, logistic.plcc(gold, images[name]).value
        )
        for name in ("clipscore_vitb32", "tifa_mplug-large")
    }


def unparsable_dependency(data: Path) -> Findings:
    """Spearman of DSG (PaLI-17B) with the dependencies of prompt tifa160_67 mended."""
    gold = _dsg_likert(data)
    return {
        "dsg_pali-17b": Finding(
            correlation.spearman(image_scores(_answered(data, "repair"), "dsg", "zero"), gold),
            correlation.spearman(image_scores(_answered(data, "independent"), "dsg", "zero"), gold),
        )
    }


def unanswered_prompt(data: Path) -> Findings:
    """Spearman of DSG (PaLI-17B) without the five images that have no answers and score 0."""
    gold = _dsg_likert(data)
    answered = _answered(data, "independent")
    scores = image_scores(answered, "dsg", "zero")
    kept = answered.n_answers > 0
    return {
        "dsg_pali-17b": Finding(
            correlation.spearman(scores[kept], gold[kept]), correlation.spearman(scores, gold)
        )
    }


@cache
def _tifa160(data: Path) -> Tifa160Answers:
    return Tifa160().answers(data)


def _dsg_likert(data: Path) -> pd.Series:
    """Mean Likert rating of the 800 images by pair_id, in the benchmark's order."""
    return _tifa160(data).images.set_index("pair_id")["dsg_likert"]


def _answered(data: Path, unparsable: Unparsable) -> AnsweredQuestions:
    """PaLI-17B's answers to the DSG questions about the 800 images, in the benchmark's order.

    Args:
        data: folder of data.
        unparsable: `independent` as released, `repair` with the dependencies mended.
    """
    folder = data_folder(data)
    table = folder.read_table(DSG_PALI, _DSG_COLUMNS)
    table = table[table["dsg_prompt_split"] == "tifa160"]
    items = folder.read_table(LIKERT, ("item_id", "source_id")).drop_duplicates("item_id")
    answers = pd.DataFrame(
        {
            "text_id": table["item_id"].map(items.set_index("item_id")["source_id"]),
            "question_id": table["question_id"],
            "parents": table["dependency_id"],
        }
    )
    answers["pair_id"] = answers["text_id"] + "_" + table["t2i_model"].map(MODEL_NAMES)
    questions = answers.drop_duplicates(["text_id", "question_id"])
    pairs = _tifa160(data).images.rename(columns={"prompt_id": "text_id"})
    return AnsweredQuestions.of(
        answers,
        equals_yes(table["answer"]),
        QuestionGraph.of(questions, unparsable=unparsable, source=DSG_PALI),
        pairs[["pair_id", "text_id"]],
        source=DSG_PALI,
    )


RECOMPUTE: dict[str, Recompute] = {
    "tifa-spearman-is-pearson": spearman_is_pearson,
    "tifa-rouge-rounded-twice": rounded_twice,
    "gecko-tifa160-size": number_of_images,
    "ntire-exchanged-arguments": exchanged_arguments,
    "dsg-unparsable-dependency": unparsable_dependency,
    "dsg-unanswered-prompt": unanswered_prompt,
}
