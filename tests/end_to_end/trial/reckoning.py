"""What every board must say, worked out apart: modules run in this process, plain formulas."""

from __future__ import annotations

import importlib.util
import io
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from scipy.stats import rankdata, spearmanr

from benchmarks.croc.load import CrocAnswers
from benchmarks.gecko.load import align
from benchmarks.registry import load_registry
from benchmarks.schema import Questions, ScoreTable
from benchmarks_perf.ts2_protocol import plain_evaluation

_TOGETHER = 64


def scorer_of(folder: Path) -> Any:
    """The scorer of a module, made in this process."""
    name = f"trial_{folder.name}"
    spec = importlib.util.spec_from_file_location(name, folder / "scorer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.Scorer()


def scores_of(scorer: Any, metric: str, benchmark: str) -> ScoreTable:
    """A metric's scores on a demo benchmark, asked in the order in which its pairs stand."""
    asked = load_registry()[benchmark].questions(None)
    overall = [score for some in _batches(asked.pairs) for score in _scored(scorer, asked, some)]
    index = pd.Index([pair.pair_id for pair in asked.pairs], name="pair_id")
    elements = {}
    if asked.elements and hasattr(scorer, "score_elements"):
        elements[metric] = _elements(scorer, asked)
    return ScoreTable(pd.DataFrame({metric: overall}, index=index, dtype=np.float64), elements)


def headline_of(benchmark: str, scores: ScoreTable) -> float:
    """The value by which a demo board ranks, by the formula of its paper."""
    answers = load_registry()[benchmark].answers(None)
    (metric,) = scores.metrics
    given = scores.overall[metric]
    found = {
        "demo_croc": lambda: _scaled_accuracy(given, answers),
        "demo_evalmuse": lambda: _over_images(given, answers),
        "demo_gecko": lambda: _over_templates(scores, answers),
        "demo_ts2": lambda: _over_graphs(given, answers),
    }[benchmark]()
    return float(found)


def ranks_of(values: Mapping[str, float]) -> dict[str, int]:
    """Place of each, the largest value first."""
    places = rankdata([-value for value in values.values()], method="min")
    return {name: int(place) for name, place in zip(values, places, strict=True)}


def means_of(scorer: Any, folder: Path, rows: Sequence[Mapping[str, Any]]) -> float:
    """A metric's mean over the prompts of a model, of each the mean over its seeds."""
    contents = [(folder / row["file"]).read_bytes() for row in rows]
    given = _given(scorer, contents, [row["prompt"] for row in rows])
    by_prompt = defaultdict(list)
    for row, score in zip(rows, given, strict=True):
        by_prompt[row["prompt_id"]].append(score)
    return float(np.mean([np.mean(some) for some in by_prompt.values()]))


def _scaled_accuracy(given: pd.Series, answers: Any) -> float:
    assert isinstance(answers, CrocAnswers)
    cells: dict[str, dict[str, list[float]]] = {
        "text": defaultdict(list),
        "image": defaultdict(list),
    }
    for pair in answers.prompt_pairs:

        def of(images: Sequence[str], text: str) -> np.ndarray:
            return np.array([given[f"{image}|{text}"] for image in images])

        mine, other = pair.original_images, pair.contrast_images
        cells["text"][f"forward {pair.category}"].append(
            float(np.mean(of(mine, "orig") > of(mine, "contrast")))
        )
        cells["text"][f"inverse {pair.category}"].append(
            float(np.mean(of(other, "contrast") > of(other, "orig")))
        )
        cells["image"][f"forward {pair.category}"].append(
            float(np.mean(of(mine, "orig")[:, None] > of(other, "orig")[None, :]))
        )
        cells["image"][f"inverse {pair.category}"].append(
            float(np.mean(of(other, "contrast")[:, None] > of(mine, "contrast")[None, :]))
        )
    # As many categories go forward as back, so a mean over both is the mean of their means.
    return (
        2 * float(np.mean([np.mean([np.mean(v) for v in c.values()]) for c in cells.values()])) - 1
    )


def _over_images(given: pd.Series, answers: Any) -> float:
    rated = answers.images.set_index("pair_id")["label"]
    return float(spearmanr(given[rated.index], rated).statistic)


def _over_templates(scores: ScoreTable, answers: Any) -> float:
    """Spearman's correlation for each model, meant over models, then over templates."""
    benchmark = load_registry()["demo_gecko"]
    human = align(scores, answers, benchmark.plan(answers)).human
    given = scores.overall.iloc[:, 0][list(answers.pairs["pair_id"])].to_numpy()
    models = answers.pairs["model"].to_numpy()
    means = []
    for ratings in human.values():
        rated = np.isfinite(ratings)
        if rated.any():
            chosen = [rated & (models == model) for model in sorted(set(models))]
            means.append(np.mean([spearmanr(given[c], ratings[c]).statistic for c in chosen]))
    return float(np.mean(means))


def _over_graphs(given: pd.Series, answers: Any) -> float:
    ordered = given[list(answers.nodes["pair_id"])].to_numpy()
    return float(np.mean(plain_evaluation(ordered, answers)["rank", "paper"]))


def _scored(scorer: Any, asked: Questions, pairs: Sequence[Any]) -> Sequence[float]:
    contents = [_content(asked, pair.image_id) for pair in pairs]
    return _given(scorer, contents, [asked.texts[pair.text_id] for pair in pairs])


def _given(scorer: Any, contents: Sequence[bytes], prompts: Sequence[str]) -> Sequence[float]:
    """Scores of pairs by the contract: of images as the scorer prepares them, if it does."""
    prepare = getattr(scorer, "prepare", lambda image: image)
    given: Sequence[float] = scorer.score([prepare(_picture(one)) for one in contents], prompts)
    return given


def _elements(scorer: Any, asked: Questions) -> pd.DataFrame:
    rows = []
    for some in _batches(asked.pairs):
        pairs = [pair for pair in some if asked.elements.get(pair.text_id)]
        texts = [[one.text for one in asked.elements[pair.text_id]] for pair in pairs]
        given = scorer.score_elements(
            [_picture(_content(asked, pair.image_id)) for pair in pairs],
            [asked.texts[pair.text_id] for pair in pairs],
            texts,
        )
        for pair, scores in zip(pairs, given, strict=True):
            known = asked.elements[pair.text_id]
            rows += [(pair.pair_id, o.element_id, s) for o, s in zip(known, scores, strict=True)]
    return pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])


def _batches(pairs: Sequence[Any]) -> list[Sequence[Any]]:
    return [pairs[start : start + _TOGETHER] for start in range(0, len(pairs), _TOGETHER)]


_KEPT: dict[str, bytes] = {}


def _content(asked: Questions, image_id: str) -> bytes:
    if image_id not in _KEPT:
        _KEPT[image_id] = asked.images[image_id]()
    return _KEPT[image_id]


@cache
def _picture(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content)).convert("RGB")
