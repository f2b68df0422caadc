"""Submissions as visitors, their authors and operators see them: the queue, rows, and one of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from leaderboard.governance.rights import Action
from leaderboard.ledger.versions import standing_over, superseded_versions
from leaderboard.publication.entries import Entry, shown_account
from leaderboard.queueing import expected_wait, fair_order, typical_s
from leaderboard.records import Event, Kind, RunResult, Status, Submission
from leaderboard.replay import Attempt, attempts_of
from leaderboard.states import IN_WORK, WAITING, State
from leaderboard.store.live.interface import Heartbeat, readable_text
from leaderboard.submission_service import UNNAMED
from leaderboard.text import duration

ALIVE = timedelta(seconds=60)
"""A worker that has not beaten for longer is taken for gone: others take over what it held."""
MOST_ATTEMPTS = 3  # A run that ended so often without a result is given up


@dataclass(frozen=True)
class QueueEstimate:
    """Of one submission that waits."""

    place: int  # from 1
    of: int  # how many wait
    wait_s: float | None  # seconds until it is begun, as far as can be told; None: nobody can say


def alive(pulses: Sequence[Heartbeat], now: datetime) -> tuple[Heartbeat, ...]:
    """The pulses of workers that are there."""
    return tuple(pulse for pulse in pulses if now - pulse.at <= ALIVE)


def worker_of(status: Status, pulses: Sequence[Heartbeat], now: datetime) -> Heartbeat | None:
    """The pulse of the worker that holds a submission, if it is there."""
    if status.state not in IN_WORK or status.to_judge:
        return None
    return next((pulse for pulse in alive(pulses, now) if pulse.worker == status.by), None)


def outlooks(
    statuses: Sequence[Status], pulses: Sequence[Heartbeat], now: datetime, each_s: float | None
) -> dict[str, QueueEstimate]:
    """Submission id to its outlook, of all that wait for their first worker, next first."""
    order = fair_order(statuses, now, waiting=lambda status: status.state in WAITING)
    living = alive(pulses, now)
    free_in = {
        boxed: [_free_in(pulse, each_s) for pulse in living if pulse.isolation_ok or not boxed]
        for boxed in (True, False)
    }
    return {
        status.submission.submission_id: QueueEstimate(
            place, len(order), _finite(place, free_in[status.submission.boxed], each_s)
        )
        for place, status in enumerate(order, 1)
    }


def in_turn(
    statuses: Sequence[Status], found: Mapping[str, QueueEstimate]
) -> tuple[list[Status], list[Status], list[Status]]:
    """Submissions in work, those that wait, next first, and those done, newest first."""

    def place(status: Status) -> float:
        outlook = found.get(status.submission.submission_id)
        return math.inf if outlook is None else outlook.place

    return (
        [status for status in statuses if status.state in IN_WORK],
        sorted((status for status in statuses if status.state in WAITING), key=place),
        [status for status in reversed(statuses) if status.state not in IN_WORK | WAITING],
    )


def measured_s(entries: Iterable[Entry]) -> float | None:
    """What scoring took as a rule of what is published; None where nothing was measured."""
    seconds: Mapping[str, float] = {
        entry.submission_id: sum(cost.seconds for cost in entry.cost.values()) for entry in entries
    }
    return typical_s(seconds.values())


def _free_in(pulse: Heartbeat, each_s: float | None) -> float:
    """Seconds until a worker is done with all it holds, as far as can be told."""
    if not pulse.submission_id:
        return 0.0
    unknown = math.inf if each_s is None else each_s
    left = pulse.eta_s if pulse.eta_s is not None else unknown
    further = max(0, len(pulse.claimed) - 1)
    return max(0.0, left) + (further * unknown if further else 0.0)


def _finite(place: int, free_in_s: Sequence[float], each_s: float | None) -> float | None:
    found = expected_wait(place, free_in_s, each_s)
    return found if found is not None and math.isfinite(found) else None


MOST_ROWS = 100  # Of each group of the queue
MOST_RESULTS = 400
HEADLINES = 12
MOST_LAST_LINE = 200

KINDS: Mapping[Kind, str] = {
    Kind.METRIC: "scoring module",
    Kind.SCORES: "scores file",
    Kind.GENERATIONS: "generations",
}
FAULTS: Mapping[str, str] = {
    "submitter": "to be corrected by the submitter",
    "world": "something outside failed; it is tried again",
    "platform": "our fault; the submitter loses nothing by it",
}
Tone = Literal["", "good", "bad", "warn", "info"]
_LOOSE = ("not isolated", "our own code", "unsandboxed")
"""How the layers of a run begin that had no walls."""
_WHERE: Mapping[Kind, str] = {Kind.METRIC: "code", Kind.SCORES: "file", Kind.GENERATIONS: "images"}
_STEP_OF: Mapping[State, int] = {
    State.RECEIVED: 0,
    State.QUEUED: 1,
    State.CLAIMED: 2,
    State.SCORING: 2,
    State.SCORED: 3,
    State.JUDGING: 3,
}


@dataclass(frozen=True)
class Step:
    """One step of a submission from the upload to the boards."""

    label: str
    state: Literal["done", "now", "failed", "later"]


@dataclass(frozen=True)
class Progress:
    """What a worker says of the run it is at."""

    stage: str  # what is done now
    done: int  # of `total`
    total: int  # 0: not known
    rate_per_s: float  # 0: not known
    eta_s: float | None  # seconds left; None: not known

    @classmethod
    def of(cls, pulse: Heartbeat) -> Progress:
        """What a pulse says, within its bounds."""
        total = max(0, pulse.total)
        done = min(max(0, pulse.done), total)
        return cls(pulse.stage, done, total, pulse.rate_per_s, pulse.eta_s)

    @property
    def share(self) -> float:
        """Of 1."""
        return self.done / self.total if self.total else 0.0


@dataclass(frozen=True)
class Row:
    """A submission in a list."""

    status: Status  # where it stands, as far as the reader may see it
    boards: tuple[str, ...] = ()  # titles of its benchmarks
    attempts: str = ""  # `2 of 3`; empty before the first
    place: str = ""  # its place in the queue and when it may begin; empty where it does not wait
    note: str = ""  # what its worker does, or what it waits for
    progress: Progress | None = None  # of the run under way; None where nothing is known
    last_line: str = ""  # that its scorer printed: for its author and operators alone
    isolation: str = ""  # `isolated`, `not isolated`, or empty where that is not to be said
    layers: tuple[str, ...] = ()  # under which it was run

    @property
    def own(self) -> Submission:
        """The submission."""
        return self.status.submission

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "built-in metric" if self.own.builtin else KINDS[self.own.kind]

    @property
    def account(self) -> str:
        """The account behind it, where its signature is not the account's own name."""
        key = shown_account(self.own.account)
        return "" if self.own.submitter == key.partition(":")[2] else key

    @property
    def fault(self) -> str:
        """Whose fault it is that it stopped; empty where it did not."""
        return FAULTS.get(self.status.fault, "")

    @property
    def same_content(self) -> str:
        """An earlier submission by somebody else with the same content that may be named."""
        return next((one for one in self.own.same_content_as if one != UNNAMED), "")


