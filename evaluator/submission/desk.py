"""Takes submissions: the page and the command line both come through here."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.registry import find
from benchmarks.schema import Benchmark
from benchmarks.score_cells import RESERVED_NAMES, check_metric_name
from benchmarks.scores import load_bytes, parse_scores
from evaluator.submission.archive import read_content
from evaluator.submission.manifest import Manifest
from evaluator.submission.validate import validate_module
from leaderboard.desk import Gate
from leaderboard.ledger import Ledger
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store

MAX_SUBMITTER = 80
_GONE = frozenset({State.FAILED, State.REJECTED, State.WITHDRAWN})
MAX_DESCRIPTION = 4000
OWN_NAME = "Assay"
"""Signs what is part of Assay itself; nobody else may."""
_SPECIAL_SUFFIXES = frozenset({".npz", ".pkl"})
"""Formats some benchmarks take beside tables, e.g. scores with masks."""
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
            SubmitterError: `code_refused` where code cannot be isolated here,
                `images_missing`, `bad_submitter`, `reserved_submitter`, or whatever is wrong with
                the archive, its manifest or its files.
        """
        sender = _checked_submitter(submitter, trusted=trusted)
        gate = self.gate()
        if not trusted and not gate.ok:
            raise SubmitterError(
                "code_refused",
                f"This installation takes no code now: {gate.reason}",
                f"{gate.remedy} Scores files are taken all the same.",
            )
        module = validate_module(read_content(path), self.registry)
        manifest = module.manifest
        content_sha256 = module.content.sha256
        if not trusted:  # Our own modules come again, changed, with every release.
            self._check_version_is_free(manifest, sender, content_sha256)
        self._check_trained_on(manifest)
        return self._receive(
            Submission(
                submission_id=_submission_id(manifest.name, content_sha256),
                kind=Kind.METRIC,
                name=manifest.name,
                version=manifest.version,
                metrics=(manifest.name,),
                benchmarks=self._benchmarks_of(manifest),
                submitter=sender,
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
                not here, `bad_submitter`, `reserved_submitter`, `bad_description`, or whatever
                `benchmarks.scores.read_scores` finds wrong.
        """
        sender = _checked_submitter(submitter)
        text = _checked_description(description)
        target = find(self.registry, benchmark)
        content = load_bytes(path)
        title = check_metric_name(name) if name else _name_from(path.stem)
        table = parse_scores(
            content,
            path.name,
            target,
            target.answers(self.data),
            metric=title,
            lower_is_better=lower_is_better,
        )
        digest = _digest(benchmark.encode(), ",".join(lower_is_better).encode(), content)
        # A file has no author inside it: under another name or from another person it is another
        # submission, though it is kept once.
        identity = _digest(Kind.SCORES.encode(), title.encode(), sender.encode(), digest.encode())
        return self._receive(
            Submission(
                submission_id=_submission_id(title, identity),
                kind=Kind.SCORES,
                name=title,
                metrics=table.metrics,
                benchmarks=(benchmark,),
                submitter=sender,
                description=text,
                lower_is_better=tuple(m for m in table.metrics if table.directions.get(m) == -1),
                content_sha256=digest,
                archive=f"uploads/{digest}{_suffix(path, content)}",
                received_at=self.clock(),
            ),
            content,
        )

    def _benchmarks_of(self, manifest: Manifest) -> tuple[str, ...]:
        """Those a module asks for, or all whose images are here if it asks for none."""
        wanted = manifest.benchmarks or tuple(sorted(self.registry))
        here = tuple(n for n in wanted if self.registry[n].has_questions(self.data))
        if here and (here == wanted or not manifest.benchmarks):
            return here
        absent = [n for n in wanted if n not in here]
        raise SubmitterError(
            "images_missing",
            f"The images of {', '.join(absent)} are not on this machine.",
            "Submit scores computed elsewhere, or name other benchmarks in assay.toml.",
        )

    def _check_version_is_free(self, manifest: Manifest, sender: str, content: str) -> None:
        """Two entries that read the same could not be told apart on a board."""
        for status in Ledger(self.store).statuses():
            other = status.submission
            same = (other.kind, other.name, other.version, other.submitter) == (
                Kind.METRIC,
                manifest.name,
                manifest.version,
                sender,
            )
            if same and other.content_sha256 != content and status.state not in _GONE:
                raise SubmitterError(
                    "version_taken",
                    f"{manifest.name} {manifest.version} by {sender} is here already, with other "
                    "content.",
                    "Raise the version in assay.toml.",
                )

    def _check_trained_on(self, manifest: Manifest) -> None:
        # A family stands for all benchmarks over the same data, e.g. genai_bench.
        known = {*self.registry, *(b.card.family for b in self.registry.values())}
        unknown = [name for name in manifest.trained_on if name not in known]
        if unknown:
            raise SubmitterError(
                "unknown_benchmark",
                f"assay.toml says trained_on {', '.join(unknown)}, which is no benchmark's name.",
                f"Known names: {', '.join(sorted(known))}.",
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


def _digest(*parts: bytes) -> str:
    """Hash over parts of which none but the last holds a zero byte."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _submission_id(name: str, digest: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "metric"
    return f"{slug}-{digest[:10]}"


def _checked_submitter(submitter: str, *, trusted: bool = False) -> str:
    name = " ".join(submitter.split())
    if not _SUBMITTER.fullmatch(name):
        raise SubmitterError(
            "bad_submitter",
            "The submitter's name is empty, too long or holds odd characters.",
            f"Use letters, digits, spaces and . _ @ ' + - (at most {MAX_SUBMITTER}).",
        )
    # Letters of other widths look the same on the boards.
    if unicodedata.normalize("NFKC", name).casefold() == OWN_NAME.casefold() and not trusted:
        raise SubmitterError(
            "reserved_submitter",
            f"The submitter's name {name!r} stands for what is part of {OWN_NAME} itself.",
            "Sign with your own name or your team's.",
        )
    return name


def _checked_description(description: str) -> str:
    try:
        description.encode()
    except UnicodeEncodeError as error:
        raise SubmitterError(
            "bad_description",
            f"The description holds half a character at position {error.start + 1}.",
            "Type that character again.",
        ) from error
    return description[:MAX_DESCRIPTION]


def _suffix(path: Path, content: bytes) -> str:
    """What kind of file is kept; a stranger's own ending is used only where it is a known one."""
    if content[:4] == b"PAR1":
        return ".parquet"
    given = path.suffix.lower()
    return given if given in _SPECIAL_SUFFIXES else ".csv"


def _name_from(stem: str) -> str:
    """A name made from a file's, which nobody chose with our rules in mind."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-._+")[:64]
    return "scores" if not name or name in RESERVED_NAMES else name
