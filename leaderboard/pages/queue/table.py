"""The queue as HTML: every submission, what happens to it, and who is at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from leaderboard.pages.queue.live_view import attempt_of, last_line, progress, turn
from leaderboard.pages.shown.history import flags, reason
from leaderboard.pages.shown.markup import ago, badge, notice, scroll_box, submitted, text
from leaderboard.pages.shown.signatures import signature
from leaderboard.pages.shown.states_shown import chip, kind_of
from leaderboard.records import Kind, Status
from leaderboard.states import IN_WORK, WAITING, State
from leaderboard.store.live.interface import Pulse
from leaderboard.text import count
from leaderboard.views.queue import Outlook, alive, outlooks

MOST_ROWS = 100
"""Of each group."""

_LOOSE = ("not isolated", "our own code", "unsandboxed")
"""How the layers of a run begin that had no walls."""

_COLUMNS = ("State", "Submission", "Benchmarks", "Since", "Attempts")


@dataclass(frozen=True)
class _Moment:
    """What all rows are shown against."""

    living: Mapping[str, Pulse]
    titles: Mapping[str, str]
    now: datetime
    chosen: str
    link: str
    isolation: Mapping[str, tuple[str, ...]]
    outlooks: Mapping[str, Outlook]
    words: bool

    @property
    def isolates(self) -> bool:
        """Whether a worker is there that runs strangers' code."""
        return any(pulse.isolation_ok for pulse in self.living.values())


@dataclass(frozen=True)
class _Group:
    """Submissions that are shown under one heading; those cut off are counted below them."""

    title: str
    statuses: Sequence[Status]
    beyond: str

    def rows(self, most: int, moment: _Moment) -> str:
        """The group as rows of the table; nothing where it is empty."""
        if not self.statuses:
            return ""
        size = len(self.statuses)
        rows = "".join(_row(status, moment) for status in self.statuses[:most])
        more = f"and {size - most:,} more {self.beyond}" if size > most else ""
        return f"{_across(self.title, heading=True)}{rows}{_across(more) if more else ''}"


