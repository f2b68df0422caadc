"""The author's dry run: what the worker does with a module, on a part of some benchmarks.

The same two sandboxes (one for the trust checks, a fresh one for the run), the same engine and the
same protocols; nothing is kept. From it follow the receipt, the time of a whole run, and later whether
the run's scores agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.croc.load import TEXTS, CrocAnswers, pair_id
from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.gecko.load import GeckoAnswers
from benchmarks.rows import Measured, Row
from benchmarks.schema import Answers, Benchmark, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, seed_of
from benchmarks.ts2.load import Ts2Answers
from evaluator.isolation.backend import Backend
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Job, Limits, ModelFiles
from evaluator.isolation.session import ScorerSession
from evaluator.scoring.engine import LocalEngine
from evaluator.scoring.progress import Progress
from evaluator.scoring.sandbox import ASKED_FOR_OUTPUTS
from evaluator.submission.costs import (
    Costs,
    Projection,
    Ran,
    measured,
    of_questions,
    pace_of,
    projections,
    trust_span_s,
)
from evaluator.submission.receipts import environment_versions
from evaluator.submission.runs import ModuleRun, ModuleWork, Scored
from evaluator.submission.validate import ScoringModule
from leaderboard.publication.results import scores_sha256
from leaderboard.records import Kind, Receipt, Submission
from leaderboard.trust import TrustReport

USUAL_PAIRS = 400
"""Asked in a check, of all its benchmarks together, where its author says nothing else."""


class Drawn(Benchmark):
    """A benchmark of which some clusters are asked; its protocol is unchanged."""

    def __init__(self, whole: Benchmark, data: Path | None, pairs: int | None) -> None:
        self.card = whole.card
        self.further = whole.further
        self._whole = whole
        answers, questions = whole.answers(data), whole.questions(data)
        self.n_pairs_whole = len(questions.pairs)
        if pairs is not None and pairs < len(questions.pairs):
            n = round(len(answers.clusters) * pairs / len(questions.pairs))
            seed = seed_of(whole.name, whole.card.revision)
            answers = narrowed(answers, evenly(answers.clusters, max(n, 2), seed))
            questions = only_pairs(questions, frozenset(answers.pair_ids))
        self._answers, self._questions = answers, questions

    @property
    def n_pairs(self) -> int:
        """How many are asked."""
        return len(self._questions.pairs)

    def answers(self, data: Path | None) -> Answers:
        """The answer side of what was drawn."""
        del data
        return self._answers

    def questions(self, data: Path | None) -> Questions:
        """The question side of what was drawn."""
        del data
        return self._questions

    def has_questions(self, data: Path | None) -> bool:
        """They were loaded."""
        del data
        return True

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """The benchmark's own protocol."""
        return self._whole.measure(scores, answers, plan)

    @property
    def compares_images(self) -> bool:
        """As in the benchmark's own protocol."""
        return self._whole.compares_images

    def within_text(self, row: Row) -> bool:
        """As in the benchmark's own protocol."""
        return self._whole.within_text(row)


def evenly(clusters: Sequence[str], n: int, seed: int) -> tuple[str, ...]:
    """One cluster from each of `n` stretches of about the same length, in their order.

    Neighbours mostly share a skill, so every skill gets its share.
    """
    if n >= len(clusters):
        return tuple(clusters)
    rng = np.random.default_rng(seed)
    ends = np.linspace(0, len(clusters), n + 1).astype(int)
    places = [int(rng.integers(ends[i], ends[i + 1])) for i in range(n)]
    return tuple(clusters[place] for place in places)


def only_pairs(questions: Questions, pair_ids: frozenset[str]) -> Questions:
    """The question side of some pairs."""
    pairs = tuple(pair for pair in questions.pairs if pair.pair_id in pair_ids)
    images = {pair.image_id: questions.images[pair.image_id] for pair in pairs}
    texts = {pair.text_id: questions.texts[pair.text_id] for pair in pairs}
    elements = {text: its for text, its in questions.elements.items() if text in texts}
    return Questions(images, texts, pairs, elements, questions.lists)


@singledispatch
def narrowed(answers: Answers, clusters: Sequence[str]) -> Answers:
    """The answer side of some clusters; answers of a kind that is not known stay whole."""
    del clusters
    return answers


