"""A real worker on a store in a folder, with real boxes: where hostile submissions are let loose.

Everything that builds a store, a desk or a worker is here, and nowhere else in this package.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.parquet import read_overall
from benchmarks.schema import Pair, Questions
from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import IsolationStatus, Probe, isolation_status
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.job import Job, Limits
from evaluator.isolation.session import ScorerSession
from evaluator.submission.dry_run import Drawn, DryRun, Machine, dry_run
from evaluator.submission.service import SubmissionService
from evaluator.submission.validate import validated_source
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.accounts import Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.records import Event, Status
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from tests.hostile.case import QUICK, Case
from tests.hostile.corpus.texts import honest
from tests.hostile.decoys import Decoys, decoys
from tests.hostile.leftovers import Trace, trace_of
from tests.kit.toy import Toy
from tests.kit.worker import Clock

BENCHMARK = "toy"
AUTHOR = "mallory"


class Marked(Toy):
    """The toy benchmark with ids that are found where they do not belong."""

    def questions(self, data: Path | None) -> Questions:
        """See `Benchmark`."""
        plain = super().questions(data)
        return Questions(
            images={f"id-of-picture {name}": picture for name, picture in plain.images.items()},
            texts={f"id-of-{name}": text for name, text in plain.texts.items()},
            pairs=tuple(
                Pair(pair.pair_id, f"id-of-picture {pair.image_id}", f"id-of-{pair.text_id}")
                for pair in plain.pairs
            ),
        )


@dataclass
class Watched:
    """A backend that remembers what it started, so that it can be looked for afterwards."""

    backend: Bubblewrap
    traces: list[Trace] = field(default_factory=list)

    @property
    def name(self) -> str:
        """See `Backend`."""
        return self.backend.name

    def probe(self) -> Probe:
        """See `Backend`."""
        return self.backend.probe()

    def start(self, job: Job) -> ScorerSession:
        """See `Backend`."""
        session = self.backend.start(job)
        self.traces.append(trace_of(session))
        return session


@dataclass(frozen=True)
class Outcome:
    """What became of a submission.

    Attributes:
        status: as the queue shows it.
        events: its history.
        scores: that were published; None where there are none.
    """

    status: Status
    events: tuple[Event, ...]
    scores: tuple[float, ...] | None

    @property
    def log(self) -> str:
        """What was published of its output."""
        return "\n".join(event.log for event in self.events)


@dataclass
class Ground:
    """Store, desk and one worker that outlives everything that is submitted.

    Attributes:
        folder: of all of it.
        decoys: what submissions are after.
        backend: starts the boxes.
        worker: does the work.
        since_good: submissions since the last of good will.
    """

    folder: Path
    decoys: Decoys
    backend: Watched
    worker: Worker
    desk: SubmissionService
    since_good: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def unpacked(self) -> Path:
        """Where submissions are unpacked."""
        return self.folder / "scratch" / "unpacked"

    @property
    def shards(self) -> Path:
        """Where finished scores are kept for a restart."""
        return self.folder / "scratch" / "shards"

    @property
    def temporary(self) -> Path:
        """Where the worker's process puts temporary files."""
        return self.folder / "temporary"

    def submit(self, path: Path) -> Status:
        """Send an archive or folder, each time from another account, to stay below all quotas."""
        account = Account(origin=Origin.LOCAL, name=f"{AUTHOR}-{next(self._numbers)}")
        return self.desk.submit_metric(path, account=account).status

    def run(self, case: Case) -> Outcome:
        """Submit it, and let the worker work on it."""
        return self._worked_off(self.submit(self._sent(case)), case.limits)

    def check(self, case: Case) -> DryRun:
        """The dry run that its author would make of it."""
        drawn = Drawn(Marked(), None, None)
        with (
            validated_source(self._sent(case), {BENCHMARK: drawn}) as module,
            tempfile.TemporaryDirectory() as scratch,
        ):
            layers = self.worker.scorers.layers
            machine = Machine(self.backend, layers, case.limits, (), Path(scratch))
            return dry_run(module, [drawn], machine, lambda *_: None, datetime.now(UTC))

    def run_honest(self) -> tuple[Outcome, tuple[float, ...]]:
        """Submit a scorer of good will; its outcome, and the scores it must have."""
        offset = float(next(self._numbers)) + 0.25
        files = {"assay.toml": f'name = "honest-{offset}"', "scorer.py": honest(offset)}
        outcome = self._worked_off(self.submit(self._written(files)), QUICK)
        return outcome, (offset, offset + 2, offset + 4)

    def snapshot(self) -> Snapshot:
        """The boards."""
        shown = read_snapshot(self.store.public)
        assert shown is not None
        return shown

    @property
    def store(self):  # type: ignore[no-untyped-def]
        """The store, opened anew, as another process would."""
        return folder_store(self.folder / "store")

    def _worked_off(self, queued: Status, limits: Limits) -> Outcome:
        # The worker was made with this role and keeps it; only tests give each case its limits.
        object.__setattr__(self.worker.scorers, "limits", limits)
        assert self.worker.run_next(), "the worker takes it"
        submission_id = queued.submission.submission_id
        ledger = Ledger(self.store)
        status = ledger.status(submission_id)
        return Outcome(status, ledger.events(submission_id), self._scores(status))

    def _scores(self, status: Status) -> tuple[float, ...] | None:
        if status.state is not State.PUBLISHED:
            return None
        stem = f"results/{status.submission.submission_id}/{BENCHMARK}"
        frame = read_overall(self.store.public.read(f"{stem}.scores.parquet"))
        return tuple(float(score) for score in frame[status.submission.metrics[0]])

    def _sent(self, case: Case) -> Path:
        lines = case.manifest if "name =" in case.manifest else f'name = "case"\n{case.manifest}'
        version = f'version = "{next(self._numbers)}"\n'
        source = self.decoys.fill(case.source)
        return self._written({"assay.toml": version + lines, "scorer.py": source, **case.files})

    def _written(self, files: Mapping[str, str | bytes]) -> Path:
        folder = self.folder / "sent" / uuid.uuid4().hex
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder


@contextmanager
def proving_ground(folder: Path) -> Iterator[Ground]:
    """Lay everything out in a folder; a machine without boxes skips the test."""
    folder.chmod(0o755)
    temporary = folder / "temporary"
    temporary.mkdir()
    with decoys(folder / "decoys") as laid, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        patch.setenv("ASSAY_TOKEN", laid.secret)
        backend = Watched(Bubblewrap(hidden=(folder / "store", *Bubblewrap().hidden)))
        status = isolation_status([backend])
        if not status.ok:
            pytest.skip(f"no isolation here: {status.reason} {status.remedy}")
        yield _ground(folder, laid, backend, status)


def _ground(folder: Path, laid: Decoys, backend: Watched, status: IsolationStatus) -> Ground:
    clock = Clock()
    store = replace(folder_store(folder / "store"), clock=clock)
    registry = {BENCHMARK: Marked()}
    role = ScorerRole(status, PlainProcess(), folder / "scratch", QUICK)
    worker = Worker(f"worker-{os.getpid()}", store, registry=registry, data=None, scorers=role)
    desk = SubmissionService(store, registry, None, lambda: role.availability, clock)
    return Ground(folder, laid, backend, worker, desk)
