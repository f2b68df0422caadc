"""Page of an account's own submissions, private ones included, and the actions on them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from benchmarks.errors import AssayError, TransientError
from leaderboard.accounts import Account
from leaderboard.governance.acts import Acts
from leaderboard.governance.own import Own
from leaderboard.governance.rights import Action, actions
from leaderboard.pages.mine.acts import BUTTONS, Deed, act_on, ask_to_withdraw
from leaderboard.pages.mine.operator_panel import OperatorPanel
from leaderboard.pages.mine.view import Whole, one_of_mine, own_list, versions_of
from leaderboard.pages.outage import or_as_before
from leaderboard.pages.page import Context, Page
from leaderboard.pages.queue.live_view import FOLLOW, Moment, happening
from leaderboard.pages.queue.turns import turns_of
from leaderboard.pages.shown.markup import page
from leaderboard.pages.shown.widgets import QUIET, html, on_load, run_on_load
from leaderboard.pages.submit.answers import refused
from leaderboard.pages.submit.submitting import standing_of
from leaderboard.pages.visitors import as_visitor, required, sign_in_row
from leaderboard.records import Status
from leaderboard.store.live.interface import Pulse
from leaderboard.views.queue import Outlook

REFRESH_S = 2.0
_DOING: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}
_REASONED = frozenset({Action.HIDE, Action.SHOW, Action.RERUN})


@dataclass(frozen=True)
class Asked:
    """What the address asks for.

    Attributes:
        submission_id: the one that is opened; empty for none.
        everybody: an operator wants to see those of all accounts.
    """

    submission_id: str = ""
    everybody: bool = False

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> Asked:
        """Read an address."""
        return cls(str(params.get("submission", ""))[:100], params.get("all") == "1")

    @property
    def back(self) -> str:
        """Address of the list."""
        return "./mine?all=1" if self.everybody else "./mine"


@dataclass(frozen=True)
class Shown:
    """The page as it is for one visitor.

    Attributes:
        parts: HTML: who is signed in, the opened submission, the list, and what happens to the
            opened one right now.
        actions: what may be done with the opened submission.
    """

    parts: tuple[str, str, str, str]
    actions: tuple[Action, ...] = ()

    @property
    def digests(self) -> list[str]:
        """What tells whether a part, or the buttons, changed."""
        every = [*self.parts, " ".join(self.actions)]
        return [hashlib.sha256(content.encode()).hexdigest() for content in every]


def mine(context: Context, account: Account | None, asked: Asked) -> Shown:
    """Everything a visitor may see here; guests are told how to sign in."""
    head = page(["<h1>My submissions</h1>", standing_of(context, account), _tabs(account, asked)])
    if account is None:
        return Shown((head, "", "", ""))
    own = context.own(account)
    every, pulses = own.statuses(), context.live.pulses()
    turns = turns_of(context, pulses, every)
    everybody = asked.everybody and account.operator
    listed = every if everybody else [s for s in every if s.submission.account == account.key]
    listing = own_list(
        listed, pulses, _titles(context), context.clock(),
        chosen=asked.submission_id, everybody=everybody, turns=turns,
    )  # fmt: skip
    try:
        whole = _whole(own, asked.submission_id, every) if asked.submission_id else None
    except TransientError:
        raise
    except AssayError as error:
        return Shown((head, page([refused(error)]), page([listing]), ""))
    if whole is None:
        return Shown((head, "", page([listing]), ""))
    opened = page([one_of_mine(whole, _titles(context), back=asked.back)])
    now = _now(context, whole, pulses, turns)
    return Shown((head, opened, page([listing]), now), actions(whole.status, account))


def _whole(own: Own, submission_id: str, every: Sequence[Status]) -> Whole:
    status = own.status(submission_id)
    return Whole(
        status,
        own.events(submission_id),
        own.results(submission_id) if status.scored_at else (),
        versions_of(status, every),
    )


def _now(
    context: Context, whole: Whole, pulses: Sequence[Pulse], turns: Mapping[str, Outlook]
) -> str:
    """What happens to it right now, its running log included: it is the visitor's own."""
    if not whole.status.unfinished:
        return ""
    own = whole.status.submission.submission_id
    try:
        said = context.live.said(own)
    except (OSError, AssayError):
        said = None
    moment = Moment(pulses, context.clock(), turns.get(own), words=True, said=said)
    return page([happening(whole.status, whole.events, moment)])


def _tabs(account: Account | None, asked: Asked) -> str:
    if account is None or not account.operator:
        return ""
    mine_, all_ = ("", ' aria-current="page"') if asked.everybody else (' aria-current="page"', "")
    return (
        f'<nav aria-label="Whose submissions"><span class="as-switch"><a href="./mine"{mine_}>Mine</a>'
        f'<a href="./mine?all=1"{all_}>Everybody\'s</a></span></nav>'
    )