@dataclass(frozen=True)
class Group:
    """Submissions under one heading; those cut off are counted."""

    title: str
    rows: tuple[Row, ...]
    beyond: int = 0


@dataclass(frozen=True)
class Queue:
    """All submissions: in work, waiting next first, done newest first."""

    groups: tuple[Group, ...]  # those that are not empty
    counts: tuple[tuple[str, int], ...]  # words to numbers
    # those that live, each with how many more submissions it has claimed than it is at
    workers: tuple[tuple[Heartbeat, int], ...]
    last_seen: datetime | None  # the latest pulse of any worker; None: none was ever seen
    now: datetime  # the moment of display
    busy: bool  # whether anything waits or is in work, so that the queue changes by itself
    commit_wait_min: int = 0  # for so many minutes what is to be written waits for commits


@dataclass(frozen=True)
class Moment:
    """What submissions are shown against."""

    pulses: Sequence[Heartbeat]  # the latest of every worker
    now: datetime  # the current time
    titles: Mapping[str, str] = field(default_factory=dict)  # benchmark name to its display title
    # of those that wait; None: among the submissions that are shown
    outlooks: Mapping[str, QueueEstimate] | None = None
    # submission id to the layers its published results were made under
    isolation: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # whether the reader may see what scorers print: their authors, and operators
    words: bool = False

    @property
    def isolates(self) -> bool:
        """Whether a worker is there that runs untrusted code."""
        return any(pulse.isolation_ok for pulse in alive(self.pulses, self.now))


