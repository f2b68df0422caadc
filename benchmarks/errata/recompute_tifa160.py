"""TIFA160: correlations of TIFA and DSG, and the PLCC of the NTIRE script on the same data."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errata.recompute import Finding, Findings, Recompute
from benchmarks.statistics import correlation, logistic

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
    file = data / "tifa160" / "human_annotations_with_scores.json"
    return pd.DataFrame(json.loads(file.read_text(encoding="utf-8")).values())


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
    gold = _likert(data)
    return {
        "dsg_pali-17b": Finding(
            correlation.spearman(_dsg(data, gold, mended=True), gold),
            correlation.spearman(_dsg(data, gold, mended=False), gold),
        )
    }


def unanswered_prompt(data: Path) -> Findings:
    """Spearman of DSG (PaLI-17B) without the five images that have no answers and score 0."""
    gold = _likert(data)
    scores = _dsg(data, gold, mended=False)
    kept = gold.index.get_level_values("item_id") != "tifa160_134"
    return {
        "dsg_pali-17b": Finding(
            correlation.spearman(scores[kept], gold[kept]), correlation.spearman(scores, gold)
        )
    }


@cache
def _likert(data: Path) -> pd.Series:
    """Mean Likert rating by item_id and t2i_model, 800 images."""
    ratings = pd.read_csv(data / "dsg_tifa160" / "tifa160-likert-anns.csv")
    return ratings.groupby(["item_id", "t2i_model"])["answer"].mean()


def _dsg(data: Path, gold: pd.Series, *, mended: bool) -> pd.Series:
    """DSG score of each image, 0 without answers; in the order of `gold`."""
    file = data / "dsg_tifa160" / "vqa_answers" / "pali17b_dsg.csv"
    answers = pd.read_csv(file, dtype=str, keep_default_na=False)
    answers = answers[answers["dsg_prompt_split"] == "tifa160"]
    scores = {
        image: _score_of_image(rows, mended=mended)
        for image, rows in answers.groupby(["item_id", "t2i_model"])
    }
    return pd.Series(scores).reindex(gold.index).fillna(0.0)


def _score_of_image(rows: pd.DataFrame, *, mended: bool) -> float:
    """Share of questions answered yes whose direct parents were all answered yes.

    As released, one dependency that is no list of numbers leaves its prompt without dependencies;
    mended, only the part that is no number is passed over.
    """
    parents = [[part.strip() for part in cell.split(",")] for cell in rows["dependency_id"]]
    broken = not all(part.isdigit() for cell in parents for part in cell)
    yes = dict(zip(rows["question_id"], rows["answer"].str.lower() == "yes", strict=True))
    if broken and not mended:
        return float(np.mean(list(yes.values())))
    counted = [
        yes[question] and all(yes.get(part, True) for part in cell)
        for question, cell in zip(rows["question_id"], parents, strict=True)
    ]
    return float(np.mean(counted))


RECOMPUTE: dict[str, Recompute] = {
    "tifa-spearman-is-pearson": spearman_is_pearson,
    "tifa-rouge-rounded-twice": rounded_twice,
    "gecko-tifa160-size": number_of_images,
    "ntire-exchanged-arguments": exchanged_arguments,
    "dsg-unparsable-dependency": unparsable_dependency,
    "dsg-unanswered-prompt": unanswered_prompt,
}
