"""The name of a metric as every page draws it: a link to its own page."""

from __future__ import annotations

from leaderboard.pages.shown.markup import submitted, text
from leaderboard.publication.entries import Entry
from leaderboard.publication.identities import signature_text
from leaderboard.views.addresses import metric_address


def metric_name(entry: Entry) -> str:
    """Name and version, with submitter, account and description on hover; leads to its page."""
    hover = f"{entry.metric} by {signature_text(entry)}"
    if entry.description:
        hover = f"{hover}: {entry.description}"
    version = f' <span class="as-version">{submitted(entry.version, limit=20)}</span>'
    return (
        f'<a class="as-name" title="{text(hover, limit=300)}" '
        f'href="{text(metric_address(entry.entry_id))}">{submitted(entry.metric)}</a>'
        f"{version if entry.version else ''}"
    )
