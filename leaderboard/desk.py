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
class Gate:
    """Whether this installation takes strangers' code.

    Attributes:
        ok: code can be isolated here.
        reason: why not, in a sentence; empty when ok.
        remedy: what the operator should do; empty when ok.
    """

    ok: bool
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Plan:
    """What a worker would do with a submission that passes its check.

    Attributes:
        metrics: the entries it would make on the boards.
        pairs: benchmark or prompt set to how many pairs or images of it would be scored or read.
        left_out: benchmark to why it would not be run on that.
        marks: remarks that would stand beside its name on the boards.
    """

    metrics: tuple[str, ...] = ()
    pairs: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Examination:
    """What can be said of a submission without running it.

    Attributes:
        problems: everything that is wrong, at once; none: it would be accepted.
        name: as its manifest says; empty where that cannot be read.
        version: as its manifest says.
        benchmarks: it would be run on.
        files: how many it holds.
        n_bytes: of all its files.
        content_sha256: of its content; empty where it could not be read whole.
        counts: code to the number of its problems, where not all of them are listed.
        images: of generations: what they are; None where they were not looked at.
        notes: sentences its sender should read of what is not wrong.
        plan: what a worker would do with it; None where that was not asked, or something is wrong.
    """

    problems: tuple[Problem, ...]
    name: str = ""
    version: str = ""
    benchmarks: tuple[str, ...] = ()
    files: int = 0
    n_bytes: int = 0
    content_sha256: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    images: ImagesSeen | None = None
    notes: tuple[str, ...] = ()
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
    """What is said of a scores file, which has no manifest.

    Attributes:
        benchmark: the scores are for.
        name: of the metric of a file with one column `score`; else of the file.
        version: as its author counts.
        description: for the boards.
        lower_is_better: metrics of the file for which lower is better.
    """

    benchmark: str
    name: str = ""
    version: str = ""
    description: str = ""
    lower_is_better: tuple[str, ...] = ()


@dataclass(frozen=True)
class SaidOfImages:
    """The manifest of Parquet files that come without one; empty: not said.

    Attributes:
        name: of the model, on the boards.
        version: as its developer counts.
        prompt_set: whose prompts were drawn.
        description: for the boards.
    """

    name: str = ""
    version: str = ""
    prompt_set: str = ""
    description: str = ""

    def told(self) -> dict[str, str]:
        """What is said, by the manifest's own keys."""
        keys = {
            "name": self.name,
            "version": self.version,
            "benchmark": self.prompt_set,
            "description": self.description,
        }
        return {key: value for key, value in keys.items() if value}


@dataclass(frozen=True, slots=True)
class Advance:
    """How far the check of images is.

    Attributes:
        done: images that were looked at.
        total: images that there are.
        eta_s: seconds that are left; None where that is not known.
    """

    done: int
    total: int
    eta_s: float | None = None


Tell = Callable[[Advance], None]


@dataclass(frozen=True)
class Accepted:
    """What the desk answers to what it took.

    Attributes:
        status: the submission, with all of its record, as its sender may see it.
        recognised: the same account sent the very same content before, and this is that
            submission; nothing new was kept.
        notes: sentences its sender should read, for example how their own check differs.
    """

    status: Status
    recognised: bool = False
    notes: tuple[str, ...] = ()


class Desk(Protocol):
    """Takes submissions. All methods raise SubmitterError with a text fit for the page."""

    def gate(self) -> Gate:
        """Whether code is taken."""

    def score_benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks for which a scores file can be judged here."""

    def examine_metric(self, path: Path, account: Account | None = None) -> Examination:
        """Look at a scoring module without running or keeping it.

        Args:
            path: archive or folder.
            account: who would send it; what would be refused to it is a problem then.
        """

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
        """Check and queue a scoring module: an archive (.zip, .tar, .tar.gz) or a folder.

        Args:
            path: archive or folder.
            account: who sends it, and owns it.
            submitter: how it is signed on the boards; the account's name if empty.
            private: it stays with its author until they publish it.
            receipt: of the author's own `check`, as that command wrote it.
            source: `hub:owner/name@commit`, if that is where the caller fetched it from.
        """

    def examine_repository(self, source: str, account: Account | None = None) -> Examination:
        """Fetch a repository of the Hub and look at the scoring module in it.

        Args:
            source: `owner/name@revision`, or `datasets/owner/name@revision`. Only what everyone
                may read is fetched, never with a token of this installation.
            account: as for `examine_metric`.
        """

    def submit_repository(
        self,
        source: str,
        *,
        account: Account,
        submitter: str = "",
        private: bool = False,
        receipt: bytes | None = None,
    ) -> Accepted:
        """Fetch a repository of the Hub, then check and queue the scoring module in it.

        The record names the commit that was fetched.

        Args:
            source: as for `examine_repository`.
            account: as for `submit_metric`.
            submitter: likewise.
            private: likewise.
            receipt: likewise.
        """

    def examine_scores(self, path: Path, form: ScoresForm, account: Account | None) -> Examination:
        """Read a scores file without keeping it.

        Args:
            path: CSV, Parquet, or `.npz` where masks are asked for.
            form: what is said beside it.
            account: as for `examine_metric`.
        """

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
        """Check and queue a scores file (CSV or Parquet)."""

    def prompt_set_names(self) -> tuple[str, ...]:
        """Names of the prompt sets of which generations are taken here."""

    def examine_generations(
        self,
        where: Path | str,
        said: SaidOfImages | None = None,
        tell: Tell | None = None,
        account: Account | None = None,
    ) -> Examination:
        """Look at every image of a submission of generations without keeping any.

        Args:
            where: as for `submit_generations`.
            said: likewise.
            tell: told now and then how far it is.
            account: as for `examine_metric`.
        """

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
        """Check and queue the images that a model drew of a prompt set.

        Args:
            where: a folder, an archive (.zip, .tar, .tar.gz), a Parquet file or a folder of them;
                as text, a repository of the Hub, as for `examine_repository`.
            account: as for `submit_metric`.
            submitter: likewise.
            private: likewise.
            source: likewise.
            said: the manifest of Parquet files that come without one.
            tell: told now and then how far the check is.
        """