def queue_table(
    statuses: Sequence[Status],
    pulses: Sequence[Pulse],
    titles: Mapping[str, str],
    now: datetime,
    *,
    chosen: str = "",
    link: str = "./queue?",
    isolation: Mapping[str, tuple[str, ...]] | None = None,
    turns: Mapping[str, Outlook] | None = None,
    words: bool = False,
    most: int = MOST_ROWS,
) -> str:
    """All submissions: those in work, those that wait in their order, and the rest.

    Args:
        statuses: oldest first, as the ledger gives them.
        pulses: the latest of every worker.
        titles: benchmark name to its display title.
        now: the moment of display.
        chosen: submission id to be marked.
        link: address on which one submission is shown, up to the name of it.
        isolation: submission id to the layers its published results were made under.
        turns: submission id to its place and expected wait; by default among these submissions.
        words: whether the reader may see the last line each scorer printed: its author, operators.
        most: how many rows of each group to show; the others are counted.
    """
    if not statuses:
        return (
            '<div class="as-empty"><h2>Nothing submitted yet</h2>'
            '<p><a class="as-button as-strong" href="./submit">Submit a metric</a></p></div>'
        )
    living = {pulse.worker: pulse for pulse in alive(pulses, now)}
    found = outlooks(statuses, pulses, now, None) if turns is None else turns
    moment = _Moment(living, titles, now, chosen, link, isolation or {}, found, words)
    body = "".join(group.rows(most, moment) for group in _groups(statuses, found))
    columns = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in _COLUMNS)
    return (
        f'{_summary(statuses)}{scroll_box("Submissions")}<table class="as-table as-queue" role="table">'
        '<caption class="as-sr">Submissions: in work, waiting, done</caption>'
        f'<thead role="rowgroup"><tr role="row">{columns}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _groups(statuses: Sequence[Status], turns: Mapping[str, Outlook]) -> tuple[_Group, ...]:
    """Every submission in exactly one group."""
    in_work = [status for status in statuses if status.state in IN_WORK]
    waiting = sorted(
        (status for status in statuses if status.state in WAITING),
        key=lambda status: _place(status, turns),
    )
    rest = [status for status in reversed(statuses) if status.state not in IN_WORK | WAITING]
    return (
        _Group("In work", in_work, "in work"),
        _Group("Waiting, next first", waiting, "waiting"),
        _Group("Done, newest first", rest, "done"),
    )


def _across(content: str, *, heading: bool = False) -> str:
    """A row of one cell: the heading of a group, or what is not shown of it."""
    cell, role, mark = ("th", "rowheader", "b") if heading else ("td", "cell", "span")
    return (
        f'<tr role="row"><{cell} role="{role}" colspan="{len(_COLUMNS)}" class="as-muted">'
        f"<{mark}>{content}</{mark}></{cell}></tr>"
    )


def _place(status: Status, turns: Mapping[str, Outlook]) -> float:
    found = turns.get(status.submission.submission_id)
    return found.place if found is not None else float("inf")


def workers_line(pulses: Sequence[Pulse], now: datetime) -> str:
    """Who is at work, and under which isolation."""
    living = alive(pulses, now)
    if not living:
        seen = max((pulse.at for pulse in pulses), default=None)
        last = f"The last one was seen {ago(seen, now)}." if seen else "None was ever seen."
        return notice(
            f"<b>No worker is running.</b> {last} Submissions are kept and wait. "
            "Start one with <code>python -m evaluator worker</code>.",
            "warn",
        )
    return f'<ul class="as-workers">{"".join(_worker(pulse) for pulse in living)}</ul>'


def _row(status: Status, moment: _Moment) -> str:
    own = status.submission
    boards = ", ".join(moment.titles.get(name, name) for name in own.benchmarks)
    marked = ' class="as-marked"' if own.submission_id == moment.chosen else ""
    name = (
        f'<a href="{moment.link}submission={text(own.submission_id)}">{submitted(own.name)}</a> '
        f'<span class="as-version">{submitted(own.version, limit=20)}</span> '
        f"{flags(own)} {_isolation(status, moment)}"
    )
    signed = signature(own.submitter, own.account)
    by = f" by {signed}" if signed else ""
    version = f"{kind_of(own.kind)}{by}"
    several = f", {count(len(own.metrics), 'metric')}" if len(own.metrics) > 1 else ""
    return (
        f'<tr role="row"{marked}><td role="cell" class="as-q-state">{chip(status.state)}</td>'
        f'<th scope="row" role="rowheader" class="as-q-name">{name}'
        f'<span class="as-muted as-block">{version}{several}</span>'
        f"{_progress(status, moment)}{_waits(status, moment)}{reason(status)}</th>"
        f'<td role="cell" class="as-q-boards">{text(boards, limit=200)}</td>'
        f'<td role="cell" class="as-q-since">{ago(status.since, moment.now)}</td>'
        f'<td role="cell" class="as-q-attempts">{attempt_of(status) or "–"}</td></tr>'
    )


def _isolation(status: Status, moment: _Moment) -> str:
    """How its code was run; nothing where none was, or while it is not on the boards."""
    layers = moment.isolation.get(status.submission.submission_id, ())
    if not status.on_boards or not layers or layers[0].startswith("scores as submitted"):
        return ""
    loose = layers[0].startswith(_LOOSE)
    label = "not isolated" if loose else "isolated"
    return badge(label, "warn" if loose else "plain", ", ".join(layers))


def _progress(status: Status, moment: _Moment) -> str:
    """What its worker does with it, or that there is no sign of that worker."""
    if status.state not in IN_WORK:
        return ""
    if status.to_judge:  # Of a private submission the reason is not public.
        return "" if status.reason else _aside("Waiting for a judge.")
    pulse = moment.living.get(status.by)
    if pulse is None:
        return _aside("No sign of its worker for a minute or more; another one takes it over.")
    if pulse.submission_id != status.submission.submission_id or not pulse.stage:
        return _aside(f"{submitted(pulse.worker, limit=40)} has it; no progress reported yet.")
    last = last_line(pulse) if moment.words and pulse.last_line else ""
    worker = _aside(
        f"{submitted(pulse.worker, limit=40)} is at work on it, attempt {attempt_of(status)}."
        if status.attempts
        else f"{submitted(pulse.worker, limit=40)} is at work on it."
    )
    return f"{worker}{progress(pulse)}{last}"


def _waits(status: Status, moment: _Moment) -> str:
    """Its place in the queue, and what is missing for its turn to come."""
    if status.state not in WAITING:
        return ""
    outlook = moment.outlooks.get(status.submission.submission_id)
    missing = ""
    if status.submission.kind is not Kind.SCORES and not moment.isolates:
        missing = ": waits for a worker that isolates code; none is running"
    elif not moment.living:
        missing = ": waits for a worker; none is running"
    return _aside(f"{turn(outlook) if outlook else ''}{missing}")


def _aside(content: str) -> str:
    return f'<span class="as-block as-muted">{content}</span>'


def _summary(statuses: Sequence[Status]) -> str:
    counts = Counter(status.state for status in statuses)
    waiting = sum(counts[state] for state in WAITING)
    working = sum(counts[state] for state in IN_WORK)
    stopped = counts[State.FAILED] + counts[State.REJECTED]
    parts = (
        (waiting, "waiting"),
        (working, "in work"),
        (counts[State.PUBLISHED], "published"),
        (stopped, "stopped"),
    )
    cells = "".join(f"<div><b>{quantity:,}</b> {label}</div>" for quantity, label in parts)
    return f'<div class="as-counts">{cells}</div>'


def _worker(pulse: Pulse) -> str:
    doing = f"at work on {submitted(pulse.submission_id)}" if pulse.submission_id else "waiting"
    further = len(set(pulse.claimed) - {pulse.submission_id})
    doing += f", {further:,} more in hand" if further else ""
    state = "isolates code" if pulse.isolation_ok else "takes no code"
    tone = "good" if pulse.isolation_ok else "warn"
    return (
        f'<li><span class="as-pulse as-{tone}" aria-hidden="true"></span>'
        f"<b>{submitted(pulse.worker, limit=40)}</b> {doing} "
        f'<span class="as-muted">({state}: {text(pulse.isolation, limit=300)})</span></li>'
    )
