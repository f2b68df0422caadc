"""Parts of the submit and operators' pages as HTML, from one look at the place."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard.accounts import Account
from leaderboard.governance.rights import Action
from leaderboard.records import Kind
from leaderboard.rendering import render
from leaderboard.states import LEGEND
from leaderboard.views.queue import alive
from leaderboard.views.submissions import FAULTS
from leaderboard.views.submit import Place, SubmitQuery, ban_of, last_seen, place_of
from leaderboard.web.components import Tab
from leaderboard.web.page import Context

TITLES: Mapping[Kind, str] = {
    Kind.METRIC: "Scoring module",
    Kind.SCORES: "Scores file",
    Kind.GENERATIONS: "Model images",
}
MOST_WIDE = 100
"""Rows of each group of the queue on a page of its own."""


@dataclass(frozen=True)
class Parts:
    """The page as it is for one visitor."""

    html: tuple[str, ...]  # the submission that is open, own submissions, queue and quota
    actions: tuple[Action, ...] = ()  # what may be done with the open submission
    busy: bool = False  # whether any of it changes by itself

    @property
    def digests(self) -> list[str]:
        """What tells whether a part, or the buttons, changed."""
        every = [*self.html, " ".join(self.actions)]
        return [hashlib.sha256(content.encode()).hexdigest() for content in every]


def submit_parts(context: Context, account: Account | None, query: SubmitQuery) -> Parts:
    """Beside the forms."""
    place = place_of(context, account, query.submission_id)
    kind = query.kind.value
    shared = _shared(place, kind=kind, chosen=query.submission_id, base="./submit", wide=False)
    own = render(
        "submit/own.html", rows=place.own, beyond=place.beyond, signed_in=account is not None,
        **shared,
    )  # fmt: skip
    queue = render("submit/queue.html", queue=place.queue, **shared)
    quota = (
        render("submit/quota.html", standings=place.standings, policy=place.policy, **shared)
        if account is not None and ban_of(context, account) is None
        else ""
    )
    chosen = _chosen(place, f"./submit?kind={kind}", shared)
    return _parts(place, (own, chosen, queue, quota))


def operator_parts(context: Context, account: Account | None, submission_id: str) -> Parts:
    """Everybody's submissions, for operators; others are shown nothing."""
    if account is None or not account.operator:
        return Parts(("", ""))
    place = place_of(context, account, submission_id, everybody=True, most=MOST_WIDE)
    shared = _shared(place, kind="", chosen=submission_id, base="./operators", wide=True)
    queue = render(
        "submit/queue.html", queue=place.queue, title="Everybody’s submissions", **shared
    )
    return _parts(place, (_chosen(place, "./operators", shared), queue))


def head(context: Context, account: Account | None, kind: Kind) -> str:
    """Top of the submit page: who is signed in, what stands in the way, and the three forms."""
    pulses, now = context.live.pulses(), context.clock()
    tabs = [
        Tab(title, f"./submit?kind={one.value}", current=one is kind)
        for one, title in TITLES.items()
    ]
    return render(
        "submit/head.html",
        sign_in=context.sign_in,
        account=account,
        banned=ban_of(context, account),
        no_worker=not alive(pulses, now),
        last_seen=last_seen(pulses),
        gate=context.desk.gate(),
        kind=kind.value,
        kinds=tabs,
        now=now,
    )


def operators_head(context: Context, account: Account | None) -> str:
    """Top of the operators' page."""
    return render("submit/operators.html", sign_in=context.sign_in, account=account)


def _shared(place: Place, **more: Any) -> dict[str, Any]:
    return {"now": place.now, "legend": LEGEND, "faults": FAULTS, **more}


def _chosen(place: Place, back: str, shared: Mapping[str, Any]) -> str:
    if place.unknown:
        return render("submit/unknown.html", ident=place.unknown, back=back)
    if place.chosen is None:
        return ""
    return render("submit/submission.html", view=place.chosen, back=back, **shared)


def _parts(place: Place, html: tuple[str, ...]) -> Parts:
    actions = place.chosen.actions if place.chosen else ()
    return Parts(html, actions, place.busy)
