"""Forms and actions of submissions: what is answered to a check, to sending, and to a button.

The account is checked first, always: a button that is not shown protects nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from benchmarks.errors import AssayError, SubmitterError
from benchmarks.problems import ProblemsError, problems_of
from leaderboard.accounts import Account
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.governance.rights import Action, require_operator
from leaderboard.ledger.policy import MOST_ALLOWED, Policy, Quota
from leaderboard.records import Kind, Status
from leaderboard.rendering import render
from leaderboard.states import LEGEND
from leaderboard.submission_service import (
    BuiltinForm,
    ManifestOverrides,
    ScoresForm,
    SubmissionReceipt,
    Tell,
    ValidationReport,
)
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

    @property
    def submitter(self) -> str | None:
        """How it is to be signed; empty: with the name of the account."""

    def examine(self, context: Context, account: Account) -> ValidationReport:
        """Look at it without keeping it."""

    def submit(self, context: Context, account: Account) -> SubmissionReceipt:
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

    def examine(self, context: Context, account: Account) -> ValidationReport:
        """Look at it without running or keeping it."""
        source = chosen_source(self.path, self.repository)
        if isinstance(source, Path):
            return context.desk.examine_metric(source, account)
        _check_not_banned(context, account)
        return context.desk.examine_repository(source, account)

    def submit(self, context: Context, account: Account) -> SubmissionReceipt:
        """Hand it in, if code is taken here."""
        gate = context.desk.sandbox_availability()
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

    def examine(self, context: Context, account: Account) -> ValidationReport:
        """Read it without keeping it."""
        path, form = self._form()
        _check_not_banned(context, account)
        return context.desk.examine_scores(path, form, account)

    def submit(self, context: Context, account: Account) -> SubmissionReceipt:
        """Hand it in."""
        path, form = self._form()
        return context.desk.submit_scores(
            path,
            form,
            account=account,
            submitter=(self.submitter or "").strip(),
            private=bool(self.private),
        )

    def _form(self) -> tuple[Path, ScoresForm]:
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

    def examine(self, context: Context, account: Account) -> ValidationReport:
        """Look at every image without keeping any."""
        source = self._source()
        _check_not_banned(context, account)
        return context.desk.examine_generations(source, self._overrides(), self.tell, account)

    def submit(self, context: Context, account: Account) -> SubmissionReceipt:
        """Hand them in."""
        return context.desk.submit_generations(
            self._source(),
            account=account,
            submitter=(self.submitter or "").strip(),
            private=bool(self.private),
            said=self._overrides(),
            tell=self.tell,
        )

    def _source(self) -> Path | str:
        found = chosen_source(self.path, self.repository)
        if isinstance(found, str) and not found.removeprefix("hub:").startswith("datasets/"):
            return f"datasets/{found.removeprefix('hub:')}"
        return found

    def _overrides(self) -> ManifestOverrides:
        words = (self.name, self.version, self.prompt_set)
        name, version, prompt_set = ((given or "").strip() for given in words)
        return ManifestOverrides(name, version, prompt_set)


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


def check_page(context: Context, kind: Kind, found: ValidationReport) -> str:
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
    wrong = context.desk.signature_problems((form.submitter or "").strip(), account)
    found = replace(found, problems=(*found.problems, *wrong))
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


BUTTONS: Mapping[Action, str] = {
    Action.PUBLISH: "Publish",
    Action.WITHDRAW: "Withdraw",
    Action.HIDE: "Hide",
    Action.SHOW: "Show again",
    Action.RERUN: "Run again",
}
"""In the order of display."""
REASONED = frozenset({Action.HIDE, Action.SHOW, Action.RERUN})
"""Actions that take a reason."""
KINDS = (Kind.METRIC, Kind.SCORES, Kind.GENERATIONS)
"""In the order of the fields of a policy."""


def policy_of(numbers: Sequence[float | None]) -> Policy:
    """The policy that the fields ask for.

    These are the days of the period; then, of scoring modules, of scores files and of generations
    each, how many may be scored within it and how many may wait or run at once.
    """
    try:
        days, *allowed = map(_whole, numbers)
        both = zip(KINDS, allowed[::2], allowed[1::2], strict=True)
        return Policy(
            period_days=days,
            allowances={kind: Quota(scored=n, unfinished=most) for kind, n, most in both},
        )
    except (ValueError, OverflowError) as error:
        raise SubmitterError(
            "bad_policy",
            "A policy has whole numbers: a period of 1 to 366 days, and quotas from 0 to "
            f"{MOST_ALLOWED:,}.",
            "Fill in every field.",
        ) from error


def act_on(
    context: Context,
    acts: OperatorActions,
    account: Account | None,
    action: Action,
    submission_id: str,
    *,
    reason: str = "",
) -> str:
    """Do one thing to one submission, and say what came of it."""

    def act() -> str:
        by = required(context, account)
        ways: Mapping[Action, Callable[[], Status]] = {
            Action.WITHDRAW: lambda: acts.withdraw(submission_id, by, reason),
            Action.PUBLISH: lambda: acts.publish(submission_id, by),
            Action.HIDE: lambda: acts.hide(submission_id, by, reason),
            Action.SHOW: lambda: acts.show(submission_id, by, reason),
            Action.RERUN: lambda: acts.rerun(submission_id, by, reason),
        }
        return _done("Done.", status=ways[action]())

    return _outcome(act)


def ask_to_withdraw(context: Context, account: Account | None, submission_id: str) -> str:
    """What withdrawing would mean, for the step before it."""

    def act() -> str:
        status = context.own(required(context, account)).status(submission_id)
        return render("submit/sure.html", own=status.submission)

    return _outcome(act)


def ban(
    context: Context,
    acts: OperatorActions,
    account: Account | None,
    key: str,
    reason: str,
    *,
    lift: bool,
) -> str:
    """Ban an account, or lift its ban."""

    def act() -> str:
        by, whose = required(context, account), key.strip()
        if lift:
            acts.unban(whose, by, reason)
            return _done(f"{whose[:120]} may submit again.")
        acts.ban(whose, by, reason)
        return _done(f"{whose[:120]} may not submit any more.")

    return _outcome(act)


def set_policy(
    context: Context,
    acts: OperatorActions,
    account: Account | None,
    numbers: Sequence[float | None],
    reason: str,
) -> str:
    """Say what every account may have from now on."""

    def act() -> str:
        by = required(context, account)
        acts.set_policy(policy_of(numbers), by, reason)
        text = "It counts from now on, for what was scored before too."
        return _done("The policy is set.", text)

    return _outcome(act)


def check_builtin(context: Context, account: Account | None, wanted: BuiltinForm) -> str:
    """What a built-in metric needs, and everything that stands in its way; only for operators."""

    def act() -> str:
        by = _operator(context, account)
        return _builtin_page(context, context.desk.examine_builtin(_named(wanted), by))

    return _outcome(act)


def queue_builtin(context: Context, account: Account | None, wanted: BuiltinForm) -> str:
    """Queue a built-in metric, or say everything that stands in its way; only for operators."""

    def act() -> str:
        by = _operator(context, account)
        try:
            taken = context.desk.submit_builtin(_named(wanted), account=by)
        except ProblemsError as error:
            found = ValidationReport(problems_of(error), name=wanted.name)
            return _builtin_page(context, found)
        here = "It is here already; nothing was added." if taken.recognised else ""
        return _done("Done.", here, status=taken.status)

    return _outcome(act)


def _operator(context: Context, account: Account | None) -> Account:
    by = required(context, account)
    require_operator(by, "submit a built-in metric")
    return by


def _builtin_page(context: Context, found: ValidationReport) -> str:
    boards = boards_of(context.cards, titles_of(context), found)
    return render("submit/builtin.html", found=found, boards=boards)


def _named(wanted: BuiltinForm) -> BuiltinForm:
    if wanted.name:
        return wanted
    raise SubmitterError("no_metric", "No built-in metric is chosen.", "Choose one first.")


def bans_list(context: Context) -> str:
    """The bans in force, with their reasons."""
    bans = tuple(context.reader.bans().values())
    return render("submit/bans.html", bans=bans, legend=LEGEND)


def _done(strong: str, text: str = "", status: Status | None = None) -> str:
    return render("submit/done.html", strong=strong, text=text, status=status, legend=LEGEND)


def _outcome(act: Callable[[], str]) -> str:
    try:
        return act()
    except AssayError as error:
        return refused(error)


def _whole(given: float | None) -> int:
    if given is None or given != int(given):
        raise ValueError("not a whole number")
    return int(given)
