"""Responses of the submit pages: to an upload, to an action, and to errors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from benchmarks.errors import AssayError, PlatformError, TransientError
from leaderboard.desk import Accepted, Examination, Gate, Problem
from leaderboard.pages.shown.markup import ago, badge, notice, submitted, text
from leaderboard.pages.shown.states_shown import chip
from leaderboard.pages.submit.sizes import bytes_of
from leaderboard.records import ImagesSeen
from leaderboard.store.live.interface import Pulse
from leaderboard.text import count
from leaderboard.views.queue import alive

_MOST_PROBLEMS = 200


def worker_banner(pulses: Sequence[Pulse], now: datetime) -> str:
    """A warning while no worker is there to take what is sent; otherwise nothing."""
    if alive(pulses, now):
        return ""
    seen = max((pulse.at for pulse in pulses), default=None)
    last = f" The last one was seen {ago(seen, now)}." if seen else ""
    return notice(
        f"<b>No worker is running at the moment.</b>{last} You can submit; it will wait in the "
        "queue until one starts.",
        "warn",
        role="status",
    )


def gate_notice(gate: Gate) -> str:
    """Why no code is taken here and what the operator can do; nothing where it is taken."""
    if gate.ok:
        return ""
    return notice(
        "<b>This installation takes no code at the moment.</b> "
        f"{text(gate.reason)} <span class='as-hint'>{text(gate.remedy)}</span> "
        "Scores files are taken as always.",
        "warn",
        role="status",
    )


def accepted(answer: Accepted) -> str:
    """The upload is in: its id, its state, what its sender should know, where to follow it."""
    status = answer.status
    own = status.submission
    address = f"./mine?submission={text(own.submission_id)}"
    head = "is here already." if answer.recognised else "is in."
    again = (
        "<p>You sent the very same content before, so nothing new was kept; this is that "
        "submission.</p>"
        if answer.recognised
        else ""
    )
    why = f"<p>{text(status.reason)} {text(status.hint)}</p>" if status.reason else ""
    private = f" {badge('private', 'info', 'Only you see it')}" if own.private else ""
    notes = "".join(f"<li>{text(note, limit=600)}</li>" for note in answer.notes)
    return notice(
        f"<p><b>{submitted(own.name)} {head}</b> {chip(status.state)}{private}</p>"
        f"<p>Submission <code>{text(own.submission_id)}</code></p>{again}{why}"
        f"{f'<ul>{notes}</ul>' if notes else ''}"
        f'<p><a class="as-button as-strong" href="{address}">Follow it</a></p>',
        "info" if answer.recognised else "good",
        role="status",
    )


def examined(found: Examination) -> str:
    """Everything that is wrong with an archive, or that nothing is."""
    if found.problems:
        return _problems(found)
    boards = ", ".join(text(name, limit=80) for name in found.benchmarks) or "none"
    if found.images is not None:
        return _images(found, found.images)
    notes = "".join(f"<li>{text(note, limit=600)}</li>" for note in found.notes)
    return notice(
        f"<p><b>Nothing is wrong with {submitted(found.name)} "
        f"{submitted(found.version, limit=40)}.</b> It was not run.</p>"
        f"<p>{count(found.files, 'file')}, {bytes_of(found.n_bytes)}. Benchmarks: {boards}.</p>"
        f"{f'<ul>{notes}</ul>' if notes else ''}"
        f'<p class="as-muted">Content <code>{text(found.content_sha256)}</code></p>',
        "good",
        role="status",
    )


def _images(found: Examination, images: ImagesSeen) -> str:
    withheld = ", ".join(f"{n:,} {text(reason, limit=40)}" for reason, n in images.withheld.items())
    sizes = ", ".join(f"{n:,} of {text(size, limit=20)}" for size, n in images.sizes.items())
    return notice(
        f"<p><b>Nothing is wrong with {submitted(found.name)} "
        f"{submitted(found.version, limit=40)}.</b> Every image was looked at, none was judged.</p>"
        f"<p>{images.present:,} of {count(images.wanted, 'image')} of "
        f"{text(images.prompt_set, limit=80)}, with {count(len(images.seeds), 'seed')}; "
        f"{bytes_of(images.n_bytes)}. Pixels: {sizes}.</p>"
        f"{f'<p>Withheld: {withheld}.</p>' if withheld else ''}"
        f'<p class="as-muted">Content <code>{text(found.content_sha256)}</code></p>',
        "good",
        role="status",
    )


def _problems(found: Examination) -> str:
    told: set[str] = set()
    rows = ""
    for problem in found.problems[:_MOST_PROBLEMS]:
        rows += _problem(problem, hinted=problem.hint not in told)
        told.add(problem.hint)
    more = found.n_problems - min(len(found.problems), _MOST_PROBLEMS)
    rest = f'<p class="as-muted">and {more:,} more</p>' if more > 0 else ""
    return notice(
        f"<p><b>{count(found.n_problems, 'problem')} to mend.</b> Nothing was kept.</p>{_kinds(found)}"
        f'<ol class="as-problems">{rows}</ol>{rest}',
        "bad",
        role="alert",
    )


def _kinds(found: Examination) -> str:
    """How many of each kind, where there are several."""
    if len(found.counts) < 2:
        return ""
    told = ", ".join(f"{n:,} {text(code, limit=40)}" for code, n in found.counts.items())
    return f"<p>In all: {told}.</p>"


def _problem(problem: Problem, *, hinted: bool) -> str:
    place = (
        f'<code class="as-place">{text(problem.place, limit=200)}</code> ' if problem.file else ""
    )
    hint = (
        f'<span class="as-hint">{text(problem.hint, limit=600)}</span>'
        if problem.hint and hinted
        else ""
    )
    code = f'<span class="as-muted">({text(problem.code)})</span>'
    return f"<li>{place}{text(problem.message, limit=600)} {code}{hint}</li>"


def refused(error: AssayError) -> str:
    """What is wrong, what to do about it, and that nothing in the form is lost."""
    if isinstance(error, TransientError):
        head, after = "Something outside failed.", "Nothing was lost; try again in a moment."
    elif isinstance(error, PlatformError):
        head, after = "This is our fault, not yours.", "Please tell the operator the code below."
    else:
        head, after = "Not accepted.", ""
    hint = f'<p class="as-hint">{text(error.hint)}</p>' if error.hint else ""
    tail = f"<p>{after}</p>" if after else ""
    lines = "<br>".join(text(line) for line in str(error.message).splitlines())
    return notice(
        f"<p><b>{head}</b> {lines}</p>{hint}{tail}"
        f'<p class="as-muted">Code: <code>{text(error.code)}</code></p>',
        "bad",
        role="alert",
    )


def done(sentence: str) -> str:
    """Something was done; the sentence is HTML already."""
    return notice(sentence, "good", role="status")
