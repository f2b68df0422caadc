"""Takes submissions: the page and the command line both come through here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem, one_error, problems_of
from benchmarks.prompt_sets.prompt_set import PromptSet, load_prompt_sets
from benchmarks.registry import find
from benchmarks.released.bundle import FOLDER, ReleasedScores, released_bytes
from benchmarks.schema import Benchmark, Method, ScoreTable
from evaluator.generation.manifest import GenerationsManifest
from evaluator.hub.source import Fetched
from evaluator.scorers.checkpoints import ModelHub
from evaluator.scorers.cost import gpus
from evaluator.scorers.fitting import WeightsLookup
from evaluator.scorers.registry import ScorerRow, find_row, load_rows
from evaluator.submission.archives.archive import Content
from evaluator.submission.archives.entries import ArchiveLimits
from evaluator.submission.builtin import BuiltinManifest, ExaminedBuiltin, examine, source_of
from evaluator.submission.generations.archive import SUFFIX
from evaluator.submission.generations.extraction import PromptSets
from evaluator.submission.generations.intake import (
    GenerationsIntake,
    fetched_for_others,
    hashes_path,
    sharing_notes,
)
from evaluator.submission.intake import (
    OWN_NAME,
    Identity,
    SubmissionIntake,
    checked_signature,
    kept_suffix,
    same_content,
)
from evaluator.submission.manifest import Manifest
from evaluator.submission.receipts import differences, environment_versions, read_receipt
from evaluator.submission.scores_file import ScoresFile, examine_scores_file, read_scores_file
from evaluator.submission.templates import template_notes
from evaluator.submission.validate import ScoringModule, opened_source, validated_source
from leaderboard.accounts import ASSAY, Account
from leaderboard.governance.rights import require_operator
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import private_id
from leaderboard.records import ImagesSeen, Kind, Receipt, Submission
from leaderboard.store.interface import Store
from leaderboard.submission_service import (
    BuiltinForm,
    ManifestOverrides,
    Plan,
    SandboxAvailability,
    ScoresForm,
    SubmissionReceipt,
    Tell,
    ValidationReport,
)


@dataclass(frozen=True)
class SubmissionMetadata:
    """What is said about a submission by whoever sends it, not by its content."""

    identity: Identity  # of the submission
    signed: str  # how it is signed on the boards
    private: bool  # whether it stays with its author
    received_at: datetime  # the current time
    same_content_as: tuple[str, ...] = ()  # see `Submission`
    receipt: Receipt | None = None  # of the author's own check
    source: str = ""  # see `Submission`
    private_id: str = field(default_factory=private_id)  # its id if it is private

    def record(self, *, suffix: str, metrics: tuple[str, ...]) -> Submission:
        """The record as far as the envelope tells it."""
        identity = self.identity
        return Submission(
            submission_id=self.private_id if self.private else identity.submission_id,
            kind=identity.kind,
            name=identity.name,
            version=identity.version,
            metrics=metrics,
            benchmarks=(),
            submitter=self.signed,
            account=identity.account,
            private=self.private,
            same_content_as=self.same_content_as,
            receipt=self.receipt,
            source=self.source,
            content_sha256=identity.content_sha256,
            archive=f"uploads/{identity.content_sha256}{suffix}",
            received_at=self.received_at,
        )


def module_record(
    envelope: SubmissionMetadata,
    module: ScoringModule,
    benchmarks: tuple[str, ...],
    metric_benchmarks: Mapping[str, tuple[str, ...]] | None = None,
) -> Submission:
    """The record of a scoring module."""
    manifest = module.manifest
    return envelope.record(suffix=".zip", metrics=tuple(manifest.of_metrics)).model_copy(
        update={
            "benchmarks": benchmarks,
            "metric_benchmarks": dict(metric_benchmarks or {}),
            "description": manifest.description,
            "authors": manifest.authors,
            "licence": manifest.licence,
            "links": manifest.links,
            "lower_is_better": manifest.lower_is_better,
            "trained_on": manifest.trained_on,
            "method": manifest.method,
            "flops_per_pair": manifest.flops_of_metrics,
            "models": manifest.models,
            "entry_point": manifest.entry_point,
            "weights": manifest.weights,
            "template": module.template,
            "environment": module.environment.record if module.environment else "",
        }
    )


def scores_record(
    envelope: SubmissionMetadata,
    table: ScoreTable,
    *,
    suffix: str,
    description: str,
    released: ReleasedScores | None = None,
) -> Submission:
    """The record of a scores file."""
    lower = tuple(m for m in table.metrics if table.directions.get(m) == -1)
    return envelope.record(suffix=suffix, metrics=table.metrics).model_copy(
        update={
            "benchmarks": (envelope.identity.benchmark,),
            "description": description,
            "lower_is_better": lower,
            **({} if released is None else _release(released)),
        }
    )


def _release(released: ReleasedScores) -> dict[str, object]:
    file, paper = released.file, released.printed_in
    return {
        "authors": released.authors,
        "licence": file.licence,
        "links": {"paper": paper.url, f"data at {file.commit}": file.source},
        "released_with": paper.citation,
    }


def generations_record(
    envelope: SubmissionMetadata, manifest: GenerationsManifest, images: ImagesSeen
) -> Submission:
    """The record of a model's images."""
    return envelope.record(suffix=SUFFIX, metrics=(manifest.name,)).model_copy(
        update={
            "benchmarks": (images.prompt_set,),
            "description": manifest.description,
            "authors": manifest.authors,
            "licence": manifest.licence,
            "links": manifest.links,
            "model_card": manifest.model_card(),
            "images": images,
        }
    )


