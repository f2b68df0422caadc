"""Activity: the queue, and the public ledger."""

from __future__ import annotations

from leaderboard.api.operations import PAGING, Asked, Operation, Parameter
from leaderboard.api.problems import bad_query
from leaderboard.api.source import Source
from leaderboard.records import Status
from leaderboard.states import IN_WORK, WAITING, State
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.audit_log import PER_PAGE, LedgerQuery
from leaderboard.views.queue import Outlook, measured_s, outlooks

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


def queue(source: Source, asked: Asked) -> Table:
    """Submissions in the order of the page: in work, waiting, done.

    Private submissions are left out, and so is what is hidden or held for its author.

    Raises:
        RefusedError: `bad_query`.
    """
    statuses = source.reader.statuses()
    wanted = asked.params.get("state", "")
    if wanted and wanted not in set(State):
        raise bad_query("There is no such state.", f"One of: {', '.join(State)}.")
    pulses = source.store.live.pulses()
    each_s = measured_s(source.reader.view().entries.values())
    turns = outlooks(statuses, pulses, source.clock(), each_s)
    public = [s for s in statuses if not s.submission.private and s.state not in NOT_LISTED]
    found = [s for s in _in_order(public, turns) if not wanted or s.state == wanted]
    number, size = asked.page(100)
    page = found[(number - 1) * size : number * size]
    rows = [_queued(s, turns.get(s.submission.submission_id)) for s in page]
    latest = max((s.since for s in public), default=None)
    about = {
        "as_of": latest.isoformat() if latest else None, "found": len(found), "page": number,
        "per_page": size,
    }  # fmt: skip
    return Table("queue", columns_of(_QUEUE, _TYPES, _MEANINGS), rows, about)


def _in_order(statuses: list[Status], turns: dict[str, Outlook]) -> list[Status]:
    def place(status: Status) -> float:
        found = turns.get(status.submission.submission_id)
        return found.place if found else float("inf")

    in_work = [s for s in statuses if s.state in IN_WORK]
    waiting = sorted((s for s in statuses if s.state in WAITING), key=place)
    done = [s for s in reversed(statuses) if s.state not in IN_WORK | WAITING]
    return [*in_work, *waiting, *done]


def _queued(status: Status, turn: Outlook | None) -> dict[str, Value]:
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


def ledger(source: Source, asked: Asked) -> Table:
    """Lines of the public ledger, newest first, each with the hash of the line before it.

    Raises:
        RefusedError: `bad_query`.
    """
    known = source.chronicle.known()
    query = LedgerQuery.from_params(asked.params)
    found = [line for line in reversed(known.lines) if query.matches(line)]
    number, size = asked.page(PER_PAGE)
    rows: list[dict[str, Value]] = [
        {**line.model_dump(include=set(_LEDGER)), "at": line.at.isoformat()}
        for line in found[(number - 1) * size : number * size]
    ]
    about = {
        "as_of": known.lines[-1].at.isoformat() if known.lines else None,
        "found": len(found), "page": number, "per_page": size, "head": known.head,
    }  # fmt: skip
    return Table("ledger", columns_of(_LEDGER, _TYPES, _MEANINGS), rows, about)


OPERATIONS = (
    Operation(
        "/queue", "queue",
        "Submissions: in work, waiting with their place, done. Private and hidden ones are not "
        "listed.",
        queue, (Parameter("state", "Only those in it.", "queued", tuple(State)), *PAGING),
        of_snapshot=False,
    ),
    Operation(
        "/ledger", "ledger", "Lines of the public ledger, newest first.", ledger,
        (
            Parameter("subject", "Submission or account it was done to."),
            Parameter("account", "Who did it."), Parameter("action", "What was done.", "published"),
            *PAGING,
        ),
        of_snapshot=False,
    ),
)  # fmt: skip
