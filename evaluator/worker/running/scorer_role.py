"""The scorer role: from an upload to scores. Holds no answers where code is run.

A scores file is read and checked; a scoring module is unpacked and asked in a box.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.questions import QuestionFolder
from evaluator.bundled import bundled_hashes
from evaluator.hub.model_shelf import ModelShelf
from evaluator.in_use import in_use
from evaluator.isolation.backend import Backend, IsolationStatus
from evaluator.isolation.gate import choice_of
from evaluator.isolation.limits import Limits
from evaluator.scoring.asking import Engine
from evaluator.scoring.local import LocalEngine
from evaluator.worker.running.module_box import Boxes, PackedModule, fresh_below
from evaluator.worker.running.run_boxes import RunBoxes
from evaluator.worker.running.runs import FileRun, ModuleRun, ModuleWork, Run
from leaderboard.desk import Gate
from leaderboard.records import Kind, Submission

LEFT_BEHIND_S = 24 * 3600.0
"""Longer than any submission may run."""


@dataclass(frozen=True)
class ScorerRole:
    """Runs scoring modules on this machine.

    Attributes:
        isolation: what isolates strangers' code here.
        own: the backend for the modules that are part of Assay, where nothing isolates.
        scratch: folder for unpacked modules and finished shards; may be lost at any time.
        limits: of one submission.
        engine: carries the batches of modules.
        models: folder of models of the Hub that modules name; None: one beside the scratch.
        operator: key of the account that runs this; where nothing isolates, only its own code is
            run.
        questions: what is asked, where that is exported and no benchmark data are here.
    """

    isolation: IsolationStatus
    own: Backend
    scratch: Path
    limits: Limits
    engine: Engine = field(default_factory=LocalEngine)
    models: Path | None = None
    operator: str = ""
    questions: QuestionFolder | None = None

    @property
    def shelf(self) -> ModelShelf:
        """Models that modules name, fetched before their boxes start."""
        return ModelShelf(self.models or self.scratch.parent / "models")

    @property
    def gate(self) -> Gate:
        """Whether strangers' code is taken."""
        return Gate(self.isolation.ok, self.isolation.reason, self.isolation.remedy)

    @property
    def layers(self) -> tuple[str, ...]:
        """What isolates strangers' code."""
        return self.isolation.layers

    def can_run(self, submission: Submission) -> bool:
        """Whether this machine may run the module.

        It may where code is isolated, and elsewhere what is part of Assay itself or, if the
        operator chose no isolation, the operator's own.
        """
        if submission.kind is Kind.GENERATIONS:  # no code: that of the metrics is looked at alone
            return True
        if self.isolation.isolates or submission.content_sha256 in bundled_hashes():
            return True
        return self.isolation.ok and submission.account == self.operator != ""

    @contextmanager
    def fetched(
        self, submission: Submission, fetch: Callable[[Submission, Path], None]
    ) -> Iterator[Path]:
        """The upload of a submission on this machine, removed afterwards.

        Args:
            submission: its whole record.
            fetch: copies its upload to a new file.
        """
        place = fresh_below(self.scratch / "unpacked")
        try:
            upload = place / Path(submission.archive).name
            with in_use(place):
                fetch(submission, upload)
                yield upload
        finally:
            shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def open(self, submission: Submission, upload: Path) -> Iterator[Run]:
        """Open a submission; everything it started has ended afterwards.

        Args:
            submission: its whole record.
            upload: as `fetched` gives it.
        """
        if submission.kind is Kind.SCORES:
            yield FileRun(submission, upload)
            return
        with self.open_module(submission, upload, self.shards_of(submission)) as run:
            yield run

    @contextmanager
    def open_module(
        self, submission: Submission, upload: Path, shards: Path
    ) -> Iterator[ModuleRun]:
        """Open a scoring module, whatever it is to be asked.

        Args:
            submission: its whole record.
            upload: its archive.
            shards: folder of what is finished of this run.
        """
        _, layers = self.boxes.choose(submission)
        with suppress(FileExistsError):  # scores of submissions that may be private
            (self.scratch / "shards").mkdir(mode=0o700, parents=True)
        work = ModuleWork(submission, layers, shards, self.engine, self.questions)
        if self.engine.name != "local":
            hidden = (self.scratch.parent,)
            packed = PackedModule(
                submission,
                upload,
                self.own,
                self.limits,
                layers,
                hidden,
                self.shelf,
                choice_of(self.isolation),
            )
            yield ModuleRun(work, packed)
            return
        place = self.scratch / "unpacked"
        with self.boxes.starting(submission, upload, place) as start, ExitStack() as stack:
            boxes = RunBoxes(start, submission.content_sha256, stack)
            yield ModuleRun(work, boxes.for_run, boxes, boxes.for_trial)

    @property
    def boxes(self) -> Boxes:
        """How modules are boxed on this machine."""
        return Boxes(self.isolation, self.own, self.limits, self.shelf)

    def shards_of(self, submission: Submission) -> Path:
        """Folder of the finished shards of a submission."""
        return self.scratch / "shards" / submission.submission_id

    def sweep(self, now_s: float) -> None:
        """Remove what workers that were killed left unpacked, more than a day ago."""
        for place in (self.scratch / "unpacked").glob("*"):
            if place.stat().st_mtime < now_s - LEFT_BEHIND_S:
                shutil.rmtree(place, ignore_errors=True)

    def with_shards(self) -> tuple[str, ...]:
        """Ids of submissions of which shards are kept."""
        return tuple(sorted(place.name for place in (self.scratch / "shards").glob("*")))

    def forget(self, submission: Submission) -> None:
        """Drop what was kept for a restart."""
        shutil.rmtree(self.shards_of(submission), ignore_errors=True)
