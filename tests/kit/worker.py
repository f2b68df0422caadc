"""A worker on a store in memory, with a scorer that runs in this process: fast, and breakable."""

from __future__ import annotations

import io
import json
import random
import tempfile
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

from benchmarks.errors import TransientError
from benchmarks.questions import QuestionFolder, export_questions
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Limits
from evaluator.submission.archives.archive import content_hash
from evaluator.submission.service import SubmissionService
from evaluator.worker.claims import SlowestRuns
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.tasks import WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.accounts import Account, Origin
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.ledger.private_records import private_id, public_record, submission_file
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.records import Event, Kind, RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Changes, Repository, Store
from leaderboard.store.live.interface import Heartbeat
from leaderboard.submission_service import SandboxAvailability, ScoresForm
from tests.kit.store import memory_store
from tests.kit.toy import Toy

Score = Callable[[int, str], float]
Row = Callable[[int], tuple[float, ...]]
Margin = Callable[[int, int], float]
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


def brightness(data: bytes) -> int:
    """What tells the pictures of the toy benchmark apart."""
    pixel = Image.open(io.BytesIO(data)).getpixel((0, 0))
    assert isinstance(pixel, tuple)
    return int(pixel[0])


@dataclass
class FakeSession:
    """Stands where a sandbox stands; asks the functions of its backend about brightness."""

    backend: FakeBackend
    capabilities: Capability = Capability.SCORE
    peak_memory_bytes: int = 1
    log: str = "hello from the scorer"

    def __enter__(self) -> Self:
        self.backend.entered += 1
        self.backend.running.add(id(self))
        self.backend.most = max(self.backend.most, len(self.backend.running))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.backend.closed += 1
        self.backend.running.discard(id(self))

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> Any:
        scores = []
        for image, prompt in pairs:
            self.backend.asked.append(brightness(images[image]))
            scores.append(self.backend.score(brightness(images[image]), prompt))
        return np.array(scores)

    def score_rows(
        self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]], outputs: int
    ) -> Any:
        greys = [brightness(images[image]) for image, _ in pairs]
        self.backend.asked += greys
        return np.array([self.backend.row(grey) for grey in greys]).reshape(len(pairs), outputs)

    def compare(self, images: Sequence[bytes], comparisons: Sequence[tuple[int, int, str]]) -> Any:
        greys = [brightness(image) for image in images]
        return np.array([self.backend.margin(greys[a], greys[b]) for a, b, _ in comparisons])


@dataclass
class FakeBackend:
    """Hands out fake sessions and counts what happens to them.

    Attributes:
        score: of a brightness and a prompt.
        row: of a brightness, for a metric of several outputs.
        margin: of two brightnesses, for a metric that compares.
        running: sessions that are open, of which there were `most` at once.
    """

    score: Score = lambda brightness, _: float(brightness)
    name: str = "fake"
    asked: list[int] = field(default_factory=list)
    entered: int = 0
    closed: int = 0
    row: Row = lambda brightness: (float(brightness), -10.0 * brightness)
    margin: Margin = lambda one, other: float(one - other)
    capabilities: Capability = Capability.SCORE
    running: set[int] = field(default_factory=set)
    most: int = 0

    def probe(self) -> Probe:
        return Probe(ok=True, layers=("fake",))

    def start(self, *_: Any, **__: Any) -> Any:
        return FakeSession(self, self.capabilities)


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
    jobs: int = 0  # that go into one commit; 0: as many as the store says

    def __post_init__(self) -> None:
        jobs = self.jobs or self.store.jobs_per_commit
        self.store = replace(self.store, clock=self.clock, jobs_per_commit=jobs)

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

    def send_scores(
        self, text: str, *, account: Account = ADA, submitter: str = "", private: bool = False,
        **said: Any,
    ) -> Status:  # fmt: skip
        """Submit a scores file."""
        form = ScoresForm("toy", **said)
        return self.desk.submit_scores(
            self.scores(text), form, account=account, submitter=submitter, private=private
        ).status

    def sent(self, files: Files = MODULE, *, account: Account = ADA, **more: Any) -> str:
        """Submit a scoring module; its id."""
        return self.send(files, account=account, **more).submission.submission_id

    def ran(self, files: Files = MODULE, **more: Any) -> str:
        """Submit a scoring module and run all that waits; its id."""
        name = self.sent(files, **more)
        self.worker().run_all()
        return name

    def ran_apart(self, files: Files = MODULE) -> str:
        """One machine scores a module under opaque ids, and another judges it; its id."""
        out = self.folder / "exported"
        out.mkdir()
        export_questions(self.toy, None, out, rng=random.Random(5))
        name = self.sent(files)
        assert self.worker("s1", role=WorkerRole.SCORE, questions=QuestionFolder(out)).run_next()
        assert self.worker("j1", role=WorkerRole.JUDGE, keys=out).run_next()
        return name

    def stock(self, accounts: Sequence[str], **more: Any) -> tuple[str, ...]:
        """Queue a submission for each of these accounts, see `stock`; their ids."""
        return stock(self.store, accounts, **more)

    # What the store says --------------------------------------------------------------------

    def published_once(self, *names: str) -> bool:
        """Whether each of these submissions was published once."""
        return all(published_once(self.store, name) for name in names)

    def results(self, name: str) -> dict[str, Any]:
        """What is published of a submission, without what no two runs share."""
        return results(self.store, name)

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
        self.store.live.beat(Heartbeat.model_validate(known | more))

    def dies(self, worker: Worker) -> None:
        """It is killed in its next run, and silent since."""
        with pytest.raises(Killed), worker.heart:
            worker.run_next()
        self.clock.move(minutes=2)