@dataclass(frozen=True)
class Result:
    """A stored result row, with its interval."""

    metric: str
    measure: str
    value: float | None
    low: float | None
    high: float | None
    clusters: str
    note: str


@dataclass(frozen=True)
class Run:
    """Results of a submission on one benchmark."""

    benchmark: str  # its name
    title: str  # of the benchmark
    headline: tuple[Result, ...]  # the rows over all items
    results: tuple[Result, ...]  # all rows
    layers: tuple[str, ...]  # under which it was run
    same_scores: str  # an earlier submission by somebody else with the same scores


@dataclass(frozen=True)
class Earlier:
    """Results of a submission at an earlier revision: benchmark titles and their addresses."""

    tag: str
    boards: tuple[tuple[str, str], ...]
    command: str


@dataclass(frozen=True)
class SubmissionView:
    """One submission with everything its reader may see."""

    row: Row  # where it stands
    events: tuple[Event, ...] = ()  # what happened to it, oldest first
    steps: tuple[Step, ...] = ()  # from the upload to the boards; empty where it left that way
    attempts: tuple[Attempt, ...] = ()  # those that ended, of the run asked for last
    worker: str = ""  # that has it; empty where none has
    lost: bool = False  # whether nothing is heard of that worker
    at_it: bool = False  # whether the worker is at this one, and not at another
    verdict: str = ""  # what became of it, in a sentence; empty while it is under way
    verdict_tone: Tone = ""
    # whether it counts against the quota, in words; empty for who is not its author
    charged: str = ""
    runs: tuple[Run, ...] = ()  # its results
    newer: tuple[Status, ...] = ()  # the version that took its place
    older: tuple[Status, ...] = ()  # the versions whose place it took
    earlier: tuple[Earlier, ...] = ()  # its results at earlier revisions
    # the end of the running log: None where it cannot be read now, or may not be
    log: str | None = ""
    log_shown: bool = False  # whether the reader may see it
    mine: bool = False  # whether the reader is its author or an operator
    actions: tuple[Action, ...] = ()  # what the reader may do with it

    @property
    def final(self) -> bool:
        """Whether nothing more happens by itself."""
        return not self.row.status.unfinished


def row_of(status: Status, moment: Moment) -> Row:
    """One submission for a list."""
    own = status.submission
    layers = moment.isolation.get(own.submission_id, ()) if status.on_boards else ()
    if own.builtin or (layers and layers[0].startswith("scores as submitted")):
        layers = ()  # Nobody's code was run.
    note, progress, line = _work(status, moment)
    place, missing = _waiting(status, moment)
    return Row(
        status,
        boards=tuple(moment.titles.get(name, name) for name in own.benchmarks),
        attempts=attempt_words(status),
        place=place,
        note=note or missing,
        progress=progress,
        last_line=line,
        isolation=(
            "" if not layers else "not isolated" if layers[0].startswith(_LOOSE) else "isolated"
        ),
        layers=tuple(layers),
    )


