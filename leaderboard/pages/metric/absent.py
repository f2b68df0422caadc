"""Page of a metric that is not on the boards."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.pages.shown.history import moment, reason
from leaderboard.pages.shown.markup import notice, page, submitted, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.pages.shown.states_shown import chip
from leaderboard.pages.shown.version_links import version_links
from leaderboard.records import Status
from leaderboard.states import LEGEND, State
from leaderboard.text import count
from leaderboard.views.metric import MOST_FOUND, Gone, Unknown

_NAMELESS = frozenset({State.HIDDEN})
"""States in which an operator took it away: nothing its author wrote is shown."""


def gone_view(gone: Gone, statuses: Sequence[Status]) -> str:
    """What became of a submission that stands on no board."""
    status, own = gone.status, gone.status.submission
    hidden = status.state in _NAMELESS
    name = "This metric" if hidden else submitted(gone.metric, limit=120)
    said = notice(
        f"<p>{chip(status.state)} since {moment(status.since)} UTC: {text(LEGEND[status.state])}</p>"
        f"{'' if hidden else reason(status)}",
        "info",
        role="status",
    )
    versions = "" if hidden else version_links(status, statuses)
    return page(
        [
            f"<h1>{name} is not on the boards</h1>",
            said,
            f'<p>Submission <a href="./queue?submission={text(own.submission_id)}"><code>'
            f"{text(own.submission_id)}</code></a>, received {moment(own.received_at)} UTC.</p>",
            versions,
            _search(""),
        ]
    )


def unknown_view(found: Unknown) -> str:
    """A search in place of what does not exist, with everything that fits it."""
    if found.asked:
        head = "<h1>There is no such metric</h1>"
        said = notice(
            f"Nothing on the boards has the id “{text(found.asked, limit=120)}”. It may have been "
            "mistyped, or its author has not published it.",
            "info",
            role="status",
        )
    else:
        head, said = "<h1>Metrics</h1>", ""
    return page([head, said, _search(found.search), _matches(found)])


def _matches(found: Unknown) -> str:
    if not found.matches:
        return '<p class="as-muted" role="status">No metric fits these words.</p>'
    lines = "".join(f"<li>{metric_name(entry)}{signed_by(entry)}</li>" for entry in found.matches)
    cut = (
        f'<p class="as-legend">The first {MOST_FOUND} of {count(found.n_matches, "metric")}; search '
        "for fewer.</p>"
        if found.n_matches > len(found.matches)
        else ""
    )
    return f'<ul class="as-matches" aria-label="Metrics">{lines}</ul>{cut}'


def _search(words: str) -> str:
    return (
        '<form class="as-asking" method="get" action="./metric" role="search"><label><span>Name or '
        f'submitter</span><input name="q" value="{text(words)}" maxlength="120" autocomplete="off">'
        '</label><button type="submit" class="as-plain">Search</button></form>'
    )
