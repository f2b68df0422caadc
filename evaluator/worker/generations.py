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
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from benchmarks.parquet import read_stored
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt, pair_id
from benchmarks.schema import Benchmark, Element, Pair, Questions, ScoreTable
from benchmarks.statistics.resampling import seed_of
from evaluator.generation.manifest import ImageRow
from evaluator.isolation.failures import without_its_words
from evaluator.scoring.asking import PLAN_VERSION
from evaluator.scoring.column import ScoreColumn
from evaluator.scoring.images import decode, one_step_brighter
from evaluator.scoring.progress import Progress
from evaluator.submission.generations.archive import GenerationsArchive, opened
from evaluator.submission.runs import Scored, Tell
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.tasks import about
from leaderboard.accounts import ASSAY
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.ledger.private_records import results_folder
from leaderboard.models.grid import (
    PERTURBED,
    RankedMetric,
    images_to_score,
    missing,
    ranked_metrics,
)
from leaderboard.models.pictures import image_hashes, images_path
from leaderboard.models.reading import scores_path
from leaderboard.publication.model_entries import ModelEntry, ModelTrack, readable_track
from leaderboard.publication.results import read_result
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event, JudgeRun, Kind, Status, Submission
from leaderboard.replay import asked_by
from leaderboard.states import NEW_METRIC, State
from leaderboard.store.interface import NotFoundError, Store

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Prompt id and SHA-256 of the image's file."""
_UNREADABLE = (NotFoundError, pa.ArrowException, KeyError, ValueError)
"""What comes of a file of results that somebody removed or damaged."""


class RequestedPair(NamedTuple):
    """What is shown in a pair."""

    image: Key
    perturbed: bool


@dataclass(frozen=True)
class JudgeSet:
    """Reads the store for those who score generations."""

    store: Store  # where boards, code and results are

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.store)

    def metrics(self) -> tuple[RankedMetric, ...]:
        """The metrics that score, in the order in which they are to be asked."""
        return ranked_metrics(read_snapshot(self.store.public), self._ledger.statuses())

    def fetch_code(self, module: Submission, target: Path) -> None:
        """Copy the module of a metric to a new file."""
        self._ledger.fetch_upload(module, target)

    def kept(self, submission: Submission, benchmark: Benchmark) -> Scored | None:
        """What metrics gave for these images before; None where all are to score them.

        What is queued for further metrics builds on it. What somebody wants to have run again, for
        a reason of theirs, does not.
        """
        events = self._ledger.whole_events(submission.submission_id)
        if asked_by(events).code != NEW_METRIC:
            return None
        result = read_result(self.store, submission, benchmark.name)
        if result is None or result.revision != benchmark.card.revision:
            return None
        name = submission.submission_id
        repository, path = self.store.public, scores_path(name, benchmark.name)
        if submission.private:
            repository = self.store.private
            path = f"{results_folder(name)}{benchmark.name}.scores.parquet"
        try:
            table = read_stored(repository.read(path))
        except (NotFoundError, pa.ArrowException, ValueError) as error:
            log.warning("The scores of %s are made anew: %s", name, error)
            return None
        return Scored(benchmark.name, table, result.isolation, judges=result.judges)

    def others(self, submission: Submission, benchmark: Benchmark) -> Reusable:
        """What metrics gave for images of other models, to be looked up by image.

        Nothing, where somebody wants to have it run again for a reason of theirs.
        """
        name = submission.submission_id
        again = self._ledger.whole_status(name).scored_at is not None
        if again and asked_by(self._ledger.whole_events(name)).code != NEW_METRIC:
            return Reusable(self.store, [])
        entries = readable_track(self.store.public).of(benchmark.name, benchmark.card.revision)
        return Reusable(self.store, [one for one in entries if one.submission_id != name])


