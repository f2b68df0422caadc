"""From the images of a text-to-image model to what every ranked metric says of them.

One metric after the other is asked, those first whose word is worth most by the second. What a
metric gave before for these images, or for the very same image in another set, is not asked again.
A metric that fails is noted with its reason; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.schema import Benchmark, Questions, ScoreTable
from evaluator.isolation.supervising.failures import without_its_words
from evaluator.scoring.column import ScoreColumn
from evaluator.scoring.plan import PLAN_VERSION
from evaluator.scoring.progress import Progress
from evaluator.submission.generations_archive import opened
from evaluator.worker.ending.judging import Scored
from evaluator.worker.running.generations_asked import AskedImage, asked_images, questions_of
from evaluator.worker.running.jury import Jury, Wanted
from evaluator.worker.running.run_records import cost_record
from evaluator.worker.running.runs import Tell
from evaluator.worker.running.scorer_role import ScorerRole
from leaderboard.models.grid import RankedMetric, missing
from leaderboard.records import JudgeRun, Submission

BOX_NOT_ENDED = "box_not_ended"

log = logging.getLogger(__name__)


@dataclass
class GenerationsRun:
    """The images of one model, opened for scoring; see `runs.Run`.

    Attributes:
        submission: whose images they are; the whole record.
        upload: its archive.
        scorers: runs the metrics' modules.
        jury: knows them.
        clock: the current time, with a time zone.
        log: nothing: what metrics print is not for the author of the images.
    """

    submission: Submission
    upload: Path
    scorers: ScorerRole
    jury: Jury
    clock: Callable[[], datetime]
    log: str = field(default="", init=False)

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """See `Run`.

        Raises:
            SubmitterError: `other_revision`, its images are of other prompts than the set has now.
            PlatformError: `upload_changed`, or `not_a_prompt_set`.
            TransientError: a fault of the world, as of a run of a metric's own.
        """
        if not isinstance(benchmark, PromptSet):
            raise PlatformError("not_a_prompt_set", f"{benchmark.name} is no prompt set.")
        _check_revision(self.submission, benchmark)
        kept = self.jury.kept(self.submission, benchmark)
        gave = {name: run for name, run in (kept.judges if kept else {}).items() if not run.failed}
        due = missing(gave, self.jury.metrics())  # what failed before is tried once more
        prompts = benchmark.set_prompts(data)
        of = (benchmark.name, benchmark.card.revision)
        with opened(self.upload) as archive:
            asked = asked_images(archive, prompts, of)
            sitting = _Sitting(self, asked, questions_of(asked, archive, prompts), of, tell)
            known = self.jury.others(self.submission, benchmark)
            wanted = {
                one.pair: Wanted((one.prompt_id, one.row.sha256 or ""), one.perturbed)
                for one in asked
            }
            given = [
                sitting.given(metric, place, len(due), known.of(metric, wanted))
                for place, metric in enumerate(due)
            ]
        return together(benchmark.name, kept, given)


def _check_revision(submission: Submission, prompt_set: PromptSet) -> None:
    drawn, card = submission.images, prompt_set.card
    if drawn is None or drawn.revision in (card.revision, *card.same_questions_as):
        return
    raise SubmitterError(
        "other_revision",
        f"Its images were drawn for revision {drawn.revision} of {card.name}, and here it is at "
        f"{card.revision}.",
        "Draw the prompts as they are now, and send the images as a new version.",
    )


@dataclass(frozen=True)
class Given:
    """What one metric gave.

    Attributes:
        metric: which.
        run: how.
        scores: index pair ids; None where it failed.
        elements: see `ScoreTable`.
    """

    metric: RankedMetric
    run: JudgeRun
    scores: pd.Series[float] | None = None
    elements: pd.DataFrame | None = None


@dataclass(frozen=True)
class _Sitting:
    """All images of a run before one metric after the other."""

    run: GenerationsRun
    asked: Sequence[AskedImage]
    questions: Questions
    of: tuple[str, str]
    tell: Tell

    def given(
        self, metric: RankedMetric, place: int, of_all: int, known: Mapping[str, float]
    ) -> Given:
        """Have a metric score what is not known of it yet.

        Raises:
            TransientError: a fault of the world.
            PlatformError: `box_not_ended`.
        """
        who = JudgeRun(
            submission_id=metric.submission.submission_id,
            metric=metric.submission.metrics[0],
            version=metric.submission.version,
            lower_is_better=bool(metric.submission.lower_is_better),
            scored_at=self.run.clock(),
        )
        if not self.run.scorers.can_run(metric.submission):
            return Given(metric, who.model_copy(update={"failed": _CANNOT}))
        # Elements are not kept by image: where they are asked for, the image is asked about.
        reused = {} if self.questions.elements else known
        left = tuple(pair for pair in self.questions.pairs if pair.pair_id not in reused)
        images = {pair.image_id: self.questions.images[pair.image_id] for pair in left}
        few = replace(self.questions, pairs=left, images=images)
        try:
            column, layers = self._column(metric, few, self._teller(place, of_all))
        except TransientError:
            raise
        except AssayError as error:
            if error.code == BOX_NOT_ENDED:
                raise  # Beside what it left behind no further code may run.
            said = without_its_words(error).message
            log.warning("%s has not scored %s: %s", metric.entry_id, self.of[0], error)
            return Given(metric, who.model_copy(update={"failed": said}))
        scores = _in_order(column, reused, self.asked)
        return Given(metric, self._noted(who, column, layers, scores, len(reused)), scores,
                     None if column is None else column.elements)  # fmt: skip

    def _column(
        self, metric: RankedMetric, questions: Questions, tell: Tell
    ) -> tuple[ScoreColumn | None, tuple[str, ...]]:
        """The scores of what is left, and what isolated the module."""
        scorers, own = self.run.scorers, metric.submission
        _, layers = scorers.boxes.choose(own)
        if not questions.pairs:
            return None, layers
        shards = scorers.shards_of(self.run.submission) / own.submission_id

        def fetch(_: Submission, target: Path) -> None:
            self.run.jury.fetch_code(metric, target)

        with ExitStack() as stack:
            upload = stack.enter_context(scorers.fetched(own, fetch))
            module = stack.enter_context(scorers.open_module(own, upload, shards))
            return module.column(questions, (self.of[0], self._revision), tell), layers

    @property
    def _revision(self) -> str:
        return f"{self.of[1]} of {self.run.submission.content_sha256}"

    def _noted(
        self,
        who: JudgeRun,
        column: ScoreColumn | None,
        layers: tuple[str, ...],
        scores: pd.Series[float],
        reused: int,
    ) -> JudgeRun:
        changes = _changes(scores)
        return who.model_copy(
            update={
                "isolation": layers,
                "cost": None if column is None else cost_record(column.cost),
                "unscored": {} if column is None else dict(column.verdict.unscored),
                "contract": PLAN_VERSION,
                "reused": reused,
                "perturbed": len(changes),
                "mean_change": float(changes.mean()) if len(changes) else None,
                "max_change": float(changes.max()) if len(changes) else None,
            }
        )

    def _teller(self, place: int, of_all: int) -> Tell:
        """Progress over all metrics: each takes about as many images."""
        n = len(self.asked)

        def tell(one: Progress) -> None:
            left = n * (of_all - place) - one.done
            eta = left / one.rate if one.rate else None
            self.tell(replace(one, done=n * place + one.done, total=n * of_all, eta_s=eta))

        return tell


_CANNOT = "The worker that scored these images may not run its code; ask the operator."


def together(benchmark: str, kept: Scored | None, given: Sequence[Given]) -> Scored:
    """What metrics gave before and now.

    Args:
        benchmark: name of the prompt set.
        kept: of before; None: nothing.
        given: of now.
    """
    columns = {} if kept is None else {m: kept.table.overall[m] for m in kept.table.metrics}
    elements = {} if kept is None else dict(kept.table.elements)
    judges = {} if kept is None else dict(kept.judges)
    for one in given:
        judges[one.metric.entry_id] = one.run
        if one.scores is not None:
            columns[one.metric.entry_id] = one.scores
        if one.elements is not None and not one.elements.empty:
            elements[one.metric.entry_id] = one.elements
    table = ScoreTable(
        pd.DataFrame(columns).rename_axis("pair_id"),
        elements,
        directions={name: -1 for name in columns if judges[name].lower_is_better},
    )
    layers = tuple(dict.fromkeys(layer for run in judges.values() for layer in run.isolation))
    return Scored(benchmark, table, layers, judges=judges)


def _in_order(
    column: ScoreColumn | None, known: Mapping[str, float], asked: Sequence[AskedImage]
) -> pd.Series[float]:
    found = dict(known)
    if column is not None:
        found |= {str(pair): float(score) for pair, score in column.overall.items()}
    pairs = [one.pair for one in asked]
    return pd.Series([found[pair] for pair in pairs], index=pd.Index(pairs, name="pair_id"))


def _changes(scores: pd.Series[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How far each score moved by the one-pixel change, where both are there."""
    changed = scores[scores.index.str.endswith("+")]
    before = scores.reindex(changed.index.str.removesuffix("+"))
    moved = np.abs(changed.to_numpy(np.float64) - before.to_numpy(np.float64))
    return moved[np.isfinite(moved)]
