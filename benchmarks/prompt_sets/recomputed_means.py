"""Mean human ratings of models, from released ratings of their images of a set's prompts."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.genai_bench.benchmark import CARD_1600, GenAiBench
from benchmarks.genai_bench.facts import ALL_PROMPTS, model_means
from benchmarks.prompt_sets.reference_rows import ReferenceRow, ranked
from benchmarks.schema import Benchmark
from benchmarks.tifa160.answers import GOLDS
from benchmarks.tifa160.benchmark import Tifa160
from benchmarks.tifa160.facts import model_means as tifa160_model_means

HUMAN = "human"
_DIGITS = 4

Signature = tuple[tuple[str, int, int], ...]


def genai_means(data: Path | None) -> tuple[ReferenceRow, ...]:
    """Of six models on the 1,600 prompts of GenAI-Bench: over all, and by tag.

    Returns:
        No rows where the ratings are not at hand.

    Raises:
        SubmitterError: `data_malformed`.
    """
    signature = _signature(GenAiBench(CARD_1600), data)
    return _genai_means(data, signature) if signature else ()


def tifa160_means(data: Path | None) -> tuple[ReferenceRow, ...]:
    """Of five models on the 160 prompts of TIFA160, for either set of ratings.

    Returns:
        No rows where one of the sets of ratings is not at hand.

    Raises:
        SubmitterError: `data_malformed`.
    """
    signature = _signature(Tifa160(), data)
    return _tifa160_means(data, signature) if signature else ()


@lru_cache(maxsize=4)
def _genai_means(data: Path | None, signature: Signature) -> tuple[ReferenceRow, ...]:
    del signature
    means = model_means(GenAiBench(CARD_1600).answers(data))
    columns: list[tuple[str | None, str]] = [(None, ALL_PROMPTS)]
    columns += [(skill, skill) for skill in CARD_1600.skills]
    return ranked(
        _row(str(model), float(means.loc[model, column]), skill=skill)
        for model in means.index
        for skill, column in columns
    )


@lru_cache(maxsize=4)
def _tifa160_means(data: Path | None, signature: Signature) -> tuple[ReferenceRow, ...]:
    del signature
    means = tifa160_model_means(Tifa160().answers(data)).set_index("model")
    return ranked(
        _row(str(model), float(means.loc[model, gold]), facet=gold)
        for model in means.index
        for gold in GOLDS
    )


def _row(
    model: str, value: float, *, skill: str | None = None, facet: str | None = None
) -> ReferenceRow:
    return ReferenceRow(model, HUMAN, value, f"{value:.{_DIGITS}f}", skill=skill, facet=facet)


def _signature(benchmark: Benchmark, data: Path | None) -> Signature | None:
    """State of the files of ratings; None where one is missing."""
    folder = benchmark.folder(data)
    needed = [file.path for file in benchmark.card.files if file.role == "answers"]
    return folder.signature() if all(map(folder.has, needed)) else None
