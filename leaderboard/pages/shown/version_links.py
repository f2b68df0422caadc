"""From one version of a metric to the others: those it took the place of, and the one over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leaderboard.ledger.versions import standing_over, superseded_versions
from leaderboard.pages.shown.markup import submitted, text
from leaderboard.pages.shown.states_shown import chip
from leaderboard.records import Status


def version_links(status: Status, statuses: Sequence[Status], link: str = "./queue?") -> str:
    """Both directions as lists of links; nothing where there is no other version.

    Args:
        status: the version that is looked at.
        statuses: all submissions the reader may see.
        link: address on which one submission is shown, up to the name of it.
    """
    over = standing_over(status.submission, statuses)
    before = superseded_versions(status.submission, statuses) if status.scored_at else ()
    return _listed("Its place was taken by", (over,) if over else (), link) + _listed(
        "It took the place of", before, link
    )


def _listed(heading: str, versions: Iterable[Status], link: str) -> str:
    lines = "".join(f"<li>{version_line(version, link)}</li>" for version in versions)
    return f'<h3>{heading}</h3><ul class="as-history">{lines}</ul>' if lines else ""


def version_line(version: Status, link: str) -> str:
    """A version with its state and date, as a link.

    Args:
        version: another submission of the same account, kind and name.
        link: as for `version_links`.
    """
    own = version.submission
    return (
        f'{chip(version.state)} <a href="{text(link)}submission={text(own.submission_id)}">'
        f"{submitted(own.name)} {submitted(own.version, limit=40)}</a> "
        f'<span class="as-muted">{own.received_at:%Y-%m-%d}</span>'
    )