def queue_of(
    statuses: Sequence[Status], moment: Moment, *, most: int = MOST_ROWS, commit_wait_min: int = 0
) -> Queue:
    """All submissions in groups."""
    if moment.outlooks is None:
        found = outlooks(statuses, moment.pulses, moment.now, None)
        moment = replace(moment, outlooks=found)
    in_work, waiting, done = in_turn(statuses, moment.outlooks or {})
    groups = (
        _group("In work", in_work, moment, most),
        _group("Waiting, next first", waiting, moment, most),
        _group("Done, newest first", done, moment, most),
    )
    counts = Counter(status.state for status in statuses)
    return Queue(
        tuple(group for group in groups if group.rows),
        (
            ("waiting", len(waiting)),
            ("in work", len(in_work)),
            ("published", counts[State.PUBLISHED]),
            ("stopped", counts[State.FAILED] + counts[State.REJECTED]),
        ),
        tuple(
            (pulse, len(set(pulse.claimed) - {pulse.submission_id}))
            for pulse in alive(moment.pulses, moment.now)
        ),
        max((pulse.at for pulse in moment.pulses), default=None),
        moment.now,
        bool(in_work or waiting),
        commit_wait_min,
    )


def submission_view(
    status: Status,
    events: Sequence[Event],
    moment: Moment,
    *,
    runs: Sequence[RunResult] = (),
    statuses: Sequence[Status] = (),
    earlier: Sequence[Earlier] = (),
    mine: bool = False,
    author: bool = False,
    log: str | None = "",
    actions: Sequence[Action] = (),
) -> SubmissionView:
    """One submission."""
    pulse = worker_of(status, moment.pulses, moment.now)
    held = status.state in IN_WORK and not status.to_judge
    over = standing_over(status.submission, statuses)
    verdict, tone = _verdict(status, "your" if author else "the submitted")
    return SubmissionView(
        row_of(status, moment),
        tuple(events),
        _steps(status, events),
        tuple(one for one in attempts_of(events) if one.ended_at is not None),
        worker=status.by if held else "",
        lost=held and pulse is None,
        at_it=pulse is not None and pulse.submission_id == status.submission.submission_id,
        verdict=verdict,
        verdict_tone=tone,
        charged=_charged(status) if mine else "",
        runs=tuple(_run(run, moment.titles) for run in runs),
        newer=(over,) if over else (),
        older=tuple(superseded_versions(status.submission, statuses)) if status.scored_at else (),
        earlier=tuple(earlier),
        log=log if log is None else readable_text(log),
        log_shown=moment.words and status.unfinished,
        mine=mine,
        actions=tuple(actions),
    )


def attempt_words(status: Status) -> str:
    """`2 of 3`, and of one that is finished `2`; empty before the first."""
    if not status.attempts or not status.unfinished:
        return f"{status.attempts or ''}"
    return f"{status.attempts} of {max(MOST_ATTEMPTS, status.attempts)}"


def place_words(outlook: QueueEstimate) -> str:
    """Its place in the queue, and when its turn may come."""
    place = f"{ordinal(outlook.place)} of {outlook.of:,}"
    if outlook.wait_s is None:
        return place
    begins = "now" if outlook.wait_s < 1 else f"in about {duration(outlook.wait_s)}"
    return f"{place} · may begin {begins}"