def builtin_record(
    envelope: SubmissionMetadata, row: ScorerRow, manifest: BuiltinManifest
) -> Submission:
    """The record of a built-in metric, but for its benchmarks."""
    commits = manifest.commits.items()
    weights = {f"{row.checkpoints[role].id}@{commit}": None for role, commit in commits}
    licences = {one.licence: None for one in row.checkpoints.values() if one.licence}
    flops = {} if row.flops_per_pair is None else {row.name: row.flops_per_pair}
    return envelope.record(suffix=".json", metrics=(row.name,)).model_copy(
        update={
            "description": row.summary,
            "licence": ", ".join(licences),
            "lower_is_better": () if row.higher_is_better else (row.name,),
            "trained_on": row.trained_on,
            "method": row.method,
            "flops_per_pair": flops,
            "models": tuple(weights),
            "environment": manifest.environment,
        }
    )


def benchmarks_of(
    asked: tuple[str, ...],
    registry: Mapping[str, Benchmark],
    data: Path | None,
    where: str = "in assay.toml",
    *,
    method: Method = "score",
) -> tuple[str, ...]:
    """Those that are asked for, or all whose images are here, and that it can be run on, if none is."""
    fit = [n for n in asked or sorted(registry) if method == "score" or registry[n].compares_images]
    if unfit := [name for name in asked if name not in fit]:
        raise SubmitterError(
            "nothing_to_compare",
            f"{', '.join(unfit)} compares no images of one prompt, which is all that a metric with "
            'method = "compare" tells.',
            f"Name others {where}, or give scores.",
        )
    wanted = tuple(fit)
    here = tuple(n for n in wanted if registry[n].has_questions(data))
    if here and (here == wanted or not asked):
        return here
    absent = [n for n in wanted if n not in here]
    raise SubmitterError(
        "images_missing",
        f"The images of {', '.join(absent)} are not on this machine.",
        f"Submit scores computed elsewhere, or name other benchmarks {where}.",
    )


