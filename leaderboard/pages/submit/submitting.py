"""Buttons of the submit page. The account is checked first, always."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import AssayError, SubmitterError
from leaderboard.accounts import Account
from leaderboard.desk import Accepted
from leaderboard.governance.quota import standings
from leaderboard.ledger.bans import Ban, read_bans
from leaderboard.ledger.policy import read_policy
from leaderboard.pages.page import Context
from leaderboard.pages.submit.allowance import allowance, ban_notice
from leaderboard.pages.submit.answers import accepted, examined, refused
from leaderboard.pages.visitors import required, who

MOST_RECEIPT_BYTES = 64_000


@dataclass(frozen=True)
class ModuleForm:
    """The fields of the module tab, as they were filled in."""

    path: str | None
    receipt: str | None = None
    submitter: str = ""
    private: bool = False
    repository: str | None = None
    """Of the Hub, in place of an archive."""

    @property
    def source(self) -> Path | str:
        """The archive, or the name of the repository.

        Raises:
            SubmitterError: `two_sources` where both are given, `no_file` where neither is.
        """
        return chosen_source(self.path, self.repository)


@dataclass(frozen=True)
class ScoresForm:
    """The fields of the scores tab, as they were filled in."""

    path: str | None
    benchmark: str | None
    submitter: str = ""
    name: str = ""
    version: str = ""
    description: str = ""
    lower: str = ""
    """Names of the lower-is-better columns, with commas between them."""
    private: bool = False


def chosen_source(path: str | None, repository: str | None) -> Path | str:
    """The file that was chosen, or the name of the repository.

    Raises:
        SubmitterError: `two_sources` where both are given, `no_file` where neither is.
    """
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
            "No archive is chosen, and no repository is named.",
            "Choose a file or name a repository of the Hub, then try again.",
        )
    return Path(path) if path else named


def answer(act: Callable[[], str]) -> str:
    """Do it, and say what came of it. Defects of ours that no one foresaw are not hidden here."""
    try:
        return act()
    except AssayError as error:
        return refused(error)


def check_metric(context: Context, account: Account | None, form: ModuleForm) -> str:
    """Look at an archive or a repository without keeping it, and list everything that is wrong."""

    def act() -> str:
        sender = required(context, account)
        source = form.source
        if isinstance(source, Path):
            return examined(context.desk.examine_metric(source))
        if ban := ban_of(context, sender):
            raise SubmitterError("banned", f"You may not submit here: {ban.reason}")
        return examined(context.desk.examine_repository(source))

    return answer(act)


def send_metric(context: Context, account: Account | None, form: ModuleForm) -> str:
    """Hand a scoring module in, if code is taken here."""

    def act() -> str:
        sender = required(context, account)
        gate = context.desk.gate()
        if not gate.ok:
            raise SubmitterError("no_isolation", gate.reason, gate.remedy)
        return accepted(_sent(context, sender, form))

    return answer(act)


def _sent(context: Context, sender: Account, form: ModuleForm) -> Accepted:
    source, receipt, signed = form.source, _receipt(form.receipt), form.submitter.strip()
    if isinstance(source, Path):
        return context.desk.submit_metric(
            source, account=sender, submitter=signed, private=form.private, receipt=receipt
        )
    return context.desk.submit_repository(
        source, account=sender, submitter=signed, private=form.private, receipt=receipt
    )


def send_scores(context: Context, account: Account | None, form: ScoresForm) -> str:
    """Hand a scores file in."""

    def act() -> str:
        sender = required(context, account)
        file = _given(form.path)
        if not form.benchmark:
            raise SubmitterError(
                "no_benchmark", "No benchmark is chosen.", "Choose the one these scores are for."
            )
        return accepted(
            context.desk.submit_scores(
                file,
                benchmark=form.benchmark,
                account=sender,
                submitter=form.submitter.strip(),
                name=form.name.strip(),
                version=form.version.strip(),
                description=form.description.strip(),
                lower_is_better=tuple(p.strip() for p in form.lower.split(",") if p.strip()),
                private=form.private,
            )
        )

    return answer(act)


def ban_of(context: Context, account: Account) -> Ban | None:
    """Why an account may not submit; None where it may."""
    return read_bans(context.store.public).get(account.key)


def may_send(context: Context, account: Account | None) -> bool:
    """Whether the form is of any use to a visitor."""
    return account is not None and ban_of(context, account) is None


def standing_of(context: Context, account: Account | None) -> str:
    """Who is signed in and what they may still submit."""

    def act() -> str:
        shown = who(context.sign_in, account)
        if account is None:
            return shown
        banned = ban_notice(ban_of(context, account))
        if banned:
            return shown + banned
        policy = read_policy(context.store.public)
        own = context.own(account).statuses()
        return shown + allowance(standings(account.key, own, policy, context.clock()), policy)

    return answer(act)


def _given(path: str | None) -> Path:
    if not path:
        raise SubmitterError(
            "no_file", "No scores file is chosen.", "Choose a file, then try again."
        )
    return Path(path)


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
