"""Somebody's own submissions as HTML: all of them, and one with everything about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from leaderboard.pages.queue.table import queue_table
from leaderboard.pages.shown.history import history, reason
from leaderboard.pages.shown.markup import notice, scroll_box, section, submitted, text
from leaderboard.pages.shown.states_shown import chip
from leaderboard.pages.shown.version_links import version_line
from leaderboard.records import Event, RunResult, Status
from leaderboard.states import State
from leaderboard.store.live.interface import Pulse
from leaderboard.text import interval, number
from leaderboard.views.queue import Outlook

_MOST_ROWS = 400
_HEADLINE_ROWS = 12


@dataclass(frozen=True)
class Whole:
    """One submission with everything its owner may see.

    Attributes:
        status: where it stands.
        events: what happened to it, oldest first.
        runs: its results, held back or published.
        versions: other submissions of the same account, kind and name, newest first.
    """

    status: Status
    events: tuple[Event, ...]
    runs: tuple[RunResult, ...]
    versions: tuple[Status, ...]


def versions_of(status: Status, own: Sequence[Status]) -> tuple[Status, ...]:
    """The other submissions of the same account, kind and name, newest first."""
    mine = status.submission
    return tuple(
        other
        for other in reversed(own)
        if other.submission.submission_id != mine.submission_id
        and (other.submission.account, other.submission.kind, other.submission.name)
        == (mine.account, mine.kind, mine.name)
    )


def own_list(
    statuses: Sequence[Status],
    pulses: Sequence[Pulse],
    titles: Mapping[str, str],
    now: datetime,
    *,
    chosen: str,
    everybody: bool,
    turns: Mapping[str, Outlook] | None = None,
) -> str:
    """The table of submissions, in the form the queue has them.

    Args:
        statuses: oldest first.
        pulses: of the workers.
        titles: benchmark name to its display title.
        now: the moment of display.
        chosen: submission id to be marked.
        everybody: whether these are the submissions of all accounts, as operators see them.
        turns: submission id to its place and expected wait among all submissions.
    """
    link = "./mine?all=1&" if everybody else "./mine?"
    table = queue_table(
        statuses, pulses, titles, now, chosen=chosen, link=link, turns=turns, words=True
    )
    return section("Everybody's submissions" if everybody else "Your submissions", table)


def one_of_mine(whole: Whole, titles: Mapping[str, str], *, back: str) -> str:
    """Everything about one submission.

    Args:
        whole: the submission.
        titles: benchmark name to its display title.
        back: address of the list.
    """
    status = whole.status
    parts = [
        _now(status),
        history(status, whole.events, whole.runs),
        _results(whole, titles),
        _versions(whole.versions, back),
    ]
    return section(
        "Submission", "".join(parts), aside=f'<a href="{text(back)}">Close</a>', ident="chosen"
    )


def _now(status: Status) -> str:
    why = reason(status, limit=None)
    if status.state in {State.FAILED, State.REJECTED}:
        what = "" if status.hint else _what_to_do(status)
        code = f" <code>{text(status.code)}</code>" if status.code else ""
        return notice(f"{chip(status.state)}{code} {why}{what}", "bad", role="status")
    if status.state is State.HELD:
        return notice(
            f"{chip(status.state)} It is scored. Only you see the results below; publish it and it "
            "stands on the boards under your name.",
            "good",
        )
    if status.state is State.HIDDEN:
        return notice(f"{chip(status.state)} {why}", "warn")
    return ""


def _what_to_do(status: Status) -> str:
    said = {
        "submitter": "Mend it and submit it again; what was not scored is not charged.",
        "platform": "Ask the operator to run it again; it is not charged.",
        "world": "Ask the operator to run it again, or submit it again later.",
    }.get(status.fault, "")
    return f'<span class="as-hint">{said}</span>' if said else ""


def _results(whole: Whole, titles: Mapping[str, str]) -> str:
    if not whole.runs:
        return ""
    held = " (only you see them)" if whole.status.state is State.HELD else ""
    tables = "".join(_run(run, titles) for run in whole.runs)
    return f"<h3>Results{held}</h3>{tables}"


def _run(run: RunResult, titles: Mapping[str, str]) -> str:
    rows = [row for row in run.rows if isinstance(row, Mapping)][:_MOST_ROWS]
    first = [row for row in rows if row.get("skill") is None][:_HEADLINE_ROWS]
    title = text(titles.get(run.benchmark, run.benchmark))
    kept = f"rows-{text(run.submission_id)}-{text(run.benchmark)}"
    every = (
        f'<details data-keep="{kept}"><summary>All {len(rows)} rows</summary>{_rows(rows)}</details>'
        if len(rows) > len(first)
        else ""
    )
    return f"<h4>{title}</h4>{_rows(first)}{every}"


def _rows(rows: Sequence[Mapping[str, object]]) -> str:
    body = "".join(_result(row) for row in rows)
    return (
        f'{scroll_box("Results")}<table class="as-table as-own-rows"><thead><tr>'
        '<th scope="col">Metric</th><th scope="col">Measure</th><th scope="col">Value</th>'
        '<th scope="col">95 % interval</th><th scope="col">Clusters</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _result(row: Mapping[str, object]) -> str:
    names = ("measure", "variant", "split", "facet", "skill")
    slice_ = " · ".join(text(row[name], limit=60) for name in names if row.get(name))
    low, high = _figure(row.get("ci_low")), _figure(row.get("ci_high"))
    note = f'<span class="as-note">{text(row["note"], limit=300)}</span>' if row.get("note") else ""
    return (
        f'<tr><th scope="row" class="as-name">{submitted(row.get("metric", ""))}</th>'
        f"<td>{slice_}{note}</td><td>{number(_figure(row.get('value')))}</td>"
        f'<td class="as-ci">{interval(low, high)}</td>'
        f"<td>{text(row.get('n_clusters', ''), limit=20)}</td></tr>"
    )


def _figure(value: object) -> float | None:
    """A number of a stored row; None for anything else."""
    return float(value) if isinstance(value, int | float) else None


def _versions(versions: Sequence[Status], back: str) -> str:
    if not versions:
        return ""
    between = "&" if "?" in back else "?"
    lines = "".join(f"<li>{version_line(v, f'{back}{between}')}</li>" for v in versions)
    return f'<h3>Other versions</h3><ul class="as-history">{lines}</ul>'
