"""Scores of two folders of images by metrics: what is known comes from the cache."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.statistics.better_or_tied import MARGIN
from evaluator.ab.comparison import Comparison, MetricScores, mean_scores, unscored
from evaluator.ab.images import DrawnImages, fingerprint
from evaluator.ab.score_cache import ScoreCache
from evaluator.metric import MetricSource
from evaluator.scoring.asking import ScoringPlan
from evaluator.scoring.column import ShardFolder, run_fingerprint
from evaluator.scoring.engine import run_plan
from evaluator.scoring.progress import Listener


def metric_scores(
    known: MetricSource,
    drawn: DrawnImages,
    cache: ScoreCache,
    listener: Listener | None = None,
    skills: frozenset[str | None] | None = None,
) -> MetricScores:
    """Score the images of both models; each content with each prompt is asked about once.

    What is scored is kept, of an interrupted run too.

    Raises:
        SubmitterError: the metric's code failed, or it gave no image a score (`nothing_scored`).
        PlatformError: the metric or its device failed.
    """
    pairs = drawn.pairs()
    left = [pair for pair in pairs if cache.get(*pair) is None]
    if left:
        _score(known, drawn, cache, left, listener)
    scores = {pair: value for pair in pairs if (value := cache.get(*pair)) is not None}
    values = mean_scores(drawn, scores)
    if not np.isfinite(values).any():
        raise SubmitterError(
            "nothing_scored", f"{known.name} gave none of the {len(pairs)} pairs a score."
        )
    return MetricScores(
        known.name, known.title, known.higher_is_better, values, skills, unscored(drawn, scores)
    )


def _score(
    known: MetricSource,
    drawn: DrawnImages,
    cache: ScoreCache,
    left: Sequence[tuple[str, str]],
    listener: Listener | None,
) -> None:
    """Score pairs into the cache, those too that are scored when the run is stopped."""
    asked = drawn.questions(left)
    run = run_fingerprint(
        submission=known.source.fingerprint, benchmark="ab", revision=fingerprint(left)
    )
    shards = ShardFolder(cache.work, run)
    try:
        run_plan(
            ScoringPlan.of(asked, bytes.fromhex(run)),
            asked,
            known.source,
            shards,
            listener,
            outputs=len(known.outputs) or 1,
        )
    except PlatformError as error:
        if error.code != "image_unreadable":  # every new one changed: none has a score
            raise
    finally:
        kept = shards.load({str(place) for place in range(len(left))})
        cache.add(
            (*left[int(place)], (value, *kept.others.get(place, ()))[known.place])
            for place, value in kept.scores.items()
        )
        shutil.rmtree(cache.work, ignore_errors=True)


JudgingMetric = tuple[MetricSource, frozenset[str | None] | None]
"""A metric, and the skills that it judges; None: all."""


@dataclass(frozen=True)
class FolderScorer:
    """Metrics that judge, how their scores are compared, and where these are kept."""

    metrics: tuple[JudgingMetric, ...]
    cache: Path  # folder
    margin: float = MARGIN
    sub_skills: bool = False
    listener_of: Callable[[str], Listener | None] = lambda _: None

    @property
    def identities(self) -> tuple[str, ...]:
        """Name and fingerprint of each metric."""
        return tuple(
            f"{one.name} {fingerprint([one.source.fingerprint])}" for one, _ in self.metrics
        )

    def compared(
        self, names: tuple[str, str], drawn: DrawnImages, only: frozenset[str] | None = None
    ) -> Comparison:
        """Compare the two models; `only`: by metrics of these names."""
        found = [
            metric_scores(
                known,
                drawn,
                ScoreCache(self.cache, known.source.fingerprint + known.name),
                self.listener_of(known.name),
                skills,
            )
            for known, skills in self.metrics
            if only is None or known.name in only
        ]
        return Comparison(*names, drawn, tuple(found), self.margin, self.sub_skills)


def judging_metrics(
    judges: Mapping[str, frozenset[str | None] | None],
    find: Callable[[str], AbstractContextManager[MetricSource]],
    until: ExitStack,
) -> tuple[JudgingMetric, ...]:
    """Find each metric by its name; they stay at hand until the stack is left.

    Raises:
        SubmitterError: there is no such metric, or two have one name.
    """
    found: dict[str, JudgingMetric] = {}
    for given, skills in judges.items():
        known = until.enter_context(find(given))
        if known.name in found:
            raise SubmitterError(
                "same_metric",
                f"Two metrics are called {known.name}.",
                "Give one of them another name in its assay.toml.",
            )
        found[known.name] = known, skills
    return tuple(found.values())
