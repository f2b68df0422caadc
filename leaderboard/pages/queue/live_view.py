"""Live view of a submission as HTML: its worker, its progress, its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from leaderboard.folding import attempts_of
from leaderboard.pages.shown.history import moment
from leaderboard.pages.shown.markup import ago, section, submitted, text
from leaderboard.pages.shown.states_shown import chip
from leaderboard.records import Event, Status
from leaderboard.states import WAITING
from leaderboard.store.live.interface import Pulse
from leaderboard.store.live.text import readable_text
from leaderboard.text import duration, rate
from leaderboard.views.queue import MOST_ATTEMPTS, Outlook, worker_of

MOST_LINE = 200


@dataclass(frozen=True)
class Moment:
    """What one submission is shown against.

    Attributes:
        pulses: the latest of every worker.
        now: the moment of display.
        outlook: of a submission that waits.
        words: whether the reader may see what the scorer prints: its author, and operators.
        said: the end of the running log, for such a reader; None where it cannot be read now.
    """

    pulses: Sequence[Pulse]
    now: datetime
    outlook: Outlook | None = None
    words: bool = False
    said: str | None = field(default="", repr=False)


def happening(status: Status, events: Sequence[Event], moment_: Moment) -> str:
    """Everything that is known about now; nothing of a submission that is finished."""
    if not status.unfinished:
        return ""
    pulse = worker_of(status, moment_.pulses, moment_.now)
    lines = [
        ("State", f"{chip(status.state)} {ago(status.since, moment_.now)}"),
        ("Worker", _worker(status, pulse)),
        ("Attempt", _attempts(status, events)),
        ("Turn", _turn(status, moment_.outlook)),
        ("Progress", progress(pulse) if _is_at(pulse, status) else ""),
        ("Last line", _last_line(pulse, status) if moment_.words else ""),
    ]
    body = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in lines if value)
    log = _log(moment_.said) if moment_.words else ""
    return section("Now", f'<dl class="as-now">{body}</dl>{log}', ident="now")


def progress(pulse: Pulse | None) -> str:
    """A bar, what is done, how fast, and what remains; nothing before the first of it."""
    if pulse is None or not pulse.stage:
        return ""
    parts = [text(pulse.stage, limit=120)]
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


def last_line(pulse: Pulse) -> str:
    """The last line its scorer printed: for its author and operators alone."""
    shown = text(readable_text(pulse.last_line), limit=MOST_LINE)
    return f'<code class="as-last-line">{shown}</code>'


def turn(outlook: Outlook) -> str:
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


def attempt_of(status: Status) -> str:
    """`2 of 3`, and of one that is finished `2`; nothing before the first."""
    if not status.attempts or not status.unfinished:
        return f"{status.attempts or ''}"
    return f"{status.attempts} of {max(MOST_ATTEMPTS, status.attempts)}"


def _worker(status: Status, pulse: Pulse | None) -> str:
    if status.state in WAITING or status.to_judge:
        return ""
    name = submitted(status.by, limit=100)
    if pulse is None:
        return f"{name}: no sign of it for a minute or more; another one takes it over"
    doing = "at work on it" if _is_at(pulse, status) else "has it, and is at work on another"
    lease = f", lease until {moment(status.lease_until)} UTC" if status.lease_until else ""
    return f'{name} <span class="as-muted">{doing}{lease}</span>'


def _is_at(pulse: Pulse | None, status: Status) -> bool:
    return pulse is not None and pulse.submission_id == status.submission.submission_id


def _attempts(status: Status, events: Sequence[Event]) -> str:
    earlier = [one for one in attempts_of(events) if one.ended_at is not None] if events else []
    lines = "".join(
        f"<li>Attempt {one.number} by {submitted(one.by, limit=60)} ended "
        f"{moment(one.ended_at) if one.ended_at else ''} UTC"
        f"{f': {text(one.why, limit=600)}' if one.why else ''}</li>"
        for one in earlier
    )
    return f"{attempt_of(status)}{f'<ul>{lines}</ul>' if lines else ''}"


def _turn(status: Status, outlook: Outlook | None) -> str:
    if status.to_judge:
        return "Waits for a judge"
    if status.state not in WAITING or outlook is None:
        return ""
    return turn(outlook)


def _last_line(pulse: Pulse | None, status: Status) -> str:
    if pulse is None or not _is_at(pulse, status) or not pulse.last_line:
        return ""
    return last_line(pulse)


def _log(said: str | None) -> str:
    if said is None:
        return '<p class="as-muted">The running log cannot be read at the moment.</p>'
    if not said:
        return ""
    return (
        '<h3>Running log <span class="as-muted">(only you and the operators see it)</span></h3>'
        '<pre class="as-running" data-follow="running" tabindex="0" role="log" '
        f'aria-label="Running log" aria-live="off">{text(readable_text(said), lines=True)}</pre>'
    )


FOLLOW = """() => {
  if (window.asFollowing) return;
  window.asFollowing = true;
  const places = new Map();
  document.addEventListener('scroll', (event) => {
    const log = event.target;
    if (!log.dataset?.follow) return;
    const away = log.scrollHeight - log.clientHeight - log.scrollTop;
    places.set(log.dataset.follow, away < 24 ? null : log.scrollTop);
  }, true);
  new MutationObserver(() => {
    for (const log of document.querySelectorAll('pre[data-follow]:not([data-placed])')) {
      log.dataset.placed = '1';
      const place = places.get(log.dataset.follow) ?? null;
      log.scrollTop = place === null ? log.scrollHeight : place;
    }
  }).observe(document.body, { childList: true, subtree: true });
}"""
"""Keeps a log that is renewed at its end, as long as its reader has not scrolled away from there."""
