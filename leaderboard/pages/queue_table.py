"""The queue as HTML: every submission, what happens to it, and who is at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from leaderboard.pages.markup import (
    Tone,
    ago,
    count,
    duration,
    notice,
    rate,
    submitted,
    text,
)
from leaderboard.records import Event, Kind, Status
from leaderboard.states import IN_WORK, LEGEND, WAITING, State
from leaderboard.store.live import Pulse

ALIVE = timedelta(seconds=30)
"""A worker that has not beaten for longer than this is taken for gone."""

MOST_ROWS = 200

_TONES: dict[State, Tone] = {
    State.PUBLISHED: "good",
    State.REJECTED: "bad",
    State.FAILED: "bad",
    State.WITHDRAWN: "plain",
    State.HIDDEN: "warn",
    State.SUPERSEDED: "plain",
}

_FAULTS = {
    "submitter": "to be mended by the submitter",
    "world": "something outside failed; it is tried again",
    "platform": "our fault; the submitter loses nothing by it",
}


def alive(pulses: Sequence[Pulse], now: datetime) -> tuple[Pulse, ...]:
    """The pulses of workers that are there."""
    return tuple(pulse for pulse in pulses if now - pulse.at <= ALIVE)


def chip(state: State) -> str:
    """A state in its colour, with its meaning on hover."""
    tone = _TONES.get(state, "plain" if state in WAITING else "info")
    return f'<span class="as-chip as-{tone}" title="{text(LEGEND[state])}">{state.value}</span>'


def queue_table(
    statuses: Sequence[Status],
    pulses: Sequence[Pulse],
    titles: Mapping[str, str],
    now: datetime,
    *,
    chosen: str = "",
    most: int = MOST_ROWS,
) -> str:
    """All submissions, newest first.

    Args:
        statuses: oldest first, as the ledger gives them.
        pulses: the latest of every worker.
        titles: benchmark name to its display title.
        now: the moment of display.
        chosen: submission id to be marked.
        most: how many rows to show; older ones are counted below.
    """
    if not statuses:
        return (
            '<div class="as-empty"><h2>Nothing submitted yet</h2>'
            '<p><a class="as-button as-strong" href="./submit">Submit a metric</a></p></div>'
        )
    at_work = {pulse.submission_id: pulse for pulse in alive(pulses, now) if pulse.submission_id}
    newest = list(reversed(statuses))
    body = "".join(
        _row(s, at_work.get(s.submission.submission_id), titles, now, chosen) for s in newest[:most]
    )
    rest = len(newest) - most
    more = (
        f'<p class="as-legend">{count(rest, "older submission")} not shown.</p>' if rest > 0 else ""
    )
    return (
        f'{_summary(statuses)}<div class="as-scroll"><table class="as-table as-queue" role="table">'
        '<caption class="as-sr">Submissions, newest first</caption><thead role="rowgroup">'
        '<tr role="row"><th scope="col" role="columnheader">State</th>'
        '<th scope="col" role="columnheader">Submission</th>'
        '<th scope="col" role="columnheader">Benchmarks</th>'
        '<th scope="col" role="columnheader">Since</th>'
        '<th scope="col" role="columnheader">Attempts</th></tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>{more}'
    )


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


def legend() -> str:
    """What the states mean."""
    lines = "".join(f"<dt>{chip(state)}</dt><dd>{text(LEGEND[state])}</dd>" for state in State)
    return f'<dl class="as-states">{lines}</dl>'


def history(status: Status, events: Sequence[Event], now: datetime) -> str:
    """Everything that happened to one submission, with the end of its log."""
    lines = []
    for event in events:
        why = f" {text(event.reason)}" if event.reason else ""
        log = (
            f"<details><summary>Log</summary><pre>{text(event.log, lines=True)}</pre></details>"
            if event.log
            else ""
        )
        lines.append(
            f"<li>{chip(event.state)} {ago(event.at, now)} "
            f'<span class="as-muted">by {submitted(event.by, limit=40)}</span>{why}{log}</li>'
        )
    own = status.submission
    return (
        f'<p class="as-intro">{submitted(own.name)} {text(own.version)}, {_kind(own.kind)}, by '
        f"{submitted(own.submitter)}: <code>{text(own.submission_id)}</code></p>"
        f'<ol class="as-history">{"".join(lines)}</ol>'
    )


def _row(
    status: Status, pulse: Pulse | None, titles: Mapping[str, str], now: datetime, chosen: str
) -> str:
    own = status.submission
    boards = ", ".join(titles.get(name, name) for name in own.benchmarks)
    marked = ' class="as-marked"' if own.submission_id == chosen else ""
    name = (
        f'<a href="./queue?submission={text(own.submission_id)}">{submitted(own.name)}</a> '
        f'<span class="as-version">{submitted(own.version, limit=20)}</span>'
    )
    version = f"{_kind(own.kind)} by {submitted(own.submitter, limit=40)}"
    several = f", {count(len(own.metrics), 'metric')}" if len(own.metrics) > 1 else ""
    return (
        f'<tr role="row"{marked}><td role="cell" class="as-q-state">{chip(status.state)}</td>'
        f'<th scope="row" role="rowheader" class="as-q-name">{name}'
        f'<span class="as-muted as-block">{version}{several}</span>'
        f"{_progress(status, pulse)}{_reason(status)}</th>"
        f'<td role="cell" class="as-q-boards">{text(boards, limit=200)}</td>'
        f'<td role="cell" class="as-q-since">{ago(status.since, now)}</td>'
        f'<td role="cell" class="as-q-attempts">{status.attempts or "–"}</td></tr>'
    )


def _kind(kind: Kind) -> str:
    return "scoring module" if kind is Kind.METRIC else "scores file"


def _progress(status: Status, pulse: Pulse | None) -> str:
    if status.state not in IN_WORK:
        return ""
    if pulse is None:
        return '<span class="as-block as-muted">No sign of its worker; it is taken over when its lease runs out.</span>'
    parts = [text(pulse.stage)] if pulse.stage else []
    bar = ""
    if pulse.total > 0:
        done = min(max(pulse.done, 0), pulse.total)
        bar = (
            f'<progress value="{done}" max="{pulse.total}" '
            f'aria-label="{done} of {pulse.total} done"></progress>'
        )
        parts.append(f"{done:,} of {pulse.total:,}")
    if pulse.rate_per_s > 0:
        parts.append(f"{rate(pulse.rate_per_s)}/s")
    if pulse.eta_s is not None:
        parts.append(f"about {duration(pulse.eta_s)} left")
    return f'<span class="as-progress">{bar}<span>{" · ".join(parts)}</span></span>'


def _reason(status: Status) -> str:
    if not status.reason and not status.hint:
        return ""
    hint = f' <span class="as-hint">{text(status.hint, limit=600)}</span>' if status.hint else ""
    fault = _FAULTS.get(status.fault, "")
    whose = f' <span class="as-muted">({fault})</span>' if fault else ""
    return f'<span class="as-reason">{text(status.reason, limit=600)}{hint}{whose}</span>'


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
    state = "isolates code" if pulse.isolation_ok else "takes no code"
    tone = "good" if pulse.isolation_ok else "warn"
    return (
        f'<li><span class="as-pulse as-{tone}" aria-hidden="true"></span>'
        f"<b>{submitted(pulse.worker, limit=40)}</b> {doing} "
        f'<span class="as-muted">({state}: {text(pulse.isolation, limit=300)})</span></li>'
    )