@narrowed.register
def _croc(answers: CrocAnswers, clusters: Sequence[str]) -> Answers:
    wanted = set(clusters)
    prompt_pairs = tuple(pair for pair in answers.prompt_pairs if pair.id in wanted)
    there = {pair_id(i, text) for pair in prompt_pairs for i in pair.images for text in TEXTS}
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, there),
        clusters=tuple(clusters),
        prompt_pairs=prompt_pairs,
    )


@narrowed.register
def _ts2(answers: Ts2Answers, clusters: Sequence[str]) -> Answers:
    nodes = answers.nodes[answers.nodes["graph"].isin(list(clusters))].reset_index(drop=True)
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, set(nodes["pair_id"])),
        clusters=tuple(clusters),
        nodes=nodes,
    )


@narrowed.register
def _evalmuse(answers: EvalMuseAnswers, clusters: Sequence[str]) -> Answers:
    images = answers.images[answers.images["prompt_id"].isin(list(clusters))]
    there = set(images["pair_id"])
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, there),
        clusters=tuple(clusters),
        images=images.reset_index(drop=True),
        elements=answers.elements[answers.elements["pair_id"].isin(there)].reset_index(drop=True),
    )


@narrowed.register
def _gecko(answers: GeckoAnswers, clusters: Sequence[str]) -> Answers:
    wanted = list(clusters)
    prompts, pairs, ratings = (
        table[table["prompt_id"].isin(wanted)].reset_index(drop=True)
        for table in (answers.prompts, answers.pairs, answers.ratings)
    )
    return replace(
        answers,
        pair_ids=_among(answers.pair_ids, set(pairs["pair_id"])),
        clusters=tuple(clusters),
        prompts=prompts,
        pairs=pairs,
        ratings=ratings,
    )


def _among(pair_ids: Sequence[str], there: set[str]) -> tuple[str, ...]:
    return tuple(pair_id for pair_id in pair_ids if pair_id in there)


JOINED = "+"
"""Between the names of the benchmarks of a receipt."""
_SAMPLE = 16
_STARTS = 2
"""Sandboxes that a worker starts for a submission, one after the other."""
_TESTING = "checking"
"""The stage that a run tells after each pass of the trust checks."""

Tell = Callable[[str, Progress], None]
"""Told of the benchmark and how far it is."""


@dataclass(frozen=True)
class Machine:
    """What a dry run is made on."""

    backend: Backend  # starts the box
    layers: tuple[str, ...]  # what isolates in it
    limits: Limits  # of the worker
    models: tuple[ModelFiles, ...]  # of the Hub, which the module names
    scratch: Path  # an empty folder
    environment: Path | None = None  # packages of the module; None: Assay's own


@dataclass(frozen=True)
class BenchmarkRun:
    """One benchmark of a dry run."""

    drawn: Drawn  # what was asked
    scored: Scored  # what came back
    rows: tuple[Row, ...]  # every measure, on what was asked alone
    testing_s: float  # of the trust checks; 0 where every metric was tested before
    asking_s: float  # until every pair had its score, reading and waiting included
    measuring_s: float  # from scores to measures

    @property
    def seconds(self) -> float:
        """All of it, without the start."""
        return self.testing_s + self.asking_s + self.measuring_s

    @property
    def scores(self) -> Mapping[str, pd.Series[float]]:
        """Metric to its scores by pair id; NaN where there is none."""
        table = self.scored.table
        return {name: table.overall[name] for name in table.metrics}


@dataclass
class DryRun:
    """What a dry run found, as far as it came."""

    layers: tuple[str, ...]  # what isolated
    # until the scorer was imported and constructed in its first sandbox; None where it was not
    start_s: float | None = None
    capabilities: Capability = Capability.SCORE  # what it can do
    runs: list[BenchmarkRun] = field(default_factory=list)  # the benchmarks that are through
    # what an image, a text and a pair cost; None where that was not reached, or two are compared
    costs: Costs | None = None
    peak_memory_bytes: int = 0  # of all processes of one sandbox
    log: str = ""  # what the module printed in its last sandbox, harmless to show
    failure: SubmitterError | None = None  # what ended it; None where it went through

    @property
    def reports(self) -> Mapping[str, TrustReport]:
        """Metric to its checks, which are made on the first benchmark that it is on."""
        return {name: one for run in self.runs for name, one in run.scored.reports.items()}

    @property
    def trust(self) -> TrustReport | None:
        """The checks of a module with one output; None of several."""
        return self.runs[0].scored.trust if self.runs else None

    @property
    def pairs(self) -> int:
        """That were asked."""
        return sum(run.drawn.n_pairs for run in self.runs)