class Reusable:
    """Scores of the very same images of the same prompts in other sets."""

    def __init__(self, store: Store, entries: list[ModelEntry]) -> None:
        self._store = store
        self._entries = entries
        self._hashes: dict[str, Mapping[Key, int]] = {}
        self._overall: dict[str, pd.DataFrame] = {}

    def of(self, metric: RankedMetric, wanted: Mapping[str, RequestedPair]) -> dict[str, float]:
        """Pair ids to scores that are known already."""
        found: dict[str, float] = {}
        for entry in self._entries:
            run = entry.judges.get(metric.entry_id)
            if run is None or run.failed or run.contract != PLAN_VERSION:
                continue
            here = self._seeds(entry)
            same = {
                pair: pair_id(one.image[0], here[one.image], perturbed=one.perturbed)
                for pair, one in wanted.items()
                if one.image in here
            }
            if same:
                found |= self._scores(entry, metric.entry_id, same)
        return found

    def _seeds(self, entry: ModelEntry) -> Mapping[Key, int]:
        """Image to the seed it is there with."""
        if entry.submission_id not in self._hashes:
            path = images_path(entry.submission_id, entry.prompt_set)
            try:
                table = image_hashes(self._store.public.read(path))
            except _UNREADABLE as error:
                table = _skip_unreadable(path, error)
            self._hashes[entry.submission_id] = table
        return self._hashes[entry.submission_id]

    def _scores(self, entry: ModelEntry, judge: str, same: Mapping[str, str]) -> dict[str, float]:
        path = scores_path(entry.submission_id, entry.prompt_set)
        try:
            if path not in self._overall:
                self._overall[path] = read_stored(self._store.public.read(path)).overall
            column: pd.Series[float] = self._overall[path][judge]
        except _UNREADABLE as error:
            return _skip_unreadable(path, error)
        known = {pair: column.get(theirs) for pair, theirs in same.items()}
        return {pair: float(s) for pair, s in known.items() if s is not None and pd.notna(s)}


def _skip_unreadable(path: str, error: Exception) -> dict[Any, Any]:
    """Nothing: another model's broken file costs time, and is no reason for this one to fail."""
    log.warning("Nothing is taken over from %s: %s", path, error)
    return {}


@dataclass(frozen=True)
class AskedImage:
    """One image of a prompt of the set."""

    pair: str  # of the prompt and the image
    prompt_id: str  # of the prompt
    row: ImageRow  # of the archive
    perturbed: bool  # whether it is asked about after the one-pixel change


def asked_images(
    archive: GenerationsArchive, prompts: Sequence[SetPrompt], of: tuple[str, str]
) -> tuple[AskedImage, ...]:
    """Every image of the set's prompts; then those of a sample of prompts, changed by one pixel.

    The sample, at most 200 prompts with the first seed they have, is drawn from the seed of the
    prompt set, so that it is the same for every model and every metric (Re-Thinking, robustness).
    """
    known = {one.prompt_id for one in prompts}
    rows = [row for row in archive.images if row.prompt_id in known]
    plain = [
        AskedImage(pair_id(row.prompt_id, row.seed), row.prompt_id, row, perturbed=False)
        for row in rows
    ]
    first: dict[str, ImageRow] = {}
    for row in sorted(rows, key=lambda row: row.seed):
        first.setdefault(row.prompt_id, row)
    drawn = np.random.default_rng(seed_of(*of)).permutation(len(prompts))[:PERTURBED]
    sample = [prompts[place].prompt_id for place in sorted(drawn)]
    changed = [
        AskedImage(
            pair_id(name, first[name].seed, perturbed=True), name, first[name], perturbed=True
        )
        for name in sample
        if name in first
    ]
    return (*plain, *changed)


def questions_of(
    asked: Sequence[AskedImage], archive: GenerationsArchive, prompts: Sequence[SetPrompt]
) -> Questions:
    """What a metric is asked; images are read when they are wanted."""
    images: dict[str, Callable[[], bytes]] = {}
    for one in asked:
        read = partial(archive.read, one.row)
        images[one.pair] = partial(_changed, read) if one.perturbed else read
    wanted = {one.prompt_id for one in asked}
    return Questions(
        images,
        {p.prompt_id: p.text for p in prompts if p.prompt_id in wanted},
        tuple(Pair(one.pair, one.pair, one.prompt_id) for one in asked),
        {
            p.prompt_id: tuple(Element(e.element_id, e.text) for e in p.elements)
            for p in prompts
            if p.elements and p.prompt_id in wanted
        },
    )


def _changed(read: Callable[[], bytes]) -> bytes:
    """The image one step brighter as metrics see it, upright and flattened: no more differs."""
    return one_step_brighter(decode(read()).image)


BOX_NOT_ENDED = "box_not_ended"


@dataclass
class GenerationsRun:
    """The images of one model, opened for scoring; see `runs.Run`."""

    submission: Submission  # whose images they are; the whole record
    upload: Path  # its archive
    scorers: ScorerRole  # runs the metrics' modules
    judge_set: JudgeSet  # knows them
    clock: Callable[[], datetime]  # the current time, with a time zone
    # nothing: what metrics print is not for the author of the images
    log: str = field(default="", init=False)

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """See `Run`."""
        if not isinstance(benchmark, PromptSet):
            raise PlatformError("not_a_prompt_set", f"{benchmark.name} is no prompt set.")
        _check_revision(self.submission, benchmark)
        kept = self.judge_set.kept(self.submission, benchmark)
        gave = {name: run for name, run in (kept.judges if kept else {}).items() if not run.failed}
        due = missing(gave, self.judge_set.metrics())  # what failed before is tried once more
        prompts = benchmark.set_prompts(data)
        of = (benchmark.name, benchmark.card.revision)
        with opened(self.upload) as archive:
            asked = asked_images(archive, prompts, of)
            sitting = _Sitting(self, asked, questions_of(asked, archive, prompts), of, tell)
            known = self.judge_set.others(self.submission, benchmark)
            wanted = {
                one.pair: RequestedPair((one.prompt_id, one.row.sha256 or ""), one.perturbed)
                for one in asked
            }
            modules = by_module(due)
            given = [
                scores
                for place, metrics in enumerate(modules)
                for scores in sitting.scores_of(
                    metrics, place, len(modules), [known.of(one, wanted) for one in metrics]
                )
            ]
        return merged_scores(benchmark.name, kept, given)


