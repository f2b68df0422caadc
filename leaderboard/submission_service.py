"""Contract between the pages and the evaluator, so that pages never import it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.problems import Problem, ProblemKind, problem_kinds
from leaderboard.accounts import Account
from leaderboard.records import ImagesSeen, Status

UNNAMED = "content that somebody else sent earlier"
"""Stands in `Submission.same_content_as` for private submissions, which are named to nobody."""


@dataclass(frozen=True)
class SandboxAvailability:
    """Whether this installation takes strangers' code."""

    ok: bool  # code can be isolated here
    reason: str = ""  # why not, in a sentence; empty when ok
    remedy: str = ""  # what the operator should do; empty when ok


@dataclass(frozen=True)
class Plan:
    """What a worker would do with a submission that passes its check."""

    metrics: tuple[str, ...] = ()  # the entries it would make on the boards
    # benchmark or prompt set to how many pairs or images of it would be scored or read
    pairs: Mapping[str, int] = field(default_factory=dict)
    # benchmark to why it would not be run on that
    left_out: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()  # remarks that would stand beside its name on the boards


@dataclass(frozen=True)
class ValidationReport:
    """What can be said of a submission without running it."""

    problems: tuple[Problem, ...]  # everything that is wrong, at once; none: it would be accepted
    name: str = ""  # as its manifest says; empty where that cannot be read
    version: str = ""  # as its manifest says
    benchmarks: tuple[str, ...] = ()  # it would be run on
    files: int = 0  # how many it holds
    n_bytes: int = 0  # of all its files
    content_sha256: str = ""  # of its content; empty where it could not be read whole
    # code to the number of its problems, where not all of them are listed
    counts: Mapping[str, int] = field(default_factory=dict)
    # of generations: what they are; None where they were not looked at
    images: ImagesSeen | None = None
    notes: tuple[str, ...] = ()  # sentences its sender should read of what is not wrong
    # what a worker would do with it; None where that was not asked, or something is wrong
    plan: Plan | None = None

    @property
    def kinds(self) -> tuple[ProblemKind, ...]:
        """The problems by kind, those that are not listed counted."""
        return problem_kinds(self.problems, self.counts)

    @property
    def n_problems(self) -> int:
        """How many things are wrong, also those that are not listed."""
        return sum(kind.count for kind in self.kinds)


@dataclass(frozen=True)
class ScoresForm:
    """What is said of a scores file, which has no manifest."""

    benchmark: str  # the scores are for
    name: str = ""  # of the metric of a file with one column `score`; else of the file
    version: str = ""  # as its author counts
    description: str = ""  # for the boards
    lower_is_better: tuple[str, ...] = ()  # metrics of the file for which lower is better


@dataclass(frozen=True)
class BuiltinForm:
    """What an operator says of a built-in metric that is to be run."""

    name: str  # of its row
    # GPU of the machine that is to run it, by its name in the table; empty: this machine's own
    gpu: str = ""
    benchmarks: tuple[str, ...] = ()  # none: all whose questions are here
    questions: Path | None = None  # file of questions, for metrics that ask them


@dataclass(frozen=True)
class ManifestOverrides:
    """The manifest of Parquet files that come without one; empty: not said."""

    name: str = ""  # of the model, on the boards
    version: str = ""  # as its developer counts
    prompt_set: str = ""  # whose prompts were drawn
    description: str = ""  # for the boards

    def manifest_keys(self) -> dict[str, str]:
        """What is said, by the manifest's own keys."""
        keys = {
            "name": self.name,
            "version": self.version,
            "benchmark": self.prompt_set,
            "description": self.description,
        }
        return {key: value for key, value in keys.items() if value}


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """How far the check of images is."""

    done: int  # images that were looked at
    total: int  # images that there are
    eta_s: float | None = None  # seconds that are left; None where that is not known


Tell = Callable[[CheckProgress], None]


@dataclass(frozen=True)
class SubmissionReceipt:
    """What the desk answers to what it took."""

    status: Status  # the submission, with all of its record, as its sender may see it
    # the same account sent the very same content before, and this is that submission; nothing new
    # was kept
    recognised: bool = False
    # sentences its sender should read, for example how their own check differs
    notes: tuple[str, ...] = ()


class SubmissionServiceProtocol(Protocol):
    """Takes submissions. All methods raise SubmitterError with a text fit for the page."""

    def sandbox_availability(self) -> SandboxAvailability:
        """Whether code is taken."""

    def score_benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks for which a scores file can be judged here."""

    def signature_problems(self, signature: str, account: Account) -> tuple[Problem, ...]:
        """What is wrong with how a submission would be signed; nothing: it may be."""

    def examine_metric(self, path: Path, account: Account | None = None) -> ValidationReport:
        """Look at a scoring module without running or keeping it."""

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
        """Check and queue a scoring module: an archive (.zip, .tar, .tar.gz) or a folder."""

    def builtin_names(self) -> tuple[str, ...]:
        """Names of the built-in metrics."""

    def machine_names(self) -> tuple[str, ...]:
        """Names of the GPUs that a built-in metric can be held against."""

    def examine_builtin(
        self, wanted: BuiltinForm, account: Account | None = None
    ) -> ValidationReport:
        """Find out what a built-in metric needs, and whether it can be had; only for operators."""

    def submit_builtin(self, wanted: BuiltinForm, *, account: Account) -> SubmissionReceipt:
        """Check and queue a built-in metric; only for operators."""

    def examine_repository(self, source: str, account: Account | None = None) -> ValidationReport:
        """Fetch a repository of the Hub and look at the scoring module in it."""

    def submit_repository(
        self,
        source: str,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        receipt: bytes | None = None,
    ) -> SubmissionReceipt:
        """Fetch a repository of the Hub, then check and queue the scoring module in it.

        The record names the commit that was fetched.
        """

    def examine_scores(
        self, path: Path, form: ScoresForm, account: Account | None
    ) -> ValidationReport:
        """Read a scores file without keeping it."""

    def submit_scores(
        self,
        path: Path,
        form: ScoresForm,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
    ) -> SubmissionReceipt:
        """Check and queue a scores file (CSV or Parquet)."""

    def prompt_set_names(self) -> tuple[str, ...]:
        """Names of the prompt sets of which generations are taken here."""

    def examine_generations(
        self,
        where: Path | str,
        said: ManifestOverrides | None = None,
        tell: Tell | None = None,
        account: Account | None = None,
    ) -> ValidationReport:
        """Look at every image of a submission of generations without keeping any."""

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
        """Check and queue the images that a model drew of a prompt set."""