def dry_run(
    module: ScoringModule,
    benchmarks: Sequence[Drawn],
    machine: Machine,
    tell: Tell,
    now: datetime,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> DryRun:
    """Run a module; what is wrong with it is told in the result, not raised."""
    manifest, found = module.manifest, DryRun(machine.layers)
    job = Job(
        module.content.folder,
        manifest.entry_point,
        manifest.weights or None,
        machine.limits,
        models=machine.models,
        environment=machine.environment,
    )
    sessions: list[ScorerSession] = []
    with ExitStack() as sandboxes:

        def start() -> ScorerSession:
            sessions.append(machine.backend.start(job))
            sandboxes.callback(sessions[-1].close)
            return sessions[-1]

        work = ModuleWork(
            _as_submission(module, benchmarks, now),
            machine.layers,
            machine.scratch / "shards",
            LocalEngine(),
        )
        run = ModuleRun.in_sandboxes(work, start, sandboxes)
        try:
            for one in benchmarks:
                found.runs.append(_run(run, one, sessions, tell, clock))
            if module.manifest.method == "score":
                found.costs = _costs(sessions[-1], benchmarks, work.submission.outputs)
        except SubmitterError as error:
            found.failure = error
    ready = [one for one in sessions if one.start_s is not None]
    if ready:
        found.start_s, found.capabilities = ready[0].start_s, ready[0].capabilities
        if manifest.outputs:
            found.capabilities &= ASKED_FOR_OUTPUTS
    found.peak_memory_bytes = max((one.peak_memory_bytes for one in sessions), default=0)
    # Once the sandboxes have ended, nothing more is printed.
    found.log = run.log
    return found


def receipt_of(module: ScoringModule, found: DryRun, now: datetime) -> Receipt:
    """The receipt of a dry run that went through; its pair ids are `benchmark/pair_id`."""
    of_metrics = module.manifest.of_metrics
    columns = [
        _for_receipt(run.scored.table.overall[on], run.drawn.name)
        for run in found.runs
        if (
            on := [
                m for m in run.scores if of_metrics[m].is_on(run.drawn.name, run.drawn.card.kind)
            ]
        )
    ] or [pd.Series(dtype="float64")]
    return Receipt(
        content_sha256=module.content.sha256,
        versions=environment_versions(module.environment),
        isolation=found.layers,
        benchmark=JOINED.join(run.drawn.name for run in found.runs),
        pairs=found.pairs,
        scores_sha256=scores_sha256(pd.concat(columns)),
        checked_at=now,
    )


def _for_receipt(scores: pd.DataFrame, benchmark: str) -> pd.Series[float]:
    """Scores under `benchmark/pair_id`; of several metrics, each under its name and a colon before."""
    column: pd.Series[float] = (
        scores.iloc[:, 0].add_prefix(f"{benchmark}/")
        if len(scores.columns) == 1
        else pd.concat([scores[name].add_prefix(f"{name}:{benchmark}/") for name in scores])
    )
    return column


def _run(
    run: ModuleRun,
    drawn: Drawn,
    sessions: Sequence[ScorerSession],
    tell: Tell,
    clock: Callable[[], float],
) -> BenchmarkRun:
    before = len(sessions)
    started = tested = clock()

    def show(progress: Progress) -> None:
        nonlocal tested
        if progress.stage == _TESTING:
            tested = clock()
        tell(drawn.name, progress)

    scored = run.scores_of(drawn, None, show)
    asked = clock()
    rows = drawn.evaluate(scored.table, drawn.answers(None)).rows
    measuring_s = clock() - asked
    of_tests, of_run = [one.start_s or 0.0 for one in sessions[before:]] or (0.0, 0.0)
    testing_s, asking_s = tested - started - of_tests, asked - tested - of_run
    return BenchmarkRun(drawn, scored, rows, testing_s, asking_s, measuring_s)


def _costs(session: ScorerSession, benchmarks: Sequence[Drawn], outputs: int) -> Costs:
    questions = benchmarks[0].questions(None)
    images = [read() for read in list(questions.images.values())[:_SAMPLE]]
    return measured(session, images, list(questions.texts.values()), outputs=outputs)


def _as_submission(module: ScoringModule, benchmarks: Sequence[Drawn], now: datetime) -> Submission:
    manifest = module.manifest
    kinds = {one.name: one.card.kind for one in benchmarks}
    # An output that is on none of these is tried on all of them.
    on = {
        metric: tuple(n for n, kind in kinds.items() if one.is_on(n, kind)) or tuple(kinds)
        for metric, one in manifest.of_metrics.items()
    }
    return Submission(
        submission_id="dry-run-of-its-author",
        kind=Kind.METRIC,
        name=manifest.name,
        version=manifest.version,
        metrics=tuple(on),
        benchmarks=tuple(one.name for one in benchmarks),
        submitter="",
        metric_benchmarks=on if manifest.outputs else {},
        lower_is_better=manifest.lower_is_better,
        trained_on=manifest.trained_on,
        method=manifest.method,
        flops_per_pair=manifest.flops_of_metrics,
        models=manifest.models,
        environment=module.environment.record if module.environment else "",
        content_sha256=module.content.sha256,
        archive="",
        entry_point=manifest.entry_point,
        weights=manifest.weights,
        received_at=now,
    )


def agreement(
    receipt: Receipt,
    scores: Mapping[str, ScoreTable],
    registry: Mapping[str, Benchmark],
    data: Path | None,
) -> str:
    """A sentence on whether the scores agree; empty where that cannot be said.

    It can be where the check asked what it usually does, or everything: a receipt does not say
    which pairs it is of, but those can be drawn again.
    """
    names = receipt.benchmark.split(JOINED)
    if any(name not in scores or name not in registry for name in names):
        return ""
    benchmarks = [registry[name] for name in names]
    for share in (None, max(1, USUAL_PAIRS // len(names))):
        drawn = [Drawn(one, data, share) for one in benchmarks]
        if sum(one.n_pairs for one in drawn) == receipt.pairs:
            same = _hash(drawn, scores) == receipt.scores_sha256
            gave = "the same scores" if same else "other scores, to six significant digits,"
            return f"The author's own check gave {gave} on its {receipt.pairs} pairs."
    return ""


def _hash(drawn: Sequence[Drawn], scores: Mapping[str, ScoreTable]) -> str:
    """As the check made it: over all its benchmarks together."""
    columns = []
    for one in drawn:
        asked = [pair.pair_id for pair in one.questions(None).pairs]
        columns.append(_for_receipt(scores[one.name].overall.loc[asked], one.name))
    return scores_sha256(pd.concat(columns))


@dataclass(frozen=True)
class Expectation:
    """Times on a machine like this."""

    # of every benchmark; empty where the dry run did not come to its end
    later: tuple[Projection, ...] = ()
    # the least and the most seconds of what happens once: both starts and the trust checks
    once_s: tuple[float, float] = (0.0, 0.0)


def expectation(
    found: DryRun,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    limits: Limits,
    wanted: Sequence[str],
) -> Expectation:
    """What is to be expected after a dry run."""
    if found.failure is not None or found.costs is None or found.start_s is None:
        return Expectation()
    small = bool(wanted) and registry[wanted[0]].card.simulated
    tests = trust_span_s(found.costs, found.runs[0].testing_s, small=small)
    once_s = _STARTS * found.start_s + tests[0], _STARTS * found.start_s + tests[1]
    later = projections(
        registry,
        data,
        found.costs,
        once_s=once_s[1],
        limits=limits,
        wanted=wanted,
        pace=pace_of(found.costs, [ran(run) for run in found.runs]),
    )
    return Expectation(later, once_s)


def ran(run: BenchmarkRun) -> Ran:
    """A run of the check, as the projection takes it."""
    card, cost = run.drawn.card, run.scored.cost
    size = of_questions(run.drawn.questions(None), small=card.simulated)
    scorer_s = 0.0 if cost is None else cost.seconds
    return Ran(card.family, size, scorer_s, run.asking_s, run.measuring_s)
