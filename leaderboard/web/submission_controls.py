"""Parts and controls of a page that shows submissions: buttons, the question before withdrawing, polling.

What is shown is asked for again every two seconds for as long as any of it changes by itself, and
then no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.governance.rights import Action
from leaderboard.records import Kind
from leaderboard.rendering import render
from leaderboard.states import LEGEND
from leaderboard.views.submissions import FAULTS, alive
from leaderboard.views.submit import Place, SubmitQuery, ban_of, last_seen, place_of
from leaderboard.web.components import Tab
from leaderboard.web.page import Context
from leaderboard.web.submitting import BUTTONS, REASONED, act_on, ask_to_withdraw
from leaderboard.web.visitors import as_visitor
from leaderboard.web.widgets import QUIET, html, or_as_before

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
        gate=context.desk.sandbox_availability(),
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


REFRESH_S = 2.0
DOING: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}
Look = Callable[[Account | None, Any], Parts]
"""What a visitor sees of a page in a state of it."""


class SubmissionControls:
    """The parts of a page that follow submissions, and the buttons of the open one."""

    def __init__(
        self, context: Context, look: Look, state: gr.State, id_of: Callable[[Any], str]
    ) -> None:
        self.acts = OperatorActions(context.store, context.cards, context.clock)
        self._context, self._look, self._state, self._id_of = context, look, state, id_of

    def build(self, before: int, after: int) -> None:
        """Add the components: parts, the controls of the open submission, further parts."""
        parts = [html() for _ in range(before)]
        with gr.Row(visible=False, elem_classes=["as-choosers", "as-acts"]) as self._row:
            self._buttons = {
                action: gr.Button(label, size="sm", scale=0, min_width=96, visible=False)
                for action, label in BUTTONS.items()
            }
            self._reason = gr.Textbox(
                label="Reason, shown on its page", max_length=500, scale=3, visible=False
            )
        with gr.Row(visible=False, elem_classes=["as-choosers", "as-sure-row"]) as self._sure:
            self._question = html(elem_classes=["as-result"])
            self._yes = gr.Button("Yes, withdraw it", size="sm", scale=0, elem_classes="as-danger")
            self._no = gr.Button("Keep it", size="sm", scale=0)
        self._answer = html(elem_classes=["as-result"])
        self._parts = [*parts, *(html() for _ in range(after))]
        self._digests = [gr.State("") for _ in range(len(self._parts) + 1)]
        self._timer = gr.Timer(REFRESH_S, active=False)
        self._connect()

    @property
    def outputs(self) -> list[Any]:
        """What `shown` fills."""
        return [
            *self._parts, self._row, *self._buttons.values(), self._reason, *self._digests,
            self._timer,
        ]  # fmt: skip

    def render_all(self, account: Account | None, state: Any) -> tuple[Any, ...]:
        """All of it, for a page that is opened or was changed."""
        parts = self._look(account, state)
        return self._filled(parts, parts.html, _visible(parts.actions))

    def _refreshed(self, account: Account | None, state: Any, *before: str) -> tuple[Any, ...]:
        """What changed; an unchanged part is left as it is, so that a selection in it survives."""
        parts = self._look(account, state)
        same = [old == new for old, new in zip(before, parts.digests, strict=True)]
        changed = [
            gr.skip() if kept else content for content, kept in zip(parts.html, same, strict=False)
        ]
        controls = _visible(parts.actions)
        return self._filled(parts, changed, [gr.skip() if same[-1] else c for c in controls])

    def _filled(
        self, parts: Parts, contents: Sequence[Any], controls: Sequence[Any]
    ) -> tuple[Any, ...]:
        return *contents, *controls, *parts.digests, gr.Timer(active=parts.busy)

    def _connect(self) -> None:
        self._timer.tick(
            as_visitor(self._context, or_as_before(self._refreshed, len(self.outputs))),
            [self._state, *self._digests], self.outputs, **QUIET,
        )  # fmt: skip
        for action, button in self._buttons.items():
            if action is not Action.WITHDRAW:
                self._on_click(button, action)
        self._on_click(self._yes, Action.WITHDRAW)
        self._buttons[Action.WITHDRAW].click(
            as_visitor(self._context, self._confirmation), self._state, [self._sure, self._question],
            **DOING,
        )  # fmt: skip
        self._no.click(lambda: gr.update(visible=False), None, self._sure, **QUIET)

    def _on_click(self, button: gr.Button, action: Action) -> None:
        def clicked(account: Account | None, state: Any, reason: str) -> tuple[Any, ...]:
            ident = self._id_of(state)
            said = act_on(self._context, self.acts, account, action, ident, reason=reason or "")
            # What was done is said, whether or not the rest can be read anew.
            anew = or_as_before(self.render_all, len(self.outputs))
            return said, gr.update(visible=False), *anew(account, state)

        button.click(
            as_visitor(self._context, clicked),
            [self._state, self._reason],
            [self._answer, self._sure, *self.outputs],
            **DOING,
        )

    def _confirmation(self, account: Account | None, state: Any) -> tuple[Any, str]:
        question = ask_to_withdraw(self._context, account, self._id_of(state))
        return gr.update(visible=True), question


def _visible(possible: Sequence[Action]) -> list[Any]:
    """The row of buttons, each button, and the field for a reason: shown where they are of use."""
    return [
        gr.update(visible=bool(possible)),
        *(gr.update(visible=action in possible) for action in BUTTONS),
        gr.update(visible=any(action in REASONED for action in possible)),
    ]
