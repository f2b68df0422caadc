"""A worker on a store in memory, with a scorer that runs in this process: fast, and breakable."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from PIL import Image

from benchmarks.questions import QuestionFolder
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.inside.frames import Capability
from evaluator.isolation.limits import Limits
from evaluator.submission.service import SubmissionService
from evaluator.worker.claims import SlowestRuns
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.accounts import Account, Origin
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.records import Kind, RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Changes, Repository, Store
from leaderboard.store.live.interface import Pulse
from leaderboard.store.memory import memory_store
from leaderboard.submission_service import SandboxAvailability
from tests.benchmarks.toy import Toy

Score = Callable[[int, str], float]
Files = Mapping[str, bytes]
MODULE: Files = {"assay.toml": b'name = "grey"', "scorer.py": b"class Scorer: ..."}
SCORES = "pair_id,m\na,1\nb,2\nc,3\n"
ASKED = 8 * 3
"""Answers that one run of a module on the toy benchmark takes, the trust checks included."""
ADA = Account(origin=Origin.HUB, name="ada")
BOB = Account(origin=Origin.HUB, name="bob")
ROOT = Account(origin=Origin.LOCAL, name="root", operator=True)


def named(name: str, version: str = "1") -> Files:
    """The files of a scoring module of that name."""
    return {**MODULE, "assay.toml": f'name = "{name}"\nversion = "{version}"'.encode()}


def submission(name: str = "grey", **more: object) -> Submission:
    """The record of one that was sent by Ada to the toy benchmark, at the first of January."""
    known = {
        "submission_id": f"{name}-00000000",
        "kind": Kind.METRIC,
        "name": name,
        "metrics": (name,),
        "benchmarks": ("toy",),
        "submitter": "ada",
        "content_sha256": "0" * 64,
        "archive": "uploads/0.zip",
        "received_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return Submission.model_validate(known | more)


class Killed(BaseException):
    """What no handler of ours may catch, like a signal."""


class Secret(Toy):
    """Its answers are not public, so most of a result is kept in the private repository."""

    card = Toy.card.model_copy(update={"answers_public": False})


@dataclass
class FakeSession:
    """Stands where a box stands; asks a Python function of (brightness, prompt)."""

    backend: FakeBackend
    capabilities: Capability = Capability.SCORE
    peak_memory_bytes: int = 1
    log: str = "hello from the scorer"

    def __enter__(self) -> Self:
        self.backend.entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.backend.closed += 1

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> Any:
        def brightness(data: bytes) -> int:
            pixel = Image.open(io.BytesIO(data)).getpixel((0, 0))
            assert isinstance(pixel, tuple)
            return int(pixel[0])

        scores = []
        for image, prompt in pairs:
            self.backend.asked.append(brightness(images[image]))
            scores.append(self.backend.score(brightness(images[image]), prompt))
        return np.array(scores)


@dataclass
class FakeBackend:
    """Hands out fake sessions and counts what happens to them."""

    score: Score = lambda brightness, _: float(brightness)
    name: str = "fake"
    asked: list[int] = field(default_factory=list)
    entered: int = 0
    closed: int = 0

    def probe(self) -> Probe:
        return Probe(ok=True, layers=("fake",))

    def start(self, *_: Any, **__: Any) -> Any:
        return FakeSession(self)


def raising(error: BaseException) -> FakeBackend:
    """Boxes in which every answer is an error."""

    def score(*_: object) -> float:
        raise error

    return FakeBackend(score)


def on_commit(
    repository: Repository,
    before: Callable[[Changes, str], object] = lambda *_: None,
    after: Callable[[Changes, str], object] = lambda *_: None,
) -> None:
    """From now on something happens before or after each commit; it is told paths and message."""
    commit = repository.commit

    def told(changes: Changes, *, parent: str, message: str) -> str:
        before(changes, message)
        version = commit(changes, parent=parent, message=message)
        after(changes, message)
        return version

    repository.commit = told  # type: ignore[method-assign]


def paths_read(repository: Repository) -> list[str]:
    """What is read of a repository from now on."""
    found: list[str] = []
    read = repository.read

    def told(path: str) -> bytes:
        found.append(path)
        return read(path)

    repository.read = told  # type: ignore[method-assign]
    return found


def wait_for(happened: Callable[[], object], at_most_s: float = 30.0) -> None:
    """Until it has, in a thread or a process beside the test."""
    pause = threading.Event()
    for _ in range(int(at_most_s * 100)):
        if happened():
            return
        pause.wait(0.01)
    raise AssertionError(f"It did not happen within {at_most_s:g} s.")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)


@dataclass
class Rig:
    """Store, desk and workers around one toy benchmark."""

    folder: Path
    store: Store = field(default_factory=memory_store)
    clock: Clock = field(default_factory=Clock)
    backend: FakeBackend = field(default_factory=FakeBackend)
    isolated: bool = True
    toy: Toy = field(default_factory=Toy)
    known_s: float | None = None  # What its workers know a run to take; None: they have timed none

    def __post_init__(self) -> None:
        self.store = replace(self.store, clock=self.clock)

    @property
    def desk(self) -> SubmissionService:
        gate = (
            SandboxAvailability(True)
            if self.isolated
            else SandboxAvailability(False, "No box.", "Build one.")
        )
        return SubmissionService(self.store, {"toy": self.toy}, None, lambda: gate, self.clock)

    def worker(
        self, name: str = "w1", *, questions: QuestionFolder | None = None, **more: Any
    ) -> Worker:
        probe = (
            Probe(ok=True, layers=("fake",)) if self.isolated else Probe(False, (), "No box.", "")
        )
        status = IsolationStatus(self.backend if self.isolated else None, (("fake", probe),))
        role = ScorerRole(
            status, FakeBackend(name="own"), self.folder / "scratch", Limits(), questions=questions
        )
        if self.known_s is not None and "slowest" not in more:
            more["slowest"] = self._pace(self.known_s)
        more.setdefault("registry", {"toy": self.toy})
        return Worker(name, self.store, data=None, scorers=role, **more)

    def _pace(self, seconds: float) -> SlowestRuns:
        pace = SlowestRuns()
        for kind in Kind:
            pace.took(submission(kind=kind, received_at=self.clock()), seconds)
        return pace

    def module(self, files: Files = MODULE) -> Path:
        path = self.folder / f"{len(list(self.folder.iterdir()))}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path

    def scores(self, text: str, name: str = "s.csv") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def send(self, files: Files = MODULE, *, account: Account = ADA, **more: Any) -> Status:
        """Submit a scoring module."""
        return self.desk.submit_metric(self.module(files), account=account, **more).status

    def send_scores(self, text: str, *, account: Account = ADA, **more: Any) -> Status:
        """Submit a scores file."""
        path = self.scores(text)
        return self.desk.submit_scores(path, benchmark="toy", account=account, **more).status

    def sent(self, files: Files = MODULE, *, account: Account = ADA, **more: Any) -> str:
        """Submit a scoring module; its id."""
        return self.send(files, account=account, **more).submission.submission_id

    def ran(self, files: Files = MODULE, **more: Any) -> str:
        """Submit a scoring module and run all that waits; its id."""
        name = self.sent(files, **more)
        self.worker().run_all()
        return name

    # What the store says --------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.store)

    @property
    def head(self) -> int:
        """How many commits the public repository has."""
        return int(self.store.public.head())

    def status(self, name: str) -> Status:
        return self.ledger.status(name)

    def ended(self, name: str) -> tuple[State, str, str]:
        """State, code and fault, as whoever may see everything sees them."""
        status = self.ledger.whole_status(name)
        return status.state, status.code, status.fault

    def state(self, name: str) -> State:
        return self.status(name).state

    def states(self, name: str) -> list[State]:
        return [event.state for event in self.ledger.events(name)]

    def in_state(self, state: State) -> set[str]:
        return {s.submission.submission_id for s in self.ledger.statuses() if s.state is state}

    def shown(self) -> Snapshot:
        """The boards as they are."""
        found = read_snapshot(self.store.public)
        assert found is not None
        return found

    def cells(self, benchmark: str = "toy") -> tuple[Cell, ...]:
        return self.shown().boards[benchmark].cells

    def result(self, name: str, below: str = "") -> RunResult:
        """What is published of a submission, or an old result of it, below `at/`."""
        content = self.store.public.read(f"results/{name}/{below}toy.json")
        return RunResult.model_validate_json(content)

    # What happens ----------------------------------------------------------------------------

    @property
    def acts(self) -> OperatorActions:
        return OperatorActions(self.store, {"toy": self.toy.card}, self.clock)

    def when_asked(self, n: int, act: Callable[[], object]) -> None:
        """During the n-th answer from now on something happens."""
        self.backend = backend = FakeBackend()

        def score(brightness: int, _: str) -> float:
            if len(backend.asked) == n:
                act()
            return float(brightness)

        backend.score = score

    def beats(self, worker: str, s: float = 0.0, **more: object) -> None:
        """The pulse of another worker arrives, of so many seconds from now."""
        at = self.clock() + timedelta(seconds=s)
        known = {"worker": worker, "at": at, "isolation_ok": True, "isolation": ""}
        self.store.live.beat(Pulse.model_validate(known | more))

    def dies(self, worker: Worker) -> None:
        """It is killed in its next run, and silent since."""
        with pytest.raises(Killed), worker.heart:
            worker.run_next()
        self.clock.move(minutes=2)
