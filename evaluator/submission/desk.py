"""Takes submissions: the page and the command line both come through here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.registry import find
from benchmarks.schema import Benchmark
from benchmarks.scores import METRIC_NAME, load_bytes, parse_scores
from evaluator.submission.archive import read_content
from evaluator.submission.validate import validate_module
from leaderboard.desk import Gate
from leaderboard.ledger import Ledger
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store

MAX_SUBMITTER = 80
_SUBMITTER = re.compile(r"[\w .@'+-]{1,80}")


@dataclass(frozen=True)
class SubmissionDesk:
    """Checks what comes in, keeps it and queues it. Whatever is wrong leaves the store as it was.

    Attributes:
        store: where submissions are kept.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        gate_of: says whether code can be isolated here; asked at each submission of code.
        clock: the current time, with a time zone.
    """

    store: Store
    registry: Mapping[str, Benchmark]
    data: Path | None
    gate_of: Callable[[], Gate]
    clock: Callable[[], datetime]

    def gate(self) -> Gate:
        """See `leaderboard.desk.Desk`."""
        return self.gate_of()

    def score_benchmarks(self) -> tuple[str, ...]:
        """See `leaderboard.desk.Desk`."""
        return tuple(n for n, b in sorted(self.registry.items()) if b.has_answers(self.data))

    def submit_metric(self, path: Path, *, submitter: str, trusted: bool = False) -> Status:
        """Check and queue a scoring module.

        Args:
            path: archive or folder.
            submitter: who sends it.
            trusted: the module is part of Assay itself, so the gate does not apply.

        Raises:
            SubmitterError: `code_refused` where code cannot be isolated here, or whatever is
                wrong with the archive, its manifest or its files.
        """
        gate = self.gate()
        if not trusted and not gate.ok:
            raise SubmitterError(
                "code_refused",
                f"This installation takes no code now: {gate.reason}",
                f"{gate.remedy} Scores files are taken all the same.",
            )
        module = validate_module(read_content(path), self.registry)
        manifest = module.manifest
        wanted = manifest.benchmarks or tuple(sorted(self.registry))
        benchmarks = tuple(n for n in wanted if self.registry[n].has_questions(self.data))
        if not benchmarks:
            raise SubmitterError(
                "images_missing",
                f"The images of {', '.join(wanted)} are not on this machine.",
                "Submit scores computed elsewhere, or name other benchmarks in assay.toml.",
            )
        content_sha256 = module.content.sha256
        return self._receive(
            Submission(
                submission_id=_submission_id(manifest.name, content_sha256),
                kind=Kind.METRIC,
                name=manifest.name,
                version=manifest.version,
                metrics=(manifest.name,),
                benchmarks=benchmarks,
                submitter=_checked_submitter(submitter),
                description=manifest.description,
                authors=manifest.authors,
                licence=manifest.licence,
                links=manifest.links,
                lower_is_better=(manifest.name,) if manifest.direction == "lower_is_better" else (),
                trained_on=manifest.trained_on,
                content_sha256=content_sha256,
                archive=f"uploads/{content_sha256}.zip",
                entry_point=manifest.entry_point,
                weights=manifest.weights,
                received_at=self.clock(),
            ),
            module.content.pack(),
        )

    def submit_scores(
        self,
        path: Path,
        *,
        benchmark: str,
        submitter: str,
        name: str = "",
        description: str = "",
        lower_is_better: tuple[str, ...] = (),
    ) -> Status:
        """Check and queue a scores file.

        Raises:
            SubmitterError: `unknown_benchmark`, `data_missing` where the benchmark's answers are
                not here, or whatever `benchmarks.scores.read_scores` finds wrong.
        """
        target = find(self.registry, benchmark)
        content = load_bytes(path)
        title = _checked_name(name) if name else _name_from(path.stem)
        table = parse_scores(
            content,
            path.name,
            target,
            target.answers(self.data),
            metric=title,
            lower_is_better=lower_is_better,
        )
        digest = hashlib.sha256(
            b"\0".join([benchmark.encode(), ",".join(lower_is_better).encode(), content])
        ).hexdigest()
        return self._receive(
            Submission(
                submission_id=_submission_id(title, digest),
                kind=Kind.SCORES,
                name=title,
                metrics=table.metrics,
                benchmarks=(benchmark,),
                submitter=_checked_submitter(submitter),
                description=description[:4000],
                lower_is_better=tuple(m for m in table.metrics if table.directions.get(m) == -1),
                content_sha256=digest,
                archive=f"uploads/{digest}{'.parquet' if content[:4] == b'PAR1' else '.csv'}",
                received_at=self.clock(),
            ),
            content,
        )

    def _receive(self, submission: Submission, upload: bytes) -> Status:
        """Queue a submission, or say what became of the identical one that is here already."""
        ledger = Ledger(self.store)
        queued = Event(at=self.clock(), state=State.QUEUED, by=submission.submitter)
        known = {s.submission.submission_id: s for s in ledger.statuses()}
        before = known.get(submission.submission_id)
        if before is None:
            received = queued.model_copy(update={"state": State.RECEIVED})
            return ledger.receive(submission, upload, [received, queued])
        if before.state is State.FAILED:
            again = queued.model_copy(update={"reason": "sent again after a failure"})
            return ledger.append(
                submission.submission_id, [again], still=lambda s: s.state is State.FAILED
            )
        if before.state in (State.WITHDRAWN, State.HIDDEN, State.REJECTED):
            raise SubmitterError(
                "seen_before",
                f"The same content was submitted before and is {before.state}"
                f"{f': {before.reason}' if before.reason else '.'}",
                "Change it, for example its version, and send it again.",
            )
        return before


def _submission_id(name: str, content_sha256: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "metric"
    return f"{slug}-{content_sha256[:10]}"


def _checked_submitter(submitter: str) -> str:
    name = " ".join(submitter.split())
    if not _SUBMITTER.fullmatch(name):
        raise SubmitterError(
            "bad_submitter",
            "The submitter's name is empty, too long or holds odd characters.",
            f"Use letters, digits, spaces and . _ @ ' + - (at most {MAX_SUBMITTER}).",
        )
    return name


def _name_from(stem: str) -> str:
    """A name made from a file's, which nobody chose with our rules in mind."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-._+")[:64] or "scores"


def _checked_name(name: str) -> str:
    if not METRIC_NAME.fullmatch(name):
        raise SubmitterError(
            "bad_metric_name",
            f"{name[:80]!r} cannot name a metric.",
            "Use letters, digits and . _ + - (at most 64), beginning with a letter or digit.",
        )
    return name