def desk_of(store: Store, registry: Mapping[str, Any]) -> SubmissionService:
    """A desk that takes code, at which the store's own clock tells the time."""
    return SubmissionService(store, registry, None, lambda: SandboxAvailability(True), store.clock)


def module_folder(
    place: Path, source: str | bytes, manifest: str = 'name = "mine"\nbenchmarks = ["demo_ts2"]\n'
) -> Path:
    """A scoring module in a new folder."""
    place.mkdir()
    (place / "assay.toml").write_text(manifest)
    (place / "scorer.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    return place


LENGTHS = """
class Scorer:
    def score(self, images, prompts):
        return [float(len(prompt)) for prompt in prompts]
"""
"""A scorer of the length of prompts."""
SCORER = MODULE["scorer.py"]


def stock(
    store: Store,
    accounts: Sequence[str],
    *,
    private: bool = False,
    benchmarks: tuple[str, ...] = ("toy",),
    scorer: bytes = SCORER,
) -> tuple[str, ...]:
    """Queue one submission for each of these accounts, in their order, a second apart.

    The last of them was received just now; every one has a name and content of its own.

    Returns:
        Their ids.
    """
    ledger = Ledger(store)
    known = len(ledger.statuses())
    start = store.clock() - timedelta(seconds=len(accounts))
    made: dict[str, Submission] = {}
    private_files: dict[str, bytes] = {}
    for n, account in enumerate(accounts, known):
        files = {"assay.toml": f'name = "m{n:03d}"'.encode(), "scorer.py": scorer}
        (digest, content), archive = _packed(files), f"uploads/{n}-{known}.zip"
        name = private_id() if private else f"m{n:03d}-{digest[:10]}"
        private_files[archive] = content
        made[name] = submission(
            f"m{n:03d}",
            submission_id=name,
            benchmarks=benchmarks,
            submitter=account,
            account=account,
            private=private,
            content_sha256=digest,
            archive=archive,
            entry_point="scorer:Scorer",
            received_at=start + timedelta(seconds=n - known),
        )
        if private:
            private_files[f"held/{name}/submission.json"] = made[name].model_dump_json().encode()
    store.private.commit(private_files, parent=store.private.head(), message="uploads")
    ledger.write(lambda: _received(made), f"receive {len(made)}")
    return tuple(made)


def _received(made: Mapping[str, Submission]) -> Batch:
    shown: dict[str, bytes] = {}
    for one in made.values():
        shown |= submission_file(public_record(one))
    states = (State.RECEIVED, State.QUEUED)
    events = {
        name: [Event(at=one.received_at, state=state, by=one.account) for state in states]
        for name, one in made.items()
    }
    return Batch(events=events, records=made, files=lambda _: shown)


def _packed(files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """The hash of a module and its archive."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            (Path(place) / name).write_bytes(content)
            archive.writestr(name, content)
        digest = content_hash(Path(place))
    return digest, buffer.getvalue()


@dataclass
class Switch:
    """Counts the calls of a store and fails at one of them.

    Attributes:
        at: number of that call, from 1; 0: none.
        error: what is raised then.
        only: which methods count; empty: all.
        calls: so far.
    """

    at: int = 0
    error: BaseException | None = None
    only: frozenset[str] = frozenset()
    calls: int = 0

    def step(self, what: str) -> None:
        if self.only and what not in self.only:
            return
        self.calls += 1
        if self.calls == self.at and self.error:
            raise self.error


class Outage(Switch):
    """Whether a store answers."""

    away = False

    def step(self, what: str) -> None:
        if self.away:
            raise TransientError("hub_down", "The Hub does not answer.")

    def begins(self) -> None:
        self.away = True

    def ends(self, rig: Rig, **later: float) -> None:
        self.away = False
        rig.clock.move(**later)


@dataclass
class Breaking:
    """A repository that asks a switch before each call, and once more after each commit."""

    under: Repository
    switch: Switch

    def head(self) -> str:
        self.switch.step("head")
        return self.under.head()

    def read(self, path: str) -> bytes:
        self.switch.step("read")
        return self.under.read(path)

    def fetch(self, path: str, target: Path) -> None:
        self.switch.step("fetch")
        self.under.fetch(path, target)

    def has(self, path: str) -> bool:
        self.switch.step("has")
        return self.under.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        self.switch.step("list")
        return self.under.list(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        self.switch.step("commit")
        version = self.under.commit(changes, parent=parent, message=message)
        self.switch.step("committed")
        return version


def breaking(store: Store, switch: Switch) -> Store:
    """The same store, seen by a process that the switch breaks."""
    return replace(
        store, public=Breaking(store.public, switch), private=Breaking(store.private, switch)
    )


def published_once(store: Store, submission_id: str) -> bool:
    events = Ledger(store).events(submission_id)
    return [e.state for e in events].count(State.PUBLISHED) == 1


def results(store: Store, submission_id: str) -> dict[str, Any]:
    """What is published of a submission, without what no two runs share.

    That is times, and what depends on which pairs the trust checks happened to draw.
    """
    paths = store.public.list(f"results/{submission_id}/")
    found: dict[str, Any] = {path: store.public.read(path) for path in paths}
    return {p: _timeless(c) if p.endswith(".json") else c for p, c in found.items()}


def _timeless(content: bytes) -> dict[str, Any]:
    result = RunResult.model_validate_json(content)
    record: dict[str, Any] = json.loads(result.model_dump_json(exclude={"judged_at"}))
    for name in ("seconds", "pairs_per_s", "calls", "images_decoded"):
        record["cost"].pop(name)
    reports = [record["trust"], *(one["trust"] for one in record["outputs"].values())]
    for report in filter(None, reports):
        report.pop("spread")
        for check in report["checks"]:
            check["example"] = (
                None  # Of pairs that moved alike, one is named, and they are shuffled.
            )
    return record
