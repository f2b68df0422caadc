"""History of one submission as HTML: its events, its run, and its flags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from leaderboard.pages.shown.flags import same
from leaderboard.pages.shown.markup import badge, submitted, text
from leaderboard.pages.shown.signatures import signature
from leaderboard.pages.shown.states_shown import FAULTS, chip, kind_of
from leaderboard.publication.flags import SAME_CONTENT, SAME_SCORES
from leaderboard.records import Event, RunResult, Status, Submission

MOST_LAYERS = 24


def history(
    status: Status, events: Sequence[Event], runs: Sequence[RunResult] = (), versions: str = ""
) -> str:
    """Everything that happened to one submission, with the end of its log.

    Moments are dates, not distances: what does not change is not drawn anew, so that an open log
    stays open.

    Args:
        status: the submission.
        events: what happened to it, oldest first.
        runs: its results, as far as the reader may see them.
        versions: `version_links` to its other versions.
    """
    ident = status.submission.submission_id
    lines = "".join(_event(ident, place, event) for place, event in enumerate(events))
    return f'{about(status.submission)}{_runs(runs)}<ol class="as-history">{lines}</ol>{versions}'


def about(own: Submission) -> str:
    """What was submitted, by whom, and what is flagged about it."""
    by = signature(own.submitter, own.account, limit=80)
    signed = f", by {by}" if by else ""
    content = (
        f' <span class="as-muted">content <code>{text(own.content_sha256[:12])}</code></span>'
        if own.content_sha256.strip("0")
        else ""
    )
    origin = f" taken from <code>{text(own.source, limit=300)}</code>" if own.source else ""
    return (
        f'<p class="as-intro">{submitted(own.name)} {text(own.version, limit=40)}, '
        f"{kind_of(own.kind)}{signed}: <code>{text(own.submission_id)}</code>{content}{origin} "
        f"{flags(own)}</p>"
    )


def flags(own: Submission) -> str:
    """Remarks beside a name: what a reader should know before taking it for a work of its own."""
    marks = []
    if own.private:
        marks.append(badge("private", "info", "Its author has not published it"))
    if own.same_content_as:
        marks.append(same(SAME_CONTENT, own.same_content_as))
    return " ".join(marks)


def _runs(runs: Sequence[RunResult]) -> str:
    if not runs:
        return ""
    lines = "".join(
        f"<li><b>{text(run.benchmark)}</b> {_layers(run.isolation)} "
        f"{same(SAME_SCORES, run.same_scores_as) if run.same_scores_as else ''}"
        "</li>"
        for run in runs
    )
    return f'<ul class="as-runs" aria-label="How it was run">{lines}</ul>'


def _layers(layers: Iterable[str]) -> str:
    names = [text(layer, limit=80) for layer in layers][:MOST_LAYERS]
    return f'<span class="as-muted">{", ".join(names)}</span>' if names else ""


def _event(ident: str, place: int, event: Event) -> str:
    log = (
        f'<details data-keep="log-{text(ident)}-{place}"><summary>Log</summary>'
        f'<pre tabindex="0">{text(event.log, lines=True)}</pre></details>'
        if event.log
        else ""
    )
    return (
        f"<li>{chip(event.state)} {moment(event.at)} UTC "
        f'<span class="as-muted">by {submitted(event.by, limit=100)}</span>'
        f"{reason(event, limit=None)}{log}</li>"
    )


def reason(of: Status | Event, *, limit: int | None = 600) -> str:
    """Why it came to this, what to do about it, and whose fault it is."""
    if not of.reason and not of.hint:
        return ""
    hint = f' <span class="as-hint">{text(of.hint, limit=limit)}</span>' if of.hint else ""
    fault = FAULTS.get(of.fault, "")
    whose = f' <span class="as-muted">({fault})</span>' if fault else ""
    return f'<span class="as-reason">{text(of.reason, limit=limit)}{hint}{whose}</span>'


def moment(at: datetime) -> str:
    """A moment as a `time` element, to the second on hover."""
    return (
        f'<time datetime="{at.isoformat()}" title="{at:%Y-%m-%d %H:%M:%S} UTC">'
        f"{at:%Y-%m-%d %H:%M}</time>"
    )
