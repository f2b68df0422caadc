"""A store with authors, operators and a worker that needs no scorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from io import BytesIO

import numpy as np
import pyarrow.parquet as pq

from benchmarks.rows import Row
from benchmarks.schema import Card
from leaderboard.accounts import Account, Origin
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import private_id
from leaderboard.ledger.versions import superseding
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.rebuilding import differences, queue_differences, rebuilt
from leaderboard.publication.results import Published, ResultFiles
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.ranking.draws import Draws, draws_files
from leaderboard.records import Event, Kind, RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Changes, Repository, Store, transact
from leaderboard.trust import TrustReport
from tests.kit.store import contents, copy_of, memory_store
from tests.kit.toy import Toy

ADA = Account(origin=Origin.HUB, name="ada")
BOB = Account(origin=Origin.HUB, name="bob")
OLGA = Account(origin=Origin.LOCAL, name="olga", operator=True)
OPEN: Card = Toy.card.model_copy(update={"name": "open", "answers_public": True})
CLOSED: Card = Toy.card.model_copy(update={"name": "closed", "answers_public": False})
CARDS = {"open": OPEN, "closed": CLOSED}
T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Ticking:
    """A clock that moves by a second whenever it is read."""

    def __init__(self) -> None:
        self.time = T0

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


@dataclass
class House:
    """What a test acts on. `worker` names the worker."""

    store: Store = field(default_factory=memory_store)
    clock: Callable[[], datetime] = field(default_factory=Ticking)
    worker: str = "w1"
    sent: int = 0  # submissions so far; each has other content

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.store)
        self.acts = OperatorActions(self.store, CARDS, self.clock)
        self.publisher = Publisher(self.store, CARDS)

    def copy(self) -> House:
        """The same house at the same time, whose store goes its own way."""
        clock = Ticking()
        clock.time = self.clock()
        return type(self)(copy_of(self.store), clock, self.worker, self.sent)

    def send(
        self,
        account: Account = ADA,
        name: str = "grey",
        *,
        private: bool = False,
        benchmarks: tuple[str, ...] = ("open", "closed"),
        kind: Kind = Kind.METRIC,
        **more: object,
    ) -> str:
        """Receive and queue a submission; returns its id."""
        self.sent += 1
        digest = sha256(f"{account.key} {name} {self.sent}".encode()).hexdigest()
        at = self.clock()
        submission = Submission.model_validate(
            {
                "submission_id": private_id() if private else f"{name}-{digest[:10]}",
                "kind": kind,
                "name": name,
                "version": f"1.{self.sent}",
                "metrics": (name,),
                "benchmarks": benchmarks,
                "submitter": account.name,
                "account": account.key,
                "private": private,
                "content_sha256": digest,
                "archive": f"uploads/{digest}.zip",
                "received_at": at,
                **more,
            }
        )
        events = [
            Event(at=at, state=State.RECEIVED, by=submission.submitter),
            Event(at=at, state=State.QUEUED, by=submission.submitter),
        ]
        self.ledger.receive(submission, f"upload {digest}".encode(), events)
        return submission.submission_id

    def claim(self, submission_id: str) -> Status:
        """Take a queued submission as a worker does."""
        at = self.clock()
        lease = at + timedelta(hours=8)
        return self.ledger.append(
            submission_id,
            [
                Event(at=at, state=State.CLAIMED, by=self.worker, lease_until=lease),
                Event(at=at, state=State.SCORING, by=self.worker),
            ],
            still=lambda status: status.state is State.QUEUED,
        )

    def finish(
        self,
        submission_id: str,
        value: float = 0.5,
        log: str = "",
        trust: TrustReport | None = None,
    ) -> Status:
        """Publish a claimed submission, or hold it if it is private."""
        whole = self.ledger.whole(submission_id)
        now = self.clock()
        runs = [self.run(whole, name, value, now) for name in whole.benchmarks]
        if trust is not None:
            runs = [
                replace(run, result=run.result.model_copy(update={"trust": trust})) for run in runs
            ]
        files = [files_of(run) for run in runs]
        held = whole.private
        private = {
            p: c for f in files for p, c in (f.private_copies if held else f.private).items()
        }
        if private:
            transact(self.store.private, lambda: private, "results")

        def public(statuses: Sequence[Status]) -> Changes:
            if held:
                return {}
            results = {path: content for f in files for path, content in f.public.items()}
            return {**results, **self.publisher.snapshot_files(now, statuses, runs)}

        return self.ledger.append(
            submission_id,
            [
                Event(at=now, state=State.SCORED, by=self.worker, log=log),
                Event(at=now, state=State.JUDGING, by=self.worker),
                Event(at=now, state=State.HELD if held else State.PUBLISHED, by=self.worker),
            ],
            also=public,
            others=superseding(submission_id, now, self.worker),
        )

    def fail(
        self,
        submission_id: str,
        reason: str = "It broke.",
        log: str = "",
        code: str = "scorer_failed",
    ) -> Status:
        """End a claimed submission with a fault of its own."""
        event = Event(
            at=self.clock(),
            state=State.FAILED,
            by=self.worker,
            reason=reason,
            hint="Mend it.",
            code=code,
            fault="submitter",
            log=log,
        )
        return self.ledger.append(submission_id, [event])

    def done(self, account: Account = ADA, name: str = "grey", **more: object) -> str:
        """Send a submission and finish it; returns its id."""
        submission_id = self.send(account, name, **more)  # type: ignore[arg-type]
        self.claim(submission_id)
        self.finish(submission_id)
        return submission_id

    def state(self, submission_id: str) -> State:
        """Where a submission stands, for everyone."""
        return Ledger(self.store).status(submission_id).state

    def shown(self) -> set[str]:
        """Submissions on the boards, as the snapshot has them."""
        snapshot = read_snapshot(self.store.public)
        return {e.submission_id for e in snapshot.entries.values()} if snapshot else set()

    def snapshot(self) -> Snapshot:
        """The snapshot that is published."""
        snapshot = read_snapshot(self.store.public)
        assert snapshot is not None
        return snapshot

    def problems(self) -> list[str]:
        """What queue and snapshot have that events and results do not make, or lack."""
        right = rebuilt(self.store, CARDS, self.clock())
        boards = differences(read_snapshot(self.store.public), right)
        return [str(each) for each in (*boards, *queue_differences(self.store))]

    def run(self, submission: Submission, benchmark: str, value: float, at: datetime) -> Published:
        """A run with one row for each metric, all of this value."""
        rows = tuple(
            Row(
                benchmark=benchmark,
                revision=CARDS[benchmark].revision,
                metric=metric,
                measure="mean",
                value=value,
                n_items=100,
                n_clusters=50,
            ).to_json()
            for metric in submission.metrics
        )
        result = RunResult(
            submission_id=submission.submission_id,
            benchmark=benchmark,
            revision=CARDS[benchmark].revision,
            rows=rows,
            resampling_seed=1,
            n_resamples=10,
            isolation=("fake",),
            versions={},
            judged_at=at,
        )
        n = len(rows)
        draws = Draws(np.full((n, 10), value, dtype=np.float32), np.full((n, 5), value / 5))
        return Published(submission, result, draws)


class NoisyHouse(House):
    """A house in which every run has other figures, which add up and are the same in every test."""

    def run(self, submission: Submission, benchmark: str, value: float, at: datetime) -> Published:
        plain = super().run(submission, benchmark, value, at)
        digits = int(submission.content_sha256[:8], 16), int(at.timestamp()) % 1000, len(benchmark)
        rng = np.random.default_rng(digits)
        shares = rng.normal(0.5, 1.0, (len(plain.result.rows), 20)) / 20
        resamples = shares.sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(len(shares), 40))
        totals = zip(plain.result.rows, shares.sum(axis=1), strict=True)
        rows = tuple({**row, "value": float(total)} for row, total in totals)
        result = plain.result.model_copy(update={"rows": rows})
        return Published(submission, result, Draws(resamples, shares))


def files_of(run: Published) -> ResultFiles:
    """The files a worker would write of a run."""
    assert run.draws is not None
    stem = f"results/{run.submission.submission_id}/{run.result.benchmark}"
    rows = {f"{stem}.json": run.result.model_dump_json().encode()}
    behind = draws_files(stem, run.draws.resamples, run.draws.contributions)
    if CARDS[run.result.benchmark].answers_public:
        return ResultFiles({**rows, **behind}, {})
    return ResultFiles(rows, behind)


def everything(repository: Repository) -> bytes:
    """Paths and contents of a repository, one after the other; tables as text."""
    files = contents(repository).items()
    return b"\n".join(path.encode() + b"\n" + _as_text(content) for path, content in files)


def _as_text(content: bytes) -> bytes:
    if not content.startswith(b"PAR1"):
        return content
    table = pq.read_table(BytesIO(content))
    return f"{table.schema.metadata}\n{table.to_pylist()}".encode()