def _titles(context: Context) -> dict[str, str]:
    return {name: card.title for name, card in context.cards.items()}


class _MinePage:
    """Joins the page to its components.

    Args:
        context: what the page may use.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._acts = Acts(context.store, context.cards, context.clock)
        self._asked = gr.State(Asked())
        line, now, opened = sign_in_row(context), html(), html()
        with gr.Row(visible=False, elem_classes=["as-choosers", "as-acts"]) as self._row:
            self._buttons = {
                action: gr.Button(
                    label, elem_classes="as-plain", size="sm", scale=0, min_width=110, visible=False
                )
                for action, label in BUTTONS.items()
            }
            self._reason = gr.Textbox(
                label="Reason, shown on its page", max_length=500, scale=3, visible=False
            )
        with gr.Row(visible=False, elem_classes=["as-choosers", "as-sure-row"]) as self._sure:
            self._question = html(elem_classes=["as-result"])
            self._yes = gr.Button("Yes, withdraw it", size="sm", scale=0, elem_classes="as-danger")
            self._no = gr.Button("Keep it", size="sm", scale=0, elem_classes="as-plain")
        self._answer = html(elem_classes=["as-result"])
        self._parts = [line, opened, html(), now]
        run_on_load(FOLLOW)
        self._digests = [gr.State("") for _ in (*self._parts, self._buttons)]
        self._panel = OperatorPanel(context, self._acts)
        self._connect()

    def _connect(self) -> None:
        on_load(
            as_visitor(self._context, self._open, query=True),
            [self._asked, *self._everything, *self._panel.outputs],
        )
        gr.Timer(REFRESH_S).tick(
            as_visitor(self._context, or_as_before(self._refresh, len(self._everything))),
            [self._asked, *self._digests],
            self._everything,
            **QUIET,
        )
        for action, button in self._buttons.items():
            if action is not Action.WITHDRAW:
                self._on_click(button, action)
        self._on_click(self._yes, Action.WITHDRAW)
        self._buttons[Action.WITHDRAW].click(
            as_visitor(self._context, self._ask),
            self._asked,
            [self._sure, self._question],
            **_DOING,
        )
        self._no.click(lambda: gr.update(visible=False), None, self._sure, **QUIET)

    def _on_click(self, button: gr.Button, action: Action) -> None:
        def clicked(account: Account | None, asked: Asked, reason: str) -> tuple[Any, ...]:
            said = act_on(
                self._context, self._acts, account, Deed(action, asked.submission_id, reason or "")
            )
            # What was done is said, whether or not the rest can be read anew.
            anew = or_as_before(self._shown, len(self._everything))
            return said, gr.update(visible=False), *anew(account, asked)

        button.click(
            as_visitor(self._context, clicked),
            [self._asked, self._reason],
            [self._answer, self._sure, *self._everything],
            **_DOING,
        )

    @property
    def _everything(self) -> list[Any]:
        """What every change of a submission may change."""
        return [*self._parts, *self._controls, *self._digests]

    @property
    def _controls(self) -> list[Any]:
        return [self._row, *self._buttons.values(), self._reason]

    def _open(self, account: Account | None, params: Mapping[str, str]) -> tuple[Any, ...]:
        asked = Asked.from_params(params)
        return asked, *self._shown(account, asked), *self._panel.shown(account)

    def _shown(self, account: Account | None, asked: Asked) -> tuple[Any, ...]:
        shown = mine(self._context, account, asked)
        return *shown.parts, *_visible(shown.actions), *shown.digests

    def _refresh(self, account: Account | None, asked: Asked, *before: str) -> tuple[Any, ...]:
        shown = mine(self._context, account, asked)
        same = [old == new for old, new in zip(before, shown.digests, strict=True)]
        # An unchanged part is left as it is, so that a selection in it survives.
        parts = [
            gr.skip() if kept else content for content, kept in zip(shown.parts, same, strict=False)
        ]
        controls = _visible(shown.actions)
        return *parts, *(gr.skip() if same[-1] else c for c in controls), *shown.digests

    def _ask(self, account: Account | None, asked: Asked) -> tuple[Any, str]:
        def status() -> Status:
            return self._context.own(required(self._context, account)).status(asked.submission_id)

        return gr.update(visible=True), ask_to_withdraw(self._context, account, status)


def _visible(possible: Sequence[Action]) -> list[Any]:
    """The row of buttons, each button, and the field for a reason: shown where they are of use."""
    return [
        gr.update(visible=bool(possible)),
        *(gr.update(visible=action in possible) for action in BUTTONS),
        gr.update(visible=any(action in _REASONED for action in possible)),
    ]


def _build(context: Context) -> None:
    _MinePage(context)


PAGE = Page("My submissions", "mine", 25, _build)
