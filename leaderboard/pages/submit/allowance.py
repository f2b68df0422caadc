"""Remaining quota of an account, shown before it submits, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from leaderboard.governance.quota import Standing
from leaderboard.ledger.bans import Ban
from leaderboard.ledger.policy import Policy
from leaderboard.pages.shown.markup import notice, text
from leaderboard.records import Kind
from leaderboard.text import count

_KINDS = {
    Kind.METRIC: "Scoring modules",
    Kind.SCORES: "Scores files",
    Kind.GENERATIONS: "Generations",
}


def allowance(found: Sequence[Standing], policy: Policy) -> str:
    """A line for each kind: what is charged, what is left, what is still being worked on."""
    lines = "".join(_line(standing) for standing in found)
    return (
        f'<div class="as-allowance" role="group" aria-label="Allowance">{lines}'
        f'<p class="as-legend">Only a scored result is charged, for {count(policy.period_days, "day")}; '
        "what is refused, fails or is withdrawn before it is scored costs nothing.</p></div>"
    )


def _line(standing: Standing) -> str:
    free = ""
    if standing.left == 0 and standing.next_free:
        free = f", the next is free at {_moment(standing.next_free)}"
    elif standing.next_free:
        free = f", one is given back at {_moment(standing.next_free)}"
    tone = "" if standing.left else ' class="as-spent"'
    full = standing.unfinished >= standing.unfinished_most
    wait = " (wait for one to end, or withdraw one)" if full else ""
    return (
        f"<p{tone}><b>{_KINDS[standing.kind]}</b>: {standing.scored} of {standing.scored_most} "
        f"scored, <b>{standing.left} left</b>{free}; {standing.unfinished} of "
        f"{standing.unfinished_most} waiting or in work{wait}.</p>"
    )


def _moment(at: datetime) -> str:
    return f'<time datetime="{at.isoformat()}">{at:%Y-%m-%d %H:%M} UTC</time>'


def ban_notice(ban: Ban | None) -> str:
    """Why an account may not submit; nothing where it may."""
    if ban is None:
        return ""
    return notice(
        "<b>You may not submit here.</b> The operator's reason: "
        f"{text(ban.reason, limit=600)} <span class='as-muted'>({ban.at:%Y-%m-%d})</span> "
        "<span class='as-hint'>Answer to whoever runs this installation. What you withdraw or "
        "publish is not touched by this.</span>",
        "bad",
        role="status",
    )
