"""Commands on submissions that exist: withdraw, publish, rerun, hide and the like.

`quota`, `withdraw`, `publish` are of submitters. `rerun`, `clear`, `hide`, `show`, `ban`, `unban`, `policy`,
`ledger` are of operators: each needs a reason, which everybody can read.
"""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer
from rich.text import Text

from benchmarks.command_line import JsonOption
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, table
from evaluator.submission.builtin import current_row
from leaderboard.governance.authentication import this_person
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.governance.quota import quota_use
from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import Policy, Quota, read_policy
from leaderboard.publication.publisher import cards_of
from leaderboard.records import Kind, Status
from leaderboard.store.interface import Store

Submission = Annotated[str, typer.Argument(help="Submission.")]


def acts_on(opened: Store) -> OperatorActions:
    """What can be done with the submissions of a store."""
    return OperatorActions(opened, cards_of(load_registry()), opened.clock)


def say(status: Status) -> None:
    """One line about where a submission is now."""
    reason = f": {status.reason}" if status.reason else ""
    console().print(Text(f"{status.submission.submission_id}: {status.state}{reason}"))


def quota(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Show what you have used of your allowance, and what is left.

    Only a scored result is charged: what is rejected, fails or is withdrawn before costs nothing.

    Example: python -m evaluator quota
    """
    opened, person = store.open(), this_person()
    policy = read_policy(opened.public)
    statuses = Ledger(opened).statuses_with_records()
    lines = quota_use(person.key, statuses, policy, opened.clock())
    if as_json:
        record = [line.model_dump(mode="json") | {"left": line.left} for line in lines]
        typer.echo(json.dumps({"account": person.key, "standings": record}, indent=1))
        return
    heads = ("kind", f"scored in {policy.period_days} days", "left", "unfinished", "next free")
    rows = [
        (
            line.kind,
            f"{line.scored} of {line.scored_most}",
            str(line.left),
            f"{line.unfinished} of {line.unfinished_most}",
            f"{line.next_free:%Y-%m-%d %H:%M} UTC" if line.next_free else "",
        )
        for line in lines
    ]
    console().print(Text(person.key))
    console().print(table(heads, rows))


def withdraw(
    submission_id: Submission,
    reason: Annotated[str, typer.Option(help="Why; it is shown.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Take one of your submissions back, for good.

    Its results leave the boards; that it was here stays in the ledger.

    Example: python -m evaluator withdraw my-metric-0123456789
    """
    opened = store.existing()
    if not yes:
        typer.confirm(f"Withdraw {submission_id} for good?", abort=True, err=True)
    say(acts_on(opened).withdraw(submission_id, this_person(), reason))


def publish(submission_id: Submission, store: StoreOption = DEFAULT_STORE) -> None:
    """Put one of your private submissions, once it is finished, on the boards.

    Example: python -m evaluator publish private-0123456789
    """
    say(acts_on(store.existing()).publish(submission_id, this_person()))


Reason = Annotated[str, typer.Option(help="Why; everybody can read it.")]
AccountKey = Annotated[str, typer.Argument(help="Account, for example hub:ada.")]


def rerun(
    submission_id: Annotated[str | None, typer.Argument(help="Submission.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; everybody can read it.")] = None,
    all_platform: Annotated[
        bool, typer.Option("--all-platform", help="All that failed by the platform's fault.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --all-platform: list them, and change nothing.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Queue a finished submission again; its results stay until new ones replace them.

    With --all-platform every one that failed, but not by its author's fault: after an outage was
    mended. What is queued already is left as it is.

    Example: python -m evaluator rerun my-metric-0123456789 --reason "new data"
    """
    if (submission_id is None) is not all_platform:
        raise typer.BadParameter("name one submission, or give --all-platform")
    if dry_run and not all_platform:
        raise typer.BadParameter("it lists what --all-platform would queue", param_hint="--dry-run")
    if reason is None and not dry_run:
        raise typer.BadParameter("say why; everybody can read it", param_hint="--reason")
    acts, operator = acts_on(store.existing()), this_person(operator=True)
    if submission_id is not None:
        _check_row(store.existing(), submission_id)
        say(acts.rerun(submission_id, operator, reason or ""))
        return
    failed = acts.failed_by_us() if dry_run else acts.rerun_failed_by_us(operator, reason or "")
    for status in failed:
        say(status)
    done = "would be queued" if dry_run else "are queued"
    console().print(f"{len(failed)} failed by the platform's fault and {done}.", highlight=False)


def _check_row(opened: Store, submission_id: str) -> None:
    """Refuse a built-in metric whose row changed: a worker would."""
    submission = Ledger(opened).whole_status(submission_id).submission
    if submission.builtin:
        current_row(submission)


def clear(submission_id: Submission, reason: Reason, store: StoreOption = DEFAULT_STORE) -> None:
    """Clear a submission of the suspicion that it looks its scores up, so that it may rank.

    Example: python -m evaluator clear my-metric-0123456789 --reason "it is random on purpose"
    """
    say(acts_on(store.existing()).clear(submission_id, this_person(operator=True), reason))


def hide(submission_id: Submission, reason: Reason, store: StoreOption = DEFAULT_STORE) -> None:
    """Take a submission off the boards.

    Example: python -m evaluator hide my-metric-0123456789 --reason "copied"
    """
    say(acts_on(store.existing()).hide(submission_id, this_person(operator=True), reason))


def show(
    submission_id: Submission,
    reason: Annotated[str, typer.Option(help="Why; everybody can read it.")] = "",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Put a hidden submission back to where it was.

    Example: python -m evaluator show my-metric-0123456789
    """
    say(acts_on(store.existing()).show(submission_id, this_person(operator=True), reason))


def ban(account: AccountKey, reason: Reason, store: StoreOption = DEFAULT_STORE) -> None:
    """Take nothing more from an account; what of it is queued is rejected.

    Example: python -m evaluator ban hub:mallory --reason "answers in the weights"
    """
    made = acts_on(store.open()).ban(account, this_person(operator=True), reason)
    console().print(Text(f"{made.account} is banned: {made.reason}"))


def unban(account: AccountKey, reason: Reason, store: StoreOption = DEFAULT_STORE) -> None:
    """Take submissions from an account again.

    Example: python -m evaluator unban hub:mallory --reason "a misunderstanding"
    """
    acts_on(store.open()).unban(account, this_person(operator=True), reason)
    console().print(Text(f"{account} may submit again."))


def policy(
    scored: Annotated[
        list[str] | None, typer.Option(help="KIND=N: may be scored in a period; repeatable.")
    ] = None,
    unfinished: Annotated[
        list[str] | None, typer.Option(help="KIND=N: may wait or run at once; repeatable.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, max=366, help="Length of a period.")] = None,
    reevaluate: Annotated[
        bool | None,
        typer.Option(
            "--reevaluate/--no-reevaluate",
            help="Whether a starting worker queues again what a new revision concerns, or "
            "`reevaluate` does.",
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, where it is changed.")] = "",
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show or change what each account is allowed.

    Example: python -m evaluator policy --scored metric=20 --reason "a second GPU"
    """
    opened = store.open()
    current = read_policy(opened.public)
    if scored or unfinished or days or reevaluate is not None:
        current = _changed(current, scored or [], unfinished or [], days)
        if reevaluate is not None:
            current = current.model_copy(update={"reevaluate": reevaluate})
        acts_on(opened).set_policy(current, this_person(operator=True), reason)
    if as_json:
        typer.echo(current.model_dump_json(indent=1))
        return
    heads = ("kind", f"scored in {current.period_days} days", "unfinished at once")
    allowed = current.allowances.items()
    console().print(table(heads, [(k, str(a.scored), str(a.unfinished)) for k, a in allowed]))
    when = "by itself" if current.reevaluate else "when `reevaluate` is run"
    console().print(f"What a new revision concerns is queued again {when}.", highlight=False)


def ledger(
    subject: Annotated[str, typer.Option(help="Only of this submission or account.")] = "",
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Print the public ledger, and whether its chain holds.

    Example: python -m evaluator ledger --subject hub:ada
    """
    public = store.existing().public
    lines = [line for line in read_lines(public) if subject in ("", line.subject)]
    broken = verify(public)
    if as_json:
        record = [line.model_dump(mode="json") for line in lines]
        typer.echo(json.dumps({"lines": record, "problems": broken}, indent=1))
    else:
        for line in lines:
            reason = f": {line.reason}" if line.reason else ""
            told = f"{line.n} {line.at:%Y-%m-%d %H:%M:%S} {line.action} {line.subject} by {line.by}"
            console().print(Text(told + reason), soft_wrap=True)
        console().print(Text("; ".join(broken) if broken else "The chain holds."))
    if broken:
        raise typer.Exit(3)


def _changed(current: Policy, scored: list[str], unfinished: list[str], days: int | None) -> Policy:
    allowances = dict(current.allowances)
    for field, given in (("scored", scored), ("unfinished", unfinished)):
        for text in given:
            kind, number = _kind_and_number(text, f"--{field}")
            before = allowances.get(kind, Quota(scored=0, unfinished=0))
            allowances[kind] = before.model_copy(update={field: number})
    return current.model_copy(
        update={"period_days": days or current.period_days, "allowances": allowances}
    )


def _kind_and_number(text: str, option: str) -> tuple[Kind, int]:
    kind, _, number = text.partition("=")
    if kind not in tuple(Kind) or not re.fullmatch(r"[0-9]{1,6}", number):
        raise SubmitterError(
            "bad_allowance",
            f"{option} {text[:80]!r} is not KIND=N.",
            f"Kinds: {', '.join(Kind)}; N is a whole number of at most six digits.",
        )
    return Kind(kind), int(number)
