"""Takes submissions: the page and the command line both come through here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem, problems_of
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.released.bundle import FOLDER, ReleasedScores, released_bytes
from benchmarks.schema import Benchmark
from evaluator.hub.source import Fetched
from evaluator.submission.archives.content import Content
from evaluator.submission.archives.limits import ArchiveLimits
from evaluator.submission.generations.shared import hashes_path
from evaluator.submission.generations.targets import PromptSets
from evaluator.submission.making.untouched import template_notes
from evaluator.submission.receipts import differences, environment_versions, read_receipt
from evaluator.submission.receiving.drafting import (
    Envelope,
    benchmarks_of,
    generations_record,
    module_record,
    scores_record,
)
from evaluator.submission.receiving.generations_desk import (
    GenerationsDesk,
    fetched_for_others,
    sharing_notes,
)
from evaluator.submission.receiving.identity import Identity
from evaluator.submission.receiving.labels import (
    checked_signature,
    kept_suffix,
)
from evaluator.submission.receiving.reception import Reception
from evaluator.submission.scores_file import ScoresFile, examine_scores_file, read_scores_file
from evaluator.submission.validate import opened_source, validated_source
from evaluator.worker.ending.sameness import same_content
from leaderboard.accounts import ASSAY, Account
from leaderboard.desk import Accepted, Examination, Gate, Plan, SaidOfImages, ScoresForm, Tell
from leaderboard.ledger.private_records import private_id
from leaderboard.records import Kind, Receipt
from leaderboard.store.interface import Store


@dataclass(frozen=True)
class SubmissionDesk:
    """Checks what comes in, keeps it and queues it. Whatever is wrong leaves the store as it was.

    It refuses for one reason after the other: the account is banned, no code is taken here, the
    form is wrong (all of it told at once), the allowance is used up, the version is taken, the
    benchmarks' data is not here.

    Attributes:
        store: where submissions are kept.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        gate_of: says whether code can be isolated here; asked at each submission of code.
        clock: the current time, with a time zone.
        fresh_id: makes ids of private submissions, which nobody can guess.
        scratch: folder to unpack in; the system's own if None.
        hub: address of the Hub; that of the environment if None.
        prompt_sets: those of which generations are taken.
    """

    store: Store
    registry: Mapping[str, Benchmark]
    data: Path | None
    gate_of: Callable[[], Gate]
    clock: Callable[[], datetime]
    fresh_id: Callable[[], str] = private_id
    scratch: Path | None = None
    hub: str | None = None
    prompt_sets: Mapping[str, PromptSet] = field(default_factory=load_prompt_sets)

    def gate(self) -> Gate:
        """See `leaderboard.desk.Desk`."""
        return self.gate_of()

    def score_benchmarks(self) -> tuple[str, ...]:
        """See `leaderboard.desk.Desk`."""
        return tuple(n for n, b in sorted(self.registry.items()) if b.has_answers(self.data))

    def examine_metric(self, path: Path, account: Account | None = None) -> Examination:
        """See `leaderboard.desk.Desk`."""
        with opened_source(path, self.registry, self.scratch) as (seen, module):
            if module is None:
                return seen
            manifest = module.manifest
            try:
                here = benchmarks_of(manifest, self.registry, self.data)
            except SubmitterError as error:
                return replace(seen, problems=problems_of(error))
            absent = [name for name in seen.benchmarks if name not in here]
            plan = Plan(
                metrics=(manifest.name,),
                left_out=dict.fromkeys(absent, "its images are not on this machine"),
                marks=tuple(f"trained on {name}" for name in manifest.trained_on),
            )
            identity = Identity(
                Kind.METRIC, manifest.name, manifest.version, _key(account), seen.content_sha256
            )
            return self._previewed(replace(seen, benchmarks=here, plan=plan), identity, account)

    def submit_metric(
        self,
        path: Path,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        receipt: bytes | None = None,
        source: str = "",
    ) -> Accepted:
        """Check and queue a scoring module; see `leaderboard.desk.Desk`.

        The gate, allowances and versions are not for what Assay itself sends (`ASSAY`).

        Raises:
            SubmitterError: `banned`, `code_refused` where code cannot be isolated here,
                `bad_submitter`, `reserved_submitter`, `signature_taken`, `bad_receipt`,
                `receipt_mismatch`, `seen_before`, `quota_exceeded`, `version_taken`,
                `images_missing`, or whatever is wrong with the archive, its manifest or its files.
        """
        reception = Reception(self.store, account, self.clock)
        reception.check_not_banned()
        self._check_gate(account)
        signed = checked_signature(submitter, account, reception.visible())
        read = None if receipt is None else read_receipt(receipt)
        with validated_source(path, self.registry, self.scratch) as module:
            manifest, content = module.manifest, module.content
            identity = Identity(
                Kind.METRIC, manifest.name, manifest.version, account.key, content.sha256
            )
            notes = (*template_notes(module.template), *_differences(read, content.sha256))
            if known := reception.known(identity, private=private):
                return known
            reception.check(identity)
            envelope = self._envelope(reception, identity, signed, private=private)
            submission = module_record(
                replace(envelope, receipt=read, source=source),
                module,
                benchmarks_of(manifest, self.registry, self.data),
            )
            with _packed(content, self.scratch) as upload:
                return reception.receive(identity, submission, upload, notes)

    def examine_repository(self, source: str, account: Account | None = None) -> Examination:
        """See `leaderboard.desk.Desk`.

        Raises:
            SubmitterError: `bad_source`, or what `hub_source.fetched` refuses.
            TransientError: `hub_unreachable`.
        """
        with self._fetched(source) as found:
            return self.examine_metric(found.folder, account)

    def submit_repository(
        self,
        source: str,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        receipt: bytes | None = None,
    ) -> Accepted:
        """Fetch, check and queue a scoring module; see `leaderboard.desk.Desk`.

        Raises:
            SubmitterError: `bad_source`, what `hub_source.fetched` refuses, or as `submit_metric`.
            TransientError: `hub_unreachable`.
        """
        # Nothing is fetched for those who may send nothing.
        Reception(self.store, account, self.clock).check_not_banned()
        self._check_gate(account)
        with self._fetched(source) as found:
            return self.submit_metric(
                found.folder,
                account=account,
                submitter=submitter,
                private=private,
                receipt=receipt,
                source=found.source,
            )

    def examine_scores(
        self, path: Path, form: ScoresForm, account: Account | None = None
    ) -> Examination:
        """See `leaderboard.desk.Desk`."""
        seen, file = examine_scores_file(path, form, self.registry, self.data)
        if file is None:
            return seen
        return self._previewed(seen, _identity(file, account), account)

    def submit_scores(
        self,
        path: Path,
        *,
        benchmark: str,
        account: Account,
        submitter: str = "",
        name: str = "",
        version: str = "",
        description: str = "",
        lower_is_better: tuple[str, ...] = (),
        private: bool = False,
    ) -> Accepted:
        """Check and queue a scores file; see `leaderboard.desk.Desk`.

        Raises:
            SubmitterError: `banned`, `unknown_benchmark`, `data_missing` where the benchmark's
                answers are not here, `bad_submitter`, `reserved_submitter`, `signature_taken`,
                `bad_version`, `bad_description`, `seen_before`, `quota_exceeded`,
                `version_taken`, or whatever `benchmarks.scores.read_scores` finds wrong.
        """
        return self._submit_scores(
            path,
            benchmark=benchmark,
            account=account,
            submitter=submitter,
            name=name,
            version=version,
            description=description,
            lower_is_better=lower_is_better,
            private=private,
        )

    def _submit_scores(
        self,
        path: Path,
        *,
        benchmark: str,
        account: Account,
        submitter: str = "",
        name: str,
        version: str,
        description: str,
        lower_is_better: tuple[str, ...],
        private: bool = False,
        released: ReleasedScores | None = None,
    ) -> Accepted:
        reception = Reception(self.store, account, self.clock)
        reception.check_not_banned()
        signed = checked_signature(submitter, account, reception.visible())
        form = ScoresForm(benchmark, name, version, description, lower_is_better)
        file = read_scores_file(path, form, self.registry, self.data)
        identity = _identity(file, account)
        if known := reception.known(identity, private=private):
            return known
        reception.check(identity)
        submission = scores_record(
            self._envelope(reception, identity, signed, private=private),
            file.table,
            suffix=kept_suffix(path, file.content),
            description=file.description,
            released=released,
        )
        return reception.receive(identity, submission, file.content)

    def submit_released(self, released: ReleasedScores) -> Accepted:
        """Check and queue a scores file of the bundle, for the authors who released it.

        Raises:
            SubmitterError: as `submit_scores`; `data_malformed` where the bundle was changed.
        """
        released_bytes(released.path)
        return self._submit_scores(
            FOLDER / released.path,
            benchmark=released.benchmark,
            account=ASSAY,
            name=released.name,
            version=released.version,
            description=released.description,
            lower_is_better=released.lower_is_better,
            released=released,
        )

    def prompt_set_names(self) -> tuple[str, ...]:
        """See `leaderboard.desk.Desk`."""
        return tuple(n for n, one in self.prompt_sets.items() if one.has_answers(self.data))

    def examine_generations(
        self,
        where: Path | str,
        said: SaidOfImages | None = None,
        tell: Tell | None = None,
        account: Account | None = None,
    ) -> Examination:
        """See `leaderboard.desk.Desk`.

        Raises:
            SubmitterError: `bad_source`, or what `hub_source.fetched` refuses.
            TransientError: `hub_unreachable`.
        """
        with self._generations.at(where) as (path, _):
            seen = self._generations.examine(path, said, tell)
        if seen.problems or seen.images is None:
            return seen
        prompt_set = seen.images.prompt_set
        identity = Identity(
            Kind.GENERATIONS,
            seen.name,
            seen.version,
            _key(account),
            seen.content_sha256,
            prompt_set,
        )
        plan = Plan(metrics=(seen.name,), pairs={prompt_set: seen.images.present})
        return self._previewed(replace(seen, plan=plan), identity, account)

    def submit_generations(
        self,
        where: Path | str,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        source: str = "",
        said: SaidOfImages | None = None,
        tell: Tell | None = None,
    ) -> Accepted:
        """Check and queue the images of a model; see `leaderboard.desk.Desk`.

        Raises:
            SubmitterError: `banned`, `bad_submitter`, `reserved_submitter`, `signature_taken`,
                `seen_before`, `quota_exceeded`, `version_taken`, `bad_source`, what
                `hub_source.fetched` refuses, or whatever is wrong with manifest and images.
            TransientError: `hub_unreachable`, `no_room`.
        """
        reception = Reception(self.store, account, self.clock)
        reception.check_not_banned()
        signed = checked_signature(submitter, account, reception.visible())
        desk = self._generations
        with desk.at(where) as (path, fetched_from), desk.taken(path, said, tell) as whole:
            name, version = whole.manifest.name, whole.manifest.version
            content, prompt_set = whole.content_sha256, whole.images.prompt_set
            identity = Identity(Kind.GENERATIONS, name, version, account.key, content, prompt_set)
            if known := reception.known(identity, private=private):
                return known
            reception.check(identity)
            envelope = self._envelope(reception, identity, signed, private=private)
            shared = whole.shared(self.store.private, identity, reception.statuses())
            submission = generations_record(
                replace(envelope, source=source or fetched_from),
                whole.manifest,
                whole.images.model_copy(update={"shared": shared}),
            )
            return reception.receive(
                identity,
                submission,
                whole.archive,
                sharing_notes(shared),
                {hashes_path(submission.submission_id): whole.hashes_file()},
            )

    @cached_property
    def _generations(self) -> GenerationsDesk:
        return GenerationsDesk(PromptSets(self.prompt_sets, self.data), self.scratch, self.hub)

    def _fetched(self, source: str) -> AbstractContextManager[Fetched]:
        """A repository that somebody else names: whatever a token opens is none of theirs."""
        return fetched_for_others(source, ArchiveLimits(), self.scratch, self.hub)

    def _previewed(
        self, seen: Examination, identity: Identity, account: Account | None
    ) -> Examination:
        """With what an account would be refused, or told, if it sent this now."""
        if account is None:
            return seen
        problems: list[Problem] = []
        notes: tuple[str, ...] = ()
        try:
            if identity.kind is Kind.METRIC:
                self._check_gate(account)
        except SubmitterError as error:
            problems += problems_of(error)
        try:
            notes = Reception(self.store, account, self.clock).preview(identity)
        except SubmitterError as error:
            problems += problems_of(error)
        return replace(seen, problems=tuple(problems), notes=(*seen.notes, *notes))

    def _check_gate(self, account: Account) -> None:
        gate = self.gate()
        if account.key != ASSAY.key and not gate.ok:
            raise SubmitterError(
                "code_refused",
                f"This installation takes no code now: {gate.reason}",
                f"{gate.remedy} Scores files are taken all the same.",
            )

    def _envelope(
        self, reception: Reception, identity: Identity, signed: str, *, private: bool
    ) -> Envelope:
        return Envelope(
            identity,
            signed,
            private,
            received_at=self.clock(),
            same_content_as=same_content(
                identity.kind, identity.content_sha256, identity.account, reception.statuses()
            ),
            private_id=self.fresh_id(),
        )


def _key(account: Account | None) -> str:
    return account.key if account else ""


def _identity(file: ScoresFile, account: Account | None) -> Identity:
    return Identity(
        Kind.SCORES, file.name, file.version, _key(account), file.content_sha256, file.benchmark
    )


def _differences(receipt: Receipt | None, content_sha256: str) -> tuple[str, ...]:
    """How this installation differs from the one the author checked with, in sentences.

    Raises:
        SubmitterError: `receipt_mismatch`.
    """
    if receipt is None:
        return ()
    found = differences(receipt, content_sha256, environment_versions())
    return tuple(f"{text[0].upper()}{text[1:]}." for text in found)


@contextmanager
def _packed(content: Content, scratch: Path | None) -> Iterator[Path]:
    """The archive that is kept, in a folder that is gone afterwards."""
    with TemporaryDirectory(prefix="assay-", dir=scratch) as place:
        archive = Path(place) / "upload.zip"
        content.pack_to(archive)
        yield archive