@dataclass(frozen=True)
class SubmissionService:
    """Checks what comes in, keeps it and queues it. Whatever is wrong leaves the store as it was.

    It refuses for one reason after the other: the account is banned, no code is taken here, the
    form is wrong (all of it told at once), the allowance is used up, the version is taken, the
    benchmarks' data is not here.
    """

    store: Store  # where submissions are kept
    registry: Mapping[str, Benchmark]  # the benchmarks known here
    data: Path | None  # folder of benchmark data, if there is one
    # says whether code can be isolated here; asked at each submission of code
    gate_of: Callable[[], SandboxAvailability]
    clock: Callable[[], datetime]  # the current time, with a time zone
    # makes ids of private submissions, which nobody can guess
    fresh_id: Callable[[], str] = private_id
    scratch: Path | None = None  # folder to unpack in; the system's own if None
    hub: str | None = None  # address of the Hub; that of the environment if None
    # those of which generations are taken
    prompt_sets: Mapping[str, PromptSet] = field(default_factory=load_prompt_sets)

    def sandbox_availability(self) -> SandboxAvailability:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        return self.gate_of()

    def _benchmarks_of(
        self, manifest: Manifest
    ) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """Those it is run on, and metric to its own of these where not every one is on all."""
        here = benchmarks_of(manifest.benchmarks, self.registry, self.data, method=manifest.method)
        on = manifest.metric_benchmarks({name: self.registry[name].card.kind for name in here})
        if not on:
            return here, {}
        wanted = {name for of_metric in on.values() for name in of_metric}
        return tuple(name for name in here if name in wanted), on

    def score_benchmarks(self) -> tuple[str, ...]:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        return tuple(n for n, b in sorted(self.registry.items()) if b.has_answers(self.data))

    def signature_problems(self, signature: str, account: Account) -> tuple[Problem, ...]:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        reception = SubmissionIntake(self.store, account, self.clock)
        try:
            checked_signature(signature, account, reception.visible())
        except SubmitterError as error:
            return problems_of(error)
        return ()

    def examine_metric(self, path: Path, account: Account | None = None) -> ValidationReport:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        with opened_source(path, self.registry, self.scratch) as (seen, module):
            if module is None:
                return seen
            manifest = module.manifest
            try:
                here, on = self._benchmarks_of(manifest)
            except SubmitterError as error:
                return replace(seen, problems=problems_of(error))
            absent = {
                name: _NO_OUTPUT
                if on and self.registry[name].has_questions(self.data)
                else "its images are not on this machine"
                for name in seen.benchmarks
                if name not in here
            }
            plan = Plan(
                metrics=tuple(manifest.of_metrics),
                left_out=absent,
                marks=(
                    *(f"trained on {name}" for name in manifest.trained_on),
                    *(
                        f"{metric} on {', '.join(names)} alone"
                        for metric, names in on.items()
                        if names != here
                    ),
                ),
            )
            identity = _module_identity(manifest, account, seen.content_sha256)
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
    ) -> SubmissionReceipt:
        """Check and queue a scoring module; see `leaderboard.submission_service.SubmissionServiceProtocol`.

        The gate, allowances and versions are not for what Assay itself sends (`ASSAY`).
        """
        reception = SubmissionIntake(self.store, account, self.clock)
        reception.check_not_banned()
        self._check_gate(account)
        signed = checked_signature(submitter, account, reception.visible())
        read = None if receipt is None else read_receipt(receipt)
        with validated_source(path, self.registry, self.scratch) as module:
            manifest, content = module.manifest, module.content
            identity = _module_identity(manifest, account, content.sha256)
            notes = (*template_notes(module.template), *_differences(read, module))
            if known := reception.known(identity, private=private):
                return known
            reception.check(identity)
            envelope = self._envelope(reception, identity, signed, private=private)
            submission = module_record(
                replace(envelope, receipt=read, source=source),
                module,
                *self._benchmarks_of(manifest),
            )
            with _packed(content, self.scratch) as upload:
                return reception.receive(identity, submission, upload, notes)

    def builtin_names(self) -> tuple[str, ...]:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        return tuple(load_rows())

    def machine_names(self) -> tuple[str, ...]:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        return tuple(gpus())

    def examine_builtin(
        self, wanted: BuiltinForm, account: Account | None = None
    ) -> ValidationReport:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        return self.examine_builtins([wanted], account)[0].report

    def submit_builtin(self, wanted: BuiltinForm, *, account: Account) -> SubmissionReceipt:
        """Check and queue a built-in metric; see `leaderboard.submission_service.SubmissionServiceProtocol`."""
        return self.queue_builtin(self.examine_builtins([wanted], account)[0], by=account)

    def examine_builtins(
        self, wanted: Sequence[BuiltinForm], account: Account | None
    ) -> list[ExaminedBuiltin]:
        """Look at several, each repository of weights once. Only operators may."""
        require_operator(account, "submit a built-in metric")
        weights = WeightsLookup(ModelHub.of_environment())
        return [self._examined_builtin(one, weights) for one in wanted]

    def _examined_builtin(self, wanted: BuiltinForm, weights: WeightsLookup) -> ExaminedBuiltin:
        found = examine(wanted, weights)
        try:
            for name in wanted.benchmarks:
                find(self.registry, name)
            chosen = benchmarks_of(
                wanted.benchmarks,
                self.registry,
                self.data,
                "with --benchmark",
                method=found.row.method if found.row else "score",
            )
        except SubmitterError as error:
            return found.with_problems(problems_of(error))
        return found.on(chosen)

    def queue_builtin(self, examined: ExaminedBuiltin, *, by: Account) -> SubmissionReceipt:
        """Queue what was found without fault. It belongs to Assay, and charges nobody."""
        require_operator(by, "submit a built-in metric")
        manifest, row = examined.manifest, examined.row
        if manifest is None or row is None:
            raise one_error(examined.report.problems)
        reception = SubmissionIntake(self.store, ASSAY, self.clock, by=by.key)
        identity = Identity(Kind.METRIC, row.name, manifest.version, ASSAY.key, manifest.sha256)
        if known := reception.known(identity, private=False):
            return known
        envelope = self._envelope(reception, identity, OWN_NAME, private=False)
        envelope = replace(envelope, source=source_of(row))
        record = builtin_record(envelope, row, manifest)
        submission = record.model_copy(update={"benchmarks": examined.report.benchmarks})
        return reception.receive(identity, submission, manifest.content)

    def renew_builtin(self, outdated: Submission) -> SubmissionReceipt:
        """Queue a built-in metric as its row is now, with the questions it had, where it was run.

        Whether a machine can hold it is left to the workers.
        """
        row = find_row(outdated.builtin, load_rows())
        found = WeightsLookup(ModelHub.of_environment()).of(row)
        if found.problems:
            raise one_error(found.problems)
        with TemporaryDirectory(prefix="assay-", dir=self.scratch) as place:
            kept = Path(place) / "kept.json"
            Ledger(self.store).fetch_upload(outdated, kept)
            manifest = BuiltinManifest.read(kept).renewed(row, found.commits)
        benchmarks = tuple(name for name in outdated.benchmarks if name in self.registry)
        report = ValidationReport((), name=row.name, benchmarks=benchmarks)
        return self.queue_builtin(ExaminedBuiltin(report, row, manifest), by=ASSAY)

    def examine_repository(self, source: str, account: Account | None = None) -> ValidationReport:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
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
    ) -> SubmissionReceipt:
        """Fetch, check and queue a scoring module; see `leaderboard.submission_service.SubmissionServiceProtocol`."""
        # Nothing is fetched for those who may send nothing.
        SubmissionIntake(self.store, account, self.clock).check_not_banned()
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
    ) -> ValidationReport:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        seen, file = examine_scores_file(path, form, self.registry, self.data)
        if file is None:
            return seen
        return self._previewed(seen, _identity(file, account), account)

    def submit_scores(
        self,
        path: Path,
        form: ScoresForm,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        released: ReleasedScores | None = None,
    ) -> SubmissionReceipt:
        """Check and queue a scores file; see `leaderboard.submission_service.SubmissionServiceProtocol`."""
        reception = SubmissionIntake(self.store, account, self.clock)
        reception.check_not_banned()
        signed = checked_signature(submitter, account, reception.visible())
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

    def submit_released(self, released: ReleasedScores) -> SubmissionReceipt:
        """Check and queue a scores file of the bundle, for the authors who released it."""
        released_bytes(released.path)
        form = ScoresForm(
            released.benchmark,
            released.name,
            released.version,
            released.description,
            released.lower_is_better,
        )
        return self.submit_scores(FOLDER / released.path, form, account=ASSAY, released=released)

    def prompt_set_names(self) -> tuple[str, ...]:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
        return tuple(n for n, one in self.prompt_sets.items() if one.has_answers(self.data))

    def examine_generations(
        self,
        where: Path | str,
        said: ManifestOverrides | None = None,
        tell: Tell | None = None,
        account: Account | None = None,
    ) -> ValidationReport:
        """See `leaderboard.submission_service.SubmissionServiceProtocol`."""
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
        said: ManifestOverrides | None = None,
        tell: Tell | None = None,
    ) -> SubmissionReceipt:
        """Check and queue the images of a model; see `leaderboard.submission_service.SubmissionServiceProtocol`."""
        reception = SubmissionIntake(self.store, account, self.clock)
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
    def _generations(self) -> GenerationsIntake:
        return GenerationsIntake(PromptSets(self.prompt_sets, self.data), self.scratch, self.hub)

    def _fetched(self, source: str) -> AbstractContextManager[Fetched]:
        """A repository that somebody else names: whatever a token opens is none of theirs."""
        return fetched_for_others(source, ArchiveLimits(), self.scratch, self.hub)

    def _previewed(
        self, seen: ValidationReport, identity: Identity, account: Account | None
    ) -> ValidationReport:
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
            notes = SubmissionIntake(self.store, account, self.clock).preview(identity)
        except SubmitterError as error:
            problems += problems_of(error)
        return replace(seen, problems=tuple(problems), notes=(*seen.notes, *notes))

    def _check_gate(self, account: Account) -> None:
        gate = self.sandbox_availability()
        if account.key != ASSAY.key and not gate.ok:
            raise SubmitterError(
                "code_refused",
                f"This installation takes no code now: {gate.reason}",
                f"{gate.remedy} Scores files are taken all the same.",
            )

    def _envelope(
        self, reception: SubmissionIntake, identity: Identity, signed: str, *, private: bool
    ) -> SubmissionMetadata:
        return SubmissionMetadata(
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


_NO_OUTPUT = "no output is to be a metric on it"


def _module_identity(manifest: Manifest, account: Account | None, content: str) -> Identity:
    return Identity(
        Kind.METRIC,
        manifest.name,
        manifest.version,
        _key(account),
        content,
        metrics=tuple(manifest.of_metrics),
    )


def _identity(file: ScoresFile, account: Account | None) -> Identity:
    return Identity(
        Kind.SCORES, file.name, file.version, _key(account), file.content_sha256, file.benchmark
    )


def _differences(receipt: Receipt | None, module: ScoringModule) -> tuple[str, ...]:
    """How this installation differs from the one the author checked with, in sentences."""
    if receipt is None:
        return ()
    here = environment_versions(module.environment)
    found = differences(receipt, module.content.sha256, here)
    return tuple(f"{text[0].upper()}{text[1:]}." for text in found)


@contextmanager
def _packed(content: Content, scratch: Path | None) -> Iterator[Path]:
    """The archive that is kept, in a folder that is gone afterwards."""
    with TemporaryDirectory(prefix="assay-", dir=scratch) as place:
        archive = Path(place) / "upload.zip"
        content.pack_to(archive)
        yield archive
