"""The states of a submission and the only ways from one to another.

The table is the rule, the test and the legend on the page.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a submission stands."""

    RECEIVED = "received"
    REJECTED = "rejected"
    QUEUED = "queued"
    CLAIMED = "claimed"
    SCORING = "scoring"
    SCORED = "scored"
    JUDGING = "judging"
    HELD = "held"
    PUBLISHED = "published"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    HIDDEN = "hidden"
    SUPERSEDED = "superseded"


TRANSITIONS: dict[State | None, frozenset[State]] = {
    None: frozenset({State.RECEIVED}),
    State.RECEIVED: frozenset({State.REJECTED, State.QUEUED, State.WITHDRAWN}),
    # Only what was rejected because its account was banned is queued again, after the ban.
    State.REJECTED: frozenset({State.QUEUED}),
    State.QUEUED: frozenset({State.CLAIMED, State.WITHDRAWN, State.REJECTED}),
    # A lease that ran out is claimed again by another worker; a transient fault puts it back.
    State.CLAIMED: frozenset(
        {State.SCORING, State.CLAIMED, State.QUEUED, State.FAILED, State.WITHDRAWN}
    ),
    State.SCORING: frozenset(
        {State.SCORED, State.CLAIMED, State.QUEUED, State.FAILED, State.WITHDRAWN}
    ),
    State.SCORED: frozenset(
        {State.JUDGING, State.CLAIMED, State.QUEUED, State.FAILED, State.WITHDRAWN}
    ),
    # A judge that stops leaves the scores to another; one that died is followed by another.
    State.JUDGING: frozenset(
        {
            State.SCORED,
            State.JUDGING,
            State.PUBLISHED,
            State.HELD,
            State.CLAIMED,
            State.QUEUED,
            State.FAILED,
            State.WITHDRAWN,
        }
    ),
    # Its author alone sees the results, until they publish it.
    # Kept scores are judged again where only measures changed. What cannot be run again for a new
    # revision stays as it is, and is told so.
    State.HELD: frozenset(
        {
            State.PUBLISHED,
            State.HELD,
            State.QUEUED,
            State.SCORED,
            State.WITHDRAWN,
            State.HIDDEN,
        }
    ),
    State.PUBLISHED: frozenset(
        {
            State.PUBLISHED,
            State.QUEUED,
            State.SCORED,
            State.WITHDRAWN,
            State.HIDDEN,
            State.SUPERSEDED,
        }
    ),
    # A rerun that failed leaves earlier results on the boards: a newer version takes their place.
    State.FAILED: frozenset({State.QUEUED, State.WITHDRAWN, State.HIDDEN, State.SUPERSEDED}),
    State.WITHDRAWN: frozenset(),
    State.HIDDEN: frozenset({State.PUBLISHED, State.HELD, State.WITHDRAWN}),
    State.SUPERSEDED: frozenset({State.WITHDRAWN, State.HIDDEN, State.PUBLISHED}),
}

LEGEND: dict[State, str] = {
    State.RECEIVED: "The upload is stored; its form is being checked.",
    State.REJECTED: "The upload cannot be run; the reason says what to change.",
    State.QUEUED: "Checked, and waiting for a worker.",
    State.CLAIMED: "A worker has taken it and holds a lease on it.",
    State.SCORING: "The scorer is running on the benchmarks' questions.",
    State.SCORED: "All scores are in.",
    State.JUDGING: "The measures are being computed from the scores.",
    State.HELD: "Finished; only its author sees the results, until they publish them.",
    State.PUBLISHED: "On the boards.",
    State.FAILED: "It stopped; the reason says whose fault it was and what to do.",
    State.WITHDRAWN: "Taken back by its author.",
    State.HIDDEN: "Taken off the boards by the operator, with a reason.",
    State.SUPERSEDED: "A newer version by the same author stands on the boards.",
}

IN_WORK = frozenset({State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING})
"""States in which a worker holds a lease."""

TO_JUDGE = "to_judge"
"""Code of a `SCORED` event that leaves the scores to a judge: no worker holds a lease then."""

NOT_BEGUN = "not_begun"
"""Code of a claim that follows one whose worker died before it began: that was no attempt."""

IN_BATCH = "in_batch"
"""Code of what was claimed together with others: its worker may be at another of them."""

CLEARED = "lookup_cleared"
"""Code of an event by which an operator clears what is published of the suspicion of a lookup: its
reason says why, and nothing but its ranks moves."""

RENEWED = "renewed"
"""Code of an event by which a worker goes on holding what it claimed: nothing but the lease moves."""

NEW_METRIC = "new_metric"
"""Code of generations that are queued again for metrics that have not scored them yet."""

SHOWN_OR_NOT = frozenset(
    {State.PUBLISHED, State.HELD, State.WITHDRAWN, State.HIDDEN, State.SUPERSEDED}
)
"""States that decide whether results are on the boards."""

WAITING = frozenset({State.RECEIVED, State.QUEUED})


def allowed(before: State | None, after: State) -> bool:
    """Whether a submission may go from one state to another (None: it does not exist yet)."""
    return after in TRANSITIONS[before]


FINISHED = frozenset(
    {
        State.REJECTED,
        State.HELD,
        State.PUBLISHED,
        State.FAILED,
        State.WITHDRAWN,
        State.HIDDEN,
        State.SUPERSEDED,
    }
)
"""States in which nothing more happens by itself."""
