"""Activity: the queue, and the public ledger."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from leaderboard.api.schemas import MOST_PER_PAGE, Paged
from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.audit_log import PER_PAGE, LedgerQuery
from leaderboard.views.parameters import text
from leaderboard.views.submissions import QueueEstimate, in_turn, measured_s, outlooks

NOT_LISTED = frozenset({State.HIDDEN, State.HELD})
"""What an operator took away, and what waits for its author alone."""
_QUEUE = (
    "submission_id", "name", "version", "kind", "metrics", "benchmarks", "submitter", "account",
    "state", "since", "received_at", "attempts", "place", "of", "wait_s", "code", "fault", "reason",
    "hint",
)  # fmt: skip
_LEDGER = ("n", "at", "by", "action", "subject", "reason", "record", "before")
_TYPES = {Type.COUNT: "attempts place of n", Type.NUMBER: "wait_s"}
_MEANINGS = {
    "place": "In the queue, from 1; missing where it does not wait.",
    "of": "How many wait.",
    "wait_s": "Seconds until it is begun, as far as can be told.",
    "attempts": "How often a worker has claimed it.",
    "n": "Number of the line, from 1.",
    "record": "SHA-256 of what the line stands for.",
    "before": "SHA-256 of the line before.",
}


router = TableRouter()


class QueueParameters(Paged):
    """Parameters of the queue."""

    state: Annotated[
        State | None,
        BeforeValidator(lambda given: given or None),
        WithJsonSchema({"type": "string", "enum": list(State), "examples": ["queued"]}),
    ] = Field(default=None, description="Only those in it.")


class LedgerParameters(Paged):
    """Parameters of the ledger."""

    per_page: int = Field(
        default=PER_PAGE, ge=1, le=MOST_PER_PAGE, examples=[50],
        description=f"Rows of a page, at most {MOST_PER_PAGE}.",
    )  # fmt: skip
    subject: str = text("Submission or account it was done to.")
    account: str = text("Who did it.")
    action: str = text("What was done.", "published")


@router.table("/queue", of_snapshot=False)
def queue(source: Source, query: QueueParameters) -> Table:
    """Submissions: in work, waiting with their place, done.

    Private and hidden ones are not listed, nor is what is held for its author.
    """
    statuses = source.reader.statuses()
    pulses = source.store.live.pulses()
    each_s = measured_s(source.reader.view().entries.values())
    turns = outlooks(statuses, pulses, source.clock(), each_s)
    public = [s for s in statuses if not s.submission.private and s.state not in NOT_LISTED]
    ordered = (s for group in in_turn(public, turns) for s in group)
    found = [s for s in ordered if query.state in {None, s.state}]
    rows = [_queued(s, turns.get(s.submission.submission_id)) for s in query.of(found)]
    latest = max((s.since for s in public), default=None)
    about = {"as_of": latest.isoformat() if latest else None, **query.about(len(found))}
    return Table("queue", columns_of(_QUEUE, _TYPES, _MEANINGS), rows, about)


def _queued(status: Status, turn: QueueEstimate | None) -> dict[str, Value]:
    own = status.submission
    return {
        **own.model_dump(include={"submission_id", "name", "version", "submitter", "account"}),
        **status.model_dump(include={"attempts", "code", "fault", "reason", "hint"}),
        "kind": own.kind.value,
        "metrics": ", ".join(own.metrics),
        "benchmarks": ", ".join(own.benchmarks),
        "state": status.state.value,
        "since": status.since.isoformat(),
        "received_at": own.received_at.isoformat(),
        "place": turn.place if turn else None,
        "of": turn.of if turn else None,
        "wait_s": turn.wait_s if turn else None,
    }


@router.table("/ledger", of_snapshot=False)
def ledger(source: Source, query: LedgerParameters) -> Table:
    """Lines of the public ledger, newest first."""
    known = source.audit_log.latest()
    of_page = LedgerQuery.from_params(query.to_params())
    found = [line for line in reversed(known.lines) if of_page.matches(line)]
    rows: list[dict[str, Value]] = [
        {**line.model_dump(include=set(_LEDGER)), "at": line.at.isoformat()}
        for line in query.of(found)
    ]
    about = {
        "as_of": known.lines[-1].at.isoformat() if known.lines else None,
        **query.about(len(found)), "head": known.head,
    }  # fmt: skip
    return Table("ledger", columns_of(_LEDGER, _TYPES, _MEANINGS), rows, about)