def by_module(metrics: Sequence[RankedMetric]) -> list[list[RankedMetric]]:
    """Outputs of one module together, in the order of the first of each: it is asked once."""
    found: dict[str, list[RankedMetric]] = {}
    for one in metrics:
        found.setdefault(one.submission.submission_id, []).append(one)
    return list(found.values())


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
class JudgeScores:
    """What one metric gave."""

    metric: RankedMetric  # which
    run: JudgeRun  # how
    scores: pd.Series[float] | None = None  # index pair ids; None where it failed
    elements: pd.DataFrame | None = None  # see `ScoreTable`


@dataclass(frozen=True)
class _Sitting:
    """All images of a run before one metric after the other."""

    run: GenerationsRun
    asked: Sequence[AskedImage]
    questions: Questions
    of: tuple[str, str]
    tell: Tell

    def scores_of(
        self,
        metrics: Sequence[RankedMetric],
        place: int,
        of_all: int,
        known: Sequence[Mapping[str, float]],
    ) -> list[JudgeScores]:
        """Have a module score what is not known of all of these metrics of it yet.

        `known`: of each metric, pair ids to scores.
        """
        module, at = metrics[0].submission, self.run.clock()
        who = [
            JudgeRun(
                submission_id=module.submission_id,
                metric=one.metric,
                version=module.version,
                lower_is_better=one.metric in module.lower_is_better,
                scored_at=at,
            )
            for one in metrics
        ]

        def failed(why: str) -> list[JudgeScores]:
            return [
                JudgeScores(metric, one.model_copy(update={"failed": why}))
                for metric, one in zip(metrics, who, strict=True)
            ]

        if not self.run.scorers.can_run(module):
            return failed(_CANNOT)
        # Elements are not kept by image: where they are asked for, the image is asked about.
        ids = set() if self.questions.elements else set.intersection(*map(set, known))
        left = tuple(pair for pair in self.questions.pairs if pair.pair_id not in ids)
        images = {pair.image_id: self.questions.images[pair.image_id] for pair in left}
        few = replace(self.questions, pairs=left, images=images)
        try:
            column, layers = self._column(module, few, self._teller(place, of_all))
        except TransientError:
            raise
        except AssayError as error:
            if error.code == BOX_NOT_ENDED:
                raise  # Beside what it left behind no further code may run.
            said = without_its_words(error).message
            log.warning("%s has not scored %s: %s", module.submission_id, self.of[0], error)
            return failed(said)
        columns = dict(zip(module.metrics, column.outputs, strict=True)) if column else {}
        found = []
        for metric, one, of_metric in zip(metrics, who, known, strict=True):
            own = columns.get(metric.metric)
            reused = {pair: of_metric[pair] for pair in ids}
            scores = _in_order(own, reused, self.asked)
            noted = self._noted(one, own, layers, scores, len(reused))
            found.append(JudgeScores(metric, noted, scores, own.elements if own else None))
        return found

    def _column(
        self, own: Submission, questions: Questions, tell: Tell
    ) -> tuple[ScoreColumn | None, tuple[str, ...]]:
        """The scores of what is left, and what isolated the module."""
        scorers = self.run.scorers
        layers = scorers.layers_of(own)
        if not questions.pairs:
            return None, layers
        shards = scorers.shards_of(self.run.submission) / own.submission_id

        def fetch(_: Submission, target: Path) -> None:
            self.run.judge_set.fetch_code(own, target)

        with ExitStack() as stack:
            upload = stack.enter_context(scorers.fetched(own, fetch))
            module = stack.enter_context(scorers.open_module(own, upload, shards))
            name, revision = self.of
            return module.column(
                questions, (name, f"{revision} of {self.run.submission.content_sha256}"), tell
            ), layers

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
                "cost": None if column is None else column.cost,
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


def merged_scores(benchmark: str, kept: Scored | None, given: Sequence[JudgeScores]) -> Scored:
    """What metrics gave before and now."""
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


