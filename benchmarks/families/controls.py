"""Controls: pseudo-metrics of what has nothing to do with whether an image fits its text.

They run under the protocol of the board and are shown beside its metrics, never ranked: a metric
that is no better than the length of the prompt, or than who made the image, has shown nothing. Which
apply is told by the data: one that says the same of all that is compared is left out. Each counts
with either sign, `position` and `-position`, since nobody says which way a control points.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from PIL import Image, UnidentifiedImageError

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.families.benchmark import CardBenchmark, ItemAnswers
from benchmarks.families.card import ControlName
from benchmarks.families.items import Items
from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.sources.folder import Reader
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES

REVERSED = "-"
"""Before the name of a control whose sign is turned round."""
CONTROLS: Mapping[ControlName, str] = {
    "constant": "the same score for every image",
    "random": "a score drawn from the pair's id: the first eight hexadecimal digits of its SHA-256",
    "prompt_length": "words of the prompt, as spaces divide it",
    "image_size": "width times height of the image, in pixels",
    "file_size": "bytes of the encoded image",
    "aspect": "how far the image is from a square: |ln(width / height)|",
    "position": "place in the list that was released, the first one highest",
    "model_identity": "what people said on average, on all other prompts, of the model that made "
    "the image",
}
"""Name to what it is."""
_OF_IMAGES: tuple[ControlName, ...] = ("image_size", "file_size", "aspect")


@dataclass(frozen=True)
class Controls:
    """Controls of a board under its protocol."""

    measured: Measured  # rows as of metrics, named as the columns of a score table
    half_credit: bool  # whether ties of a control count half, where those of a metric are wrong

    def value(self, control: str, **fields: str | None) -> float:
        """Value of one row, named by its measure, split, skill, variant and facet; NaN if absent."""
        wanted = {"metric": control, "skill": None, **fields}
        found = (
            row.value
            for row in self.measured.rows
            if all(getattr(row, name) == value for name, value in wanted.items())
        )
        return next(found, math.nan)


def run_controls(
    benchmark: CardBenchmark,
    answers: ItemAnswers,
    images: Mapping[str, Reader] | None = None,
    n_resamples: int = DEFAULT_RESAMPLES,
) -> Controls:
    """Every control that applies, with either sign, under the protocol of a board.

    `images`: name of an image to its reader, for controls of encoded images; None where they are not
    at hand.

    Raises:
        SubmitterError: `data_malformed`: an image cannot be read.
    """
    scores = control_scores(benchmark, answers, images)
    lenient = benchmark.with_half_credit()
    return Controls(lenient.evaluate(scores, answers, n_resamples), lenient is not benchmark)


def control_scores(
    benchmark: CardBenchmark,
    answers: ItemAnswers,
    images: Mapping[str, Reader] | None = None,
) -> ScoreTable:
    """Scores of the controls that apply, one column for each sign; see `run_controls`."""
    wanted = benchmark.card.controls.run
    columns: dict[str, FloatArray] = {}
    for name, scores in _all_scores(benchmark, answers, images, wanted or tuple(CONTROLS)).items():
        if name != "constant" and not tells_apart(scores, answers.items):
            continue
        columns[name] = scores
        if name != "constant":
            columns[REVERSED + name] = -scores
    overall = pd.DataFrame(columns, index=pd.Index(answers.pair_ids, name="pair_id"))
    return ScoreTable(overall, benchmark.elements_of_controls(overall, answers))


def tells_apart(scores: FloatArray, items: Items) -> bool:
    """Whether scores differ somewhere among pairs that are compared: within a row, or over all."""
    row, line = items.cells[:, 0], items.cells[:, 2]
    values = pd.Series(scores[line])
    within = not bool((np.bincount(row) <= 1).all())
    groups = values.groupby(row) if within else values.groupby(np.zeros(len(row)))
    return bool((groups.max() > groups.min()).any())


def _all_scores(
    benchmark: CardBenchmark,
    answers: ItemAnswers,
    images: Mapping[str, Reader] | None,
    wanted: Collection[str],
) -> dict[str, FloatArray]:
    pairs = answers.items.pairs
    found: dict[str, FloatArray] = {}
    for name, scores in _OF_PAIRS.items():
        if name in wanted:
            found[name] = scores(pairs)
    if images is not None and any(name in wanted for name in _OF_IMAGES):
        of_images = _image_scores(pairs["image"], images)
        found |= {name: of_images[name] for name in _OF_IMAGES if name in wanted}
    if "model_identity" in wanted and (pairs["model"] != "").any():
        found["model_identity"] = _model_identity(pairs, benchmark.gold_of_pairs(answers))
    return {name: found[name] for name in CONTROLS if name in found}


def _constant(pairs: pd.DataFrame) -> FloatArray:
    return np.zeros(len(pairs))


def _random(pairs: pd.DataFrame) -> FloatArray:
    digests = (hashlib.sha256(name.encode()).hexdigest() for name in pairs["pair_id"])
    return np.array([int(digest[:8], 16) for digest in digests], np.float64)


def _prompt_length(pairs: pd.DataFrame) -> FloatArray:
    return pairs["text"].str.split().map(len).to_numpy(np.float64)


def _position(pairs: pd.DataFrame) -> FloatArray:
    return -pairs["position"].to_numpy(np.float64)


_OF_PAIRS: Mapping[ControlName, Callable[[pd.DataFrame], FloatArray]] = {
    "constant": _constant,
    "random": _random,
    "prompt_length": _prompt_length,
    "position": _position,
}


def _image_scores(names: pd.Series, images: Mapping[str, Reader]) -> dict[str, FloatArray]:
    """Scores of the encoded images, by control; only the head of each is decoded."""
    figures = {name: _figures(name, images[name]()) for name in names.drop_duplicates()}
    size, width, height = np.array([figures[name] for name in names], np.float64).T
    return {
        "image_size": width * height,
        "file_size": size,
        "aspect": np.abs(np.log(width / height)),
    }


def _figures(name: str, content: bytes) -> tuple[int, int, int]:
    try:
        with Image.open(io.BytesIO(content)) as image:
            return len(content), *image.size
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError) as error:
        raise SubmitterError(
            "data_malformed", f"Image {name!r} cannot be read: {error}.", "Fetch it again."
        ) from error


def _model_identity(pairs: pd.DataFrame, gold: FloatArray) -> FloatArray:
    """Mean gold of each pair's model over the other prompts; NaN where it has none there."""
    known = np.isfinite(gold)
    sums = pd.DataFrame(
        {
            "model": pairs["model"].to_numpy(object),
            "prompt": pairs["prompt_id"].to_numpy(object),
            "gold": np.where(known, gold, 0.0),
            "n": known.astype(np.float64),
        }
    )
    of_model = sums.groupby("model")[["gold", "n"]].transform("sum")
    of_prompt = sums.groupby(["model", "prompt"])[["gold", "n"]].transform("sum")
    others = of_model - of_prompt
    named = (sums["model"] != "").to_numpy(bool) & (others["n"] > 0).to_numpy(bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(named, others["gold"] / others["n"], np.nan)
