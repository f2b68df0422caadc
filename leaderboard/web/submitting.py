"""Forms of the submit page: what they hold, and what is answered to a check and to sending them.

The account is checked first, always: a button that is not shown protects nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.errors import AssayError, SubmitterError
from leaderboard.accounts import Account
from leaderboard.desk import Accepted, Examination, SaidOfImages, ScoresForm, Tell
from leaderboard.records import Kind
from leaderboard.rendering import render
from leaderboard.text import size_words
from leaderboard.views.submit import ban_of, boards_of, wait_words, work_words
from leaderboard.web.page import Context
from leaderboard.web.visitors import required

MOST_RECEIPT_BYTES = 64_000
MOST_KINDS = 60
"""Kinds of problems that are listed; every key of a manifest is one."""
MOST_LISTED = 200
"""Problems of one kind that unfold."""


class Form(Protocol):
    """The fields of one way in, as they were filled in."""

    @property
    def kind(self) -> Kind:
        """What is handed in."""

    def examine(self, context: Context, account: Account) -> Examination:
        """Look at it without keeping it."""

    def submit(self, context: Context, account: Account) -> Accepted:
        """Hand it in."""


@dataclass(frozen=True)
class ModuleForm:
    """A scoring module: an archive, or a repository of the Hub in place of one."""

    path: str | None
    repository: str | None = None
    receipt: str | None = None
    submitter: str | None = None
    private: bool = False
    kind: Kind = Kind.METRIC

    def examine(self, context: Context, account: Account) -> Examination:
        """Look at it without running or keeping it."""
        source = chosen_source(self.path, self.repository)
        if isinstance(source, Path):
            return context.desk.examine_metric(source, account)
        _check_not_banned(context, account)
        return context.desk.examine_repository(source, account)

    def submit(self, context: Context, account: Account) -> Accepted:
        """Hand it in, if code is taken here."""
        gate = context.desk.gate()
        if not gate.ok:
            raise SubmitterError("no_isolation", gate.reason, gate.remedy)
        source = chosen_source(self.path, self.repository)
        send = (
            context.desk.submit_metric
            if isinstance(source, Path)
            else context.desk.submit_repository
        )
        return send(
            source,  # type: ignore[arg-type]
            account=account,
            submitter=(self.submitter or "").strip(),
            private=bool(self.private),
            receipt=_receipt(self.receipt),
        )


@dataclass(frozen=True)
class FileForm:
    """A scores file, with what is said beside it."""

    path: str | None
    benchmark: str | None = None
    name: str | None = None
    version: str | None = None
    description: str | None = None
    lower: str | None = None
    """Names of the lower-is-better columns, with commas between them."""
    submitter: str | None = None
    private: bool = False
    kind: Kind = Kind.SCORES

    def examine(self, context: Context, account: Account) -> Examination:
        """Read it without keeping it."""
        path, form = self._given()
        _check_not_banned(context, account)
        return context.desk.examine_scores(path, form, account)

    def submit(self, context: Context, account: Account) -> Accepted:
        """Hand it in."""
        path, form = self._given()
        return context.desk.submit_scores(
            path,
            benchmark=form.benchmark,
            account=account,
            submitter=(self.submitter or "").strip(),
            name=form.name,
            version=form.version,
            description=form.description,
            lower_is_better=form.lower_is_better,
            private=bool(self.private),
        )

    def _given(self) -> tuple[Path, ScoresForm]:
        if not self.path:
            raise SubmitterError("no_file", "No scores file is chosen.", "Choose a file first.")
        if not self.benchmark:
            raise SubmitterError(
                "no_benchmark", "No benchmark is chosen.", "Choose the one these scores are for."
            )
        words = (self.name, self.version, self.description)
        name, version, description = ((given or "").strip() for given in words)
        lower = tuple(part.strip() for part in (self.lower or "").split(",") if part.strip())
        return Path(self.path), ScoresForm(self.benchmark, name, version, description, lower)


@dataclass(frozen=True)
class ImagesForm:
    """The images of a model: a file, or a dataset of the Hub in place of one."""

    path: str | None
    repository: str | None = None
    name: str | None = None
    version: str | None = None
    prompt_set: str | None = None
    submitter: str | None = None
    private: bool = False
    tell: Tell | None = None
    kind: Kind = Kind.GENERATIONS

    def examine(self, context: Context, account: Account) -> Examination:
        """Look at every image without keeping any."""
        source = self._source()
        _check_not_banned(context, account)
        return context.desk.examine_generations(source, self._said(), self.tell, account)

    def submit(self, context: Context, account: Account) -> Accepted:
        """Hand them in."""
        return context.desk.submit_generations(
            self._source(),
            account=account,
            submitter=(self.submitter or "").strip(),
            private=bool(self.private),
            said=self._said(),
            tell=self.tell,
        )

    def _source(self) -> Path | str:
        found = chosen_source(self.path, self.repository)
        if isinstance(found, str) and not found.removeprefix("hub:").startswith("datasets/"):
            return f"datasets/{found.removeprefix('hub:')}"
        return found

    def _said(self) -> SaidOfImages:
        words = (self.name, self.version, self.prompt_set)
        name, version, prompt_set = ((given or "").strip() for given in words)
        return SaidOfImages(name, version, prompt_set)


@dataclass(frozen=True)
class Answer:
    """What is answered to a form."""

    html: str  # from a template
    passed: bool = False  # whether the check found nothing wrong
    submission_id: str = ""  # of what was taken in; empty where nothing was


def chosen_source(path: str | None, repository: str | None) -> Path | str:
    """The file that was chosen, or the name of the repository."""
    named = (repository or "").strip()
    if path and named:
        raise SubmitterError(
            "two_sources",
            "An archive is chosen, and a repository is named as well.",
            "Remove the one that you do not mean, then try again.",
        )
    if not path and not named:
        raise SubmitterError(
            "no_file",
            "No file is chosen, and no repository is named.",
            "Choose a file or name a repository of the Hub, then try again.",
        )
    return Path(path) if path else named


def check(context: Context, account: Account | None, form: Form) -> Answer:
    """Look at what a form holds without keeping it: all problems, or what a worker would do."""
    return _answered(lambda: _checked(context, required(context, account), form))


def send(context: Context, account: Account | None, form: Form) -> Answer:
    """Hand in what a form holds."""

    def act() -> Answer:
        taken = form.submit(context, required(context, account))
        html = render("submit/receipt.html", answer=taken)
        return Answer(html, submission_id=taken.status.submission.submission_id)

    return _answered(act)


def refused(error: AssayError) -> str:
    """What is wrong, what to do about it, and that nothing in the form is lost."""
    return render("submit/refused.html", error=error)


def may_send(context: Context, account: Account | None) -> bool:
    """Whether the forms are of any use to a visitor."""
    return account is not None and ban_of(context, account) is None


def titles_of(context: Context) -> dict[str, str]:
    """Benchmark or prompt set to its display title."""
    sets = context.models.prompt_sets if context.models else {}
    return {
        **{name: one.card.title for name, one in sets.items()},
        **{name: card.title for name, card in context.cards.items()},
    }


def check_page(context: Context, kind: Kind, found: Examination) -> str:
    """What a check found."""
    return render(
        "submit/check.html",
        found=found,
        kind=kind.value,
        boards=boards_of(context.cards, titles_of(context), found),
        does=work_words(kind, found),
        takes=wait_words(context, kind),
        size=size_words(found.n_bytes),
        most=MOST_KINDS,
        listed=MOST_LISTED,
    )


def _checked(context: Context, account: Account, form: Form) -> Answer:
    found = form.examine(context, account)
    return Answer(check_page(context, form.kind, found), passed=not found.problems)


def _answered(act: Callable[[], Answer]) -> Answer:
    """Do it, and say what came of it. Defects of ours that no one foresaw are not hidden here."""
    try:
        return act()
    except AssayError as error:
        return Answer(refused(error))


def _check_not_banned(context: Context, account: Account) -> None:
    if ban := ban_of(context, account):
        raise SubmitterError("banned", f"You may not submit here: {ban.reason}")


def _receipt(path: str | None) -> bytes | None:
    if not path:
        return None
    with Path(path).open("rb") as file:
        content = file.read(MOST_RECEIPT_BYTES + 1)
    if len(content) > MOST_RECEIPT_BYTES:
        raise SubmitterError(
            "bad_receipt",
            f"The receipt is longer than {MOST_RECEIPT_BYTES:,} bytes.",
            "Send the .receipt.json that `check` wrote, or none.",
        )
    return content