AT_ONCE = 100
"""Submissions in one commit; each has its own file of events."""
_NAMED = 8
_FINISHED = frozenset({State.PUBLISHED, State.HELD})


@dataclass
class Backfill:
    """Fills the grid of metrics and generations."""

    store: Store  # where both are
    judge_set: JudgeSet  # knows the ranked metrics
    # prompt sets as they are now; what was drawn for other prompts is on no board
    registry: Mapping[str, Benchmark] = field(default_factory=dict)
    _looked: str = ""
    _seen: tuple[str, ModelTrack, tuple[RankedMetric, ...]] | None = None

    def look(self) -> bool:
        """Queue what further metrics have to score; False where there is nothing.

        Nothing is read where the store is as it was.
        """
        head = self.store.public.head()
        if head == self._looked:
            return False
        found = self.due()
        for start in range(0, len(found), AT_ONCE):
            self._queue(dict(list(found.items())[start : start + AT_ONCE]))
        self._looked = head if not found else self.store.public.head()
        return bool(found)

    def due(self) -> dict[str, list[RankedMetric]]:
        """Finished generations to the metrics that have not scored them, of most worth first."""
        ledger = Ledger(self.store)
        finished = (
            status
            for status in ledger.statuses()
            if status.submission.kind is Kind.GENERATIONS and status.state in _FINISHED
        )
        whole = (_whole(ledger, status) for status in finished)
        drawn = [status for status in whole if status is not None and self._is_of_now(status)]
        if not drawn:
            return {}
        track, metrics = self._now()
        lacking = [(status, missing(self._judged(status, track), metrics)) for status in drawn]
        wanted = [(status, due) for status, due in lacking if due]
        wanted.sort(key=lambda one: -worth_of(one[0], one[1]))
        return {status.submission.submission_id: due for status, due in wanted}

    def _is_of_now(self, status: Status) -> bool:
        """Whether a set was drawn for the prompts that its prompt set has now."""
        images = status.submission.images
        known = self.registry.get(images.prompt_set) if images else None
        if images is None or known is None:
            return True
        return images.revision in (known.card.revision, *known.card.same_questions_as)

    def worth(self, status: Status) -> float:
        """What it is worth by the second to score a set that waits."""
        track, metrics = self._now()
        return worth_of(status, missing(self._judged(status, track), metrics))

    def _now(self) -> tuple[ModelTrack, tuple[RankedMetric, ...]]:
        """The models and the ranked metrics, read once for each version of the store."""
        head = self.store.public.head()
        if self._seen is None or self._seen[0] != head:
            self._seen = head, readable_track(self.store.public), self.judge_set.metrics()
        return self._seen[1:]

    def _judged(self, status: Status, track: ModelTrack) -> Mapping[str, JudgeRun]:
        """The metrics that have scored a set, or could not."""
        entry = track.entries.get(status.submission.submission_id)
        if entry is not None:
            return entry.judges
        names = status.submission.benchmarks
        results = (read_result(self.store, status.submission, name) for name in names)
        return next((result.judges for result in results if result is not None), {})

    def _queue(self, found: Mapping[str, list[RankedMetric]]) -> None:
        ledger = Ledger(self.store)

        def batch() -> Batch:
            now = self.store.clock()
            left = {n: due for n, due in found.items() if ledger.status(n).state in _FINISHED}
            return Batch(
                events={
                    name: [
                        Event(
                            at=now,
                            state=State.QUEUED,
                            by=ASSAY.key,
                            code=NEW_METRIC,
                            reason=_reason(due),
                        )
                    ]
                    for name, due in left.items()
                }
            )

        ledger.write(batch, f"{len(found)} sets of generations for further metrics")
        log.info("%d sets of generations are to be scored by further metrics.", len(found))


def _whole(ledger: Ledger, status: Status) -> Status | None:
    """The submission with its whole record; None where that cannot be read: it stops nobody else."""
    if not status.submission.private:
        return status
    name = status.submission.submission_id
    try:
        return ledger.whole_status(name)
    except PlatformError as error:
        log.warning("Passed over for further metrics: %s", error, extra=about(name))
        return None


def worth_of(status: Status, due: list[RankedMetric]) -> float:
    """What it is worth by the second to have metrics score a set."""
    images = status.submission.images
    if images is None or not due:
        return 0.0
    n = images_to_score(images)
    seconds = sum(outputs[0].expected_s(n) for outputs in by_module(due))
    return sum(1.0 + one.first_tiers for one in due) / seconds


def _reason(due: list[RankedMetric]) -> str:
    names = ", ".join(one.title for one in due[:_NAMED])
    more = f" and {len(due) - _NAMED} more" if len(due) > _NAMED else ""
    return f"It is scored by further metrics: {names}{more}. What others gave stays."
