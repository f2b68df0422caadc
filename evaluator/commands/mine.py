"""`quota`, `withdraw`, `publish`: what submitters do beside submitting."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.registry import load_registry
from evaluator.commands.common import DEFAULT_STORE, JsonOption, StoreOption, console
from evaluator.commands.person import this_person
from leaderboard.governance.acts import Acts
from leaderboard.governance.quota import standings
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import read_policy
from leaderboard.records import Status
from leaderboard.store.interface import Store

Submission = Annotated[str, typer.Argument(help="Submission.")]


def acts_on(opened: Store) -> Acts:
    """What can be done with the submissions of a store."""
    cards = {name: benchmark.card for name, benchmark in load_registry().items()}
    return Acts(opened, cards, opened.clock)


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
    lines = standings(person.key, statuses, policy, opened.clock())
    if as_json:
        record = [line.model_dump(mode="json") | {"left": line.left} for line in lines]
        typer.echo(json.dumps({"account": person.key, "standings": record}, indent=1))
        return
    table = Table("kind", f"scored in {policy.period_days} days", "left", "unfinished", "next free")
    for line in lines:
        table.add_row(
            line.kind,
            f"{line.scored} of {line.scored_most}",
            str(line.left),
            f"{line.unfinished} of {line.unfinished_most}",
            f"{line.next_free:%Y-%m-%d %H:%M} UTC" if line.next_free else "",
        )
    console().print(Text(person.key))
    console().print(table)


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