def ordinal(place: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`, `21st`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place:,}{'th' if place % 100 in {11, 12, 13} else ending}"


def _group(title: str, statuses: Sequence[Status], moment: Moment, most: int) -> Group:
    rows = tuple(row_of(status, moment) for status in statuses[:most])
    return Group(title, rows, max(0, len(statuses) - most))


def _work(status: Status, moment: Moment) -> tuple[str, Progress | None, str]:
    """What its worker does with it: a sentence, its progress, the last line of its scorer."""
    if status.state not in IN_WORK:
        return "", None, ""
    if status.to_judge:  # Of a private submission the reason is not public.
        return "" if status.reason else "Waiting for a judge.", None, ""
    living = {pulse.worker: pulse for pulse in alive(moment.pulses, moment.now)}
    pulse = living.get(status.by)
    if pulse is None:
        return "No sign of its worker for a minute or more; another one takes it over.", None, ""
    if pulse.submission_id != status.submission.submission_id or not pulse.stage:
        return f"{pulse.worker[:40]} has it; no progress reported yet.", None, ""
    line = readable_text(pulse.last_line)[:MOST_LAST_LINE] if moment.words else ""
    attempt = f", attempt {attempt_words(status)}" if status.attempts else ""
    return f"{pulse.worker[:40]} is at work on it{attempt}.", Progress.of(pulse), line


def _waiting(status: Status, moment: Moment) -> tuple[str, str]:
    """Its place in the queue, and what is missing for its turn to come."""
    if status.state not in WAITING:
        return "", ""
    outlook = (moment.outlooks or {}).get(status.submission.submission_id)
    missing = ""
    if status.submission.boxed and not moment.isolates:
        missing = "Waits for a worker that isolates code; none is running."
    elif not alive(moment.pulses, moment.now):
        missing = "Waits for a worker; none is running."
    return place_words(outlook) if outlook else "", missing


def _steps(status: Status, events: Sequence[Event]) -> tuple[Step, ...]:
    last = "scored, private" if status.submission.private else "published"
    labels = ("received", "queued", "scoring", "judging", last)
    if status.state in (State.PUBLISHED, State.HELD):
        return tuple(Step(label, "done") for label in labels)
    failed = status.state in (State.FAILED, State.REJECTED)
    states = [event.state for event in events if event.state in _STEP_OF] if failed else []
    here = _STEP_OF.get(states[-1] if states else status.state)
    if here is None:
        return ()
    return tuple(
        Step(
            label,
            "done" if place < here else "later" if place > here else "failed" if failed else "now",
        )
        for place, label in enumerate(labels)
    )


_VERDICTS: Mapping[State, tuple[str, Tone]] = {
    State.REJECTED: ("was refused.", "bad"),
    State.HELD: ("is scored. Only you see the results below, until you publish it.", "good"),
    State.HIDDEN: ("was taken off the boards by an operator.", "warn"),
    State.PUBLISHED: ("is published.", "good"),
    State.WITHDRAWN: ("was withdrawn.", ""),
    State.SUPERSEDED: ("was replaced by a newer version.", ""),
}
"""What became of a submission that did not fail."""


def _verdict(status: Status, whose: str) -> tuple[str, Tone]:
    if status.state is not State.FAILED:
        return _VERDICTS.get(status.state, ("", ""))
    where = {
        "submitter": f" in {whose} {_WHERE[status.submission.kind]}",
        "platform": " on our side",
        "world": " because something outside did",
    }
    return f"failed{where.get(status.fault, '')}.", "bad"


def _charged(status: Status) -> str:
    if status.scored_at is not None:
        return "Counts against the quota."
    return "" if status.unfinished else "Not charged."


def _run(run: RunResult, titles: Mapping[str, str]) -> Run:
    rows = [row for row in run.rows if isinstance(row, Mapping)][:MOST_RESULTS]
    every = tuple(_result(row) for row in rows)
    over_all = tuple(one for one, row in zip(every, rows, strict=True) if row.get("skill") is None)[
        :HEADLINES
    ]
    same = next((one for one in run.same_scores_as if one != UNNAMED), "")
    title = titles.get(run.benchmark, run.benchmark)
    return Run(run.benchmark, title, over_all, every, tuple(run.isolation), same)


def _result(row: Mapping[str, object]) -> Result:
    names = ("measure", "variant", "split", "facet", "skill")
    return Result(
        str(row.get("metric", "")),
        " · ".join(str(row[name])[:60] for name in names if row.get(name)),
        _figure(row.get("value")),
        _figure(row.get("ci_low")),
        _figure(row.get("ci_high")),
        str(row.get("n_clusters", ""))[:20],
        str(row.get("note") or "")[:300],
    )


def _figure(value: object) -> float | None:
    """A number of a stored row; None for anything else."""
    return float(value) if isinstance(value, int | float) else None
